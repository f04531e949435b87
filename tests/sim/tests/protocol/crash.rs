//! A crash before and after each call of each scenario, alone and in pairs; then the queue redelivers until all is at
//! rest, and every promise is checked. Each time the test asserts that the crash happened at the right call.

mod outside;
mod publish;
mod shared;

use std::collections::BTreeSet;

use bobbin_core::base::limits::{Limits, SandboxLimits, SetUpLimits};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::sandbox::Phase;
use bobbin_core::tenant::budgets::Budgets;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

use libtest_mimic::{Failed, Trial};

use super::document;
use super::plan::{self, Out, PlannedEvent, START_MS, Trouble, prompt, reset};
use super::promises::{self, Ending, Fact};
use super::state::settled;
use super::thread::SimThread;
use super::transitions::Transition;
use super::world::World;
use crate::{deep, proof};

/// A scenario: its beginning, and the actions that meet crashes.
struct Scenario {
    name: &'static str,
    threads: usize,
    /// Brings about the state before the crashes.
    before: fn(&World) -> Result<(), String>,
    /// The actions.
    then: fn(&World),
    /// Whether the scenario is the one that its name says.
    proves: fn(&[SimThread]) -> bool,
}

/// Variations that every scenario runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct How {
    /// The card is written before the work.
    cards_first: bool,
    /// The runtime mode.
    runtime: RuntimeMode,
}

/// Sandboxes run long enough that every scenario meets a running one.
const LIMITS: Limits = Limits {
    sandbox: SandboxLimits { idle_pause_ms: 30 * 60_000, ..SandboxLimits::DEFAULT },
    set_up: SetUpLimits { prebuild_ttl_ms: 60 * 60_000, ..SetUpLimits::DEFAULT },
    ..Limits::DEFAULT
};
const HOWS: [How; 3] = {
    const fn how(cards_first: bool, runtime: RuntimeMode) -> How {
        How { cards_first, runtime }
    }
    [
        how(false, RuntimeMode::OpenCode),
        how(true, RuntimeMode::OpenCode),
        how(false, RuntimeMode::Native),
    ]
};

fn ended(place: &SimThread, turn: usize, ending: Ending) -> bool {
    place.history.facts.contains(&Fact::Ended { turn, ending })
}

/// Within one delivery, unless that crashed.
fn came_back(place: &SimThread) -> bool {
    let ways = [Phase::Active, Phase::Resuming, Phase::Active];
    ended(place, 1, Ending::Answered) && place.went_through(&ways) && place.deliveries_most == 1
}

fn nothing(_: &World) -> Result<(), String> {
    Ok(())
}

fn with_recipes(world: &World) -> Result<(), String> {
    world.lock().has_recipes = true;
    Ok(())
}

fn project_paused(world: &World) -> Result<(), String> {
    with_recipes(world)?;
    paused(world)
}

fn answered(world: &World) -> Result<(), String> {
    first(world);
    world.run(settled)
}

/// The same within one delivery: the run ends before anybody only polls it.
fn answered_at_once(world: &World) -> Result<(), String> {
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    answered(world)
}

fn idle(world: &World) -> Result<(), String> {
    answered(world)?;
    after(world, LIMITS.sandbox.idle_pause_ms, PlannedEvent::Rest);
    world.run(settled)
}

/// The same for a named sandbox.
fn named_idle(world: &World) -> Result<(), String> {
    answered(world)?;
    send(world, "n1", plan::name("front"));
    after(world, LIMITS.sandbox.idle_pause_ms, PlannedEvent::Rest);
    world.run(settled)
}

fn paused(world: &World) -> Result<(), String> {
    idle(world)?;
    sweep(world);
    world.run(settled)
}

fn expired(world: &World) -> Result<(), String> {
    paused(world)?;
    after(world, LIMITS.sandbox.paused_ttl_ms, PlannedEvent::Rest);
    world.run(settled)
}

