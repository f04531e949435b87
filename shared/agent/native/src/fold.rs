//! What a run has come to, from universal events.
//!
//! Promised: bounded, whatever an agent says; of what tools are called with only what a card shows is kept, and of what they
//! answer nothing.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_agent::Retrying;
use bobbin_agent::opencode::{PLAN_CHARS_MAX, PLAN_MAX, ToolCall, first_line, last_of, reason_of};
use bobbin_agent_events::{
    Plan, PlanState as Said, State, UniversalEvent, UniversalEventData, UniversalMessage,
    UniversalMessageParsed, UniversalMessagePart, Usage as Told, UsageScope,
};
use bobbin_core::ask::{About, SUBJECT_CHARS_MAX};
use bobbin_core::card::{CardStep, PlanItem, PlanState};
use bobbin_core::credentials::redact;
use bobbin_core::ids::AskId;
use bobbin_core::usage::Usage;
use serde_json::{Map, Value, json};

use crate::asks;

/// Bytes of words that are kept of one run.
const WORDS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages that are kept of one run: one that makes more is ended long before.
const MESSAGES_MAX: usize = 5_000;
/// Tool calls, likewise: the oldest fall away.
const CALLS_MAX: usize = 2_000;

/// One run, as it is known so far: the turns of the daemon that belong to it.
pub(crate) struct Fold {
    session: String,
    /// Where the agent works.
    directory: String,
    turns: Vec<String>,
    messages: Vec<Message>,
    words_bytes: usize,
    calls: Vec<Call>,
    calls_before: usize,
    plan: Vec<PlanItem>,
    asks: BTreeMap<String, (AskId, OpenAsk)>,
    used: Used,
    /// The model's provider failed and is asked again.
    retrying: Option<Retrying>,
    trouble: Option<String>,
    /// The id of the last event that was taken in.
    pub(crate) last_id: u64,
    /// Events that suggest an end, since that was last asked.
    pub(crate) suggests_end: bool,
}

struct Message {
    id: Option<String>,
    turn: String,
    is_hidden: bool,
    parts: Vec<Part>,
}

struct Part {
    name: Option<String>,
    /// None where it is not for people.
    text: Option<String>,
}

struct Call {
    id: Option<String>,
    tool: String,
    /// As far as a card shows it.
    input: Value,
    /// All of it, until it is over: what a person approves is the whole call.
    whole: Option<Value>,
    exit: Option<i64>,
    is_over: bool,
    has_failed: bool,
}

enum OpenAsk {
    Permission(bobbin_agent_events::PermissionRequest),
    Question(bobbin_agent_events::QuestionRequest),
}

/// What was told of tokens and money.
#[derive(Default)]
struct Used {
    /// By message, or by turn where an agent counts so: the last one told counts.
    of: BTreeMap<String, (u64, f64)>,
    /// Of the session, before this run and since.
    before: (u64, f64),
    session: Option<(u64, f64)>,
}

impl Fold {
    pub(crate) fn new(session: &str, directory: &str) -> Self {
        Self {
            session: session.to_owned(),
            directory: directory.to_owned(),
            turns: Vec::new(),
            messages: Vec::new(),
            words_bytes: 0,
            calls: Vec::new(),
            calls_before: 0,
            plan: Vec::new(),
            asks: BTreeMap::new(),
            used: Used::default(),
            retrying: None,
            trouble: None,
            last_id: 0,
            suggests_end: false,
        }
    }

    /// These turns of the daemon, in this order, are the run.
    pub(crate) fn of(&mut self, turns: &[String]) {
        self.turns = turns.to_vec();
    }

    pub(crate) fn is_of(&self, turn: &str) -> bool {
        self.turns.iter().any(|one| one == turn)
    }

