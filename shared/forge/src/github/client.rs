//! GitHub as a [`Forge`]: each operation mints its token, makes its calls, and revokes the token.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::checks::RequiredCheck;
use bobbin_core::records::pull_request::PolledPullRequest;
use bobbin_http::{HttpError, Method};

use super::app::AppKey;
use super::carry::{USER, explained, failed};
use super::people;
use super::poll;
use super::pulls;
use super::repositories::{InstallationBody, RepositoriesPage, TokenBody};
use super::required;
use super::rest::{Call, RestClient, RestCredential, RestError, now_s};
use super::settings::GitHubSettings;
use super::token::{Right, Token, TokenScope, request};
use super::trees::{ComparisonBody, TreeBody};
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};
use crate::forge::{
    Forge, ForgeFacts, Installation, NewPullRequest, OwnerKind, PullRequest, PullRequestChange,
    Repository, RepositoryAt, RepositoryId, RepositoryList, RepositoryName,
};
use crate::git::{Fetch, Fetched, ObjectId, PackSink, Push, Pushed, Refs, Remote, TreeEntry};

/// Items of one page, GitHub's maximum.
pub(super) const PAGE_ITEMS: &str = "100";
/// Most pages of a listing.
pub(super) const PAGES_MAX: u32 = 10;

/// GitHub, as one app of it.
pub struct GitHub {
    pub(super) settings: GitHubSettings,
    pub(super) rest: Arc<RestClient>,
    key: AppKey,
    install: String,
}

impl fmt::Debug for GitHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, .. } = self;
        f.debug_struct("GitHub").field("addresses", &settings.addresses).finish_non_exhaustive()
    }
}

impl GitHub {
    /// A client of these settings. A key that cannot be read is told by each call that needs it.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when an address is not allowed.
    pub fn new(settings: GitHubSettings) -> Result<Self, HttpError> {
        Ok(Self {
            rest: Arc::new(RestClient::new(&settings.addresses)?),
            key: AppKey::of(&settings.private_key),
            install: settings.install_page(),
            settings,
        })
    }

    pub(super) fn signature(&self) -> ForgeResult<Secret> {
        self.key.sign(&self.settings.issuer, now_s())
    }

    /// A token for one operation on one repository.
    pub(super) async fn token(&self, at: &RepositoryAt, right: Right) -> ForgeResult<Token> {
        self.minted(at.installation, TokenScope::Id(at.repository), right).await
    }

    async fn minted(
        &self,
        installation: u64,
        scope: TokenScope<'_>,
        right: Right,
    ) -> ForgeResult<Token> {
        let signature = self.signature()?;
        let id = installation.to_string();
        let path = ["app", "installations", &id, "access_tokens"];
        let call = Call::sending(
            RestCredential::App(&signature),
            Method::POST,
            &path,
            &request(scope, right),
        );
        let body: TokenBody = match self.rest.read(call).await {
            Ok(body) => body,
            Err(error) => return Err(self.not_minted(&id, right, error).await),
        };
        let name = match (scope, body.repositories.as_slice()) {
            (TokenScope::Id(_) | TokenScope::Name(_), [repository]) => repository.named(),
            _ => None,
        };
        Ok(Token::new(&self.rest, body.token, name))
    }

    /// Looks why there is no token: GitHub's refusals of it have the same few words for all reasons.
    async fn not_minted(&self, installation: &str, right: Right, error: RestError) -> ForgeError {
        if !matches!(error.status(), Some(403 | 404 | 422)) {
            return error.into();
        }
        let found = match self.installed(&["app", "installations", installation]).await {
            Ok(found) => found,
            Err(error) => return error,
        };
        let login = found.login();
        let missing = found.lacks(right.permissions());
        let (kind, seen) = if found.is_suspended() {
            (ForgeErrorKind::Suspended, format!("{login} has suspended Bobbin's installation."))
        } else if !missing.is_empty() {
            let seen = format!(
                "{login} has not granted what Bobbin needs for this: {}.",
                missing.join(", ")
            );
            (ForgeErrorKind::PermissionsMissing(missing), seen)
        } else {
            let seen = format!("Bobbin's installation at {login} does not include the repository.");
            (ForgeErrorKind::NotInstalled, seen)
        };
        ForgeError::lasting(kind, seen).mended_at(found.html_url)
    }

