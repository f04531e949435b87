//! Following a long, chatty run: the worker's memory meanwhile, the cost of an event, and the number of card edits.

use std::time::Duration;

use crate::figures::Report;
use crate::harness::Harness;
use crate::process::{Running, held_bytes};
use crate::turn::{at_once, single};

/// Messages of the agent: below a turn's bound of 200.
const MESSAGES: usize = 150;
/// Events of a run.
const EVENTS: u64 = 100_000;
/// Events in a second: more than ten agents send.
const PACE: u32 = 10_000;
/// One run in this many is made: it takes some seconds.
const SHARE: u64 = 10;
/// Memory is measured after each of this many parts of the events.
const POINTS: u64 = 10;
/// Time between two checks of the run's progress.
const POLL: Duration = Duration::from_millis(5);
/// Time between two edits of a card (the default of the bound `card_edit_ms`).
const EDIT_EVERY: Duration = Duration::from_secs(3);
/// Additional edits: the first picture and the last.
const FURTHER_EDITS: f64 = 3.0;

const MIB: f64 = 1024.0 * 1024.0;

/// The result of one run.
struct Followed {
    held: Vec<f64>,
    peak: f64,
    cpu: Duration,
    took: Duration,
    bytes: u64,
    edits: usize,
    read: usize,
}

/// Makes a worker follow long runs, one after the other.
///
/// # Errors
/// What the worker did instead.
pub fn follow(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::new()?;
    let worker = harness.ours("worker")?;
    let mut followed = Vec::new();
    for run in 0..runs.div_ceil(SHARE) {
        let mut running = worker.start().map_err(|e| e.to_string())?;
        let (thread, number) = (harness.thread()?, run * 3);
        // Creates the sandbox and the worker's permanent data.
        for number in [number + 1, number + 2] {
            let prompt = (&*thread, number, &*at_once());
            harness.turn(&mut running, prompt, POLL, |_| Ok(()))?;
        }
        followed.push(one(&mut running, &harness, (&thread, number + 3))?);
        running.end().map_err(|e| e.to_string())?;
    }
    tell(report, &followed);
    Ok(())
}

fn one(
    running: &mut Running,
    harness: &Harness,
    (thread, number): (&str, u64),
) -> Result<Followed, String> {
    let wrong = |e: std::io::Error| e.to_string();
    let _ = harness.relays.recorded();
    let (told_before, bytes_before) = harness.relays.told();
    let before = running.cpu().map_err(wrong)?;
    let text = format!("long: {MESSAGES} {EVENTS} {PACE}");
    let mut held = Vec::new();
    let invoked = harness.turn(running, (thread, number, &text), POLL, |id| {
        let told = harness.relays.told().0 - told_before;
        let next = held.len() as u64 + 1;
        if next < POINTS && told >= next * EVENTS / POINTS {
            held.push(held_bytes(id).map_err(wrong)? as f64 / MIB);
        }
        Ok(())
    })?;
    let cpu = running.cpu().map_err(wrong)?.saturating_sub(before);
    let (told, bytes) = harness.relays.told();
    if told - told_before < EVENTS {
        return Err(format!("of {EVENTS} events the worker was told {}", told - told_before));
    }
    let calls = harness.relays.recorded().calls;
    let named = |name: &'static str| calls.iter().filter(move |call| call.name == name);
    Ok(Followed {
        held,
        peak: running.peak_bytes().map_err(wrong)? as f64 / MIB,
        cpu,
        took: invoked.answered.duration_since(invoked.given),
        bytes: bytes - bytes_before,
        edits: named("edit the card").count(),
        read: named("messages").map(|call| call.received).sum(),
    })
}

fn tell(report: &mut Report, followed: &[Followed]) {
    let of =
        |value: &dyn Fn(&Followed) -> f64| -> Vec<f64> { followed.iter().map(value).collect() };
    let mut line = |figure: &str, unit, value: &dyn Fn(&Followed) -> f64| {
        single(report, figure, unit, &of(value), None);
    };
    line("follow: events", "", &|_| EVENTS as f64);
    line("follow: bytes of the stream", "MB", &|one| one.bytes as f64 / 1e6);
    line("follow: time of the run", "s", &|one| one.took.as_secs_f64());
    // The last part ends with the run.
    for point in 0..POINTS as usize - 1 {
        let figure = format!("follow: memory after {} % of the events", (point + 1) * 10);
        line(&figure, "MiB", &|one| one.held.get(point).copied().unwrap_or(one.peak));
    }
    line("follow: growth from 10 % to 90 %", "MiB", &|one| {
        one.held.last().unwrap_or(&0.0) - one.held.first().unwrap_or(&0.0)
    });
    line("follow: peak memory, the end of the turn included", "MiB", &|one| one.peak);
    line("follow: bytes of messages read", "MB", &|one| one.read as f64 / 1e6);
    line("follow: CPU of the run", "s", &|one| one.cpu.as_secs_f64());
    line("follow: CPU an event", "µs", &|one| one.cpu.as_secs_f64() * 1e6 / EVENTS as f64);
    line("follow: edits of the card", "", &|one| one.edits as f64);
    let share = |one: &Followed| {
        let bound = one.took.as_secs_f64() / EDIT_EVERY.as_secs_f64() + FURTHER_EDITS;
        one.edits as f64 / bound
    };
    let shares: Vec<f64> = followed.iter().map(share).collect();
    single(
        report,
        "follow: edits of the card, of those that the bound allows",
        "x",
        &shares,
        Some(1.0),
    );
}