    /// Takes in the next event. What belongs to no turn of the run is only counted.
    pub(crate) fn take(&mut self, event: &UniversalEvent) {
        // A stream may tell once more what was read beside it.
        if event.id <= self.last_id {
            return;
        }
        self.last_id = event.id;
        let turn = match &event.turn {
            Some(turn) if self.is_of(turn) => turn.clone(),
            _ => {
                if let UniversalEventData::Usage { usage, .. } = &event.data
                    && usage.scope == UsageScope::Session
                    && self.messages.is_empty()
                {
                    self.used.before = sum(usage);
                }
                return;
            }
        };
        match &event.data {
            UniversalEventData::Message { message: UniversalMessage::Parsed(message) } => {
                self.message(&turn, message)
            }
            UniversalEventData::PermissionAsked { permission_asked } => {
                let asked = OpenAsk::Permission(permission_asked.clone());
                self.asked(&permission_asked.id, asked);
            }
            UniversalEventData::QuestionAsked { question_asked } => {
                let asked = OpenAsk::Question(question_asked.clone());
                self.asked(&question_asked.id, asked);
            }
            UniversalEventData::AskClosed { ask_closed, .. } => {
                self.asks.remove(&ask_closed.id);
            }
            UniversalEventData::TurnEnded { turn_ended, .. } => {
                self.suggests_end = true;
                self.retrying = None;
                if let Some(usage) = &turn_ended.usage {
                    self.usage(&turn, usage);
                }
            }
            UniversalEventData::Status { status, .. } => {
                let said = status.message.as_deref().unwrap_or_default();
                self.retrying = (status.state == State::Retrying)
                    .then(|| Retrying::new(said, None, status.next_ms));
                self.suggests_end |= status.state == State::Idle;
                if let (State::Retrying | State::Failed, Some(said)) =
                    (status.state, &status.message)
                {
                    self.trouble = Some(reason_of("", None, said));
                }
            }
            UniversalEventData::Error { error } => {
                let status = error.details.as_ref().and_then(|of| of["statusCode"].as_u64());
                let status = status.and_then(|status| u16::try_from(status).ok());
                let kind = error.kind.as_deref().unwrap_or_default();
                self.trouble = Some(reason_of(kind, status, &error.message));
            }
            UniversalEventData::Usage { usage, .. } => self.usage(&turn, usage),
            UniversalEventData::Plan { plan, .. } => self.plan = shown(plan),
            UniversalEventData::Message { .. }
            | UniversalEventData::Started { .. }
            | UniversalEventData::Unknown { .. } => {}
        }
    }

    fn asked(&mut self, id: &str, asked: OpenAsk) {
        let name = asks::name(&self.session, id);
        self.asks.insert(id.to_owned(), (name, asked));
    }

    fn usage(&mut self, turn: &str, usage: &Told) {
        let spent = sum(usage);
        match &usage.scope {
            UsageScope::Message(id) => {
                self.used.of.insert(id.clone(), spent);
            }
            UsageScope::Turn => {
                self.used.of.insert(format!("turn {turn}"), spent);
            }
            UsageScope::Session => self.used.session = Some(spent),
            UsageScope::Context => {}
        }
    }

    fn message(&mut self, turn: &str, said: &UniversalMessageParsed) {
        for part in &said.parts {
            self.called(part, &said.metadata);
        }
        if said.role != "assistant" {
            return;
        }
        let at = match &said.id {
            Some(_) => self.messages.iter().rposition(|one| one.id == said.id),
            None => None,
        };
        if said.metadata.get("removed") == Some(&json!(true)) {
            if let Some(at) = at {
                self.messages.remove(at);
            }
            return;
        }
        let at = match at {
            Some(at) => at,
            None if self.messages.len() >= MESSAGES_MAX => return,
            None => {
                self.messages.push(Message {
                    id: said.id.clone(),
                    turn: turn.to_owned(),
                    is_hidden: false,
                    parts: Vec::new(),
                });
                self.messages.len() - 1
            }
        };
        let is_set = |name: &str| said.metadata.get(name) == Some(&json!(true));
        let message = &mut self.messages[at];
        message.is_hidden |= is_set("summary");
        let name = said.metadata.get("part").and_then(Value::as_str);
        let is_shown = !is_set("synthetic") && !is_set("ignored");
        let texts: Vec<&str> = said.parts.iter().filter_map(words_of).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let known = name.and_then(|name| {
            let named = |part: &Part| part.name.as_deref() == Some(name);
            message.parts.iter().position(named)
        });
        if let Some(known) = known
            && !is_set("delta")
        {
            let gone = message.parts[known].text.as_ref().map_or(0, String::len);
            self.words_bytes = self.words_bytes.saturating_sub(gone);
        }
        if self.words_bytes + bytes > WORDS_BYTES_MAX {
            return;
        }
        self.words_bytes += bytes;
        let text = (is_shown && !texts.is_empty()).then(|| texts.concat());
        match (known, text) {
            (Some(known), text) if is_set("delta") => {
                if let Some(more) = text {
                    message.parts[known].text.get_or_insert_default().push_str(&more);
                }
            }
            (Some(known), _) if said.parts.is_empty() => {
                message.parts.remove(known);
            }
            (Some(known), text) => message.parts[known].text = text,
            // What only a tool says has no place among the words.
            (None, None) => {}
            (None, text) => message.parts.push(Part { name: name.map(str::to_owned), text }),
        }
    }

