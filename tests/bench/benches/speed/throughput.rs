//! Very many threads at once (`tests/bench/load`): through the deployed programs on the laptop stack, and over a
//! simulator.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::figures::{Report, Sample, quantile};
use crate::programs;

/// Threads, unless `BOBBIN_BENCH_THREADS` says otherwise.
const THREADS: u64 = 1_000;
/// Turns of each of these threads.
const TURNS: u64 = 5;
/// One run in this many is over the simulator. The stack runs it once.
const SHARE: u64 = 8;
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Deserialize)]
struct Stack {
    workers: u32,
    turns_a_second: f64,
    seconds: f64,
    sending_seconds: f64,
    latencies_ms: Vec<f64>,
    programs: BTreeMap<String, Taken>,
}

#[derive(Deserialize)]
struct Taken {
    cpu_s: f64,
    processes: f64,
    one_bytes: f64,
    together_bytes: f64,
}

#[derive(Deserialize)]
struct Alone {
    turns_a_second: f64,
    cpu_us_a_turn: f64,
    calls_a_turn: f64,
}

/// Both.
///
/// # Errors
/// What failed: also a turn that was lost, doubled, or out of order.
pub fn throughput(report: &mut Report, runs: u64) -> Result<(), String> {
    let threads = match env::var("BOBBIN_BENCH_THREADS").map(|text| text.parse()) {
        Err(_) => THREADS,
        Ok(Ok(threads)) if threads > 0 => threads,
        Ok(_) => return Err("BOBBIN_BENCH_THREADS must be a number above 0".to_owned()),
    };
    let programs = programs::folder()?;
    alone(report, programs, threads, runs.div_ceil(SHARE))?;
    stack(report, programs, threads)
}

fn alone(report: &mut Report, programs: &Path, threads: u64, runs: u64) -> Result<(), String> {
    let mut taken: Vec<Alone> = Vec::new();
    for _ in 0..runs {
        taken.push(run(programs, "alone", threads)?);
    }
    let mut add = |figure: &str, unit, of: fn(&Alone) -> f64| {
        let sample = Sample {
            program: "core and drive, one thread".to_owned(),
            values: taken.iter().map(of).collect(),
        };
        report.add(&format!("throughput, simulator: {figure}"), unit, &[sample], "", &[]);
    };
    add("turns", "1/s", |one| one.turns_a_second);
    add("CPU a turn", "µs", |one| one.cpu_us_a_turn);
    add("calls a turn", "calls", |one| one.calls_a_turn);
    Ok(())
}

fn stack(report: &mut Report, programs: &Path, threads: u64) -> Result<(), String> {
    let taken: Stack = run(programs, "stack", threads)?;
    let turns = (threads * TURNS) as f64;
    report.conditions.push(format!(
        "throughput: {threads} threads with {TURNS} turns each, workers {}",
        taken.workers
    ));
    let mut add = |figure: &str, unit, program: &str, values: Vec<f64>| {
        let program = program.to_owned();
        let figure = format!("throughput, laptop stack: {figure}");
        report.add(&figure, unit, &[Sample { program, values }], "", &[]);
    };
    let mut latencies: Vec<f64> = taken.latencies_ms.iter().map(|ms| ms / 1e3).collect();
    latencies.sort_by(f64::total_cmp);
    let all = "all programs";
    add("turns", "1/s", all, vec![taken.turns_a_second]);
    add("first prompt to last answer", "s", all, vec![taken.seconds]);
    add("first prompt to last acceptance", "s", all, vec![taken.sending_seconds]);
    add("acceptance to answer, p99", "s", all, vec![quantile(&latencies, 0.99)]);
    add("acceptance to answer", "s", all, latencies);
    for (name, kind) in &taken.programs {
        add("CPU", "s", name, vec![kind.cpu_s]);
        add("CPU a turn", "ms", name, vec![kind.cpu_s * 1e3 / turns]);
        add("processes at once", "processes", name, vec![kind.processes]);
        add("memory of one", "MiB", name, vec![kind.one_bytes / MIB]);
        add("memory of all at once", "MiB", name, vec![kind.together_bytes / MIB]);
    }
    Ok(())
}

fn run<T: DeserializeOwned>(programs: &Path, how: &str, threads: u64) -> Result<T, String> {
    let mut command = Command::new(programs.join("load"));
    command
        .args([how, &threads.to_string(), &TURNS.to_string()])
        .env("BOBBIN_BINARIES", programs)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let done = command.output().map_err(|e| format!("load: {e}"))?;
    if !done.status.success() {
        return Err(format!("load {how} ended with {}", done.status));
    }
    // Checks of the stack may have said something before.
    let said = String::from_utf8_lossy(&done.stdout);
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|e| format!("load {how}: {e}"))
}
