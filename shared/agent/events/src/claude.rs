//! Claude Code: `claude -p --output-format stream-json --verbose`, with or without `--include-partial-messages`, and
//! the control protocol of `--permission-prompt-tool stdio` (recorded with 2.1.197).
//!
//! An ask's id is the `request_id` for the `control_response`. Its `metadata` has the data for the answer: `toolName`,
//! `input` (returned as `updatedInput`; the answers to questions go into it under `answers`, by question) and
//! `suggestions` (returned as `updatedPermissions` for "always").
//!
//! A turn's cost is reported when it is over. Until then each message that ends reports its tokens and its model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ask::{PermissionRequest, QuestionInfo, QuestionOption, QuestionRequest, ToolRef};
use crate::convert::{
    Converted, Understood, count_at, decode, filled, finish, started, tag, text_at,
};
use crate::event::{
    AskClosed, Status, StatusState, TokenUsage, TurnEnded, TurnOutcome, UniversalEventData,
    UsageScope,
};
use crate::generated::claude as wire;
use crate::message::UniversalMessageParsed;
use crate::recent::{Recent, remembered};
use crate::stream_json::{self, Blocks, block_name};

/// The tool that asks people questions.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// Input fields that may hold the subject of a tool call, in order of preference.
const SUBJECTS: [&str; 7] =
    ["command", "file_path", "notebook_path", "path", "url", "query", "pattern"];

/// Who sells the models, in their names.
const VENDOR: &str = "anthropic";

/// Billionths in one.
const NANO: f64 = 1e9;

/// A message that is being streamed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Streamed {
    id: String,
    model: String,
    /// The tokens that it reported at its beginning: all except output tokens.
    usage: Value,
}

/// Converts Claude Code's output to universal events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaudeConverter {
    blocks: Blocks,
    /// The message that is being streamed, by the call of its subagent; the key is empty for the agent itself.
    streamed: Recent<Streamed>,
    /// The session: a `control_request` does not name it.
    session: String,
    /// Cost of the process until its last turn ended, in billionths of a US dollar.
    cost_nano_usd: u64,
}

