//! Calls for snapshots, the key and the quota: used by the set-up, and for snapshots of sandboxes.

use bobbin_http::REQUEST_MS;
use reqwest::{Method, Url};

use super::{Daytona, DaytonaError, DaytonaResult, LIFECYCLE_MS_MAX, PAGE_ITEMS};
use crate::daytona::prepared::{
    ApiKey, CreateSnapshot, DaytonaSnapshot, Organization, OrganizationUsage, SnapshotPage,
    SnapshotSandbox,
};

/// Bytes of a build's log that are read; a longer one is cut.
const LOG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most pages of snapshots that are read. An organisation usually has 30 to 100 snapshots, depending on its quota.
const SNAPSHOT_PAGES_MAX: usize = 10;

impl Daytona {
    /// The key in use, without its value.
    ///
    /// # Errors
    /// [`DaytonaError`]; [`DaytonaError::BadKey`] if Daytona does not know this object.
    pub async fn current_key(&self) -> DaytonaResult<ApiKey> {
        let segments = ["api-keys", "current"];
        self.api.read(self.control(Method::GET, &segments, &[], REQUEST_MS)?).await
    }

    /// The organisations of the key's owner.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn organizations(&self) -> DaytonaResult<Vec<Organization>> {
        self.api.read(self.control(Method::GET, &["organizations"], &[], REQUEST_MS)?).await
    }

    /// Usage and quota of an organisation.
    ///
    /// # Errors
    /// [`DaytonaError`]; [`DaytonaError::Forbidden`] if the key may not see it.
    pub async fn usage(&self, organization: &str) -> DaytonaResult<OrganizationUsage> {
        let segments = ["organizations", organization, "usage"];
        self.api.read(self.control(Method::GET, &segments, &[], REQUEST_MS)?).await
    }

    /// Requests the build of a snapshot. A taken name is [`DaytonaError::Conflict`].
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn create_snapshot(&self, body: &CreateSnapshot) -> DaytonaResult<DaytonaSnapshot> {
        let request = self.control(Method::POST, &["snapshots"], &[], LIFECYCLE_MS_MAX)?.json(body);
        self.api.read(request).await
    }

    /// Reads a snapshot by id or name; `None` if it does not exist.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn observe_snapshot(&self, name: &str) -> DaytonaResult<Option<DaytonaSnapshot>> {
        let read =
            self.api.read(self.control(Method::GET, &["snapshots", name], &[], REQUEST_MS)?);
        match read.await {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(DaytonaError::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The snapshots whose name contains `part`, newest first; at most 2,000. A snapshot that is deleted during the
    /// read may hide another one.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn list_snapshots(&self, part: &str) -> DaytonaResult<Vec<DaytonaSnapshot>> {
        let limit = PAGE_ITEMS.to_string();
        let mut found = Vec::new();
        for number in 1..=SNAPSHOT_PAGES_MAX {
            let number = number.to_string();
            let query = [
                ("page", number.as_str()),
                ("limit", limit.as_str()),
                ("name", part),
                ("sort", "createdAt"),
                ("order", "desc"),
            ];
            let request = self.control(Method::GET, &["snapshots"], &query, REQUEST_MS)?;
            let page: SnapshotPage = self.api.read(request).await?;
            let is_last = page.items.len() < PAGE_ITEMS;
            found.extend(page.items);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Requests a snapshot of a sandbox, by its name or id. It is not ready at once: the sandbox's state is
    /// `snapshotting` until it is done, successful or not.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn snapshot_sandbox(&self, sandbox: &str, name: &str) -> DaytonaResult<()> {
        let segments = ["sandbox", sandbox, "snapshot"];
        let request = self.control(Method::POST, &segments, &[], LIFECYCLE_MS_MAX)?;
        let body = SnapshotSandbox { name: name.to_owned() };
        self.api.send(request.json(&body)).await.map(drop)
    }

    /// Requests the activation of an inactive snapshot.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn activate_snapshot(&self, id: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::POST, &["snapshots", id, "activate"], &[]).await
    }

    /// Requests the deletion of a snapshot; sandboxes created from it stay.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn delete_snapshot(&self, id: &str) -> DaytonaResult<()> {
        self.lifecycle(Method::DELETE, &["snapshots", id], &[]).await
    }

    /// The log of a build so far.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn build_log(&self, id: &str) -> DaytonaResult<String> {
        #[derive(serde::Deserialize)]
        struct ToolboxAnswer {
            url: String,
        }
        let segments = ["snapshots", id, "build-logs-url"];
        let place = self.control(Method::GET, &segments, &[], REQUEST_MS)?;
        let place: ToolboxAnswer = self.api.read(place).await?;
        let url = Url::parse(&place.url).map_err(|_| DaytonaError::Unavailable {
            status: 200,
            message: "the address of the build's log cannot be read".to_owned(),
        })?;
        let bounded = Self { api: self.api.with_body_bytes_max(LOG_BYTES_MAX), ..self.clone() };
        let request = bounded.request(Method::GET, &url, &[], &[], LIFECYCLE_MS_MAX)?;
        let answer = bounded.api.send(request).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }
}
