//! The session protocol, proven: an exhaustive model, seeded histories, crashes at every call, and its document.
#![allow(clippy::unwrap_used)]

mod broken;
mod budget;
mod chaos;
mod crash;
mod crowd;
mod document;
mod model;
mod outages;
mod quota;

use std::process::ExitCode;

use bobbin_sim::{agent, dice, durations, plan, promises, state, thread, transitions, world};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = [
        // The longest first, so that nothing is waited for at the end.
        broken::trials(),
        model::trials(),
        // Also long; it repeats only what no earlier trial has seen.
        document::trials(),
        chaos::trials(),
        crash::trials(),
        budget::trials(),
        crowd::trials(),
        outages::trials(),
        quota::trials(),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    eprint!("\nthe longest tests:\n{}", durations::longest());
    conclusion.exit_code()
}

/// A proof, as a test of this name.
fn proof(
    name: impl Into<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || durations::measured(&name, test))
}

/// Whether this is the run of all proofs (`just nightly`).
fn at_night() -> bool {
    std::env::var("BOBBIN_PLATFORMS").as_deref() == Ok("all")
}

/// Leaves a proof to `just deep`, because it is too slow for every change.
fn deep(proof: Trial) -> Trial {
    proof.with_ignored_flag(true)
}
