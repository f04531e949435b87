//! Sandboxes: their records, and the states of the provider's sandboxes.
//!
//! A record outlives the provider's sandboxes: each of those is one generation of it. It is written under its own
//! version, in one transaction with the record of the thread that has work for it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, SandboxKey, SandboxName, ThreadKey, TurnId};
use crate::base::person::Person;
use crate::records::carried::Carried;
use crate::records::control::Operation;
use crate::records::given_pull::GivenPull;
use crate::records::given_secrets::GivenSecrets;
use crate::records::prebuild::{BeginsWith, BuiltProject};
use crate::records::set_up::SetUp;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::budgets::MicroUsd;
use crate::tenant::runtime_mode::RuntimeMode;

/// The phase of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The present generation is being created.
    Creating,
    /// The sandbox runs and its server has been healthy.
    Active,
    /// A sweep is stopping it, under a lease.
    Pausing,
    /// Stopped; the disk is kept.
    Paused,
    /// Being started: sandbox, server, session.
    Resuming,
    /// Being deleted, under a lease.
    Destroying,
    /// The provider has no sandbox for it.
    #[default]
    Destroyed,
    /// Creation failed, and a retry cannot help; the next prompt starts a new generation.
    Error,
}

impl Phase {
    /// Every phase, in life-cycle order.
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

    /// The name that is stored and shown.
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

/// The record of a sandbox. The default is a sandbox that was never created; version 0 means that it is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// Grows by one with every write; the condition of the next write.
    #[serde(default)]
    pub version: u64,
    /// Phase of the life cycle.
    pub phase: Phase,
    /// When the phase was entered (or re-entered by a new delivery).
    pub phase_since_ms: Ms,
    /// Sandbox generation; part of the provider's name for it.
    pub generation: u32,
    /// Who shares it, and who works in it.
    #[serde(flatten)]
    pub sharing: Sharing,
    /// How it is created.
    #[serde(flatten)]
    pub spec: SandboxSpec,
    /// The tool sandbox of its agent, and the other way round.
    #[serde(flatten)]
    pub tooling: Tooling,
    /// The project in it.
    #[serde(flatten)]
    pub project: SandboxProject,
    /// Its snapshots, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<KeptSnapshot>,
    /// Who may start, stop or delete it, and until when, while it is changing phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// When the next sweep is due, while no turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<Ms>,
    /// When a turn last began or ended in it.
    pub last_activity_ms: Ms,
    /// When its requested wake-up is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at_ms: Option<Ms>,
    /// What it costs.
    #[serde(flatten)]
    pub money: SandboxMoney,
    /// What happened to it.
    #[serde(flatten)]
    pub history: SandboxHistory,
    /// Stored fields that this build does not know; written back unchanged.
    #[serde(skip)]
    pub unknown: UnknownFields,
}

/// Who shares a sandbox, and who works in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Sharing {
    /// Its name. A named sandbox can be shared by threads of its tenant, and is kept longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SandboxName>,
    /// The threads that work in it, if it is shared.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub threads: BTreeSet<ThreadKey>,
    /// The turns that use it, written in one transaction with the beginning and the end of each. While there is one,
    /// the sandbox is neither paused nor deleted, unless a person wants it deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<InUse>,
    /// Turns that wait for the common checkout, in the order in which they get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// The person who wants it deleted: nothing begins in it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Person>,
}

/// How a generation of a sandbox is created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Its provider; `None` means the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Runtime of this generation, by the name that the worker uses; `None` means the one that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The snapshot that a generation is created from; `None` means the stack's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Fingerprint of the tenant's own key with which this generation was created; `None` means the stack's
    /// credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

/// An agent that works in a tool sandbox ([`crate::records::tool_sandbox`]): each of the two sandboxes names the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tooling {
    /// Provider of the tool sandbox, if its agent works in one; `None` means the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_provider: Option<String>,
    /// Its tool sandbox, while there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// For a tool sandbox, the sandbox of its agent: a turn there counts as use of this one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
}

/// The project in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxProject {
    /// The repository, cloned when a generation is created, and kept for the next one until somebody wants a fresh
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The repository that a forge's app carried into this generation; `None` for one cloned from inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// The repositories that were carried beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Carried>,
    /// The pull request whose head that is, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<GivenPull>,
    /// What this generation's clone left out of the repository, as text; `None` if nothing is known to be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// How its project is made ready; `None` before the repository is there, and without a recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<SetUp>,
    /// The project's secrets that its server was started with; `None`: none were given or withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<GivenSecrets>,
    /// What this generation is created from, if no snapshot was chosen.
    #[serde(default, skip_serializing_if = "BeginsWith::is_unknown")]
    pub begins: BeginsWith,
    /// For a builder, the message for which this generation is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<TurnId>,
}

impl SandboxProject {
    /// Whether steps of its set-up may have run.
    #[must_use]
    pub fn is_set_up_begun(&self) -> bool {
        let set_up = self.set_up.as_ref();
        set_up.is_some_and(|one| !one.ended.is_empty() || !one.recipe.set_up.is_empty())
    }
}

/// What a sandbox costs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxMoney {
    /// Its running time up to here has been counted; `None`: it does not run, or nothing is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered_ms: Option<Ms>,
    /// Until when the capped model key of its server is valid; `None`: the server has the stack's keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capped_until_ms: Option<Ms>,
}

