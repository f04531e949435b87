//! The Agent Client Protocol, version 1: an agent's standard output.
//!
//! Each tool call is a separate message. An ask's `metadata` has `requestId` and `method`; for the answer to a
//! permission also `options` (choose by `kind`, never by id), for the answer to a form the fields in `form`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{PermissionRequest, QuestionRequest, ToolRef};
use crate::convert::{Converted, Understood, count, decode, finish, tag, text_at};
use crate::event::{
    AskClosed, CrashInfo, Plan, PlanItem, PlanState, TokenUsage, TurnEnded, TurnOutcome,
    UniversalEventData, UsageScope,
};
use crate::form;
use crate::generated::acp as wire;
use crate::message::{AttachmentSource, UniversalMessageParsed, UniversalMessagePart};
use crate::recent::{Recent, remembered};
use crate::rpc::{Rpc, answer_to, ask_id, error_said, id_text};

/// The only part of a message that grows by chunks.
const TEXT_PART: &str = "text";
/// Longest input of a call that is remembered for its updates, which omit it; in bytes.
const INPUT_BYTES_MAX: usize = 16 * 1024;

/// Converts an agent's output to universal events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AcpConverter {
    /// How often the process was restarted.
    process: u64,
    /// Number of messages without an agent's id so far.
    unnamed: u64,
    /// Role and id of a message without an agent's id, while its chunks arrive.
    open: Option<(String, String)>,
    calls: Recent<AcpCall>,
    prompts: Recent<()>,
}

/// Fields of a tool call that its updates omit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct AcpCall {
    title: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    input: Value,
}

