//! The parts of a history: what people and platforms do, and what goes wrong.

use bobbin_core::base::ids::{Ms, SandboxKey, SandboxName};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Operation, PublishStep};
use bobbin_core::records::message::{Message, Prompt, Work};
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use bobbin_core::tenant::selection::Selection;

use super::announcer::Announcing;
use super::forge::PushCall;

/// When every history begins.
pub const START_MS: Ms = 1_800_000_000_000;

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Trouble {
    None,
    /// By dice, up to this time.
    Dice {
        until_ms: Ms,
    },
    /// The worker dies at these calls, counted from the start: before (false) or after (true) what they do.
    Crashes {
        at: Vec<(u32, bool)>,
        hit: usize,
    },
    /// From this call on, counted from the start.
    Outage {
        at: u32,
        of: Out,
        for_ms: u64,
    },
}

/// A service that Bobbin needs and that may be down for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Out {
    /// Nothing can be read or written.
    Table,
    /// Reads work, and writes do not.
    Writes,
    Chat,
    /// The chat refuses the bot's token.
    Token,
    /// The threads cannot be written to: a right is missing, or they are locked.
    Access,
    /// The provider's own calls and the paths to its sandboxes; what runs there continues.
    Provider,
    /// The stack's key belongs to another, empty account; what runs in the earlier one continues.
    Account,
}

impl Out {
    pub const ALL: [Self; 7] = [
        Self::Table,
        Self::Writes,
        Self::Chat,
        Self::Token,
        Self::Provider,
        // Last, so that everything else in a seed's history stays the same.
        Self::Access,
        Self::Account,
    ];
}

/// A person or the platform does something at a time.
#[derive(Debug, Clone)]
pub enum PlannedEvent {
    Send(Message),
    /// Stop for the turn with this id.
    Stop(String),
    /// Stop for everything that runs or waits.
    StopAll,
    /// "Send now" for the prompt with this id.
    Now(String),
    /// A daemon's nudge for the turn with this id, whatever its state.
    Nudge(String),
    Lose,
    /// The provider hides the sandbox for this long: it exists, and does not run.
    Hides(u64),
    ServerDies,
    /// The server takes what it is sent and never answers.
    Hangs,
    /// The server is unreachable for this long, and its work continues.
    Cut(u64),
    StopsByItself,
    /// For this long there is more work than executions.
    Crowded(u64),
    /// No worker runs for this long: nothing is delivered.
    Idle(u64),
    /// A service that all threads need is down for this long.
    Out(Out, u64),
    /// The stack is deployed with this mode.
    Mode(RuntimeMode),
    /// The agent calls a tool, where it works outside.
    Tools,
    /// Managers of the thread's tenant choose how agents run.
    Chooses(Option<RuntimeMode>),
    /// The announcement takes its next step.
    Announce(Announcing),
    /// Somebody presses on the newest or the oldest proposal in the thread, if there is one.
    Press {
        /// Id of the message.
        id: String,
        is_oldest: bool,
    },
    /// A person does something at the forge, with the thread's branch or its pull request.
    AtForge(AtForge),
    /// Files in the sandbox change without a prompt.
    FilesChange,
    /// Managers of the thread's tenant open all repositories, or close them.
    Opens(bool),
    /// Nothing: time passes until then.
    Rest,
}

/// What a person does at the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtForge {
    /// Pushes a commit to the thread's branch, which may not exist.
    Pushes,
    /// Merges the open pull request.
    Merges,
    /// Closes it.
    Closes,
    /// Deletes the branch.
    Deletes,
}

impl AtForge {
    pub const ALL: [Self; 4] = [Self::Pushes, Self::Merges, Self::Closes, Self::Deletes];
}

/// A call that arrives late.
#[derive(Debug, Clone)]
pub enum Late {
    Create(u32),
    Stop(u32),
    Delete {
        generation: u32,
        /// A person wants it deleted, no matter what works in it.
        by_person: bool,
    },
    /// An abort of the run of these prompts.
    Abort(u32, Vec<String>),
    Push(PushCall),
    /// The call that opens the pull request of this branch.
    Request {
        branch: String,
        is_draft: bool,
    },
}

/// The person who says everything.
pub fn ann() -> Person {
    Person { id: "ann".into(), name: "ann".into() }
}

pub fn prompt(text: &str) -> Work {
    let wants = Selection { repo: Some("acme/api".to_owned()), ..Selection::default() };
    wanting(text, wants)
}

/// A prompt with a choice.
pub fn wanting(text: &str, wants: Selection) -> Work {
    Work::Prompt(Prompt { text: text.to_owned(), by: ann(), wants, ..Prompt::default() })
}

pub fn reset() -> Work {
    Work::Reset { by: ann(), membership: Membership::default(), keeps_files: false }
}

/// The thread's sandbox gets a name.
pub fn name(name: &str) -> Work {
    Work::Name { name: called(name), by: ann(), membership: Membership::default() }
}

/// Connects the thread to another sandbox, or back to its own.
pub fn connect(to: Option<SandboxKey>) -> Work {
    Work::Connect { to, by: ann(), membership: Membership::default() }
}

/// Somebody asks what would be published.
pub fn propose() -> Work {
    publish(PublishStep::Show { subject: None, body: None, of: None })
}

/// Somebody presses on a proposal.
pub fn press(commit: &str) -> Work {
    publish(PublishStep::Push { commit: commit.to_owned() })
}

fn publish(step: PublishStep) -> Work {
    Work::Publish { step, by: ann(), membership: Membership::default() }
}

/// Somebody in the chat requests an operation on a sandbox.
pub fn operate(want: Operation) -> Work {
    Work::Operate { want, by: Some(ann()) }
}

/// A name of a sandbox.
pub fn called(name: &str) -> SandboxName {
    name.parse().expect("a valid name")
}
