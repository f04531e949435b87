//! Observations of one delivery: kept in memory beside the record, and never stored.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{AskId, Ms, SandboxKey, SandboxName, ThreadKey, TurnId};
use crate::base::person::{Membership, Person};
use crate::records::ask::AskDecision;
use crate::records::card::CardState;
use crate::records::carried::{FoundRepository, LeftOut};
use crate::records::changes::Changes;
use crate::records::checks::Check;
use crate::records::drafted_review::ReviewRead;
use crate::records::given_pull::FoundPull;
use crate::records::images::Image;
use crate::records::ledger::LedgerEntry;
use crate::records::parked::{Parked, Seen};
use crate::records::publication::{Outgoing, Presser, PullRequestSeen, PullRequestState};
use crate::records::pull_request::WatchedPullRequest;
use crate::records::run::{PromptState, RunAnswer};
use crate::records::sandbox::{SandboxState, SnapshotSeen};
use crate::records::tool_sandbox::AgentSeen;
use crate::records::watch::PullRequestCard;
use crate::tenant::budgets::{BudgetScope, BudgetWrite, MicroUsd};
use crate::tenant::catalogue::AgentOptions;

/// Observations of this delivery so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Observations {
    /// Checkouts that could not be moved, or hold work of their own, by the repositories beside the thread's.
    pub stays: BTreeMap<Option<u64>, CheckoutKeptReason>,
    /// The repository beside the thread's that the step in hand is about; `None`: the thread's own.
    pub beside: Option<u64>,
    /// The sandbox, at its provider and in the table.
    pub sandbox: SandboxObserved,
    /// The agent and its run.
    pub agent: AgentObserved,
    /// The chat: posts that were made, or could not be.
    pub chat: ChatObserved,
    /// The forge: what could be published, and what was.
    pub forge: ForgeObserved,
    /// The watched pull request.
    pub watch: WatchObserved,
    /// What an earlier delivery of its message saw that the turn on record had spent.
    pub spent_before: Option<MicroUsd>,
    /// Stored sums that left less than a turn wanted to set aside.
    pub used: BTreeMap<BudgetScope, MicroUsd>,
    /// What the next save writes besides the records.
    pub writes: PendingWrites,
    /// State that the previous delivery left.
    pub parked: Option<Parked>,
    /// The message in hand is a turn that the ledger knows as ended.
    pub in_ledger: bool,
    /// The trouble, for the person who requested an operation on the sandbox.
    pub trouble: Option<String>,
}

/// Observations of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SandboxObserved {
    /// Its state, as last observed.
    pub state: Option<SandboxState>,
    /// The call or observation that did not find it, until that is believed or refuted.
    pub missing: Option<Missing>,
    /// When the create of the present generation was answered.
    pub created_ms: Option<Ms>,
    /// This delivery found another message's lease expired, after earlier deliveries had waited for its end.
    pub after_lease: bool,
    /// This delivery has requested a start.
    pub start_asked: bool,
    /// When a stop or delete was requested.
    pub stop_asked_ms: Option<Ms>,
    /// Number of the tenant's sandboxes.
    pub of_tenant: Option<u32>,
    /// The forge's answer about the repository to bring into it.
    pub found_repository: Option<FoundRepository>,
    /// The repositories that are still to be carried beside it, as `owner/name`; `None` before that begins.
    pub to_bring: Option<Vec<String>>,
    /// What the carried repository leaves out, while its submodules are brought: the named ones are still to come.
    pub bringing: Option<LeftOut>,
    /// The repository is in it.
    pub cloned: bool,
    /// Its project.
    pub project: ProjectObserved,
    /// State of the requested snapshot.
    pub snapshot: Option<SnapshotSeen>,
    /// The sandbox that has the name that was looked up; `Some(None)` if no sandbox has it.
    pub name_found: Option<Option<SandboxKey>>,
    /// For a tool sandbox: what the record of its agent's sandbox says.
    pub agent_seen: Option<AgentSeen>,
    /// The sandbox that the thread leaves with the next save; its record is still the one at hand.
    pub left: Option<SandboxKey>,
}