impl AcpConverter {
    /// Converts one message to events.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        let session = text_at(&raw, "/params/sessionId");
        let understood = match Rpc::of(&raw) {
            Rpc::Notification { method, params } => self.told(method, params),
            Rpc::Request { id, method, params } => self.asked(id, method, params),
            Rpc::Result { id, result } => self.answered(id, result),
            Rpc::Failure { id, error } => self.failed(id, error),
            Rpc::Other => Ok(Vec::new()),
        };
        finish(session, understood, raw)
    }

    /// The process was restarted: its request numbers start over, and no earlier prompt will be answered.
    pub fn restarted(&mut self) {
        self.process += 1;
        self.open = None;
        self.prompts.clear();
    }

    /// A prompt was sent as the request with this id: an answer to it, even an error, ends a turn. Without this call an
    /// error is like any other.
    pub fn prompted(&mut self, request: &Value) {
        self.prompts.set(&id_text(request), ());
    }

    fn told(&mut self, method: &str, params: &Value) -> Understood {
        Ok(match method {
            "session/update" => {
                let wire::SessionNotification { update, .. } = decode(params)?;
                self.update(&update)?
            }
            "$/cancel_request" => {
                let wire::CancelRequest { request_id } = decode(params)?;
                let id = ask_id(self.process, &request_id);
                vec![AskClosed { id, reply: None }.into()]
            }
            _ => Vec::new(),
        })
    }

    fn update(&mut self, update: &Value) -> Understood {
        Ok(match tag(update, "sessionUpdate") {
            "user_message_chunk" => vec![self.chunk("user", decode(update)?).into()],
            "agent_message_chunk" => vec![self.chunk("assistant", decode(update)?).into()],
            "agent_thought_chunk" => {
                let wire::Chunk { content: raw, message_id } = decode(update)?;
                let message = UniversalMessageParsed::of("assistant", message_id);
                let parts = vec![UniversalMessagePart::Unknown { raw }];
                vec![UniversalMessageParsed { parts, ..message }.into()]
            }
            "tool_call" => {
                let call: wire::ToolCall = decode(update)?;
                vec![self.call(wire::ToolCallUpdate {
                    content: call.content,
                    kind: call.kind,
                    name: call.name,
                    raw_input: call.raw_input,
                    raw_output: call.raw_output,
                    status: call.status,
                    title: Some(call.title),
                    tool_call_id: call.tool_call_id,
                })]
            }
            "tool_call_update" => vec![self.call(decode(update)?)],
            "plan" => {
                let wire::PlanUpdate { entries } = decode(update)?;
                let items = entries.into_iter().map(plan_item).collect();
                vec![Plan { items }.into()]
            }
            "usage_update" => {
                let wire::UsageUpdate { cost, used } = decode(update)?;
                let context = TokenUsage {
                    total_tokens: Some(count(used)),
                    ..TokenUsage::of(UsageScope::Context)
                };
                let cost = cost.filter(|cost| cost.currency == "USD").map(|cost| TokenUsage {
                    cost_usd: Some(cost.amount),
                    ..TokenUsage::of(UsageScope::Session)
                });
                let all = [Some(context), cost].into_iter().flatten();
                all.map(Into::into).collect()
            }
            _ => Vec::new(),
        })
    }

    fn chunk(&mut self, role: &str, chunk: wire::Chunk) -> UniversalMessageParsed {
        let id = match chunk.message_id {
            Some(id) => {
                self.open = None;
                id
            }
            None => self.unnamed(role),
        };
        let message = UniversalMessageParsed::of(role, Some(id));
        match content(&chunk.content) {
            UniversalMessagePart::Text { text } => message.with_delta(TEXT_PART, text),
            part => {
                let parts = vec![part];
                UniversalMessageParsed { parts, ..message }
            }
        }
    }

    /// Our id for a message without an agent's id; the same while chunks of one role arrive.
    fn unnamed(&mut self, role: &str) -> String {
        match &self.open {
            Some((open, id)) if open == role => id.clone(),
            _ => {
                self.unnamed += 1;
                let id = format!("message-{}", self.unnamed);
                self.open = Some((role.to_owned(), id.clone()));
                id
            }
        }
    }

    fn call(&mut self, update: wire::ToolCallUpdate) -> UniversalEventData {
        self.open = None;
        let id = update.tool_call_id;
        let had = self.calls.remove(&id).unwrap_or_default();
        let call = AcpCall {
            title: update.title.as_deref().map(remembered).or(had.title),
            name: update.name.as_deref().map(remembered).or(had.name),
            kind: update.kind.as_deref().map(remembered).or(had.kind),
            status: update.status.as_deref().map(remembered).or(had.status),
            input: update.raw_input.unwrap_or(had.input),
        };
        let name = call.name.clone().or_else(|| call.kind.clone());
        let name = name.unwrap_or_else(|| "other".to_owned());
        let mut parts = vec![UniversalMessagePart::ToolCall {
            id: Some(id.clone()),
            name: name.clone(),
            input: call.input.clone(),
        }];
        let status = call.status.as_deref();
        if matches!(status, Some("completed" | "failed")) {
            parts.push(UniversalMessagePart::ToolResult {
                id: Some(id.clone()),
                name: Some(name),
                output: update.raw_output.or(update.content.map(Value::Array)).unwrap_or_default(),
                is_error: Some(status == Some("failed")),
            });
        }
        let message = UniversalMessageParsed::of("assistant", Some(id.clone()))
            .with_part(&id, parts)
            .with("title", call.title.clone())
            .with("kind", call.kind.clone());
        let input =
            if call.input.to_string().len() > INPUT_BYTES_MAX { Value::Null } else { call.input };
        self.calls.set(&id, AcpCall { input, ..call });
        message.into()
    }

    fn asked(&mut self, request: &Value, method: &str, params: &Value) -> Understood {
        self.open = None;
        let id = ask_id(self.process, request);
        let mut metadata = answer_to(request, method);
        let tool = |call_id: String| {
            let message_id = call_id.clone();
            ToolRef { message_id, call_id }
        };
        Ok(match method {
            "session/request_permission" => {
                let asked: wire::PermissionRequest = decode(params)?;
                let always = asked.options.iter().filter(|one| one.kind == "allow_always");
                let always = always.map(|one| one.name.clone()).collect();
                let call = asked.tool_call;
                let had = self.calls.get(&call.tool_call_id).cloned().unwrap_or_default();
                let options = params.get("options").cloned();
                metadata.extend(options.map(|it| ("options".to_owned(), it)));
                let input = call.raw_input.unwrap_or(had.input);
                metadata.insert("input".to_owned(), input);
                let kind = call.name.or(call.kind).or(had.name).or(had.kind);
                let asked = PermissionRequest {
                    id,
                    session_id: asked.session_id,
                    permission: kind.unwrap_or_else(|| "other".to_owned()),
                    patterns: call.title.or(had.title).into_iter().collect(),
                    metadata,
                    always,
                    tool: Some(tool(call.tool_call_id)),
                };
                vec![asked.into()]
            }
            "elicitation/create" if tag(params, "mode") == "form" => {
                let asked: wire::ElicitationRequest = decode(params)?;
                let (questions, fields) = form::questions(&asked.message, &asked.requested_schema);
                metadata.insert("form".to_owned(), fields);
                let asked = QuestionRequest {
                    id,
                    session_id: asked.session_id.unwrap_or_default(),
                    questions,
                    tool: asked.tool_call_id.map(tool),
                    metadata,
                };
                vec![asked.into()]
            }
            _ => Vec::new(),
        })
    }

    fn answered(&mut self, request: &Value, result: &Value) -> Understood {
        if result.get("stopReason").is_none() {
            return Ok(Vec::new());
        }
        self.open = None;
        self.prompts.remove(&id_text(request));
        let wire::PromptResponse { stop_reason } = decode(result)?;
        let outcome = match stop_reason.as_str() {
            "end_turn" | "max_tokens" => TurnOutcome::Done,
            "cancelled" => TurnOutcome::Cancelled,
            _ => TurnOutcome::Failed,
        };
        let message =
            (outcome == TurnOutcome::Failed).then(|| format!("The agent stopped: {stop_reason}."));
        let ended = TurnEnded { outcome, reason: Some(stop_reason), message, usage: None };
        Ok(vec![ended.into()])
    }

    fn failed(&mut self, request: &Value, error: &Value) -> Understood {
        self.open = None;
        let wire::Error { code, .. } = decode(error)?;
        let message = error_said(error);
        if self.prompts.remove(&id_text(request)).is_some() {
            let ended = TurnEnded {
                outcome: TurnOutcome::Failed,
                reason: Some(code.to_string()),
                message: Some(message),
                usage: None,
            };
            return Ok(vec![ended.into()]);
        }
        let crash = CrashInfo {
            message,
            kind: Some(code.to_string()),
            details: Some(json!({ "requestId": request, "error": error })),
        };
        Ok(vec![crash.into()])
    }
}

