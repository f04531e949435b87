//! The interface to the forges where repositories live.

use std::fmt;

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::checks::RequiredCheck;
use bobbin_core::records::pull_request::PolledPullRequest;

use crate::error::ForgeResult;
use crate::git::{Fetch, Fetched, ObjectId, PackSink, Push, Pushed, Refs, TreeEntry};

/// Longest owner's name, and longest name of a repository, in bytes.
const PART_BYTES_MAX: usize = 100;

/// Owner and name of a repository. Both can change; the [`RepositoryId`] stays.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepositoryName {
    owner: String,
    name: String,
}

impl RepositoryName {
    /// From its two parts: letters, digits, `-`, `_` and `.`, but neither `.` nor `..`.
    #[must_use]
    pub fn new(owner: &str, name: &str) -> Option<Self> {
        let is_char = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let is_part = |part: &str| {
            (1..=PART_BYTES_MAX).contains(&part.len())
                && part.bytes().all(is_char)
                && part.bytes().any(|b| b != b'.')
        };
        let named = is_part(owner) && is_part(name);
        named.then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// From `owner/name`, or from a clone address below `git`, the forge's base of clone addresses: over https as the
    /// forge shows it, or over SSH as `git@HOST:owner/name.git`. Addresses of other hosts and of pages are none.
    #[must_use]
    pub fn parse(text: &str, git: &str) -> Option<Self> {
        let git = git.trim_end_matches('/');
        let host = git.split_once("://").map_or(git, |(_, host)| host);
        let below = |base: &str| {
            let (start, rest) = text.split_at_checked(base.len())?;
            start.eq_ignore_ascii_case(base).then_some(rest)
        };
        let path = below(&format!("{git}/"))
            .or_else(|| below(&format!("git@{host}:")))
            .or_else(|| below(&format!("ssh://git@{host}/")));
        let path = path.unwrap_or(text).trim_end_matches('/');
        let (owner, name) = path.split_once('/')?;
        Self::new(owner, name.strip_suffix(".git").unwrap_or(name))
    }

    /// Who owns it.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Its name at the owner's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// The forge's id of a repository: renamed or transferred, it keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepositoryId(pub u64);

/// Kinds of account that own repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// An organisation.
    Organization,
    /// A person.
    User,
}

/// An account that owns repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The forge's id, which a renamed account keeps.
    pub id: u64,
    /// Its name, for show: another account may get it later.
    pub login: String,
    /// What it is.
    pub kind: OwnerKind,
}

/// The app at one owner's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The forge's id.
    pub id: u64,
    /// Where it is installed.
    pub owner: Owner,
    /// The owner has suspended it.
    pub is_suspended: bool,
    /// It includes all repositories of the owner, those made later too.
    pub has_all: bool,
    /// Permissions that Bobbin asks for and that are not granted, each as `name: level`.
    pub missing: Vec<String>,
    /// The page on which the owner changes it.
    pub page: String,
}

/// A repository that an installation includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The forge's id.
    pub id: RepositoryId,
    /// Its present name.
    pub name: RepositoryName,
    /// Who owns it.
    pub owner: Owner,
    /// The installation that includes it.
    pub installation: u64,
    /// Not everybody may see it.
    pub is_private: bool,
    /// It is read-only.
    pub is_archived: bool,
    /// Short name of the default branch, even if the repository is empty.
    pub default_branch: String,
    /// The forge's estimate of its size in kilobytes, which may be hours old.
    pub size_kb: u64,
    /// The installation may write, and the repository is not archived. A rule may still refuse a push.
    pub can_push: bool,
}

impl Repository {
    /// The target of operations on it.
    #[must_use]
    pub fn at(&self) -> RepositoryAt {
        RepositoryAt {
            installation: self.installation,
            repository: self.id,
            name: self.name.clone(),
        }
    }
}

/// The target of an operation: a repository by its id. Operations find its present name by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryAt {
    /// The installation that includes it.
    pub installation: u64,
    /// The repository.
    pub repository: RepositoryId,
    /// Its name when it was last seen.
    pub name: RepositoryName,
}

/// Repositories of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryList {
    /// At most 1,000 of them, in the forge's order.
    pub repositories: Vec<Repository>,
    /// How many there are.
    pub total: u64,
}

/// State of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestState {
    /// Open, perhaps as a draft.
    Open,
    /// Closed and not merged.
    Closed,
    /// Merged.
    Merged,
}

/// A pull request between two branches of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// Its page.
    pub page: String,
    /// Its state.
    pub state: PullRequestState,
    /// It is a draft.
    pub is_draft: bool,
    /// Its subject.
    pub subject: String,
    /// Short name of the branch that it wants to have merged.
    pub head: String,
    /// Where that branch was at this look.
    pub head_commit: ObjectId,
    /// Short name of the branch into which it is to be merged.
    pub base: String,
}

