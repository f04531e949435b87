//! All end-to-end tests in one program: one start of the stack serves many of them, and it is ended after the last.
#![allow(clippy::unwrap_used)]

mod agents;
mod artifacts;
mod asks;
mod browser;
mod choice;
mod costs;
mod deployment;
mod direct;
mod discord;
mod emulated;
mod faults;
mod functions;
mod fuzz;
mod looks;
mod manners;
mod modes;
mod named;
mod native;
mod nudges;
mod observe;
mod operate;
mod outside;
mod own_keys;
mod places;
mod promises;
mod run;
mod scenarios;
mod security;
mod send;
mod setup;
mod share;
mod shown;
mod slack;
mod slack_surface;
mod surface;
mod tools;
mod traces;
mod translated;
mod trips;
mod trouble;
mod upgrade;
mod vercel;
mod waiting;

use std::collections::BTreeSet;
use std::process::ExitCode;

use bobbin_sim::durations;
use bobbin_tests::{failures, stack};
use libtest_mimic::{Arguments, Trial};

use run::deep;

/// Tests at once: most of their time is waiting for an agent's server, whatever the number of processors.
const TEST_THREADS: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TEST_THREADS);
    let mut behind = behind();
    if arguments.filter.is_none() && std::env::var("BOBBIN_PLATFORMS").as_deref() != Ok("all") {
        behind = on_one_platform(behind);
    } else {
        behind.extend(fuzz::at_length());
    }
    let trials = first().chain(deep(behind));
    // The words of a failed test come with the results, and once more at the end; here only where it was, while the others
    // still run.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        eprintln!("a test failed at {place}");
        failures::note(&format!("{place}: {}", stack::words(panic.payload())));
    }));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let ended = run::end(conclusion.has_failed());
    eprint!("\nthe longest tests:\n{}", durations::longest());
    if conclusion.has_failed() {
        for failure in failures::told() {
            eprintln!("\n--- failed: {failure}");
        }
    }
    if let Err(why) = ended {
        eprintln!("\nafter the last test: {why}");
        return ExitCode::from(101);
    }
    conclusion.exit_code()
}

/// What the README's command runs: each platform and engine once from end to end, and whatever takes moments.
fn first() -> impl Iterator<Item = Trial> {
    [
        promises::trials(),
        deployment::trials(),
        costs::trials(),
        discord::trials(),
        slack::trials(),
        scenarios::trials(),
        functions::trials(),
        trips::trials(),
        fuzz::trials(),
        security::trials(),
    ]
    .into_iter()
    .flatten()
}

/// What is tested on Discord and on Slack alike, on one of them, in turns: the suite takes half the time. Nightly takes
/// both (`BOBBIN_PLATFORMS=all`), and so does who names a test.
fn on_one_platform(trials: Vec<Trial>) -> Vec<Trial> {
    let names: BTreeSet<String> = trials.iter().map(|trial| trial.name().to_owned()).collect();
    let both: BTreeSet<&String> =
        names.iter().filter(|name| on_slack(name).is_some_and(|it| names.contains(&it))).collect();
    let left_out: BTreeSet<String> = both
        .into_iter()
        .enumerate()
        .filter_map(|(at, name)| match at % 2 {
            0 => Some(name.clone()),
            _ => on_slack(name),
        })
        .collect();
    trials.into_iter().filter(|trial| !left_out.contains(trial.name())).collect()
}

/// The name of the same test on Slack, of one on Discord.
fn on_slack(name: &str) -> Option<String> {
    name.contains("::discord::").then(|| name.replace("::discord::", "::slack::"))
}

/// What `just deep` adds.
fn behind() -> Vec<Trial> {
    [
        translated::trials(),
        direct::trials(),
        surface::trials(),
        slack_surface::trials(),
        asks::trials(),
        looks::trials(),
        nudges::trials(),
        choice::trials(),
        artifacts::trials(),
        traces::trials(),
        trouble::trials(),
        observe::trials(),
        upgrade::trials(),
        vercel::trials(),
        places::trials(),
        waiting::trials(),
        modes::trials(),
        native::trials(),
        agents::trials(),
        // Tests that run alone end the one and begin the other: before the first of them all others have to come to
        // their end, and that is waited for once.
        operate::trials(),
        faults::trials(),
        manners::trials(),
        named::trials(),
        own_keys::trials(),
        send::trials(),
        browser::trials(),
        emulated::trials(),
        setup::trials(),
        share::trials(),
        tools::trials(),
        outside::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
