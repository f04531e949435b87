//! Error descriptions for a person, with advice.

use bobbin_core::base::credentials::redact;

use crate::steps::first_line;

/// Longest part of an error that is passed on, in characters.
const REASON_CHARS_MAX: usize = 300;

/// Describes an error from its name, the vendor's HTTP status, and its message.
#[must_use]
pub fn reason_of(name: &str, status: Option<u16>, said: &str) -> String {
    let said = redact(&first_line(said, REASON_CHARS_MAX));
    let said = said.strip_prefix("ProviderModelNotFoundError: ").unwrap_or(&said);
    match (name, status) {
        ("MessageAbortedError", _) => "The run was stopped.".to_owned(),
        ("ContextOverflowError", _) => {
            "The conversation no longer fits into the model's context. A reset that keeps the files starts a new one.".to_owned()
        }
        ("MessageOutputLengthError", _) => "The answer grew longer than the model may write. Ask for a smaller piece.".to_owned(),
        ("ContentFilterError", _) => "The model's provider refused the content of this conversation. If it refuses the next task too, a reset that keeps the files starts a new one.".to_owned(),
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => {
            format!("The model's provider refused the key: {said} The operator has to check the model key.")
        }
        (_, Some(402)) => format!("The model's provider asks for payment: {said} The operator has to add credit."),
        (_, Some(429)) => format!("The model's provider is limiting requests: {said} Try again later."),
        (_, Some(status @ 500..)) => format!("The model's provider failed ({status}): {said} Try again later."),
        _ if said.contains("Model not found") => {
            format!("{said} The operator has to set MODEL to one that its provider knows.")
        }
        (_, Some(status)) => format!("The model's provider refused the request ({status}): {said} If it refuses the next task too, a reset that keeps the files starts a new conversation."),
        _ if said.is_empty() => "The agent failed without saying why.".to_owned(),
        _ => format!("The agent failed: {said}"),
    }
}
