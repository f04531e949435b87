//! Several threads in one sandbox: the first one's, at place 0. Place 2 belongs to the same tenant.

use bobbin_core::base::ids::SandboxKey;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Message, NewSandbox, Work};
use bobbin_core::records::sandbox::Phase;
use bobbin_core::tenant::selection::Selection;

use super::super::plan::{self, PlannedEvent, prompt, wanting};
use super::super::promises::Ending;
use super::super::state::settled;
use super::super::thread::SimThread;
use super::super::world::World;
use super::LIMITS;
use super::{Scenario, after, answered, ended, nothing};

const BESIDE: usize = 2;
/// Duration of a run that others meet, in milliseconds.
const RUN_MS: u64 = 20_000;

fn send(world: &World, place: usize, id: &str, work: Work, after_ms: u64) {
    let message = world.message(place, id, work);
    after(world, after_ms, PlannedEvent::Send(message));
}

fn key(world: &World) -> SandboxKey {
    world.lock().places[0].thread.sandbox()
}

fn named(world: &World) -> Result<(), String> {
    answered(world)?;
    name(world);
    world.run(settled)
}

fn name(world: &World) {
    send(world, 0, "n1", plan::name("front"), 0);
}

fn connected(world: &World) -> Result<(), String> {
    named(world)?;
    connect(world);
    world.run(settled)
}

fn connect(world: &World) {
    let to = Some(key(world));
    send(world, BESIDE, "c1", plan::connect(to), 0);
}

/// Both have had a turn in it.
fn both(world: &World) -> Result<(), String> {
    connected(world)?;
    send(world, BESIDE, "b1", prompt("b1"), 0);
    world.run(settled)
}

/// The same in the common checkout.
fn both_in_common(world: &World) -> Result<(), String> {
    connected(world)?;
    send(world, BESIDE, "b1", in_common("b1"), 0);
    world.run(settled)
}

fn in_common(id: &str) -> Work {
    let wants = Selection { in_common: true, ..Selection::default() };
    wanting(id, wants)
}

fn side_by_side(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(RUN_MS);
    send(world, 0, "m2", prompt("m2"), 0);
    send(world, BESIDE, "b1", prompt("b1"), 5_000);
}

fn in_turns(world: &World) {
    world.lock().places[0].next_run_takes_ms = Some(RUN_MS);
    send(world, 0, "m2", prompt("m2"), 0);
    send(world, BESIDE, "b2", prompt("b2"), 5_000);
}

fn destroy(world: &World, after_ms: u64) {
    send(world, 0, "d1", plan::operate(Operation::Destroy), after_ms);
}

fn destroyed_after_a_turn(world: &World) {
    world.lock().places[BESIDE].next_run_takes_ms = Some(RUN_MS);
    send(world, BESIDE, "b2", prompt("b2"), 0);
    destroy(world, 5_000);
}

fn destroyed_under_a_turn(world: &World) {
    world.lock().places[BESIDE].next_run_is_endless = true;
    send(world, BESIDE, "b2", prompt("b2"), 0);
    destroy(world, 5_000);
    // Others continue elsewhere meanwhile.
    send(world, 0, "m2", prompt("m2"), 10_000);
}

fn created(world: &World) {
    let tenant = world.lock().places[0].thread.tenant();
    let new = NewSandbox {
        name: plan::called("front"),
        provider: None,
        runtime: None,
        repo: Some("acme/api".to_owned()),
        snapshot: Some("snapshot-1".to_owned()),
        agent: None,
    };
    let message = Message {
        thread: SandboxKey::without_thread(&tenant, &"k1".into()).group(),
        ..world.message(0, "k1", Work::Create(new))
    };
    after(world, 0, PlannedEvent::Send(message));
}

/// The name of a place's sandbox.
fn name_of(place: &SimThread) -> Option<&str> {
    let name = place.home.record.as_ref()?.sharing.name.as_ref()?;
    Some(name.as_str())
}

fn is_linked(place: &SimThread) -> bool {
    place.record.as_ref().is_some_and(|record| record.place.link.is_some())
}

pub(super) const SCENARIOS: [Scenario; 9] = [
    Scenario {
        name: "name",
        threads: 1,
        before: answered,
        then: name,
        proves: |places| {
            ended(&places[0], 1, Ending::Answered) && name_of(&places[0]) == Some("front")
        },
    },
    Scenario {
        name: "connect",
        threads: 3,
        before: named,
        then: connect,
        proves: |places| ended(&places[BESIDE], 0, Ending::Answered) && is_linked(&places[BESIDE]),
    },
    Scenario {
        name: "side by side",
        threads: 3,
        before: connected,
        then: side_by_side,
        proves: |places| {
            let at = |place: usize| places[place].prompted_ms;
            ended(&places[0], 2, Ending::Answered)
                && ended(&places[BESIDE], 1, Ending::Answered)
                && at(BESIDE) < at(0) + RUN_MS
        },
    },
    Scenario {
        name: "take turns in the common checkout",
        threads: 3,
        before: both_in_common,
        then: in_turns,
        proves: |places| {
            let at = |place: usize| places[place].prompted_ms;
            ended(&places[0], 2, Ending::Answered)
                && ended(&places[BESIDE], 2, Ending::Answered)
                && at(BESIDE) >= at(0) + RUN_MS
        },
    },
    Scenario {
        name: "destroy after a turn",
        threads: 3,
        before: both,
        then: destroyed_after_a_turn,
        proves: |places| {
            ended(&places[BESIDE], 2, Ending::Answered)
                && places[0].phase() == Some((Phase::Destroyed, 1))
                && name_of(&places[0]).is_none()
        },
    },
    Scenario {
        name: "destroy under a turn",
        threads: 3,
        before: both,
        then: destroyed_under_a_turn,
        proves: |places| {
            ended(&places[BESIDE], 2, Ending::Lost)
                && ended(&places[0], 3, Ending::Answered)
                && places[0].phase() == Some((Phase::Active, 2))
        },
    },
    Scenario {
        name: "snapshot",
        threads: 1,
        before: answered,
        then: |world| send(world, 0, "s1", plan::operate(Operation::Snapshot), 0),
        proves: |places| {
            let record = places[0].home.record.as_ref();
            ended(&places[0], 1, Ending::Answered)
                && record.is_some_and(|record| record.snapshots.len() == 1)
        },
    },
    Scenario {
        name: "create",
        threads: 1,
        before: nothing,
        then: created,
        proves: |places| {
            let made = places.last().filter(|_| places.len() == 2);
            made.is_some_and(|made| {
                made.phase() == Some((Phase::Active, 1)) && name_of(made) == Some("front")
            })
        },
    },
    Scenario {
        name: "pause and resume without a thread",
        threads: 3,
        before: both,
        then: |world| {
            send(world, 0, "o1", plan::operate(Operation::Pause), 0);
            send(world, 0, "o2", plan::operate(Operation::Resume), 0);
            let idle_ms = LIMITS.sandbox.idle_pause_ms;
            send(world, BESIDE, "b2", prompt("b2"), idle_ms / 2);
        },
        proves: |places| {
            ended(&places[0], 2, Ending::Answered)
                && ended(&places[0], 3, Ending::Answered)
                && ended(&places[BESIDE], 2, Ending::Answered)
        },
    },
];