    fn called(&mut self, part: &UniversalMessagePart, metadata: &Map<String, Value>) {
        let (id, tool, input) = match part {
            UniversalMessagePart::ToolCall { id, name, input } => (id, Some(name), input),
            UniversalMessagePart::FunctionCall { id, name, arguments, .. } => {
                (id, name.as_ref(), arguments)
            }
            UniversalMessagePart::ToolResult { id, is_error, .. }
            | UniversalMessagePart::FunctionResult { id, is_error, .. } => {
                let exit = metadata.get("exit").and_then(Value::as_i64);
                self.answered(id.as_deref(), is_error.unwrap_or(false), exit);
                return;
            }
            _ => return,
        };
        let tool = tool.cloned().unwrap_or_default();
        let (input, whole) = (small(input), Some(input.clone()));
        let same = |call: &&mut Call| id.is_some() && call.id == *id;
        match self.calls.iter_mut().rev().find(same) {
            Some(call) => {
                (call.tool, call.input) = (tool, input);
                call.whole = whole.filter(|_| !call.is_over);
            }
            None => self.calls.push(Call {
                id: id.clone(),
                tool,
                input,
                whole,
                exit: None,
                is_over: false,
                has_failed: false,
            }),
        }
        if self.calls.len() > CALLS_MAX {
            self.calls.remove(0);
            self.calls_before += 1;
        }
    }

    fn answered(&mut self, id: Option<&str>, has_failed: bool, exit: Option<i64>) {
        let mut newest_first = self.calls.iter_mut().rev();
        let call = newest_first.find(|call| match id {
            Some(id) => call.id.as_deref() == Some(id),
            None => !call.is_over,
        });
        if let Some(call) = call {
            (call.is_over, call.has_failed) = (true, has_failed);
            call.whole = None;
            call.exit = exit.or(call.exit);
        }
    }

    /// Only these asks are still open.
    pub(crate) fn keep_asks(&mut self, open: &BTreeSet<String>) {
        self.asks.retain(|id, _| open.contains(id));
    }

    pub(crate) fn has_asks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The asks that wait for a person, by name.
    pub(crate) fn asks(&self) -> Vec<(AskId, About)> {
        let call = |id: &str| {
            let same = |call: &&Call| call.id.as_deref() == Some(id);
            self.calls
                .iter()
                .rev()
                .find(same)
                .map(|call| call.whole.as_ref().unwrap_or(&call.input))
        };
        let open = self.asks.values().filter_map(|(name, asked)| {
            let about = match asked {
                OpenAsk::Permission(asked) => {
                    let input = asked.tool.as_ref().and_then(|tool| call(&tool.call_id));
                    asks::permission(asked, input)
                }
                OpenAsk::Question(asked) => asks::question(asked),
            };
            Some((name.clone(), about?))
        });
        open.collect()
    }

    /// The last steps, for the card, and how many came before them.
    pub(crate) fn steps(&self, is_over: bool) -> (Vec<CardStep>, usize) {
        let step = |call: &Call| {
            let call = ToolCall {
                tool: &call.tool,
                input: &call.input,
                cwd: &self.directory,
                exit: call.exit,
                is_over: call.is_over || is_over,
                has_failed: call.has_failed,
            };
            call.step()
        };
        let mut steps: Vec<CardStep> = self.calls.iter().map(step).collect();
        let retrying = self.retrying.as_ref().filter(|_| !is_over);
        steps.extend(retrying.map(Retrying::step));
        let (steps, earlier) = last_of(steps);
        (steps, earlier + self.calls_before)
    }

