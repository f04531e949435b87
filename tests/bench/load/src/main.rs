//! Very many threads at once, each with some turns. `load stack THREADS TURNS` sends them through the laptop stack,
//! whose programs lie in the folder that `BOBBIN_BINARIES` names; `load running TURNS SECONDS` has so many turns run
//! there at the same time for so long; `load crowd TURNS EXECUTIONS CALL_MS` the same in virtual time; `load alone
//! THREADS TURNS` has the product's `drive` work on them over the simulator of the protocol's proofs. Each prints one
//! line of JSON.
//!
//! Promised: what is printed was checked where people see it: every turn answered once, in the order of its thread.

mod alone;
mod chat;
mod crowd;
mod log;
mod running;
mod stack;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = arguments.iter().filter_map(|one| one.parse().ok()).collect();
    let told = match (arguments.first().map(String::as_str), &numbers[..]) {
        (Some("stack"), [threads, turns]) => stack::run(*threads, *turns),
        (Some("running"), [turns, seconds]) => running::run(*turns, *seconds),
        (Some("crowd"), [turns, executions, call_ms]) => crowd::run(*turns, *executions, *call_ms),
        (Some("alone"), [threads, turns]) => alone::run(*threads, *turns),
        _ => Err("usage: load stack|alone THREADS TURNS, load running TURNS SECONDS, or load crowd TURNS EXECUTIONS CALL_MS".to_owned()),
    };
    match told {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
