//! What people see: the living card of a turn, the parts of an answer, short notices. Platform-neutral; the wire
//! modules render them.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, ThreadKey, TurnId};
use crate::base::names::PostKind;
use crate::records::ask::Ask;
use crate::records::drafted_review::DraftedReview;
use crate::records::outcome::Outcome;
use crate::records::publication::{OutgoingFile, Proposal};
use crate::records::usage::Usage;
use crate::records::watch::PullRequestCard;
use crate::tenant::budgets::MicroUsd;
use crate::text::dollars;

/// The living card of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Card {
    /// The turn whose Stop button it carries.
    pub turn: TurnId,
    /// What is happening now.
    pub state: CardState,
    /// The agent's plan, in its order, already bounded; empty without a plan.
    pub plan: Vec<PlanLine>,
    /// The agent's steps so far, oldest first, already bounded.
    pub steps: Vec<CardStep>,
    /// Number of steps before these.
    pub earlier: usize,
    /// When the turn was accepted.
    pub since_ms: Ms,
    /// When this state was taken.
    pub now_ms: Ms,
    /// Model of the agent, as provider/model.
    pub model: String,
    /// The present trouble, while it is being retried.
    pub trouble: Option<String>,
    /// Prompts that wait behind it, as far as known.
    pub waiting: usize,
    /// When the provider deletes the sandbox, if that is soon and could not be put off.
    pub ends_ms: Option<Ms>,
    /// The turn's work can be published: the button that offers it.
    pub publish: Option<PublishOffer>,
    /// What the turn has spent, and what it may.
    pub spending: Option<Spending>,
    /// How the project was made ready in this turn: `set up at 1a2b3c4 in 41 s`.
    pub set_up: Option<String>,
}

/// What a turn has spent, and what it may, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spending {
    /// Spent so far.
    pub spent: MicroUsd,
    /// Its budget.
    pub budget: MicroUsd,
}

impl Spending {
    /// The fact on a card: `$0.42 of $2.00`.
    #[must_use]
    pub fn fact(self) -> String {
        format!("{} of {}", dollars(self.spent), dollars(self.budget))
    }

    /// The line on the card of a turn that works, once 80 % are spent.
    #[must_use]
    pub fn warning(self) -> Option<String> {
        let is_near = self.spent.saturating_mul(5) >= self.budget.saturating_mul(4);
        is_near.then(|| format!("{} spent. The task stops at the limit.", self.fact()))
    }
}

/// The button that leads to a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublishOffer {
    /// The thread has no open pull request.
    Open,
    /// It has one.
    Update,
}

impl PublishOffer {
    /// The button's label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Open => "Open pull request",
            Self::Update => "Update pull request",
        }
    }
}

/// What a press would publish, as shown in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Review {
    /// The commit, subject and text.
    pub proposal: Proposal,
    /// `owner/name`.
    pub repository: String,
    /// Everybody can read it.
    pub is_public: bool,
    /// Short name of the branch that is pushed.
    pub branch: String,
    /// Short name of the branch into which it is to be merged.
    pub into: String,
    /// The first changed files, by path.
    pub files: Vec<OutgoingFile>,
    /// Number of changed files.
    pub files_total: usize,
    /// Number of the repository's workflows that the push may start.
    pub workflows: u32,
    /// The button.
    pub offer: PublishOffer,
    /// The button that publishes it with what was shown of other repositories.
    pub all: Option<OfferOfAll>,
    /// It is opened as a draft.
    pub is_draft: bool,
    /// Commits that were brought are published with it.
    pub others: Option<OthersCommits>,
}

/// Commits below the work that the branch into which it goes does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OthersCommits {
    /// Those of the pull request with this number.
    Pull(u64),
    /// Those of a commit or branch that was asked for.
    Unmerged,
}

/// The button that publishes all that was shown of several repositories.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OfferOfAll {
    /// Its name, to which the button is bound.
    pub name: String,
    /// Number of the repositories.
    pub repositories: usize,
}

