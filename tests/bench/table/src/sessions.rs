//! Sessions by their number: threads after five turns, with a sandbox.

use std::collections::HashMap;

use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::outcome::Outcome;
use bobbin_core::selection::Selection;
use bobbin_core::session::{CheckedOptions, EndedTurn, Phase, Session, TimelineEntry};
use dynoxide::{AttributeValue, Item};

/// The guild of all of them.
pub const GUILD: &str = "1290000000000000001";
/// The first thread's id; the others follow.
pub const FIRST_THREAD: u64 = 1_300_000_000_000_000_000;
const TURNS: u64 = 5;
const MINUTE_MS: u64 = 60_000;
/// A day: what is due later is due then at the earliest, so that nothing becomes due while it is measured.
const LATER_MS: u64 = 24 * 60 * MINUTE_MS;

/// When a session is due.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    /// For some minutes.
    Now,
    /// A day from now.
    Later,
}

/// The item of a session, as the store writes it.
pub fn item(number: usize, due: Due, now_ms: Ms) -> Item {
    let session = session(number as u64, due, now_ms);
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let count = |value: u64| AttributeValue::N(value.to_string());
    let due_at = session.due_at_ms.unwrap_or_default();
    let attributes = [
        ("thread", text(&session.thread.to_string())),
        ("item", text("session")),
        ("record", text(&session.encode())),
        ("version", count(session.version)),
        ("phase", text(session.phase.word())),
        ("tenant", text(session.thread.tenant().as_str())),
        ("due_shard", count(session.thread.due_shard().into())),
        ("due_at", count(due_at)),
    ];
    attributes
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect::<HashMap<_, _>>()
}

fn session(number: u64, due: Due, now_ms: Ms) -> Session {
    let thread = ThreadKey::discord(GUILD, &(FIRST_THREAD + number).to_string());
    let thread = thread.expect("digits are an id");
    // Spread over an hour, as people's work is.
    let spread_ms = number * 7_919 % (60 * MINUTE_MS);
    let due_at_ms = match due {
        Due::Now => now_ms - MINUTE_MS - spread_ms,
        Due::Later => now_ms + LATER_MS + spread_ms,
    };
    let turn = |index: u64| EndedTurn {
        id: (1_240_000_000_000_000_000 + number * TURNS + index)
            .to_string()
            .into(),
        outcome: Outcome::Answered,
        at_ms: now_ms - (TURNS - index) * MINUTE_MS,
    };
    let phase = |(phase, note): (Phase, &str)| TimelineEntry {
        at_ms: now_ms - TURNS * MINUTE_MS,
        phase,
        note: note.to_owned(),
    };
    let agent_session = format!("ses_{number:026}");
    Session {
        version: 40,
        phase: Phase::Active,
        generation: 1,
        briefed: Some(agent_session.clone().into()),
        agent_session: Some(agent_session.into()),
        ended: (0..TURNS).map(turn).collect(),
        due_at_ms: Some(due_at_ms),
        wake_at_ms: Some(due_at_ms),
        checked_options: Some(CheckedOptions {
            generation: 1,
            selection: Selection::default(),
        }),
        timeline: [
            (Phase::Creating, "a prompt came"),
            (Phase::Active, "the server is healthy"),
        ]
        .map(phase)
        .to_vec(),
        ..Session::new(thread, now_ms - TURNS * MINUTE_MS)
    }
}
