//! A thread whose work goes to a pull request.

use bobbin_core::base::limits::Limits;
use bobbin_core::base::names::PostKind;
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::sandbox::Phase;
use bobbin_sim::home::Caller;
use bobbin_sim::services::Moving;

use super::super::plan::{self, AtForge, Late, PlannedEvent, Trouble, prompt};
use super::super::promises::{self, Fact};
use super::super::state::{Inner, settled};
use super::super::thread::SimThread;
use super::super::world::World;
use super::{Scenario, after, answered_at_once, idle, send, sweep};

/// A turn has changed files of a repository from the forge.
fn worked(world: &World) -> Result<(), String> {
    world.has_forge();
    answered_at_once(world)
}

fn shown(world: &World) -> Result<(), String> {
    worked(world)?;
    propose(world);
    world.run(settled)
}

fn published(world: &World) -> Result<(), String> {
    shown(world)?;
    press(world);
    world.run(settled)
}

/// Then another turn has changed files.
fn worked_on(world: &World) -> Result<(), String> {
    published(world)?;
    work_on(world)
}

/// The same, with the proposal shown.
fn shown_anew(world: &World) -> Result<(), String> {
    worked_on(world)?;
    send(world, "p2", plan::propose());
    world.run(settled)
}

/// Another turn has changed files since the proposal.
fn outdated(world: &World) -> Result<(), String> {
    shown(world)?;
    work_on(world)
}

fn paused(world: &World) -> Result<(), String> {
    world.has_forge();
    idle(world)?;
    sweep(world);
    world.run(settled)
}

/// The pull request was merged and its branch deleted, and the work continues.
fn merged(world: &World) -> Result<(), String> {
    published(world)?;
    at_forge(world, AtForge::Merges);
    at_forge(world, AtForge::Deletes);
    world.run(settled)?;
    work_on(world)
}

/// A person has a commit on the branch, and a proposal is shown.
fn persons(world: &World) -> Result<(), String> {
    shown_anew(world)?;
    at_forge(world, AtForge::Pushes);
    world.run(settled)
}

/// That commit was fetched, another turn has merged it, and a proposal is shown.
fn followed(world: &World) -> Result<(), String> {
    persons(world)?;
    press_anew(world);
    world.run(settled)?;
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    send(world, "m3", prompt("m3"));
    send(world, "p3", plan::propose());
    world.run(settled)
}

/// The last push contains a person's commit; a new sandbox does not have it, and its work is proposed.
fn begun_anew(world: &World) -> Result<(), String> {
    followed(world)?;
    after(world, 0, PlannedEvent::Press { id: "x3".to_owned(), is_oldest: false });
    world.run(settled)?;
    world.lock().places[0].home.lose();
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    send(world, "m4", prompt("m4"));
    send(world, "p4", plan::propose());
    world.run(settled)
}

fn deleted(world: &World) -> Result<(), String> {
    shown_anew(world)?;
    at_forge(world, AtForge::Deletes);
    world.run(settled)
}

fn work_on(world: &World) -> Result<(), String> {
    world.lock().places[0].next_run_takes_ms = Some(5_000);
    send(world, "m2", prompt("m2"));
    world.run(settled)
}

fn at_forge(world: &World, what: AtForge) {
    after(world, 0, PlannedEvent::AtForge(what));
}

fn propose(world: &World) {
    send(world, "p1", plan::propose());
}

fn press(world: &World) {
    after(world, 0, PlannedEvent::Press { id: "x1".to_owned(), is_oldest: false });
}

fn press_anew(world: &World) {
    after(world, 0, PlannedEvent::Press { id: "x2".to_owned(), is_oldest: false });
}

fn press_twice(world: &World) {
    press(world);
    press_anew(world);
}

