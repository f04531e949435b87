//! `kill -9` of the worker while one of its commands on an SSH host is held: before it is done, and after that but
//! before its result is reported. An undisturbed turn shows how many there are.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::limits::{ANSWER_MS_MAX, FAULTY_ANSWER_MS_MAX};
use bobbin_tests::wait::eventually;

use super::*;

/// The script that holds commands.
const HOLD: &str = include_str!("../../ssh/hold.sh");
/// Commands that are tested without `BOBBIN_KILLS`, each before it is done and after.
const SAMPLE: usize = 3;

pub fn trials() -> Vec<Trial> {
    vec![beside("places::ssh::worker_kill_on_host_doubles_nothing", || {
        match lacks() {
            Some(why) => eprintln!("SKIPPED: {why}"),
            None => block_on(killed()),
        }
        Ok(())
    })]
}

async fn killed() {
    let (key, public) = key_pair();
    let host = Holding::start(&public);
    let mut limits = quick();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    let stack = Stack::start(&on_hosts(limits, "ssh", &[&host.host.settings()], &key));
    let world = World::on_host(&stack, host.host.folder(""));

    // A turn that counts them.
    host.arm(0, "before");
    let (talk, turn) = world.begin(Platform::Slack, "echo: undisturbed").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let commands = host.counted();
    talk.finish().await;
    assert!(commands > SAMPLE, "{commands} commands");

    for number in sample(commands) {
        for when in ["before", "after"] {
            let point = format!("{when} command {number} of {commands}");
            host.arm(number, when);
            let (talk, turn) = world.begin(Platform::Slack, "echo: once and no more").await;
            let held = eventually(ANSWER_MS_MAX, "the command is held", async || {
                // One poll fewer than before: the turn passed.
                match (host.is_held(), talk.has_ended(&turn).await) {
                    (true, _) => Ok(true),
                    (false, true) => Ok(false),
                    (false, false) => Err(format!("{point}: {} so far", host.counted())),
                }
            })
            .await;
            if held {
                assert!(!world.kill("Worker").await.unwrap().is_empty(), "{point}");
            }
            host.let_go();
            let ended = talk.ended_within(FAULTY_ANSWER_MS_MAX, &turn).await;
            assert_eq!(ended.outcome, Outcome::Answered, "{point}");
            talk.finish().await;
        }
    }
    stack.end().unwrap();
}

/// A machine on which a command can be held.
struct Holding {
    host: Host,
}

impl Holding {
    fn start(public_key: &str) -> Self {
        let mut host = Host::start("held", 2, public_key);
        host.as_root(&format!(
            "mkdir /var/lib/hold\nchmod 1777 /var/lib/hold\necho 'ForceCommand sh /etc/ssh/hold.sh' >/etc/ssh/sshd_config.d/0-hold.conf\ncat >/etc/ssh/hold.sh <<'HOLD'\n{HOLD}\nHOLD"
        ));
        host.restart();
        let host = with_agent(host);
        Self { host }
    }

    /// Counts commands from now on, and holds the one with this number, from 1, `before` it is done or `after`.
    fn arm(&self, number: usize, when: &str) {
        self.host.as_root(&format!(
            "cd /var/lib/hold\nrm -f held go\necho 0 >count\n: >lock\nchmod 666 count lock\necho '{number} {when}' >armed"
        ));
    }

    /// How many there were since then.
    fn counted(&self) -> usize {
        let count = self.host.as_root("flock /var/lib/hold/lock cat /var/lib/hold/count");
        count.trim().parse().unwrap()
    }

    /// Whether that one is held.
    fn is_held(&self) -> bool {
        let held = "if [ -e /var/lib/hold/held ]; then echo held; fi";
        !self.host.as_root(held).is_empty()
    }

    /// Releases it and stops counting.
    fn let_go(&self) {
        self.host.as_root("cd /var/lib/hold\nrm -f armed\n: >go");
    }
}

/// Some of them, evenly spread, or all, as the environment sets.
fn sample(commands: usize) -> Vec<usize> {
    let wanted = match std::env::var("BOBBIN_KILLS").as_deref() {
        Ok("all") => commands,
        _ => SAMPLE,
    };
    (0..wanted).map(|at| 1 + at * commands / wanted).collect()
}
