//! Checks of a sandbox's fields, at creation and on change.

use std::collections::BTreeMap;

use crate::api_error::ApiError;
use crate::http::check_variables;
use crate::limits::{AUTO_ARCHIVE_MINUTES_MAX, NAME_CHARS_MAX, SECRETS_OF_SANDBOX_MAX};
use crate::secret::DaytonaSecret;

/// Refuses names that Daytona takes for HTML or an address.
pub(super) fn check_name(name: &str) -> Result<(), ApiError> {
    let wrong = name.chars().count() > NAME_CHARS_MAX
        || name.chars().any(|letter| letter.is_control() || matches!(letter, '<' | '>' | '/'))
        || name.contains("://");
    if wrong {
        Err(ApiError::bad("name must not contain HTML, URLs or control characters"))
    } else {
        Ok(())
    }
}

/// `[{"VARIABLE":"secret name"}]` as one map; each secret must exist.
pub(super) fn secret_names(
    secrets: &BTreeMap<String, DaytonaSecret>,
    list: Vec<BTreeMap<String, String>>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let names: BTreeMap<String, String> = list.into_iter().flatten().collect();
    check_variables(names.keys())?;
    if names.len() > SECRETS_OF_SANDBOX_MAX {
        return Err(ApiError::bad(format!(
            "Secret limit per sandbox exceeded. Maximum allowed: {SECRETS_OF_SANDBOX_MAX}"
        )));
    }
    for name in names.values() {
        if !secrets.values().any(|secret| secret.name == *name) {
            return Err(ApiError::bad(format!("Secret {name} not found")));
        }
    }
    Ok(names)
}

/// The auto-archive interval; 0 means the maximum.
pub(super) fn archive_minutes(asked: i64) -> i64 {
    if asked == 0 { AUTO_ARCHIVE_MINUTES_MAX } else { asked.clamp(1, AUTO_ARCHIVE_MINUTES_MAX) }
}
