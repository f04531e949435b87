//! The record of a thread: one item, written under its version.
//!
//! What one delivery has seen so far ([`Observations`]) is kept beside the record in memory and never stored: a redelivery
//! finds out by observation what happened.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::ids::{
    AgentSessionId, AskId, Ms, PostRef, PromptIds, SandboxKey, SandboxName, ThreadKey, TurnId,
};
use crate::base::limits::PollLimits;
use crate::base::person::Person;
use crate::records::artifacts::Artifact;
use crate::records::ask::{Ask, Settlement};
use crate::records::card::{CardState, card_kind};
use crate::records::changes::Changes;
use crate::records::images::Image;
use crate::records::ledger::Entry;
use crate::records::message::Prompt;
use crate::records::outcome::Outcome;
use crate::records::outside::AgentSeen;
use crate::records::parked::{Parked, Seen};
use crate::records::run::{Answer, PromptState};
use crate::records::sandbox::{Phase, SandboxRecord, SandboxState, SnapshotSeen};
use crate::records::stage::{Prompted, Stage};
use crate::records::untold::Untold;
use crate::records::workspace::Workspace;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::selection::Selection;
use crate::tenant::settings::AgentOptions;

/// The record of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    /// Whose record it is.
    pub thread: ThreadKey,
    /// Grows by one with every write; the condition of the next.
    pub version: u64,
    /// The OpenCode session in the present sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<AgentSessionId>,
    /// The turn that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The run of an ended turn that may still go on: it is ended before the agent is given anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stray: Option<StrayRun>,
    /// The last turns that ended, newest last: a repeat of one of them does nothing.
    #[serde(default)]
    pub ended: Vec<EndedTurn>,
    /// When the sweeper should look next, while a turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<Ms>,
    /// The OpenCode session that has been given a prompt of this thread: another one knows nothing of it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub briefed: Option<AgentSessionId>,
    /// Turns that ended before this are not told to a new agent session: somebody wanted a fresh start.
    #[serde(default)]
    pub fresh_since_ms: Ms,
    /// What the present sandbox's agent was last found to offer what a turn runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_options: Option<CheckedOptions>,
    /// The agent that somebody chose in this thread, where sandboxes have several: its turns go on with it until another is
    /// chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Files of the agent that a turn was to show, by content, newest last: each is shown once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// What could not be said in it, because it could not be written in, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Untold>,
    /// What of the stored record this build does not know: written back as it was.
    #[serde(skip)]
    pub unknown: UnknownFields,
    /// The sandbox that it works in, where that is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<SandboxKey>,
    /// The generation of the sandbox that the agent's session is in; none: the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_generation: Option<u32>,
    /// Somebody wants its turns in the common checkout of a shared sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_common: bool,
    /// The workspace of its own in a shared sandbox, once that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<OwnWorkspace>,
    /// Its sandbox: a record of its own, read and written with this one.
    #[serde(skip)]
    pub sandbox: SandboxRecord,
    /// What this delivery has seen; never stored.
    #[serde(skip)]
    pub observed: Observations,
}

/// A run whose turn has ended without having seen its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StrayRun {
    /// Generation of the sandbox.
    pub generation: u32,
    /// The agent's session that the prompt was given to.
    pub agent_session: AgentSessionId,
    /// Message ids of its prompts, the newest last.
    pub messages: Vec<String>,
}

/// A workspace of a thread's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnWorkspace {
    /// Generation of the sandbox that it is in.
    pub generation: u32,
    /// Its absolute path in the sandbox.
    pub directory: String,
    /// The branch that it is on, where it is a worktree of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A name that a sandbox gets, or is given up: written in one piece with the records, on condition that nobody else has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameWrite {
    /// The name.
    pub name: SandboxName,
    /// Whose it is.
    pub sandbox: SandboxKey,
    /// It is given up.
    pub released: bool,
}

/// What the agent of a sandbox was found to offer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckedOptions {
    /// The generation whose agent was asked.
    pub generation: u32,
    /// What a turn ran with there.
    pub selection: Selection,
}

