//! The seeds of a first start, and what their owner has to know about them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All events of this forge besides those that are always sent.
const EVENTS: [&str; 11] = [
    "check_run",
    "check_suite",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "repository",
    "status",
    "workflow_run",
];

/// What is there at the first start. Secrets that are not given are made.
#[derive(Clone)]
pub struct Seeds {
    /// Login of the organisation on which the app is installed, for all repositories.
    pub organization: String,
    /// Login of the person who administrates it.
    pub administrator: String,
    /// Login of a person who is only a member of it.
    pub member: String,
    /// Login of a person who has nothing to do with it.
    pub stranger: String,
    /// Name of the app.
    pub app: String,
    /// The app's rights.
    pub permissions: BTreeMap<String, String>,
    /// The app's events beside those that are always sent.
    pub events: Vec<String>,
    /// The app's RSA key in PEM (PKCS#1 or PKCS#8).
    pub private_key: Option<String>,
    /// The app's client secret.
    pub client_secret: Option<String>,
    /// What signs webhooks.
    pub webhook_secret: Option<String>,
    /// The administrator's personal token.
    pub user_token: Option<String>,
    /// Password of all three people on the sign-in page.
    pub password: Option<String>,
}

impl Default for Seeds {
    fn default() -> Self {
        let read = ["metadata", "checks", "statuses", "actions", "issues", "members"];
        let write = ["contents", "pull_requests"];
        let right = |level: &str| {
            let level = level.to_owned();
            move |name: &str| (name.to_owned(), level.clone())
        };
        let rights = read.map(right("read")).into_iter().chain(write.map(right("write")));
        Self {
            organization: "laptop".to_owned(),
            administrator: "ada".to_owned(),
            member: "grace".to_owned(),
            stranger: "mallory".to_owned(),
            app: "bobbin-laptop".to_owned(),
            permissions: rights.collect(),
            events: EVENTS.map(str::to_owned).to_vec(),
            private_key: None,
            client_secret: None,
            webhook_secret: None,
            user_token: None,
            password: None,
        }
    }
}

/// What a client of the forge needs to know, secrets included.
#[derive(Clone, Serialize, Deserialize)]
pub struct ForgeIdentity {
    /// Login of the organisation with the installation.
    pub organization: String,
    /// Id of the installation.
    pub installation: u64,
    /// Id of the app.
    pub app_id: u64,
    /// The app's name in addresses.
    pub app_slug: String,
    /// The app's client id.
    pub client_id: String,
    /// The app's client secret.
    pub client_secret: String,
    /// The app's RSA key in PEM.
    pub private_key: String,
    /// What signs webhooks.
    pub webhook_secret: String,
    /// Login of the person who administrates the organisation.
    pub administrator: String,
    /// That person's personal token.
    pub user_token: String,
    /// Password of the seeded people on the sign-in page.
    pub password: String,
}

impl std::fmt::Debug for ForgeIdentity {
    /// Omits the secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("organization", &self.organization)
            .field("app_id", &self.app_id)
            .finish_non_exhaustive()
    }
}
