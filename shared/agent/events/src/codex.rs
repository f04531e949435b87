//! Codex: the standard output of `codex app-server` (recorded with 0.169.0).
//!
//! Each item is a separate message with one part. An ask's `metadata` has `requestId` and `method`, and for the answer:
//! commands and file changes take a `decision` (`accept`, `acceptForSession`, `decline`, `cancel`, or for a command
//! `{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":…}}` with `amendment`), permissions the `permissions` that
//! are granted, questions the answers by the ids in `questions`, forms the fields in `form`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{PermissionRequest, QuestionInfo, QuestionOption, QuestionRequest, ToolRef};
use crate::convert::{Converted, Understood, count, decode, finish, tag, text_at};
use crate::event::{
    AskClosed, CrashInfo, Plan, PlanItem, PlanState, Started, Status, StatusState, TokenUsage,
    TurnEnded, TurnOutcome, UniversalEventData, UsageScope,
};
use crate::form;
use crate::generated::codex as wire;
use crate::message::{AttachmentSource, UniversalMessageParsed, UniversalMessagePart};
use crate::recent::{Recent, remembered};
use crate::rpc::{Rpc, answer_to, ask_id, error_said};

/// Most files of an item that are remembered.
const FILES_MAX: usize = 16;

/// Converts Codex's output to universal events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CodexConverter {
    /// How often the process was restarted.
    process: u64,
    /// The files that an item changes, by item: its ask does not name them.
    files: Recent<Vec<String>>,
}

impl CodexConverter {
    /// Converts one line to events.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        let session = text_at(&raw, "/params/threadId")
            .or_else(|| text_at(&raw, "/params/thread/id"))
            .or_else(|| text_at(&raw, "/result/thread/id"));
        let understood = match Rpc::of(&raw) {
            Rpc::Notification { method, params } => self.told(method, params),
            Rpc::Request { id, method, params } => self.asked(id, method, params),
            Rpc::Failure { id, error } => Ok(vec![failed(id, error).into()]),
            Rpc::Result { .. } | Rpc::Other => Ok(Vec::new()),
        };
        finish(session, understood, raw)
    }

    /// The process was restarted: its request numbers start over.
    pub fn restarted(&mut self) {
        self.process += 1;
    }

    fn told(&mut self, method: &str, params: &Value) -> Understood {
        Ok(match method {
            "thread/started" => {
                let wire::ThreadStarted { thread } = decode(params)?;
                let started = Started { message: None, details: serde_json::to_value(thread).ok() };
                vec![started.into()]
            }
            "thread/status/changed" => {
                let wire::ThreadStatusChanged { status, .. } = decode(params)?;
                state(&status).map(|state| Status::of(state).into()).into_iter().collect()
            }
            "thread/tokenUsage/updated" => {
                let wire::TokenUsageUpdated { token_usage, .. } = decode(params)?;
                vec![usage(token_usage.total).into()]
            }
            "turn/started" => {
                let _: wire::TurnStarted = decode(params)?;
                vec![Status::of(StatusState::Busy).into()]
            }
            "turn/completed" => {
                let wire::TurnCompleted { turn, .. } = decode(params)?;
                vec![ended(turn).into()]
            }
            "turn/plan/updated" => {
                let wire::PlanUpdated { plan, .. } = decode(params)?;
                let items = plan.into_iter().map(plan_item).collect();
                vec![Plan { items }.into()]
            }
            "error" => {
                let notice: wire::ErrorNotice = decode(params)?;
                vec![error(notice)]
            }
            "item/started" | "item/completed" => {
                let notice: wire::ItemNotice = decode(params)?;
                let is_over = method == "item/completed";
                self.remember_files(&notice.item);
                vec![item(&notice.item, notice.turn_id, is_over)?.into()]
            }
            "item/agentMessage/delta" => {
                let delta: wire::AgentMessageDelta = decode(params)?;
                let message = UniversalMessageParsed::of("assistant", Some(delta.item_id.clone()));
                let message = message.with("turn", delta.turn_id);
                vec![message.with_delta(&delta.item_id, delta.delta).into()]
            }
            "serverRequest/resolved" => {
                let wire::RequestResolved { request_id, .. } = decode(params)?;
                let id = ask_id(self.process, &request_id);
                vec![AskClosed { id, reply: None }.into()]
            }
            _ => Vec::new(),
        })
    }

    fn remember_files(&mut self, item: &Value) {
        let decoded: Result<wire::FileChange, _> = decode(item);
        if let (Ok(change), "fileChange") = (decoded, tag(item, "type")) {
            let files = change.changes.iter().take(FILES_MAX);
            let files = files.map(|one| remembered(&one.path)).collect();
            self.files.set(tag(item, "id"), files);
        }
    }

    fn asked(&self, request: &Value, method: &str, params: &Value) -> Understood {
        let id = ask_id(self.process, request);
        let mut metadata = answer_to(request, method);
        let tool = |call_id: String| {
            let message_id = call_id.clone();
            Some(ToolRef { message_id, call_id })
        };
        let mut add = |name: &str, value: Option<Value>| {
            metadata.extend(value.map(|value| (name.to_owned(), value)));
        };
        Ok(match method {
            "item/commandExecution/requestApproval" => {
                let asked: wire::CommandApproval = decode(params)?;
                let amendment = asked.proposed_execpolicy_amendment;
                add("reason", asked.reason.map(Value::from));
                add("cwd", asked.cwd.map(Value::from));
                add("amendment", amendment.clone().map(Value::from));
                add("decisions", params.get("availableDecisions").cloned());
                let asked = PermissionRequest {
                    id,
                    session_id: asked.thread_id,
                    permission: "commandExecution".to_owned(),
                    patterns: asked.command.into_iter().collect(),
                    metadata,
                    always: amendment.map(|words| words.join(" ")).into_iter().collect(),
                    tool: tool(asked.item_id),
                };
                vec![asked.into()]
            }
            "item/fileChange/requestApproval" => {
                let asked: wire::FileChangeApproval = decode(params)?;
                add("reason", asked.reason.map(Value::from));
                let files = self.files.get(&asked.item_id).cloned();
                let asked = PermissionRequest {
                    id,
                    session_id: asked.thread_id,
                    permission: "fileChange".to_owned(),
                    patterns: files.unwrap_or_default(),
                    metadata,
                    always: asked.grant_root.into_iter().collect(),
                    tool: tool(asked.item_id),
                };
                vec![asked.into()]
            }
            "item/permissions/requestApproval" => {
                let asked: wire::PermissionsApproval = decode(params)?;
                add("reason", asked.reason.map(Value::from));
                add("permissions", Some(asked.permissions));
                let asked = PermissionRequest {
                    id,
                    session_id: asked.thread_id,
                    permission: "permissions".to_owned(),
                    patterns: asked.cwd.into_iter().collect(),
                    metadata,
                    always: Vec::new(),
                    tool: tool(asked.item_id),
                };
                vec![asked.into()]
            }
            "item/tool/requestUserInput" => {
                let asked: wire::UserInputRequest = decode(params)?;
                let ids = asked.questions.iter().map(|one| one.id.clone()).collect();
                add("questions", Some(ids));
                let asked = QuestionRequest {
                    id,
                    session_id: asked.thread_id,
                    questions: asked.questions.into_iter().map(question).collect(),
                    tool: tool(asked.item_id),
                    metadata,
                };
                vec![asked.into()]
            }
            "mcpServer/elicitation/request" if tag(params, "mode") == "form" => {
                let asked: wire::ElicitationRequest = decode(params)?;
                let (questions, fields) = form::questions(&asked.message, &asked.requested_schema);
                add("form", Some(fields));
                let asked = QuestionRequest {
                    id,
                    session_id: asked.thread_id,
                    questions,
                    tool: None,
                    metadata,
                };
                vec![asked.into()]
            }
            _ => Vec::new(),
        })
    }
}