/// A prompt from acceptance to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// Who asked for it.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What it runs with: judged once, so that every delivery goes on with the same.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
    /// How far it is, with what the agent may have of it.
    #[serde(flatten)]
    pub stage: Stage,
    /// Where its present card stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// Parts of the answer that stand in the thread, by index.
    #[serde(default)]
    pub posted: Vec<PostRef>,
    /// How many parts the answer has, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// The prompt begins with a digest of the thread so far.
    #[serde(default)]
    pub with_digest: bool,
    /// Questions and permissions of this turn.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// Deliveries of the message that failed.
    #[serde(default)]
    pub attempts: u32,
    /// A delivery has the turn in hand. Still so when the next one comes: that one never gave its message back, unless it
    /// left a word that it did ([`Parked`]), as those do that only look at the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_hand: bool,
    /// Its message was given back to wait for somebody else who works with the sandbox, and not because something failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Times that the chat refused to be told the end.
    #[serde(default)]
    pub refusals: u32,
    /// Deliveries that followed the run to their time's end, where every one of them follows.
    #[serde(default)]
    pub windows: u32,
    /// Times that the prompt was sent again by ourselves.
    #[serde(default)]
    pub resends: u32,
    /// Restarts of the server in this turn.
    #[serde(default)]
    pub server_restarts: u32,
    /// Who pressed Stop, once that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Person>,
    /// What went wrong last, for the report when it keeps going wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Since when the provider has not answered at all, while that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_since_ms: Option<Ms>,
    /// The same of the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_outage_since_ms: Option<Ms>,
    /// Why the run is being aborted by ourselves, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborting: Option<String>,
    /// Prompts that waited behind this turn and were sent into its run, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Steered>,
    /// Since when its present card stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_since_ms: Option<Ms>,
    /// How often a new card took the place of one that had become too old.
    #[serde(default)]
    pub rolls: u32,
    /// The card before the present one, until it says where it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_card: Option<PostRef>,
    /// Who asked was called, because there is no answer that would have done so.
    #[serde(default)]
    pub called: bool,
    /// Files that it shows at its end, once they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    /// How many of them are dealt with, in their order.
    #[serde(default)]
    pub artifacts_done: usize,
    /// Files that it could not show, a line each, until the thread has been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown: Vec<String>,
    /// Who held its run let go of it before its time, because other work waited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
}

impl Turn {
    /// Whether its run has gone on for so long that nobody holds it any more, or was let go of.
    #[must_use]
    pub fn is_only_looked_at(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        self.stage.is_running() && !self.is_wanted_over() && !self.is_held(limits, now_ms)
    }

    /// Whether the time for which its run is held goes on, and nobody has let go of it.
    #[must_use]
    pub fn is_held(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        let held = |prompted: &Prompted| now_ms < limits.held_until(prompted.at_ms);
        !self.let_go && self.stage.prompted().is_some_and(held)
    }

    /// Whether somebody, or a bound, wants its run to end.
    #[must_use]
    pub const fn is_wanted_over(&self) -> bool {
        self.cancelled_by.is_some() || self.aborting.is_some()
    }

    /// What its present card is called.
    #[must_use]
    pub const fn card_kind(&self) -> crate::base::ids::PostKind {
        card_kind(self.rolls)
    }

    /// Whether this is its message, or that of a prompt that was sent into it.
    #[must_use]
    pub fn covers(&self, id: &TurnId) -> bool {
        self.id == *id || self.steered.iter().any(|steered| steered.turn == *id)
    }

    /// Message ids of all its prompts that the agent may have, the newest last.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let steered = self.steered.iter().map(|steered| &steered.ids);
        let ids = self.stage.ids().into_iter().chain(steered);
        ids.map(|ids| ids.message.clone()).collect()
    }

    /// Message ids of the prompts that were sent into the run, as far as the agent has them.
    #[must_use]
    pub fn further(&self) -> Vec<String> {
        let sent = self.steered.iter().filter(|steered| steered.sent);
        sent.map(|steered| steered.ids.message.clone()).collect()
    }
}

/// A prompt that was sent into the run of the turn before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Steered {
    /// The id of the message that asked for it.
    pub turn: TurnId,
    /// What was asked, and by whom.
    pub prompt: Prompt,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Who wanted it sent at once.
    pub wanted_by: Person,
    /// Its ids at OpenCode, minted with this intent.
    pub ids: PromptIds,
    /// Where its card stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// The agent has it.
    #[serde(default)]
    pub sent: bool,
    /// Its card says that it was sent.
    #[serde(default)]
    pub shown: bool,
}

/// A turn that has ended, as far as a repeat needs it. The rest is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndedTurn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// How the turn ended.
    pub outcome: Outcome,
    /// When that was.
    pub at_ms: Ms,
}

