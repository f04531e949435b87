//! How long the three functions take to be ready for work, how long a call of the table takes, and how large they are.

use std::path::Path;

use crate::figures::{Report, Sample};
use crate::harness::{Harness, PEER, compared};
use crate::ingress::{OURS, ms, samples, turn};
use crate::process::{Program, Running};
use crate::programs;

const MIB: f64 = 1024.0 * 1024.0;
const SWEEPER: &str = "sweeper";
/// The figure of a program's size.
const PROGRAM: &str = "size: program";
/// The most that ingress should have.
const PROGRAM_MB_MAX: f64 = 7.0;
/// The call with which a sweeper searches for due items.
const QUERY: &str = "table: Query";
/// Sweeps before the counted ones.
const SWEEPS_BEFORE: usize = 5;
/// Sweeps of one run.
const SWEEPS: usize = 25;

/// The three functions: their starts, a call of the table, and the sizes of all programs.
///
/// # Errors
/// What a function did instead of starting.
pub fn start(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::new()?;
    let ours = [OURS, "worker", SWEEPER].map(|name| harness.ours(name));
    let mut programs: Vec<Program> = ours.into_iter().collect::<Result<_, _>>()?;
    programs.extend(harness.compared_functions());
    functions(report, &programs, runs)?;
    table(report, &harness, &programs, runs)?;
    for program in &programs {
        size(report, &program.name, &program.executable, "bootstrap")?;
    }
    if let Some(peer) = harness.peer(report)? {
        let bundle = peer.arguments.first().map_or("", String::as_str);
        size(report, PEER, Path::new(bundle), "function.cjs")?;
    }
    Ok(())
}

/// Starts each function in turn, until it asks for work.
fn functions(report: &mut Report, functions: &[Program], runs: u64) -> Result<(), String> {
    let mut times = samples(functions);
    let mut cpus = samples(functions);
    let mut peaks = samples(functions);
    for round in 0..=runs {
        for index in turn(functions.len(), round) {
            let function = &functions[index];
            let wrong = |what: String| format!("{}: {what}", function.name);
            let mut running = function.start().map_err(|e| wrong(e.to_string()))?;
            let asked = running.first_asked().map_err(wrong)?;
            let took = asked.duration_since(running.started);
            let peak = running.peak_bytes().map_err(|e| wrong(e.to_string()))?;
            let cpu = running.end().map_err(|e| wrong(e.to_string()))?;
            if round > 0 {
                times[index].values.push(ms(took));
                cpus[index].values.push(ms(cpu));
                peaks[index].values.push(peak as f64 / MIB);
            }
        }
    }
    let figure = "start: process start to asking for work";
    compare(report, figure, "ms", times);
    compare(report, "start: CPU until then", "ms", cpus);
    compare(report, "start: peak memory until then", "MiB", peaks);
    Ok(())
}

/// Makes each sweeper search for due items when there are none: a query for each shard and hardly anything else.
fn table(
    report: &mut Report,
    harness: &Harness,
    programs: &[Program],
    runs: u64,
) -> Result<(), String> {
    let is_sweeper = |program: &&Program| program.name.starts_with(SWEEPER);
    let mut sweepers: Vec<Program> = programs.iter().filter(is_sweeper).cloned().collect();
    for sweeper in &mut sweepers {
        // A secret without the provider's key: nothing is listed.
        let stack_key = sweeper.variable("STACK_KEY_ID").to_owned();
        let secret = ("PROVIDER_SECRET_ID".to_owned(), stack_key);
        sweeper.environment.push(secret);
    }
    let mut cpus = samples(&sweepers);
    for round in 0..=runs {
        for index in turn(sweepers.len(), round) {
            let sweeper = &sweepers[index];
            let wrong = |what: String| format!("{}: {what}", sweeper.name);
            let mut running = sweeper.start().map_err(|e| wrong(e.to_string()))?;
            swept(&mut running, SWEEPS_BEFORE).map_err(wrong)?;
            let before = running.cpu().map_err(|e| wrong(e.to_string()))?;
            harness.taken(QUERY).map_err(wrong)?;
            swept(&mut running, SWEEPS).map_err(wrong)?;
            let after = running.cpu().map_err(|e| wrong(e.to_string()))?;
            let queries = harness.taken(QUERY).map_err(wrong)?;
            running.end().map_err(|e| wrong(e.to_string()))?;
            if queries == 0 {
                return Err(wrong("it asked the table for nothing".to_owned()));
            }
            if round > 0 {
                let took = ms(after.saturating_sub(before)) * 1e3;
                cpus[index].values.push(took / queries as f64);
            }
        }
    }
    let figure = "start: CPU of a call of the table, and its part of a sweep";
    compare(report, figure, "µs", cpus);
    Ok(())
}

/// Makes it sweep this often, and checks that each sweep searched for due items.
fn swept(running: &mut Running, sweeps: usize) -> Result<(), String> {
    for _ in 0..sweeps {
        let invoked = running.invoke(b"{}".to_vec())?;
        let body = invoked.result.as_ref().unwrap_or_else(|error| error);
        let said: serde_json::Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        if said["due"]["due"] != 0 {
            return Err(format!("a sweep answered {said}"));
        }
    }
    Ok(())
}

/// Adds a figure of all, and the ratio of each to its other build.
fn compare(report: &mut Report, figure: &str, unit: &'static str, samples: Vec<Sample>) {
    let names: Vec<String> = samples.iter().map(|one| one.program.clone()).collect();
    for name in &names {
        let group = |sample: &&Sample| sample.program == *name || sample.program == compared(name);
        let group: Vec<Sample> = samples.iter().filter(group).cloned().collect();
        // Another build adds its own.
        if !names.iter().any(|other| compared(other) == *name) {
            report.add(figure, unit, &group, name, &[]);
        }
    }
}

/// The size of a program, alone and in a zip archive under its deployed name.
fn size(report: &mut Report, name: &str, file: &Path, deployed: &str) -> Result<(), String> {
    let (bytes, zip) = programs::sizes(file, deployed)?;
    for (figure, bytes) in [(PROGRAM, bytes), ("size: zip", zip)] {
        let sample = Sample { program: name.to_owned(), values: vec![bytes as f64 / 1e6] };
        report.add(figure, "MB", &[sample], "", &[]);
        if name == OURS && figure == PROGRAM {
            report.at_most(OURS, PROGRAM_MB_MAX);
        }
    }
    Ok(())
}