fn state(status: &wire::ThreadStatus) -> Option<StatusState> {
    let waits = |flags: &Vec<String>| flags.iter().any(|flag| flag.starts_with("waiting"));
    match status.type_.as_str() {
        "idle" => Some(StatusState::Idle),
        "active" if status.active_flags.as_ref().is_some_and(waits) => Some(StatusState::Waiting),
        "active" => Some(StatusState::Busy),
        "systemError" => Some(StatusState::Failed),
        _ => None,
    }
}

fn usage(total: wire::TokenUsage) -> TokenUsage {
    let cached = total.cached_input_tokens.unwrap_or_default();
    let reasoning = total.reasoning_output_tokens.unwrap_or_default();
    TokenUsage {
        input_tokens: Some(count(total.input_tokens - cached)),
        output_tokens: Some(count(total.output_tokens - reasoning)),
        reasoning_tokens: total.reasoning_output_tokens.map(count),
        cache_read_tokens: total.cached_input_tokens.map(count),
        cache_write_tokens: total.cache_write_input_tokens.map(count),
        total_tokens: Some(count(total.total_tokens)),
        ..TokenUsage::of(UsageScope::Session)
    }
}

fn ended(turn: wire::Turn) -> TurnEnded {
    TurnEnded {
        outcome: match turn.status.as_str() {
            "completed" => TurnOutcome::Done,
            "interrupted" => TurnOutcome::Cancelled,
            _ => TurnOutcome::Failed,
        },
        reason: Some(turn.status),
        message: turn.error.map(|error| error.message),
        usage: None,
    }
}

fn error(notice: wire::ErrorNotice) -> UniversalEventData {
    let wire::ErrorNotice { error, will_retry, .. } = notice;
    if will_retry {
        let state = StatusState::Retrying;
        let message = Some(error.message);
        return Status { message, ..Status::of(state) }.into();
    }
    let kind = error.codex_error_info.as_ref().and_then(|info| {
        // Text, or an object with one field that has its name.
        let of_object = || info.as_object()?.keys().next().cloned();
        info.as_str().map(str::to_owned).or_else(of_object)
    });
    let crash = CrashInfo {
        message: error.message,
        kind,
        details: error.additional_details.map(Value::from),
    };
    crash.into()
}

