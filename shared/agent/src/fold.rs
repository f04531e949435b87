//! State of a run, folded from universal events.
//!
//! Promised: repeated events, whole or in part, change nothing. The plan is the last one that the agent wrote in this
//! run, not in an earlier one. Everything is bounded, whatever an agent sends: of a tool's input only what a card shows
//! is kept, of its output nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bobbin_agent_events::{
    PermissionRequest, Plan, PlanState as Said, QuestionRequest, Status, StatusState, TokenUsage,
    UniversalEvent, UniversalEventData, UniversalMessage, UniversalMessageParsed,
    UniversalMessagePart, UsageScope,
};
use bobbin_core::base::credentials::redact;
use bobbin_core::records::ask::{About, SUBJECT_CHARS_MAX};
use bobbin_core::records::card::{CardStep, PlanLine, PlanLineState};
use bobbin_core::records::usage::Usage;
use bobbin_core::tenant::prices::{ModelPrice, Price};
use serde_json::{Map, Value, json};

use crate::asks;
use crate::models::Models;
use crate::reason::Reason;
use crate::retrying::Retrying;
use crate::steps::{self, PLAN_CHARS_MAX, PLAN_MAX, ToolCall, first_line, last_of};

/// Most bytes of text that are kept of one run.
const WORDS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most messages that are kept of one run: a longer run is ended long before.
const MESSAGES_MAX: usize = 5_000;
/// Most tool calls that are kept; the oldest are dropped.
const STEPS_KEPT_MAX: usize = 2_000;
/// Longest finish reason of a message, in characters.
const FINISH_CHARS_MAX: usize = 40;
/// A larger count is not shown.
const ATTEMPTS_SHOWN_MAX: u64 = 999;

/// State of one run so far: the turns that belong to it.
#[derive(Debug, Default)]
pub struct Fold {
    /// Working directory of the agent.
    directory: String,
    turns: Vec<String>,
    messages: Vec<FoldedMessage>,
    words_bytes: usize,
    steps: Vec<FoldedStep>,
    steps_before: usize,
    plan: Vec<PlanLine>,
    asks: BTreeMap<String, OpenAsk>,
    used: Used,
    models: Arc<Models>,
    /// Set while the model's vendor fails and is asked again.
    retrying: Option<Retrying>,
    trouble: Option<Reason>,
    /// Id of the last event that was processed.
    pub last_id: u64,
    /// Whether an event has suggested an end since this was last read.
    pub suggests_end: bool,
}

#[derive(Debug)]
struct FoldedMessage {
    id: Option<String>,
    turn: String,
    is_hidden: bool,
    is_over: bool,
    /// Why it ended, if the agent reports it.
    finish: Option<String>,
    /// The agent continued by itself after it, because it had summarised the conversation.
    is_continued: bool,
    parts: Vec<FoldedPart>,
}

#[derive(Debug)]
struct FoldedPart {
    name: Option<String>,
    /// `None` if it is not meant for people.
    text: Option<String>,
}

/// One action of the agent other than writing.
#[derive(Debug)]
struct FoldedStep {
    /// The message to which it belongs.
    message: Option<String>,
    is_over: bool,
    has_failed: bool,
    kind: StepKind,
}

#[derive(Debug)]
enum StepKind {
    Call(FoldedCall),
    /// A summary of the conversation.
    Summary,
}

#[derive(Debug)]
struct FoldedCall {
    id: Option<String>,
    /// The part of the message to which it belongs.
    part: Option<String>,
    tool: String,
    /// Its arguments are still being written.
    is_pending: bool,
    /// Only the fields that a card shows.
    input: Value,
    /// The whole input, until the call is over: a person approves the whole call.
    whole: Option<Value>,
    exit: Option<i64>,
}

#[derive(Debug)]
struct OpenAsk {
    /// The asking session by the agent's own id: the run's, or a subagent's.
    session: Option<String>,
    asked: FoldedAsk,
}

#[derive(Debug)]
enum FoldedAsk {
    Permission(PermissionRequest),
    Question(QuestionRequest),
}

/// Reported tokens and cost.
#[derive(Debug, Default)]
struct Used {
    /// By turn, and in it by message, or without one for the turn: the last report counts.
    of: BTreeMap<(String, Option<String>), (u64, f64)>,
    /// Of the session, before this run and since.
    before: (u64, f64),
    session: Option<(u64, f64)>,
}

impl Used {
    /// A turn's reported usage replaces that of its messages.
    fn message(&mut self, turn: &str, id: &str, spent: (u64, f64)) {
        if !self.of.contains_key(&(turn.to_owned(), None)) {
            self.of.insert((turn.to_owned(), Some(id.to_owned())), spent);
        }
    }

