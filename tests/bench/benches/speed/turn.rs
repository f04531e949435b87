//! A turn on an active thread whose agent answers at once: its calls, their dependencies, its bytes, its CPU and its
//! allocations; and its critical path as a picture.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::figures::{Line, Report, Spread};
use crate::harness::Harness;
use crate::process::{Program, Running};
use crate::programs;
use crate::relay::{ANSWER, ANSWER_POSTED};
use crate::shares::{PROMPT_SENT, ms};
use crate::trips::{Call, Peer, begun_by, chain, first, repeated};
use crate::waterfall::{Bar, Picture};

/// Turns before the counted ones: the first of them creates the sandbox.
const WARM_UP: u64 = 10;
/// One run in this many uses slow parts: such a turn takes a second or two.
const SLOW_SHARE: u64 = 8;
/// The assumed duration of each part, in addition to its duration here, for the picture: the network and its own work.
const ASSUMED_MS: [(Peer, u64); 4] =
    [(Peer::Aws, 20), (Peer::Chat, 80), (Peer::Provider, 80), (Peer::Agent, 40)];
/// Sequential round trips until the prompt is sent: the goal.
const TRIPS_GOAL: f64 = 3.0;
/// Turns under valgrind: only the difference of the two counts.
const COUNTED: [u64; 2] = [5, 35];
/// Time between two checks whether the worker still lives.
const POLL: Duration = Duration::from_millis(200);

/// One turn, as recorded.
struct Turn {
    calls: Vec<Call>,
    opened: usize,
    cpu: Duration,
    given: Duration,
    answered: Duration,
}

impl Turn {
    fn at(&self, name: &str) -> Result<usize, String> {
        first(&self.calls, name).ok_or_else(|| format!("nobody called to {name}"))
    }
}

/// Measures turns of one worker, one after the other.
///
/// # Errors
/// What the worker did instead of a turn.
pub fn turn(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::new()?;
    let worker = harness.ours("worker")?;
    let mut running = worker.start().map_err(|e| e.to_string())?;
    let (thread, mut number) = (harness.thread()?, 0);
    for _ in 0..WARM_UP {
        one(&mut running, &harness, &thread, &mut number)?;
    }
    let mut quick = Vec::new();
    for _ in 0..runs {
        quick.push(one(&mut running, &harness, &thread, &mut number)?);
    }
    for (peer, delay_ms) in ASSUMED_MS {
        harness.relays.delay(peer, delay_ms);
    }
    let mut slow = Vec::new();
    for _ in 0..runs.div_ceil(SLOW_SHARE) {
        slow.push(one(&mut running, &harness, &thread, &mut number)?);
    }
    running.end().map_err(|e| e.to_string())?;
    for peer in Peer::ALL {
        harness.relays.delay(peer, 0);
    }

    tell_trips(report, &slow)?;
    tell_costs(report, &quick)?;
    draw(&slow)?;
    match allocations(&harness, &worker, &mut number) {
        Ok(counts) => {
            for (figure, unit, value) in counts {
                single(report, figure, unit, &[value], None);
            }
        }
        // Everything takes fifty times as long there, which on a busy machine exceeds the worker's limits.
        Err(why) => eprintln!("Allocations are not counted: {why}."),
    }
    Ok(())
}

fn one(
    running: &mut Running,
    harness: &Harness,
    thread: &str,
    number: &mut u64,
) -> Result<Turn, String> {
    *number += 1;
    let _ = harness.relays.recorded();
    let before = running.cpu().map_err(|e| e.to_string())?;
    let invoked = harness.turn(running, (thread, *number, &at_once()), POLL, |_| Ok(()))?;
    let after = running.cpu().map_err(|e| e.to_string())?;
    let seen = harness.relays.recorded();
    // A question whether something exists may be answered with no, and a server that starts does not answer yet.
    let is_refused =
        |call: &&Call| call.status >= 400 && call.status != 404 && call.name != "health";
    if let Some(refused) = seen.calls.iter().find(is_refused) {
        return Err(format!("{} was answered with {}", refused.name, refused.status));
    }
    Ok(Turn {
        calls: seen.calls,
        opened: seen.opened.len(),
        cpu: after.saturating_sub(before),
        given: harness.relays.when(invoked.given),
        answered: harness.relays.when(invoked.answered),
    })
}

/// A prompt that the stand-in for the agent has answered as soon as it has it.
pub fn at_once() -> String {
    format!("at once: {ANSWER}")
}

/// The dependencies of calls, if every call takes time.
fn tell_trips(report: &mut Report, turns: &[Turn]) -> Result<(), String> {
    let mut rows: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for turn in turns {
        let (sent, posted) = (turn.at(PROMPT_SENT)?, turn.at(ANSWER_POSTED)?);
        for (name, value) in [
            ("a trips", chain(&turn.calls, sent).len()),
            ("b calls", begun_by(&turn.calls, sent)),
            ("c trips", chain(&turn.calls, posted).len()),
            ("d calls", begun_by(&turn.calls, posted)),
            ("e calls", turn.calls.len()),
            ("f opened", turn.opened),
            ("g twice", repeated(&turn.calls).len()),
        ] {
            rows.entry(name).or_default().push(value as f64);
        }
    }
    let figures = [
        ("turn: round trips one after another until the prompt is sent", Some(TRIPS_GOAL)),
        ("turn: calls until the prompt is sent", None),
        ("turn: round trips one after another until the answer is posted", None),
        ("turn: calls until the answer is posted", None),
        ("turn: calls in all", None),
        ("turn: connections opened", Some(0.0)),
        ("turn: calls that were made before in the same words", None),
    ];
    for ((figure, goal), values) in figures.into_iter().zip(rows.values()) {
        single(report, figure, "", values, goal);
    }
    Ok(())
}