/// Numbers of proposals, pushes, and pull requests opened.
fn counts(place: &SimThread) -> (usize, usize, usize) {
    let facts = place.history.facts.iter();
    let pushes = facts.filter(|fact| matches!(fact, Fact::Pushed { .. })).count();
    (place.proposals.len(), pushes, place.forge.pulls.len())
}

fn noticed(place: &SimThread, turn: usize) -> bool {
    place.history.facts.contains(&Fact::Posted { turn, kind: PostKind::Notice })
}

/// The recorded branch is at the newest proposal.
fn is_at_newest(place: &SimThread) -> bool {
    let publication =
        place.record.as_ref().and_then(|record| record.published.publication.as_ref());
    let there = publication.and_then(|one| place.forge.branches.get(&one.branch));
    there.is_some() && there == place.proposals.last()
}

pub(super) const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "propose",
        threads: 1,
        before: worked,
        then: propose,
        proves: |places| counts(&places[0]) == (1, 0, 0) && !noticed(&places[0], 1),
    },
    Scenario {
        name: "propose from a paused sandbox",
        threads: 1,
        before: paused,
        then: propose,
        proves: |places| {
            counts(&places[0]) == (1, 0, 0)
                && places[0].went_through(&[Phase::Paused, Phase::Resuming, Phase::Active])
        },
    },
    Scenario {
        name: "publish",
        threads: 1,
        before: shown,
        then: press,
        proves: |places| counts(&places[0]) == (1, 1, 1) && is_at_newest(&places[0]),
    },
    Scenario {
        name: "publish by two presses",
        threads: 1,
        before: shown,
        then: press_twice,
        proves: |places| {
            counts(&places[0]) == (1, 1, 1) && noticed(&places[0], 2) && noticed(&places[0], 3)
        },
    },
    Scenario {
        name: "publish more of it",
        threads: 1,
        before: shown_anew,
        then: press_anew,
        proves: |places| counts(&places[0]) == (2, 2, 1) && is_at_newest(&places[0]),
    },
    Scenario {
        name: "publish what is not there any more",
        threads: 1,
        before: outdated,
        then: press,
        proves: |places| counts(&places[0]) == (2, 0, 0) && !noticed(&places[0], 3),
    },
    Scenario {
        name: "propose more of it",
        threads: 1,
        before: worked_on,
        then: |world| send(world, "p2", plan::propose()),
        proves: |places| counts(&places[0]) == (2, 1, 1) && !is_at_newest(&places[0]),
    },
    Scenario {
        name: "propose what comes after a merge",
        threads: 1,
        before: merged,
        then: |world| {
            send(world, "p2", plan::propose());
            // Once that is shown.
            after(world, 5 * 60_000, PlannedEvent::Press { id: "x2".to_owned(), is_oldest: false });
        },
        proves: |places| {
            let states = places[0].forge.pulls.iter().map(|(_, seen)| seen.state);
            counts(&places[0]) == (2, 2, 2)
                && is_at_newest(&places[0])
                && states.eq([PullRequestState::Merged, PullRequestState::Open])
        },
    },
    Scenario {
        name: "publish where a person has pushed",
        threads: 1,
        before: persons,
        then: press_anew,
        proves: |places| counts(&places[0]) == (2, 1, 1) && noticed(&places[0], 5),
    },
    Scenario {
        name: "publish what follows a person's commit",
        threads: 1,
        before: followed,
        then: |world| {
            after(world, 0, PlannedEvent::Press { id: "x3".to_owned(), is_oldest: false })
        },
        proves: |places| counts(&places[0]) == (3, 2, 1) && is_at_newest(&places[0]),
    },
    Scenario {
        name: "publish from a new sandbox after a person",
        threads: 1,
        before: begun_anew,
        then: |world| {
            after(world, 0, PlannedEvent::Press { id: "x4".to_owned(), is_oldest: false });
            let minutes = 60_000;
            for (after_ms, id, work) in
                [(5 * minutes, "m5", prompt("m5")), (10 * minutes, "p5", plan::propose())]
            {
                let message = world.message(0, id, work);
                after(world, after_ms, PlannedEvent::Send(message));
            }
            let press = PlannedEvent::Press { id: "x5".to_owned(), is_oldest: false };
            after(world, 15 * minutes, press);
        },
        proves: |places| counts(&places[0]) == (5, 3, 1) && is_at_newest(&places[0]),
    },
    Scenario {
        name: "publish where the branch was deleted",
        threads: 1,
        before: deleted,
        then: |world| {
            press_anew(world);
            after(world, 5 * 60_000, PlannedEvent::Press { id: "x3".to_owned(), is_oldest: false });
        },
        proves: |places| counts(&places[0]) == (2, 2, 1) && is_at_newest(&places[0]),
    },
];