/// What this delivery has seen so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Observations {
    /// The sandbox, when last looked at.
    pub sandbox: Option<SandboxState>,
    /// Who did not find the sandbox, until that is believed or refuted.
    pub missing: Option<Missing>,
    /// When the create of the present generation was answered.
    pub created_ms: Option<Ms>,
    /// This delivery found another message's lease over, for whose end the ones before had waited.
    pub after_lease: bool,
    /// A start was asked for in this delivery.
    pub start_asked: bool,
    /// The server answered as healthy.
    pub healthy: bool,
    /// The server came up but never became healthy: end it before the next try.
    pub restart_server: bool,
    /// The OpenCode session is known to exist.
    pub agent_session: bool,
    /// Posts beside the turn's own card and answer that stand, or are not tried again in this delivery.
    pub asides_over: BTreeSet<Aside>,
    /// A new card that could not be posted is not tried again before this time.
    pub card_retry_ms: Option<Ms>,
    /// Waiting prompts whose wish to be sent at once was turned down.
    pub not_steered: Vec<TurnId>,
    /// What the card was last made to say.
    pub card_state: Option<CardState>,
    /// What the agent was found to know of the prompt that may have been sent.
    pub found: Option<PromptState>,
    /// The run that no turn follows any more could not be ended in this delivery.
    pub run_left: bool,
    /// Asks that are no longer open at OpenCode, with the decision where one was made in the thread.
    pub closed_asks: BTreeMap<AskId, Option<Settlement>>,
    /// The repository is in the sandbox.
    pub cloned: bool,
    /// The thread was told what the clone left out, where there was something.
    pub left_out_told: bool,
    /// What the agent offers; empty where it did not say.
    pub options: Option<AgentOptions>,
    /// The attachments are in the sandbox; the words name them to the agent.
    pub attached: Option<String>,
    /// Those of them that the model is to see.
    pub images: Vec<Image>,
    /// Attachments that could not be had, a line each, until the thread has been told.
    pub missed: Vec<String>,
    /// The answer of the finished run.
    pub answer: Option<Answer>,
    /// What the turn changed in the files, once that was read.
    pub changes: Option<Changes>,
    /// There is nothing to be shown, or it could not be listed and is left to the next turn.
    pub nothing_to_show: bool,
    /// The run was told to end.
    pub abort_sent: bool,
    /// The final card stands.
    pub final_card: bool,
    /// What stood in the way, for the person who wanted something of the sandbox.
    pub trouble: Option<String>,
    /// How often the server did not answer while no turn was there to count it, or the run of several prompts was lost from sight.
    pub downs: u32,
    /// The thread has been told what was to be told, or cannot be.
    pub noticed: bool,
    /// A stop or delete was asked for at this time.
    pub stop_asked_ms: Option<Ms>,
    /// Sandboxes that the tenant has.
    pub tenant_sandboxes: Option<u32>,
    /// What a new agent session is told about the thread so far.
    pub digest: Option<String>,
    /// Entries of the ledger that are written with the next save.
    pub entries: Vec<Entry>,
    /// Names of sandboxes that are written with the next save.
    pub names: Vec<NameWrite>,
    /// Who has the name that was looked up; nobody.
    pub name_found: Option<Option<SandboxKey>>,
    /// What the record of the agent's sandbox said to this one, which its agent works in by tools.
    pub agent_seen: Option<AgentSeen>,
    /// The sandbox that the thread leaves with the next save, whose record is still the one at hand.
    pub left: Option<SandboxKey>,
    /// Threads that have been told what became of their sandbox, or cannot be.
    pub told: BTreeSet<ThreadKey>,
    /// How the snapshot that was asked for stands.
    pub snapshot: Option<SnapshotSeen>,
    /// The message in hand is a turn that the ledger knows as ended.
    pub in_ledger: bool,
    /// What the delivery before left.
    pub parked: Option<Parked>,
    /// What was seen of the run that goes on.
    pub seen: Seen,
    /// A turn whose end the chat did not take, for good: its record says how it ended, its thread does not.
    pub untold: Option<TurnId>,
    /// The thread cannot be written in: the end is kept, with these words.
    pub closed: Option<String>,
    /// What was kept is not tried again in this delivery.
    pub untold_tried: bool,
}

impl Observations {
    /// What was seen of a sandbox says nothing of the one after it, nor of itself once somebody has stopped or deleted it.
    pub fn forget_sandbox(&mut self) {
        self.sandbox = None;
        self.missing = None;
        self.created_ms = None;
        self.start_asked = false;
        self.healthy = false;
        self.agent_session = false;
        self.cloned = false;
        self.tenant_sandboxes = None;
    }
}

