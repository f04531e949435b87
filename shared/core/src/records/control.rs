//! Control messages, which never wait behind a run, and what they request.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, SandboxKey, SandboxName, ThreadKey, TurnId, digest};
use crate::base::person::{Membership, Person};
use crate::base::reply::Reply;
use crate::records::ask::Choice;
use crate::records::publication::PullRequestAct;
use crate::tenant::commands::Command;
use crate::tenant::own_keys::OwnKeyRequest;
use crate::tenant::settings::SettingsChange;
use crate::tenant::sign_in::ForgeRequest;

/// Separates a thread's key, which never contains it, from the suffix of a group of its own.
pub(super) const APART: char = '#';
/// Hex digits after a thread's key of 120 characters: a queue takes 128. A collision costs only an order that nobody
/// needs.
pub(super) const APART_DIGITS: usize = 7;

/// A control message; it does not wait behind a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Control {
    /// From the platform; also the deduplication id.
    pub id: String,
    /// The thread that it is about.
    pub thread: ThreadKey,
    /// The person who pressed the button or typed the command.
    pub by: Person,
    /// How to answer them.
    pub reply: Reply,
    /// Their channel, roles and permissions.
    #[serde(default)]
    pub membership: Membership,
    /// The request.
    pub want: ControlAction,
}

impl Control {
    /// The FIFO message group. Of two changes to the settings or to the sandbox the later one counts, so they keep
    /// their order in the thread's group. Two decisions on one ask keep theirs too, since the first one counts. Any
    /// other control message waits for nothing.
    pub(super) fn group(&self) -> String {
        let apart = match &self.want {
            ControlAction::Configure { .. }
            | ControlAction::OwnKey { .. }
            | ControlAction::Forge { .. }
            | ControlAction::Connect { .. }
            | ControlAction::Publish { .. }
            | ControlAction::Operate { .. } => return self.thread.to_string(),
            ControlAction::Settle { ask, .. } => digest(&["ask", ask]),
            // Two clicks at once would each run it.
            ControlAction::Again { turn } => digest(&["again", turn]),
            ControlAction::Stop { .. }
            | ControlAction::StopAll
            | ControlAction::Halt { .. }
            | ControlAction::Withdraw { .. }
            | ControlAction::Now { .. }
            | ControlAction::Diff { .. }
            | ControlAction::SetUpLog { .. }
            | ControlAction::Command { .. }
            | ControlAction::Sandboxes { .. }
            | ControlAction::AskDestroy { .. }
            | ControlAction::Help { .. }
            | ControlAction::Say { .. } => digest(&["alone", &self.id]),
        };
        format!("{}{APART}{}", self.thread, &apart[..APART_DIGITS])
    }
}

/// Requests of control messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum ControlAction {
    /// End the present turn (or exactly this one).
    Stop {
        /// The turn whose button was pressed; `None` for a typed command.
        turn: Option<TurnId>,
    },
    /// End the present turn and every turn that waits behind it.
    StopAll,
    /// End exactly this turn, if it is the present one. Sent by the operator: no tenant's settings can forbid it.
    Halt {
        /// The turn to end.
        turn: TurnId,
    },
    /// Send a waiting prompt to the agent at once, into the current run.
    Now {
        /// The waiting turn.
        turn: TurnId,
    },
    /// Withdraw a prompt that still waits, because its message was deleted; no effect if it does not wait.
    Withdraw {
        /// The turn that may wait.
        turn: TurnId,
    },
    /// Show a turn's file changes.
    Diff {
        /// The turn; `None` means the last one that has ended.
        turn: Option<TurnId>,
    },
    /// Show what the set-up of the thread's project has said.
    SetUpLog {
        /// The turn in which it ran.
        turn: TurnId,
    },
    /// Show or change the tenant's settings.
    Configure {
        /// The change.
        change: SettingsChange,
    },
    /// Show, enter or remove the tenant's own keys.
    OwnKey {
        /// The request.
        key: OwnKeyRequest,
    },
    /// Bind an owner of the forge to the tenant, or connect a person's own account there.
    Forge {
        /// The request.
        forge: ForgeRequest,
    },
    /// Run the prompt of this ended turn again, as a new turn of the requester.
    Again {
        /// The turn that was lost or has failed.
        turn: TurnId,
    },
    /// Post in the thread how Bobbin is used.
    Help {
        /// The text, as shown.
        text: String,
    },
    /// Show this text (a refusal) to this person only: ingress has no token to post it itself.
    Say {
        /// The text, as shown.
        text: String,
    },
    /// Show the named sandboxes, to the requester only.
    Sandboxes {
        /// The page, from 0.
        page: u32,
        /// It was requested in a thread, which can be connected to one of them.
        in_thread: bool,
    },
    /// Move the thread to another sandbox, after what runs in it.
    Connect {
        /// The sandbox; `None` means the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<WhichSandbox>,
    },
    /// Ask for confirmation before a sandbox is deleted, and say what would be lost.
    AskDestroy {
        /// The sandbox.
        sandbox: WhichSandbox,
    },
    /// Pause, resume, delete or snapshot a sandbox.
    Operate {
        /// The sandbox.
        sandbox: WhichSandbox,
        /// The operation.
        operation: Operation,
    },
    /// Settle a permission or question.
    Settle {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// The person's choice.
        choice: Choice,
    },
    /// Show what a pull request of the thread's work would publish, or publish what was shown.
    Publish {
        /// How far.
        step: PublishStep,
    },
    /// Answer a command that concerns only the place where it was typed.
    Command {
        /// The command.
        command: Command,
    },
}

