//! What is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::FORMER_NAMES_MAX;

/// Rights by name, such as `contents`, each `read`, `write` or `admin`.
pub(crate) type Permissions = BTreeMap<String, String>;

/// Kinds of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Organization,
    User,
    /// An app, as the author of something.
    Bot,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Organization => "Organization",
            Self::User => "User",
            Self::Bot => "Bot",
        }
    }
}

/// A person or an organisation.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ForgeAccount {
    pub(crate) id: u64,
    pub(crate) login: String,
    pub(crate) kind: Kind,
    pub(crate) created_at: i64,
    /// A person's, hashed.
    pub(crate) password: Option<String>,
    /// An organisation's address list refuses everybody.
    #[serde(default)]
    pub(crate) refuses_addresses: bool,
    /// Of an organisation, by the person's id.
    #[serde(default)]
    pub(crate) members: BTreeMap<u64, Role>,
}

/// A member's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Admin,
    Member,
}

/// A repository. Its folder is named by its id.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RepositoryRecord {
    pub(crate) id: u64,
    /// Account.
    pub(crate) owner: u64,
    pub(crate) name: String,
    /// `owner/name` that it had, in lower case.
    #[serde(default)]
    pub(crate) former: Vec<String>,
    pub(crate) description: Option<String>,
    pub(crate) is_private: bool,
    #[serde(default)]
    pub(crate) is_archived: bool,
    pub(crate) default_branch: String,
    /// Draft pull requests are not offered.
    #[serde(default)]
    pub(crate) has_no_drafts: bool,
    /// The head of a pull request is removed once it is merged.
    #[serde(default)]
    pub(crate) deletes_heads: bool,
    /// How many looks at a pull request find that its merge has not been tried yet.
    #[serde(default = "one_look")]
    pub(crate) unknown_looks: u64,
    /// Pushes are searched for secrets.
    #[serde(default)]
    pub(crate) protects_pushes: bool,
    /// Bytes at the last push, in units of 1,024.
    #[serde(default)]
    pub(crate) size_kb: u64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) pushed_at: i64,
    /// Rights of people beside the owner's, by id.
    #[serde(default)]
    pub(crate) collaborators: BTreeMap<u64, String>,
    #[serde(default)]
    pub(crate) rulesets: Vec<Ruleset>,
    /// The older kind of rules, by branch.
    #[serde(default)]
    pub(crate) protections: BTreeMap<String, Protection>,
    /// Number of the next pull request.
    pub(crate) next_number: u64,
}

impl RepositoryRecord {
    /// Remembers a name that it had.
    pub(crate) fn remember(&mut self, full_name: &str) {
        if self.former.len() >= FORMER_NAMES_MAX {
            self.former.remove(0);
        }
        self.former.push(full_name.to_lowercase());
    }
}

/// GitHub tries a merge when somebody looks.
pub(crate) const fn one_look() -> u64 {
    1
}

/// Rules of one branch, of the older kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Protection {
    pub(crate) rules: Vec<BranchRule>,
    pub(crate) binds_administrators: bool,
}

/// Rules for branches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ruleset {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// `~ALL`, `~DEFAULT_BRANCH`, or a pattern of full names.
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) rules: Vec<BranchRule>,
    pub(crate) created_at: i64,
}

/// A rule, as GitHub's rulesets write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "parameters", rename_all = "snake_case")]
pub enum BranchRule {
    /// Nothing is pushed; it is merged.
    PullRequest {
        /// Approvals that a merge needs.
        #[serde(default)]
        required_approving_review_count: u64,
    },
    /// Every commit is signed.
    RequiredSignatures,
    /// A commit's checks have passed.
    RequiredStatusChecks {
        /// Their names.
        required_status_checks: Vec<StatusCheck>,
        /// The branch holds what its base does.
        #[serde(default)]
        strict_required_status_checks_policy: bool,
    },
    /// Nothing is merged but by the queue.
    MergeQueue {},
    /// No commit of the branch is dropped.
    NonFastForward,
    /// The branch is not removed.
    Deletion,
    /// The branch is not made.
    Creation,
    /// Paths that nobody changes.
    FilePathRestriction {
        /// Patterns of paths.
        restricted_file_paths: Vec<String>,
    },
    /// A smaller limit of files.
    MaxFileSize {
        /// In MB.
        max_file_size: u64,
    },
}

