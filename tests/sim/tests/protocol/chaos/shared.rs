//! Histories of many threads in few sandboxes, which are named by a thread, created without one, or created by the
//! first task for them.

use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Message, NewSandbox, Work};
use bobbin_core::tenant::selection::Selection;

use super::super::dice::Dice;
use super::super::plan::{self, PlannedEvent, prompt, reset, wanting};
use super::super::world::World;
use super::{HOUR_MS, TROUBLE_MS};

/// Threads, which belong to two tenants in turn.
pub(super) const THREADS: usize = 40;
/// Sandboxes that they share, which belong to two tenants in turn.
const SANDBOXES: usize = 6;

/// What these histories must meet, so that no promise holds only because its case never occurred.
pub(super) const MET: [&str; 17] = [
    "name",
    "connect",
    "create",
    "destroy",
    "pause",
    "resume",
    "snapshot",
    "snapshot made",
    "workspace",
    "told",
    "conflict",
    "crash",
    "zombie",
    "Answered",
    "Lost",
    "Cancelled",
    "digest",
];

/// How a sandbox is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Without a thread.
    Made,
    /// By a thread, which then names it.
    Named,
    /// By the first task that names it.
    Asked,
}

fn origin(sandbox: usize) -> Origin {
    match sandbox / 2 {
        0 => Origin::Made,
        1 => Origin::Named,
        _ => Origin::Asked,
    }
}

fn name(sandbox: usize) -> String {
    format!("env-{sandbox}")
}

/// The sandbox of a thread, one of its tenant's.
fn of_thread(place: usize) -> usize {
    place % 2 + 2 * (place / 2 % (SANDBOXES / 2))
}

/// The key of a sandbox, if it is known in advance.
fn key(world: &World, sandbox: usize) -> Option<SandboxKey> {
    let thread = world.lock().places[sandbox].thread.clone();
    match origin(sandbox) {
        Origin::Made => Some(made(&thread.tenant(), sandbox)),
        Origin::Named => Some(thread.sandbox()),
        Origin::Asked => None,
    }
}

fn made(tenant: &Tenant, sandbox: usize) -> SandboxKey {
    SandboxKey::without_thread(tenant, &format!("k{sandbox}").into())
}

/// Half of them have a repository, in which threads have their own worktrees.
fn repo(sandbox: usize) -> Option<String> {
    sandbox.is_multiple_of(2).then(|| "acme/api".to_owned())
}

pub(super) fn plan(world: &World, dice: &mut Dice) {
    for sandbox in 0..SANDBOXES {
        begin(world, sandbox);
        if let Some(key) = key(world, sandbox) {
            operations(world, dice, (sandbox, &key));
        }
    }
    for place in 0..THREADS {
        conversation(world, dice, place);
    }
}

fn begin(world: &World, sandbox: usize) {
    let work = match origin(sandbox) {
        Origin::Made => Work::Create(NewSandbox {
            name: plan::called(&name(sandbox)),
            provider: None,
            runtime: None,
            repo: repo(sandbox),
            snapshot: None,
            agent: None,
        }),
        Origin::Named => plan::name(&name(sandbox)),
        Origin::Asked => return,
    };
    let message = world.message(sandbox, &format!("k{sandbox}"), work);
    let message = match (origin(sandbox), key(world, sandbox)) {
        (Origin::Made, Some(key)) => Message { thread: key.group(), ..message },
        _ => message,
    };
    // A thread that names its sandbox has had one before.
    let at_ms = if origin(sandbox) == Origin::Named { 90_000 } else { 0 };
    world.plan(at_ms, sandbox, PlannedEvent::Send(message));
}

fn operations(world: &World, dice: &mut Dice, (sandbox, key): (usize, &SandboxKey)) {
    for (want, chance) in [
        (Operation::Pause, 400),
        (Operation::Resume, 400),
        (Operation::Snapshot, 500),
        (Operation::Destroy, 400),
    ] {
        if dice.falls(chance) {
            let id = format!("o{sandbox}{}", want.word());
            let at_ms = dice.below(TROUBLE_MS);
            let message = Message {
                thread: key.group(),
                accepted_at_ms: plan::START_MS + at_ms,
                ..world.message(sandbox, &id, plan::operate(want))
            };
            world.plan(at_ms, sandbox, PlannedEvent::Send(message));
        }
    }
}

fn conversation(world: &World, dice: &mut Dice, place: usize) {
    let sandbox = of_thread(place);
    let is_first = origin(sandbox) == Origin::Named && place == sandbox;
    let mut at_ms = if is_first { 0 } else { 60_000 + dice.below(20 * 60_000) };
    for number in 0..1 + dice.below(3) {
        let id = format!("t{place}m{number}");
        let wants =
            Selection { repo: repo(sandbox), in_common: dice.falls(150), ..Selection::default() };
        let work = match number {
            0 if is_first => wanting(&id, wants),
            0 => wanting(
                &id,
                Selection {
                    sandbox: Some(plan::called(&name(sandbox))),
                    provider: (origin(sandbox) == Origin::Asked).then(|| "daytona".to_owned()),
                    ..wants
                },
            ),
            _ if dice.falls(80) => reset(),
            _ => prompt(&id),
        };
        let message =
            Message { accepted_at_ms: plan::START_MS + at_ms, ..world.message(place, &id, work) };
        world.plan(at_ms, place, PlannedEvent::Send(message.clone()));
        if dice.falls(100) {
            world.plan(at_ms + dice.below(40 * 60_000), place, PlannedEvent::Send(message));
        }
        if dice.falls(100) {
            world.plan(at_ms + dice.below(120_000), place, PlannedEvent::Stop(id));
        }
        at_ms += match dice.below(3) {
            0 => dice.below(10_000),
            1 => dice.below(10 * 60_000),
            _ => 20 * 60_000 + dice.below(20 * 60_000),
        };
    }
    // It connects to another sandbox of its tenant, or back to its own.
    if dice.falls(200) {
        let other = (sandbox + 2) % SANDBOXES;
        let work = plan::connect(key(world, other));
        let message = world.message(place, &format!("t{place}c"), work);
        world.plan(dice.below(HOUR_MS), place, PlannedEvent::Send(message));
    }
    for deed in [PlannedEvent::Lose, PlannedEvent::ServerDies, PlannedEvent::StopsByItself] {
        if dice.falls(20) {
            world.plan(dice.below(TROUBLE_MS), place, deed);
        }
    }
    if dice.falls(50) {
        let cut = PlannedEvent::Cut(dice.below(40_000));
        world.plan(dice.below(TROUBLE_MS), place, cut);
    }
}
