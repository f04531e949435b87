//! OpenCode's data of one prompt's run, as universal events of that run.
//!
//! Promised: the events of a whole run, and its messages read afterwards, give the same result; data that arrives
//! twice, late or after a newer state counts once. Messages of other sessions are left out, asks of subagents count as
//! the run's own.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_agent_events::{
    Converted, Status as Told, StatusState, UniversalEventData, UniversalMessage,
    UniversalMessageParsed, UsageScope, opencode::OpenCodeConverter,
};
use bobbin_core::tenant::budgets::MicroUsd;
use serde_json::{Value, json};

use super::order::{in_order, is_minted};
use super::types::{
    OpenCodeMessage, OpenCodeSession, OpenCodeStatus, OpenCodeStatuses, Role, shorten,
};
use crate::fold::Fold;

/// State read after (re)connecting; replaces the state from events.
#[derive(Debug, Clone, Default)]
pub struct RunSnapshot {
    /// `GET /session/status`, read first.
    pub statuses: OpenCodeStatuses,
    /// Answer of `GET /permission`.
    pub permissions: Vec<Value>,
    /// Answer of `GET /question`.
    pub questions: Vec<Value>,
    /// Messages of the session from the prompt on, oldest first.
    pub messages: Vec<OpenCodeMessage>,
}

/// The run of one prompt, and of those that were sent into it.
#[derive(Debug)]
pub struct Reading {
    session: String,
    prompts: Vec<String>,
    converter: OpenCodeConverter,
    fold: Fold,
    /// The prompt to which each message belongs: the last of our prompts before it.
    prompt_of: BTreeMap<String, Option<String>>,
    /// The prompt in progress, even if it is of another run.
    current: Option<String>,
    /// The session and its subagents'.
    family: BTreeSet<String>,
    /// What each subagent's session has cost, in US dollars, as last read.
    costs: BTreeMap<String, f64>,
    /// Asking sessions that are known to be unrelated.
    others: BTreeSet<String>,
    /// Text parts that were being written when the messages were read. The list has them without the text so far, so
    /// what follows of them has no beginning.
    torn: BTreeSet<String>,
    /// Asks from sessions that may be subagents of ours.
    strange: Vec<(String, UniversalEventData)>,
}

impl Reading {
    /// An empty run of this prompt in this session, into which `further` were sent later.
    #[must_use]
    pub fn new(session: &str, prompt: &str, further: &[String]) -> Self {
        let prompts: Vec<String> =
            std::iter::once(prompt.to_owned()).chain(further.iter().cloned()).collect();
        let mut fold = Fold::default();
        fold.of(&prompts);
        Self {
            session: session.to_owned(),
            prompts,
            converter: OpenCodeConverter::default(),
            fold,
            prompt_of: BTreeMap::new(),
            current: None,
            family: BTreeSet::from([session.to_owned()]),
            costs: BTreeMap::new(),
            others: BTreeSet::new(),
            torn: BTreeSet::new(),
            strange: Vec::new(),
        }
    }

    /// The run's session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The folded state of the run.
    #[must_use]
    pub const fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Whether an event has suggested, since the last call, that the run may be over.
    pub fn suggests_end(&mut self) -> bool {
        std::mem::take(&mut self.fold.suggests_end)
    }

    /// Replaces the known state by the one just read.
    pub fn catch_up(&mut self, snapshot: RunSnapshot) {
        let RunSnapshot { statuses, permissions, questions, messages } = snapshot;
        self.read_messages(&messages);
        if let Some(status) = statuses.get(&self.session) {
            self.of_run(&told(status));
        }
        let asks = permissions.into_iter().map(|ask| ("permission.asked", ask));
        let asks = asks.chain(questions.into_iter().map(|ask| ("question.asked", ask)));
        for (kind, ask) in asks {
            // An aborted session leaves its asks in the lists, but no longer waits for them.
            let waits = text(&ask, "/sessionID").is_some_and(|id| statuses.contains_key(id));
            if waits {
                self.receive(json!({"type": kind, "properties": ask}));
            }
        }
        self.fold.suggests_end = true;
    }