fn after(world: &World, ms: u64, deed: PlannedEvent) {
    let now_ms = world.lock().now_ms - START_MS;
    world.plan(now_ms + ms, 0, deed);
}

fn send(world: &World, id: &str, work: Work) {
    let message = world.message(0, id, work);
    after(world, 0, PlannedEvent::Send(message));
}

fn first(world: &World) {
    send(world, "m1", prompt("m1"));
}

fn second(world: &World) {
    send(world, "m2", prompt("m2"));
}

/// A second prompt, answered within one delivery as well.
fn brief(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    second(world);
}

fn asks(world: &World) {
    world.lock().places[0].next_run_asks = true;
    second(world);
}

fn stopped(world: &World) {
    world.lock().places[0].next_run_is_endless = true;
    second(world);
    after(world, 20_000, PlannedEvent::Stop("m2".to_owned()));
}

/// A second prompt waits and is sent into the run.
fn steers(world: &World) {
    second(world);
    send(world, "m3", prompt("m3"));
    after(world, 1_000, PlannedEvent::Now("m3".to_owned()));
}

fn stops_all(world: &World) {
    world.lock().places[0].next_run_is_endless = true;
    second(world);
    send(world, "m3", prompt("m3"));
    after(world, 20_000, PlannedEvent::StopAll);
}

/// A run that takes longer than its card can be edited.
fn long(world: &World) {
    world.lock().places[0].next_run_is_endless = true;
    second(world);
    let minutes = 60_000;
    after(world, 52 * minutes, PlannedEvent::Stop("m2".to_owned()));
}

fn sweep(world: &World) {
    send(world, "sweep", Work::Sweep);
}

fn vanished(world: &World) {
    world.lock().places[0].home.lose();
    second(world);
}

/// The sandbox was stopped, and nobody has noticed.
fn parked(world: &World) {
    let mut inner = world.lock();
    let now_ms = inner.now_ms;
    inner.places[0].home.stops_by_itself(now_ms);
    drop(inner);
    brief(world);
}

/// The server in the sandbox has died, and nobody has noticed.
fn died(world: &World) {
    let mut inner = world.lock();
    let now_ms = inner.now_ms;
    inner.places[0].home.server_dies(now_ms);
    drop(inner);
    brief(world);
}

/// The path to the sandbox breaks; its agent continues and ends meanwhile.
fn is_cut(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    second(world);
    after(world, 1_000, PlannedEvent::Cut(15_000));
}

/// The same for a run that another prompt was sent into.
fn is_cut_with_two(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(20_000);
    steers(world);
    after(world, 15_000, PlannedEvent::Cut(15_000));
}

/// The follower of the run crashes, and another prompt waits behind it.
fn kills(world: &World) {
    let mut inner = world.lock();
    inner.places[0].next_run_kills = true;
    inner.places[0].next_run_is_endless = true;
    drop(inner);
    second(world);
    send(world, "m3", prompt("m3"));
}

/// The server accepts requests and never answers.
fn hangs(world: &World) {
    world.lock().places[0].home.hangs();
    brief(world);
}

/// A sandbox that its record gave up: a deletion that seemed done, or a create that arrived after it.
fn orphaned(world: &World) {
    let mut inner = world.lock();
    let now_ms = inner.now_ms;
    inner.hunts_crash = true;
    inner.places[0].home.create(9, now_ms, 0, false);
}

fn reset_now(world: &World) {
    send(world, "r1", reset());
}

fn operate(world: &World, want: Operation) {
    let by = None;
    send(world, "o1", Work::Operate { want, by });
}

/// The provider refuses the sweep's stop, and the sandbox is needed again.
fn wanted_again(world: &World) {
    let minutes = 60_000;
    after(world, 0, PlannedEvent::Out(Out::Provider, 9 * minutes));
    let (want, by) = (Operation::Resume, None);
    let message = world.message(0, "o1", Work::Operate { want, by });
    let accepted_at_ms = message.accepted_at_ms + 6 * minutes;
    let message = Message { accepted_at_ms, ..message };
    after(world, 6 * minutes, PlannedEvent::Send(message));
}

