//! Vercel's API for sandboxes, and for the session of each.
//!
//! Promised: one method per call, one error that says what to do ([`VercelError::failure`]). Create, resume and stop
//! are requested and never awaited. Deliberately absent: retries and state (both are `decide`'s), and the traffic over
//! the routes.

mod error;
mod session;

use bobbin_http::{AllowedHosts, HttpError, REQUEST_MS};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

pub use self::error::VercelError;
use super::policy::NetworkPolicy;
use super::types::{
    CreateSandbox, MadeSnapshot, SandboxAnswer, StoppedSession, VercelPage, VercelSandbox,
};
use crate::api::ProviderApi;
use crate::provider::InSandbox;

/// Bound of a create, resume, stop or delete.
const LIFECYCLE_MS_MAX: u64 = 45_000;
/// Sandboxes per page, Vercel's maximum.
const PAGE_ITEMS: usize = 50;
/// Most pages of one listing.
const PAGES_MAX: usize = 200;
/// Most sandboxes that a listing returns.
pub const LISTED_MAX: usize = PAGE_ITEMS * PAGES_MAX;

/// Where sandboxes are created, and with whose token.
#[derive(Clone)]
pub struct VercelAccount {
    /// Base address of the API, with its `/api`.
    pub api: String,
    /// Access token of the team.
    pub token: String,
    /// Id of the team.
    pub team: String,
    /// Id of the project.
    pub project: String,
}

/// The client of Vercel's API.
#[derive(Clone)]
pub struct Vercel {
    api: ProviderApi<VercelError>,
    account: VercelAccount,
}

impl std::fmt::Debug for Vercel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vercel").field("base", &self.api.base().as_str()).finish_non_exhaustive()
    }
}

type VercelResult<T> = Result<T, VercelError>;

impl Vercel {
    /// A client for one project.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base is not an allowed address.
    pub fn new(account: VercelAccount) -> Result<Self, HttpError> {
        // Only the base's own host gets the token: routes belong to an agent's client.
        let hosts = AllowedHosts::Named(Vec::new());
        Ok(Self { api: ProviderApi::new(&account.api, hosts)?, account })
    }

