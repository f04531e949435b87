//! Seeded histories: several threads in the simulator, with random trouble for a while, then calm. All promises must
//! hold at rest, and again when the last sandbox has expired.
//!
//! `BOBBIN_SEED=n` replays one history and prints it; `BOBBIN_SEEDS=n` runs so many.

mod publish;
mod shared;

use std::collections::BTreeSet;
use std::ops::Range;

use bobbin_core::base::limits::{Limits, SandboxLimits, SetUpLimits};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::Work;
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use libtest_mimic::{Failed, Trial};

use super::dice::Dice;
use super::document;
use super::plan::{self, Out, PlannedEvent, Trouble, prompt, reset};
use super::promises::{self, Fact};
use super::state::{nothing_due, settled};
use super::transitions::Transition;
use super::world::World;
use crate::{deep, proof};

/// Histories of one run.
const SEEDS: u64 = 2_000;
/// This many of them run after every change.
const FIRST_SEEDS: u64 = 200;
/// Histories of many threads that share sandboxes.
const SHARED_SEEDS: u64 = 24;
/// Histories with a forge, and how many of them run after every change.
const PUBLISHED_SEEDS: u64 = 400;
const FIRST_PUBLISHED_SEEDS: u64 = 60;
/// How long there is trouble.
const TROUBLE_MS: u64 = 90 * 60_000;
const HOUR_MS: u64 = 60 * 60_000;
/// Lines of a history that are printed.
const LINES_MAX: usize = 2_000;

/// What the histories must meet, so that no promise holds only because its case never occurred.
const MET: [&str; 66] = [
    "build",
    "prebuild used",
    "sweeper died",
    "contended",
    "hidden",
    "asked to take back",
    "table out",
    "writes out",
    "chat out",
    "token refused",
    "provider out",
    "threads closed",
    "told beside",
    "account out",
    "without secrets",
    "Answered",
    "Failed",
    "Cancelled",
    "Lost",
    "refused",
    "withheld",
    "disturbed",
    "asked",
    "crash",
    "zombie",
    "late",
    "orphan",
    "duplicate",
    "reply lost",
    "index lag",
    "clock skew",
    "conflict",
    "wake-up",
    "outage",
    "digest",
    "look",
    "wanted now",
    "nudged",
    "stop all",
    "Joined",
    "steered",
    "rolled",
    "called",
    "pause",
    "resume",
    "destroy",
    "forget",
    "sent at once",
    "not sent",
    "together",
    "hung",
    "cut",
    "killed",
    "run ended",
    "time over",
    "native",
    "gave way",
    "wish",
    "tools used",
    "second made",
    "second ended",
    "second in use",
    "announced",
    "announced twice",
    "announced late",
    "set-up",
];

/// The actions of a history, by its seed.
fn planned(world: &World, dice: &mut Dice, threads: usize) {
    for place in 0..threads {
        let mut at_ms = dice.below(60_000);
        for number in 0..1 + dice.below(4) {
            let id = format!("t{place}m{number}");
            let work = if number > 0 && dice.falls(150) { reset() } else { prompt(&id) };
            let message = world.message(place, &id, work);
            world.plan(at_ms, place, PlannedEvent::Send(message.clone()));
            // The platform sends it again, within the queue's window or long after it.
            if dice.falls(200) {
                world.plan(at_ms + dice.below(40 * 60_000), place, PlannedEvent::Send(message));
            }
            if dice.falls(200) {
                world.plan(at_ms + dice.below(120_000), place, PlannedEvent::Stop(id.clone()));
            }
            if dice.falls(300) {
                world.plan(at_ms + dice.below(60_000), place, PlannedEvent::Now(id.clone()));
            }
            // Early, during polls, late: some of it without effect.
            for _ in 0..dice.below(6) {
                world.plan(at_ms + dice.below(120_000), place, PlannedEvent::Nudge(id.clone()));
            }
            if dice.falls(40) {
                world.plan(at_ms + dice.below(120_000), place, PlannedEvent::StopAll);
            }
            at_ms += match dice.below(3) {
                0 => dice.below(10_000),
                1 => dice.below(10 * 60_000),
                _ => 25 * 60_000 + dice.below(20 * 60_000),
            };
        }
        // Separate dice: the rest of a history stays the same without this.
        let mut apart = dice.clone();
        if apart.falls(250) {
            let crowded = PlannedEvent::Crowded(apart.below(60_000));
            world.plan(apart.below(TROUBLE_MS), place, crowded);
        }
        // The operator does something, whatever runs or waits.
        if dice.falls(250) {
            let want = Operation::ALL[usize::try_from(dice.below(5)).unwrap_or(0)];
            let work = Work::Operate { want, by: None };
            let message = world.message(place, &format!("t{place}o"), work);
            world.plan(dice.below(TROUBLE_MS), place, PlannedEvent::Send(message));
        }
        for _ in 0..dice.below(3) {
            let cut = PlannedEvent::Cut(dice.below(40_000));
            world.plan(dice.below(TROUBLE_MS), place, cut);
        }
        for deed in [
            PlannedEvent::Lose,
            PlannedEvent::ServerDies,
            PlannedEvent::Hangs,
            PlannedEvent::StopsByItself,
        ] {
            if dice.falls(120) {
                world.plan(dice.below(TROUBLE_MS), place, deed);
            }
        }
    }
}