/// Somebody deletes a new sandbox while its first prompt is under way.
fn destroyed_meanwhile(world: &World) {
    world.lock().call_ms = Some(1_000);
    first(world);
    let (want, by) = (Operation::Destroy, None);
    let message = world.message(0, "o1", Work::Operate { want, by });
    // It has waited for turns for the full time, and runs after the last write of the sandbox's record.
    let accepted_at_ms = START_MS - LIMITS.share.busy_ms;
    let message = Message { accepted_at_ms, ..message };
    after(world, 20_250, PlannedEvent::Send(message));
}

const ALONE: [Scenario; 28] = [
    Scenario {
        name: "first message",
        threads: 1,
        before: nothing,
        then: first,
        proves: |places| {
            ended(&places[0], 0, Ending::Answered) && places[0].phase() == Some((Phase::Active, 1))
        },
    },
    Scenario {
        name: "set-up",
        threads: 1,
        before: with_recipes,
        then: first,
        proves: |places| {
            ended(&places[0], 0, Ending::Answered)
                && places[0].home.is_project_started()
                && places[0].phase() == Some((Phase::Active, 1))
        },
    },
    Scenario {
        name: "resume of a project",
        threads: 1,
        before: project_paused,
        then: second,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].home.is_project_started()
                && places[0].went_through(&[Phase::Paused, Phase::Resuming, Phase::Active])
        },
    },
    Scenario {
        name: "follow-up",
        threads: 1,
        before: answered,
        then: second,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered) && places[0].phase() == Some((Phase::Active, 1))
        },
    },
    Scenario {
        name: "resume",
        threads: 1,
        before: paused,
        then: second,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].went_through(&[Phase::Paused, Phase::Resuming, Phase::Active])
        },
    },
    Scenario {
        name: "recreate",
        threads: 1,
        before: answered,
        then: vanished,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered) && places[0].phase() == Some((Phase::Active, 2))
        },
    },
    Scenario {
        name: "parked and noticed by sending",
        threads: 1,
        before: answered_at_once,
        then: parked,
        proves: |places| came_back(&places[0]),
    },
    Scenario {
        name: "dead and noticed by sending",
        threads: 1,
        before: answered_at_once,
        then: died,
        proves: |places| came_back(&places[0]),
    },
    Scenario {
        name: "hung and noticed by sending",
        threads: 1,
        before: answered_at_once,
        then: hangs,
        proves: |places| came_back(&places[0]),
    },
    Scenario {
        name: "stop",
        threads: 1,
        before: answered,
        then: stopped,
        proves: |places| ended(&places[0], 1, Ending::Cancelled),
    },
    Scenario {
        name: "send now",
        threads: 1,
        before: answered,
        then: steers,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && ended(&places[0], 2, Ending::Joined)
                && places[0].history.facts.contains(&Fact::Steered { turn: 2 })
        },
    },
    Scenario {
        name: "stop all",
        threads: 1,
        before: answered,
        then: stops_all,
        proves: |places| {
            ended(&places[0], 1, Ending::Cancelled) && ended(&places[0], 2, Ending::Cancelled)
        },
    },
    Scenario {
        name: "roll over",
        threads: 1,
        before: answered,
        then: long,
        proves: |places| {
            let kind = PostKind::Rolled(1);
            ended(&places[0], 1, Ending::Cancelled)
                && places[0].history.facts.contains(&Fact::Posted { turn: 1, kind })
        },
    },
    Scenario {
        name: "ask",
        threads: 1,
        before: answered,
        then: asks,
        proves: |places| ended(&places[0], 1, Ending::Answered) && places[0].asked(1),
    },
    Scenario {
        name: "cut while the agent goes on",
        threads: 1,
        before: answered,
        then: is_cut,
        proves: |places| ended(&places[0], 1, Ending::Answered) && places[0].home.cut_ms(0) > 0,
    },
    Scenario {
        name: "cut with two prompts",
        threads: 1,
        before: answered,
        then: is_cut_with_two,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && ended(&places[0], 2, Ending::Joined)
                && places[0].home.cut_ms(0) > 0
        },
    },
    Scenario {
        name: "a run that kills whoever follows it",
        threads: 1,
        before: answered,
        then: kills,
        proves: |places| {
            let deliveries = u64::from(LIMITS.retry.attempts) + 2;
            ended(&places[0], 1, Ending::Failed)
                && ended(&places[0], 2, Ending::Answered)
                && places[0].deliveries_most == deliveries
        },
    },
    Scenario {
        name: "sweep",
        threads: 1,
        before: idle,
        then: sweep,
        proves: |places| places[0].phase() == Some((Phase::Paused, 1)),
    },
    Scenario {
        name: "destroy",
        threads: 1,
        before: expired,
        then: sweep,
        proves: |places| {
            places[0].went_through(&[Phase::Paused, Phase::Destroying, Phase::Destroyed])
        },
    },
    Scenario {
        name: "reset",
        threads: 1,
        before: answered,
        then: reset_now,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].phase() == Some((Phase::Destroyed, 1))
        },
    },
    Scenario {
        name: "operator pauses",
        threads: 1,
        before: answered,
        then: |world| operate(world, Operation::Pause),
        proves: |places| {
            ended(&places[0], 1, Ending::Answered) && places[0].phase() == Some((Phase::Paused, 1))
        },
    },
    Scenario {
        name: "operator pauses what vanished",
        threads: 1,
        before: answered,
        then: |world| {
            world.lock().places[0].home.lose();
            operate(world, Operation::Pause);
        },
        proves: |places| {
            ended(&places[0], 1, Ending::Failed) && places[0].phase() == Some((Phase::Destroyed, 1))
        },
    },
    Scenario {
        name: "operator resumes",
        threads: 1,
        before: paused,
        then: |world| operate(world, Operation::Resume),
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].went_through(&[Phase::Paused, Phase::Resuming, Phase::Active])
        },
    },
    Scenario {
        name: "operator destroys",
        threads: 1,
        before: answered,
        then: |world| operate(world, Operation::Destroy),
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].phase() == Some((Phase::Destroyed, 1))
        },
    },
    Scenario {
        name: "operator destroys a paused one",
        threads: 1,
        before: paused,
        then: |world| operate(world, Operation::Destroy),
        proves: |places| {
            ended(&places[0], 1, Ending::Answered)
                && places[0].phase() == Some((Phase::Destroyed, 1))
        },
    },
    Scenario {
        name: "operator resumes what could not be paused",
        threads: 1,
        before: named_idle,
        then: wanted_again,
        proves: |places| {
            let ways = [Phase::Active, Phase::Pausing, Phase::Resuming, Phase::Active];
            places[0].went_through(&ways)
        },
    },
    Scenario {
        name: "operator destroys under a prompt",
        threads: 1,
        before: nothing,
        then: destroyed_meanwhile,
        proves: |places| {
            ended(&places[0], 0, Ending::Answered)
                && ended(&places[0], 1, Ending::Answered)
                && places[0].phase() == Some((Phase::Active, 2))
        },
    },
    Scenario {
        name: "orphan",
        threads: 1,
        before: answered,
        then: orphaned,
        proves: |places| {
            places[0].home.deleted.contains(&9) && places[0].phase() == Some((Phase::Active, 1))
        },
    },
];

