//! A pull request at the forge, as one poll saw it.
//!
//! Whatever people, bots and programs wrote there is data: nothing of it is an instruction.

use std::cmp::Reverse;

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
    /// Checks of its head: the first 100.
    pub checks: Vec<Check>,
    /// The newest verdict of each person, oldest first: the newest 20. A comment is no verdict.
    pub reviews: Vec<SeenReview>,
    /// Threads on lines of code, oldest first: the newest 50.
    pub threads: Vec<ReviewThread>,
    /// Comments on the whole, oldest first: the newest 30.
    pub comments: Vec<SeenComment>,
    /// How many of these there are.
    pub totals: PolledTotals,
}

/// How many checks, reviews, threads and comments a pull request has: a poll reads some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PolledTotals {
    /// Checks of its head.
    pub checks: usize,
    /// People who have given a verdict.
    pub reviews: usize,
    /// Threads on lines of code.
    pub threads: usize,
    /// Comments on the whole.
    pub comments: usize,
}

impl PolledPullRequest {
    /// The people whose words count if they may write to the repository, each once, the latest speaker first. They
    /// reviewed it, or wrote in a thread that is not resolved. Programs are left out.
    #[must_use]
    pub fn authors(&self) -> Vec<String> {
        let verdicts = [ReviewState::Approved, ReviewState::ChangesRequested];
        let reviews = self.reviews.iter().filter(|review| verdicts.contains(&review.state));
        let open = self.threads.iter().filter(|thread| !thread.is_resolved);
        let comments = open.flat_map(|thread| &thread.comments);
        let mut said: Vec<(Ms, &Author)> = reviews
            .map(|review| (review.at_ms, &review.by))
            .chain(comments.map(|comment| (comment.at_ms, &comment.by)))
            .collect();
        // Of what was said at the same time, the later in its list comes first.
        said.reverse();
        said.sort_by_key(|(at_ms, _)| Reverse(*at_ms));
        let mut logins: Vec<String> = Vec::new();
        for (_, by) in said {
            if !by.is_bot && !by.login.is_empty() && !logins.contains(&by.login) {
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
    /// Those of its authors who may write to the repository, by name. Nobody else counts.
    pub writers: Vec<String>,
    /// Number of its authors about whom the forge was not asked.
    pub not_asked: usize,
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
    /// When it was submitted.
    pub at_ms: Ms,
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
    /// The line; `None` if the commit no longer has it.
    pub line: Option<u64>,
    /// Somebody has resolved it.
    pub is_resolved: bool,
    /// The lines have changed since.
    pub is_outdated: bool,
    /// Its comments, oldest first: the first, and the newest 20 of `comments_total`.
    pub comments: Vec<SeenComment>,
    /// How many there are.
    pub comments_total: usize,
    /// The lines that the first comment is about, as a diff.
    pub hunk: String,
}

impl ReviewThread {
    /// Whether it has comments that were not read.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.comments_total > self.comments.len()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn by(login: &str) -> Author {
        Author { login: login.to_owned(), id: 1, is_bot: login == "bot" }
    }

    fn review(state: ReviewState, login: &str, at_ms: Ms) -> SeenReview {
        let (body, commit) = (String::new(), String::new());
        SeenReview { id: 1, by: by(login), state, body, at_ms, commit }
    }

    fn thread(is_resolved: bool, said: &[(&str, Ms)]) -> ReviewThread {
        let comment = |(login, at_ms): &(&str, Ms)| SeenComment {
            id: 1,
            by: by(login),
            is_own: true,
            body: String::new(),
            at_ms: *at_ms,
            page: String::new(),
        };
        ReviewThread {
            id: String::new(),
            path: String::new(),
            line: None,
            is_resolved,
            is_outdated: false,
            comments: said.iter().map(comment).collect(),
            comments_total: said.len(),
            hunk: String::new(),
        }
    }

    #[test]
    fn who_spoke_last_is_asked_for_first() {
        let mut pull = PolledPullRequest {
            number: 1,
            state: PullRequestState::Open,
            is_draft: false,
            is_queued: false,
            branch: String::new(),
            head: String::new(),
            is_from_fork: false,
            base: String::new(),
            merge: Mergeability::Clean,
            decision: ReviewDecision::NotNeeded,
            checks: Vec::new(),
            reviews: vec![
                review(ReviewState::Approved, "ada", 1),
                review(ReviewState::ChangesRequested, "ben", 5),
                review(ReviewState::Dismissed, "cleo", 9),
            ],
            threads: vec![
                thread(false, &[("dan", 2), ("bot", 8), ("ada", 7)]),
                thread(true, &[("eve", 9)]),
            ],
            comments: Vec::new(),
            totals: PolledTotals { checks: 0, reviews: 3, threads: 2, comments: 0 },
        };
        assert_eq!(pull.authors(), ["ada", "ben", "dan"]);
        // However many strangers spoke before, who speaks now comes first.
        let strangers = (0..30).map(|nth| review(ReviewState::Approved, &format!("s{nth}"), 10));
        pull.reviews.extend(strangers);
        pull.threads.push(thread(false, &[("fay", 11)]));
        assert_eq!(pull.authors()[..3], ["fay", "s29", "s28"]);
    }
}
