//! Secrets that the provider keeps and inserts into the requests of sandboxes.

use std::collections::BTreeMap;

use bobbin_http::REQUEST_MS;
use reqwest::Method;
use serde_json::json;

use super::{Daytona, DaytonaResult};
use crate::daytona::secrets::{StoredSecret, WriteSecret, mounts};

/// Secrets per page.
const PAGE_SECRETS: &str = "100";
/// Most pages that are read: they hold as many secrets as an organisation may have.
const PAGES_MAX: usize = 20;

impl Daytona {
    /// The secrets of the organisation, without their values.
    ///
    /// # Errors
    /// [`super::DaytonaError`]; [`super::DaytonaError::Forbidden`] if the key may not see them.
    pub async fn secrets(&self) -> DaytonaResult<Vec<StoredSecret>> {
        let query = [("limit", PAGE_SECRETS)];
        self.paged(&["secret", "paginated"], &query, PAGES_MAX).await
    }

    /// Creates a secret. A taken name is [`super::DaytonaError::Conflict`].
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn create_secret(&self, body: &WriteSecret) -> DaytonaResult<StoredSecret> {
        let request = self.control(Method::POST, &["secret"], &[], REQUEST_MS)?;
        self.api.read(request.json(body)).await
    }

    /// Changes the value and the hosts of a secret. Running sandboxes use them within seconds.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn update_secret(&self, id: &str, body: &WriteSecret) -> DaytonaResult<StoredSecret> {
        let request = self.control(Method::PATCH, &["secret", id], &[], REQUEST_MS)?;
        self.api.read(request.json(body)).await
    }

    /// Replaces the secrets of a sandbox: variable to name.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn mount_secrets(
        &self,
        sandbox: &str,
        names: &BTreeMap<String, String>,
    ) -> DaytonaResult<()> {
        let segments = ["sandbox", sandbox, "secrets"];
        let request = self.control(Method::PUT, &segments, &[], REQUEST_MS)?;
        self.api.send(request.json(&json!({ "secrets": mounts(names) }))).await.map(drop)
    }
}