    /// The messages' costs stay if the agent reports none for the turn.
    fn turn(&mut self, turn: &str, (tokens, mut cost): (u64, f64), tells_cost: bool) {
        let of_messages = self.of.iter().filter(|((of, id), _)| of == turn && id.is_some());
        if !tells_cost {
            cost = of_messages.map(|(_, (_, cost))| cost).sum();
        }
        self.of.retain(|(of, _), _| of != turn);
        self.of.insert((turn.to_owned(), None), (tokens, cost));
    }
}

impl Fold {
    /// An empty run of an agent that works in this directory.
    #[must_use]
    pub fn new(directory: &str) -> Self {
        Self { directory: directory.to_owned(), ..Self::default() }
    }

    /// Models whose price the operator names: tokens for which the agent tells no cost count at that.
    #[must_use]
    pub fn priced_by(self, models: Arc<Models>) -> Self {
        Self { models, ..self }
    }

    /// Sets the agent's working directory; an empty one is ignored.
    pub fn works_in(&mut self, directory: &str) {
        if !directory.is_empty() && self.directory != directory {
            self.directory = directory.to_owned();
        }
    }

    /// Sets the turns of the run, in order.
    pub fn of(&mut self, turns: &[String]) {
        self.turns = turns.to_vec();
    }

    /// Whether this turn belongs to it.
    #[must_use]
    pub fn is_of(&self, turn: &str) -> bool {
        self.turns.iter().any(|one| one == turn)
    }

    /// Processes the next event of a log.
    pub fn take(&mut self, event: &UniversalEvent) {
        // A stream may repeat events that were also read separately.
        if event.id <= self.last_id {
            return;
        }
        self.last_id = event.id;
        self.receive(event.turn.as_deref(), event.agent_session_id.as_deref(), &event.data);
    }

    /// Processes data of this turn from this session of the agent. Data of other turns is only counted.
    pub fn receive(
        &mut self,
        turn: Option<&str>,
        session: Option<&str>,
        data: &UniversalEventData,
    ) {
        let Some(turn) = turn.filter(|turn| self.is_of(turn)) else {
            if let UniversalEventData::Usage { usage, .. } = data
                && usage.scope == UsageScope::Session
                && self.messages.is_empty()
            {
                self.used.before = sum(usage);
            }
            return;
        };
        match data {
            UniversalEventData::Message { message: UniversalMessage::Parsed(message) } => {
                self.message(turn, message)
            }
            UniversalEventData::PermissionAsked { permission_asked } => {
                let asked = FoldedAsk::Permission(permission_asked.clone());
                self.asked(&permission_asked.id, session, asked);
            }
            UniversalEventData::QuestionAsked { question_asked } => {
                let asked = FoldedAsk::Question(question_asked.clone());
                self.asked(&question_asked.id, session, asked);
            }
            UniversalEventData::AskClosed { ask_closed, .. } => {
                self.asks.remove(&ask_closed.id);
            }
            UniversalEventData::TurnEnded { turn_ended, .. } => {
                self.suggests_end = true;
                self.retrying = None;
                if let Some(usage) = &turn_ended.usage {
                    self.used(turn, usage);
                }
            }
            UniversalEventData::Status { status, .. } => self.status(session, status),
            UniversalEventData::Error { error } => {
                let details = error.details.as_ref();
                let status = details.and_then(|of| of["statusCode"].as_u64());
                let status = status.and_then(|status| u16::try_from(status).ok());
                let body = details.and_then(|of| of["responseBody"].as_str()).unwrap_or_default();
                let kind = error.kind.as_deref().unwrap_or_default();
                self.suggests_end = true;
                // The second error of an OpenCode pair is often the same one with a stack trace as its message.
                let is_told = kind == "UnknownError" && error.message.contains("\n    at ");
                if !is_told || self.trouble.is_none() {
                    self.trouble = Some(Reason::of(kind, status, &error.message, body));
                }
            }
            UniversalEventData::Usage { usage, .. } => self.used(turn, usage),
            UniversalEventData::Plan { plan, .. } => self.plan = shown(plan),
            UniversalEventData::Message { .. }
            | UniversalEventData::Started { .. }
            | UniversalEventData::Unknown { .. } => {}
        }
    }

