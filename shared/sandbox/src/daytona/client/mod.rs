//! Daytona's v0 control API and toolbox.
//!
//! Promised: one method per call, one error that says what to do ([`DaytonaError::failure`]). Create, start and stop
//! are requested and never awaited: read the sandbox next, because the answer is not the outcome. Deliberately absent:
//! retries and state (both are `decide`'s), sessions, and the preview traffic itself (see `opencode`).

mod error;
mod prepared;
mod secrets;
mod toolbox;

use bobbin_core::base::ids::Tenant;
use std::collections::BTreeMap;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::{AllowedHosts, HttpError};
use reqwest::{Method, RequestBuilder, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

pub use self::error::DaytonaError;
pub use self::toolbox::execute_body;
use crate::api::ProviderApi;
use crate::daytona::types::{CreateSandbox, DaytonaSandbox, PROTOCOL_VERSION, Page, PreviewLink};
use crate::labels::{LABEL_STACK_ID, StackIdentity, tenant_labels};

/// Bound of a lifecycle call: Daytona holds create and start for up to 30 s.
const LIFECYCLE_MS_MAX: u64 = 45_000;
/// Sandboxes per page, Daytona's maximum.
const PAGE_ITEMS: usize = 200;
/// Most pages of one listing.
const PAGES_MAX: usize = 50;
/// Most sandboxes that a listing returns.
pub const LISTED_MAX: usize = PAGE_ITEMS * PAGES_MAX;
/// Most pages of a count: a tenant with more sandboxes than these hold is over any limit.
const COUNT_PAGES_MAX: usize = 25;

/// The client of Daytona's control API, and of the toolbox in each sandbox.
#[derive(Clone)]
pub struct Daytona {
    api: ProviderApi<DaytonaError>,
    api_key: String,
}

impl std::fmt::Debug for Daytona {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daytona").field("base", &self.api.base().as_str()).finish_non_exhaustive()
    }
}

type DaytonaResult<T> = Result<T, DaytonaError>;

impl Daytona {
    /// A client of the control API at `base` (with its `/api`). The toolbox hosts that Daytona names get the same key.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base is not an allowed address.
    pub fn new(base: &str, api_key: &str) -> Result<Self, HttpError> {
        Ok(Self { api: ProviderApi::new(base, AllowedHosts::Public)?, api_key: api_key.to_owned() })
    }

