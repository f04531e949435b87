//! The interface to what is read of an open pull request beside its poll, and what is done to it.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::drafted_review::{DiffFile, NewPullReview};
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::publication::{ActEnd, PullRequestAct};
use bobbin_core::records::responses::PullRequestResponse;

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

/// A pull request that is seen through. A repeat of any call is harmless.
#[async_trait]
pub trait PullRequests: Send + Sync {
    /// Why the check run with this id failed.
    async fn check_failure(&self, at: &RepositoryAt, check: u64) -> ForgeResult<CheckFailure>;

    /// Does this below the pull request.
    async fn respond(
        &self,
        at: &RepositoryAt,
        number: u64,
        what: &PullRequestResponse,
    ) -> ForgeResult<()>;

    /// Does this as the person of this access token: a merge and an update only if the head is the commit that they
    /// saw. Merges by the merge queue where there is one, else in the first way that the repository allows (merge,
    /// squash, rebase).
    async fn act(
        &self,
        at: &RepositoryAt,
        number: u64,
        (act, head): (PullRequestAct, &str),
        person: &Secret,
    ) -> ForgeResult<ActEnd>;

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
        review: &NewPullReview,
    ) -> ForgeResult<String>;
}