impl ControlAction {
    /// Its name for people who wait for its effect; `None` if it only shows text, or nobody waits for it.
    #[must_use]
    pub const fn effect(&self) -> Option<&'static str> {
        match self {
            Self::Stop { .. } => Some("Stop"),
            Self::StopAll => Some("Stop all"),
            Self::Now { .. } => Some("Send now"),
            Self::Again { .. } => Some("Run again"),
            Self::Settle { .. } => Some("The decision"),
            Self::Connect { .. } => Some("Connect"),
            Self::Publish { step: PublishStep::Show { .. } } => Some("Preparing the pull request"),
            Self::Publish { step: PublishStep::Push { .. } } => Some("Opening the pull request"),
            Self::Publish { step: PublishStep::PushAll { .. } } => {
                Some("Opening the pull requests")
            }
            Self::Publish { step: PublishStep::Fix { .. } | PublishStep::Fixed { .. } } => {
                Some("Fixing the pull request")
            }
            Self::Publish { step: PublishStep::Review { .. } } => Some("Posting the review"),
            Self::Publish { step: PublishStep::Act { act, .. } } => Some(act.label()),
            Self::Operate { operation, .. } => Some(operation.effect()),
            Self::Configure { change: SettingsChange::Show } => None,
            Self::Configure { .. } => Some("Changing the settings"),
            Self::OwnKey { key: OwnKeyRequest::Check { .. } } => Some("Checking the key"),
            Self::OwnKey { key: OwnKeyRequest::Remove { .. } } => Some("Removing the key"),
            Self::Forge { forge: ForgeRequest::SignedIn { .. } } => Some("Checking the sign-in"),
            Self::Forge { forge: ForgeRequest::Pressed { .. } } => {
                Some("What was pressed on the page")
            }
            Self::Forge { forge: ForgeRequest::Unbind { .. } } => Some("Removing the owner"),
            Self::Forge { forge: ForgeRequest::Disconnect } => Some("Disconnecting the account"),
            Self::OwnKey { .. } | Self::Forge { .. } => None,
            Self::Halt { .. }
            | Self::Withdraw { .. }
            | Self::Diff { .. }
            | Self::SetUpLog { .. }
            | Self::Command { .. }
            | Self::Sandboxes { .. }
            | Self::AskDestroy { .. }
            | Self::Help { .. }
            | Self::Say { .. } => None,
        }
    }
}

/// The sandbox that a person means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichSandbox {
    /// The one that the thread works in.
    Here,
    /// The one with this name, looked up when needed.
    Named(SandboxName),
    /// Exactly this one: the one that a button was shown for.
    Exactly(SandboxKey),
}

/// A step to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum PublishStep {
    /// Show in the thread what would be published, for a person to press.
    Show {
        /// Subject for the pull request; `None`: made of the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// Text for it; `None`: made of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// Of which repository; `None`: of the thread's, and of those beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<ShowOf>,
    },
    /// Push all that was shown of the repositories, in order, and open a pull request of each.
    PushAll {
        /// The name of what was shown.
        name: String,
    },
    /// Push what was shown, and open its pull request.
    Push {
        /// The commit that was shown.
        commit: String,
    },
    /// Begin the fix of this name, which the card offered.
    Fix {
        /// Its name.
        name: String,
    },
    /// The turn of that fix is before this message: push what it did.
    Fixed {
        /// The name of that turn.
        name: String,
        /// Names of what the fix is for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<String>,
        /// The forge's id of its repository, if that stands beside the thread's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beside: Option<u64>,
    },
    /// Post the agent's review that was shown.
    Review {
        /// Its name.
        name: String,
    },
    /// Do this with the open pull request, in the person's own name.
    Act {
        /// What.
        act: PullRequestAct,
        /// The head that was shown.
        head: String,
    },
}

/// The repository for which to show what would be published.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowOf {
    /// The one for which this commit was shown before.
    Commit(String),
    /// The one beside the thread's with this id.
    Beside(u64),
}

/// Operations on a thread's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Stop it and keep its disk.
    Pause,
    /// Start it again, with its server and agent session.
    Resume,
    /// Delete it; the thread continues with a new one.
    Destroy,
    /// Remove people's words and names from the record; only if there is no sandbox any more.
    Forget,
    /// Keep its disk as a snapshot from which other sandboxes can be created.
    Snapshot,
    /// Create it: the result of a [`crate::records::message::NewSandbox`] is recorded under this name.
    Create,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 6] =
        [Self::Pause, Self::Resume, Self::Destroy, Self::Forget, Self::Snapshot, Self::Create];

    /// Its name for people who wait for its effect.
    #[must_use]
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Pause => "Stop",
            Self::Resume => "Start",
            Self::Snapshot => "Snapshot",
            Self::Destroy => "Destroy",
            Self::Forget => "Forget",
            Self::Create => "Create",
        }
    }

    /// The name that is stored, typed and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Destroy => "destroy",
            Self::Forget => "forget",
            Self::Snapshot => "snapshot",
            Self::Create => "create",
        }
    }
}