    fn status(&mut self, session: Option<&str>, status: &Status) {
        let said = status.message.as_deref().unwrap_or_default();
        let attempt = status.attempt.map(|nth| nth.clamp(1, ATTEMPTS_SHOWN_MAX) as u32);
        self.retrying = (status.state == StatusState::Retrying)
            .then(|| Retrying::new(said, attempt, status.next_ms));
        if status.state == StatusState::Idle {
            self.suggests_end = true;
            self.close_asks_of(session);
        }
        if let (StatusState::Retrying | StatusState::Failed, Some(said)) =
            (status.state, &status.message)
        {
            self.trouble = Some(Reason::of("", None, said, ""));
        }
    }

    fn asked(&mut self, id: &str, session: Option<&str>, asked: FoldedAsk) {
        let session = session.map(str::to_owned);
        self.asks.insert(id.to_owned(), OpenAsk { session, asked });
    }

    /// An idle session of the agent waits for no answer.
    pub fn close_asks_of(&mut self, session: Option<&str>) {
        self.asks.retain(|_, ask| session.is_none() || ask.session.as_deref() != session);
    }

    fn used(&mut self, turn: &str, usage: &TokenUsage) {
        let mut spent = sum(usage);
        let price = usage.model.as_deref().and_then(|model| self.models.price(model));
        if let (None, Some(price)) = (usage.cost_usd, price) {
            spent.1 = at(price, usage);
        }
        match &usage.scope {
            UsageScope::Message(id) => self.used.message(turn, id, spent),
            UsageScope::Turn => self.used.turn(turn, spent, usage.cost_usd.is_some()),
            UsageScope::Session => self.used.session = Some(spent),
            UsageScope::Context => {}
        }
    }