/// All scenarios: of one thread alone, of several in a shared sandbox, of an agent outside, and of work on its way to a
/// pull request.
fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    let more = shared::SCENARIOS.iter().chain(&outside::SCENARIOS).chain(&publish::SCENARIOS);
    ALONE.iter().chain(more)
}

/// A world after the scenario's beginning, and the calls made so far.
fn begun(scenario: &Scenario, how: How) -> Result<(World, u32), String> {
    let world = World::new(scenario.threads, 1, Trouble::None, LIMITS);
    world.lock().runtime = how.runtime;
    // Only the scenario decides when the sweeper runs.
    world.lock().sweeps = false;
    (scenario.before)(&world)?;
    world.lock().sweeps = true;
    let calls = world.lock().calls;
    Ok((world, calls))
}

/// Runs the scenario with crashes at these calls. Returns the number of its calls and of the crashes.
fn crashed(
    scenario: &Scenario,
    at: &[(u32, bool)],
    how: How,
    transitions: &mut BTreeSet<Transition>,
) -> Result<(u32, usize), String> {
    let (world, before) = begun(scenario, how)?;
    world.lock().cards_first = how.cards_first;
    if (scenario.proves)(&world.lock().places) {
        return Err(format!("{} came about before it began", scenario.name));
    }
    let points = at.iter().map(|(call, after)| (before + call, *after)).collect();
    world.lock().trouble = Trouble::Crashes { at: points, hit: 0 };
    (scenario.then)(&world);
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    transitions.extend(inner.transitions.iter().copied());
    for place in &inner.places {
        promises::check(&place.history).map_err(|why| {
            format!(
                "{}, crashes at {at:?} ({how:?}): {why}\n  {:?}\n  {}",
                scenario.name,
                place.history.facts,
                place.in_short()
            )
        })?;
    }
    if at.is_empty() && !(scenario.proves)(&inner.places) {
        let all = inner.places.iter();
        let all: Vec<_> = all.map(|place| (&place.history.facts, place.in_short())).collect();
        return Err(format!("{} did not come about: {all:?}", scenario.name));
    }
    let Trouble::Crashes { hit, .. } = &inner.trouble else {
        return Err("the crashes are gone".to_owned());
    };
    Ok((inner.calls - before, *hit))
}

