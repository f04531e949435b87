//! A thread's record in a line, for the commands that list or show it.

use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::Stage;
use bobbin_core::records::turn::Turn;
use serde::Serialize;

/// A thread, as it is told to programs.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The key as people type it, such as `slack:T1:C1:1.2`.
    pub thread: String,
    /// The guild or team that it belongs to, such as `discord:1`.
    pub tenant: String,
    /// The key of the sandbox that it works in.
    pub sandbox_key: SandboxKey,
    /// What people call that one, where it has a name.
    pub sandbox_name: Option<String>,
    /// Phase of its sandbox.
    pub phase: &'static str,
    /// Since when (Unix milliseconds).
    pub phase_since_ms: Ms,
    /// How many sandboxes the thread has had, the present one included.
    pub generation: u32,
    /// The turn that is under way.
    pub turn: Option<TurnLine>,
    /// Prompts that wait behind it.
    pub waiting: usize,
    /// When a turn last began or ended.
    pub last_activity_ms: Ms,
    /// When the sweeper should look next.
    pub due_at_ms: Option<Ms>,
    /// The repository that it works on.
    pub repo: Option<String>,
}

/// A turn, as it is told to programs.
#[derive(Debug, Serialize)]
pub struct TurnLine {
    /// The id of the message that began it.
    pub id: String,
    /// The name of the person who asked for it.
    pub by: String,
    /// `received`, `prompting`, `running` or `ending`.
    pub stage: &'static str,
    /// When it was accepted.
    pub accepted_at_ms: Ms,
    /// Questions and permissions that wait for a person.
    pub asks: usize,
}

/// The word of a stage.
pub const fn stage(stage: &Stage) -> &'static str {
    match stage {
        Stage::Received { .. } => "received",
        Stage::Prompting(_) => "prompting",
        Stage::Running(_) => "running",
        Stage::Ending { .. } => "ending",
    }
}

fn turn_line(turn: &Turn) -> TurnLine {
    TurnLine {
        id: turn.id.to_string(),
        by: turn.by.name.clone(),
        stage: stage(&turn.stage),
        accepted_at_ms: turn.accepted_at_ms,
        asks: turn.asks.iter().filter(|ask| !ask.settled).count(),
    }
}

/// A record as a line.
pub fn line(session: &Session, flags: &ControlFlags) -> Line {
    Line {
        thread: session.thread.to_string(),
        tenant: session.thread.tenant().to_string(),
        sandbox_key: session.sandbox_key(),
        sandbox_name: session.sandbox.name.as_ref().map(ToString::to_string),
        phase: session.sandbox.phase.word(),
        phase_since_ms: session.sandbox.phase_since_ms,
        generation: session.sandbox.generation,
        turn: session.turn.as_ref().map(turn_line),
        waiting: flags.waiting().len(),
        last_activity_ms: session.sandbox.last_activity_ms,
        due_at_ms: session.due_at_ms(),
        repo: session.sandbox.repo.clone(),
    }
}
