//! `cargo bench` prints a table and writes `target/speed.json`. Words after `--` choose parts: those of [`PARTS`].
//!
//! Promised: programs that are compared are run in the same minutes, one after the other in changing order, and
//! compared pair by pair, so that a busy machine shifts them alike; every request that counts is checked to have been
//! done (signature verified, message on the queue, answer right). Deliberately absent: an opinion. No figure fails
//! anything.
//!
//! `BOBBIN_BENCH_RUNS` is the number of runs of each figure, `BOBBIN_BENCH_COMPARED` another build of ingress that is
//! measured beside this one, `BOBBIN_BENCH_COMPARED_FUNCTIONS` a folder with other builds of worker and sweeper.

mod account;
mod capacity;
mod command;
mod figures;
mod follow;
mod harness;
#[path = "../../../ssh/host.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's, of which a part is used here; a machine that does not come up ends the bench"
)]
mod host;
mod ingress;
mod machine;
mod place;
mod process;
mod programs;
mod project;
mod provision;
mod relay;
mod repository;
mod shares;
#[path = "../../../tls/stand_in.rs"]
#[allow(clippy::unwrap_used, reason = "a test's; a host that does not come up ends the bench")]
mod stand_in;
mod start;
mod sweep;
mod table;
mod throughput;
mod trips;
mod turn;
mod waterfall;
mod wire;

use std::env;
use std::fs;
use std::process::ExitCode;
use std::thread;

use crate::figures::Report;

/// Runs of each figure unless `BOBBIN_BENCH_RUNS` says otherwise.
const RUNS: u64 = 40;

/// Measures, with so many runs of each figure.
type Part = fn(&mut Report, u64) -> Result<(), String>;

/// What can be measured, by the word that chooses it, in the order of the table.
const PARTS: [(&str, Part); 10] = [
    ("cold", ingress::cold),
    ("warm", ingress::warm),
    ("start", start::start),
    ("turn", turn::turn),
    ("provision", provision::provision),
    ("repository", repository::repository),
    ("project", project::project),
    ("follow", follow::follow),
    ("throughput", throughput::throughput),
    ("sweep", sweep::sweep),
];

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    // Cargo passes `--bench` to whatever it runs as a bench.
    let wanted: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let known = PARTS.map(|(name, _)| name);
    if let Some(strange) = wanted.iter().find(|word| !known.contains(&word.as_str())) {
        return Err(format!("there is no part {strange:?}; there are: {}", known.join(", ")));
    }
    let runs = env::var("BOBBIN_BENCH_RUNS").ok();
    let runs: u64 = match runs.map(|runs| runs.parse()) {
        None => RUNS,
        Some(Ok(runs)) if runs > 0 => runs,
        Some(_) => return Err("BOBBIN_BENCH_RUNS must be a number above 0".to_owned()),
    };

    let mut report = Report::default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    report.conditions.push(format!("{cores} cores"));
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(&mut report, runs).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    println!("{}", report.table());
    let file = programs::target()?.join("speed.json");
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}