    /// Starts over with these messages of the session.
    pub fn read_messages(&mut self, messages: &[OpenCodeMessage]) {
        self.fold = Fold::default();
        self.fold.of(&self.prompts);
        self.converter = OpenCodeConverter::default();
        (self.prompt_of, self.current, self.strange) = (BTreeMap::new(), None, Vec::new());
        self.torn = messages.iter().flat_map(unfinished_texts).collect();
        for message in in_order(messages).iter() {
            let info = &message.info;
            self.meet_message(&info.id, info.role == Role::User);
            self.fold.works_in(&info.path.cwd);
            for one in self.converter.convert(message.raw.clone()) {
                self.of_session(&one.data);
            }
        }
    }

    /// Processes an event of the stream. The same event may come twice.
    pub fn receive(&mut self, mut event: Value) {
        if let Some(part) = event.pointer_mut("/properties/part") {
            shorten(part);
            // It has the whole text so far.
            if let Some(id) = text(part, "/id") {
                self.torn.remove(id);
            }
        }
        if text(&event, "/type") == Some("message.part.delta")
            && text(&event, "/properties/partID").is_some_and(|id| self.torn.contains(id))
        {
            return;
        }
        match text(&event, "/type") {
            Some("server.instance.disposed") => self.fold.suggests_end = true,
            Some("session.created" | "session.updated") => {
                let info = event.pointer("/properties/info").cloned();
                if let Some(session) = info.and_then(|info| serde_json::from_value(info).ok()) {
                    self.meet(&session);
                }
            }
            _ => {}
        }
        let named = ["sessionID", "info/sessionID", "part/sessionID"];
        let mut named = named.iter().map(|place| text(&event, &format!("/properties/{place}")));
        let session = named.find_map(|session| session).map(str::to_owned);
        let is_own = session.as_ref().is_none_or(|session| *session == self.session);
        if is_own
            && text(&event, "/type") == Some("message.updated")
            && let Some(id) = text(&event, "/properties/info/id")
        {
            let is_user = text(&event, "/properties/info/role") == Some("user");
            let cwd = text(&event, "/properties/info/path/cwd").map(str::to_owned);
            self.meet_message(id, is_user);
            if let Some(cwd) = cwd {
                self.fold.works_in(&cwd);
            }
        }
        for Converted { data, .. } in self.converter.convert(event) {
            match &session {
                Some(session) if !is_own => self.of_other(session, data),
                _ => self.of_session(&data),
            }
        }
    }

    /// The subagents' sessions.
    #[must_use]
    pub fn subagents(&self) -> Vec<String> {
        self.family.iter().filter(|id| **id != self.session).cloned().collect()
    }

    /// What the subagents have cost, in millionths of a US dollar.
    #[must_use]
    pub fn subagents_cost(&self) -> MicroUsd {
        // A float beyond the range saturates.
        (self.costs.values().sum::<f64>() * 1_000_000.0).round() as MicroUsd
    }

    /// Records the parent of a session, and what it has cost.
    pub fn meet(&mut self, session: &OpenCodeSession) {
        let is_new = session.parent_id.as_ref().is_some_and(|id| self.family.contains(id));
        if session.id != self.session && (is_new || self.family.contains(&session.id)) {
            let cost = self.costs.entry(session.id.clone()).or_default();
            *cost = cost.max(session.cost);
        }
        match &session.parent_id {
            Some(parent) if self.family.contains(parent) => self.adopt(&session.id),
            _ if self.family.contains(&session.id) => {}
            _ => self.dismiss(&session.id),
        }
    }

