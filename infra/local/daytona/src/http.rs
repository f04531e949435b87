//! Shared by the handlers of the control API, the toolbox and the previews.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;

/// A request with this header does not count as activity.
pub(crate) const SKIP_ACTIVITY: &str = "x-daytona-skip-last-activity-update";

/// The engine, as a handler gets it.
pub(crate) type EngineState = State<SharedEngine>;

/// A handler's result: a response, or a refusal whose body is written later.
pub(crate) type ApiResult = Result<Response, ApiError>;

/// A JSON body; an empty one counts as an empty object.
pub(crate) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    serde_json::from_slice(text)
        .map_err(|error| ApiError::bad(format!("the body is not as expected: {error}")))
}

/// Refuses names that are no shell variables.
pub(crate) fn check_variables<'a>(
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), ApiError> {
    for name in names {
        let mut letters = name.chars();
        let first =
            letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !first || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return Err(ApiError::bad(format!(
                "bad request: invalid environment variable name: {name}"
            )));
        }
    }
    Ok(())
}
