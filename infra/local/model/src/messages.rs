//! Anthropic's Messages protocol, as Claude Code speaks it (measured with 2.1.332: `POST /v1/messages?beta=true`,
//! streamed).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{ASKS, AnswerEnd, ModelToolCall, TextPiece};
use crate::request::ModelRequest;
use crate::script::ScriptedTokens;
use crate::wire::{ChunkEnvelope, Frame, tokens_of};

/// Prefixes of Claude Code's own notes in a user message; the second follows each image.
const NOTES: [&str; 2] = ["<system-reminder>", "[Image: source: "];

#[derive(Deserialize)]
struct MessagesRequest {
    model: String,
    messages: Vec<InputMessage>,
    #[serde(default)]
    system: Value,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct InputMessage {
    role: String,
    content: Value,
}

/// Texts of a content: a string, or the text blocks of a list, without the client's notes.
fn texts(content: &Value) -> Vec<&str> {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    let all = content.as_str().into_iter().chain(texts);
    all.filter(|text| !NOTES.iter().any(|note| text.starts_with(note))).collect()
}

/// Tool results in a message, in order.
fn results(content: &Value) -> impl Iterator<Item = String> {
    let blocks = content.as_array().into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| texts(&block["content"]).join("\n"))
}

/// Maps Claude Code's tool name to the script's.
fn known(name: &str) -> &str {
    match name {
        "Bash" => "bash",
        "Write" => "write",
        "AskUserQuestion" => "question",
        other => other,
    }
}

/// A call in the format of Claude Code's tools.
fn translated(call: &ModelToolCall) -> (&str, Value) {
    let arguments = &call.arguments;
    match call.name.as_str() {
        "bash" => {
            // Claude Code asks before any command that changes something.
            let command = arguments["command"].as_str().unwrap_or_default();
            let command = command.strip_prefix(ASKS).unwrap_or(command);
            let input = json!({ "command": command, "description": arguments["description"] });
            ("Bash", input)
        }
        "write" => (
            "Write",
            json!({ "file_path": arguments["filePath"], "content": arguments["content"] }),
        ),
        "question" => {
            let questions = arguments["questions"].as_array().into_iter().flatten();
            let questions: Vec<Value> = questions
                .map(|one| {
                    json!({ "question": one["question"], "header": one["header"], "options": one["options"],
                        "multiSelect": one["multiple"] == true })
                })
                .collect();
            ("AskUserQuestion", json!({ "questions": questions }))
        }
        other => (other, arguments.clone()),
    }
}

/// Media types of the images in a message's content.
fn images(content: &Value) -> Vec<String> {
    let parts = content.as_array().into_iter().flatten();
    let sources = parts.filter(|part| part["type"] == "image");
    let types = sources.map(|part| part["source"]["media_type"].as_str().unwrap_or("link"));
    types.map(str::to_owned).collect()
}

/// Parses a request body; the error says what is wrong.
pub(crate) fn parse(body: &[u8]) -> Result<ModelRequest, String> {
    let body: MessagesRequest = serde_json::from_slice(body).map_err(|error| {
        format!(
            "The body is not a Messages request: {error}. Send JSON with `model` and `messages`."
        )
    })?;
    let is_user = |message: &InputMessage| message.role == "user";
    let said = |message: &InputMessage| is_user(message) && !texts(&message.content).is_empty();
    let last_user = body.messages.iter().rposition(said).ok_or(
        "`messages` has no text with role `user`. Add one: its lines are what the scripted model does.",
    )?;
    let tools: Vec<String> = body
        .tools
        .iter()
        .filter_map(|tool| tool["name"].as_str().map(|name| known(name).to_owned()))
        .collect();
    let system = texts(&body.system).join("\n");
    Ok(ModelRequest {
        internal: tools.is_empty() && !system.is_empty(),
        title: system.contains("title"),
        model: body.model,
        stream: body.stream.unwrap_or(false),
        include_usage: true,
        tools,
        // Unanswered messages are merged with the next one: each is a text of its own, and the last one counts.
        user: texts(&body.messages[last_user].content)
            .last()
            .map_or_else(String::new, |&text| text.to_owned()),
        images: images(&body.messages[last_user].content),
        results: body.messages[last_user + 1..]
            .iter()
            .filter(|message| is_user(message))
            .flat_map(|message| results(&message.content))
            .collect(),
        chars: system.len(),
        system,
    })
}

