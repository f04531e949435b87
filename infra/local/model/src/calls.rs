//! The call log: requests and answers, newest last, bounded.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer::{AnswerEnd, ModelAnswer};
use crate::limits::{CALL_TEXT_CHARS_MAX, CALLS_MAX, KEY_DIGITS, TOOLS_MAX, bounded, ended};
use crate::request::ModelRequest;

/// A request and its answer, as in `GET /calls`.
#[derive(Debug, Clone, Serialize)]
struct ModelCall {
    /// Time of the request, in milliseconds since 1970.
    time_ms: u64,
    /// Header `x-session-id` with OpenCode's session.
    session_id: Option<String>,
    /// Digest of the key ([`digest`]).
    key: Option<String>,
    /// The requested model.
    model: String,
    /// End of the system messages, where clients put project rules.
    system: String,
    /// Text of the last user message.
    user: String,
    /// Names of the offered tools.
    tools: Vec<String>,
    /// Number of tool results after it.
    tool_results: usize,
    /// Text of the answer.
    text: String,
    /// `stop`, `tool_calls`, `cut` or `fail`.
    end: &'static str,
    /// Name and arguments of the called tool.
    tool: Option<serde_json::Value>,
    /// HTTP status of the answer.
    status: u16,
}

/// The latest calls, and the total count.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<CallLog>);

#[derive(Debug, Default, Serialize)]
struct CallLog {
    total: u64,
    calls: VecDeque<ModelCall>,
}

impl Calls {
    /// Logs a call; the oldest is dropped beyond the bound.
    pub(crate) fn add(
        &self,
        session_id: Option<&str>,
        key: Option<&str>,
        request: &ModelRequest,
        answer: &ModelAnswer,
    ) {
        let mut call = ModelCall {
            time_ms: now_ms(),
            session_id: session_id.map(|id| bounded(id, CALL_TEXT_CHARS_MAX)),
            key: key.map(digest),
            model: bounded(&request.model, CALL_TEXT_CHARS_MAX),
            system: ended(&request.system, CALL_TEXT_CHARS_MAX),
            user: bounded(&request.user, CALL_TEXT_CHARS_MAX),
            tools: request
                .tools
                .iter()
                .take(TOOLS_MAX)
                .map(|name| bounded(name, CALL_TEXT_CHARS_MAX))
                .collect(),
            tool_results: request.results.len(),
            text: String::new(),
            end: "fail",
            tool: None,
            status: 200,
        };
        match answer {
            ModelAnswer::Fail(status) => call.status = *status,
            ModelAnswer::Message { pieces, end } => {
                let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
                call.text = bounded(&text, CALL_TEXT_CHARS_MAX);
                call.end = match end {
                    AnswerEnd::Stop => "stop",
                    AnswerEnd::Tool(_) => "tool_calls",
                    AnswerEnd::Cut => "cut",
                };
                if let AnswerEnd::Tool(tool) = end {
                    call.tool =
                        Some(serde_json::json!({ "name": tool.name, "arguments": tool.arguments }));
                }
            }
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.total += 1;
        if log.calls.len() == CALLS_MAX {
            log.calls.pop_front();
        }
        log.calls.push_back(call);
    }

    /// `{"total": N, "calls": [...]}`
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::json!(&*log)
    }
}

/// First digits of a key's SHA-256: enough to recognise it.
fn digest(key: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(key));
    digits.truncate(KEY_DIGITS);
    digits
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
