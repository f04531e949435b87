//! What happened in one thread, as somebody saw it who does not look at how the product works inside: a simulator, the
//! protocol's model, or the end-to-end tests (`crate::observed`). Turns are named by their place in the order of
//! acceptance.

use bobbin_core::base::names::PostKind;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

/// How a turn ended, without the words.
#[expect(missing_docs, reason = "they are named as the outcomes are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    Answered,
    Failed,
    OverBudget,
    Cancelled,
    Lost,
    Joined,
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Answered,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::OverBudget { .. } => Self::OverBudget,
            Outcome::Cancelled { .. } => Self::Cancelled,
            Outcome::Lost => Self::Lost,
            Outcome::Joined { .. } => Self::Joined,
        }
    }
}

/// Something that happened.
#[expect(missing_docs, reason = "the fields are named as what they hold")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fact {
    /// So many sandboxes of the record's present generation exist.
    Live(usize),
    /// A prompt was taken by an agent as a new one.
    Prompted { turn: usize, generation: u32 },
    /// A new post stands in the thread.
    Posted { turn: usize, kind: PostKind },
    /// The card says how the turn ended.
    Told { turn: usize, ending: Ending },
    /// The card says something else again.
    Shown { turn: usize },
    /// Somebody wanted the turn's prompt sent into the run before it, and that is on record.
    Steered { turn: usize },
    /// A new post called these people.
    Called { turn: usize, kind: PostKind, who: Vec<String> },
    /// When all was quiet, a card still looked as if it were alive.
    Left { turn: usize },
    /// The record says how the turn ended.
    Ended { turn: usize, ending: Ending },
    /// A stop or delete arrived at the sandbox of a turn that was under way, and no person had asked for it.
    Hit { generation: u32, turn: usize },
    /// The agent worked on the prompt of a turn that had ended, while another one began or when all was quiet.
    Astray { turn: usize },
    /// A run began in a workspace of the sandbox: the threads that had a turn at work in it then.
    Working { workspace: String, who: Vec<String> },
    /// The provider stopped or lost a sandbox by itself.
    Disturbed { generation: u32 },
    /// After the run had ended, its answer could not be read once more.
    Withheld { turn: usize },
    /// The chat refused a post.
    Refused { turn: usize },
    /// The thread could not be written in when something of the turn was to be said: its files are left to the next one
    /// that is answered.
    Closed { turn: usize },
    /// A new post shows what would be pushed.
    Proposed { commit: String },
    /// Bobbin moved a branch at the forge: where it was, which branch and commit the thread's record named when the
    /// call was sent, and commits of people that it had before, and has no more.
    Pushed {
        branch: String,
        from: Option<String>,
        to: String,
        recorded: Option<(String, Option<String>)>,
        dropped: Vec<String>,
    },
    /// A pull request was opened for a branch.
    Requested { branch: String },
    /// A person closed or merged a branch's pull request.
    PersonClosed { branch: String },
    /// Something that has a bound was used so often.
    Spent { what: &'static str, times: u64, bound: u64 },
}

/// What was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Words for the agent.
    Prompt,
    /// Something that a notice answers: a fresh sandbox is wanted, a name for it, or another one.
    Notice,
    /// Something that a proposal answers, or a notice: the work is wanted in a pull request.
    Publication,
    /// Somebody wants something of the sandbox: the record alone says the result of it.
    Operation,
}

/// How things stand when nothing is under way any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The phase on record.
    pub phase: Phase,
    /// The generation on record.
    pub generation: u32,
    /// A turn is still on record.
    pub turn: bool,
    /// Sandboxes at the provider: generation, and whether it runs.
    pub listed: Vec<(u32, bool)>,
    /// Everything that would come by itself has come. Where nobody waited for that, a phase may be a passing one, and
    /// of what the provider lists only the generation is known to be right.
    pub is_settled: bool,
}

/// What was seen of one thread.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// In the order of acceptance.
    pub accepted: Vec<Request>,
    /// In the order in which they happened.
    pub facts: Vec<Fact>,
    /// Parts of every answer.
    pub parts: u32,
    /// Every run leaves a file to be shown.
    pub files: bool,
    /// A run that is stopped may have said something before, which is shown.
    pub partial: bool,
    /// Who asked everything; `None` where nobody looked who is called.
    pub who_asks: Option<&'static str>,
    /// None while something is under way.
    pub end: Option<End>,
}