    fn message(&mut self, turn: &str, said: &UniversalMessageParsed) {
        for part in &said.parts {
            self.called(part, said);
        }
        let is_set = |name: &str| said.metadata.get(name) == Some(&json!(true));
        if said.role != "assistant" {
            if is_set("compactionContinue")
                && let Some(last) = self.messages.iter_mut().rfind(|one| one.turn == turn)
            {
                last.is_continued = true;
            }
            return;
        }
        let at = match &said.id {
            Some(_) => self.messages.iter().rposition(|one| one.id == said.id),
            None => None,
        };
        if is_set("removed") {
            self.steps.retain(|step| said.id.is_none() || step.message != said.id);
            if let Some(at) = at {
                self.messages.remove(at);
            }
            return;
        }
        let at = match at {
            Some(at) => at,
            None if self.messages.len() >= MESSAGES_MAX => return,
            None => {
                self.messages.push(FoldedMessage {
                    id: said.id.clone(),
                    turn: turn.to_owned(),
                    is_hidden: false,
                    is_over: false,
                    finish: None,
                    is_continued: false,
                    parts: Vec::new(),
                });
                self.messages.len() - 1
            }
        };
        if is_set("summary") {
            self.summed_up(said);
        }
        if said.metadata.contains_key("completed") && said.id.is_some() {
            // When a message ends, its calls are over, whatever their last update said.
            self.messages[at].is_over = true;
            let own = self.steps.iter_mut().filter(|step| step.message == said.id);
            own.for_each(FoldedStep::end);
        }
        let finish = said.metadata.get("finish").and_then(Value::as_str);
        let message = &mut self.messages[at];
        message.is_hidden |= is_set("summary");
        if let Some(finish) = finish {
            message.finish = Some(finish.chars().take(FINISH_CHARS_MAX).collect());
        }
        let name = said.metadata.get("part").and_then(Value::as_str);
        let is_shown = !is_set("synthetic") && !is_set("ignored");
        let texts: Vec<&str> = said.parts.iter().filter_map(words_of).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let known = name.and_then(|name| {
            let named = |part: &FoldedPart| part.name.as_deref() == Some(name);
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
            (None, _) if said.parts.is_empty() && name.is_some() => self.call_is_gone(said, name),
            (Some(known), text) => message.parts[known].text = text,
            // A tool's own output does not belong to the text.
            (None, None) => {}
            (None, text) => message.parts.push(FoldedPart { name: name.map(str::to_owned), text }),
        }
    }

    /// A summary is not a tool call, but is listed among the steps.
    fn summed_up(&mut self, said: &UniversalMessageParsed) {
        let is_over = said.metadata.contains_key("completed");
        let has_failed = said.metadata.contains_key("error");
        let same = |step: &&mut FoldedStep| {
            matches!(step.kind, StepKind::Summary) && said.id.is_some() && step.message == said.id
        };
        match self.steps.iter_mut().find(same) {
            Some(step) => (step.is_over, step.has_failed) = (is_over, has_failed),
            None => self.add(FoldedStep {
                message: said.id.clone(),
                is_over,
                has_failed,
                kind: StepKind::Summary,
            }),
        }
    }

    fn add(&mut self, step: FoldedStep) {
        self.steps.push(step);
        if self.steps.len() > STEPS_KEPT_MAX {
            self.steps.remove(0);
            self.steps_before += 1;
        }
    }

    fn call_is_gone(&mut self, said: &UniversalMessageParsed, part: Option<&str>) {
        self.steps.retain(|step| {
            let is_it = step.call().is_some_and(|call| call.part.as_deref() == part);
            !(is_it && step.message == said.id)
        });
    }

    fn called(&mut self, part: &UniversalMessagePart, said: &UniversalMessageParsed) {
        let metadata = &said.metadata;
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
        let call = FoldedCall {
            id: id.clone(),
            part: metadata.get("part").and_then(Value::as_str).map(str::to_owned),
            tool: tool.cloned().unwrap_or_default(),
            is_pending: metadata.get("pending") == Some(&json!(true)),
            input: small(input),
            whole: Some(input.clone()),
            exit: None,
        };
        let known = self.steps.iter_mut().rev().find_map(|step| {
            let is_over = step.is_over;
            match &mut step.kind {
                StepKind::Call(known) if id.is_some() && known.id == *id => Some((known, is_over)),
                _ => None,
            }
        });
        match known {
            Some((known, is_over)) => {
                let whole = call.whole.filter(|_| !is_over);
                *known = FoldedCall { exit: known.exit, whole, ..call };
            }
            None => {
                let of_it = |message: &&FoldedMessage| said.id.is_some() && message.id == said.id;
                let is_over = self.messages.iter().rfind(of_it).is_some_and(|one| one.is_over);
                self.add(FoldedStep {
                    message: said.id.clone(),
                    is_over,
                    has_failed: false,
                    kind: StepKind::Call(call),
                });
            }
        }
    }

    fn answered(&mut self, id: Option<&str>, has_failed: bool, exit: Option<i64>) {
        let is_it = |step: &&mut FoldedStep| match (step.call(), id) {
            (Some(call), Some(id)) => call.id.as_deref() == Some(id),
            (Some(_), None) => !step.is_over,
            (None, _) => false,
        };
        if let Some(step) = self.steps.iter_mut().rev().find(is_it) {
            step.end();
            step.has_failed = has_failed;
            if let StepKind::Call(call) = &mut step.kind {
                call.exit = exit.or(call.exit);
            }
        }
    }

    /// Keeps only these asks open.
    pub fn keep_asks(&mut self, open: &BTreeSet<String>) {
        self.asks.retain(|id, _| open.contains(id));
    }

    /// Whether any ask is open.
    #[must_use]
    pub fn has_asks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The asks that wait for a person, by the agent's own ids.
    #[must_use]
    pub fn asks(&self) -> Vec<(String, About)> {
        let open = self.asks.iter().filter_map(|(id, ask)| {
            let about = match &ask.asked {
                FoldedAsk::Permission(asked) => {
                    let call = asked.tool.as_ref().and_then(|tool| self.call(&tool.call_id));
                    // OpenCode asks before it has written the input (measured on 1.18.33), and a person approves the
                    // whole call.
                    if call.is_some_and(|call| call.is_pending) {
                        return None;
                    }
                    let input = call.map(|call| call.whole.as_ref().unwrap_or(&call.input));
                    asks::permission(asked, input)
                }
                FoldedAsk::Question(asked) => asks::question(asked),
            };
            Some((id.clone(), about))
        });
        open.collect()
    }

    fn call(&self, id: &str) -> Option<&FoldedCall> {
        let calls = self.steps.iter().rev().filter_map(FoldedStep::call);
        calls.into_iter().find(|call| call.id.as_deref() == Some(id))
    }

    /// The last steps, for the card, and the number of earlier ones.
    #[must_use]
    pub fn steps(&self, is_over: bool) -> (Vec<CardStep>, usize) {
        let shown = |step: &FoldedStep| step.shown(&self.directory, is_over);
        let mut steps: Vec<CardStep> = self.steps.iter().map(shown).collect();
        let retrying = self.retrying.as_ref().filter(|_| !is_over);
        steps.extend(retrying.map(Retrying::step));
        let (steps, earlier) = last_of(steps);
        (steps, earlier + self.steps_before)
    }

    /// The failed model call, while it is being retried.
    #[must_use]
    pub fn retrying(&self) -> Option<Retrying> {
        self.retrying.clone()
    }

    /// The plan, for the card.
    #[must_use]
    pub fn plan(&self) -> Vec<PlanLine> {
        self.plan.clone()
    }

    /// The agent's text, in pieces.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let shown = self.messages.iter().filter(|message| !message.is_hidden);
        let texts = shown.flat_map(|message| &message.parts).filter_map(|part| part.text.as_ref());
        texts.filter(|text| !text.trim().is_empty()).cloned().collect()
    }

