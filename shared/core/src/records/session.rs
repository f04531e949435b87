//! The record of a thread: one item, written under its version.
//!
//! The observations of one delivery ([`Observations`]) are kept in memory beside the record and never stored: a
//! redelivery finds out by observation what happened.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AgentSessionId, Ms, SandboxKey, ThreadKey};
use crate::records::carried::Carried;
use crate::records::drafted_review::PullReview;
use crate::records::observations::Observations;
use crate::records::publication::{Publication, Published};
use crate::records::sandbox::{Phase, SandboxRecord};
use crate::records::turn::{EndedTurn, Turn};
use crate::records::unposted::UnpostedPost;
use crate::records::workspace::Workspace;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::budgets::MicroUsd;
use crate::tenant::selection::Selection;

/// The record of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    /// The thread.
    pub thread: ThreadKey,
    /// Grows by one with every write; the condition of the next write.
    pub version: u64,
    /// The thread's conversation with the agent.
    #[serde(default)]
    pub conversation: Conversation,
    /// Where its turns work.
    #[serde(default)]
    pub place: Place,
    /// The current turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The run of an ended turn that may still go on: it is ended before the agent is given anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stray: Option<StrayRun>,
    /// The last ended turns, newest last: a repeat of one of them does nothing.
    #[serde(default)]
    pub ended: Vec<EndedTurn>,
    /// When the next sweep is due, while a turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<Ms>,
    /// Digests of the agent's files that turns have shown, newest last: each is shown once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// Posts that the thread was not sent because it could not be written in, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<UnpostedPost>,
    /// Its branches and pull requests at the forge.
    #[serde(flatten)]
    pub published: Published,
    /// The agent's review of a pull request that was shown last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<PullReview>,
    /// What its ended turns have spent.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: MicroUsd,
    /// Stored fields that this build does not know; written back unchanged.
    #[serde(skip)]
    pub unknown: UnknownFields,
    /// Its sandbox: a record of its own, read and written with this one.
    #[serde(skip)]
    pub sandbox: SandboxRecord,
    /// Observations of this delivery; never stored.
    #[serde(skip)]
    pub observed: Observations,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_nothing(amount: &MicroUsd) -> bool {
    *amount == 0
}

/// A thread's conversation with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSessionId>,
    /// Generation of the sandbox that the session is in; `None` means the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The agent session that has been given a prompt of this thread; any other knows nothing of the thread yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub briefed: Option<AgentSessionId>,
    /// Name of the project's secrets and network that this session was told last
    /// ([`crate::records::given_secrets::GivenSecrets::name`]); `None`: of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Turns that ended before this time are not told to a new agent session: somebody wanted a fresh start.
    #[serde(default)]
    pub fresh_since_ms: Ms,
    /// The selection that the agent was last found to offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<CheckedOptions>,
    /// The agent that somebody chose in this thread, for sandboxes with several agents: its turns use it until another
    /// one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Where a thread's turns work.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Place {
    /// The sandbox that it is connected to; `None` means its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<SandboxKey>,
    /// Somebody wants its turns in the common checkout of a shared sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_common: bool,
    /// Its own workspace in a shared sandbox, once made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnWorkspace>,
}

/// A run whose turn ended before the run was seen to end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StrayRun {
    /// Generation of the sandbox.
    pub generation: u32,
    /// The agent session that the prompt was given to.
    pub agent_session: AgentSessionId,
    /// Message ids of its prompts, newest last.
    pub messages: Vec<String>,
}

/// A thread's own workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnWorkspace {
    /// Generation of the sandbox that it is in.
    pub generation: u32,
    /// Its absolute path in the sandbox.
    pub directory: String,
    /// Its branch, if it is a worktree of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A selection that the agent of a sandbox was found to offer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckedOptions {
    /// The generation whose agent was asked.
    pub generation: u32,
    /// The selection of the turn.
    pub selection: Selection,
    /// The price of its model was known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_priced: bool,
}

impl Session {
    /// The sandbox that its turns work in.
    #[must_use]
    pub fn sandbox_key(&self) -> SandboxKey {
        self.place.link.clone().unwrap_or_else(|| self.thread.sandbox())
    }

    /// The sandbox whose record this one holds: while the thread is moving to another one, still the previous one.
    #[must_use]
    pub fn sandbox_at_hand(&self) -> SandboxKey {
        let left = self.observed.sandbox.left.clone();
        left.unwrap_or_else(|| self.sandbox_key())
    }

    /// Whether its turns work in the common checkout. True for the thread that the sandbox was created for, and for a
    /// thread that somebody wants there. True for all threads if there is no repository for worktrees, or if the agent
    /// works in a tool sandbox, where all tools work in the one checkout.
    #[must_use]
    pub fn works_in_common(&self) -> bool {
        let has_worktrees = self.sandbox.project.repo.is_some() && !self.sandbox.works_elsewhere();
        self.place.link.is_none() || self.place.in_common || !has_worktrees
    }

    /// Where its turns work; `None` until its own workspace has been made.
    #[must_use]
    pub fn workspace(&self) -> Option<Workspace> {
        if self.works_in_common() {
            return Some(Workspace::Common);
        }
        let own = self.place.own.as_ref()?;
        let is_here = own.generation == self.sandbox.generation;
        is_here.then(|| Workspace::own(&own.directory)).flatten()
    }

