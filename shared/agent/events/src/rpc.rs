//! JSON-RPC messages, as some agents write them to standard output.

use serde_json::{Map, Value};

use crate::convert::tag;

/// A message, by its kind.
pub(crate) enum Rpc<'a> {
    /// A request that waits for an answer with this id.
    Request {
        /// Text or a number.
        id: &'a Value,
        /// Name of the method.
        method: &'a str,
        /// Parameters.
        params: &'a Value,
    },
    /// A notification.
    Notification {
        /// Name of the method.
        method: &'a str,
        /// Parameters.
        params: &'a Value,
    },
    /// The answer to a request of the client.
    Result {
        /// Id of the request.
        id: &'a Value,
        /// The result.
        result: &'a Value,
    },
    /// A request of the client failed.
    Failure {
        /// Id of the request.
        id: &'a Value,
        /// The error.
        error: &'a Value,
    },
    /// None of these.
    Other,
}

impl<'a> Rpc<'a> {
    pub(crate) fn of(message: &'a Value) -> Self {
        let params = message.get("params").unwrap_or(&Value::Null);
        let id = message.get("id");
        match (tag(message, "method"), id) {
            ("", Some(id)) => match (message.get("result"), message.get("error")) {
                (Some(result), None) => Self::Result { id, result },
                (_, Some(error)) => Self::Failure { id, error },
                (None, None) => Self::Other,
            },
            ("", None) => Self::Other,
            (method, Some(id)) => Self::Request { id, method, params },
            (method, None) => Self::Notification { method, params },
        }
    }
}

/// The text of an error: its message, and details that some agents put only in `data`.
#[must_use]
pub fn error_said(error: &Value) -> String {
    let at = |pointer: &str| error.pointer(pointer).and_then(Value::as_str);
    let found =
        |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let message = found(at("/message"));
    let more = ["/data/details", "/data/message", "/data/error", "/data"];
    let details = more.into_iter().find_map(|pointer| found(at(pointer)));
    match (message, details) {
        (Some(message), Some(details)) if !message.contains(&details) => {
            format!("{message}: {details}")
        }
        (Some(message), _) => message,
        (None, Some(details)) => details,
        (None, None) => "a request failed".to_owned(),
    }
}

/// The id of an ask: an agent numbers its requests anew in each process, so the process is part of it.
pub(crate) fn ask_id(process: u64, request: &Value) -> String {
    format!("{process}-{}", id_text(request))
}

/// An id as text.
pub(crate) fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// Data that every answer needs.
pub(crate) fn answer_to(request: &Value, method: &str) -> Map<String, Value> {
    Map::from_iter([
        ("requestId".to_owned(), request.clone()),
        ("method".to_owned(), Value::String(method.to_owned())),
    ])
}
