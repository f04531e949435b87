//! Paging parameters of lists.

use serde::Deserialize;

use crate::api_error::ApiError;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};

/// A page of snapshots or secrets.
#[derive(Deserialize)]
pub(super) struct ListQuery {
    pub(super) page: Option<usize>,
    limit: Option<usize>,
    pub(super) name: Option<String>,
    pub(super) order: Option<String>,
    pub(super) cursor: Option<String>,
    #[serde(rename = "sourceSandboxId")]
    pub(super) source: Option<String>,
}

impl ListQuery {
    /// Most items on the page.
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        check_limit(self.limit)
    }
}

/// The requested number of items, or the default.
pub(super) fn check_limit(asked: Option<usize>) -> Result<usize, ApiError> {
    let limit = asked.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(ApiError::bad(format!("limit must be between 1 and {PAGE_MAX}")))
    }
}