/// Observations of the project in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProjectObserved {
    /// Its repository was brought into the files of a prebuild.
    pub is_prebuilt: bool,
    /// Its set-up was looked at.
    pub is_set_up_seen: bool,
    /// Its services and start steps were started.
    pub is_started: bool,
    /// What of them failed is not what failed before.
    pub has_news: bool,
    /// A server was started with the project's secrets.
    pub are_secrets_given: bool,
}

/// Observations of the agent and its run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AgentObserved {
    /// The server is healthy.
    pub healthy: bool,
    /// The server came up but never became healthy: stop it before the next try.
    pub restart_server: bool,
    /// How often the server did not answer while there was no turn to count it, or the run of several prompts was out
    /// of sight.
    pub downs: u32,
    /// The agent session is known to exist.
    pub session: bool,
    /// What the agent offers; empty if it did not say.
    pub options: Option<AgentOptions>,
    /// The attachments are in the sandbox; this text names them to the agent.
    pub attached: Option<String>,
    /// Attached images that are passed to the model.
    pub images: Vec<Image>,
    /// The digest of the thread for a new agent session.
    pub digest: Option<String>,
    /// State of the prompt that may have been sent.
    pub found: Option<PromptState>,
    /// State of the run that goes on.
    pub seen: Seen,
    /// Asks that are no longer open at the agent, with the decision if one was made in the thread.
    pub closed_asks: BTreeMap<AskId, Option<AskDecision>>,
    /// The run was told to end.
    pub abort_sent: bool,
    /// The stray run could not be ended in this delivery.
    pub run_left: bool,
    /// The answer of the finished run.
    pub answer: Option<RunAnswer>,
    /// The turn's file changes, once read.
    pub changes: Option<Changes>,
}

/// Why the checkout stays where it is, although the pull request of its work has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckoutKeptReason {
    /// It could not be moved now.
    Failed,
    /// It holds more than was pushed.
    HasWork,
}

/// Observations on the way to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ForgeObserved {
    /// What a push would bring.
    pub outgoing: Option<Outgoing>,
    /// The branch's newest pull request; `Some(None)` if it has none.
    pub pull_request: Option<Option<PullRequestSeen>>,
    /// What the thread's last turns asked and answered.
    pub recalled: Option<Vec<LedgerEntry>>,
    /// The account of the person who pressed.
    pub presser: Option<Presser>,
    /// The pull request that the sandbox works from, as it is now.
    pub given_pull: Option<FoundPull>,
    /// The review that the agent wrote.
    pub review: Option<ReviewRead>,
    /// Its whole text is posted as a file.
    pub is_review_text_shown: bool,
    /// The sandbox has other files than those that were shown.
    pub stale: bool,
    /// The proposal is posted.
    pub is_shown: bool,
    /// What the thread is told at the end.
    pub ending: Option<String>,
    /// A person's act is done, and nothing has to be said about it.
    pub is_acted: bool,
}

/// The watched pull request of this delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WatchObserved {
    /// The watched pull request was polled in this delivery, or could not be.
    pub is_polled: bool,
    /// What that poll saw.
    pub watched: Option<WatchedPullRequest>,
    /// What a fix could be for, by that poll.
    pub to_fix: Option<ToFix>,
    /// Branches that were put beside the checkout, or could not be.
    pub brought: BTreeMap<String, bool>,
    /// What failed checks say.
    pub failures: Option<String>,
    /// Messages that were queued, by id.
    pub queued: BTreeSet<TurnId>,
    /// People who have connected accounts, by the account.
    pub people: BTreeMap<u64, Option<(Person, Membership)>>,
    /// Tasks from the forge of which the thread was told.
    pub told_tasks: BTreeSet<TurnId>,
    /// A response below the pull request failed in this delivery.
    pub is_response_tried: bool,
    /// The card by that poll.
    pub card: Option<PullRequestCard>,
    /// When the next poll is due once the card is shown.
    pub next_at_ms: Option<Ms>,
    /// The card is shown, or could not be.
    pub is_card_tried: bool,
    /// The first card may have been posted by an earlier delivery.
    pub is_card_doubted: bool,
    /// How the watched pull request has ended.
    pub ended: Option<PullRequestState>,
    /// The thread could not be told that.
    pub is_end_tried: bool,
    /// The thread was told that, or is not told any more.
    pub is_end_told: bool,
}

