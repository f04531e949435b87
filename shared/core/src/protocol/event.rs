//! What happened: the delivery of a message, or the outcome of an effect that was under way, with that effect.

use crate::base::failure::Failure;
use crate::base::ids::{AgentSessionId, AskId, PostRef, SandboxKey, ThreadKey, TurnId};
use crate::base::person::Person;
use crate::protocol::effect::Effect;
use crate::records::artifacts::Artifact;
use crate::records::ask::{About, Settlement};
use crate::records::changes::Changes;
use crate::records::flags::Queued;
use crate::records::images::Image;
use crate::records::ledger::Entry;
use crate::records::outside::AgentSeen;
use crate::records::parked::Seen;
use crate::records::run::{Answer, PromptState};
use crate::records::sandbox::{SandboxState, SnapshotSeen};
use crate::tenant::settings::AgentOptions;

/// What is decided on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, and only until something is decided on it"
)]
pub enum Cause {
    /// The message in the context has been delivered.
    Delivered,
    /// An effect is over.
    Done(Effect, Event),
    /// Two effects that were performed at the same time are over.
    Both {
        /// What the thread waited for.
        work: (Effect, Event),
        /// The card beside it.
        card: (Effect, Event),
    },
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The sandbox was looked at.
    Observed(SandboxState),
    /// The tenant has this many sandboxes.
    Counted(u32),
    /// What the agent offers; empty where it did not say.
    OptionsListed(AgentOptions),
    /// What the ledger holds of the turns that were asked for.
    Recalled(Vec<Entry>),
    /// Whose name that is; nobody's.
    NameFound(Option<SandboxKey>),
    /// The end of the second sandbox has been asked for, or there is none.
    ToolsEnded,
    /// What the record of the agent's sandbox says to the second one.
    AgentFound(AgentSeen),
    /// The thread has been told, or cannot be.
    Told {
        /// Which thread.
        thread: ThreadKey,
    },
    /// The workspace of the thread's own is ready.
    WorkspaceReady {
        /// Its absolute path in the sandbox.
        directory: String,
        /// The branch that it is on, where it is a worktree.
        branch: Option<String>,
    },
    /// There is none, and a repeat cannot help.
    NoWorkspace {
        /// Why, and what to do, in words for people.
        why: String,
    },
    /// How the snapshot that was asked for stands.
    SnapshotSeen {
        /// Its name at the provider.
        name: String,
        /// How it stands.
        seen: SnapshotSeen,
    },
    /// The snapshot is not there any more.
    SnapshotDeleted {
        /// Its name at the provider.
        name: String,
    },
    /// The wake-up has been asked for.
    Woken,
    /// The repository is where the agent works.
    Cloned {
        /// What of it is not.
        left_out: LeftOut,
    },
    /// It is not, and a repeat cannot help.
    NotCloned {
        /// What stood in the way.
        why: NotCloned,
    },
    /// The server answered as healthy.
    Healthy,
    /// What stands for its secrets leaves the new sandbox as it is, and always will.
    SecretsNotPutIn,
    /// The OpenCode session to use.
    AgentSession {
        /// The session's id at the agent.
        id: AgentSessionId,
    },
    /// The attachments are in the sandbox, as far as they could be had.
    Attached {
        /// What the agent is told about them.
        note: String,
        /// Those that could not be had, a line each with the reason, for the people in the thread.
        missed: Vec<String>,
        /// Those of them that the model is to see.
        images: Vec<Image>,
    },
    /// What has become of a prompt that may have been sent.
    PromptFound(PromptState),
    /// The agent has the prompt.
    Prompted,
    /// The run is over.
    Finished(Answer),
    /// The time for following was over before the run was, or a look found that it goes on.
    StillRunning(Seen),
    /// The run goes on, and work waits for which nobody has room.
    OthersWait(Seen),
    /// A cancel flag for this turn stands beside the record.
    CancelSeen {
        /// Who pressed Stop, for the words at the end.
        by: Person,
    },
    /// Somebody wants a waiting prompt to be sent into the run that is under way.
    SteerSeen {
        /// The turn that waits.
        turn: TurnId,
        /// As it is kept beside the record.
        queued: Queued,
        /// Who pressed the button.
        by: Person,
    },
    /// The card could not be edited where it stood, and stands here now.
    CardMoved(PostRef),
    /// The agent waits for a person.
    Asked {
        /// The ask's id at OpenCode.
        id: AskId,
        /// What the agent wants to know or to be allowed.
        about: About,
    },
    /// An ask is no longer open at OpenCode.
    AskClosed {
        /// The ask's id at OpenCode.
        id: AskId,
        /// The decision, if it was made in the thread.
        settlement: Option<Settlement>,
    },
    /// The run was told to end.
    Aborted,
    /// The run that no turn follows any more is over.
    RunEnded,
    /// An ask was answered with no.
    Declined {
        /// The ask's id at OpenCode.
        id: AskId,
    },
    /// What the turn changed in the files.
    Changed(Changes),
    /// What lies in the folder of files to be shown, oldest first.
    Listed(Vec<Artifact>),
    /// The file cannot be shown, and a repeat will not help.
    Unshown {
        /// Why, in words that finish the sentence "it …".
        why: String,
    },
    /// The post stands here.
    Posted(PostRef),
    /// The prompt was not sent, and the agent certainly has nothing of it.
    NotSent(Failure),
    /// The effect failed, in a way that the failure table knows.
    Failed(Failure),
}

/// What a clone does not bring along. Paths in the repository, bounded by who lists them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LeftOut {
    /// Submodules: their folders are empty.
    pub submodules: Vec<String>,
    /// Files of Git LFS: pointers stand in their place.
    pub large: Vec<String>,
}

/// Why a repository could not be cloned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NotCloned {
    /// There is none at that address, or it wants credentials, and those look alike from outside.
    NotFound,
    /// Its host cannot be reached from the sandbox.
    Unreachable,
    /// It took longer than it may.
    TooLong,
    /// The sandbox's disk is too small for it.
    NoRoom,
    /// Something else: git's last words.
    Other {
        /// On one line, shortened.
        seen: String,
    },
}