    /// Creates a sandbox. A taken name is [`VercelError::NameTaken`]: read it by name and adopt it.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn create(&self, body: &CreateSandbox) -> VercelResult<SandboxAnswer> {
        let request = self.request(Method::POST, &["v3", "sandboxes"], &[], LIFECYCLE_MS_MAX)?;
        self.api.read(request.json(body)).await
    }

    /// Reads a sandbox by name; starts nothing.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn observe(&self, name: &str) -> VercelResult<SandboxAnswer> {
        let request = self.of_project(Method::GET, name, &[], REQUEST_MS)?;
        self.api.read(request).await
    }

    /// Begins a new session if the last one has ended.
    ///
    /// # Errors
    /// [`VercelError`]; [`VercelError::SnapshotGone`] if the disk is lost.
    pub async fn start(&self, name: &str) -> VercelResult<SandboxAnswer> {
        let query = [("resume", "true")];
        let request = self.of_project(Method::GET, name, &query, LIFECYCLE_MS_MAX)?;
        self.api.read(request).await
    }

    /// Every sandbox whose name has this prefix, in order of creation. The list may lag.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn list(&self, prefix: &str) -> VercelResult<Vec<VercelSandbox>> {
        let limit = PAGE_ITEMS.to_string();
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut query = vec![
                ("project", self.account.project.as_str()),
                ("limit", &limit),
                ("namePrefix", prefix),
                // A prefix is accepted only with this order.
                ("sortBy", "name"),
                ("sortOrder", "asc"),
            ];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let request = self.request(Method::GET, &["v2", "sandboxes"], &query, REQUEST_MS)?;
            let page: VercelPage = self.api.read(request).await?;
            found.extend(page.sandboxes);
            cursor = page.pagination.next.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        let begins = |one: &VercelSandbox| one.name.starts_with(prefix);
        found.retain(begins);
        found.sort_by(|one, other| {
            let made = one.created_at.total_cmp(&other.created_at);
            made.then_with(|| one.name.cmp(&other.name))
        });
        Ok(found)
    }

    /// Requests the deletion of a sandbox, with those of its snapshots from which no other sandbox was created.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn delete(&self, name: &str) -> VercelResult<()> {
        let query = [("deleteOrphanSnapshots", "true")];
        let request = self.of_project(Method::DELETE, name, &query, LIFECYCLE_MS_MAX)?;
        self.api.send(request).await.map(drop)
    }

    /// Requests the end of a session: every process ends, the disk is kept.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn stop(&self, session: &str) -> VercelResult<StoppedSession> {
        let request = self.of_session(Method::POST, session, &["stop"], LIFECYCLE_MS_MAX)?;
        self.api.read(request).await
    }

    /// Keeps the disk as a permanent snapshot, which ends the session.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn snapshot(&self, session: &str) -> VercelResult<MadeSnapshot> {
        let request = self.of_session(Method::POST, session, &["snapshot"], LIFECYCLE_MS_MAX)?;
        self.api.read(request.json(&json!({ "expiration": 0 }))).await
    }

    /// Extends a session by this time.
    ///
    /// # Errors
    /// [`VercelError`]; [`VercelError::Refused`] beyond the limit of the team's plan.
    pub async fn extend(&self, session: &str, by_ms: u64) -> VercelResult<()> {
        let request = self.of_session(Method::POST, session, &["extend-timeout"], REQUEST_MS)?;
        let request = request.json(&json!({ "duration": by_ms }));
        self.api.send(request).await.map(drop)
    }

    /// Replaces a sandbox's network policy, for the running session and later ones.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn set_policy(
        &self,
        name: &str,
        session: &str,
        policy: &NetworkPolicy,
    ) -> Result<(), InSandbox<VercelError>> {
        let later = self.of_project(Method::PATCH, name, &[], REQUEST_MS)?;
        self.api.send(later.json(&json!({ "networkPolicy": policy }))).await?;
        let now = self.of_session(Method::POST, session, &["network-policy"], REQUEST_MS)?;
        self.api.send(now.json(policy)).await?;
        Ok(())
    }

    /// The name of the project in which sandboxes are created; checks that the token has access.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn project(&self) -> VercelResult<String> {
        let segments = ["v9", "projects", &self.account.project];
        let request = self.request(Method::GET, &segments, &[], REQUEST_MS)?;
        let project: Value = self.api.read(request).await?;
        Ok(project["name"].as_str().unwrap_or_default().to_owned())
    }

    fn of_project(
        &self,
        method: Method,
        name: &str,
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> VercelResult<RequestBuilder> {
        let mut all = vec![("projectId", self.account.project.as_str())];
        all.extend(query);
        self.request(method, &["v2", "sandboxes", name], &all, ms_max)
    }

    fn of_session(
        &self,
        method: Method,
        session: &str,
        segments: &[&str],
        ms_max: u64,
    ) -> VercelResult<RequestBuilder> {
        let path: Vec<&str> = ["v2", "sandboxes", "sessions", session]
            .into_iter()
            .chain(segments.iter().copied())
            .collect();
        self.request(method, &path, &[], ms_max)
    }

    fn request(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> VercelResult<RequestBuilder> {
        let account = &self.account;
        if account.token.is_empty() {
            return Err(VercelError::NoKey);
        }
        for (setting, value) in
            [("vercel_team_id", &account.team), ("vercel_project_id", &account.project)]
        {
            if value.is_empty() {
                return Err(VercelError::NoProject { setting });
            }
        }
        let mut all = vec![("teamId", account.team.as_str())];
        all.extend(query);
        let place = (self.api.base(), segments);
        self.api.request(method, place, &all, &account.token, ms_max)
    }
}

#[cfg(test)]
mod tests;
