//! A thread's record as one line, for commands that list or show it.

use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::Stage;
use bobbin_core::records::turn::Turn;
use serde::Serialize;

/// A thread in JSON.
#[derive(Debug, Serialize)]
pub struct ThreadLine {
    /// Thread key, such as `slack:T1:C1:1.2`.
    pub thread: String,
    /// Tenant, such as `discord:1`.
    pub tenant: String,
    /// Key of its sandbox.
    pub sandbox_key: SandboxKey,
    /// Name of its sandbox, if it has one.
    pub sandbox_name: Option<String>,
    pub phase: &'static str,
    /// Start of the phase (Unix milliseconds).
    pub phase_since_ms: Ms,
    /// Sandboxes so far, including the present one.
    pub generation: u32,
    /// The turn under way.
    pub turn: Option<TurnLine>,
    /// Prompts queued behind it.
    pub waiting: usize,
    /// When a turn last started or ended.
    pub last_activity_ms: Ms,
    /// When the sweeper is due.
    pub due_at_ms: Option<Ms>,
    pub repo: Option<String>,
}

/// A turn in JSON.
#[derive(Debug, Serialize)]
pub struct TurnLine {
    /// Id of its message.
    pub id: String,
    /// Name of the requester.
    pub by: String,
    /// `received`, `prompting`, `running` or `ending`.
    pub stage: &'static str,
    /// When it was accepted.
    pub accepted_at_ms: Ms,
    /// Questions and permissions that wait for a person.
    pub asks: usize,
}

/// The JSON word for a stage.
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

/// Formats a record.
pub fn line(session: &Session, flags: &ControlFlags) -> ThreadLine {
    ThreadLine {
        thread: session.thread.to_string(),
        tenant: session.thread.tenant().to_string(),
        sandbox_key: session.sandbox_key(),
        sandbox_name: session.sandbox.sharing.name.as_ref().map(ToString::to_string),
        phase: session.sandbox.phase.word(),
        phase_since_ms: session.sandbox.phase_since_ms,
        generation: session.sandbox.generation,
        turn: session.turn.as_ref().map(turn_line),
        waiting: flags.waiting().len(),
        last_activity_ms: session.sandbox.last_activity_ms,
        due_at_ms: session.due_at_ms(),
        repo: session.sandbox.project.repo.clone(),
    }
}