impl ClaudeConverter {
    /// Converts one line to events.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        let session = text_at(&raw, "/session_id");
        if let Some(session) = &session {
            self.session = remembered(session);
        }
        let understood = self.understand(&raw);
        finish(session, understood, raw)
    }

    /// The process was restarted: its cost starts over.
    pub const fn restarted(&mut self) {
        self.cost_nano_usd = 0;
    }

    fn understand(&mut self, line: &Value) -> Understood {
        Ok(match (tag(line, "type"), tag(line, "subtype")) {
            ("system", "init") => vec![started::<wire::InitLine>(line)?],
            ("system", "status") => {
                let wire::StatusLine { status, .. } = decode(line)?;
                let state = StatusState::Busy;
                let message = status;
                vec![Status { message, ..Status::of(state) }.into()]
            }
            ("system", "api_retry") => {
                let wire::RetryLine { error, .. } = decode(line)?;
                let state = StatusState::Retrying;
                let message = error.map(|error| match error {
                    Value::String(text) => text,
                    other => other.to_string(),
                });
                vec![Status { message, ..Status::of(state) }.into()]
            }
            ("assistant", _) => {
                let all = stream_json::assistant(line, &mut self.blocks)?;
                all.into_iter().map(Into::into).collect()
            }
            ("user", _) => vec![stream_json::user(line)?.into()],
            ("stream_event", _) => self.streamed(decode(line)?)?.into_iter().collect(),
            ("result", _) => vec![self.ended(decode(line)?).into()],
            ("control_request", _) => {
                let asked = self.asked(decode(line)?)?;
                asked.into_iter().collect()
            }
            ("control_cancel_request", _) => {
                let wire::ControlCancelLine { request_id: id } = decode(line)?;
                vec![AskClosed { id, reply: None }.into()]
            }
            _ => Vec::new(),
        })
    }

    fn streamed(
        &mut self,
        line: wire::StreamEventLine,
    ) -> Result<Option<UniversalEventData>, serde_json::Error> {
        let of = line.parent_tool_use_id.clone().unwrap_or_default();
        match tag(&line.event, "type") {
            "message_start" => {
                let wire::MessageStart { message } = decode(&line.event)?;
                let told = |place| line.event.pointer(place).cloned().unwrap_or_default();
                let begun = Streamed {
                    id: remembered(&message.id),
                    model: remembered(told("/message/model").as_str().unwrap_or_default()),
                    usage: told("/message/usage"),
                };
                self.streamed.set(&of, begun);
            }
            "message_delta" => {
                let begun = self.streamed.get(&of);
                return Ok(begun.and_then(|begun| begun.counted(&line.event)).map(Into::into));
            }
            "message_stop" => {
                self.streamed.remove(&of);
            }
            "content_block_delta" => {
                let delta = line.event.get("delta").unwrap_or(&Value::Null);
                if tag(delta, "type") == "text_delta" {
                    let wire::BlockDelta { delta, index } = decode(&line.event)?;
                    let name = block_name(index.unsigned_abs());
                    let id = self.streamed.get(&of).map(|begun| begun.id.clone());
                    let message = UniversalMessageParsed::of("assistant", id)
                        .with("parentToolCall", line.parent_tool_use_id)
                        .with_delta(&name, delta.text);
                    return Ok(Some(message.into()));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn asked(
        &self,
        line: wire::ControlRequestLine,
    ) -> Result<Option<UniversalEventData>, serde_json::Error> {
        let wire::ControlRequestLine { request, request_id: id } = line;
        let (Some(name), true) = (&request.tool_name, request.subtype == "can_use_tool") else {
            return Ok(None);
        };
        let input = request.input.clone().unwrap_or_default();
        let suggestions = request.permission_suggestions.clone().unwrap_or_default();
        let always = rules(&suggestions);
        let mut metadata = Map::new();
        metadata.insert("toolName".to_owned(), Value::String(name.clone()));
        metadata.insert("input".to_owned(), input.clone());
        metadata.insert("suggestions".to_owned(), Value::Array(suggestions));
        if let Some(description) = request.description {
            metadata.insert("description".to_owned(), Value::String(description));
        }
        let tool =
            request.tool_use_id.map(|call_id| ToolRef { message_id: String::new(), call_id });
        let session_id = self.session.clone();
        if name == QUESTION_TOOL {
            let wire::Questions { questions } = decode(&input)?;
            let asked = QuestionRequest {
                id,
                session_id,
                questions: questions.into_iter().map(question).collect(),
                tool,
                metadata,
            };
            return Ok(Some(asked.into()));
        }
        let subject = SUBJECTS
            .iter()
            .find_map(|field| input.get(field)?.as_str().map(str::to_owned))
            .or(request.blocked_path);
        let asked = PermissionRequest {
            id,
            session_id,
            permission: name.clone(),
            patterns: subject.into_iter().collect(),
            metadata,
            always,
            tool,
        };
        Ok(Some(asked.into()))
    }

    /// The cost of the turn: a result reports the total cost of its process (anthropics/claude-code#83239).
    fn cost_since(&mut self, total_usd: f64) -> f64 {
        // A float beyond the range saturates; a negative one counts as zero.
        let total = (total_usd * NANO).round() as u64;
        let before = std::mem::replace(&mut self.cost_nano_usd, total);
        total.checked_sub(before).unwrap_or(total) as f64 / NANO
    }

    fn ended(&mut self, line: wire::ResultLine) -> TurnEnded {
        let terminal = line.terminal_reason.unwrap_or_default();
        let outcome = match line.subtype.as_str() {
            _ if terminal.starts_with("aborted") => TurnOutcome::Cancelled,
            "success" if !line.is_error => TurnOutcome::Done,
            _ => TurnOutcome::Failed,
        };
        let usage = TokenUsage {
            cost_usd: line.total_cost_usd.map(|total| self.cost_since(total)),
            ..tokens(UsageScope::Turn, &line.usage.unwrap_or_default())
        };
        let errors = line.errors.unwrap_or_default();
        let errors = errors.iter().find_map(Value::as_str).map(str::to_owned);
        TurnEnded {
            outcome,
            // Also "success" if the model call failed.
            reason: match (outcome, line.subtype.as_str()) {
                (TurnOutcome::Cancelled, _) => Some(terminal),
                (_, "success") => line.stop_reason,
                _ => Some(line.subtype),
            },
            message: filled(line.result).or(errors).filter(|_| outcome == TurnOutcome::Failed),
            usage: Some(usage),
        }
    }
}

impl Streamed {
    /// The message's tokens, once it has ended; its end may report all of them, or only the output tokens.
    fn counted(&self, delta: &Value) -> Option<TokenUsage> {
        let end = tokens(UsageScope::Message(self.id.clone()), delta.get("usage")?);
        let begin = tokens(UsageScope::Context, &self.usage);
        let model = (!self.model.is_empty()).then(|| format!("{VENDOR}/{}", self.model));
        Some(TokenUsage {
            input_tokens: end.input_tokens.or(begin.input_tokens),
            cache_read_tokens: end.cache_read_tokens.or(begin.cache_read_tokens),
            cache_write_tokens: end.cache_write_tokens.or(begin.cache_write_tokens),
            model,
            ..end
        })
    }
}

/// Tokens in the vendor's words.
fn tokens(scope: UsageScope, told: &Value) -> TokenUsage {
    TokenUsage {
        input_tokens: count_at(told, "/input_tokens"),
        output_tokens: count_at(told, "/output_tokens"),
        cache_read_tokens: count_at(told, "/cache_read_input_tokens"),
        cache_write_tokens: count_at(told, "/cache_creation_input_tokens"),
        ..TokenUsage::of(scope)
    }
}

/// The rules that "always" would add, as Claude Code's settings write them.
fn rules(suggestions: &[Value]) -> Vec<String> {
    let of = |suggestion: &Value| {
        let decoded: Result<wire::Rules, _> = decode(suggestion);
        decoded.map(|one| one.rules).unwrap_or_default()
    };
    let written = |rule: wire::Rule| match rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name,
    };
    suggestions
        .iter()
        .filter(|one| tag(one, "type") == "addRules")
        .flat_map(of)
        .map(written)
        .collect()
}

fn question(question: wire::Question) -> QuestionInfo {
    let option = |one: wire::QuestionOption| QuestionOption {
        label: one.label,
        description: one.description,
    };
    QuestionInfo {
        question: question.question,
        header: question.header,
        options: question.options.into_iter().map(option).collect(),
        multi_select: question.multi_select,
        // The tool tells the model that free text is always possible.
        custom: Some(true),
    }
}