    /// The model that did not answer and is asked again, while that is so.
    pub(crate) fn retrying(&self) -> Option<Retrying> {
        self.retrying.clone()
    }

    pub(crate) fn plan(&self) -> Vec<PlanItem> {
        self.plan.clone()
    }

    /// What the agent has written, in pieces.
    pub(crate) fn words(&self) -> Vec<String> {
        let shown = self.messages.iter().filter(|message| !message.is_hidden);
        let texts = shown.flat_map(|message| &message.parts).filter_map(|part| part.text.as_ref());
        texts.filter(|text| !text.trim().is_empty()).cloned().collect()
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The last words of each turn of the run.
    pub(crate) fn text(&self) -> String {
        let last = |turn: &String| {
            let own = self.messages.iter().rev();
            let own = own.filter(|message| message.turn == *turn && !message.is_hidden);
            own.map(Message::text).find(|text| !text.is_empty())
        };
        let texts: Vec<String> = self.turns.iter().filter_map(last).collect();
        texts.join("\n\n")
    }

    pub(crate) fn usage_so_far(&self) -> Usage {
        let (mut tokens, mut dollars) = (0_u64, 0.0);
        for (more, cost) in self.used.of.values() {
            tokens = tokens.saturating_add(*more);
            dollars += cost;
        }
        // Who counts by session counts by nothing smaller.
        if let (true, Some((all, cost))) = (self.used.of.is_empty(), self.used.session) {
            tokens = all.saturating_sub(self.used.before.0);
            dollars = (cost - self.used.before.1).max(0.0);
        }
        Usage {
            tokens,
            // A float beyond the range saturates.
            cost_micro_usd: (dollars * 1_000_000.0).round() as u64,
            ..Usage::default()
        }
    }
}

impl Message {
    fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| part.text.as_deref());
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

fn words_of(part: &UniversalMessagePart) -> Option<&str> {
    match part {
        UniversalMessagePart::Text { text } => Some(text),
        _ => None,
    }
}

/// Of what a tool is called with, what a card shows.
fn small(input: &Value) -> Value {
    const SHOWN: [&str; 9] = [
        "command",
        "filePath",
        "file_path",
        "path",
        "pattern",
        "url",
        "query",
        "description",
        "name",
    ];
    let cut = |text: &str| text.chars().take(SUBJECT_CHARS_MAX + 1).collect::<String>();
    let mut kept = Map::new();
    for name in SHOWN {
        if let Some(text) = input.get(name).and_then(Value::as_str) {
            kept.insert(name.to_owned(), json!(cut(text)));
        }
    }
    // Amp's word for it.
    if let Some(command) = input.get("cmd").and_then(Value::as_str) {
        kept.insert("command".to_owned(), json!(cut(command)));
    }
    for (place, list, name) in
        [("/questions/0/question", "questions", "question"), ("/changes/0/path", "changes", "path")]
    {
        if let Some(text) = input.pointer(place).and_then(Value::as_str) {
            kept.insert(list.to_owned(), json!([{name: cut(text)}]));
        }
    }
    Value::Object(kept)
}

fn sum(usage: &Told) -> (u64, f64) {
    let parts = [
        usage.input_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ];
    let parts = parts.into_iter().flatten().fold(0, u64::saturating_add);
    (usage.total_tokens.unwrap_or(parts), usage.cost_usd.unwrap_or(0.0).max(0.0))
}

fn shown(plan: &Plan) -> Vec<PlanItem> {
    let items = plan.items.iter().map(|item| PlanItem {
        text: first_line(&redact(&item.text), PLAN_CHARS_MAX),
        state: match item.state {
            Said::Completed => PlanState::Done,
            Said::InProgress => PlanState::Now,
            Said::Cancelled => PlanState::Dropped,
            Said::Pending => PlanState::Next,
        },
    });
    items.filter(|item| !item.text.is_empty()).take(PLAN_MAX).collect()
}

#[cfg(test)]
mod tests;