/// Who did not find a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// A look at it, or a call that ends with one.
    Look,
    /// A call that needs it. It may have been the first sending of a prompt.
    Call {
        /// It was that.
        first_sending: bool,
    },
    /// Who was to end a run that no turn follows any more.
    EndRun,
}

/// A post beside the turn's own card and answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aside {
    /// The card of a prompt that was sent into the run.
    Steered(TurnId),
    /// The card before the present one.
    OldCard,
    /// The line that calls who asked.
    Call,
    /// An ask, in a thread that cannot be written in.
    Ask(AskId),
}

/// What the control lane wrote beside the record: it may conflict with nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ControlFlags {
    /// Who cancelled which turn (by turn id).
    pub cancelled: BTreeMap<TurnId, Person>,
    /// How asks were settled (by ask id).
    pub settled: BTreeMap<AskId, Settlement>,
    /// Prompts that wait behind the present turn (by turn id).
    pub queued: BTreeMap<TurnId, Queued>,
    /// Who wants which of them sent into the present turn (by turn id).
    pub now: BTreeMap<TurnId, Person>,
    /// Who stopped everything, and up to when (by the id of that control message). It cancels prompts that nobody has
    /// announced yet, too.
    pub stopped_all: BTreeMap<TurnId, StoppedAll>,
}

/// A Stop all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoppedAll {
    /// Who wanted it.
    pub by: Person,
    /// What was accepted up to then is cancelled.
    pub until_ms: Ms,
}

impl Turn {
    /// The model that it runs with; `configured` counts for turns that began before models could be chosen.
    #[must_use]
    pub fn model<'a>(&'a self, configured: &'a str) -> &'a str {
        self.selection.model.as_deref().unwrap_or(configured)
    }
}

impl ControlFlags {
    /// Those that this record makes superfluous: of turns that have begun or ended, and of asks whose turn is over.
    /// What still waits in the queue keeps its control flags.
    #[must_use]
    pub fn spent(&self, session: &Session) -> Self {
        let ended = |id: &TurnId| session.ended.iter().any(|turn| turn.id == *id);
        let present = |id: &TurnId| session.turn.as_ref().is_some_and(|turn| turn.covers(id));
        let mut spent = self.clone();
        spent.cancelled.retain(|turn, _| ended(turn));
        spent.queued.retain(|turn, _| ended(turn) || present(turn));
        spent.now.retain(|turn, _| ended(turn) || present(turn));
        let begun_ms = session.turn.as_ref().map_or(0, |turn| turn.accepted_at_ms);
        spent.stopped_all.retain(|_, all| all.until_ms < begun_ms);
        if session.turn.is_some() {
            spent.settled.clear();
        }
        spent
    }

    /// Those that are left when these are removed.
    #[must_use]
    pub fn without(mut self, removed: &Self) -> Self {
        self.cancelled.retain(|turn, _| !removed.cancelled.contains_key(turn));
        self.settled.retain(|ask, _| !removed.settled.contains_key(ask));
        self.queued.retain(|turn, _| !removed.queued.contains_key(turn));
        self.now.retain(|turn, _| !removed.now.contains_key(turn));
        self.stopped_all.retain(|id, _| !removed.stopped_all.contains_key(id));
        self
    }

    /// Who cancelled the turn that was accepted at this time, by a Stop of its own or by a Stop all.
    #[must_use]
    pub fn cancelled_by(&self, turn: &TurnId, accepted_at_ms: Ms) -> Option<&Person> {
        let all = self.stopped_all.values();
        let all = all.filter(|all| accepted_at_ms <= all.until_ms);
        self.cancelled.get(turn).or_else(|| all.map(|all| &all.by).next())
    }

    /// Whether a person has said something that is not among the others: a stop, a decision, or the wish that a waiting prompt
    /// is sent at once.
    #[must_use]
    pub fn ask_for_more_than(&self, others: &Self) -> bool {
        self.cancelled.keys().any(|turn| !others.cancelled.contains_key(turn))
            || self.settled.keys().any(|ask| !others.settled.contains_key(ask))
            || self.now.keys().any(|turn| !others.now.contains_key(turn))
            || self.stopped_all.keys().any(|id| !others.stopped_all.contains_key(id))
    }

