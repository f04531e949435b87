//! What a person cannot do, on either platform.

use crate::store::StoreError;
use serde_json::Value;

/// Why an action of a person was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The platform's own client would not let them, for this reason.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub fn refused<T>(why: impl Into<String>) -> Result<T, ActionError> {
    Err(ActionError::Refused(why.into()))
}

/// What came of an action, as the control call answers it.
pub type ActionResult = Result<Value, ActionError>;