/// The provider hides some sandboxes longer than any doubt lasts.
fn out_of_sight(world: &World, seed: u64, threads: usize) {
    // Separate dice: everything else in a seed's history stays the same.
    let mut dice = Dice::new(seed ^ 0x0048_4944_4445);
    for place in 0..threads {
        if dice.falls(100) {
            let hides = PlannedEvent::Hides(60_000 + dice.below(HOUR_MS));
            world.plan(dice.below(TROUBLE_MS), place, hides);
        }
    }
}

/// Some sandboxes are at a provider that uses the wall clock, and some of these at its hard end.
fn wall_clocks(world: &World, seed: u64) {
    // Separate dice: everything else in a seed's history stays the same.
    let mut dice = Dice::new(seed ^ 0x0043_4C4F_434B);
    let mut inner = world.lock();
    for place in &mut inner.places {
        if dice.falls(300) {
            place.home.session_ms = Some(60_000 + dice.below(20 * 60_000));
            place.home.never_extends = dice.falls(300);
        }
    }
}

/// A service that all threads need goes down, for an hour at most.
fn outages(world: &World, dice: &mut Dice, seed: u64) {
    // Separate dice: the rest of a history stays the same without this.
    let mut apart = Dice::new(seed ^ 0x0041_4343_4F55_4E54);
    for what in Out::ALL {
        let dice = match what {
            Out::Account => &mut apart,
            _ => &mut *dice,
        };
        if dice.falls(100) {
            let at_ms = dice.below(TROUBLE_MS);
            world.plan(at_ms, 0, PlannedEvent::Out(what, dice.below(HOUR_MS)));
        }
    }
}

/// One history.
///
/// # Errors
/// What is broken, in words.
pub fn history(seed: u64, logs: bool) -> (World, Result<(), String>) {
    let world = begun(seed, logs);
    let judged = judge(&world);
    (world, judged)
}

fn begun(seed: u64, logs: bool) -> World {
    let mut dice = Dice::new(seed);
    let threads = 1 + usize::try_from(dice.below(4)).unwrap_or(0);
    let trouble = Trouble::Dice { until_ms: plan::START_MS + TROUBLE_MS };
    let sandbox = SandboxLimits { vanished_grace_ms: 20 * 60_000, ..SandboxLimits::DEFAULT };
    // Prebuilds expire before the history comes to rest.
    let set_up = SetUpLimits { prebuild_ttl_ms: 60 * 60_000, ..SetUpLimits::DEFAULT };
    let limits = Limits { sandbox, set_up, ..Limits::DEFAULT };
    let world = World::new(threads, dice.next(), trouble, limits);
    world.lock().logs = logs;
    planned(&world, &mut dice, threads);
    outages(&world, &mut dice, seed);
    announced(&world, seed);
    outside(&world, seed, threads);
    wall_clocks(&world, seed);
    out_of_sight(&world, seed, threads);
    modes(&world, seed);
    recipes(&world, seed);
    world
}

/// The repositories of every fourth stack have recipes.
fn recipes(world: &World, seed: u64) {
    world.lock().has_recipes = seed % 4 == 1;
}

/// Prompts are announced, beside everything else.
fn announced(world: &World, seed: u64) {
    world.lock().announcer = Some(Dice::new(seed ^ 0x414E_4E4F_554E_4345));
}