    /// Requests a sandbox. A taken name is [`DaytonaError::Conflict`]: read it by name and adopt it.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn create(&self, body: &CreateSandbox) -> DaytonaResult<DaytonaSandbox> {
        let request = self.control(Method::POST, &["sandbox"], &[], LIFECYCLE_MS_MAX)?.json(body);
        self.api.read(request).await
    }

    /// Reads a sandbox by id or name.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn observe(&self, name: &str) -> DaytonaResult<DaytonaSandbox> {
        self.api
            .read(self.control(Method::GET, &["sandbox", name], &[], bobbin_http::REQUEST_MS)?)
            .await
    }

    /// Every sandbox with these labels, in order of creation. The list lags behind: read a sandbox before acting on it.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn list(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> DaytonaResult<Vec<DaytonaSandbox>> {
        self.pages(labels, PAGES_MAX).await
    }

    /// The organisation of the key. Daytona does not name it directly: every sandbox names it, and if there is no
    /// sandbox, so does the access to the store for image builds. That is requested last, because the answer contains
    /// keys, which are not kept. `None`: neither names it.
    ///
    /// # Errors
    /// [`DaytonaError`] of the list of sandboxes; of the store only if it does not answer or limits the rate.
    pub async fn organization(&self) -> DaytonaResult<Option<String>> {
        #[derive(Deserialize)]
        struct StorageAccess {
            #[serde(rename = "organizationId")]
            organization_id: String,
        }
        let some: Vec<DaytonaSandbox> = self.paged(&["sandbox"], &[("limit", "1")], 1).await?;
        let mut told = some.into_iter().map(|one| one.organization_id);
        if let Some(told) = told.find(|told| !told.is_empty()) {
            return Ok(Some(told));
        }
        let segments = ["object-storage", "push-access"];
        let request = self.control(Method::GET, &segments, &[], bobbin_http::REQUEST_MS)?;
        match self.api.read::<StorageAccess>(request).await {
            Ok(access) => Ok(Some(access.organization_id).filter(|told| !told.is_empty())),
            Err(error @ (DaytonaError::Http(_) | DaytonaError::RateLimited { .. })) => Err(error),
            Err(error) => {
                tracing::warn!(event = "account.unknown", %error, "the provider does not say whose the key is");
                Ok(None)
            }
        }
    }

    /// The sandboxes of this stack and tenant, in any state except being deleted, oldest first; at most 5,000. The list
    /// lags: if two are created at once, each may briefly be listed without the other.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn of_tenant(
        &self,
        stack: StackIdentity<'_>,
        tenant: &Tenant,
    ) -> DaytonaResult<Vec<DaytonaSandbox>> {
        let labels = tenant_labels(stack.name, tenant);
        let found = self.pages(&labels, COUNT_PAGES_MAX).await?;
        // A server that ignores an unknown filter must not make one tenant pay for another.
        let counts = |sandbox: &&DaytonaSandbox| {
            let said = sandbox.labels.get(LABEL_STACK_ID);
            sandbox.sandbox_state() != SandboxState::Gone
                && said.is_none_or(|said| said == stack.id)
                && labels.iter().all(|(name, value)| sandbox.labels.get(name) == Some(value))
        };
        Ok(found.into_iter().filter(|one| counts(&one)).collect())
    }

    async fn pages(
        &self,
        labels: &BTreeMap<String, String>,
        pages_max: usize,
    ) -> DaytonaResult<Vec<DaytonaSandbox>> {
        let labels = json!(labels).to_string();
        let limit = PAGE_ITEMS.to_string();
        let query = [
            ("limit", limit.as_str()),
            ("labels", &labels),
            ("sort", "createdAt"),
            ("order", "asc"),
        ];
        self.paged(&["sandbox"], &query, pages_max).await
    }

    /// A listing, page by page; entries beyond the page limit are left out.
    async fn paged<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        pages_max: usize,
    ) -> DaytonaResult<Vec<T>> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..pages_max {
            let mut query = query.to_vec();
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let request = self.control(Method::GET, segments, &query, bobbin_http::REQUEST_MS)?;
            let page: Page<T> = self.api.read(request).await?;
            found.extend(page.items);
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Requests a start (also from archived).
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn start(&self, name: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::POST, &["sandbox", name, "start"], &[]).await
    }

    /// Requests a stop: every process ends, the disk stays.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn stop(&self, name: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::POST, &["sandbox", name, "stop"], &[("force", "false")]).await
    }

    /// Schedules the deletion this many minutes from now, whatever the sandbox does then; replaces the earlier time.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn set_ttl(&self, name: &str, minutes: u32) -> DaytonaResult<()> {
        let minutes = minutes.to_string();
        self.lifecycle(Method::POST, &["sandbox", name, "ttl", &minutes], &[]).await
    }

    /// Requests the deletion of a sandbox and its disk.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn delete(&self, name: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::DELETE, &["sandbox", name], &[]).await
    }

    /// Asks Daytona to repair a sandbox in error.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn recover(&self, name: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::POST, &["sandbox", name, "recover"], &[("skipStart", "false")]).await
    }

    /// Endpoint for reaching a port from outside. It changes with every start.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn endpoint(&self, name: &str, port: u16) -> DaytonaResult<Endpoint> {
        let port = port.to_string();
        let segments = ["sandbox", name, "ports", &port, "preview-url"];
        let request = self.control(Method::GET, &segments, &[], bobbin_http::REQUEST_MS)?;
        let link = self.api.read::<PreviewLink>(request).await?;
        Ok(link.normalised().into())
    }

    async fn lifecycle(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> DaytonaResult<()> {
        self.api.send(self.control(method, segments, query, LIFECYCLE_MS_MAX)?).await.map(drop)
    }

    fn control(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> DaytonaResult<RequestBuilder> {
        self.request(method, self.api.base(), segments, query, ms_max)
    }

    fn request(
        &self,
        method: Method,
        base: &Url,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> DaytonaResult<RequestBuilder> {
        if self.api_key.is_empty() {
            return Err(DaytonaError::NoKey);
        }
        let place = (base, segments);
        let request = self.api.request(method, place, query, &self.api_key, ms_max)?;
        Ok(request
            .header("X-Daytona-Source", "bobbin")
            .header("X-Daytona-SDK-Version", PROTOCOL_VERSION))
    }
}

#[cfg(test)]
mod tests;