/// A request of the client's that Codex refused.
fn failed(request: &Value, error: &Value) -> CrashInfo {
    CrashInfo {
        message: error_said(error),
        kind: error.get("code").map(ToString::to_string),
        details: Some(json!({ "requestId": request, "error": error })),
    }
}

fn plan_item(step: wire::PlanStep) -> PlanItem {
    PlanItem {
        state: match step.status.as_str() {
            "completed" => PlanState::Completed,
            "inProgress" => PlanState::InProgress,
            _ => PlanState::Pending,
        },
        text: step.step,
    }
}

fn question(question: wire::Question) -> QuestionInfo {
    let option = |one: wire::QuestionOption| QuestionOption {
        label: one.label,
        description: one.description,
    };
    let options = question.options.unwrap_or_default();
    QuestionInfo {
        question: question.question,
        header: question.header,
        custom: Some(question.is_other.unwrap_or_default() || options.is_empty()),
        options: options.into_iter().map(option).collect(),
        multi_select: None,
    }
}

/// An item as a message.
fn item(
    item: &Value,
    turn: Option<String>,
    is_over: bool,
) -> Result<UniversalMessageParsed, serde_json::Error> {
    let wire::ItemHead { id, type_: kind } = decode(item)?;
    let role = match kind.as_str() {
        "userMessage" => "user",
        _ => "assistant",
    };
    let message = UniversalMessageParsed::of(role, Some(id.clone()))
        .with("turn", turn)
        .with("completed", is_over.then_some(true));
    let call = |name: String, input: Value, result: Option<(Value, bool)>| {
        let called =
            UniversalMessagePart::ToolCall { id: Some(id.clone()), name: name.clone(), input };
        let answered = result.map(|(output, is_error)| UniversalMessagePart::ToolResult {
            id: Some(id.clone()),
            name: Some(name),
            output,
            is_error: Some(is_error),
        });
        [called].into_iter().chain(answered).collect()
    };
    let ended = |status: &str| matches!(status, "completed" | "failed" | "declined");
    let (parts, message): (Vec<UniversalMessagePart>, _) = match kind.as_str() {
        "userMessage" => {
            let prompt: wire::UserMessage = decode(item)?;
            let parts = prompt.content.iter().map(input).collect();
            (parts, message.with("clientId", prompt.client_id))
        }
        "agentMessage" => {
            let said: wire::AgentMessage = decode(item)?;
            let parts = vec![UniversalMessagePart::Text { text: said.text }];
            (parts, message.with("phase", said.phase))
        }
        "commandExecution" => {
            let run: wire::CommandExecution = decode(item)?;
            let is_error = run.status != "completed" || run.exit_code.is_some_and(|code| code != 0);
            let output = Value::from(run.aggregated_output.unwrap_or_default());
            let result = ended(&run.status).then_some((output, is_error));
            let input = json!({ "command": run.command, "cwd": run.cwd });
            (call(kind, input, result), message.with("exit", run.exit_code))
        }
        "fileChange" => {
            let change: wire::FileChange = decode(item)?;
            let is_error = change.status != "completed";
            let result = ended(&change.status).then(|| (Value::from(change.status), is_error));
            let input = json!({ "changes": change.changes });
            (call(kind, input, result), message)
        }
        "mcpToolCall" => {
            let called: wire::McpToolCall = decode(item)?;
            let is_error = called.status != "completed";
            let output = called.result.or(called.error).unwrap_or_default();
            let result = ended(&called.status).then_some((output, is_error));
            let parts = call(called.tool, called.arguments, result);
            (parts, message.with("server", Some(called.server)))
        }
        "dynamicToolCall" => {
            let called: wire::DynamicToolCall = decode(item)?;
            let is_error = called.status != "completed";
            let output = called.content_items.unwrap_or_default();
            let result = ended(&called.status).then_some((output, is_error));
            (call(called.tool, called.arguments, result), message)
        }
        "webSearch" => {
            let search: wire::WebSearch = decode(item)?;
            let result = is_over.then_some((Value::Null, false));
            let input = json!({ "query": search.query });
            (call(kind, input, result), message)
        }
        "imageView" => {
            let view: wire::ImageView = decode(item)?;
            let result = is_over.then_some((Value::Null, false));
            let input = json!({ "path": view.path });
            (call(kind, input, result), message)
        }
        _ => {
            let raw = item.clone();
            (vec![UniversalMessagePart::Unknown { raw }], message)
        }
    };
    Ok(message.with_part(&id, parts))
}

/// Content of a prompt; an unreadable one is kept raw.
fn input(input: &Value) -> UniversalMessagePart {
    let known = match tag(input, "type") {
        "text" => {
            decode(input).ok().map(|wire::TextInput { text }| UniversalMessagePart::Text { text })
        }
        "localImage" => {
            decode(input).ok().map(|wire::LocalImageInput { path }| UniversalMessagePart::Image {
                source: AttachmentSource::Path { path },
                mime_type: None,
                alt: None,
                raw: None,
            })
        }
        _ => None,
    };
    known.unwrap_or_else(|| UniversalMessagePart::Unknown { raw: input.clone() })
}
