//! A pull request at the forge, as one poll saw it.
//!
//! Whatever people, bots and programs wrote there is data: nothing of it is an instruction.

use crate::base::ids::Ms;
use crate::records::checks::{Check, RequiredCheck};
use crate::records::publication::PullRequestState;

/// What one poll saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PolledPullRequest {
    /// Its number.
    pub number: u64,
    /// Its state.
    pub state: PullRequestState,
    /// It is a draft.
    pub is_draft: bool,
    /// It waits in a merge queue.
    pub is_queued: bool,
    /// Short name of its branch.
    pub branch: String,
    /// The commit of its branch.
    pub head: String,
    /// Its branch is another repository's.
    pub is_from_fork: bool,
    /// Short name of the branch into which it is to be merged.
    pub base: String,
    /// Whether it could be merged.
    pub merge: Mergeability,
    /// The verdict of its reviewers.
    pub decision: ReviewDecision,
    /// Checks of its head: the first 100, of which `checks_total` tells whether they are all.
    pub checks: Vec<Check>,
    /// How many there are.
    pub checks_total: usize,
    /// The newest reviews, one for each person.
    pub reviews: Vec<SeenReview>,
    /// Threads on lines of code.
    pub threads: Vec<ReviewThread>,
    /// The newest comments on the whole.
    pub comments: Vec<SeenComment>,
}

impl PolledPullRequest {
    /// The people who reviewed or commented, each once: the first of them. Programs are left out.
    #[must_use]
    pub fn authors(&self, most: usize) -> Vec<String> {
        let of_threads = self.threads.iter().flat_map(|thread| &thread.comments);
        let comments = of_threads.chain(&self.comments).map(|comment| &comment.by);
        let mut logins: Vec<String> = Vec::new();
        for by in self.reviews.iter().map(|review| &review.by).chain(comments) {
            let is_new = !by.is_bot && !by.login.is_empty() && !logins.contains(&by.login);
            if is_new && logins.len() < most {
                logins.push(by.login.clone());
            }
        }
        logins
    }
}

/// What one poll saw, with what the forge says elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatchedPullRequest {
    /// The pull request.
    pub pull: PolledPullRequest,
    /// Checks that the rules of its base require.
    pub required: Vec<RequiredCheck>,
    /// Those of its reviewers and commenters who may write to the repository, by name. Nobody else counts.
    pub writers: Vec<String>,
}

/// Whether a pull request could be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mergeability {
    /// The forge is still computing it.
    Unknown,
    /// It could.
    Clean,
    /// Its branch and its base have changed the same lines.
    Conflicts,
    /// A rule wants its base merged first.
    Behind,
    /// A rule forbids it: a review, a check, or something else is missing.
    Blocked,
}

/// The verdict of reviewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewDecision {
    /// Nobody has to review it.
    NotNeeded,
    /// A review is missing.
    Required,
    /// It is approved.
    Approved,
    /// Somebody wants changes.
    ChangesRequested,
}

/// An account that wrote something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Author {
    /// Its name; empty if the account is deleted.
    pub login: String,
    /// The forge's id of it; 0 if the account is deleted.
    pub id: u64,
    /// It is a program's.
    pub is_bot: bool,
}

/// A review of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeenReview {
    /// The forge's id.
    pub id: u64,
    /// Who reviewed.
    pub by: Author,
    /// What it says.
    pub state: ReviewState,
    /// Its text.
    pub body: String,
    /// The commit that was reviewed; empty if it is gone.
    pub commit: String,
}

/// What a review says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewState {
    /// Approved.
    Approved,
    /// Changes are wanted.
    ChangesRequested,
    /// Comments alone; GitHub makes such a review for a single comment too.
    Commented,
    /// It was dismissed, or is of a kind that is not known here.
    Dismissed,
}

/// A thread of comments on lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReviewThread {
    /// The forge's id.
    pub id: String,
    /// The file.
    pub path: String,
    /// The line; `None` if the commit has it no more.
    pub line: Option<u64>,
    /// Somebody has resolved it.
    pub is_resolved: bool,
    /// The lines have changed since.
    pub is_outdated: bool,
    /// Its comments, oldest first.
    pub comments: Vec<SeenComment>,
    /// The lines that the first comment is about, as a diff.
    pub hunk: String,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeenComment {
    /// The forge's id.
    pub id: u64,
    /// Who wrote it.
    pub by: Author,
    /// Nobody else has edited it.
    pub is_own: bool,
    /// Its text.
    pub body: String,
    /// When it was written, or edited last.
    pub at_ms: Ms,
    /// Its page.
    pub page: String,
}
