//! GitHub's webhooks: whether one is GitHub's, and the little of it that is read.
//!
//! A webhook is a hint to look, never a fact: it is neither repeated nor ordered, a captured one can be sent again, and
//! the event's name and id are outside of the signature.

mod pull_requests;

use bobbin_core::records::forge_hint::{ForgeHint, ForgeSubject};
use ring::hmac;
use serde::Deserialize;

use super::repositories::AccountBody;
use crate::forge::{Owner, RepositoryId};
use crate::people::Person;

pub use self::pull_requests::NAMES as PULL_REQUESTS;

/// Path at which the stack takes webhooks.
pub const PATH: &str = "/github/webhooks";
/// Header with the signature of the body.
pub const SIGNATURE: &str = "x-hub-signature-256";
/// Header with the event's name.
pub const EVENT: &str = "x-github-event";
/// Most repositories of one event that are read.
const REPOSITORIES_MAX: usize = 1_000;

/// Why a webhook is rejected. For the log; the sender learns only that it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnverifiedHook {
    /// Without a secret anybody could sign.
    #[error("no webhook secret is configured")]
    NoSecret,
    /// Not `sha256=` and 32 bytes of hex, or made with none of the secrets.
    #[error("the signature does not belong to this body")]
    Signature,
}

/// Verifies a webhook's signature over its raw body: made with one of these secrets, the present one and the last.
/// Empty ones are none.
///
/// # Errors
/// [`UnverifiedHook`], which names what was wrong and never the expected value.
pub fn verify(secrets: &[&str], signature: &str, raw: &[u8]) -> Result<(), UnverifiedHook> {
    let digits = signature.strip_prefix("sha256=").ok_or(UnverifiedHook::Signature)?;
    let claimed = hex::decode(digits).map_err(|_| UnverifiedHook::Signature)?;
    let mut secrets = secrets.iter().filter(|secret| !secret.is_empty()).peekable();
    secrets.peek().ok_or(UnverifiedHook::NoSecret)?;
    let fits = |secret: &&str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::verify(&key, raw, &claimed).is_ok()
    };
    if secrets.any(fits) { Ok(()) } else { Err(UnverifiedHook::Signature) }
}

/// The signature of a body, as GitHub makes it.
#[must_use]
pub fn signature(secret: &str, raw: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("sha256={}", hex::encode(hmac::sign(&key, raw)))
}

/// What happened to an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallationAction {
    /// The app was installed.
    Created,
    /// The app was removed.
    Deleted,
    /// The owner suspended it.
    Suspended,
    /// The owner let it work again.
    Unsuspended,
    /// The owner accepted what the app asks for.
    PermissionsAccepted,
    /// Something else.
    Other,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first one of a new app: it proves that the address is right.
    Ping,
    /// Something happened to an installation.
    Installation {
        /// What.
        action: InstallationAction,
        /// The installation.
        installation: u64,
        /// Where it is, or was.
        owner: Owner,
    },
    /// An installation includes other repositories now.
    Repositories {
        /// The installation.
        installation: u64,
        /// Repositories that it includes from now on.
        added: Vec<RepositoryId>,
        /// Repositories that it does not include any more.
        removed: Vec<RepositoryId>,
    },
    /// A person took back what they had allowed the app.
    AuthorizationRevoked {
        /// The person.
        person: Person,
    },
    /// Something happened to a pull request, or to a commit that may be the head of one.
    PullRequest(HookedPullRequest),
    /// One that is not read.
    Other,
}

/// The pull request that an event may be about. Which one it is, is looked up; what happened is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookedPullRequest {
    /// The event.
    pub event: &'static str,
    /// The repository.
    pub repository: RepositoryId,
    /// What says which one.
    pub by: HookedBy,
}

/// What says which pull request an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookedBy {
    /// Short name of its branch.
    Branch(String),
    /// Its number.
    Number(u64),
}

