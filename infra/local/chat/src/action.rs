//! Refused actions of a person, on either platform.

use crate::store::ChatStoreError;
use serde_json::Value;

/// Why a person's action failed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The platform's own client would refuse it, for this reason.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] ChatStoreError),
}

pub fn refused<T>(why: impl Into<String>) -> Result<T, ActionError> {
    Err(ActionError::Refused(why.into()))
}

/// Result of an action, as the control call returns it.
pub type ActionResult = Result<Value, ActionError>;
