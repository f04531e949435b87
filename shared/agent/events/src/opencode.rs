//! OpenCode: the events of `GET /event` and `GET /global/event` (measured on 1.18.33).
//!
//! A subagent has a separate session: its events, and the end of its turn, have another `agent_session_id`. The answer
//! to an ask names its id; nothing else is needed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::{PermissionRequest, QuestionInfo, QuestionOption, QuestionRequest, ToolRef};
use crate::convert::{Converted, Understood, count_at, decode, filled, finish, tag, text_at};
use crate::event::{
    AskClosed, CrashInfo, Plan, PlanItem, PlanState, Started, Status, StatusState, TokenUsage,
    TurnEnded, TurnOutcome, UniversalEventData, UsageScope,
};
use crate::generated::opencode as wire;
use crate::message::{
    AttachmentSource, UniversalMessage, UniversalMessageParsed, UniversalMessagePart,
};
use crate::recent::{Recent, remembered};

/// Role of a message whose head was never seen.
const ROLE_UNKNOWN: &str = "unknown";

/// Text parts of a message that are remembered in case they become void.
const TEXTS_MAX: usize = 64;

/// Converts OpenCode's output to universal events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenCodeConverter {
    /// Roles of messages, which their parts do not name.
    roles: Recent<String>,
    /// Whether a part is text: its deltas do not tell.
    texts: Recent<bool>,
    /// Text parts of messages since the last step in them began.
    written: Recent<Vec<String>>,
    /// State of the sessions' turns.
    turns: Recent<OpenTurn>,
}

/// State of a session's turn that determines its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct OpenTurn {
    /// Whether one is running.
    busy: bool,
    /// Name and message of the last error.
    failure: Option<(String, String)>,
    /// How its last message ended.
    finish: Option<String>,
}