/// The cost of a turn if nobody is waited for.
fn tell_costs(report: &mut Report, turns: &[Turn]) -> Result<(), String> {
    let (mut sent, mut posted) = (Vec::new(), Vec::new());
    for turn in turns {
        let until = |index: usize| ms(turn.calls[index].ended.saturating_sub(turn.given));
        sent.push(until(turn.at(PROMPT_SENT)?));
        posted.push(until(turn.at(ANSWER_POSTED)?));
    }
    let of = |value: fn(&Turn) -> f64| -> Vec<f64> { turns.iter().map(value).collect() };
    single(report, "turn: CPU of the worker", "ms", &of(|turn| ms(turn.cpu)), None);
    single(report, "turn: message to prompt sent", "ms", &sent, None);
    single(report, "turn: message to answer posted", "ms", &posted, None);
    let whole = of(|turn| ms(turn.answered.saturating_sub(turn.given)));
    single(report, "turn: message to its end", "ms", &whole, None);
    let kib = |bytes: fn(&Call) -> usize| -> Vec<f64> {
        let sum = |turn: &Turn| turn.calls.iter().map(bytes).sum::<usize>() as f64 / 1024.0;
        turns.iter().map(sum).collect()
    };
    single(report, "turn: bytes out, without TLS", "KiB", &kib(|call| call.sent), None);
    single(report, "turn: bytes in, without TLS", "KiB", &kib(|call| call.received), None);
    Ok(())
}

/// One line of the table.
pub fn single(
    report: &mut Report,
    figure: &str,
    unit: &'static str,
    values: &[f64],
    goal: Option<f64>,
) {
    report.lines.push(Line {
        figure: figure.to_owned(),
        unit,
        program: "worker".to_owned(),
        spread: Spread::of(values),
        goal,
    });
}

/// How often a turn allocates, and how many KiB.
fn allocations(
    harness: &Harness,
    worker: &Program,
    number: &mut u64,
) -> Result<[(&'static str, &'static str, f64); 2], String> {
    let valgrind = programs::on_path("valgrind")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut totals = Vec::new();
    for turns in COUNTED {
        let log = folder.path().join(format!("heap-{turns}"));
        let program = Program {
            executable: valgrind.clone(),
            arguments: vec![
                "--leak-check=no".to_owned(),
                format!("--log-file={}", log.display()),
                worker.executable.display().to_string(),
            ],
            ..worker.clone()
        };
        let mut running = program.start().map_err(|e| e.to_string())?;
        let thread = harness.thread()?;
        for _ in 0..turns {
            one(&mut running, harness, &thread, number)?;
        }
        running.terminate().map_err(|e| e.to_string())?;
        let text = fs::read_to_string(&log).map_err(|e| e.to_string())?;
        let counted = heap_usage(&text).ok_or_else(|| format!("valgrind says only: {text}"))?;
        totals.push(counted);
    }
    let per_turn = |of: fn(&(f64, f64)) -> f64| {
        (of(&totals[1]) - of(&totals[0])) / (COUNTED[1] - COUNTED[0]) as f64
    };
    Ok([
        ("turn: allocations", "", per_turn(|(allocations, _)| *allocations)),
        ("turn: allocated", "KiB", per_turn(|(_, bytes)| *bytes) / 1024.0),
    ])
}

/// Allocations and bytes, of `total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated`.
fn heap_usage(text: &str) -> Option<(f64, f64)> {
    let line = text.lines().find_map(|line| line.split_once("total heap usage:"))?.1;
    let number = |part: &str| part.split_whitespace().next()?.replace(',', "").parse().ok();
    // The commas between the parts are followed by a space, those within numbers are not.
    let mut parts = line.split(", ");
    let allocations = number(parts.next()?)?;
    Some((allocations, number(parts.nth(1)?)?))
}

/// Draws the slow turn in the middle.
fn draw(turns: &[Turn]) -> Result<(), String> {
    let mut order: Vec<&Turn> = turns.iter().collect();
    order.sort_by_key(|turn| turn.answered.saturating_sub(turn.given));
    let turn = order.get(order.len() / 2).ok_or("no turn was slow")?;
    let (sent, posted) = (turn.at(PROMPT_SENT)?, turn.at(ANSWER_POSTED)?);
    let row = chain(&turn.calls, posted);
    let until = |time: Duration| ms(time.saturating_sub(turn.given));
    let mut calls: Vec<(usize, &Call)> = turn.calls.iter().enumerate().collect();
    calls.sort_by_key(|(_, call)| call.begun);
    let bar = |(index, call): (usize, &Call)| Bar {
        name: call.name.clone(),
        group: call.peer as usize,
        from_ms: until(call.begun),
        to_ms: until(call.ended),
        is_critical: row.contains(&index),
    };
    let assumed = ASSUMED_MS.map(|(peer, delay_ms)| format!("{} {delay_ms} ms", peer.word()));
    let picture = Picture {
        title: "A turn on an active thread".to_owned(),
        notes: vec![
            format!(
                "Assumed: every answer takes {}; the agent thinks for no time.",
                assumed.join(", ")
            ),
            format!(
                "Filled: the {} round trips that follow each other until the answer is posted, {} of them until the prompt is sent.",
                row.len(),
                chain(&turn.calls, sent).len()
            ),
        ],
        groups: Peer::ALL.map(|peer| peer.word().to_owned()).to_vec(),
        bars: calls.into_iter().map(bar).collect(),
        marks: vec![
            ("prompt sent".to_owned(), until(turn.calls[sent].ended)),
            ("answer posted".to_owned(), until(turn.calls[posted].ended)),
        ],
    };
    programs::picture("turn.svg", &picture.svg())
}
