//! Two hundred turns at once against one tenant's month, while workers crash before and after their calls: the budget
//! holds at every moment, nothing stays reserved, and the settled sum is what the model has counted.

use bobbin_core::base::limits::{Limits, TenantLimits};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::{Budgets, MicroUsd};
use libtest_mimic::{Failed, Trial};

use super::agent::Step;
use super::dice::Dice;
use super::plan::{PlannedEvent, START_MS, Trouble, prompt};
use super::promises;
use super::state::{Inner, settled};
use super::world::World;
use crate::{deep, proof};

/// Every second thread belongs to the tenant.
const TURNS: usize = 200;
const SEEDS: u64 = 20;
const FIRST_SEEDS: u64 = 2;
const CENT: MicroUsd = 10_000;
const DOLLAR: MicroUsd = 100 * CENT;
const MONTH: MicroUsd = 60 * DOLLAR;
const TURN: MicroUsd = 2 * DOLLAR;
const STEP: Step = Step { ms: 10_000, cost: 10 * CENT };
/// Number of crashes.
const CRASHES: usize = 200;
/// All turns have begun or were refused within this virtual time.
const BEGIN_MS: u64 = 10_000;

/// One history. Returns how many turns were answered, stopped and refused.
fn history(seed: u64, plant: Plant) -> Result<(usize, usize, usize), String> {
    let tenant = TenantLimits { sandboxes: 0, ..TenantLimits::DEFAULT };
    let limits = Limits { tenant, ..Limits::DEFAULT };
    let mut dice = Dice::new(seed);
    let crashes = (0..CRASHES).map(|_| {
        let call = u32::try_from(1 + dice.below(12_000)).unwrap_or(u32::MAX);
        (call, dice.falls(500))
    });
    let trouble = match seed {
        // No crashes and no delays.
        0 => Trouble::None,
        _ => Trouble::Crashes { at: crashes.collect(), hit: 0 },
    };
    let world = World::new(2 * TURNS, seed, trouble, limits);
    let budgets = Budgets { turn: Some(TURN), month: Some(MONTH), ..Budgets::default() };
    {
        let mut inner = world.lock();
        inner.call_ms = Some(5);
        plant(&mut inner);
        for place in &mut inner.places {
            (place.settings.budgets, place.step) = (budgets, Some(STEP));
            place.next_run_takes_ms = Some(5_000 + dice.below(300_000));
        }
    }
    for place in (0..TURNS).map(|turn| 2 * turn) {
        let id = format!("t{place}");
        let message = world.message(place, &id, prompt(&id));
        world.plan(0, place, PlannedEvent::Send(message));
    }
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    if seed > 0 && !inner.met.contains("sums met") {
        return Err("no two writes met".to_owned());
    }
    // Each running turn exceeds its reservation by less than a step, and only until it is settled.
    let most = MONTH + MONTH / TURN * STEP.cost;
    if inner.sums_most > most {
        return Err(format!("{} of {MONTH} were spent and set aside", inner.sums_most));
    }
    let (mut answered, mut stopped, mut refused) = (0, 0, 0);
    let (mut settled, mut billed) = (0, 0);
    for here in inner.places.iter().step_by(2) {
        promises::check(&here.history).map_err(|why| format!("{}: {why}", here.thread))?;
        let record = here.record.as_ref().ok_or("no record")?;
        settled += record.spent;
        let agents = here.home.sandboxes.values().flat_map(|sandbox| sandbox.agents.values());
        let of_vendor: MicroUsd = agents.map(|agent| agent.billed(inner.now_ms)).sum();
        billed += of_vendor;
        if record.spent != of_vendor {
            return Err(format!("{}: {} is not {of_vendor}", here.thread, record.spent));
        }
        match record.ended.last().map(|ended| (&ended.outcome, ended.at_ms)) {
            Some((Outcome::Answered, _)) => answered += 1,
            Some((Outcome::OverBudget { .. }, _)) if of_vendor > 0 => stopped += 1,
            Some((Outcome::OverBudget { .. }, at_ms)) => {
                refused += 1;
                if seed == 0 && at_ms > START_MS + BEGIN_MS {
                    return Err(format!("{} waited {} ms", here.thread, at_ms - START_MS));
                }
            }
            other => return Err(format!("{}: {other:?}", here.thread)),
        }
    }
    let used: MicroUsd = inner.sums.values().map(|sum| sum.used).sum();
    if (settled, billed) != (used, used) {
        return Err(format!("{settled} settled, {billed} billed, {used} stored"));
    }
    Ok((answered, stopped, refused))
}

fn histories(seeds: std::ops::Range<u64>) -> Result<(), Failed> {
    for seed in seeds {
        let came = history(seed, |_| ()).map_err(|why| format!("seed {seed}: {why}"))?;
        println!("seed {seed}: {came:?}");
        let (answered, stopped, refused) = came;
        if answered == 0 || stopped == 0 || refused == 0 {
            return Err(format!("seed {seed}: only {came:?}").into());
        }
    }
    Ok(())
}

type Plant = fn(&mut Inner);

fn faults_are_caught() -> Result<(), Failed> {
    let plants: [(Plant, &str); 2] = [
        (|inner| inner.budgets_unasked = true, "were spent and set aside"),
        (|inner| inner.settles_nothing = true, "stored"),
    ];
    for (plant, words) in plants {
        match history(0, plant) {
            Err(why) if why.contains(words) => {}
            other => return Err(format!("{words}: {other:?}").into()),
        }
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    vec![
        proof("protocol::budget::two_hundred_turns_share_one_month", || histories(0..FIRST_SEEDS)),
        proof("protocol::budget::unbounded_spending_is_caught", faults_are_caught),
        deep(proof("protocol::budget::many_months_are_shared", || histories(FIRST_SEEDS..SEEDS))),
    ]
}
