//! What a history is made of: what people and platforms do, and what goes wrong.

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

/// What Bobbin stands on, and what may be away for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Out {
    /// Nothing can be read or written.
    Table,
    /// What is read can be read, and nothing be written.
    Writes,
    Chat,
    /// The chat does not take the bot's token.
    Token,
    /// The threads cannot be written in: a right is missing, or they are locked.
    Access,
    /// Neither the provider's own calls nor the paths to its sandboxes; what runs there goes on.
    Provider,
    /// The stack's key is of another account, in which there is nothing; what runs in the one before goes on.
    Account,
}

impl Out {
    pub const ALL: [Self; 7] = [
        Self::Table,
        Self::Writes,
        Self::Chat,
        Self::Token,
        Self::Provider,
        // Last: everything else of a seed's history stays as it is.
        Self::Access,
        Self::Account,
    ];
}

/// A person or the platform does something at a time.
#[derive(Debug, Clone)]
pub enum Deed {
    Send(Message),
    /// Stop for the turn with this id.
    Stop(String),
    /// Stop for everything that runs or waits.
    StopAll,
    /// "Send now" for the prompt with this id.
    Now(String),
    /// The word of a daemon for the turn with this id, whatever has become of that.
    Nudge(String),
    Lose,
    /// The provider shows the sandbox to nobody for so long: it stands still, and is there.
    Hides(u64),
    ServerDies,
    /// The server takes what it is sent and never answers.
    Hangs,
    /// Nobody reaches the server for so long, and what it works on goes on.
    Cut(u64),
    StopsByItself,
    /// For so long there is more work than executions.
    Crowded(u64),
    /// No worker works for so long: nothing is delivered.
    Idle(u64),
    /// What all threads stand on is away for so long.
    Out(Out, u64),
    /// The stack is deployed with this mode.
    Mode(RuntimeMode),
    /// The agent calls a tool, where it works outside.
    Tools,
    /// Those who manage the thread's tenant choose how agents are run.
    Chooses(Option<RuntimeMode>),
    /// Control messages goes on with the word for a prompt that waits.
    Announce(Announcing),
    /// Somebody presses on the newest or the oldest proposal that stands in the thread, if there is one.
    Press {
        /// Id of the message.
        id: String,
        is_oldest: bool,
    },
    /// A person does something at the forge, with the thread's branch or its pull request.
    AtForge(AtForge),
    /// Files in the sandbox change that no prompt changes.
    FilesChange,
    /// Those who manage the thread's tenant open all repositories, or close them.
    Opens(bool),
    /// Nothing: time passes until then.
    Rest,
}

/// What a person does at the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtForge {
    /// Puts a commit on the thread's branch, whether that is there or not.
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
        /// A person wants it gone, whatever works in it.
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

/// Who says everything.
pub fn ann() -> Person {
    Person { id: "ann".into(), name: "ann".into() }
}

pub fn prompt(text: &str) -> Work {
    let wants = Selection { repo: Some("acme/api".to_owned()), ..Selection::default() };
    wanting(text, wants)
}

/// A prompt for which something was chosen.
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

/// The thread goes to another sandbox, or back to its own.
pub fn connect(to: Option<SandboxKey>) -> Work {
    Work::Connect { to, by: ann(), membership: Membership::default() }
}

/// Somebody wants to see what would be published.
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

/// Somebody in the chat wants something of a sandbox.
pub fn operate(want: Operation) -> Work {
    Work::Operate { want, by: Some(ann()) }
}

/// A name of a sandbox.
pub fn called(name: &str) -> SandboxName {
    name.parse().expect("a valid name")
}