/// A pull request to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    /// Short name of the branch with the changes.
    pub head: String,
    /// Short name of the branch into which they are to be merged.
    pub base: String,
    /// Its subject.
    pub subject: String,
    /// Its text, in the forge's Markdown.
    pub body: String,
    /// Open it as a draft, where the forge has drafts.
    pub is_draft: bool,
    /// The access token of the person who is to be its author; `None`: the app is.
    pub person: Option<Secret>,
}

/// What to change about a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestChange {
    /// Its number.
    pub number: u64,
    /// Another subject.
    pub subject: Option<String>,
    /// Another text.
    pub body: Option<String>,
}

/// Properties of a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgeFacts<'a> {
    /// The word for it in settings and records.
    pub name: &'static str,
    /// Its name as it writes it.
    pub brand: &'static str,
    /// Base address of its pages.
    pub web: &'a str,
    /// Base of its clone addresses.
    pub git: &'a str,
    /// The page on which an owner installs the app, or changes its installation.
    pub install: &'a str,
}

/// A forge, seen as the app. A repeat of any call is harmless.
#[async_trait]
pub trait Forge: fmt::Debug + Send + Sync {
    /// Its properties.
    fn facts(&self) -> ForgeFacts<'_>;

    /// The app's installation at an account; [`NotInstalled`](crate::ForgeErrorKind::NotInstalled) if there is
    /// none.
    async fn installation(&self, login: &str, kind: OwnerKind) -> ForgeResult<Installation>;

    /// The installation with this id; [`NotInstalled`](crate::ForgeErrorKind::NotInstalled) if it has ended.
    async fn installation_by_id(&self, installation: u64) -> ForgeResult<Installation>;

    /// The repositories that an installation includes.
    async fn repositories(&self, installation: u64) -> ForgeResult<RepositoryList>;

    /// The repository with this name, or with another if it was renamed;
    /// [`NotInstalled`](crate::ForgeErrorKind::NotInstalled) if no installation includes it, or there is none.
    async fn repository(&self, name: &RepositoryName) -> ForgeResult<Repository>;

    /// The repository with this id.
    async fn repository_by_id(
        &self,
        installation: u64,
        id: RepositoryId,
    ) -> ForgeResult<Repository>;

    /// Default branch, and the refs whose full names begin with one of these; without any, all of them.
    async fn refs(&self, at: &RepositoryAt, prefixes: &[String]) -> ForgeResult<Refs>;

    /// Streams a pack to the sink; [`TooLarge`](crate::ForgeErrorKind::TooLarge) as soon as it exceeds its bound.
    /// After an error, what the sink has taken is worthless.
    async fn fetch(
        &self,
        at: &RepositoryAt,
        what: &Fetch,
        sink: &mut dyn PackSink,
    ) -> ForgeResult<Fetched>;

    /// Moves one ref, if it is where it has to be. After an error, whether it was moved is unknown: a repeat finds out.
    async fn push(&self, at: &RepositoryAt, push: Push) -> ForgeResult<Pushed>;

    /// The entries of one folder.
    async fn tree(&self, at: &RepositoryAt, tree: &ObjectId) -> ForgeResult<Vec<TreeEntry>>;

    /// The newest commit that both histories have.
    async fn merge_base(
        &self,
        at: &RepositoryAt,
        one: &ObjectId,
        other: &ObjectId,
    ) -> ForgeResult<ObjectId>;

    /// The newest pull request, in any state, of the branch with this short name.
    async fn pull_request(&self, at: &RepositoryAt, head: &str)
    -> ForgeResult<Option<PullRequest>>;

    /// Opens a pull request, unless its branch has one, in any state: that one is adopted.
    async fn open_pull_request(
        &self,
        at: &RepositoryAt,
        new: &NewPullRequest,
    ) -> ForgeResult<PullRequest>;

    /// The pull request with all that happened to it, by one look. What the forge leaves out is an error.
    async fn poll_pull_request(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<PolledPullRequest>;

    /// The checks that the rules of the branch with this short name require.
    async fn required_checks(
        &self,
        at: &RepositoryAt,
        base: &str,
    ) -> ForgeResult<Vec<RequiredCheck>>;

    /// Those of these accounts, by name, that may write to the repository.
    async fn writers(&self, at: &RepositoryAt, logins: &[String]) -> ForgeResult<Vec<String>>;

    /// Changes subject or text.
    async fn update_pull_request(
        &self,
        at: &RepositoryAt,
        change: &PullRequestChange,
    ) -> ForgeResult<PullRequest>;
}