impl OpenCodeConverter {
    /// Converts the data of one server-sent event. A message from `GET /session/{id}/message` (`info` and `parts`)
    /// gives the same events as the stream.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        if let (Some(info), Some(Value::Array(parts))) = (raw.get("info"), raw.get("parts")) {
            let session = text_at(info, "/sessionID");
            let understood = self.listed(info, parts);
            return finish(session, understood, raw);
        }
        // The stream of all directories wraps each event.
        let event = raw.get("payload").unwrap_or(&raw);
        let session = text_at(event, "/properties/sessionID");
        let properties = event.get("properties").unwrap_or(&Value::Null);
        let understood = self.understand(tag(event, "type"), properties);
        finish(session, understood, raw)
    }

    fn understand(&mut self, kind: &str, properties: &Value) -> Understood {
        Ok(match kind {
            "session.created" => {
                let wire::SessionCreated { info } = decode(properties)?;
                vec![started(info).into()]
            }
            "message.updated" => {
                self.note_role(&properties["info"]);
                let wire::MessageUpdated { info } = decode(properties)?;
                let (mut all, error) = self.head(info);
                all.extend(error.map(UniversalEventData::from));
                all
            }
            "message.removed" => {
                let gone: wire::MessageRemoved = decode(properties)?;
                let role = self.role_of(&gone.message_id);
                let message = UniversalMessageParsed::of(&role, Some(gone.message_id));
                vec![message.with("removed", Some(true)).into()]
            }
            "message.part.updated" => {
                let wire::PartUpdated { part } = decode(properties)?;
                self.part(&part)?.into_iter().map(Into::into).collect()
            }
            "message.part.removed" => {
                let gone: wire::PartRemoved = decode(properties)?;
                let role = self.role_of(&gone.message_id);
                let message = UniversalMessageParsed::of(&role, Some(gone.message_id));
                vec![message.with_part(&gone.part_id, Vec::new()).into()]
            }
            "message.part.delta" => match self.delta(decode(properties)?) {
                Some(message) => vec![message.into()],
                None => Vec::new(),
            },
            "session.error" => vec![self.error(decode(properties)?).into()],
            "session.status" => {
                let wire::SessionStatus { session_id, status } = decode(properties)?;
                let next_ms = count_at(properties, "/status/next");
                let attempt = count_at(properties, "/status/attempt");
                self.status(&session_id, status, next_ms, attempt)
            }
            "session.idle" => {
                let wire::SessionIdle { session_id } = decode(properties)?;
                self.idle(&session_id)
            }
            "permission.asked" => vec![permission(decode(properties)?).into()],
            "permission.replied" => {
                let closed: wire::PermissionReplied = decode(properties)?;
                let (id, reply) = (closed.request_id, closed.reply);
                vec![AskClosed { id, reply }.into()]
            }
            "question.asked" => vec![question(decode(properties)?).into()],
            "question.replied" => {
                let closed: wire::QuestionReplied = decode(properties)?;
                let (id, reply) = (closed.request_id, None);
                vec![AskClosed { id, reply }.into()]
            }
            "question.rejected" => {
                let closed: wire::QuestionRejected = decode(properties)?;
                let (id, reply) = (closed.request_id, Some("reject".to_owned()));
                vec![AskClosed { id, reply }.into()]
            }
            "todo.updated" => {
                let wire::TodoUpdated { todos, .. } = decode(properties)?;
                let items = todos.into_iter().map(plan_item).collect();
                vec![Plan { items }.into()]
            }
            _ => Vec::new(),
        })
    }

    fn listed(&mut self, info: &Value, parts: &[Value]) -> Understood {
        self.note_role(info);
        let (id, role) = (text_at(info, "/id"), text_at(info, "/role"));
        // An odd head does not hide the message's content.
        let (mut all, error) = decode(info).map_or_else(
            |error| {
                let (raw, error) = (info.clone(), Some(error.to_string()));
                let message = UniversalMessage::Unparsed { raw, error };
                (vec![UniversalEventData::Message { message }], None)
            },
            |head| self.head(head),
        );
        for part in parts {
            let known = self.part(part).unwrap_or_else(|_| {
                let role = role.as_deref().unwrap_or(ROLE_UNKNOWN);
                let raw = part.clone();
                let parts = vec![UniversalMessagePart::Unknown { raw }];
                let message = UniversalMessageParsed::of(role, id.clone());
                vec![UniversalMessageParsed { parts, ..message }]
            });
            all.extend(known.into_iter().map(UniversalEventData::from));
            all.extend(written_plan(part).map(UniversalEventData::from));
        }
        all.extend(error.map(UniversalEventData::from));
        Ok(all)
    }

    fn note_role(&mut self, info: &Value) {
        if let (Some(id), Some(role)) = (text_at(info, "/id"), text_at(info, "/role")) {
            self.roles.set(&id, remembered(&role));
        }
    }

    fn role_of(&self, message: &str) -> String {
        let role = self.roles.get(message).map(String::as_str);
        role.unwrap_or(ROLE_UNKNOWN).to_owned()
    }

    /// The head, and the part with the error that broke the message off: the last of its parts.
    fn head(
        &mut self,
        head: wire::MessageHead,
    ) -> (Vec<UniversalEventData>, Option<UniversalMessageParsed>) {
        let mut turn = self.turn(&head.session_id);
        if head.role == "user" {
            turn.failure = None;
            turn.finish = None;
        } else {
            if head.finish.is_some() {
                turn.finish = head.finish.as_deref().map(remembered);
                turn.failure = None;
            }
            turn.failure = head.error.as_ref().map(failed).or(turn.failure);
        }
        self.turns.set(&head.session_id, turn);

        let usage = usage(&head);
        let id = Some(head.id);
        let error = head.error.as_ref().map(|error| {
            let (_, message) = failure(error);
            let parts = vec![UniversalMessagePart::Error { message }];
            UniversalMessageParsed::of(&head.role, id.clone()).with_part("error", parts)
        });
        let is_summary =
            head.summary == Some(Value::Bool(true)) || head.mode.as_deref() == Some("compaction");
        let completed = head.time.as_ref().and_then(|time| time.get("completed"));
        let message = UniversalMessageParsed::of(&head.role, id)
            .with("parent", head.parent_id)
            .with("provider", head.provider_id)
            .with("model", head.model_id)
            .with("finish", head.finish)
            .with("error", head.error.and_then(|it| text_at(&it, "/name")))
            .with("summary", is_summary.then_some(true))
            .with("completed", completed.cloned());
        let mut all = vec![message.into()];
        all.extend(usage.map(UniversalEventData::from));
        (all, error)
    }

    /// A part. A further step in one message restarts it, because the model's connection broke: earlier text is void.
    fn part(&mut self, part: &Value) -> Result<Vec<UniversalMessageParsed>, serde_json::Error> {
        let head: wire::PartHead = decode(part)?;
        let message = UniversalMessageParsed::of(
            &self.role_of(&head.message_id),
            Some(head.message_id.clone()),
        );
        let is_new = self.texts.get(&head.id).is_none();
        self.texts.set(&head.id, head.type_ == "text");
        let mut void = Vec::new();
        if is_new && head.type_ == "step-start" {
            void = self.written.remove(&head.message_id).unwrap_or_default();
        }
        if is_new && head.type_ == "text" {
            let mut written = self.written.remove(&head.message_id).unwrap_or_default();
            written.push(remembered(&head.id));
            written.truncate(TEXTS_MAX);
            self.written.set(&head.message_id, written);
        }
        let gone = |id: &String| message.clone().with_part(id, Vec::new());
        let gone: Vec<_> = void.iter().map(gone).collect();
        let mut all = vec![as_message(message, &head.id, &head.type_, part)?];
        all.extend(gone);
        Ok(all)
    }

    fn delta(&self, delta: wire::PartDelta) -> Option<UniversalMessageParsed> {
        let is_text = *self.texts.get(&delta.part_id)?;
        (is_text && delta.field == "text").then(|| {
            let role = self.role_of(&delta.message_id);
            UniversalMessageParsed::of(&role, Some(delta.message_id))
                .with_delta(&delta.part_id, delta.delta)
        })
    }

    fn turn(&self, session: &str) -> OpenTurn {
        self.turns.get(session).cloned().unwrap_or_default()
    }

    fn error(&mut self, error: wire::SessionError) -> CrashInfo {
        let what = error.error.unwrap_or_default();
        let (kind, message) = failure(&what);
        if let Some(session) = error.session_id {
            let mut turn = self.turn(&session);
            turn.failure = Some(failed(&what));
            self.turns.set(&session, turn);
        }
        CrashInfo {
            message,
            kind: Some(kind),
            details: what.get("data").filter(|data| !data.is_null()).cloned(),
        }
    }

    fn status(
        &mut self,
        session: &str,
        status: wire::Status,
        next_ms: Option<u64>,
        attempt: Option<u64>,
    ) -> Vec<UniversalEventData> {
        if status.type_ == "idle" {
            return self.idle(session);
        }
        let mut turn = self.turn(session);
        turn.busy = true;
        self.turns.set(session, turn);
        let state = match status.type_.as_str() {
            "retry" => StatusState::Retrying,
            _ => StatusState::Busy,
        };
        vec![Status { state, message: status.message, next_ms, attempt }.into()]
    }

    /// A session reports more than once that it is idle: the turn ends with the first.
    fn idle(&mut self, session: &str) -> Vec<UniversalEventData> {
        let idle = Status::of(StatusState::Idle).into();
        match self.turns.remove(session) {
            Some(turn) if turn.busy => vec![ended(turn).into(), idle],
            _ => vec![idle],
        }
    }
}

