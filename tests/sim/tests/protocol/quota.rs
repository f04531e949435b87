//! The limit of a tenant's sandboxes, with threads that all request one at the same moment.

use bobbin_core::base::limits::{Limits, TenantLimits};
use libtest_mimic::{Failed, Trial};

use super::plan::{PlannedEvent, Trouble, prompt};
use super::promises::{self, Ending, Fact};
use super::state::settled;
use super::world::World;

use crate::proof;

/// Threads, which belong to two tenants in turn.
const THREADS: usize = 6;
/// Histories, each with other durations of its calls.
const SEEDS: u64 = 50;

/// All threads ask at once, and each tenant may have two sandboxes. Returns how many were answered.
fn crowd(seed: u64, counts_once: bool) -> Result<usize, String> {
    let tenant = TenantLimits { sandboxes: 2, ..TenantLimits::DEFAULT };
    let limits = Limits { tenant, ..Limits::DEFAULT };
    let world = World::new(THREADS, seed, Trouble::None, limits);
    {
        let mut inner = world.lock();
        inner.counts_once = counts_once;
        inner.call_ms = Some(1 + seed % 700);
    }
    for place in 0..THREADS {
        let id = format!("t{place}");
        let message = world.message(place, &id, prompt(&id));
        world.plan(seed * place as u64 % 3_000, place, PlannedEvent::Send(message));
    }
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    for place in &inner.places {
        promises::check(&place.history)?;
    }
    let answered = Fact::Ended { turn: 0, ending: Ending::Answered };
    let places = inner.places.iter();
    Ok(places.filter(|place| place.history.facts.contains(&answered)).count())
}

fn bound_holds() -> Result<(), Failed> {
    for seed in 0..SEEDS {
        let answered = crowd(seed, false)?;
        if answered != 4 {
            let why =
                format!("seed {seed}: {answered} of the four that may have one were answered");
            return Err(why.into());
        }
    }
    Ok(())
}

fn fault_is_caught() -> Result<(), Failed> {
    match (0..SEEDS).find_map(|seed| crowd(seed, true).err()) {
        Some(why) if why.contains("sandboxes of a tenant") => Ok(()),
        other => Err(format!("not caught: {other:?}").into()),
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        proof("protocol::quota::concurrent_threads_respect_the_quota", bound_holds),
        proof("protocol::quota::early_count_alone_is_caught", fault_is_caught),
    ]
}