/// About the number of pairs for one scenario and order: above it, only every n-th pair runs. With `BOBBIN_KILLS=all`
/// the second number.
const PAIRS_MAX: [u32; 2] = [150, 1_500];

/// All crashes of one scenario. Returns the number of points and of pairs.
fn scenario(
    scenario: &Scenario,
    pairs: bool,
    how: How,
    transitions: &mut BTreeSet<Transition>,
) -> Result<(usize, usize), String> {
    let (calls, _) = crashed(scenario, &[], how, transitions)?;
    let sides = [false, true];
    // Odd, so that the side of a call varies.
    let all = std::env::var("BOBBIN_KILLS").is_ok_and(|kills| kills == "all");
    let every = (calls * calls / PAIRS_MAX[usize::from(all)]) | 1;
    let (mut alone, mut paired, mut pair) = (0, 0, 0);
    for first in (1..=calls).flat_map(|call| sides.map(|after| (call, after))) {
        let (again, hit) = crashed(scenario, &[first], how, transitions)?;
        if hit != 1 {
            return Err(format!("{}: the crash at {first:?} was not reached", scenario.name));
        }
        alone += 1;
        // Each pair runs in one variation, in turn: all would take three times as long, and each single call runs in
        // all.
        let turn = (first.0 + u32::from(first.1)) as usize % HOWS.len();
        if !pairs || HOWS[turn] != how {
            continue;
        }
        // The calls after the first crash are those of its redeliveries.
        for second in (first.0 + 1..=again).flat_map(|call| sides.map(|after| (call, after))) {
            pair += 1;
            if pair % every != 0 {
                continue;
            }
            let (_, hit) = crashed(scenario, &[first, second], how, transitions)?;
            // Two calls of one step overlap: a worker that crashes at the start of the second does not reach the end of
            // the first.
            let overlap = first.1 && second == (first.0 + 1, false);
            if hit != 2 && !(overlap && hit == 1) {
                return Err(format!(
                    "{}: the crashes at {first:?} and {second:?} were not both reached",
                    scenario.name
                ));
            }
            paired += 1;
        }
    }
    Ok((alone, paired))
}

