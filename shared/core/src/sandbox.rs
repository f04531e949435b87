//! A sandbox of ours: its record, and what one at the provider is doing.
//!
//! The record outlives the provider's sandboxes: each of those is a generation of it. It is written under its own version,
//! in one transaction with the record of the thread that has work for it.

use serde::{Deserialize, Serialize};

use crate::ids::{Ms, TurnId};
use crate::message::Operation;
use crate::schema::{self, Kept, Shape, Unreadable};

/// The phase of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The present generation is being made.
    Creating,
    /// The sandbox runs and its server has been healthy.
    Active,
    /// A sweep is stopping it, under a lease.
    Pausing,
    /// Stopped; the disk is kept.
    Paused,
    /// Being brought back: start, server, session.
    Resuming,
    /// Being deleted, under a lease.
    Destroying,
    /// There is none at the provider.
    #[default]
    Destroyed,
    /// Making it failed for a reason that a repeat cannot mend; the next prompt starts a new generation.
    Error,
}

impl Phase {
    /// Every phase, in the order of a life.
    pub const ALL: [Self; 8] = [
        Self::Creating,
        Self::Active,
        Self::Pausing,
        Self::Paused,
        Self::Resuming,
        Self::Destroying,
        Self::Destroyed,
        Self::Error,
    ];

    /// The word that is stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Destroying => "destroying",
            Self::Destroyed => "destroyed",
            Self::Error => "error",
        }
    }
}

/// The record of a sandbox. The default is that of one that has never been made; version 0 means: not stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// Grows by one with every write; the condition of the next.
    #[serde(default)]
    pub version: u64,
    /// Where it is in its life.
    pub phase: Phase,
    /// When the phase was entered (or re-entered by a new delivery).
    pub phase_since_ms: Ms,
    /// Counts the provider's sandboxes that it has had; part of their names.
    pub generation: u32,
    /// Whose credentials this generation was made with: the fingerprint that the tenant's own key had then; none: the stack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Who may stop or delete until when, while `pausing` or `destroying`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// When the sweeper should look next, while no turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<Ms>,
    /// Last time that a turn began or ended in it.
    pub last_activity_ms: Ms,
    /// The wake-up that was last asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at_ms: Option<Ms>,
    /// The repository that is worked on: cloned where a generation is made, and kept for the next one until somebody wants
    /// a fresh start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The last changes of phase, newest last.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// What who runs the stack wanted last, newest last: a repeat of one of them does nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operated: Vec<Operated>,
    /// It was read from a thread's record of shape 1, which held it: the next write gives it one of its own.
    #[serde(skip)]
    pub carried: bool,
    /// What of the stored record this build does not know: written back as it was.
    #[serde(skip)]
    pub kept: Kept,
}

impl SandboxRecord {
    /// The record of a sandbox that has never been made.
    #[must_use]
    pub fn new(now_ms: Ms) -> Self {
        Self {
            phase_since_ms: now_ms,
            last_activity_ms: now_ms,
            ..Self::default()
        }
    }

    /// Whether the provider has a sandbox for it, as far as the record says: one that is on its way in or out too.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Destroyed | Phase::Error)
    }

    /// Whether it has to be written where `stored` stands.
    #[must_use]
    pub fn differs_from(&self, stored: &Self) -> bool {
        self.carried || {
            let strip = |record: &Self| Self {
                kept: Kept::default(),
                ..record.clone()
            };
            strip(self) != strip(stored)
        }
    }

    /// The stored form.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn encode(&self) -> String {
        schema::write(Shape::Sandbox, self, &self.kept).expect("every field has a JSON form")
    }

    /// Reads the stored form. Unknown fields are kept.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(text: &str) -> Result<Self, Unreadable> {
        let (read, kept) = schema::read::<Self>(Shape::Sandbox, text)?;
        Ok(Self { kept, ..read })
    }
}

/// Something that who runs the stack wanted, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operated {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// What the operator wanted.
    pub want: Operation,
    /// When it was over.
    pub at_ms: Ms,
    /// Why it was not done; none: it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Operations that a record remembers.
pub const OPERATED_MAX: usize = 10;

/// Who may stop or delete, and until when everybody else waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The delivery that holds it.
    pub holder: String,
    /// Until when nobody else may stop or delete.
    pub until_ms: Ms,
}

/// One change of phase.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// When that was.
    pub at_ms: Ms,
    /// The phase that was entered.
    pub phase: Phase,
    /// Why, in a few words.
    pub note: String,
}

/// A sandbox, coarsely (reference: Daytona's states, mapped).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxState {
    /// On its way up.
    Provisioning,
    /// It runs: programs in it can be reached.
    Running,
    /// Stopped or archived; can be started.
    Stopped,
    /// In a transition, or in a state that we do not know.
    Busy,
    /// The provider gave up on it.
    Broken {
        /// The reason that the provider gives.
        reason: String,
        /// The provider offers to repair it.
        recoverable: bool,
    },
    /// The provider does not know it, or is deleting it.
    Gone,
}
