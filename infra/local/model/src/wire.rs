//! Answers in the OpenAI chat-completions format.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{self, AnswerEnd, TextPiece};
use crate::limits::USAGE_TOKENS_MAX;
use crate::request::ModelRequest;
use crate::script::ScriptedTokens;

/// Characters of tool arguments per chunk: few, so that clients have to join them.
const ARGUMENT_CHARS_MAX: usize = 24;

/// Fields shared by the chunks of one answer.
#[derive(Debug, Clone)]
pub(crate) struct ChunkEnvelope {
    /// Unique among this program's answers.
    pub(crate) id: String,
    /// Time of the answer, in seconds since 1970.
    pub(crate) created: u64,
}

/// A server-sent event and the delay after it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) data: String,
    pub(crate) pause: Duration,
}

/// The events of a streamed answer, in order.
pub(crate) fn frames(
    envelope: &ChunkEnvelope,
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut push = |data: Value, pause| {
        frames.push(Frame { data: format!("data: {data}\n\n"), pause });
    };
    let delta = |delta: Value| chunk(envelope, request, json!([choice(delta, Value::Null)]));
    push(delta(json!({ "role": "assistant", "content": "" })), Duration::ZERO);
    for piece in pieces {
        push(delta(json!({ "content": piece.text })), piece.pause);
    }
    let reason = match end {
        AnswerEnd::Cut => return frames,
        AnswerEnd::Stop => "stop",
        AnswerEnd::Tool(call) => {
            let opening = json!({ "index": 0, "id": call_id(envelope), "type": "function",
                "function": { "name": call.name, "arguments": "" } });
            push(delta(json!({ "tool_calls": [opening] })), Duration::ZERO);
            let arguments: Vec<char> = call.arguments.to_string().chars().collect();
            for part in arguments.chunks(ARGUMENT_CHARS_MAX) {
                let part: String = part.iter().collect();
                let fragment = json!({ "index": 0, "function": { "arguments": part } });
                push(delta(json!({ "tool_calls": [fragment] })), Duration::ZERO);
            }
            "tool_calls"
        }
    };
    push(chunk(envelope, request, json!([choice(json!({}), json!(reason))])), Duration::ZERO);
    if request.include_usage {
        let mut last = chunk(envelope, request, json!([]));
        last["usage"] = usage(request, pieces, end);
        push(last, Duration::ZERO);
    }
    frames.push(Frame { data: "data: [DONE]\n\n".to_owned(), pause: Duration::ZERO });
    frames
}

/// The body of an answer that is not streamed.
pub(crate) fn completion(
    envelope: &ChunkEnvelope,
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> Value {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let mut message = json!({ "role": "assistant", "content": text });
    let reason = match end {
        AnswerEnd::Tool(call) => {
            message["tool_calls"] = json!([{ "id": call_id(envelope), "type": "function",
                "function": { "name": call.name, "arguments": call.arguments.to_string() } }]);
            "tool_calls"
        }
        AnswerEnd::Stop | AnswerEnd::Cut => "stop",
    };
    json!({ "id": envelope.id, "object": "chat.completion", "created": envelope.created, "model": request.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": usage(request, pieces, end) })
}

/// An error body: `{"error": {message, type, param, code}}`.
pub(crate) fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// A provider's error body for this status. Type and text decide whether a client retries, so each status has its own.
pub(crate) fn scripted_error(status: u16) -> Value {
    match status {
        401 => error("invalid_request_error", Some("invalid_api_key"), "The API key is not valid."),
        402 => {
            error("billing_error", Some("billing_not_active"), "The account has no credit left.")
        }
        403 => error("permission_error", Some("forbidden"), "This key may not use the model."),
        404 => error("invalid_request_error", Some("model_not_found"), "The model does not exist."),
        429 => error(
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            "Rate limit reached. Try again later.",
        ),
        400..=499 => error("invalid_request_error", None, "The request is not valid."),
        503 | 529 => {
            error("server_error", Some("overloaded"), "The model is overloaded. Try again later.")
        }
        _ => error("server_error", Some("server_error"), "The server had an error."),
    }
}

fn chunk(envelope: &ChunkEnvelope, request: &ModelRequest, choices: Value) -> Value {
    json!({ "id": envelope.id, "object": "chat.completion.chunk", "created": envelope.created,
        "model": request.model, "choices": choices })
}

fn choice(delta: Value, finish_reason: Value) -> Value {
    json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason })
}

fn call_id(envelope: &ChunkEnvelope) -> String {
    envelope.id.replacen("chatcmpl-", "call_", 1)
}

fn usage(request: &ModelRequest, pieces: &[TextPiece], end: &AnswerEnd) -> Value {
    let ScriptedTokens { read, cached, written, .. } = tokens_of(request, pieces, end);
    json!({ "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "prompt_tokens_details": { "cached_tokens": cached } })
}

/// The tokens of an answer, as scripted; else about four characters each, bounded, and no cache.
pub(crate) fn tokens_of(
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> ScriptedTokens {
    if let Some(scripted) = answer::tokens(request) {
        return scripted;
    }
    let mut answered: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    if let AnswerEnd::Tool(call) = end {
        answered += call.arguments.to_string().len();
    }
    let tokens = |chars: usize| (chars / 4).clamp(1, USAGE_TOKENS_MAX);
    let (read, written) = (tokens(request.chars), tokens(answered));
    ScriptedTokens { read, cached: 0, stored: 0, written }
}
