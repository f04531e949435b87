//! All end-to-end tests in one program: one start of the stack serves many of them, and it is ended after the last.
#![allow(clippy::unwrap_used)]

mod agents;
mod artifacts;
mod asks;
mod browser;
mod budgets;
mod choice;
mod costs;
mod deployment;
mod direct;
mod discord;
mod emulated;
mod environment;
mod faults;
mod forge;
mod forge_accounts;
mod forge_beside;
mod forge_fixes;
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
mod pulls;
mod run;
mod scenarios;
mod secrets;
mod security;
mod send;
mod setup;
mod share;
mod shown;
mod slack;
mod slack_surface;
mod stand_in;
mod surface;
mod tools;
mod traces;
mod translated;
mod trips;
mod trouble;
mod upgrade;
mod vercel;
mod waiting;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use bobbin_sim::durations;
use bobbin_tests::failures;
use bobbin_tests::stack::{self, at_night};
use libtest_mimic::{Arguments, Trial};

use run::deep;

/// Tests at once. Much of their time is waiting, but with six of them two processors are too busy for real agents.
const TEST_THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TEST_THREADS);
    let trials: Vec<Trial> = first().chain(deep(behind())).collect();
    let trials = if at_night() || arguments.filter.is_some() {
        trials.into_iter().chain(deep(fuzz::at_length())).collect()
    } else {
        in_one_way(trials)
    };
    // A failed test's output comes with the results, and again at the end; here only its place, while the others still
    // run.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        eprintln!("a test failed at {place}");
        failures::note(&format!("{place}: {}", stack::words(panic.payload())));
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
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

/// The tests of the README's command: each platform and engine once from end to end, and the quick ones.
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
        stand_in::trials(),
        fuzz::trials(),
        forge::first(),
        webhooks::trials(),
        security::trials(),
    ]
    .into_iter()
    .flatten()
}

/// `just deep` runs each scenario in one of its variants (both chats, each agent mode, both engines), in turn, so that
/// every variant gets its share. The README's command has run the usual variant before. Nightly runs all
/// (`BOBBIN_PLATFORMS=all`), and so does a run with a test's name.
fn in_one_way(trials: Vec<Trial>) -> Vec<Trial> {
    let mut ways: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.has_ignored_flag()) {
        ways.entry(scenario(trial.name())).or_default().push(trial.name().to_owned());
    }
    let taken = ways.into_values().enumerate();
    let taken: BTreeSet<String> =
        taken.map(|(at, mut ways)| ways.swap_remove(at % ways.len())).collect();
    let is_taken = |trial: &Trial| !trial.has_ignored_flag() || taken.contains(trial.name());
    trials.into_iter().filter(is_taken).collect()
}

/// A test's scenario, without its variant.
fn scenario(name: &str) -> String {
    let ways = ["embedded", "compat", "native", "ministack", "discord", "slack"];
    let about: Vec<&str> = name.split("::").filter(|part| !ways.contains(part)).collect();
    about.join("::")
}

/// The additional tests of `just deep`.
fn behind() -> Vec<Trial> {
    [
        // Tests that take minutes come first, so that nobody waits for them at the end.
        emulated::trials(),
        forge::trials(),
        forge_beside::trials(),
        forge_fixes::trials(),
        native::trials(),
        agents::trials(),
        modes::trials(),
        nudges::trials(),
        vercel::trials(),
        waiting::trials(),
        budgets::trials(),
        environment::trials(),
        secrets::trials(),
        direct::trials(),
        outside::trials(),
        asks::trials(),
        share::trials(),
        manners::trials(),
        browser::trials(),
        own_keys::trials(),
        forge_accounts::trials(),
        pulls::trials(),
        looks::trials(),
        named::trials(),
        artifacts::trials(),
        places::trials(),
        tools::trials(),
        choice::trials(),
        surface::trials(),
        slack_surface::trials(),
        send::trials(),
        trouble::trials(),
        upgrade::trials(),
        observe::trials(),
        traces::trials(),
        setup::trials(),
        translated::trials(),
        // Tests that run alone separate two groups: before the first of them all others have to end, and that wait
        // happens once.
        operate::trials(),
        faults::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