/// Some threads' agents work outside, from the beginning or later; they use their tools, and what happens to a sandbox
/// happens to the second one too.
fn outside(world: &World, seed: u64, threads: usize) {
    // Separate dice: everything else in a seed's history stays the same.
    let mut dice = Dice::new(seed ^ 0x004F_5554_5349_4445);
    for place in 0..threads {
        if !dice.falls(350) {
            continue;
        }
        let chosen = Some(RuntimeMode::Outside);
        let from_ms = if dice.falls(700) { 0 } else { dice.below(TROUBLE_MS) };
        world.plan(from_ms, place, PlannedEvent::Chooses(chosen));
        if dice.falls(200) {
            world.plan(dice.below(TROUBLE_MS), place, PlannedEvent::Chooses(None));
        }
        for _ in 0..dice.below(12) {
            world.plan(dice.below(TROUBLE_MS), place, PlannedEvent::Tools);
        }
        let second = world.lock().second_of(place);
        for (deed, chance) in [(PlannedEvent::Lose, 200), (PlannedEvent::StopsByItself, 200)] {
            if dice.falls(chance) {
                world.plan(dice.below(TROUBLE_MS), second, deed);
            }
        }
        for want in [Operation::Pause, Operation::Destroy, Operation::Snapshot] {
            if dice.falls(100) {
                let at_ms = dice.below(TROUBLE_MS);
                let id = format!("t{place}second-{}", want.word());
                let message = world.message(second, &id, plan::operate(want));
                world.plan(at_ms, second, PlannedEvent::Send(message));
            }
        }
        if dice.falls(150) {
            world.plan(dice.below(TROUBLE_MS), place, PlannedEvent::Lose);
        }
    }
}

/// One in three stacks runs agents only by OpenCode, one by the daemon's own sessions, and one changes its mode.
fn modes(world: &World, seed: u64) {
    let mut inner = world.lock();
    inner.runtime = match seed % 3 {
        0 => RuntimeMode::OpenCode,
        _ => RuntimeMode::Native,
    };
    drop(inner);
    if seed % 3 == 2 {
        let mut dice = Dice::new(seed ^ 0x4D4F_4445);
        for mode in [RuntimeMode::OpenCode, RuntimeMode::Native] {
            world.plan(dice.below(TROUBLE_MS), 0, PlannedEvent::Mode(mode));
        }
    }
}

/// One history of many threads in few sandboxes.
///
/// # Errors
/// What is broken, in words.
pub fn shared_history(seed: u64, logs: bool) -> (World, Result<(), String>) {
    let mut dice = Dice::new(seed ^ 0x5348_4152_4544);
    let trouble = Trouble::Dice { until_ms: plan::START_MS + TROUBLE_MS };
    let world = World::new(shared::THREADS, dice.next(), trouble, Limits::DEFAULT);
    world.lock().logs = logs;
    shared::plan(&world, &mut dice);
    outages(&world, &mut dice, seed);
    outside(&world, seed, shared::THREADS);
    wall_clocks(&world, seed);
    modes(&world, seed);
    recipes(&world, seed);
    let judged = judge(&world);
    (world, judged)
}

/// One history with a forge.
///
/// # Errors
/// What is broken, in words.
pub fn published_history(seed: u64, logs: bool) -> (World, Result<(), String>) {
    let mut dice = Dice::new(seed ^ 0x5055_424C_4953_4845);
    let threads = 1 + dice.place(3);
    let trouble = Trouble::Dice { until_ms: plan::START_MS + TROUBLE_MS };
    let world = World::new(threads, dice.next(), trouble, Limits::DEFAULT);
    world.has_forge();
    world.lock().logs = logs;
    (0..threads).for_each(|place| publish::plan(&world, &mut dice, place));
    outages(&world, &mut dice, seed);
    wall_clocks(&world, seed);
    modes(&world, seed);
    recipes(&world, seed);
    let judged = judge(&world);
    (world, judged)
}

fn judge(world: &World) -> Result<(), String> {
    world.run(settled)?;
    verdicts(world, "when all is quiet")?;
    world.run(nothing_due)?;
    verdicts(world, "after the last sandbox")
}

fn verdicts(world: &World, when: &str) -> Result<(), String> {
    world.settle();
    let inner = world.lock();
    for place in &inner.places {
        promises::check(&place.history).map_err(|why| {
            format!(
                "{when}: {}: {why}\n  {:?}\n  {}",
                place.thread,
                place.history.facts,
                place.in_short()
            )
        })?;
    }
    Ok(())
}

/// Runs the histories of these seeds.
///
/// # Errors
/// The first that breaks a promise, with its history.
pub fn run(seeds: Range<u64>) -> Result<BTreeSet<Transition>, String> {
    met(seeds, history).map(|(transitions, _)| transitions)
}

