//! Ingress: from the start of its process to the first answer, and from request to answer when warm.

use std::time::Duration;

use bobbin_local_aws::Invoked;
use serde_json::Value;

use crate::figures::{Report, Sample, quantile};
use crate::harness::{Harness, PEER};
use crate::process::Program;

/// The program that is compared with all others.
pub const OURS: &str = "ingress";

/// Requests before the counted ones, when warm: by then a just-in-time compiler has finished.
const WARM_UP: u64 = 1_000;
/// Requests of one warm run.
const REQUESTS: u64 = 1_000;
/// One run in this many is of a warm program: it takes that much longer.
const WARM_SHARE: u64 = 4;
/// Requests that are signed before the first of them is sent.
const REQUESTS_AT_ONCE: u64 = 500;
/// The call with which ingress and its peer queue a command.
const SENT: &str = "queue: SendMessage";

/// The most memory that ingress should need.
const PEAK_MIB_MAX: f64 = 9.0;

const KIB: f64 = 1024.0;

/// Ingress, and what it is compared with.
fn compared(harness: &Harness, report: &mut Report) -> Result<Vec<Program>, String> {
    let mut compared = vec![harness.ours(OURS)?];
    compared.extend(harness.peer(report)?);
    compared.extend(harness.compared()?);
    Ok(compared)
}

/// Starts each program in turn and measures its first answer.
///
/// # Errors
/// What a program did instead of its work.
pub fn cold(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::new()?;
    let programs = &compared(&harness, report)?[..];
    let application = &harness.application;
    let mut times = samples(programs);
    let mut cpus = samples(programs);
    let mut peaks = samples(programs);
    let mut number = 0;
    // The first round warms the page cache and does not count.
    for round in 0..=runs {
        for index in turn(programs.len(), round) {
            let program = &programs[index];
            let wrong = |what: String| format!("{}: {what}", program.name);
            // Each with its own number: the queue recognises a repeated command.
            number += 1;
            let event = application.event(number);
            harness.taken(SENT).map_err(wrong)?;
            let mut running = program.start().map_err(|e| wrong(e.to_string()))?;
            let invoked = running.invoke(event).map_err(wrong)?;
            let peak = running.peak_bytes().map_err(|e| wrong(e.to_string()))?;
            let started = running.started;
            let cpu = running.end().map_err(|e| wrong(e.to_string()))?;
            check(&harness, &[&invoked]).map_err(wrong)?;
            if round > 0 {
                let took = invoked.answered.duration_since(started);
                times[index].values.push(ms(took));
                cpus[index].values.push(ms(cpu));
                peaks[index].values.push(peak as f64 / KIB / KIB);
            }
        }
    }
    let fifteenth = 1.0 / 15.0;
    let figure = "ingress, cold: process start to first answer";
    report.add(figure, "ms", &times, OURS, &[(PEER, fifteenth)]);
    let figure = "ingress, cold: CPU of the first invocation";
    report.add(figure, "ms", &cpus, OURS, &[(PEER, fifteenth)]);
    report.add("ingress, cold: peak memory", "MiB", &peaks, OURS, &[]);
    report.at_most(OURS, PEAK_MIB_MAX);
    Ok(())
}

/// Runs each program in turn on many requests, one at a time, as Lambda sends them.
///
/// # Errors
/// What a program did instead of its work.
pub fn warm(report: &mut Report, runs: u64) -> Result<(), String> {
    let (rounds, requests) = (runs.div_ceil(WARM_SHARE), REQUESTS);
    let harness = Harness::new()?;
    let programs = &compared(&harness, report)?[..];
    let application = &harness.application;
    let mut middle = samples(programs);
    let mut slow = samples(programs);
    let mut cpus = samples(programs);
    let mut started = programs
        .iter()
        .map(Program::start)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let mut number = 0;
    // The first round warms up and does not count.
    for round in 0..=rounds {
        let count = if round == 0 { WARM_UP } else { requests };
        for index in turn(programs.len(), round) {
            let (program, running) = (&programs[index], &mut started[index]);
            let wrong = |what: String| format!("{}: {what}", program.name);
            harness.taken(SENT).map_err(wrong)?;
            let (mut took, mut cpu) = (Vec::new(), Duration::ZERO);
            while (took.len() as u64) < count {
                let some = (count - took.len() as u64).min(REQUESTS_AT_ONCE);
                let events: Vec<_> =
                    (number..number + some).map(|number| application.event(number)).collect();
                number += some;
                let before = running.cpu().map_err(|e| wrong(e.to_string()))?;
                let answers = events.into_iter().map(|event| running.invoke(event));
                let answers: Vec<Invoked> = answers.collect::<Result<_, _>>().map_err(wrong)?;
                let after = running.cpu().map_err(|e| wrong(e.to_string()))?;
                cpu += after.saturating_sub(before);
                check(&harness, &answers.iter().collect::<Vec<_>>()).map_err(wrong)?;
                let each = |one: &Invoked| ms(one.answered.duration_since(one.given)) * 1e3;
                took.extend(answers.iter().map(each));
            }
            if round > 0 {
                took.sort_by(f64::total_cmp);
                middle[index].values.push(quantile(&took, 0.5));
                slow[index].values.push(quantile(&took, 0.99));
                cpus[index].values.push(ms(cpu) * 1e3 / count as f64);
            }
        }
    }
    for running in started {
        running.end().map_err(|e| e.to_string())?;
    }
    report.conditions.push(format!(
        "warm: a run is {requests} requests, one at a time, after {WARM_UP} that do not count"
    ));
    report.add("ingress, warm: p50", "µs", &middle, OURS, &[]);
    report.add("ingress, warm: p99", "µs", &slow, OURS, &[]);
    let figure = "ingress, warm: CPU a request";
    report.add(figure, "µs", &cpus, OURS, &[(PEER, 0.2)]);
    Ok(())
}

/// Whether each command got the answer that Discord expects, and is on the queue.
fn check(harness: &Harness, answers: &[&Invoked]) -> Result<(), String> {
    let (count, taken) = (answers.len() as u64, harness.taken(SENT)?);
    if taken != count {
        return Err(format!("of {count} commands {taken} are on the queue"));
    }
    for invoked in answers {
        let body = invoked.result.as_ref().unwrap_or_else(|error| error);
        let text = String::from_utf8_lossy(body);
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let body = answer["body"].as_str().unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        if answer["statusCode"] != 200 || body["type"] != 5 {
            return Err(format!("a command was answered with {text}"));
        }
    }
    Ok(())
}

/// One sample for each program.
#[must_use]
pub fn samples(programs: &[Program]) -> Vec<Sample> {
    let of = |program: &Program| Sample { program: program.name.clone(), values: Vec::new() };
    programs.iter().map(of).collect()
}

/// The order of a round: another one is first each time.
pub fn turn(count: usize, round: u64) -> impl Iterator<Item = usize> {
    let first = usize::try_from(round).unwrap_or(0);
    (0..count).map(move |index| (index + first) % count)
}

#[must_use]
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