    /// The installation at an address, whether it may be used or not.
    async fn installed(&self, path: &[&str]) -> ForgeResult<InstallationBody> {
        let signature = self.signature()?;
        match self.rest.read(Call::get(RestCredential::App(&signature), path)).await {
            Ok(found) => Ok(found),
            Err(error) if error.is_absence() => Err(self.not_installed()),
            Err(error) => Err(error.into()),
        }
    }

    fn not_installed(&self) -> ForgeError {
        let seen = "Bobbin's GitHub app is not installed there, or there is no such repository.";
        ForgeError::lasting(ForgeErrorKind::NotInstalled, seen).mended_at(&self.install)
    }

    /// The one repository of this scope.
    async fn one(
        &self,
        installation: InstallationBody,
        scope: TokenScope<'_>,
    ) -> ForgeResult<Repository> {
        if installation.is_suspended() {
            let seen = format!("{} has suspended Bobbin's installation.", installation.login());
            return Err(ForgeError::lasting(ForgeErrorKind::Suspended, seen)
                .mended_at(installation.html_url));
        }
        let token = self.minted(installation.id, scope, Right::Metadata).await?;
        let read = self.page(&token, 1).await;
        token.end().await;
        let page = read?;
        let mut found = page.repositories.into_iter();
        match (found.next().and_then(|found| found.of(&installation)), found.next()) {
            (Some(found), None) => Ok(found),
            _ => Err(ForgeError::outage("GitHub did not answer with one repository")),
        }
    }

    async fn page(&self, token: &Token, page: u32) -> Result<RepositoriesPage, RestError> {
        let page = page.to_string();
        let query = [("per_page", PAGE_ITEMS), ("page", page.as_str())];
        let path = ["installation", "repositories"];
        self.rest.read(Call::get(token.by(), &path).with(&query)).await
    }

    async fn listed(
        &self,
        installation: &InstallationBody,
        token: &Token,
    ) -> ForgeResult<RepositoryList> {
        let mut listed = RepositoryList { repositories: Vec::new(), total: 0 };
        for number in 1..=PAGES_MAX {
            let page = self.page(token, number).await?;
            listed.total = page.total_count;
            let is_last = page.repositories.is_empty();
            let found = page.repositories.into_iter().filter_map(|one| one.of(installation));
            listed.repositories.extend(found);
            if is_last || listed.repositories.len() as u64 >= listed.total {
                break;
            }
        }
        Ok(listed)
    }

    /// The repository over git, for one operation.
    fn remote<'a>(&'a self, at: &RepositoryAt, token: &'a Token) -> Remote<'a> {
        let name = token.name.as_ref().unwrap_or(&at.name);
        Remote {
            http: &self.rest.http,
            address: format!("{}/{name}.git", self.settings.addresses.git),
            user: USER,
            secret: token.secret(),
        }
    }

    /// An error of an operation, with the page on which the owner can mend it.
    /// Ends the token of an operation, and says how that ended.
    pub(super) async fn ended<T, E: Into<ForgeError>>(
        &self,
        at: &RepositoryAt,
        token: Token,
        result: Result<T, E>,
    ) -> ForgeResult<T> {
        token.end().await;
        result.map_err(|error| self.told(at, error.into()))
    }

    pub(super) fn told(&self, at: &RepositoryAt, error: ForgeError) -> ForgeError {
        match error.kind {
            ForgeErrorKind::NotAllowedAddress => {
                let (web, owner) = (&self.settings.addresses.web, at.name.owner());
                error.mended_at(format!("{web}/organizations/{owner}/settings/security"))
            }
            ForgeErrorKind::Suspended if error.link.is_none() => error.mended_at(&self.install),
            _ => error,
        }
    }

