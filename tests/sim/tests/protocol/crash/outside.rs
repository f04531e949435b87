//! A thread whose agent works outside: in its own sandbox at place 0, and by tools in a second one at place 1.

use bobbin_core::records::control::Operation;
use bobbin_core::records::message::Work;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

use bobbin_sim::tools::Use;

use super::super::plan::{self, PlannedEvent, Trouble, prompt, reset};
use super::super::promises::{self, Ending, Fact};
use super::super::state::settled;
use super::super::thread::SimThread;
use super::super::world::World;
use super::LIMITS;
use super::{Scenario, after, ended, send};

const SECOND: usize = 1;
const MINUTE_MS: u64 = 60_000;

fn chosen(world: &World) -> Result<(), String> {
    let mut inner = world.lock();
    let second = inner.second_of(0);
    let name = RuntimeMode::Outside.name().to_owned();
    inner.places[0].settings.defaults.runtime = Some(name);
    inner.places[0].next_run_takes_ms = Some(5_000);
    if second == SECOND { Ok(()) } else { Err(format!("the second sandbox is at place {second}")) }
}

/// Both exist, and the tools have been used.
fn begun(world: &World) -> Result<(), String> {
    chosen(world)?;
    send(world, "m1", prompt("m1"));
    world.run(settled)?;
    after(world, MINUTE_MS, PlannedEvent::Tools);
    world.run(settled)
}

/// Both are paused.
fn paused(world: &World) -> Result<(), String> {
    begun(world)?;
    after(world, LIMITS.sandbox.idle_pause_ms + MINUTE_MS, PlannedEvent::Rest);
    world.run(settled)?;
    for place in [0, SECOND] {
        let message = world.message(place, "s1", Work::Sweep);
        after(world, 0, PlannedEvent::Send(message));
    }
    world.run(settled)
}

fn expired(world: &World) -> Result<(), String> {
    paused(world)?;
    after(world, LIMITS.sandbox.paused_ttl_ms, PlannedEvent::Rest);
    world.run(settled)
}

/// The agent's is lost, and that has been noticed.
fn lost(world: &World) -> Result<(), String> {
    begun(world)?;
    world.lock().places[0].home.lose();
    send(world, "look", Work::Reconcile);
    world.run(settled)
}

/// The second one was deleted on request.
fn alone(world: &World) -> Result<(), String> {
    begun(world)?;
    let message = world.message(SECOND, "o1", plan::operate(Operation::Destroy));
    after(world, 0, PlannedEvent::Send(message));
    world.run(settled)
}

fn second_prompt(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    send(world, "m2", prompt("m2"));
}

fn resets(world: &World) {
    world.lock().places[0].ends_both = true;
    send(world, "r1", reset());
}

/// A call has read that the agent's sandbox exists, and requests the second one when that is no longer so.
fn wishes_too_late(world: &World) {
    let wish = world.lock().wish(0, 1, Use::Calls, LIMITS.sandbox.idle_pause_ms);
    resets(world);
    if let Some(wish) = wish {
        after(world, 5 * MINUTE_MS, PlannedEvent::Send(wish));
    }
}

/// The second one vanishes; one call notices that, and the next has it created again.
fn loses_the_second(world: &World) {
    world.lock().places[SECOND].home.lose();
    second_prompt(world);
    for minutes in [4, 8, 12, 16] {
        after(world, minutes * MINUTE_MS, PlannedEvent::Tools);
    }
}

fn both(places: &[SimThread], agent: (Phase, u32), second: (Phase, u32)) -> bool {
    places[0].phase() == Some(agent) && places[SECOND].phase() == Some(second)
}

fn have_ended(places: &[SimThread]) -> bool {
    both(places, (Phase::Destroyed, 1), (Phase::Destroyed, 1))
        && places[SECOND].home.sandboxes.is_empty()
        && places[SECOND].home.record.as_ref().is_some_and(|record| record.sharing.name.is_none())
}

