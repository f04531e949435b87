//! The interface to what is read of an open pull request beside its poll, and what is done to it.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::drafted_review::{DiffFile, NewReview};
use bobbin_core::records::given_pull::GivenPull;

use crate::error::ForgeResult;
use crate::forge::RepositoryAt;

/// Why a check failed, as far as it says. All of it is data that programs of the repository wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckFailure {
    /// The check's own title and summary; empty without.
    pub summary: String,
    /// What it says of lines, the first 50.
    pub annotations: Vec<CheckAnnotation>,
    /// Names of the steps that failed, where it is a job with steps.
    pub steps: Vec<String>,
    /// The end of the log of those steps, at most 64 KB, without credentials; empty without a log.
    pub log: String,
}

/// What a check says of lines in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAnnotation {
    /// The file.
    pub path: String,
    /// The first line.
    pub line: u64,
    /// `notice`, `warning` or `failure`.
    pub level: String,
    /// What it says.
    pub message: String,
}

/// Something that was written below a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remark {
    /// A comment of a review thread, by its id.
    Line(u64),
    /// A comment on the whole, by its id.
    Whole(u64),
}

/// A text to be said below a pull request. Its name is part of it, out of sight: a repeat finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRemark {
    /// The review thread's first comment; `None`: on the whole.
    pub thread: Option<u64>,
    /// The name, of letters, digits and `-`.
    pub name: String,
    /// The text, in the forge's Markdown.
    pub body: String,
}

/// The end of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// It is merged.
    Done,
    /// It waits in the repository's merge queue.
    Queued,
    /// The head is another than the one that the person saw.
    HeadMoved,
    /// The forge does not merge it, for this reason in its own words.
    Refused {
        /// The reason.
        why: String,
    },
}

/// The end of a merge of the base into the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchUpdate {
    /// It is begun, or there is nothing to merge.
    Done,
    /// The head is another than the one that the person saw.
    HeadMoved,
    /// Both have changed the same lines.
    Conflicts,
    /// The forge does not do it, for this reason in its own words.
    Refused {
        /// The reason.
        why: String,
    },
}

/// A pull request that is seen through. A repeat of any call is harmless.
#[async_trait]
pub trait PullRequests: Send + Sync {
    /// Why the check run with this id failed.
    async fn check_failure(&self, at: &RepositoryAt, check: u64) -> ForgeResult<CheckFailure>;

    /// Shows that a remark was seen.
    async fn mark_seen(&self, at: &RepositoryAt, remark: Remark) -> ForgeResult<()>;

    /// Says something, unless it was said under this name.
    async fn say(&self, at: &RepositoryAt, number: u64, remark: &NewRemark) -> ForgeResult<()>;

    /// Resolves a review thread, by its id.
    async fn resolve_thread(&self, at: &RepositoryAt, thread: &str) -> ForgeResult<()>;

    /// Asks these accounts for another review.
    async fn ask_for_review(
        &self,
        at: &RepositoryAt,
        number: u64,
        logins: &[String],
    ) -> ForgeResult<()>;

    /// Makes a draft ready for review, as the person of this access token.
    async fn mark_ready(&self, at: &RepositoryAt, number: u64, person: &Secret) -> ForgeResult<()>;

    /// Merges it as the person of this access token, if its head is the commit that they saw: by the merge queue where
    /// there is one, else in the first way that the repository allows (merge, squash, rebase).
    async fn merge(
        &self,
        at: &RepositoryAt,
        number: u64,
        head: &str,
        person: &Secret,
    ) -> ForgeResult<Merged>;

    /// Merges the base into the branch as the person of this access token, if its head is the commit that they saw.
    async fn update_branch(
        &self,
        at: &RepositoryAt,
        number: u64,
        head: &str,
        person: &Secret,
    ) -> ForgeResult<BranchUpdate>;

    /// The pull request with this number, and its newest commit; `None` if there is none.
    async fn given(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<Option<(GivenPull, String)>>;

    /// What a commit changes since it left the history of the base, with the lines that the forge shows of it.
    async fn difference(
        &self,
        at: &RepositoryAt,
        base: &str,
        head: &str,
    ) -> ForgeResult<Vec<DiffFile>>;

    /// Posts a review, unless it is there under its name. Returns its page.
    async fn review(
        &self,
        at: &RepositoryAt,
        number: u64,
        review: &NewReview,
    ) -> ForgeResult<String>;
}