/// A message with this part.
fn as_message(
    message: UniversalMessageParsed,
    id: &str,
    kind: &str,
    part: &Value,
) -> Result<UniversalMessageParsed, serde_json::Error> {
    Ok(match kind {
        "text" => {
            let text: wire::TextPart = decode(part)?;
            let parts = vec![UniversalMessagePart::Text { text: text.text }];
            let metadata = Value::Object(text.metadata.unwrap_or_default());
            let continues = metadata.get("compaction_continue").is_some();
            message
                .with_part(id, parts)
                .with("synthetic", text.synthetic.filter(|it| *it))
                .with("ignored", text.ignored.filter(|it| *it))
                .with("compactionContinue", continues.then_some(true))
        }
        "tool" => tool(message, id, decode(part)?, part)?,
        "file" => {
            let file: wire::FilePart = decode(part)?;
            let parts = vec![UniversalMessagePart::File {
                source: AttachmentSource::Url { url: file.url },
                mime_type: Some(file.mime),
                filename: file.filename,
                raw: None,
            }];
            message.with_part(id, parts)
        }
        _ => {
            let raw = part.clone();
            message.with_part(id, vec![UniversalMessagePart::Unknown { raw }])
        }
    })
}

fn started(session: wire::Session) -> Started {
    Started { message: filled(session.title.clone()), details: serde_json::to_value(session).ok() }
}

fn ended(turn: OpenTurn) -> TurnEnded {
    let (outcome, message) = match (&turn.failure, turn.finish.as_deref()) {
        (Some((name, _)), _) if name == "MessageAbortedError" => (TurnOutcome::Cancelled, None),
        (Some((_, message)), _) => (TurnOutcome::Failed, Some(message.clone())),
        // It stopped instead of calling a tool: a permission that the tool needed was refused.
        (None, Some("tool-calls")) => (TurnOutcome::Cancelled, None),
        (None, Some("error")) => (TurnOutcome::Failed, None),
        (None, _) => (TurnOutcome::Done, None),
    };
    TurnEnded {
        outcome,
        reason: turn.failure.map(|(name, _)| name).or(turn.finish),
        message,
        usage: None,
    }
}