    /// Number of messages from the agent.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    /// The last error; not necessarily the end.
    #[must_use]
    pub const fn trouble(&self) -> Option<&Reason> {
        self.trouble.as_ref()
    }

    /// The last text of the last turn, preceded by the full answers of earlier turns.
    #[must_use]
    pub fn text(&self) -> String {
        let tells_ends = self.messages.iter().any(|message| message.finish.is_some());
        let last = self.turns.last();
        let texts = self.turns.iter().filter_map(|turn| {
            let own: Vec<&FoldedMessage> =
                self.messages.iter().filter(|message| message.turn == *turn).collect();
            let is_whole = own.last().is_some_and(|last| last.is_finished());
            (Some(turn) == last || is_whole || !tells_ends).then(|| last_words(&own))
        });
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    /// Usage so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let (mut tokens, mut dollars) = (0_u64, 0.0);
        for (more, cost) in self.used.of.values() {
            tokens = tokens.saturating_add(*more);
            dollars += cost;
        }
        // An agent that counts by session counts nothing smaller.
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

/// The last text of a turn. If the agent had finished before an automatic "continue" after a summary, the text from
/// before it.
fn last_words(turn: &[&FoldedMessage]) -> String {
    let words = |messages: &[&FoldedMessage], only_finished: bool| {
        let shown = messages.iter().rev().filter(|message| !message.is_hidden);
        let shown = shown.filter(|message| !only_finished || message.is_finished());
        shown.map(|message| message.text()).find(|text| !text.is_empty())
    };
    let continued = turn.iter().position(|message| message.is_continued);
    let before = continued.and_then(|at| words(&turn[..=at], true));
    before.or_else(|| words(turn, false)).unwrap_or_default()
}

impl FoldedMessage {
    fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| part.text.as_deref());
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The agent reports that it had nothing more to say.
    fn is_finished(&self) -> bool {
        self.finish.as_deref() == Some("stop")
    }
}

impl FoldedStep {
    const fn call(&self) -> Option<&FoldedCall> {
        match &self.kind {
            StepKind::Call(call) => Some(call),
            StepKind::Summary => None,
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        if let StepKind::Call(call) = &mut self.kind {
            call.whole = None;
        }
    }

    fn shown(&self, directory: &str, is_run_over: bool) -> CardStep {
        let is_over = self.is_over || is_run_over;
        match &self.kind {
            StepKind::Summary => steps::summary(is_over, self.has_failed),
            StepKind::Call(call) => ToolCall {
                tool: &call.tool,
                input: &call.input,
                cwd: directory,
                exit: call.exit,
                is_over,
                has_failed: self.has_failed,
            }
            .step(),
        }
    }
}

fn words_of(part: &UniversalMessagePart) -> Option<&str> {
    match part {
        UniversalMessagePart::Text { text } => Some(text),
        _ => None,
    }
}

/// The fields of a tool's input that a card shows.
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
    // Name of the command in Amp and in a sandbox's tools.
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

fn sum(usage: &TokenUsage) -> (u64, f64) {
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

/// Tokens at a price, in US dollars.
fn at(price: &ModelPrice, usage: &TokenUsage) -> f64 {
    let written = usage.output_tokens.unwrap_or(0) + usage.reasoning_tokens.unwrap_or(0);
    let parts = [
        (usage.input_tokens, price.input),
        (Some(written), price.output),
        (usage.cache_read_tokens, price.cache_read.unwrap_or(price.input)),
        (usage.cache_write_tokens, price.cache_write.unwrap_or(price.input)),
    ];
    let dollars =
        |(tokens, price): (Option<u64>, Price)| tokens.unwrap_or(0) as f64 * f64::from(price);
    parts.into_iter().map(dollars).sum::<f64>() / 1_000_000.0
}

fn shown(plan: &Plan) -> Vec<PlanLine> {
    let items = plan.items.iter().map(|item| PlanLine {
        text: first_line(&redact(&item.text), PLAN_CHARS_MAX),
        state: match item.state {
            Said::Completed => PlanLineState::Done,
            Said::InProgress => PlanLineState::Now,
            Said::Cancelled => PlanLineState::Dropped,
            Said::Pending => PlanLineState::Next,
        },
    });
    items.filter(|item| !item.text.is_empty()).take(PLAN_MAX).collect()
}

#[cfg(test)]
mod tests;