    /// The run that the present turn would leave at work if it ended now.
    #[must_use]
    pub fn left_running(&self) -> Option<StrayRun> {
        let turn = self.turn.as_ref()?;
        let has_sandbox = matches!(
            self.sandbox.phase,
            Phase::Active | Phase::Pausing | Phase::Paused | Phase::Resuming
        );
        let here = turn.stage.prompted()?.generation == self.sandbox.generation;
        if !turn.stage.is_with_agent() || !has_sandbox || !here {
            return None;
        }
        Some(StrayRun {
            generation: self.sandbox.generation,
            // The session that was given the prompt, whatever is known of it since.
            agent_session: self.conversation.briefed.clone()?,
            messages: turn.messages(),
        })
    }

    /// The record of a thread that has had no sandbox yet. Version 0 means that it is not stored.
    #[must_use]
    pub fn new(thread: ThreadKey, now_ms: Ms) -> Self {
        Self {
            thread,
            version: 0,
            conversation: Conversation::default(),
            place: Place::default(),
            turn: None,
            stray: None,
            ended: Vec::new(),
            due_at_ms: None,
            shown: Vec::new(),
            untold: Vec::new(),
            published: Published::default(),
            review: None,
            spent: 0,
            unknown: UnknownFields::default(),
            sandbox: SandboxRecord::new(now_ms),
            observed: Observations::default(),
        }
    }

    /// The repository that the step in hand is about, in the present sandbox; `None`: it is not there, or it has no
    /// commit.
    #[must_use]
    pub fn carried(&self) -> Option<&Carried> {
        let project = &self.sandbox.project;
        let carried = match self.observed.beside {
            None => project.carried.as_ref(),
            Some(id) => project.beside.iter().find(|one| one.repository.id == id),
        };
        carried.filter(|carried| carried.base.is_some())
    }

    /// The repositories beside the thread's. In a sandbox of several threads nobody works on them.
    #[must_use]
    pub fn beside(&self) -> &[Carried] {
        if self.sandbox.is_shared() { &[] } else { &self.sandbox.project.beside }
    }

    /// Whether the thread has, or had, several repositories.
    #[must_use]
    pub const fn has_several(&self) -> bool {
        !self.published.beside.is_empty() || !self.sandbox.project.beside.is_empty()
    }

    /// Branch and pull request of that repository.
    #[must_use]
    pub fn publication(&self) -> Option<&Publication> {
        self.published.of(self.observed.beside)
    }

    /// Of what was published, the part of the thread's present repository is its own.
    pub fn settle_published(&mut self) {
        if let Some(carried) = &self.sandbox.project.carried {
            self.published.turn_own_to(carried.repository.id);
        }
    }

    /// The same, to be changed.
    pub fn publication_mut(&mut self) -> Option<&mut Publication> {
        self.published.of_mut(self.observed.beside)
    }

    /// The same, which begins with this.
    pub fn publication_or(&mut self, new: impl FnOnce() -> Publication) -> &mut Publication {
        self.published.of_or(self.observed.beside, new)
    }

    /// What comes next of that repository begins a new branch.
    pub fn forget_publication(&mut self) {
        self.published.forget(self.observed.beside);
    }

    /// From now on the step in hand is about this repository; `None`: the thread's. What was seen of another one does
    /// not count for it.
    pub fn turn_to(&mut self, beside: Option<u64>) {
        if self.observed.beside != beside {
            self.observed.beside = beside;
            (self.observed.forge, self.observed.watch) = Default::default();
        }
    }

    /// Whether a record of the thread, or of its sandbox, is stored.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        self.version > 0 || self.sandbox.version > 0
    }

    /// When the next sweep of the thread or its sandbox is due.
    #[must_use]
    pub fn due_at_ms(&self) -> Option<Ms> {
        self.due_at_ms.or(self.sandbox.due_at_ms)
    }

    /// Whether the stored fields of the thread itself are equal.
    #[must_use]
    pub fn same_record(&self, other: &Self) -> bool {
        let strip = |s: &Self| Self {
            unknown: UnknownFields::default(),
            sandbox: SandboxRecord::default(),
            observed: Observations::default(),
            ..s.clone()
        };
        strip(self) == strip(other)
    }

    /// The stored form, without the sandbox's record.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn encode(&self) -> String {
        schema::write(Shape::Record, self, &self.unknown).expect("every field has a JSON form")
    }

    /// Reads the stored form of a thread's record and of its sandbox's, if there is one. Unknown fields are kept, so
    /// that an older worker can write a newer record back.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(text: &str, sandbox: Option<&str>) -> Result<Self, Unreadable> {
        let (read, unknown) = schema::read::<Self>(Shape::Record, text)?;
        let sandbox = sandbox.map(SandboxRecord::decode).transpose()?;
        Ok(Self { unknown, sandbox: sandbox.unwrap_or_default(), ..read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_round_trips_without_observations() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let mut session = Session::new(thread, 5);
        session.observed.agent.healthy = true;
        let read = Session::decode(&session.encode(), None).expect("valid");
        assert!(read.same_record(&session));
        assert!(!read.observed.agent.healthy);
    }

    #[test]
    fn older_worker_preserves_unknown_fields() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let text = Session::new(thread, 5).encode().replacen('{', r#"{"from_the_future":1,"#, 1);
        let mut session = Session::decode(&text, None).expect("it can be read");
        session.conversation.fresh_since_ms = 7;
        let written: serde_json::Value = serde_json::from_str(&session.encode()).expect("JSON");
        assert_eq!(
            (&written["from_the_future"], &written["conversation"]["fresh_since_ms"]),
            (&1.into(), &7.into())
        );
    }
}
