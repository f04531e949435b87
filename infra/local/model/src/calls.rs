//! The call log: what was asked and answered, newest last, bounded.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer::{Answer, End};
use crate::limits::{CALL_TEXT_CHARS_MAX, CALLS_MAX, KEY_DIGITS, TOOLS_MAX, bounded, ended};
use crate::request::Request;

/// A request with the answer that it got, as `GET /calls` shows it.
#[derive(Debug, Clone, Serialize)]
struct Call {
    /// When the request came, in milliseconds since 1970.
    time_ms: u64,
    /// The header `x-session-id`, by which OpenCode names its session.
    session_id: Option<String>,
    /// Which key it was asked with, without the key ([`digest`]).
    key: Option<String>,
    /// The model that was asked for.
    model: String,
    /// The end of the system messages, where clients put the rules of a project.
    system: String,
    /// Text of the last user message.
    user: String,
    /// Names of the tools that were offered.
    tools: Vec<String>,
    /// Tool results that came after it.
    tool_results: usize,
    /// The text of the answer.
    text: String,
    /// `stop`, `tool_calls`, `cut` or `fail`.
    end: &'static str,
    /// Name and arguments of the tool that was called.
    tool: Option<serde_json::Value>,
    /// HTTP status of the answer.
    status: u16,
}

/// The last calls and how many there were in all.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Log>);

#[derive(Debug, Default, Serialize)]
struct Log {
    total: u64,
    calls: VecDeque<Call>,
}

impl Calls {
    /// Remembers one call; the oldest is forgotten when there are too many.
    pub(crate) fn add(
        &self,
        session_id: Option<&str>,
        key: Option<&str>,
        request: &Request,
        answer: &Answer,
    ) {
        let mut call = Call {
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
            Answer::Fail(status) => call.status = *status,
            Answer::Message { pieces, end } => {
                let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
                call.text = bounded(&text, CALL_TEXT_CHARS_MAX);
                call.end = match end {
                    End::Stop => "stop",
                    End::Tool(_) => "tool_calls",
                    End::Cut => "cut",
                };
                if let End::Tool(tool) = end {
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

/// The first digits of a key's SHA-256: enough to know it again.
fn digest(key: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(key));
    digits.truncate(KEY_DIGITS);
    digits
}

/// The time, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