/// An agent's review of a pull request, as shown in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReviewCard {
    /// Its name, to which the button is bound.
    pub name: String,
    /// `owner/name`.
    pub repository: String,
    /// Everybody can read what is posted.
    pub is_public: bool,
    /// Number of the pull request.
    pub number: u64,
    /// The commit that was reviewed.
    pub head: String,
    /// What would be posted.
    pub draft: DraftedReview,
    /// All of it is in the thread as a file.
    pub has_file: bool,
}

impl Card {
    /// A card with only this known: no steps, and no trouble.
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
            publish: None,
            spending: None,
            set_up: None,
        }
    }
}

/// Name of a turn's card: the first one, or the n-th that replaced an earlier one.
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
        /// Number of turns before it.
        ahead: usize,
        /// It can be sent into the running turn: its text is kept beside the record.
        now: bool,
    },
    /// Another thread's turn works in the directory that this one needs.
    Shared {
        /// The other thread, if known.
        holder: Option<ThreadKey>,
    },
    /// A new sandbox is being created.
    Creating,
    /// The project in the new sandbox is being made ready.
    SettingUp {
        /// The step that runs, from 1.
        step: usize,
        /// Number of steps.
        of: usize,
    },
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
        /// Usage: time, tokens and money.
        usage: Usage,
    },
}

/// One step of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardStep {
    /// The step, in a person's words: `Running cargo test`, `Wrote src/main.rs`.
    pub text: String,
    /// Its state.
    pub state: StepState,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// The tool is running.
    Running,
    /// It ended without an error.
    Done,
    /// It ended with an error.
    Failed,
}

/// Lines of a plan that a card shows.
pub const PLAN_SHOWN: usize = 12;
/// Those of them that are in front of the present one.
const PLAN_SHOWN_BEFORE: usize = 4;

/// The lines of a plan to show, around the one that the agent works on, or the next one. A plan without either is shown
/// from its end.
#[must_use]
pub fn present(plan: &[PlanLine]) -> &[PlanLine] {
    let first = |state: PlanLineState| plan.iter().position(|line| line.state == state);
    let now = first(PlanLineState::Now).or_else(|| first(PlanLineState::Next));
    let last_begin = plan.len().saturating_sub(PLAN_SHOWN);
    let begin = now.map_or(last_begin, |now| now.saturating_sub(PLAN_SHOWN_BEFORE).min(last_begin));
    &plan[begin..plan.len().min(begin + PLAN_SHOWN)]
}

/// One line of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlanLine {
    /// What is to be done, in the agent's words, on one line.
    pub text: String,
    /// Its state.
    pub state: PlanLineState,
}

/// State of a line of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanLineState {
    /// It is done.
    Done,
    /// The agent is working on it.
    Now,
    /// The agent has not begun it.
    Next,
    /// The agent has given it up.
    Dropped,
}

/// The content of a post, created or edited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Post {
    /// The card of a turn, edited as its state changes.
    Card(Card),
    /// One part of an answer, Markdown, already within the platform's limit.
    Chunk {
        /// The text, as shown.
        text: String,
        /// The last part carries the Reply button.
        last: bool,
        /// The whole answer as a file, when it is too long for messages.
        file: Option<String>,
        /// The card that the first part replies to, on platforms that have replies.
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
    /// What would be published, with the button that does it.
    Review(Review),
    /// The agent's review of a pull request, with the button that posts it.
    PullReview(ReviewCard),
    /// The state of the thread's pull request.
    PullRequest(PullRequestCard),
    /// A short notice about the session.
    Notice(String),
    /// The last notice of a thread that nobody needs any more: the thread is archived after it, on platforms that do
    /// that.
    Closing(String),
    /// The last state of a card that has become too old to be edited: a link to its successor.
    Moved {
        /// The card that replaces it.
        to: PostRef,
        /// Its address, which only the platform's side knows.
        link: Option<String>,
    },
    /// A new post that also mentions these people; no other post mentions anybody, and an edit mentions nobody.
    Calling {
        /// Platform ids of the people to mention.
        people: Vec<String>,
        /// The post.
        post: Box<Post>,
    },
}

impl Post {
    /// The post without the mentions.
    #[must_use]
    pub fn bare(&self) -> &Self {
        match self {
            Self::Calling { post, .. } => post.bare(),
            post => post,
        }
    }

    /// The people that it mentions.
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
    /// Its content.
    pub bytes: Vec<u8>,
}