/// The same, with the cases that they met.
fn met(
    seeds: Range<u64>,
    history: Historian,
) -> Result<(BTreeSet<Transition>, BTreeSet<String>), String> {
    let (mut transitions, mut facts) = (BTreeSet::new(), BTreeSet::new());
    for seed in seeds {
        let (world, judged) = history(seed, false);
        if let Err(why) = judged {
            return Err(told(seed, history, &why));
        }
        let inner = world.lock();
        transitions.extend(inner.transitions.iter().copied());
        facts.extend(inner.met.iter().map(|what| (*what).to_owned()));
        let all = inner.places.iter().flat_map(|place| &place.history.facts);
        facts.extend(all.filter_map(|fact| match fact {
            Fact::Ended { ending, .. } => Some(format!("{ending:?}")),
            Fact::Steered { .. } => Some("steered".to_owned()),
            Fact::Called { .. } => Some("called".to_owned()),
            Fact::Posted { kind: PostKind::Rolled(_), .. } => Some("rolled".to_owned()),
            Fact::Refused { .. } => Some("refused".to_owned()),
            Fact::Withheld { .. } => Some("withheld".to_owned()),
            Fact::Disturbed { .. } => Some("disturbed".to_owned()),
            Fact::Posted { kind: PostKind::Ask(_), .. } => Some("asked".to_owned()),
            Fact::Proposed { .. } => Some("proposed".to_owned()),
            Fact::Requested { .. } => Some("requested".to_owned()),
            _ => None,
        }));
    }
    Ok((transitions, facts))
}

/// Makes the history of a seed, with or without a log.
type Historian = fn(u64, bool) -> (World, Result<(), String>);

fn told(seed: u64, history: Historian, why: &str) -> String {
    let (world, _) = history(seed, true);
    let log = world.lock().log.clone();
    let from = log.len().saturating_sub(LINES_MAX);
    format!(
        "{}\n\nseed {seed} breaks a promise; BOBBIN_SEED={seed} replays it\n{why}",
        log[from..].join("\n")
    )
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The same for the histories of many threads in few sandboxes.
///
/// # Errors
/// The first that breaks a promise, with its history.
pub fn run_shared() -> Result<BTreeSet<Transition>, String> {
    met(0..SHARED_SEEDS, shared_history).map(|(transitions, _)| transitions)
}

/// The same for the histories with a forge.
///
/// # Errors
/// The first that breaks a promise, with its history.
pub fn run_published() -> Result<BTreeSet<Transition>, String> {
    met(0..PUBLISHED_SEEDS, published_history).map(|(transitions, _)| transitions)
}

/// All histories of one kind, or only the requested one.
fn all(history: Historian, most: u64, must_meet: &[&str]) -> Result<(), Failed> {
    if let Some(seed) = number("BOBBIN_SEED") {
        let (world, judged) = history(seed, true);
        println!("{}", world.lock().log.join("\n"));
        return judged.map_err(Failed::from);
    }
    let seeds = number("BOBBIN_SEEDS").unwrap_or(most);
    let (transitions, facts) = met(0..seeds, history)?;
    document::has(&transitions)?;
    // A few histories need not meet every case.
    if seeds >= most
        && let Some(never) = must_meet.iter().find(|what| !facts.contains(**what))
    {
        return Err(format!("\"{never}\" never came about").into());
    }
    println!("{seeds} histories kept all promises");
    Ok(())
}

/// If nobody checks whether the turn began before its announced card was posted, a card keeps saying that it waits.
fn left_card_is_caught() -> Result<(), Failed> {
    for seed in 0..SEEDS {
        let world = begun(seed, false);
        world.lock().forgets_announced = true;
        match judge(&world) {
            Err(why) if why.contains("still looks alive") => return Ok(()),
            Err(why) => return Err(why.into()),
            Ok(()) => {}
        }
    }
    Err("not caught".into())
}

pub fn trials() -> Vec<Trial> {
    vec![
        proof("protocol::chaos::stale_queued_card_is_caught", left_card_is_caught),
        proof("protocol::chaos::first_seeded_histories_keep_promises", || {
            all(history, FIRST_SEEDS, &[])
        }),
        proof("protocol::chaos::first_published_histories_keep_promises", || {
            all(published_history, FIRST_PUBLISHED_SEEDS, &[])
        }),
        deep(proof("protocol::chaos::every_published_history_keeps_promises", || {
            all(published_history, PUBLISHED_SEEDS, &publish::MET)
        })),
        deep(proof("protocol::chaos::every_seeded_history_keeps_promises", || {
            all(history, SEEDS, &MET)
        })),
        deep(proof("protocol::chaos::shared_sandboxes_keep_the_promises", || {
            all(shared_history, SHARED_SEEDS, &shared::MET)
        })),
    ]
}
