//! What a pane shows of the forge.

use serde::Serialize;

use crate::api_error::ApiError;
use crate::git::Git;
use crate::git::diff::Change;
use crate::pulls;
use crate::record::{Pull, PullState, RepositoryRecord};
use crate::state::{ForgeState, SharedEngine};

/// A repository.
#[derive(Clone, Debug, Serialize)]
pub struct RepositoryView {
    /// Its id, which a new name does not change.
    pub id: u64,
    /// `owner/name`.
    pub full_name: String,
    /// Only its people see it.
    pub is_private: bool,
    /// Nothing can be changed.
    pub is_archived: bool,
    /// Name of its default branch.
    pub default_branch: String,
    /// Address for `git clone`.
    pub clone_url: String,
    /// Its branches, by name.
    pub branches: Vec<BranchView>,
    /// Its pull requests, newest first, without their files.
    pub pull_requests: Vec<PullRequestView>,
}

/// A branch.
#[derive(Clone, Debug, Serialize)]
pub struct BranchView {
    /// Its name.
    pub name: String,
    /// Its commit.
    pub sha: String,
    /// First line of that commit's message.
    pub subject: String,
}

/// A pull request.
#[derive(Clone, Debug, Serialize)]
pub struct PullRequestView {
    /// Its number in its repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Branch with the changes.
    pub head: String,
    /// Commit of that branch.
    pub head_sha: String,
    /// Branch that they are for.
    pub base: String,
    /// Login of who opened it.
    pub author: String,
    /// `draft`, `open`, `merged` or `closed`.
    pub state: &'static str,
    /// Address of its page.
    pub url: String,
    /// Changed files; of one pull request only.
    pub files: Vec<FileView>,
}

/// A changed file.
#[derive(Clone, Debug, Serialize)]
pub struct FileView {
    /// Its path, the new one if it was renamed.
    pub path: String,
    /// `added`, `removed`, `modified`, `renamed` or `changed`.
    pub status: &'static str,
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// What changed, as text; `None` of a binary file.
    pub patch: Option<String>,
}

impl From<Change> for FileView {
    fn from(change: Change) -> Self {
        Self {
            path: change.path,
            status: change.status,
            additions: change.additions,
            deletions: change.deletions,
            patch: change.patch,
        }
    }
}

fn pull_view(
    engine: &SharedEngine,
    inner: &ForgeState,
    full_name: &str,
    pull: &Pull,
) -> PullRequestView {
    let author = inner.accounts.get(&pull.author).map_or("ghost", |one| &one.login);
    PullRequestView {
        number: pull.number,
        title: pull.title.clone(),
        body: pull.body.clone().unwrap_or_default(),
        head: pull.head.clone(),
        head_sha: pull.head_sha.clone(),
        base: pull.base.clone(),
        author: author.to_owned(),
        state: match pull.state {
            PullState::Open if pull.is_draft => "draft",
            PullState::Open => "open",
            PullState::Merged => "merged",
            PullState::Closed => "closed",
        },
        url: format!("{}/{full_name}/pull/{}", engine.addresses.web, pull.number),
        files: Vec::new(),
    }
}

/// Every repository, by name.
pub(crate) async fn repositories(engine: &SharedEngine) -> Result<Vec<RepositoryView>, ApiError> {
    let records: Vec<RepositoryRecord> = engine.lock().repositories.values().cloned().collect();
    let mut views = Vec::new();
    for record in records {
        let branches = Git::new(engine, record.id).references("refs/heads/").await?;
        let branches = branches.into_iter().map(|one| BranchView {
            name: one.name.trim_start_matches("refs/heads/").to_owned(),
            sha: one.sha,
            subject: one.subject,
        });
        let inner = engine.lock();
        let full_name = inner.full_name(&record);
        let pulls = inner.pulls.iter().rev().filter(|one| one.repository == record.id);
        views.push(RepositoryView {
            id: record.id,
            is_private: record.is_private,
            is_archived: record.is_archived,
            default_branch: record.default_branch,
            clone_url: format!("{}/{full_name}.git", engine.addresses.web),
            branches: branches.collect(),
            pull_requests: pulls.map(|one| pull_view(engine, &inner, &full_name, one)).collect(),
            full_name,
        });
    }
    views.sort_by(|one, other| one.full_name.cmp(&other.full_name));
    Ok(views)
}

/// One pull request with its files.
pub(crate) async fn pull_request(
    engine: &SharedEngine,
    full_name: &str,
    number: u64,
) -> Result<PullRequestView, ApiError> {
    let (pull, mut view) = {
        let inner = engine.lock();
        let (owner, name) = full_name.split_once('/').ok_or_else(ApiError::not_found)?;
        let id = inner.named(owner, name).ok_or_else(ApiError::not_found)?.id;
        let pull = inner.pull(id, number)?.clone();
        let view = pull_view(engine, &inner, full_name, &pull);
        (pull, view)
    };
    let git = Git::new(engine, pull.repository);
    let (base, head) = pulls::range(&git, &pull).await?;
    view.files = git.changes(&base, &head).await?.into_iter().map(FileView::from).collect();
    Ok(view)
}