impl Event {
    /// Where to look because of it; `None` if nothing that is kept could be wrong now.
    #[must_use]
    pub fn hint(&self) -> Option<ForgeHint> {
        let at = |installation: &u64| ForgeSubject::Installation { installation: *installation };
        match self {
            Self::Installation { action: InstallationAction::Deleted, installation, .. } => {
                Some(ForgeHint::of("deleted", at(installation)))
            }
            Self::Installation { action: InstallationAction::Suspended, installation, .. } => {
                Some(ForgeHint::of("suspended", at(installation)))
            }
            Self::Repositories { installation, .. } => {
                Some(ForgeHint::of("repositories", at(installation)))
            }
            Self::AuthorizationRevoked { person } => {
                Some(ForgeHint::of("revoked", ForgeSubject::Person { person: person.id }))
            }
            Self::Installation { .. } | Self::Ping | Self::PullRequest(_) | Self::Other => None,
        }
    }

    /// Its name for the log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping => "github: ping",
            Self::Installation { action, .. } => match action {
                InstallationAction::Created => "github: installation created",
                InstallationAction::Deleted => "github: installation deleted",
                InstallationAction::Suspended => "github: installation suspended",
                InstallationAction::Unsuspended => "github: installation unsuspended",
                InstallationAction::PermissionsAccepted => "github: permissions accepted",
                InstallationAction::Other => "github: installation",
            },
            Self::Repositories { .. } => "github: installation's repositories",
            Self::AuthorizationRevoked { .. } => "github: authorization revoked",
            Self::PullRequest(hooked) => hooked.event,
            Self::Other => "github: another event",
        }
    }
}

/// The body does not match the event's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body does not belong to the event")]
pub struct UnreadableHook;

#[derive(Deserialize)]
struct EventBody {
    #[serde(default)]
    action: String,
    installation: Option<InstallationIdBody>,
    sender: Option<AccountBody>,
    #[serde(default)]
    repositories_added: Vec<IdBody>,
    #[serde(default)]
    repositories_removed: Vec<IdBody>,
}

#[derive(Deserialize)]
struct InstallationIdBody {
    id: u64,
    account: Option<AccountBody>,
}

#[derive(Deserialize)]
struct IdBody {
    id: u64,
}

/// Reads a verified webhook. What Bobbin does not act on is [`Event::Other`].
///
/// # Errors
/// [`UnreadableHook`].
pub fn parse(event: &str, raw: &[u8]) -> Result<Event, UnreadableHook> {
    if let Some(event) = pull_requests::NAMES.iter().find(|(name, _)| *name == event) {
        return pull_requests::parse(*event, raw);
    }
    if !matches!(event, "installation" | "installation_repositories" | "github_app_authorization") {
        return Ok(if event == "ping" { Event::Ping } else { Event::Other });
    }
    let body: EventBody = serde_json::from_slice(raw).map_err(|_| UnreadableHook)?;
    if event == "github_app_authorization" {
        if body.action != "revoked" {
            return Ok(Event::Other);
        }
        let AccountBody { id, login, .. } = body.sender.ok_or(UnreadableHook)?;
        return Ok(Event::AuthorizationRevoked { person: Person { id, login } });
    }
    let installation = body.installation.ok_or(UnreadableHook)?;
    if event == "installation_repositories" {
        let ids = |bodies: Vec<IdBody>| {
            bodies.into_iter().take(REPOSITORIES_MAX).map(|body| RepositoryId(body.id)).collect()
        };
        return Ok(Event::Repositories {
            installation: installation.id,
            added: ids(body.repositories_added),
            removed: ids(body.repositories_removed),
        });
    }
    let action = match body.action.as_str() {
        "created" => InstallationAction::Created,
        "deleted" => InstallationAction::Deleted,
        "suspend" => InstallationAction::Suspended,
        "unsuspend" => InstallationAction::Unsuspended,
        "new_permissions_accepted" => InstallationAction::PermissionsAccepted,
        _ => InstallationAction::Other,
    };
    let owner = installation.account.ok_or(UnreadableHook)?.into();
    Ok(Event::Installation { action, installation: installation.id, owner })
}
