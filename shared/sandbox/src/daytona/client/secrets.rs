//! Secrets that the provider keeps, and puts into the requests of sandboxes.

use std::collections::BTreeMap;

use bobbin_http::REQUEST_MS;
use reqwest::Method;
use serde_json::json;

use super::{Answered, Daytona};
use crate::daytona::secrets::{StoredSecret, WriteSecret, mounts};

/// Secrets that are asked for at a time.
const PAGE_SECRETS: &str = "100";
/// Pages that are read: an organisation may have as many as these hold.
const PAGES_MAX: usize = 20;

impl Daytona {
    /// The secrets of the organisation, without their values.
    ///
    /// # Errors
    /// [`super::DaytonaError`]; [`super::DaytonaError::Forbidden`] where the key may not see them.
    pub async fn secrets(&self) -> Answered<Vec<StoredSecret>> {
        let query = [("limit", PAGE_SECRETS)];
        self.paged(&["secret", "paginated"], &query, PAGES_MAX).await
    }

    /// Makes a secret. A taken name is [`super::DaytonaError::Conflict`].
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn create_secret(&self, body: &WriteSecret) -> Answered<StoredSecret> {
        let request = self.control(Method::POST, &["secret"], &[], REQUEST_MS)?;
        self.api.read(request.json(body)).await
    }

    /// Gives a secret another value and other hosts. Sandboxes that run use them within seconds.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn update_secret(&self, id: &str, body: &WriteSecret) -> Answered<StoredSecret> {
        let request = self.control(Method::PATCH, &["secret", id], &[], REQUEST_MS)?;
        self.api.read(request.json(body)).await
    }

    /// Names the secrets of a sandbox, variable to name, in place of those that it has.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn mount_secrets(
        &self,
        sandbox: &str,
        names: &BTreeMap<String, String>,
    ) -> Answered<()> {
        let segments = ["sandbox", sandbox, "secrets"];
        let request = self.control(Method::PUT, &segments, &[], REQUEST_MS)?;
        self.api.send(request.json(&json!({ "secrets": mounts(names) }))).await.map(drop)
    }
}