/// Name and message of an error.
fn failure(error: &Value) -> (String, String) {
    let name = text_at(error, "/name").unwrap_or_else(|| "UnknownError".to_owned());
    let message = filled(text_at(error, "/data/message")).unwrap_or_else(|| name.clone());
    (name, message)
}

/// Name and message of an error, as remembered.
fn failed(error: &Value) -> (String, String) {
    let (name, message) = failure(error);
    (remembered(&name), remembered(&message))
}

fn usage(head: &wire::MessageHead) -> Option<TokenUsage> {
    let tokens = head.tokens.as_ref()?;
    head.time.as_ref()?.get("completed")?;
    Some(TokenUsage {
        input_tokens: count_at(tokens, "/input"),
        output_tokens: count_at(tokens, "/output"),
        reasoning_tokens: count_at(tokens, "/reasoning"),
        cache_read_tokens: count_at(tokens, "/cache/read"),
        cache_write_tokens: count_at(tokens, "/cache/write"),
        total_tokens: count_at(tokens, "/total"),
        cost_usd: head.cost,
        ..TokenUsage::of(UsageScope::Message(head.id.clone()))
    })
}

fn tool(
    message: UniversalMessageParsed,
    id: &str,
    tool: wire::ToolPart,
    part: &Value,
) -> Result<UniversalMessageParsed, serde_json::Error> {
    let wire::ToolPart { call_id, state, tool: name } = tool;
    let is_unusable = name == "invalid";
    let mut parts = vec![UniversalMessagePart::ToolCall {
        id: Some(call_id.clone()),
        name: name.clone(),
        input: state.input.unwrap_or_default(),
    }];
    let (output, is_error) = match state.status.as_str() {
        "completed" => (Some(state.output.unwrap_or_default()), is_unusable),
        "error" => {
            let why: wire::ToolFailure = decode(part.get("state").unwrap_or(&Value::Null))?;
            (Some(why.error), true)
        }
        _ => (None, false),
    };
    parts.extend(output.map(|output| UniversalMessagePart::ToolResult {
        id: Some(call_id),
        name: Some(name),
        output: Value::String(output),
        is_error: Some(is_error),
    }));
    let told = Value::Object(state.metadata.unwrap_or_default());
    Ok(message
        .with_part(id, parts)
        .with("pending", (state.status == "pending").then_some(true))
        .with("title", state.title)
        .with("exit", told.get("exit").cloned())
        .with("subagentSession", told.get("sessionId").cloned()))
}

fn permission(asked: wire::PermissionAsked) -> PermissionRequest {
    PermissionRequest {
        id: asked.id,
        session_id: asked.session_id,
        permission: asked.permission,
        patterns: asked.patterns,
        metadata: asked.metadata.unwrap_or_default(),
        always: asked.always,
        tool: asked.tool.map(tool_ref),
    }
}

fn question(asked: wire::QuestionAsked) -> QuestionRequest {
    let info = |one: wire::Question| QuestionInfo {
        question: one.question,
        header: one.header,
        options: one.options.into_iter().map(option).collect(),
        multi_select: one.multiple,
        custom: one.custom,
    };
    QuestionRequest {
        id: asked.id,
        session_id: asked.session_id,
        questions: asked.questions.into_iter().map(info).collect(),
        tool: asked.tool.map(tool_ref),
        metadata: serde_json::Map::new(),
    }
}

fn option(option: wire::QuestionOption) -> QuestionOption {
    QuestionOption { label: option.label, description: option.description }
}

fn tool_ref(tool: wire::ToolRef) -> ToolRef {
    ToolRef { message_id: tool.message_id, call_id: tool.call_id }
}

/// The plan in a tool call from a list; the stream has a separate event for it.
fn written_plan(part: &Value) -> Option<Plan> {
    let todos = part.pointer("/state/input/todos")?.as_array()?;
    let is_plan = tag(part, "tool") == "todowrite";
    let items = todos.iter().filter_map(|todo| Some(plan_item(decode(todo).ok()?)));
    is_plan.then(|| Plan { items: items.collect() })
}

fn plan_item(todo: wire::Todo) -> PlanItem {
    PlanItem {
        state: match todo.status.as_str() {
            "completed" => PlanState::Completed,
            "in_progress" => PlanState::InProgress,
            "cancelled" => PlanState::Cancelled,
            _ => PlanState::Pending,
        },
        text: todo.content,
    }
}
