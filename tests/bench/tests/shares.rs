//! The shares of the time from a message to its prompt, for calls of each place.

#![allow(dead_code, reason = "of the bench's modules a part is used here")]

#[path = "../benches/speed/shares.rs"]
mod shares;
#[path = "../benches/speed/trips.rs"]
mod trips;
#[path = "../benches/speed/wire.rs"]
mod wire;

use std::time::Duration;

use shares::{Delivery, Shares};
use trips::{Call, Peer};
use wire::{Exchange, Wire};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn call(peer: Peer, name: &str, begun_ms: u64, ended_ms: u64) -> Call {
    Call {
        peer,
        name: name.to_owned(),
        begun: at(begun_ms),
        ended: at(ended_ms),
        sent: 1,
        received: 1,
        status: 200,
        digest: [0; 32],
    }
}

fn shares(calls: Vec<Call>, up_ms: u64, boot_ms: (u64, u64)) -> Shares {
    let delivery =
        Delivery { calls, given: at(100), up: at(up_ms), boot: (at(boot_ms.0), at(boot_ms.1)) };
    delivery.shares().expect("the prompt was sent")
}

#[test]
fn async_sandbox_boot_counts_as_provider() {
    let calls = vec![
        call(Peer::Aws, "table", 100, 110),
        call(Peer::Provider, "create sandbox", 112, 122),
        // A poll without a result does not count separately while the sandbox comes up; up at 300, seen at 340.
        call(Peer::Provider, "read sandbox", 172, 176),
        call(Peer::Provider, "read sandbox", 340, 345),
        call(Peer::Provider, "run a script", 350, 400),
        // The server was started at 380, before its script ended, and listens at 2,000.
        call(Peer::Agent, "health", 500, 505),
        call(Peer::Agent, "health", 2_030, 2_040),
        call(Peer::Agent, "make a session", 2_041, 2_141),
        call(Peer::Chat, "edit the card", 2_141, 2_151),
        call(Peer::Agent, "send the prompt", 2_152, 2_162),
        // Later calls do not count.
        call(Peer::Agent, "event stream", 2_163, 9_000),
    ];
    assert_eq!(
        shares(calls, 300, (380, 2_000)),
        Shares {
            whole: 2_062.0,
            // 112 to 300, a poll of 5, and the script until the server was started.
            provider: 188.0 + 5.0 + 30.0,
            // The boot, and three calls.
            agent: 1_620.0 + 10.0 + 100.0 + 10.0,
            // 110 to 112, 300 to 340, 345 to 350, 2,000 to 2,030, and twice one between calls.
            ours: 2.0 + 40.0 + 5.0 + 30.0 + 1.0 + 1.0,
        }
    );
}

#[test]
fn blocking_start_counts_only_its_call() {
    let calls = vec![
        call(Peer::Provider, "start sandbox", 110, 310),
        call(Peer::Provider, "run a script", 320, 350),
        call(Peer::Agent, "send the prompt", 1_110, 1_120),
    ];
    assert_eq!(
        shares(calls, 308, (340, 1_100)),
        Shares {
            whole: 1_020.0,
            provider: 200.0 + 20.0,
            agent: 760.0 + 10.0,
            ours: 10.0 + 10.0 + 10.0,
        }
    );
}

#[test]
fn host_time_counts_only_while_awaited() {
    let mut wire = Wire::opened(at(110));
    wire.answered(at(130), 40);
    // A command and its input: between the two nobody waits for the host.
    wire.said(at(135), 100);
    wire.said(at(137), 100);
    wire.answered(at(150), 20);
    wire.answered(at(197), 20);
    // The channel is closed, which nobody answers, and later the agent is asked over the same connection.
    wire.said(at(198), 10);
    wire.said(at(1_040), 300);
    wire.answered(at(1_060), 300);
    let exchanges = wire.taken();
    let spans: Vec<(u128, u128)> =
        exchanges.iter().map(|it| (it.begun.as_millis(), it.ended.as_millis())).collect();
    assert_eq!(spans, [(110, 130), (137, 197), (1_040, 1_060)]);

    let call_of = |it: Exchange| Call {
        begun: it.begun,
        ended: it.ended,
        ..call(Peer::Provider, "SSH as bobbin-1", 0, 0)
    };
    let mut calls: Vec<Call> = exchanges.into_iter().map(call_of).collect();
    calls.push(call(Peer::Agent, "send the prompt", 1_045, 1_055));
    assert_eq!(
        shares(calls, 160, (180, 1_000)),
        Shares {
            whole: 955.0,
            // 110 to 130, 137 to the start of the server, and five before the agent had the prompt.
            provider: 20.0 + 43.0 + 5.0,
            agent: 820.0 + 10.0,
            // 100 to 110, 130 to 137, and 1,000 to 1,040.
            ours: 10.0 + 7.0 + 40.0,
        }
    );
}

#[test]
fn late_host_output_answers_nothing() {
    let mut wire = Wire::opened(at(0));
    wire.answered(at(5), 1);
    assert_eq!(wire.taken().len(), 1);
    wire.answered(at(9_000), 1);
    wire.said(at(9_010), 2);
    wire.answered(at(9_020), 3);
    let expected = Exchange { begun: at(9_010), ended: at(9_020), sent: 2, received: 3 };
    assert_eq!(wire.taken(), [expected]);
}