/// Duration of every call, and the time between others' actions.
const CALL_MS: u64 = 1_000;

/// A person acts at each moment of a press, and the worker crashes or not at each of its calls. Returns the number of
/// histories.
///
/// # Errors
/// What is broken, in words.
pub(super) fn at_every_moment() -> Result<usize, String> {
    let mut histories = 0;
    let deeds = AtForge::ALL.map(PlannedEvent::AtForge);
    for deed in deeds.into_iter().chain([
        PlannedEvent::FilesChange,
        PlannedEvent::Opens(false),
        PlannedEvent::Lose,
    ]) {
        let calls = at_a_moment(&deed, 0, None)?;
        for moment in 0..u64::from(calls) + 2 {
            at_a_moment(&deed, moment, None)?;
            for at in (1..=calls).flat_map(|call| [(call, false), (call, true)]) {
                at_a_moment(&deed, moment, Some(at))?;
                histories += 1;
            }
        }
    }
    Ok(histories)
}

fn at_a_moment(
    deed: &PlannedEvent,
    moment: u64,
    crash: Option<(u32, bool)>,
) -> Result<u32, String> {
    let world = World::new(1, 1, Trouble::None, Limits::DEFAULT);
    world.lock().sweeps = false;
    shown_anew(&world)?;
    let mut inner = world.lock();
    let before = inner.calls;
    (inner.sweeps, inner.call_ms) = (true, Some(CALL_MS));
    let points = crash.map(|(call, after)| (before + call, after));
    inner.trouble = Trouble::Crashes { at: points.into_iter().collect(), hit: 0 };
    drop(inner);
    press_anew(&world);
    after(&world, moment * CALL_MS + CALL_MS / 2, deed.clone());
    world.run(settled)?;
    world.settle();
    let inner = world.lock();
    promises::check(&inner.places[0].history).map_err(|why| {
        let facts = &inner.places[0].history.facts;
        format!("{deed:?} at {moment}, crash at {crash:?}: {why}\n  {facts:?}")
    })?;
    Ok(inner.calls - before)
}

/// The sandbox is lost at each moment of a press, and the worker crashes at each of its calls: the thread's later work
/// still reaches the pull request.
///
/// # Errors
/// It does not.
pub(super) fn own_pushes_stop_nothing() -> Result<(), String> {
    for moment in 0..14 {
        for at in (1..=12).flat_map(|call| [(call, false), (call, true)]) {
            goes_on(moment, at)?;
        }
    }
    Ok(())
}

fn goes_on(moment: u64, (call, is_after): (u32, bool)) -> Result<(), String> {
    let world = World::new(1, 1, Trouble::None, Limits::DEFAULT);
    world.lock().sweeps = false;
    shown(&world)?;
    let mut inner = world.lock();
    (inner.sweeps, inner.call_ms) = (true, Some(CALL_MS));
    inner.trouble = Trouble::Crashes { at: vec![(inner.calls + call, is_after)], hit: 0 };
    drop(inner);
    press(&world);
    after(&world, moment * CALL_MS + CALL_MS / 2, PlannedEvent::Lose);
    world.run(settled)?;
    work_on(&world)?;
    send(&world, "p2", plan::propose());
    world.run(settled)?;
    press_anew(&world);
    world.run(settled)?;
    let inner = world.lock();
    let here = &inner.places[0];
    promises::check(&here.history)?;
    if is_at_newest(here) && counts(here).2 == 1 {
        return Ok(());
    }
    let seen = (counts(here), here.record.as_ref().map(|record| &record.published.publication));
    Err(format!("lost at {moment}, crash at {call} (after: {is_after}): {seen:?}"))
}