    /// The prompts that wait behind the present turn and will be worked on, oldest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<(&TurnId, &Queued)> {
        let wait = |(turn, one): &(&TurnId, &Queued)| {
            !one.refused && self.cancelled_by(turn, one.accepted_at_ms).is_none()
        };
        let mut waiting: Vec<_> = self.queued.iter().filter(wait).collect();
        waiting.sort_by_key(|(_, one)| one.accepted_at_ms);
        waiting
    }
}

/// A prompt that waits in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queued {
    /// Who asked for it.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Its card, once it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// More prompts than the thread may have were waiting when it came: it will not be worked on.
    #[serde(default)]
    pub refused: bool,
    /// What is asked, where it is small enough to be kept here: so it can be sent into the turn before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<Prompt>>,
}

impl Session {
    /// The sandbox that its turns work in.
    #[must_use]
    pub fn sandbox_key(&self) -> SandboxKey {
        self.link.clone().unwrap_or_else(|| self.thread.sandbox())
    }

    /// The sandbox whose record this one holds: while the thread is on its way to another one, still the one before.
    #[must_use]
    pub fn sandbox_at_hand(&self) -> SandboxKey {
        let left = self.observed.left.clone();
        left.unwrap_or_else(|| self.sandbox_key())
    }

    /// Whether its turns work in the common checkout: those of the thread that the sandbox was made for, of one that somebody
    /// wants there, and of all where there is no repository that each could have a worktree of, or where the agent works in
    /// another sandbox, in whose one checkout all tools work.
    #[must_use]
    pub fn works_in_common(&self) -> bool {
        let has_worktrees = self.sandbox.repo.is_some() && !self.sandbox.works_elsewhere();
        self.link.is_none() || self.in_common || !has_worktrees
    }

    /// Where its turns work; none as long as its own workspace has to be made ready.
    #[must_use]
    pub fn workspace(&self) -> Option<Workspace> {
        if self.works_in_common() {
            return Some(Workspace::Common);
        }
        let own = self.workspace.as_ref()?;
        let is_here = own.generation == self.sandbox.generation;
        is_here.then(|| Workspace::own(&own.directory)).flatten()
    }

    /// What the present turn would leave at work if it ended now.
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
            // The one that was given the prompt, whatever is known of it since.
            agent_session: self.briefed.clone()?,
            messages: turn.messages(),
        })
    }

    /// The record of a thread that has had no sandbox yet. Version 0 means: not stored.
    #[must_use]
    pub fn new(thread: ThreadKey, now_ms: Ms) -> Self {
        Self {
            thread,
            version: 0,
            agent_session: None,
            turn: None,
            stray: None,
            ended: Vec::new(),
            due_at_ms: None,
            briefed: None,
            fresh_since_ms: 0,
            checked_options: None,
            agent: None,
            shown: Vec::new(),
            untold: Vec::new(),
            link: None,
            agent_generation: None,
            in_common: false,
            workspace: None,
            unknown: UnknownFields::default(),
            sandbox: SandboxRecord::new(now_ms),
            observed: Observations::default(),
        }
    }

    /// When the sweeper should look next, at the thread or at its sandbox.
    #[must_use]
    pub fn due_at_ms(&self) -> Option<Ms> {
        self.due_at_ms.or(self.sandbox.due_at_ms)
    }

    /// Whether what is stored of the thread itself is equal.
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

    /// The stored form, without that of its sandbox.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn encode(&self) -> String {
        schema::write(Shape::Record, self, &self.unknown).expect("every field has a JSON form")
    }

    /// Reads the stored form of a thread's record and, where there is one, of its sandbox's. Unknown fields are kept, so
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
    fn a_record_survives_the_round_trip_without_what_was_only_seen() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let mut session = Session::new(thread, 5);
        session.observed.healthy = true;
        let read = Session::decode(&session.encode(), None).expect("valid");
        assert!(read.same_record(&session));
        assert!(!read.observed.healthy);
    }

    #[test]
    fn a_field_of_a_newer_worker_is_still_there_when_an_older_one_has_written_the_record() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let text = Session::new(thread, 5).encode().replacen('{', r#"{"from_the_future":1,"#, 1);
        let mut session = Session::decode(&text, None).expect("it can be read");
        session.fresh_since_ms = 7;
        let written: serde_json::Value = serde_json::from_str(&session.encode()).expect("JSON");
        assert_eq!(
            (&written["from_the_future"], &written["fresh_since_ms"]),
            (&1.into(), &7.into())
        );
    }
}