/// A piece of content; an unreadable one is kept raw.
fn content(content: &Value) -> UniversalMessagePart {
    known(content).unwrap_or_else(|| UniversalMessagePart::Unknown { raw: content.clone() })
}

fn known(content: &Value) -> Option<UniversalMessagePart> {
    let base64 = || Some("base64".to_owned());
    Some(match tag(content, "type") {
        "text" => {
            let wire::TextContent { text } = decode(content).ok()?;
            UniversalMessagePart::Text { text }
        }
        "image" => {
            let image: wire::ImageContent = decode(content).ok()?;
            UniversalMessagePart::Image {
                source: AttachmentSource::Data { data: image.data, encoding: base64() },
                mime_type: Some(image.mime_type),
                alt: None,
                raw: None,
            }
        }
        "resource_link" => {
            let link: wire::ResourceLink = decode(content).ok()?;
            UniversalMessagePart::File {
                source: AttachmentSource::Url { url: link.uri },
                mime_type: link.mime_type,
                filename: Some(link.name),
                raw: None,
            }
        }
        "resource" => {
            let wire::EmbeddedResource { resource } = decode(content).ok()?;
            let (data, encoding) = match resource.text {
                Some(text) => (text, None),
                None => {
                    let bytes: wire::BlobContents = decode(content.get("resource")?).ok()?;
                    (bytes.blob, base64())
                }
            };
            UniversalMessagePart::File {
                source: AttachmentSource::Data { data, encoding },
                mime_type: resource.mime_type,
                filename: Some(resource.uri),
                raw: None,
            }
        }
        _ => return None,
    })
}

fn plan_item(entry: wire::PlanEntry) -> PlanItem {
    PlanItem {
        state: match entry.status.as_str() {
            "completed" => PlanState::Completed,
            "in_progress" => PlanState::InProgress,
            _ => PlanState::Pending,
        },
        text: entry.content,
    }
}
