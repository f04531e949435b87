//! The history of one thread, observed without knowledge of the product's inside: by a simulator, the protocol's model,
//! or the end-to-end tests (`crate::observed`). A turn's name is its place in the order of acceptance.

use bobbin_core::base::names::PostKind;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

/// How a turn ended, without its text.
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
    /// This many sandboxes of the record's current generation exist.
    Live(usize),
    /// An agent took a prompt as a new one.
    Prompted { turn: usize, generation: u32 },
    /// A new post appeared in the thread.
    Posted { turn: usize, kind: PostKind },
    /// The card says how the turn ended.
    Told { turn: usize, ending: Ending },
    /// The card changed again.
    Shown { turn: usize },
    /// Somebody sent the turn's prompt into the run before it, and that is on record.
    Steered { turn: usize },
    /// A new post mentioned these people.
    Called { turn: usize, kind: PostKind, who: Vec<String> },
    /// At rest a card still looked alive.
    Left { turn: usize },
    /// The record says how the turn ended.
    Ended { turn: usize, ending: Ending },
    /// A stop or delete hit the sandbox of a turn under way, and no person had asked for it.
    Hit { generation: u32, turn: usize },
    /// The agent worked on an ended turn's prompt while another turn began or at rest.
    Astray { turn: usize },
    /// A run began in a workspace of the sandbox, and these threads had a turn at work in it.
    Working { workspace: String, who: Vec<String> },
    /// The provider stopped or lost a sandbox by itself.
    Disturbed { generation: u32 },
    /// After the run had ended, its answer could not be read again.
    Withheld { turn: usize },
    /// The chat refused a post.
    Refused { turn: usize },
    /// The thread could not be written to when the turn had something to report: its files wait for the next turn that
    /// is answered.
    Closed { turn: usize },
    /// A new post shows a proposal.
    Proposed { commit: String },
    /// Bobbin moved a branch at the forge: the branch's earlier commit, the branch and commit on the thread's record
    /// when the call was sent, and people's commits that the branch lost.
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
    /// Something with a bound was used this often.
    Spent { what: &'static str, times: u64, bound: u64 },
}

/// What was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Words for the agent.
    Prompt,
    /// A notice answers it: a request for a fresh sandbox, a name or another sandbox.
    Notice,
    /// A proposal or a notice answers it: a request for a pull request.
    Publication,
    /// An operation on the sandbox: only the record has its result.
    Operation,
}

/// The state at rest.
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
    /// Everything that comes by itself has come. Otherwise a phase may be temporary, and only the generation of the
    /// provider's list is sure.
    pub is_settled: bool,
}

/// The observations of one thread.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// In the order of acceptance.
    pub accepted: Vec<Request>,
    /// In the order in which they happened.
    pub facts: Vec<Fact>,
    /// Parts of every answer.
    pub parts: u32,
    /// Every run leaves a file to show.
    pub files: bool,
    /// A run that is stopped may have a partial answer, which is shown.
    pub partial: bool,
    /// Who asks everything; `None` if mentions were not observed.
    pub who_asks: Option<&'static str>,
    /// `None` while something is under way.
    pub end: Option<End>,
}