/// Every scenario with each crash alone.
///
/// # Errors
/// What is broken, in words.
pub fn singly() -> Result<BTreeSet<Transition>, String> {
    let mut transitions = BTreeSet::new();
    for one in scenarios() {
        for how in HOWS.into_iter().filter(|how| how.runtime == RuntimeMode::OpenCode) {
            scenario(one, false, how, &mut transitions)?;
        }
    }
    Ok(transitions)
}

pub fn trials() -> Vec<Trial> {
    let crashed = |one: &'static Scenario, how: &'static str, hows: &'static [How], pairs: bool| {
        let name = format!("protocol::crash::{}_{how}", one.name.replace(' ', "_"));
        proof(name, move || {
            for how in hows.iter().copied() {
                let mut transitions = BTreeSet::new();
                let (alone, paired) = scenario(one, pairs, how, &mut transitions)?;
                document::has(&transitions)?;
                println!(
                    "{} ({how:?}): {alone} crash points and {paired} pairs were reached, all promises kept",
                    one.name
                );
            }
            Ok(())
        })
    };
    let alone = scenarios().map(|one| crashed(one, "keeps_the_promises", &HOWS[..1], false));
    let paired = scenarios().map(|one| crashed(one, "keeps_the_promises_in_pairs", &HOWS, true));
    let mut trials: Vec<Trial> = alone.chain(paired.map(deep)).collect();
    trials.push(proof("protocol::crash::late_tool_sandbox_is_caught", || {
        outside::fault_is_caught().map_err(Failed::from)
    }));
    trials.push(proof("protocol::crash::tool_sandbox_outlasts_agents_turn", || {
        outside::stays_up().map_err(Failed::from)
    }));
    trials.push(proof("protocol::crash::persons_come_at_any_moment", || {
        let histories = publish::at_every_moment()?;
        println!("{histories} histories kept all promises");
        Ok(())
    }));
    trials.push(proof("protocol::crash::unheard_push_stops_no_later_one", || {
        publish::own_pushes_stop_nothing().map_err(Failed::from)
    }));
    trials.push(proof("protocol::crash::late_push_moves_no_branch", || {
        publish::late_pushes_change_nothing().map_err(Failed::from)
    }));
    trials.push(proof("protocol::crash::unshown_and_overwriting_pushes_are_caught", || {
        publish::faults_are_caught().map_err(Failed::from)
    }));
    trials.push(proof("protocol::crash::prompt_arrives_after_three_round_trips", || {
        let budget = Some(10_000_000);
        let of_all = Budgets {
            turn: budget,
            thread: budget,
            person_day: budget,
            channel_month: budget,
            month: budget,
        };
        let calls = three_round_trips(Budgets::default())?;
        let counted = three_round_trips(of_all)?;
        // Reservations ride on writes that happen anyway.
        if counted != calls {
            return Err(format!("{counted} calls with budgets, {calls} without").into());
        }
        Ok(())
    }));
    trials
}

/// With every call taking a second, the agent has the prompt after three: the read beside the claim, the write, and the
/// prompt beside its card. Returns the number of calls of the whole turn.
fn three_round_trips(budgets: Budgets) -> Result<u32, String> {
    let world = World::new(1, 1, Trouble::None, LIMITS);
    world.lock().sweeps = false;
    world.lock().places[0].settings.budgets = budgets;
    answered(&world)?;
    let (calls, began_ms) = {
        let mut inner = world.lock();
        inner.call_ms = Some(1_000);
        (inner.calls, inner.now_ms)
    };
    second(&world);
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    promises::check(&inner.places[0].history)?;
    let took_ms = inner.places[0].prompted_ms - began_ms;
    if took_ms != 3_000 {
        return Err(format!("the prompt was there after {took_ms} ms"));
    }
    Ok(inner.calls - calls)
}
