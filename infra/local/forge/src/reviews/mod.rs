//! What people and apps say about a pull request: reviews, threads of comments on lines, comments below it, reactions.

mod lines;
pub(crate) mod remarks;
mod show;
pub(crate) mod threads;
pub(crate) mod told;
pub(crate) mod verdicts;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::permission::{Level, of_person};
use crate::record::{Pull, RepositoryRecord};
use crate::state::ForgeState;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Speaker {
    /// Account.
    pub(crate) author: u64,
    /// The app through which it is said.
    pub(crate) via: Option<u64>,
}

/// What a review says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Approved,
    ChangesRequested,
    Commented,
    Dismissed,
}

impl Verdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::ChangesRequested => "CHANGES_REQUESTED",
            Self::Commented => "COMMENTED",
            Self::Dismissed => "DISMISSED",
        }
    }
}

/// A review. Each single comment and each reply has one of its own, without a text.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Review {
    pub(crate) id: u64,
    /// The pull request's own id.
    pub(crate) pull: u64,
    pub(crate) voice: Speaker,
    pub(crate) verdict: Verdict,
    pub(crate) body: String,
    pub(crate) sha: String,
    pub(crate) submitted_at: i64,
}

/// A side of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Side {
    Left,
    #[default]
    Right,
}

impl Side {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Left => "LEFT",
            Self::Right => "RIGHT",
        }
    }
}

/// A place in a difference, and whether what is said there is settled.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    pub(crate) path: String,
    pub(crate) side: Side,
    /// Where it is now; `None` once a push has changed that line, or for a whole file.
    pub(crate) line: Option<u64>,
    pub(crate) original_line: Option<u64>,
    pub(crate) start_line: Option<u64>,
    pub(crate) original_start_line: Option<u64>,
    pub(crate) is_outdated: bool,
    pub(crate) position: u64,
    pub(crate) hunk: String,
    /// The commit on which the line is.
    pub(crate) sha: String,
    pub(crate) original_sha: String,
    pub(crate) resolved_by: Option<u64>,
}

impl Thread {
    pub(crate) const fn is_file(&self) -> bool {
        self.original_line.is_none()
    }
}

/// A comment of a thread; the first one is its top.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LineComment {
    pub(crate) id: u64,
    pub(crate) thread: u64,
    pub(crate) review: u64,
    /// The thread's top comment.
    pub(crate) reply_to: Option<u64>,
    pub(crate) voice: Speaker,
    pub(crate) body: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// A comment below a pull request.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Remark {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    pub(crate) voice: Speaker,
    pub(crate) body: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// A reaction to a pull request or a comment, by its id.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Reaction {
    pub(crate) id: u64,
    pub(crate) of: u64,
    pub(crate) author: u64,
    pub(crate) content: String,
    pub(crate) created_at: i64,
}

/// Everything that is said about pull requests, each list oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Discussion {
    pub(crate) reviews: Vec<Review>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) comments: Vec<LineComment>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) reactions: Vec<Reaction>,
}

impl Discussion {
    pub(crate) fn review(&self, id: u64) -> Result<&Review, ApiError> {
        self.reviews.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn thread(&self, id: u64) -> Result<&Thread, ApiError> {
        self.threads.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn comment(&self, id: u64) -> Result<&LineComment, ApiError> {
        self.comments.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn remark(&self, id: u64) -> Result<&Remark, ApiError> {
        self.remarks.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    /// Drops what was said about these pull requests.
    pub(crate) fn forget(&mut self, pulls: &[u64]) {
        self.reviews.retain(|one| !pulls.contains(&one.pull));
        self.threads.retain(|one| !pulls.contains(&one.pull));
        self.remarks.retain(|one| !pulls.contains(&one.pull));
        let threads: Vec<u64> = self.threads.iter().map(|one| one.id).collect();
        self.comments.retain(|one| threads.contains(&one.thread));
        let said = self.comments.iter().map(|one| one.id);
        let said: Vec<u64> = said.chain(self.remarks.iter().map(|one| one.id)).collect();
        self.reactions.retain(|one| said.contains(&one.of) || !pulls.contains(&one.of));
    }

    /// The threads of a pull request.
    pub(crate) fn threads_of(&self, pull: u64) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(move |one| one.pull == pull)
    }

    /// The comments of a thread, its top first.
    pub(crate) fn comments_in(&self, thread: u64) -> impl Iterator<Item = &LineComment> {
        self.comments.iter().filter(move |one| one.thread == thread)
    }

    /// The comments on lines of a pull request, each with its thread.
    pub(crate) fn comments_of(&self, pull: u64) -> Vec<(&LineComment, &Thread)> {
        let with_thread = |one: &LineComment| self.thread(one.thread).ok();
        let all = self.comments.iter().filter_map(|one| Some((one, with_thread(one)?)));
        all.filter(|(_, thread)| thread.pull == pull).collect()
    }

    /// What each person has decided last; a comment decides nothing.
    pub(crate) fn verdicts_of(&self, pull: u64) -> BTreeMap<u64, &Review> {
        let own = self.reviews.iter().filter(|one| one.pull == pull);
        let decided = own.filter(|one| one.verdict != Verdict::Commented);
        decided.map(|one| (one.voice.author, one)).collect()
    }
}

impl ForgeState {
    pub(crate) fn pull_of_id(&self, id: u64) -> Result<&Pull, ApiError> {
        self.pulls.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    /// Reviews of people with write access that count now, with this verdict.
    pub(crate) fn counting(&self, pull: &Pull, verdict: Verdict) -> usize {
        let Ok(record) = self.repository(pull.repository) else { return 0 };
        let decided = self.talk.verdicts_of(pull.id).into_values();
        let own = decided.filter(|one| one.verdict == verdict);
        own.filter(|one| self.may_write(record, one.voice.author)).count()
    }

    pub(crate) fn may_write(&self, record: &RepositoryRecord, person: u64) -> bool {
        let owner = self.accounts.get(&record.owner);
        owner.is_some_and(|owner| of_person(person, record, owner) >= Level::Write)
    }
}
