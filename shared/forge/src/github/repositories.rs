//! Shapes of installations and repositories.

use std::collections::BTreeMap;

use bobbin_core::base::secret::Secret;
use serde::Deserialize;

use super::app::{PERMISSIONS, lacking};
use crate::forge::{Installation, Owner, OwnerKind, Repository, RepositoryId, RepositoryName};

/// An account that owns repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct AccountBody {
    pub(super) id: u64,
    pub(super) login: String,
    #[serde(rename = "type")]
    kind: String,
}

impl From<AccountBody> for Owner {
    fn from(body: AccountBody) -> Self {
        let kind = match body.kind.as_str() {
            "Organization" => OwnerKind::Organization,
            _ => OwnerKind::User,
        };
        Self { id: body.id, login: body.login, kind }
    }
}

/// An installation.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct InstallationBody {
    pub(super) id: u64,
    account: Option<AccountBody>,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
    suspended_at: Option<String>,
    #[serde(default)]
    repository_selection: String,
    #[serde(default)]
    pub(super) html_url: String,
}

impl InstallationBody {
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }

    pub(super) fn login(&self) -> &str {
        self.account.as_ref().map_or("its owner", |account| &account.login)
    }

    /// Those of the permissions that are not granted.
    pub(super) fn lacks(&self, wanted: &[(&str, &str)]) -> Vec<String> {
        lacking(&self.permissions, wanted)
    }
}

impl From<InstallationBody> for Installation {
    fn from(body: InstallationBody) -> Self {
        Self {
            id: body.id,
            is_suspended: body.is_suspended(),
            has_all: body.repository_selection == "all",
            missing: body.lacks(&PERMISSIONS),
            owner: body.account.unwrap_or_default().into(),
            page: body.html_url,
        }
    }
}

/// A repository.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RepositoryBody {
    id: u64,
    name: String,
    owner: AccountBody,
    // If GitHub does not say, assume the stricter case.
    #[serde(default = "yes")]
    private: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    default_branch: String,
    #[serde(default)]
    size: u64,
}

const fn yes() -> bool {
    true
}

impl RepositoryBody {
    /// Its present name; `None` if it breaks GitHub's own rules.
    pub(super) fn named(&self) -> Option<RepositoryName> {
        RepositoryName::new(&self.owner.login, &self.name)
    }

    /// As one that this installation includes.
    pub(super) fn of(self, installation: &InstallationBody) -> Option<Repository> {
        Some(Repository {
            id: RepositoryId(self.id),
            name: self.named()?,
            owner: self.owner.into(),
            installation: installation.id,
            is_private: self.private,
            is_archived: self.archived,
            default_branch: self.default_branch,
            size_kb: self.size,
            can_push: !self.archived && installation.lacks(&[("contents", "write")]).is_empty(),
        })
    }
}

/// A page of an installation's repositories.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RepositoriesPage {
    pub(super) total_count: u64,
    pub(super) repositories: Vec<RepositoryBody>,
}

/// A token that was made.
#[derive(Deserialize)]
pub(super) struct TokenBody {
    pub(super) token: Secret,
    #[serde(default)]
    pub(super) repositories: Vec<RepositoryBody>,
}