fn event(kind: &str, mut data: Value, pause: Duration) -> Frame {
    data["type"] = json!(kind);
    Frame { data: format!("event: {kind}\ndata: {data}\n\n"), pause }
}

/// The events of a streamed answer, in order.
pub(crate) fn frames(
    envelope: &ChunkEnvelope,
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> Vec<Frame> {
    let tokens = tokens_of(request, pieces, end);
    let mut message = message(envelope, request, json!([]));
    message["usage"] = usage(ScriptedTokens { written: 1, ..tokens });
    let at_once = |kind: &str, data: Value| event(kind, data, Duration::ZERO);
    let mut frames = vec![at_once("message_start", json!({ "message": message }))];
    let mut index = 0;
    if !pieces.is_empty() {
        let block = json!({ "type": "text", "text": "" });
        let start = json!({ "index": index, "content_block": block });
        frames.push(at_once("content_block_start", start));
        for piece in pieces {
            let delta = json!({ "type": "text_delta", "text": piece.text });
            let data = json!({ "index": index, "delta": delta });
            frames.push(event("content_block_delta", data, piece.pause));
        }
    }
    let reason = match end {
        AnswerEnd::Cut => return frames,
        AnswerEnd::Stop => "end_turn",
        AnswerEnd::Tool(_) => "tool_use",
    };
    if !pieces.is_empty() {
        frames.push(at_once("content_block_stop", json!({ "index": index })));
        index += 1;
    }
    if let AnswerEnd::Tool(call) = end {
        let (name, input) = translated(call);
        let block =
            json!({ "type": "tool_use", "id": call_id(envelope), "name": name, "input": {} });
        let start = json!({ "index": index, "content_block": block });
        frames.push(at_once("content_block_start", start));
        let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
        let data = json!({ "index": index, "delta": delta });
        frames.push(at_once("content_block_delta", data));
        frames.push(at_once("content_block_stop", json!({ "index": index })));
    }
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let data = json!({ "delta": delta, "usage": { "output_tokens": tokens.written } });
    frames.push(at_once("message_delta", data));
    frames.push(at_once("message_stop", json!({})));
    frames
}

/// The body of an answer that is not streamed.
pub(crate) fn whole(
    envelope: &ChunkEnvelope,
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> Value {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let mut content = vec![json!({ "type": "text", "text": text })];
    let reason = match end {
        AnswerEnd::Tool(call) => {
            let (name, input) = translated(call);
            let block = json!({ "type": "tool_use", "id": call_id(envelope), "name": name, "input": input });
            content.push(block);
            "tool_use"
        }
        AnswerEnd::Stop | AnswerEnd::Cut => "end_turn",
    };
    let mut message = message(envelope, request, json!(content));
    message["stop_reason"] = json!(reason);
    message["usage"] = usage(tokens_of(request, pieces, end));
    message
}

fn usage(tokens: ScriptedTokens) -> Value {
    let ScriptedTokens { read, cached, stored, written } = tokens;
    json!({ "input_tokens": read - cached - stored, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": stored, "output_tokens": written })
}

fn message(envelope: &ChunkEnvelope, request: &ModelRequest, content: Value) -> Value {
    json!({ "id": envelope.id.replacen("chatcmpl-", "msg_", 1), "type": "message", "role": "assistant",
        "model": request.model, "content": content, "stop_reason": null, "stop_sequence": null })
}

fn call_id(envelope: &ChunkEnvelope) -> String {
    envelope.id.replacen("chatcmpl-", "toolu_", 1)
}

/// The error body for a status: `{"type": "error", "error": {type, message}}`.
pub(crate) fn error(status: u16) -> Value {
    let (kind, message) = match status {
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "This key may not use the model."),
        404 => ("not_found_error", "The model does not exist."),
        429 => ("rate_limit_error", "Rate limit reached. Try again later."),
        400..=499 => ("invalid_request_error", "The request is not valid."),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "The server had an error."),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
