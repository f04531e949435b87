//! The session protocol, proven: an exhaustive model, seeded histories, crashes at every call, and its document.
#![allow(clippy::unwrap_used)]

mod broken;
mod chaos;
mod crash;
mod crowd;
mod document;
mod model;
mod outages;
mod quota;

use std::process::ExitCode;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bobbin_sim::{dice, durations, plan, promises, state, thread, transitions, world};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = [
        broken::trials(),
        model::trials(),
        chaos::trials(),
        crash::trials(),
        crowd::trials(),
        outages::trials(),
        quota::trials(),
        // It looks at what the others have seen.
        document::trials(),
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
    Trial::test(name.clone(), move || {
        let _running = Running::begin();
        durations::measured(&name, test)
    })
}

/// A proof that runs, for as long as this is there.
struct Running;

/// How many of them there are.
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Running {
    fn count() -> MutexGuard<'static, usize> {
        RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin() -> Self {
        *Self::count() += 1;
        Self
    }

    /// Waits until the proof that asks is the only one that runs.
    fn wait_for_the_others() {
        let others = RUNNING.1.wait_while(Self::count(), |running| *running > 1);
        drop(others.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *Self::count() -= 1;
        RUNNING.1.notify_all();
    }
}

/// Leaves a proof to `just deep`, because it is too slow to run after every change.
fn deep(proof: Trial) -> Trial {
    proof.with_ignored_flag(true)
}