/// A check that has to pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusCheck {
    /// Its name.
    pub context: String,
    /// The app that has to report it; `None`: any app.
    #[serde(default, alias = "app_id", skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<u64>,
}

/// An app.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct App {
    pub(crate) id: u64,
    pub(crate) slug: String,
    pub(crate) name: String,
    /// Account.
    pub(crate) owner: u64,
    /// Account id of `slug[bot]`.
    pub(crate) bot: u64,
    pub(crate) client_id: String,
    /// Hashed.
    pub(crate) client_secret: String,
    /// Its RSA key, PKCS#1, in base64.
    pub(crate) public_key: String,
    pub(crate) homepage: String,
    pub(crate) callbacks: Vec<String>,
    pub(crate) setup: Option<String>,
    pub(crate) webhook: Option<String>,
    pub(crate) webhook_secret: Option<String>,
    pub(crate) permissions: Permissions,
    pub(crate) events: Vec<String>,
    pub(crate) created_at: i64,
}

/// An app on an account.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    pub(crate) app: u64,
    pub(crate) account: u64,
    /// `None`: all repositories, those to come too.
    pub(crate) selected: Option<Vec<u64>>,
    pub(crate) permissions: Permissions,
    pub(crate) events: Vec<String>,
    pub(crate) suspended_at: Option<i64>,
    pub(crate) suspended_by: Option<u64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

impl Installation {
    pub(crate) fn holds(&self, repository: &RepositoryRecord) -> bool {
        let is_chosen = |chosen: &Vec<u64>| chosen.contains(&repository.id);
        repository.owner == self.account && self.selected.as_ref().is_none_or(is_chosen)
    }
}

/// A token; the store has it under its hash.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) of: TokenOf,
    pub(crate) created_at: i64,
    pub(crate) expires_at: Option<i64>,
}

/// What a token opens.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum TokenOf {
    /// An installation, or some of it.
    Installation { installation: u64, repositories: Option<Vec<u64>>, permissions: Permissions },
    /// A person's account; without an app whatever the person may.
    Person { person: u64, app: Option<u64> },
    /// The next token of a person for an app.
    Refresh { person: u64, app: u64, pair: String },
}

/// A code that is traded once.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Code {
    pub(crate) of: CodeOf,
    pub(crate) expires_at: i64,
}

/// What a code is traded for.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CodeOf {
    SignIn { person: u64, app: u64, redirect: String, challenge: Option<String> },
    Manifest { app: u64, pem: String, client_secret: String },
}

/// State of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PullState {
    Open,
    Closed,
    Merged,
}

/// A pull request; head and base are branches of one repository.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Pull {
    pub(crate) id: u64,
    pub(crate) repository: u64,
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) head: String,
    pub(crate) head_sha: String,
    pub(crate) base: String,
    /// The base's commit when it was opened, or merged.
    pub(crate) base_sha: String,
    pub(crate) state: PullState,
    pub(crate) is_draft: bool,
    /// Account id of the person, or of an app's bot.
    pub(crate) author: u64,
    pub(crate) maintainer_can_modify: bool,
    /// People who are asked for a review.
    #[serde(default)]
    pub(crate) reviewers: Vec<u64>,
    pub(crate) merge_sha: Option<String>,
    pub(crate) merged_by: Option<u64>,
    /// When it came into the merge queue.
    #[serde(default)]
    pub(crate) queued_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) closed_at: Option<i64>,
}

/// A webhook that was sent.
#[derive(Clone)]
pub(crate) struct HookDelivery {
    pub(crate) id: u64,
    pub(crate) app: u64,
    pub(crate) guid: String,
    pub(crate) event: String,
    pub(crate) action: Option<String>,
    pub(crate) installation: Option<u64>,
    pub(crate) repository: Option<u64>,
    pub(crate) is_again: bool,
    pub(crate) delivered_at: i64,
    pub(crate) duration_ms: u64,
    pub(crate) status: String,
    pub(crate) status_code: u16,
    pub(crate) url: String,
    pub(crate) payload: Value,
    pub(crate) request_headers: BTreeMap<String, String>,
    pub(crate) response_headers: BTreeMap<String, String>,
    pub(crate) response: String,
}