/// What a fix could be for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToFix {
    /// Names of all that no fix was begun for.
    pub items: Vec<String>,
    /// The failed checks, if checks have settled red.
    pub failed: Vec<Check>,
}

/// Posts of this delivery, made or failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ChatObserved {
    /// The state that the card last showed.
    pub card_state: Option<CardState>,
    /// Time before which a new card that could not be posted is not tried again.
    pub card_retry_ms: Option<Ms>,
    /// The final card is posted.
    pub final_card: bool,
    /// Posts beside the turn's own card and answer that are posted, or are not tried again in this delivery.
    pub asides_over: BTreeSet<Aside>,
    /// Waiting prompts whose "Send now" was rejected.
    pub not_steered: Vec<TurnId>,
    /// The thread was told what the clone left out, if anything.
    pub left_out_told: bool,
    /// Attachments that could not be fetched, one line each, until the thread has been told.
    pub missed: Vec<String>,
    /// The turn has no files to show, or they could not be listed and are left to the next turn.
    pub nothing_to_show: bool,
    /// The thread has been sent its notice, or cannot be.
    pub noticed: bool,
    /// Threads that have been told what happened to their sandbox, or cannot be.
    pub told: BTreeSet<ThreadKey>,
    /// A turn whose end the chat refused for good: it is in the record, but not in the thread.
    pub untold: Option<TurnId>,
    /// The chat did not take a part of the answer, for this reason: a note ends the answer instead.
    pub refused_part: Option<String>,
    /// The thread cannot be written in, for this reason: the end of the turn is kept.
    pub closed: Option<String>,
    /// Kept posts are not tried again in this delivery.
    pub untold_tried: bool,
}

/// What the next save writes besides the records.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PendingWrites {
    /// Ledger entries.
    pub entries: Vec<LedgerEntry>,
    /// Names of sandboxes.
    pub names: Vec<NameWrite>,
    /// Pull requests whose watch begins or ends.
    pub watches: Vec<WatchWrite>,
    /// Stored sums of what was spent and set aside.
    pub budgets: Vec<BudgetWrite>,
}

/// A pull request that leads to this thread from now on, or no more: written in the same transaction as the records, on
/// condition that it leads to no other thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatchWrite {
    /// The forge's id of the repository.
    pub repository: u64,
    /// Short name of its branch.
    pub branch: String,
    /// Its number.
    pub number: u64,
    /// The watch has ended.
    pub has_ended: bool,
}

/// A sandbox name to take or release: written in the same transaction as the records, on condition that no other
/// sandbox has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameWrite {
    /// The name.
    pub name: SandboxName,
    /// The sandbox.
    pub sandbox: SandboxKey,
    /// The name is released.
    pub released: bool,
}

impl Observations {
    /// Forgets the sandbox's observations: they say nothing of the next sandbox, nor of this one after a stop or
    /// delete.
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

/// The call or observation that did not find a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// An observation, or a call that ends with one.
    Look,
    /// A call that needs the sandbox. It may have been the first sending of a prompt.
    Call {
        /// It was a first sending.
        first_sending: bool,
    },
    /// The call that was to end a stray run.
    EndRun,
}

/// A post beside the turn's own card and answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aside {
    /// The card of a prompt that was sent into the run.
    Steered(TurnId),
    /// The previous card.
    OldCard,
    /// The line that mentions the requesters.
    Call,
    /// An ask, in a thread that cannot be written in.
    Ask(AskId),
}
