//! Who calls, and what a caller may do with a repository.

use bobbin_local_sandbox::clock::system_ms;

use crate::api_error::ApiError;
use crate::json_web_token::Signed;
use crate::permission::{self, Level};
use crate::record::{ForgeAccount, Installation, Permissions, RepositoryRecord, TokenOf};
use crate::state::{Engine, ForgeState, hash};

/// Who calls.
#[derive(Clone)]
pub(crate) enum Caller {
    Nobody,
    /// An app by its own token.
    App(u64),
    Installation {
        id: u64,
        /// `None`: all that it holds.
        repositories: Option<Vec<u64>>,
        permissions: Permissions,
        token: String,
    },
    Person {
        id: u64,
        /// The app for which the person signed in; `None` for a personal token.
        app: Option<u64>,
    },
}

impl Caller {
    /// The caller with this token.
    ///
    /// # Errors
    /// The token is nobody's, or has ended.
    pub(crate) fn of(engine: &Engine, token: &str) -> Result<Self, ApiError> {
        let inner = engine.lock();
        let now = engine.clock.now_ms();
        let hashed = hash(token);
        if let Some(found) = inner.tokens.get(&hashed) {
            if found.expires_at.is_some_and(|end| end <= now) {
                return Err(ApiError::bad_credentials());
            }
            return match found.of.clone() {
                TokenOf::Installation { installation, repositories, permissions } => {
                    Ok(Self::Installation {
                        id: installation,
                        repositories,
                        permissions,
                        token: hashed,
                    })
                }
                TokenOf::Person { person, app } => Ok(Self::Person { id: person, app }),
                TokenOf::Refresh { .. } => Err(ApiError::bad_credentials()),
            };
        }
        let is_github = ["ghs_", "ghu_", "ghp_", "ghr_"].iter().any(|it| token.starts_with(it));
        if is_github || token.split('.').count() != 3 {
            return Err(ApiError::bad_credentials());
        }
        let undecoded = || ApiError::unauthorized("A JSON web token could not be decoded");
        let signed = Signed::parse(token).ok_or_else(undecoded)?;
        let mut apps = inner.apps.values();
        let issuer = &signed.issuer;
        let app = apps.find(|one| one.client_id == *issuer || one.id.to_string() == *issuer);
        let app = app.ok_or_else(|| ApiError {
            message: "Integration not found".to_owned(),
            ..ApiError::not_found()
        })?;
        let public = base64_of(&app.public_key)?;
        if !signed.is_signed_by(&public) {
            return Err(undecoded());
        }
        // A caller's clock may follow this forge's, which tests advance, or the system's.
        let refused = signed.refusal(system_ms()).and_then(|_| signed.refusal(now));
        match refused {
            Some(told) => Err(ApiError::unauthorized(told)),
            None => Ok(Self::App(app.id)),
        }
    }

    /// The name under which requests are counted.
    pub(crate) fn counted_as(&self) -> String {
        match self {
            Self::Nobody => "nobody".to_owned(),
            Self::App(id) => format!("app {id}"),
            Self::Installation { id, .. } => format!("installation ID {id}"),
            Self::Person { id, .. } => format!("user ID {id}"),
        }
    }

    /// The same, of GraphQL's points.
    pub(crate) fn points_counted_as(&self) -> String {
        format!("{} in GraphQL", self.counted_as())
    }

    /// The account in whose name this caller acts.
    pub(crate) fn account(&self, inner: &ForgeState) -> Option<u64> {
        match self {
            Self::Nobody => None,
            Self::App(id) => inner.apps.get(id).map(|app| app.bot),
            Self::Installation { id, .. } => {
                let app = inner.installations.get(id)?.app;
                inner.apps.get(&app).map(|app| app.bot)
            }
            Self::Person { id, .. } => Some(*id),
        }
    }

    /// The caller's level of a right on a repository.
    ///
    /// # Errors
    /// The installation is suspended, or the owner's address list refuses everybody.
    pub(crate) fn level(
        &self,
        inner: &ForgeState,
        repository: &RepositoryRecord,
        right: &str,
    ) -> Result<Level, ApiError> {
        let owner = inner.account(repository.owner)?;
        let public = if repository.is_private { Level::None } else { Level::Read };
        match self {
            Self::Nobody | Self::App(_) => Ok(public),
            Self::Installation { id, repositories, permissions, .. } => {
                let installation =
                    inner.installation(*id).map_err(|_| ApiError::bad_credentials())?;
                let is_named = repositories.as_ref().is_none_or(|all| all.contains(&repository.id));
                if !is_named || !installation.holds(repository) {
                    check(installation, None)?;
                    return Ok(public);
                }
                check(installation, Some(owner))?;
                let granted = permission::level(&installation.permissions, right);
                Ok(granted.min(permission::level(permissions, right)).max(public_of(public, right)))
            }
            Self::Person { id, app: None, .. } => Ok(permission::of_person(*id, repository, owner)),
            Self::Person { id, app: Some(app), .. } => {
                let own = permission::of_person(*id, repository, owner);
                let installed = inner.installed(*app, owner.id);
                let Some(installation) = installed.filter(|one| one.holds(repository)) else {
                    return Ok(public);
                };
                check(installation, Some(owner))?;
                let granted = permission::level(&installation.permissions, right);
                Ok(granted.min(own).max(public_of(public, right)))
            }
        }
    }

    /// Lets a caller pass that has this right on a repository.
    ///
    /// # Errors
    /// The caller must not know of the repository, or may not do this.
    pub(crate) fn need(
        &self,
        inner: &ForgeState,
        repository: &RepositoryRecord,
        right: &str,
        needed: Level,
    ) -> Result<(), ApiError> {
        if self.level(inner, repository, "metadata")? == Level::None {
            return Err(ApiError::not_found());
        }
        // A person administrates by being an administrator; apps have a right of that name.
        let is_personal = matches!(self, Self::Person { app: None, .. });
        let needed = if is_personal && right == "administration" { Level::Admin } else { needed };
        if self.level(inner, repository, right)? >= needed {
            return Ok(());
        }
        Err(match self {
            Self::Nobody => ApiError::unauthorized("Requires authentication"),
            Self::Person { app: None, .. } if needed == Level::Admin => {
                ApiError::forbidden("Must have admin rights to Repository.")
            }
            Self::Person { app: None, .. } => {
                ApiError::forbidden("Resource not accessible by personal access token")
            }
            _ => ApiError::integration(),
        })
    }

    /// Whether a push that changes workflows is refused.
    pub(crate) fn lacks_workflows(
        &self,
        inner: &ForgeState,
        repository: &RepositoryRecord,
    ) -> bool {
        let is_app = matches!(self, Self::Installation { .. } | Self::Person { app: Some(_), .. });
        let level = self.level(inner, repository, "workflows");
        is_app && level.unwrap_or(Level::None) < Level::Write
    }
}

/// Everybody reads of a public repository what everybody sees.
fn public_of(public: Level, right: &str) -> Level {
    let seen = ["metadata", "contents", "pull_requests", "issues", "checks", "statuses", "actions"];
    if seen.contains(&right) { public } else { Level::None }
}

fn check(installation: &Installation, owner: Option<&ForgeAccount>) -> Result<(), ApiError> {
    if installation.suspended_at.is_some() {
        return Err(ApiError::suspended());
    }
    match owner.filter(|owner| owner.refuses_addresses) {
        Some(owner) => Err(ApiError::address(&owner.login)),
        None => Ok(()),
    }
}

fn base64_of(text: &str) -> Result<Vec<u8>, ApiError> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).map_err(ApiError::internal)
}
