//! Running a test, and the stacks that tests share.

use std::sync::{PoisonError, RwLock};

use bobbin_sim::durations;
use bobbin_tests::failures;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::quick;
use bobbin_tests::world::World;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

/// Production's limits, only with quicker polls: for tests about the agent that need no time to pass.
pub static COMMON: Shared = Shared::new(quick);
/// The same for tests that are not about the agent: by day the stand-in for OpenCode runs there.
pub static CHAT: Shared = Shared::lean(quick);
/// Sandboxes are idle after two seconds; a delivery returns its run to the queue after three.
pub static BRISK: Shared = Shared::lean(brisk);

/// A run is followed for two seconds, then polled so seldom that only a nudge brings the next poll.
pub static SELDOM: Shared = Shared::lean(seldom);

pub fn seldom() -> Value {
    let mut limits = quick();
    limits["hold_ms"] = json!(2_000);
    limits["look_ms_min"] = json!(600_000);
    limits["look_ms_max"] = json!(600_000);
    limits
}

pub fn brisk() -> Value {
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(2_000);
    limits["hold_ms"] = json!(3_000);
    limits["look_ms_min"] = json!(300);
    limits
}

/// Tests that take minutes or another engine: `just deep` runs them, the README's command leaves them out.
pub fn deep(trials: impl IntoIterator<Item = Trial>) -> impl Iterator<Item = Trial> {
    trials.into_iter().map(|trial| trial.with_ignored_flag(true))
}

/// A test that uses processor time or needs some left: never beside one that runs alone.
pub fn beside(
    name: impl Into<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let _others = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        durations::measured(&name, test)
            .inspect_err(|failed| failures::note(failed.message().unwrap_or_default()))
    })
}

/// A test with its own runtime.
pub fn trial(name: &str, test: impl AsyncFnOnce() + Send + 'static) -> Trial {
    beside(name, move || {
        block_on(test());
        Ok(())
    })
}

/// A test that needs the whole machine: beside other tests, dozens of threads at once would miss the platforms' three
/// seconds because the processors are busy, not because of a fault.
pub fn alone(name: &str, test: impl AsyncFnOnce() + Send + 'static) -> Trial {
    let measured = name.to_owned();
    Trial::test(name, move || {
        let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        durations::measured(&measured, || block_on(test()));
        Ok(())
    })
}

/// Held by the tests that run, exclusively by one that runs alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test on a shared stack.
pub fn on(
    stack: &'static Shared,
    name: &str,
    test: impl AsyncFnOnce(World) + Send + 'static,
) -> Trial {
    beside(name, move || {
        let stack = stack.get();
        block_on(test(World::of(&stack)));
        Ok(())
    })
}

/// Runs to its end on a small runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// After the last test: every sandbox has a record, and nothing of the shared stacks is left. Their last log lines are
/// shown when a test has failed.
pub fn end(failed: bool) -> Result<(), String> {
    let mut trouble = Vec::new();
    for (name, shared) in [
        ("common", &COMMON),
        ("chat", &CHAT),
        ("brisk", &BRISK),
        ("seldom", &SELDOM),
        ("called", &crate::nudges::CALLED),
        ("compat", &crate::modes::COMPAT),
        ("native", &crate::modes::NATIVE),
        ("asking", &crate::outside::ASKING),
        ("operated", &crate::operate::OPERATED),
        ("kept", &crate::places::KEPT),
        ("brief", &crate::places::BRIEF),
    ] {
        if let Some(stack) = shared.running() {
            if failed {
                eprintln!("\n--- the end of what the {name} stack said ---\n{}", stack.tail());
            } else {
                trouble.extend(block_on(World::of(&stack).check_orphans()).err());
            }
        }
        trouble.extend(shared.end().err());
    }
    crate::places::end();
    trouble.extend(crate::emulated::end(failed).err());
    if trouble.is_empty() { Ok(()) } else { Err(trouble.join("\n")) }
}
