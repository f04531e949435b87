//! OpenAI's Responses protocol, as Codex speaks it (measured with 0.169.0: `POST /v1/responses`, streamed).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{ASKS, AnswerEnd, ModelToolCall, TextPiece};
use crate::request::{ModelRequest, media_type};
use crate::script::ScriptedTokens;
use crate::wire::{ChunkEnvelope, Frame, tokens_of};

/// Prefixes of Codex's own notes with the user role.
const NOTES: [&str; 2] = ["<environment_context>", "<user_instructions>"];

#[derive(Deserialize)]
struct ResponsesRequest {
    model: String,
    input: Vec<Value>,
    #[serde(default)]
    instructions: String,
    #[serde(default)]
    tools: Vec<Value>,
}

/// User text in an input item.
fn written(item: &Value) -> Option<String> {
    let is_user = item["type"] == "message" && item["role"] == "user";
    let parts = item["content"].as_array().filter(|_| is_user)?;
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .filter(|text| !NOTES.iter().any(|note| text.starts_with(note)))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// A tool's result.
fn result(item: &Value) -> Option<String> {
    let is_output = item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    let output = &item["output"];
    is_output.then(|| output.as_str().map_or_else(|| output.to_string(), str::to_owned))
}

/// A call in the format of Codex's tools: it writes files through its shell.
fn translated(call: &ModelToolCall) -> (&str, Value) {
    let arguments = &call.arguments;
    match call.name.as_str() {
        "bash" => {
            let command = arguments["command"].as_str().unwrap_or_default();
            let mut input = json!({ "cmd": command });
            if let Some(command) = command.strip_prefix(ASKS) {
                input = json!({ "cmd": command, "sandbox_permissions": "require_escalated",
                    "justification": "The script needs a permission" });
            }
            ("exec_command", input)
        }
        "write" => {
            let text =
                |name: &str| arguments[name].as_str().unwrap_or_default().replace('\'', "'\\''");
            let command = format!("printf %s '{}' > '{}'", text("content"), text("filePath"));
            ("exec_command", json!({ "cmd": command }))
        }
        other => (other, arguments.clone()),
    }
}

/// Media types of the images in a message.
fn images(item: &Value) -> Vec<String> {
    let parts = item["content"].as_array().into_iter().flatten();
    let addresses = parts.filter_map(|part| part["image_url"].as_str());
    addresses.map(media_type).collect()
}

/// Parses a request body; the error says what is wrong.
pub(crate) fn parse(body: &[u8]) -> Result<ModelRequest, String> {
    let body: ResponsesRequest = serde_json::from_slice(body).map_err(|error| {
        format!(
            "The body is not a Responses request: {error}. Send JSON with `model` and a list `input`."
        )
    })?;
    let (last_user, user) = body
        .input
        .iter()
        .enumerate()
        .rev()
        .find_map(|(place, item)| Some((place, written(item)?)))
        .ok_or("`input` has no message with role `user`. Add one: its lines are what the scripted model does.")?;
    let names = body.tools.iter().filter_map(|tool| tool["name"].as_str());
    let tools: Vec<String> = names
        .flat_map(|name| match name {
            "exec_command" => vec!["bash", "write"],
            other => vec![other],
        })
        .map(str::to_owned)
        .collect();
    Ok(ModelRequest {
        internal: tools.is_empty() && !body.instructions.is_empty(),
        title: body.instructions.contains("title"),
        model: body.model,
        stream: true,
        include_usage: true,
        tools,
        user,
        images: images(&body.input[last_user]),
        results: body.input[last_user + 1..].iter().filter_map(result).collect(),
        chars: body.instructions.len(),
        system: body.instructions,
    })
}

/// Numbers the events of one answer.
struct ResponseEvents {
    frames: Vec<Frame>,
}

impl ResponseEvents {
    fn push(&mut self, kind: &str, mut data: Value, pause: Duration) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.frames.len());
        self.frames.push(Frame { data: format!("event: {kind}\ndata: {data}\n\n"), pause });
    }

    fn at_once(&mut self, kind: &str, data: Value) {
        self.push(kind, data, Duration::ZERO);
    }
}

/// The events of a streamed answer, in order.
pub(crate) fn frames(
    envelope: &ChunkEnvelope,
    request: &ModelRequest,
    pieces: &[TextPiece],
    end: &AnswerEnd,
) -> Vec<Frame> {
    let id = |prefix: &str| envelope.id.replacen("chatcmpl-", prefix, 1);
    let mut response = json!({ "id": id("resp_"), "object": "response", "created_at": envelope.created,
        "status": "in_progress", "model": request.model, "output": [] });
    let mut events = ResponseEvents { frames: Vec::new() };
    events.at_once("response.created", json!({ "response": response }));
    let mut output = Vec::new();
    if !pieces.is_empty() {
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let item = |status: &str, content: Value| json!({ "type": "message", "id": id("msg_"), "role": "assistant", "status": status, "content": content });
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        let place = json!({ "item_id": id("msg_"), "output_index": 0, "content_index": 0 });
        let with = |name: &str, value: Value| {
            let mut data = place.clone();
            data[name] = value;
            data
        };
        let begun = json!({ "output_index": 0, "item": item("in_progress", json!([])) });
        events.at_once("response.output_item.added", begun);
        events.at_once("response.content_part.added", with("part", part("")));
        for piece in pieces {
            events.push(
                "response.output_text.delta",
                with("delta", json!(piece.text)),
                piece.pause,
            );
        }
        if *end == AnswerEnd::Cut {
            return events.frames;
        }
        events.at_once("response.output_text.done", with("text", json!(text)));
        events.at_once("response.content_part.done", with("part", part(&text)));
        let done = item("completed", json!([part(&text)]));
        events.at_once("response.output_item.done", json!({ "output_index": 0, "item": done }));
        output.push(done);
    }
    if let AnswerEnd::Tool(call) = end {
        let (name, input) = translated(call);
        let item = json!({ "type": "function_call", "id": id("fc_"), "call_id": id("call_"), "name": name,
            "arguments": input.to_string(), "status": "completed" });
        let place = output.len();
        events
            .at_once("response.output_item.added", json!({ "output_index": place, "item": item }));
        events.at_once("response.output_item.done", json!({ "output_index": place, "item": item }));
        output.push(item);
    }
    let ScriptedTokens { read, cached, written, .. } = tokens_of(request, pieces, end);
    response["status"] = json!("completed");
    response["output"] = json!(output);
    response["usage"] = json!({ "input_tokens": read, "input_tokens_details": { "cached_tokens": cached },
        "output_tokens": written, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": read + written });
    events.at_once("response.completed", json!({ "response": response }));
    events.frames
}
