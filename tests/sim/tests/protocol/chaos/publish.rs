//! Histories with a forge: work is proposed, pressed and pushed, while people push, merge, close and delete there.

use bobbin_core::records::control::Operation;
use bobbin_core::records::message::Work;

use super::super::dice::Dice;
use super::super::plan::{self, AtForge, PlannedEvent, prompt, reset};
use super::super::world::World;
use super::TROUBLE_MS;

/// What these histories must meet, so that no promise holds only because its case never occurred. A branch that is gone
/// when it is pushed to is too rare here: a crash scenario has it.
pub(super) const MET: [&str; 19] = [
    "propose",
    "press",
    "pressed an old one",
    "proposed",
    "pushed",
    "requested",
    "shown anew",
    "branch moved",
    "not followed",
    "late at the forge",
    "pushed by a person",
    "merged",
    "closed",
    "branch deleted",
    "repositories closed",
    "crash",
    "zombie",
    "reply lost",
    "conflict",
];

/// The actions in a thread.
pub(super) fn plan(world: &World, dice: &mut Dice, place: usize) {
    let mut at_ms = dice.below(60_000);
    let mut presses = 0;
    for number in 0..1 + dice.below(4) {
        let id = format!("t{place}m{number}");
        let work = if number > 0 && dice.falls(80) { reset() } else { prompt(&id) };
        send(world, place, (&id, work), at_ms);
        if dice.falls(100) {
            world.plan(at_ms + dice.below(120_000), place, PlannedEvent::Stop(id));
        }
        let mut shown_ms = at_ms + dice.below(4 * 60_000);
        for time in 0..1 + dice.below(2) {
            let id = format!("t{place}p{number}-{time}");
            send(world, place, (&id, plan::propose()), shown_ms);
            if dice.falls(150) {
                let again_ms = shown_ms + dice.below(20 * 60_000);
                send(world, place, (&id, plan::propose()), again_ms);
            }
            let mut pressed_ms = shown_ms + dice.below(3 * 60_000);
            // Mostly between a proposal and its press.
            if dice.falls(300) {
                let what = AtForge::ALL[dice.place(AtForge::ALL.len())];
                world.plan(shown_ms + dice.below(3 * 60_000), place, PlannedEvent::AtForge(what));
            }
            for _ in 0..dice.below(4) {
                presses += 1;
                let id = format!("t{place}x{presses}");
                let is_oldest = dice.falls(200);
                world.plan(pressed_ms, place, PlannedEvent::Press { id, is_oldest });
                let apart_ms = if dice.falls(500) { 5_000 } else { 120_000 };
                pressed_ms += dice.below(apart_ms);
            }
            shown_ms = pressed_ms + dice.below(60_000);
        }
        at_ms += dice.below(25 * 60_000);
    }
    for what in AtForge::ALL {
        for _ in 0..dice.below(3) {
            world.plan(dice.below(at_ms + 10 * 60_000), place, PlannedEvent::AtForge(what));
        }
    }
    for _ in 0..dice.below(3) {
        world.plan(dice.below(at_ms + 10 * 60_000), place, PlannedEvent::FilesChange);
    }
    if dice.falls(100) {
        let closed_ms = dice.below(TROUBLE_MS);
        world.plan(closed_ms, place, PlannedEvent::Opens(false));
        world.plan(closed_ms + dice.below(30 * 60_000), place, PlannedEvent::Opens(true));
    }
    for want in [Operation::Pause, Operation::Destroy] {
        if dice.falls(150) {
            let work = (&*format!("t{place}o-{}", want.word()), plan::operate(want));
            send(world, place, work, dice.below(TROUBLE_MS));
        }
    }
    for deed in [
        PlannedEvent::Lose,
        PlannedEvent::ServerDies,
        PlannedEvent::StopsByItself,
        PlannedEvent::StopAll,
    ] {
        if dice.falls(100) {
            world.plan(dice.below(TROUBLE_MS), place, deed);
        }
    }
}

fn send(world: &World, place: usize, (id, work): (&str, Work), at_ms: u64) {
    let mut message = world.message(place, id, work);
    message.accepted_at_ms += at_ms;
    world.plan(at_ms, place, PlannedEvent::Send(message));
}
