//! Statuses of commits.

use serde::Deserialize;

use super::CommitStatus;
use crate::api_error::ApiError;
use crate::limits::CHECKS_MAX;
use crate::state::ForgeState;

const STATES: [&str; 4] = ["error", "failure", "pending", "success"];

/// A status as a caller reports it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStatus {
    pub(crate) state: String,
    pub(crate) target_url: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) context: Option<String>,
}

/// Adds a status; the earlier ones of its context stay in the list.
///
/// # Errors
/// The state is none, or there are too many.
pub(crate) fn add(
    inner: &mut ForgeState,
    repository: u64,
    sha: &str,
    creator: u64,
    new: NewStatus,
    now: i64,
) -> Result<CommitStatus, ApiError> {
    if !STATES.contains(&new.state.as_str()) {
        return Err(ApiError::custom("Status", "State is not included in the list"));
    }
    if inner.checks.statuses.len() >= CHECKS_MAX {
        return Err(ApiError::full("statuses"));
    }
    let status = CommitStatus {
        id: inner.new_id(),
        repository,
        sha: sha.to_owned(),
        context: new.context.unwrap_or_else(|| "default".to_owned()),
        state: new.state,
        description: new.description,
        target_url: new.target_url,
        creator,
        created_at: now,
    };
    inner.checks.statuses.push(status.clone());
    Ok(status)
}

/// The combined state of a commit's statuses.
pub(crate) fn combined(statuses: &[&CommitStatus]) -> &'static str {
    let any = |words: &[&str]| statuses.iter().any(|one| words.contains(&one.state.as_str()));
    match () {
        () if any(&["error", "failure"]) => "failure",
        () if statuses.is_empty() || any(&["pending"]) => "pending",
        () => "success",
    }
}
