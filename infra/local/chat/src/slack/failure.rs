//! Slack's errors: HTTP 200 with `ok: false` and the error's name.

use crate::action::ActionError;
use crate::store::ChatStoreError;
use serde_json::{Value, json};

/// A method's error, with a line for each error in its blocks.
#[derive(Debug)]
pub struct MethodError {
    pub error: &'static str,
    pub messages: Vec<String>,
}

/// A method's answer, without `ok`.
pub type MethodResult = Result<Value, MethodError>;

/// Fails with an error that needs only its name.
pub fn fail<T>(error: &'static str) -> Result<T, MethodError> {
    Err(MethodError { error, messages: Vec::new() })
}

impl From<ChatStoreError> for MethodError {
    fn from(error: ChatStoreError) -> MethodError {
        tracing::error!(%error, "the chat's state failed");
        MethodError { error: "internal_error", messages: Vec::new() }
    }
}

impl From<MethodError> for ActionError {
    fn from(refusal: MethodError) -> ActionError {
        ActionError::Refused(
            format!("{} {}", refusal.error, refusal.messages.join("; ")).trim().to_owned(),
        )
    }
}

impl MethodError {
    pub fn body(self) -> Value {
        let mut body = json!({"ok": false, "error": self.error});
        if !self.messages.is_empty() {
            body["response_metadata"] = json!({"messages": self.messages});
        }
        body
    }
}
