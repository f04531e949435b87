//! What people see: the living card of a turn, the parts of an answer, short notices. Platform-neutral; the wire
//! modules render them.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use crate::records::ask::Ask;
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// The living card of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Card {
    /// The turn whose Stop button it carries.
    pub turn: TurnId,
    /// What is happening now.
    pub state: CardState,
    /// What the agent means to do, in its order, already bounded; empty without a plan.
    pub plan: Vec<PlanItem>,
    /// What the agent has done so far, oldest first, already bounded.
    pub steps: Vec<CardStep>,
    /// How many steps came before these.
    pub earlier: usize,
    /// When the turn was accepted.
    pub since_ms: Ms,
    /// When this picture was taken.
    pub now_ms: Ms,
    /// Model of the agent, as provider/model.
    pub model: String,
    /// What goes wrong at the moment, while it is tried again.
    pub trouble: Option<String>,
    /// Prompts that wait behind it, as far as that is known.
    pub waiting: usize,
    /// When the provider deletes the sandbox, where that is soon and could not be put off.
    pub ends_ms: Option<Ms>,
}

impl Card {
    /// A card of which nothing more is known than this: no steps, and nothing goes wrong.
    #[must_use]
    pub fn new(turn: &TurnId, state: CardState, since_ms: Ms, now_ms: Ms, model: &str) -> Self {
        Self {
            turn: turn.to_owned(),
            state,
            plan: Vec::new(),
            steps: Vec::new(),
            earlier: 0,
            since_ms,
            now_ms,
            model: model.to_owned(),
            trouble: None,
            waiting: 0,
            ends_ms: None,
        }
    }
}

/// What a turn's card is called: its first one, or the n-th that took the place of an earlier one.
#[must_use]
pub const fn card_kind(rolls: u32) -> PostKind {
    match rolls {
        0 => PostKind::Card,
        n => PostKind::Rolled(n),
    }
}

/// What is happening, in the order in which it usually does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CardState {
    /// Accepted; nothing is running yet.
    Received,
    /// It waits behind others.
    Queued {
        /// How many come before it.
        ahead: usize,
        /// It can be sent into the running turn: its words are kept beside the record.
        now: bool,
    },
    /// Another thread's turn works in the directory that this one needs.
    Shared {
        /// Whose it is, where that is known.
        holder: Option<ThreadKey>,
    },
    /// A new sandbox is being made.
    Creating,
    /// A paused sandbox, or its server, is being started.
    Resuming,
    /// The agent works on the prompt.
    Working,
    /// The agent waits for a person.
    Waiting,
    /// Somebody pressed Stop, and the run has not ended yet.
    Stopping,
    /// The turn has ended.
    Ended {
        /// Answered, failed, cancelled or lost, with the reason.
        outcome: Outcome,
        /// Time, tokens and money that it took.
        usage: Usage,
    },
}

/// One thing that the agent did or does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardStep {
    /// What, as a person would say it: `Running cargo test`, `Wrote src/main.rs`.
    pub text: String,
    /// How far it has come.
    pub state: StepState,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// The tool is at work.
    Running,
    /// It has come to its end without an error.
    Done,
    /// It ended with an error.
    Failed,
}

/// One line of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlanItem {
    /// What is to be done, in the agent's words, on one line.
    pub text: String,
    /// How far it has come.
    pub state: PlanState,
}

/// How a line of the plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// It has come to its end without an error.
    Done,
    /// The agent is at it.
    Now,
    /// The agent has not begun it.
    Next,
    /// The agent has given it up.
    Dropped,
}

/// What is posted or edited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Post {
    /// The card that shows how a turn stands, edited as that changes.
    Card(Card),
    /// One part of an answer, Markdown, already within the platform's limit.
    Chunk {
        /// The words, as they are shown.
        text: String,
        /// The last part carries the Reply button.
        last: bool,
        /// The whole answer as a file, when it is too long for messages.
        file: Option<String>,
        /// The card that the first part replies to, where the platform has replies.
        card: Option<PostRef>,
    },
    /// A permission request or a question.
    Ask {
        /// The question or permission request.
        ask: Ask,
        /// How it was settled, once it was.
        settled: Option<String>,
    },
    /// A file that the agent left to be shown.
    File(ShownFile),
    /// A short word about the session.
    Notice(String),
    /// The last notice of a thread that nobody needs any more: the thread is archived after it, where the platform does that.
    Closing(String),
    /// The last words of a card that has become too old to be edited: where it goes on.
    Moved {
        /// The card that takes its place.
        to: PostRef,
        /// Its address, which only the platform's side knows.
        link: Option<String>,
    },
    /// A new post that also calls these people; nobody else is ever called, and an edit calls nobody.
    Calling {
        /// The platform's ids of who is called.
        people: Vec<String>,
        /// What is posted with the call.
        post: Box<Post>,
    },
}

impl Post {
    /// What is posted, whoever is called by it.
    #[must_use]
    pub fn bare(&self) -> &Self {
        match self {
            Self::Calling { post, .. } => post.bare(),
            post => post,
        }
    }

    /// Who is called by it.
    #[must_use]
    pub fn calls(&self) -> &[String] {
        match self {
            Self::Calling { people, .. } => people,
            _ => &[],
        }
    }
}

/// A file as people get it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShownFile {
    /// Its name, safe in any file system.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}
