//! What happened: a message was delivered, or an effect ended.

use crate::base::failure::Failure;
use crate::base::ids::{AgentSessionId, AskId, Ms, PostRef, SandboxKey, ThreadKey, TurnId};
use crate::base::person::{Membership, Person};
use crate::protocol::effect::Effect;
use crate::records::artifacts::Artifact;
use crate::records::ask::{About, AskDecision};
use crate::records::carried::{Carried, FoundRepository, LeftOut};
use crate::records::changes::Changes;
use crate::records::drafted_review::{ReviewEnd, ReviewRead};
use crate::records::flags::Queued;
use crate::records::given_pull::FoundPull;
use crate::records::given_secrets::GivenSecrets;
use crate::records::images::Image;
use crate::records::ledger::LedgerEntry;
use crate::records::parked::Seen;
use crate::records::prebuild::Prebuild;
use crate::records::publication::{ActEnd, Opened, Outgoing, Presser, PullRequestSeen, PushEnd};
use crate::records::pull_request::WatchedPullRequest;
use crate::records::recipe::FoundRecipe;
use crate::records::run::{PromptState, RunAnswer};
use crate::records::sandbox::{SandboxState, SnapshotSeen};
use crate::records::set_up::{FailedStep, SetUpSeen};
use crate::records::tool_sandbox::AgentSeen;
use crate::tenant::catalogue::AgentOptions;

/// The input of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, and only until something is decided on it"
)]
pub enum Cause {
    /// The message in the context has been delivered.
    Delivered,
    /// An effect has ended.
    Done(Effect, Event),
    /// Two effects that were performed at the same time have ended.
    Both {
        /// The effect that the thread waited for.
        work: (Effect, Event),
        /// The card beside it.
        card: (Effect, Event),
    },
}

/// Outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The sandbox was observed.
    Observed(SandboxState),
    /// Number of the tenant's sandboxes.
    Counted(u32),
    /// What the agent offers; empty if it did not say.
    OptionsListed(AgentOptions),
    /// The ledger's entries for the requested turns.
    Recalled(Vec<LedgerEntry>),
    /// The sandbox that has the name; `None` if no sandbox has it.
    NameFound(Option<SandboxKey>),
    /// The deletion of the tool sandbox has been requested, or there is none.
    ToolsEnded,
    /// What the record of the agent's sandbox says to its tool sandbox.
    AgentFound(AgentSeen),
    /// The prebuild for the sandbox; `None`: there is none.
    PrebuildFound(Option<Prebuild>),
    /// The thread has been told, or cannot be.
    Told {
        /// The thread.
        thread: ThreadKey,
    },
    /// The thread's own workspace is ready.
    WorkspaceReady {
        /// Its absolute path in the sandbox.
        directory: String,
        /// Its branch, if it is a worktree.
        branch: Option<String>,
    },
    /// There is no workspace, and a retry cannot help.
    NoWorkspace {
        /// Why, and what to do; shown to people.
        why: String,
    },
    /// State of the requested snapshot.
    SnapshotSeen {
        /// Its name at the provider.
        name: String,
        /// Its state.
        seen: SnapshotSeen,
    },
    /// The snapshot no longer exists.
    SnapshotDeleted {
        /// Its name at the provider.
        name: String,
    },
    /// The wake-up has been requested.
    Woken,
    /// The repository has been cloned to where the agent works.
    Cloned {
        /// What the clone left out.
        left_out: LeftOut,
    },
    /// How the project is made ready.
    RecipeRead(FoundRecipe),
    /// State of the set-up.
    SetUpSeen(SetUpSeen),
    /// Services and start steps were started, but for these.
    ProjectStarted {
        /// What failed.
        failed: Vec<FailedStep>,
    },
    /// The forge's answer about a repository.
    RepositoryFound(FoundRepository),
    /// The repository has been carried to where the agent works.
    Carried {
        /// The repository.
        carried: Carried,
        /// What is not there.
        left_out: Box<LeftOut>,
    },
    /// What a push would bring.
    OutgoingRead(Outgoing),
    /// End of a push.
    Pushed(PushEnd),
    /// The branch's newest pull request; `None` if it has none.
    PullRequestSeen(Option<PullRequestSeen>),
    /// The branch is beside the checkout.
    Brought {
        /// Its short name.
        branch: String,
        /// The sandbox could take it.
        is_there: bool,
    },
    /// The checkout is at this commit of the branch; `None`: it holds other work, and is as it was.
    CheckoutMoved {
        /// The commit.
        base: Option<String>,
    },
    /// What failed checks say, bounded.
    FailuresRead(String),
    /// The messages are queued.
    Queued,
    /// Who has connected this account, and how they belong to the channel; `None`: nobody of the thread's place.
    PersonFound {
        /// The forge's id of the account.
        account: u64,
        /// The person.
        found: Option<(Person, Membership)>,
    },
    /// It was done below the pull request, or the forge refuses it.
    Responded,
    /// What a poll saw of the pull request.
    PullRequestPolled(WatchedPullRequest),
    /// How a person's act on the pull request ended.
    PullRequestActed(ActEnd),
    /// The pull request with that number, as it is now.
    GivenPullFound(FoundPull),
    /// The review that the agent has written.
    ReviewRead(ReviewRead),
    /// End of the call that posts a review.
    ReviewPosted(ReviewEnd),
    /// Whether the presser's own account may push.
    PresserSeen(Presser),
    /// End of the call that opens a pull request.
    Opened(Opened),
    /// The repository was not cloned, and a retry cannot help.
    NotCloned {
        /// The reason.
        why: NotCloned,
    },
    /// The server is healthy. Where it was to be made sure of, it has the stack's model keys.
    Healthy,
    /// The server is healthy, and has a capped model key.
    Capped {
        /// When that key ends.
        until_ms: Ms,
    },
    /// The server is healthy, and was started with a project's secrets.
    Started {
        /// When its capped model key ends; `None`: it has the stack's keys.
        capped_until_ms: Option<Ms>,
        /// The secrets.
        secrets: GivenSecrets,
    },
    /// The new sandbox sends its secrets' placeholders unreplaced, and always will.
    SecretsNotPutIn,
    /// The agent session to use.
    AgentSession {
        /// The session's id at the agent.
        id: AgentSessionId,
    },
    /// The attachments that could be fetched are in the sandbox.
    Attached {
        /// The text about them for the agent.
        note: String,
        /// Attachments that could not be fetched, one line each with the reason; shown in the thread.
        missed: Vec<String>,
        /// Attached images that are passed to the model.
        images: Vec<Image>,
    },
    /// State of a prompt that may have been sent.
    PromptFound(PromptState),
    /// The agent has the prompt.
    Prompted,
    /// The run is over.
    Finished(RunAnswer),
    /// The follow time ended before the run did, or a poll found the run still going.
    StillRunning(Seen),
    /// The run goes on, but other work waits and no worker is free for it.
    OthersWait(Seen),
    /// A cancel flag for this turn is set beside the record.
    CancelSeen {
        /// The person who pressed Stop; shown at the end.
        by: Person,
    },
    /// Somebody wants a waiting prompt sent into the current run.
    SteerSeen {
        /// The waiting turn.
        turn: TurnId,
        /// Its entry beside the record.
        queued: Queued,
        /// The person who pressed the button.
        by: Person,
    },
    /// The card could not be edited in place, and has been posted anew here.
    CardMoved(PostRef),
    /// The agent waits for a person.
    Asked {
        /// The ask's id at OpenCode.
        id: AskId,
        /// What the agent asks.
        about: About,
    },
    /// An ask is no longer open at OpenCode.
    AskClosed {
        /// The ask's id at OpenCode.
        id: AskId,
        /// The decision, if it was made in the thread.
        settlement: Option<AskDecision>,
    },
    /// The run was told to end.
    Aborted,
    /// A run that no turn follows any more has ended.
    RunEnded,
    /// An ask was answered with no.
    Declined {
        /// The ask's id at OpenCode.
        id: AskId,
    },
    /// File changes of the turn.
    Changed(Changes),
    /// Files in the folder of files to show, oldest first.
    Listed(Vec<Artifact>),
    /// The file cannot be shown, and a retry cannot help.
    Unshown {
        /// The reason, worded to complete the sentence "it …".
        why: String,
    },
    /// The post is in the thread, here.
    Posted(PostRef),
    /// The prompt was not sent, and the agent certainly has nothing of it.
    NotSent(Failure),
    /// The effect failed; the failure table says what that means.
    Failed(Failure),
}

/// Why a repository could not be cloned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NotCloned {
    /// There is no repository at that address, or it needs credentials; from outside, the two look alike.
    NotFound,
    /// Its host cannot be reached from the sandbox.
    Unreachable,
    /// It took longer than it may.
    TooLong {
        /// The limit in milliseconds.
        within_ms: u64,
    },
    /// The sandbox's disk is too small for it.
    NoRoom,
    /// Its forge does not give it, for this reason.
    Forge {
        /// The reason and what to do, for people.
        why: String,
    },
    /// It is private, and managers have not opened it here.
    NotOpen,
    /// It is private, and the sandbox can be shared.
    PrivateShared,
    /// It has no branch, tag or commit of the name that was given.
    NoRef,
    /// Another reason: git's last output.
    Other {
        /// On one line, shortened.
        seen: String,
    },
}
