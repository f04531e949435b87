//! What one delivery has seen so far: kept beside the record in memory, and never stored.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{AskId, Ms, SandboxKey, SandboxName, ThreadKey, TurnId};
use crate::records::ask::Settlement;
use crate::records::card::CardState;
use crate::records::changes::Changes;
use crate::records::images::Image;
use crate::records::ledger::Entry;
use crate::records::outside::AgentSeen;
use crate::records::parked::{Parked, Seen};
use crate::records::run::{Answer, PromptState};
use crate::records::sandbox::{SandboxState, SnapshotSeen};
use crate::tenant::settings::AgentOptions;

/// What this delivery has seen so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Observations {
    /// Of the sandbox, at its provider and in the table.
    pub sandbox: SandboxObserved,
    /// Of the agent and its run.
    pub agent: AgentObserved,
    /// Of the chat: what it was told, or could not be.
    pub chat: ChatObserved,
    /// What goes along with the next save.
    pub writes: Writes,
    /// What the delivery before left.
    pub parked: Option<Parked>,
    /// The message in hand is a turn that the ledger knows as ended.
    pub in_ledger: bool,
    /// What stood in the way, for the person who wanted something of the sandbox.
    pub trouble: Option<String>,
}

/// What was seen of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SandboxObserved {
    /// Its state, when last looked at.
    pub state: Option<SandboxState>,
    /// Who did not find it, until that is believed or refuted.
    pub missing: Option<Missing>,
    /// When the create of the present generation was answered.
    pub created_ms: Option<Ms>,
    /// This delivery found another message's lease over, for whose end the ones before had waited.
    pub after_lease: bool,
    /// A start was asked for in this delivery.
    pub start_asked: bool,
    /// When a stop or delete was asked for.
    pub stop_asked_ms: Option<Ms>,
    /// How many sandboxes the tenant has.
    pub of_tenant: Option<u32>,
    /// The repository is in it.
    pub cloned: bool,
    /// State of the snapshot that was asked for.
    pub snapshot: Option<SnapshotSeen>,
    /// Whose the name is that was looked up: `Some(None)` is nobody's.
    pub name_found: Option<Option<SandboxKey>>,
    /// For a tool sandbox: what the record of its agent's sandbox says.
    pub agent_seen: Option<AgentSeen>,
    /// The sandbox that the thread leaves with the next save, whose record is still the one at hand.
    pub left: Option<SandboxKey>,
}

/// What was seen of the agent and its run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AgentObserved {
    /// The server answered as healthy.
    pub healthy: bool,
    /// The server came up but never became healthy: end it before the next try.
    pub restart_server: bool,
    /// How often the server did not answer while no turn was there to count it, or the run of several prompts was lost from sight.
    pub downs: u32,
    /// The agent session is known to exist.
    pub session: bool,
    /// What the agent offers; empty where it did not say.
    pub options: Option<AgentOptions>,
    /// The attachments are in the sandbox; the words name them to the agent.
    pub attached: Option<String>,
    /// Those of them that the model is to see.
    pub images: Vec<Image>,
    /// What a new agent session is told about the thread so far.
    pub digest: Option<String>,
    /// What the agent knows of the prompt that may have been sent.
    pub found: Option<PromptState>,
    /// What was seen of the run that goes on.
    pub seen: Seen,
    /// Asks that are no longer open at the agent, with the decision where one was made in the thread.
    pub closed_asks: BTreeMap<AskId, Option<Settlement>>,
    /// The run was told to end.
    pub abort_sent: bool,
    /// The run that no turn follows any more could not be ended in this delivery.
    pub run_left: bool,
    /// The answer of the finished run.
    pub answer: Option<Answer>,
    /// What the turn changed in the files, once that was read.
    pub changes: Option<Changes>,
}

/// What the chat was told in this delivery, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ChatObserved {
    /// What the card was last made to say.
    pub card_state: Option<CardState>,
    /// A new card that could not be posted is not tried again before this time.
    pub card_retry_ms: Option<Ms>,
    /// The final card stands.
    pub final_card: bool,
    /// Posts beside the turn's own card and answer that stand, or are not tried again in this delivery.
    pub asides_over: BTreeSet<Aside>,
    /// Waiting prompts whose wish to be sent at once was turned down.
    pub not_steered: Vec<TurnId>,
    /// The thread was told what the clone left out, where there was something.
    pub left_out_told: bool,
    /// Attachments that could not be had, a line each, until the thread has been told.
    pub missed: Vec<String>,
    /// The turn has no files to show, or they could not be listed and are left to the next turn.
    pub nothing_to_show: bool,
    /// The thread has been told what was to be told, or cannot be.
    pub noticed: bool,
    /// Threads that have been told what became of their sandbox, or cannot be.
    pub told: BTreeSet<ThreadKey>,
    /// A turn whose end the chat did not take, for good: its record says how it ended, its thread does not.
    pub untold: Option<TurnId>,
    /// The thread cannot be written in: the end is kept, with these words.
    pub closed: Option<String>,
    /// What was kept is not tried again in this delivery.
    pub untold_tried: bool,
}

/// What goes along with the next save.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Writes {
    /// Entries of the ledger.
    pub entries: Vec<Entry>,
    /// Names of sandboxes.
    pub names: Vec<NameWrite>,
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

impl Observations {
    /// What was seen of a sandbox says nothing of the one after it, nor of itself once somebody has stopped or deleted it.
    pub fn forget_sandbox(&mut self) {
        self.sandbox = SandboxObserved {
            after_lease: self.sandbox.after_lease,
            stop_asked_ms: self.sandbox.stop_asked_ms,
            snapshot: self.sandbox.snapshot.take(),
            name_found: self.sandbox.name_found.take(),
            agent_seen: self.sandbox.agent_seen,
            left: self.sandbox.left.take(),
            ..SandboxObserved::default()
        };
        (self.agent.healthy, self.agent.session) = (false, false);
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