    async fn opened(
        &self,
        at: &RepositoryAt,
        new: &NewPullRequest,
        token: &Token,
    ) -> Result<PullRequest, RestError> {
        let name = token.name.as_ref().unwrap_or(&at.name);
        let newest = || pulls::newest(&self.rest, token.by(), (at.repository, name), &new.head);
        if let Some(found) = newest().await? {
            return Ok(found);
        }
        let by = new.person.as_ref().map_or(token.by(), RestCredential::Person);
        match pulls::open(&self.rest, by, name, new).await {
            // The answer to an earlier attempt was lost, or the list lags.
            Err(error) if error.says("pull request already exists") => newest().await?.ok_or(error),
            opened => opened,
        }
    }
}

#[async_trait]
impl Forge for GitHub {
    fn facts(&self) -> ForgeFacts<'_> {
        let addresses = &self.settings.addresses;
        ForgeFacts {
            name: "github",
            brand: "GitHub",
            web: &addresses.web,
            git: &addresses.git,
            install: &self.install,
        }
    }

    async fn installation(&self, login: &str, kind: OwnerKind) -> ForgeResult<Installation> {
        let accounts = match kind {
            OwnerKind::Organization => "orgs",
            OwnerKind::User => "users",
        };
        Ok(self.installed(&[accounts, login, "installation"]).await?.into())
    }

    async fn installation_by_id(&self, installation: u64) -> ForgeResult<Installation> {
        let id = installation.to_string();
        Ok(self.installed(&["app", "installations", &id]).await?.into())
    }

    async fn repositories(&self, installation: u64) -> ForgeResult<RepositoryList> {
        let id = installation.to_string();
        let found = self.installed(&["app", "installations", &id]).await?;
        let token = self.minted(installation, TokenScope::All, Right::Metadata).await?;
        let listed = self.listed(&found, &token).await;
        token.end().await;
        listed
    }

    async fn repository(&self, name: &RepositoryName) -> ForgeResult<Repository> {
        let signature = self.signature()?;
        let path = ["repos", name.owner(), name.name(), "installation"];
        let error = match self.rest.read(Call::get(RestCredential::App(&signature), &path)).await {
            Ok(found) => return self.one(found, TokenScope::Name(name)).await,
            Err(error) => error,
        };
        if error.is_absence() {
            return Err(self.not_installed());
        }
        // It was renamed: GitHub names its id.
        let Some(id) = moved_to(&error) else {
            return Err(error.into());
        };
        let id_text = id.0.to_string();
        let found = self.installed(&["repositories", &id_text, "installation"]).await?;
        self.one(found, TokenScope::Id(id)).await
    }

    async fn repository_by_id(
        &self,
        installation: u64,
        id: RepositoryId,
    ) -> ForgeResult<Repository> {
        let installation = installation.to_string();
        let found = self.installed(&["app", "installations", &installation]).await?;
        self.one(found, TokenScope::Id(id)).await
    }

    async fn refs(&self, at: &RepositoryAt, prefixes: &[String]) -> ForgeResult<Refs> {
        let token = self.token(at, Right::ReadContents).await?;
        let refs = self.remote(at, &token).refs(prefixes).await;
        self.ended(at, token, refs.map_err(failed)).await
    }

    async fn fetch(
        &self,
        at: &RepositoryAt,
        what: &Fetch,
        sink: &mut dyn PackSink,
    ) -> ForgeResult<Fetched> {
        let token = self.token(at, Right::ReadContents).await?;
        let fetched = self.remote(at, &token).fetch(what, sink).await;
        self.ended(at, token, fetched.map_err(failed)).await
    }

    async fn push(&self, at: &RepositoryAt, push: Push) -> ForgeResult<Pushed> {
        let token = self.token(at, Right::WriteContents).await?;
        let pushed = self.remote(at, &token).push(push).await;
        self.ended(at, token, pushed.map_err(failed).and_then(explained)).await
    }

    async fn tree(&self, at: &RepositoryAt, tree: &ObjectId) -> ForgeResult<Vec<TreeEntry>> {
        let token = self.token(at, Right::ReadContents).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let id = tree.to_string();
        let path = ["repos", name.owner(), name.name(), "git", "trees", &id];
        let read = self.rest.read(Call::get(token.by(), &path)).await;
        let body: TreeBody = self.ended(at, token, read).await?;
        if body.truncated {
            let seen = "A folder has more entries than GitHub lists.";
            return Err(ForgeError::lasting(
                ForgeErrorKind::Refused { why: seen.to_owned() },
                seen,
            ));
        }
        let unknown = || ForgeError::outage("GitHub lists an entry of an unknown kind");
        body.entries().ok_or_else(unknown)
    }

    async fn merge_base(
        &self,
        at: &RepositoryAt,
        one: &ObjectId,
        other: &ObjectId,
    ) -> ForgeResult<ObjectId> {
        let token = self.token(at, Right::ReadContents).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let both = format!("{one}...{other}");
        let path = ["repos", name.owner(), name.name(), "compare", &both];
        // The first page lists changed files with their differences; no other does.
        let query = [("per_page", "1"), ("page", "2")];
        let read = self.rest.read(Call::get(token.by(), &path).with(&query)).await;
        let body: ComparisonBody = self.ended(at, token, read).await?;
        Ok(body.merge_base_commit.sha)
    }

    async fn pull_request(
        &self,
        at: &RepositoryAt,
        head: &str,
    ) -> ForgeResult<Option<PullRequest>> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let found = pulls::newest(&self.rest, token.by(), (at.repository, name), head).await;
        self.ended(at, token, found).await
    }

    async fn open_pull_request(
        &self,
        at: &RepositoryAt,
        new: &NewPullRequest,
    ) -> ForgeResult<PullRequest> {
        let right = match new.person {
            Some(_) => Right::ReadPullRequests,
            None => Right::WritePullRequests,
        };
        let token = self.token(at, right).await?;
        let opened = self.opened(at, new, &token).await;
        self.ended(at, token, opened).await
    }

    async fn poll_pull_request(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<PolledPullRequest> {
        let token = self.token(at, Right::PollPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let polled = poll::poll(&self.rest, token.by(), (at.repository, name), number).await;
        self.ended(at, token, polled).await
    }

    async fn required_checks(
        &self,
        at: &RepositoryAt,
        base: &str,
    ) -> ForgeResult<Vec<RequiredCheck>> {
        let token = self.token(at, Right::ReadContents).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let read = required::read(&self.rest, token.by(), name, base).await;
        self.ended(at, token, read).await
    }

    async fn writers(&self, at: &RepositoryAt, logins: &[String]) -> ForgeResult<Vec<String>> {
        if logins.is_empty() {
            return Ok(Vec::new());
        }
        let token = self.token(at, Right::Metadata).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let read = people::writers(&self.rest, token.by(), name, logins).await;
        self.ended(at, token, read).await
    }

    async fn update_pull_request(
        &self,
        at: &RepositoryAt,
        change: &PullRequestChange,
    ) -> ForgeResult<PullRequest> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let changed = pulls::change(&self.rest, token.by(), name, change).await;
        self.ended(at, token, changed).await
    }
}

/// The repository's id, if the refusal is the way to its present address: `…/repositories/ID/…`.
fn moved_to(error: &RestError) -> Option<RepositoryId> {
    let RestError::Refused(refusal) = error else {
        return None;
    };
    let location = refusal.location.as_ref().filter(|_| refusal.status == 301)?;
    let (_, rest) = location.split_once("/repositories/")?;
    rest.split(['/', '?']).next()?.parse().ok().map(RepositoryId)
}