    /// Sessions with open asks that may be subagents of ours: read each one, then pass it to [`Reading::meet`].
    #[must_use]
    pub fn strangers(&self) -> Vec<String> {
        let unknown = self.strange.iter().map(|(session, _)| session.clone());
        unknown.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Records that a session is not ours.
    pub fn dismiss(&mut self, session: &str) {
        self.strange.retain(|(asking, _)| asking != session);
        self.others.insert(session.to_owned());
    }

    fn adopt(&mut self, session: &str) {
        self.family.insert(session.to_owned());
        let (known, strange) = std::mem::take(&mut self.strange)
            .into_iter()
            .partition(|(asking, _)| asking == session);
        self.strange = strange;
        let known: Vec<(String, UniversalEventData)> = known;
        for (session, asked) in known {
            self.of_other(&session, asked);
        }
    }

    /// The head of a message comes before its content. A prompt of ours that is sent again keeps its place.
    fn meet_message(&mut self, id: &str, is_user: bool) {
        if self.prompt_of.contains_key(id) {
            return;
        }
        if is_user && (is_minted(id) || self.prompts.iter().any(|prompt| prompt == id)) {
            self.current = Some(id.to_owned());
        }
        self.prompt_of.insert(id.to_owned(), self.current.clone());
    }

    /// Processes data from the session itself.
    fn of_session(&mut self, data: &UniversalEventData) {
        let of_message = |id: &String| self.prompt_of.get(id).cloned().unwrap_or_default();
        let prompt = match data {
            UniversalEventData::Message { message: UniversalMessage::Parsed(message) } => {
                self.family.extend(subagent_of(message));
                message.id.as_ref().and_then(of_message)
            }
            UniversalEventData::Usage { usage, .. } => match &usage.scope {
                UsageScope::Message(id) => of_message(id),
                _ => self.current.clone(),
            },
            UniversalEventData::Plan { .. } => self.current.clone(),
            _ => return self.of_run(data),
        };
        self.fold.receive(prompt.as_deref(), Some(&self.session), data);
    }

    /// Processes data that belongs to the run regardless of the messages: status, errors, asks.
    fn of_run(&mut self, data: &UniversalEventData) {
        self.fold.receive(self.prompts.last().map(String::as_str), Some(&self.session), data);
    }

    /// Processes data from another session.
    fn of_other(&mut self, session: &str, data: UniversalEventData) {
        let is_ask = data.asked().is_some();
        match &data {
            UniversalEventData::AskClosed { ask_closed, .. } => {
                self.strange.retain(|(_, asked)| asked.asked() != Some(&ask_closed.id));
            }
            UniversalEventData::Status { status, .. } if status.state == StatusState::Idle => {
                self.strange.retain(|(asking, _)| asking != session);
                self.fold.close_asks_of(Some(session));
                return;
            }
            _ if !is_ask || self.others.contains(session) => return,
            _ => {}
        }
        if is_ask && !self.family.contains(session) {
            self.strange.retain(|(_, known)| known.asked() != data.asked());
            self.strange.push((session.to_owned(), data));
            return;
        }
        self.fold.receive(self.prompts.last().map(String::as_str), Some(session), &data);
    }
}

fn unfinished_texts(message: &OpenCodeMessage) -> impl Iterator<Item = String> {
    let parts = message.raw.pointer("/parts").and_then(Value::as_array).into_iter().flatten();
    let open = parts.filter(|part| text(part, "/type") == Some("text"));
    let open = open.filter(|part| part.pointer("/time/end").is_none());
    open.filter_map(|part| text(part, "/id").map(str::to_owned))
}

fn told(status: &OpenCodeStatus) -> UniversalEventData {
    match status {
        OpenCodeStatus::Idle => Told::of(StatusState::Idle),
        OpenCodeStatus::Busy | OpenCodeStatus::Other => Told::of(StatusState::Busy),
        OpenCodeStatus::Retry { attempt, message, next } => Told {
            state: StatusState::Retrying,
            message: Some(message.clone()),
            // A float beyond the range saturates, and NaN becomes zero.
            next_ms: Some(*next as u64),
            attempt: Some(*attempt as u64),
        },
    }
    .into()
}

fn subagent_of(message: &UniversalMessageParsed) -> Option<String> {
    message.metadata.get("subagentSession")?.as_str().map(str::to_owned)
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}