/// Actions between sending a push and its arrival.
type Meanwhile = fn(&World);

const MEANWHILE: [Meanwhile; 4] = [
    // Another delivery pushes the same.
    press,
    // The same, and more after it.
    |world| {
        press(world);
        after(world, 60_000, PlannedEvent::FilesChange);
        let message = world.message(0, "p2", plan::propose());
        after(world, 61_000, PlannedEvent::Send(message));
        after(world, 120_000, PlannedEvent::Press { id: "x2".to_owned(), is_oldest: false });
    },
    |world| at_forge(world, AtForge::Pushes),
    |world| {
        press(world);
        after(world, 60_000, PlannedEvent::AtForge(AtForge::Pushes));
    },
];

/// A push that its worker gave up arrives after all the others: the forge decides.
fn late(meanwhile: Meanwhile, plant: impl FnOnce(&mut Inner)) -> Result<(), String> {
    let world = World::new(1, 1, Trouble::None, Limits::DEFAULT);
    world.lock().sweeps = false;
    shown(&world)?;
    let call = {
        let inner = world.lock();
        let here = &inner.places[0];
        let publication =
            here.record.as_ref().and_then(|record| record.published.publication.as_ref());
        let branch = &publication.ok_or("nothing is shown")?.branch;
        let new = &here.proposals[0];
        let repository = 42;
        let moving = Moving { repository, branch, old: None, new, follows: None };
        let call = here.push_call(&here.home, 1, &moving);
        call.map_err(|ended| format!("no push was sent: {ended:?}"))?
    };
    meanwhile(&world);
    world.run(settled)?;
    let mut inner = world.lock();
    plant(&mut inner);
    let before = inner.places[0].forge.branches.clone();
    inner.land((Caller { place: 0, is_turn: false }, 0), Late::Push(call));
    promises::check(&inner.places[0].history)?;
    let there = &inner.places[0].forge.branches;
    if *there == before { Ok(()) } else { Err(format!("{before:?} became {there:?}")) }
}

/// # Errors
/// A late push moves a branch, or that it does is not caught where the forge lets it.
pub(super) fn late_pushes_change_nothing() -> Result<(), String> {
    MEANWHILE.into_iter().try_for_each(|meanwhile| late(meanwhile, |_| {}))?;
    // The same commit again moves nothing.
    for meanwhile in &MEANWHILE[1..] {
        caught(late(*meanwhile, |inner| inner.places[0].forge.overwrites = true))?;
    }
    Ok(())
}

/// If nobody checks where a branch is, or the sandbox's state is pushed instead of the proposal, that is noticed.
///
/// # Errors
/// It is not.
pub(super) fn faults_are_caught() -> Result<(), String> {
    let pressed = |before: fn(&World) -> Result<(), String>, plant: fn(&mut Inner)| {
        let world = World::new(1, 1, Trouble::None, Limits::DEFAULT);
        world.lock().sweeps = false;
        before(&world)?;
        plant(&mut world.lock());
        press_anew(&world);
        world.run(settled)?;
        promises::check(&world.lock().places[0].history)
    };
    caught(pressed(persons, |inner| inner.places[0].forge.overwrites = true))?;
    caught(pressed(outdated, |inner| inner.pushes_unshown = true))
}

fn caught(what: Result<(), String>) -> Result<(), String> {
    match what {
        Err(why) if why.contains("promise 15") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}
