//! A sandbox of ours: its record, and what one at the provider is doing.
//!
//! The record outlives the provider's sandboxes: each of those is a generation of it. It is written under its own version,
//! in one transaction with the record of the thread that has work for it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, SandboxKey, SandboxName, ThreadKey, TurnId};
use crate::base::person::Person;
use crate::records::message::Operation;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::runtime_mode::RuntimeMode;

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
    /// What people call it. One with a name can be shared by threads of its tenant, and is kept for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SandboxName>,
    /// The provider that runs it; none: the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What runs agents in this generation, by the name that the worker knows it by; none: what it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The snapshot that a generation begins with; none: the stack's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The provider of the sandbox that its agent works in by tools, where it works in another one; none: the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_provider: Option<String>,
    /// The second sandbox, which its agent works in by tools, while there may be one ([`crate::records::outside`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// The sandbox whose agent works in this one by tools: a turn there is use of this one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
    /// The snapshots that were made of it, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<KeptSnapshot>,
    /// The threads that work in it, where people share it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub threads: BTreeSet<ThreadKey>,
    /// The turns that it is in use by: written in one piece with the beginning and the end of each. Nobody pauses or deletes
    /// it while there is one, unless a person wants it deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<InUse>,
    /// Turns that wait for the common checkout, in the order in which they get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// Who wants it deleted: nothing begins in it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Person>,
    /// Whose credentials this generation was made with: the fingerprint that the tenant's own key had then; none: the stack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Who may bring it up, stop or delete it until when, while it is on its way somewhere.
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
    /// What of the repository this generation's clone left out, in words; none: nothing that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// The generation that was last given up because the provider did not know it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanished: Option<Vanished>,
    /// Generations in a row whose secrets were not put into their requests: the first of them is made anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_secrets: u32,
    /// The last changes of phase, newest last.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// What who runs the stack wanted last, newest last: a repeat of one of them does nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operated: Vec<Operated>,
    /// What of the stored record this build does not know: written back as it was.
    #[serde(skip)]
    pub unknown: UnknownFields,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl SandboxRecord {
    /// The record of a sandbox that has never been made.
    #[must_use]
    pub fn new(now_ms: Ms) -> Self {
        Self { phase_since_ms: now_ms, last_activity_ms: now_ms, ..Self::default() }
    }

    /// Whether the provider has a sandbox for it, as far as the record says: one that is on its way in or out too.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Destroyed | Phase::Error)
    }

    /// Whether its agent works in a sandbox of its own for tools ([`crate::records::outside`]).
    #[must_use]
    pub fn works_elsewhere(&self) -> bool {
        RuntimeMode::recorded_as(self.runtime.as_deref()).is_some_and(RuntimeMode::works_elsewhere)
    }

    /// Whether the second sandbox of its agent is to end, and that has to be asked for yet.
    #[must_use]
    pub fn ends_tools(&self) -> bool {
        let ends_with = self.tools.and_then(|tools| tools.ends_with);
        ends_with == Some(self.generation)
    }

    /// Whether people share it.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.name.is_some()
    }

    /// Whether threads can come to it: not to an agent's second one, which has a name that nobody gave it.
    #[must_use]
    pub const fn takes_threads(&self) -> bool {
        self.is_shared() && self.agent.is_none()
    }

    /// Whether a turn of this thread has its workspace.
    #[must_use]
    pub fn is_in_use_by(&self, thread: &ThreadKey, turn: &TurnId) -> bool {
        let mut in_use = self.in_use.iter();
        in_use.any(|one| one.thread == *thread && one.turn == *turn && !one.left)
    }

    /// Whether a turn works in it.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.in_use.iter().any(|one| !one.left)
    }

    /// The turn of another thread that works in the common checkout.
    #[must_use]
    pub fn common_in_use_by(&self, other_than: &ThreadKey) -> Option<&InUse> {
        let mut in_use = self.in_use.iter();
        in_use.find(|one| one.common && one.thread != *other_than)
    }

    /// Whether it has to be written where `stored` stands.
    #[must_use]
    pub fn differs_from(&self, stored: &Self) -> bool {
        let strip = |record: &Self| Self { unknown: UnknownFields::default(), ..record.clone() };
        strip(self) != strip(stored)
    }

    /// The stored form.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn encode(&self) -> String {
        schema::write(Shape::Sandbox, self, &self.unknown).expect("every field has a JSON form")
    }

    /// Reads the stored form. Unknown fields are kept.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(text: &str) -> Result<Self, Unreadable> {
        let (read, unknown) = schema::read::<Self>(Shape::Sandbox, text)?;
        Ok(Self { unknown, ..read })
    }
}

/// The second sandbox of an agent's, as the record of the agent's says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tools {
    /// The generation of the agent's sandbox that it began with.
    pub since: u32,
    /// It is to end with this generation of it, while that is the present one: asked for before anything else happens to the
    /// agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<u32>,
}

/// A generation that the provider did not know any more, though nobody had deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vanished {
    /// Which one.
    pub generation: u32,
    /// When that was believed.
    pub at_ms: Ms,
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

/// Who may make calls of its life cycle, and until when everybody else waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The delivery that holds it; of who brings the sandbox up the message, because a repeat of that does no harm.
    pub holder: String,
    /// Until when nobody else may make such a call.
    pub until_ms: Ms,
}

/// A turn that a workspace of the sandbox is in use by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InUse {
    /// The thread whose turn it is.
    pub thread: ThreadKey,
    /// The turn.
    pub turn: TurnId,
    /// It works in the common checkout, and not in a workspace of its thread's own.
    pub common: bool,
    /// Since when.
    pub since_ms: Ms,
    /// The turn has ended, and its run may still go on there: nobody else works there, but the sandbox can be paused, which
    /// ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
}

/// A turn that waits for the common checkout.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waiting {
    /// The thread whose turn it is.
    pub thread: ThreadKey,
    /// The turn.
    pub turn: TurnId,
    /// It has given no sign of life since: others need not wait for it any more.
    pub until_ms: Ms,
}

/// A snapshot that was made of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptSnapshot {
    /// Its name at the provider.
    pub name: String,
    /// When it was asked for.
    pub at_ms: Ms,
    /// Who wanted it; empty for one that was made by itself.
    #[serde(default)]
    pub by: Person,
}

/// How a snapshot that was asked for stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SnapshotSeen {
    /// It is being made.
    UnderWay,
    /// A sandbox can be made from it.
    Ready,
    /// It was not made.
    Failed {
        /// Why, as far as anybody says.
        why: String,
    },
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
