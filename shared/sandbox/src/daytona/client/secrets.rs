//! Secrets that the provider keeps and inserts into the requests of sandboxes, and where those may go.

use std::collections::BTreeMap;

use bobbin_http::REQUEST_MS;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Daytona, DaytonaError, DaytonaResult};
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

    /// Deletes a secret; already gone is success.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn delete_secret(&self, id: &str) -> DaytonaResult<()> {
        let request = self.control(Method::DELETE, &["secret", id], &[], REQUEST_MS)?;
        match self.api.send(request).await {
            Ok(_) | Err(DaytonaError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Changes what a sandbox reaches, while it runs too.
    ///
    /// # Errors
    /// [`super::DaytonaError`].
    pub async fn set_network(&self, sandbox: &str, hosts: Option<&[String]>) -> DaytonaResult<()> {
        let segments = ["sandbox", sandbox, "network-settings"];
        let request = self.control(Method::POST, &segments, &[], REQUEST_MS)?;
        self.api.send(request.json(&network_body(hosts))).await.map(drop)
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

/// Body of `POST /sandbox/{id}/network-settings`: these hosts alone, or all.
pub(super) fn network_body(hosts: Option<&[String]>) -> Value {
    json!({
        "networkBlockAll": hosts.is_some_and(<[String]>::is_empty),
        "domainAllowList": hosts.unwrap_or_default().join(","),
    })
}