/// What happened to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxHistory {
    /// The last generation that was given up as vanished, because the provider did not know it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanished: Option<Vanished>,
    /// Generations in a row whose secrets were not put into their requests; the first of them is replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_secrets: u32,
    /// The last phase changes, newest last.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// The last operations, newest last: a repeat of one of them does nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operated: Vec<Operated>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl SandboxRecord {
    /// The record of a sandbox that was never created.
    #[must_use]
    pub fn new(now_ms: Ms) -> Self {
        Self { phase_since_ms: now_ms, last_activity_ms: now_ms, ..Self::default() }
    }

    /// Whether the provider has a sandbox for it, by the record; also while that is being created or deleted.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Destroyed | Phase::Error)
    }

    /// Whether its agent works in a tool sandbox ([`crate::records::tool_sandbox`]).
    #[must_use]
    pub fn works_elsewhere(&self) -> bool {
        RuntimeMode::recorded_as(self.spec.runtime.as_deref())
            .is_some_and(RuntimeMode::works_elsewhere)
    }

    /// Whether its tool sandbox is to end, and that has not been requested yet.
    #[must_use]
    pub fn ends_tools(&self) -> bool {
        let ends_with = self.tooling.tools.and_then(|tools| tools.ends_with);
        ends_with == Some(self.generation)
    }

    /// Whether it can be shared: it has a name.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.sharing.name.is_some()
    }

    /// Whether it makes prebuilds: nobody works in it, and it has no server.
    #[must_use]
    pub const fn is_builder(&self) -> bool {
        self.project.builds.is_some()
    }

    /// Whether threads can join it. They cannot join a tool sandbox, whose name nobody chose.
    #[must_use]
    pub const fn takes_threads(&self) -> bool {
        self.is_shared() && self.tooling.agent.is_none()
    }

    /// Whether this turn of this thread has its workspace.
    #[must_use]
    pub fn is_in_use_by(&self, thread: &ThreadKey, turn: &TurnId) -> bool {
        let mut in_use = self.sharing.in_use.iter();
        in_use.any(|one| one.thread == *thread && one.turn == *turn && !one.left)
    }

    /// Whether a turn works in it.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.sharing.in_use.iter().any(|one| !one.left)
    }

    /// The turn of another thread that works in the common checkout.
    #[must_use]
    pub fn common_in_use_by(&self, other_than: &ThreadKey) -> Option<&InUse> {
        let mut in_use = self.sharing.in_use.iter();
        in_use.find(|one| one.common && one.thread != *other_than)
    }

    /// Whether a private repository is in it: then it is its thread's alone.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let mut carried = self.project.carried.iter().chain(&self.project.beside);
        carried.any(|carried| carried.repository.is_private)
    }

    /// Whether it has to be written over `stored`.
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

/// The tool sandbox, as noted in the record of its agent's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tools {
    /// The generation of the agent's sandbox that it began with.
    pub since: u32,
    /// The generation of the agent's sandbox that it ends with, while that generation is the present one. The end is
    /// requested before anything else happens to the agent's sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<u32>,
}

/// A generation that the provider did not know any more, though Bobbin had not deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vanished {
    /// The generation.
    pub generation: u32,
    /// When that was believed.
    pub at_ms: Ms,
}

/// An operation on the sandbox, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operated {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// The operation.
    pub want: Operation,
    /// When it ended.
    pub at_ms: Ms,
    /// Why it was not done; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Operations that a record keeps.
pub const OPERATED_MAX: usize = 10;

/// A lease: the right to make life-cycle calls, while everybody else waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The delivery that holds it. For bringing the sandbox up it is the message, because repeating that is harmless.
    pub holder: String,
    /// When it ends, in Unix milliseconds.
    pub until_ms: Ms,
}

/// A turn that uses a workspace of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InUse {
    /// The turn's thread.
    pub thread: ThreadKey,
    /// The turn.
    pub turn: TurnId,
    /// It works in the common checkout, not in its thread's own workspace.
    pub common: bool,
    /// When it began.
    pub since_ms: Ms,
    /// What the turn has set aside; `None`: no budget bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<MicroUsd>,
    /// The turn has ended, but its run may still go on there: no other turn works there, but the sandbox can be paused,
    /// which ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
}

/// A turn that waits for the common checkout.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waiting {
    /// The turn's thread.
    pub thread: ThreadKey,
    /// The turn.
    pub turn: TurnId,
    /// Without a sign of life until then, others no longer wait for it.
    pub until_ms: Ms,
}

/// A snapshot of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptSnapshot {
    /// Its name at the provider.
    pub name: String,
    /// When it was requested.
    pub at_ms: Ms,
    /// The person who requested it; empty for an automatic one.
    #[serde(default)]
    pub by: Person,
    /// It is a prebuild.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<BuiltProject>,
}

/// State of a requested snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SnapshotSeen {
    /// It is being made.
    UnderWay,
    /// A sandbox can be created from it.
    Ready,
    /// It could not be made.
    Failed {
        /// The reason, if one is given.
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
    /// The reason, in a few words.
    pub note: String,
}

/// State of a provider's sandbox, coarsely (reference: Daytona's states, mapped).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxState {
    /// Being created or started.
    Provisioning,
    /// It runs: programs in it can be reached.
    Running,
    /// Stopped or archived; can be started.
    Stopped,
    /// In a transition, or in a state that Bobbin does not know.
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