pub(super) const SCENARIOS: [Scenario; 10] = [
    Scenario {
        name: "outside begins",
        threads: 1,
        before: chosen,
        then: |world| send(world, "m1", prompt("m1")),
        proves: |places| {
            let active = (Phase::Active, 1);
            ended(&places[0], 0, Ending::Answered)
                && both(places, active, active)
                && places[SECOND].home.record.as_ref().and_then(|one| one.spec.runtime.as_deref())
                    == Some("bare")
        },
    },
    Scenario {
        name: "outside comes back",
        threads: 1,
        before: paused,
        then: second_prompt,
        proves: |places| {
            let ways = [Phase::Paused, Phase::Resuming, Phase::Active];
            ended(&places[0], 1, Ending::Answered)
                && places[0].went_through(&ways)
                && places[SECOND].went_through(&ways)
        },
    },
    Scenario {
        name: "outside is reset",
        threads: 1,
        before: begun,
        then: resets,
        proves: have_ended,
    },
    Scenario {
        name: "outside is reset once it was lost",
        threads: 1,
        before: lost,
        then: resets,
        proves: have_ended,
    },
    Scenario {
        name: "outside is destroyed",
        threads: 1,
        before: paused,
        then: |world| {
            world.lock().places[0].ends_both = true;
            send(world, "o1", plan::operate(Operation::Destroy));
        },
        proves: have_ended,
    },
    Scenario {
        name: "outside is destroyed once it was lost",
        threads: 1,
        before: lost,
        then: |world| {
            world.lock().places[0].ends_both = true;
            send(world, "o1", plan::operate(Operation::Destroy));
        },
        proves: have_ended,
    },
    Scenario {
        name: "outside expires",
        threads: 1,
        before: expired,
        then: |world| {
            world.lock().places[0].ends_both = true;
            send(world, "sweep", Work::Sweep);
        },
        proves: have_ended,
    },
    Scenario {
        name: "outside is lost and keeps the code",
        threads: 1,
        before: lost,
        then: second_prompt,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && both(places, (Phase::Active, 2), (Phase::Active, 1))
        },
    },
    Scenario {
        name: "outside loses the code",
        threads: 1,
        before: begun,
        then: loses_the_second,
        proves: |places| both(places, (Phase::Active, 1), (Phase::Active, 2)),
    },
    Scenario {
        name: "outside wishes too late",
        threads: 1,
        before: alone,
        then: wishes_too_late,
        proves: |places| {
            places[0].phase() == Some((Phase::Destroyed, 1))
                && places[SECOND].phase() == Some((Phase::Destroyed, 1))
                && places[SECOND]
                    .history
                    .facts
                    .iter()
                    .any(|fact| matches!(fact, Fact::Ended { ending: Ending::Failed, .. }))
        },
    },
];

/// A second sandbox that is created whatever the state of its agent's is left behind.
///
/// # Errors
/// It is not caught.
pub(super) fn fault_is_caught() -> Result<(), String> {
    let scenario = SCENARIOS.iter().find(|one| one.name == "outside wishes too late");
    let scenario = scenario.ok_or("the scenario is gone")?;
    let (world, _) = super::begun(scenario, super::HOWS[0])?;
    world.lock().makes_unwanted = true;
    (scenario.then)(&world);
    world.run(settled)?;
    world.settle();
    match promises::check(&world.lock().places[0].history) {
        Err(why) if why.contains("second sandboxes") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}

/// The agent works for longer than a sandbox may be idle without calling a tool; meanwhile the second one's sweep runs.
fn works_quietly(world: &World) -> Result<(), String> {
    begun(world)?;
    let idle_ms = LIMITS.sandbox.idle_pause_ms;
    world.lock().places[0].next_run_takes_ms = Some(idle_ms + 10 * MINUTE_MS);
    send(world, "m2", prompt("m2"));
    let message = world.message(SECOND, "s1", Work::Sweep);
    after(world, idle_ms + MINUTE_MS, PlannedEvent::Send(message));
    world.run(settled)?;
    world.settle();
    Ok(())
}

/// The second sandbox keeps running under its agent's turn; code that does not check the agent stops it.
///
/// # Errors
/// It does not, or that is not caught.
pub(super) fn stays_up() -> Result<(), String> {
    for pauses_used in [false, true] {
        let world = World::new(1, 1, Trouble::None, LIMITS);
        let mut inner = world.lock();
        (inner.sweeps, inner.pauses_used) = (false, pauses_used);
        drop(inner);
        works_quietly(&world)?;
        let inner = world.lock();
        let history = &inner.places[0].history;
        let is_hit = history.facts.iter().any(|fact| matches!(fact, Fact::Hit { .. }));
        if is_hit != pauses_used {
            return Err(format!("stopped: {is_hit}, planted: {pauses_used}"));
        }
        if !pauses_used {
            promises::check(history)?;
            let active = (Phase::Active, 1);
            if !both(&inner.places, active, active) {
                return Err("not both are up".to_owned());
            }
        }
    }
    Ok(())
}
