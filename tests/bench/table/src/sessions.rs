//! Sessions by number: threads after five turns, with a sandbox.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::{Phase, SandboxHistory, SandboxRecord, TimelineEntry};
use bobbin_core::records::session::{CheckedOptions, Conversation, Session};
use bobbin_core::records::turn::EndedTurn;
use bobbin_core::tenant::selection::Selection;
use dynoxide::{AttributeValue, Item};

/// The guild of all sessions.
pub const GUILD: &str = "1290000000000000001";
/// The first thread's id; the others follow.
pub const FIRST_THREAD: u64 = 1_300_000_000_000_000_000;
const TURNS: u64 = 5;
const MINUTE_MS: u64 = 60_000;
/// A day: later items are due then at the earliest, so that nothing becomes due during the measurement.
const LATER_MS: u64 = 24 * 60 * MINUTE_MS;

/// When a session is due.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    /// It has been due for some minutes.
    Now,
    /// A day from now.
    Later,
}

/// The items of a thread at rest and of its sandbox, as the store writes them.
pub fn items(number: usize, due: Due, now_ms: Ms) -> [Item; 2] {
    let session = session(number as u64, due, now_ms);
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let count = |value: u64| AttributeValue::N(value.to_string());
    let sandbox = &session.sandbox;
    let of = |item: &str, record: &str, version: u64| {
        [
            ("thread", text(&session.thread.to_string())),
            ("item", text(item)),
            ("record", text(record)),
            ("version", count(version)),
            ("tenant", text(session.thread.tenant().as_str())),
        ]
    };
    let named = |(name, value): (&str, AttributeValue)| (name.to_owned(), value);
    let of_thread = of("session", &session.encode(), session.version);
    let of_sandbox = of("sandbox", &sandbox.encode(), sandbox.version);
    let more = [
        ("phase", text(sandbox.phase.word())),
        ("due_shard", count(session.thread.due_shard().into())),
        ("due_at", count(sandbox.due_at_ms.unwrap_or_default())),
    ];
    [
        of_thread.into_iter().map(named).collect(),
        of_sandbox.into_iter().chain(more).map(named).collect(),
    ]
}

fn session(number: u64, due: Due, now_ms: Ms) -> Session {
    let thread = ThreadKey::discord(GUILD, &(FIRST_THREAD + number).to_string());
    let thread = thread.expect("digits are an id");
    // Spread over an hour, like people's work.
    let spread_ms = number * 7_919 % (60 * MINUTE_MS);
    let due_at_ms = match due {
        Due::Now => now_ms - MINUTE_MS - spread_ms,
        Due::Later => now_ms + LATER_MS + spread_ms,
    };
    let turn = |index: u64| EndedTurn {
        id: (1_240_000_000_000_000_000 + number * TURNS + index).to_string().into(),
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
        conversation: Conversation {
            session: Some(agent_session.clone().into()),
            briefed: Some(agent_session.into()),
            options: Some(CheckedOptions {
                generation: 1,
                selection: Selection::default(),
                is_priced: true,
            }),
            ..Conversation::default()
        },
        ended: (0..TURNS).map(turn).collect(),
        sandbox: SandboxRecord {
            phase: Phase::Active,
            generation: 1,
            version: 12,
            due_at_ms: Some(due_at_ms),
            wake_at_ms: Some(due_at_ms),
            history: SandboxHistory {
                timeline: [
                    (Phase::Creating, "a prompt came"),
                    (Phase::Active, "the server is healthy"),
                ]
                .map(phase)
                .to_vec(),
                ..SandboxHistory::default()
            },
            ..SandboxRecord::new(now_ms - TURNS * MINUTE_MS)
        },
        ..Session::new(thread, now_ms - TURNS * MINUTE_MS)
    }
}
