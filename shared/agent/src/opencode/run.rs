//! One prompt's run, folded from events and snapshots.
//!
//! Promised: applying the events of a whole run, or one snapshot after it, gives the same picture; an event may come
//! twice, late or after a newer state of what it tells (all of them are upserts). Messages of other sessions are
//! skipped, asks of subagents count as the run's own.

use bobbin_core::ids::AskId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::ask::About;
use bobbin_core::card::{CardStep, PlanItem};
use serde_json::Value;

use super::answer::{conclude, in_order, people_reason, turn_of};
use super::event::{Delta, Event};
use super::steps::{last_of, plan_of, steps_of};
use super::types::{
    Info, Message, Part, PartKind, Permission, Question, Role, Session, Status, Statuses,
    ToolState, ToolStatus,
};
use crate::retrying::Retrying;
use crate::runtime::RunState;

/// A count beyond this is not shown as it is: a float can have 309 digits.
const ATTEMPTS_SHOWN_MAX: f64 = 999.0;

/// What an event means for whoever follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// It changes neither the card nor what is known of the end.
    Nothing,
    /// The picture may have changed.
    News,
    /// The run may be over: look at status and messages.
    EndSuggested,
}

/// What was read after (re)connecting; replaces what the events had told.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// `GET /session/status`, read first.
    pub statuses: Statuses,
    /// What `GET /permission` lists.
    pub permissions: Vec<Permission>,
    /// What `GET /question` lists.
    pub questions: Vec<Question>,
    /// Messages of the session from the prompt on, oldest first.
    pub messages: Vec<Message>,
}

/// The run of one prompt.
#[derive(Debug, Clone)]
pub struct Run {
    session: String,
    prompt: String,
    /// Prompts that were sent into the same run.
    further: Vec<String>,
    messages: Vec<Message>,
    status: Option<Status>,
    asks: BTreeMap<String, OpenAsk>,
    /// The session and its subagents'.
    family: BTreeSet<String>,
    /// Sessions that ask and are known to belong to somebody else.
    others: BTreeSet<String>,
    /// The last thing that failed, for people.
    trouble: Option<String>,
}

#[derive(Debug, Clone)]
enum OpenAsk {
    Permission(Permission),
    Question(Question),
}

impl OpenAsk {
    fn session(&self) -> &str {
        match self {
            Self::Permission(asked) => &asked.session_id,
            Self::Question(asked) => &asked.session_id,
        }
    }
}

impl Run {
    /// The run of this prompt in this session; nothing is known yet.
    #[must_use]
    pub fn new(session: &str, prompt: &str) -> Self {
        Self {
            session: session.to_owned(),
            prompt: prompt.to_owned(),
            further: Vec::new(),
            messages: Vec::new(),
            status: None,
            asks: BTreeMap::new(),
            family: BTreeSet::from([session.to_owned()]),
            others: BTreeSet::new(),
            trouble: None,
        }
    }

    /// The same run, into which these prompts were sent after the first.
    #[must_use]
    pub fn with(mut self, further: &[String]) -> Self {
        self.further = further.to_vec();
        self
    }

    /// Replaces what is known by what was read.
    pub fn catch_up(&mut self, snapshot: Snapshot) {
        let Snapshot { mut statuses, permissions, questions, messages } = snapshot;
        let asks = permissions
            .into_iter()
            .map(|asked| (asked.id.clone(), OpenAsk::Permission(asked)))
            .chain(questions.into_iter().map(|asked| (asked.id.clone(), OpenAsk::Question(asked))));
        // An aborted session leaves its asks in the lists; nobody waits for them any more.
        self.asks = asks.filter(|(_, asked)| statuses.contains_key(asked.session())).collect();
        self.status = statuses.remove(&self.session);
        self.messages = in_order(&messages).into_owned();
        for message in &self.messages {
            for part in &message.parts {
                self.family.extend(child_of(part));
            }
        }
    }

    /// Takes in what the stream told. The same event may come twice.
    pub fn apply(&mut self, event: Event) -> Heard {
        match event {
            Event::Connected | Event::Heartbeat | Event::Other => Heard::Nothing,
            Event::Disposed => Heard::EndSuggested,
            Event::Session(session) => {
                self.meet(&session);
                Heard::Nothing
            }
            Event::Status { session, status } => self.status_changed(&session, status),
            Event::Idle { session } => self.status_changed(&session, Status::Idle),
            Event::Error { session, error } => {
                if session.as_ref().is_some_and(|id| *id != self.session) {
                    return Heard::Nothing;
                }
                self.note_trouble(&error);
                Heard::EndSuggested
            }
            Event::Message(info) => self.message_changed(info),
            Event::MessageRemoved { message } => {
                self.messages.retain(|known| known.info.id != message);
                Heard::News
            }
            Event::Part(part) => self.part_changed(part),
            Event::Delta(delta) => {
                self.append(&delta);
                Heard::Nothing
            }
            Event::PartRemoved { message, part } => {
                if let Some(known) = self.messages.iter_mut().find(|known| known.info.id == message)
                {
                    known.parts.retain(|known| known.id != part);
                }
                Heard::News
            }
            Event::PermissionAsked(asked) => {
                self.asks.insert(asked.id.clone(), OpenAsk::Permission(asked));
                Heard::News
            }
            Event::QuestionAsked(asked) => {
                self.asks.insert(asked.id.clone(), OpenAsk::Question(asked));
                Heard::News
            }
            Event::AskClosed { id } => {
                self.asks.remove(&id);
                Heard::News
            }
        }
    }

    /// Takes note of whose subagent a session is.
    pub fn meet(&mut self, session: &Session) {
        match &session.parent_id {
            Some(parent) if self.family.contains(parent) => {
                self.family.insert(session.id.clone());
            }
            _ if self.family.contains(&session.id) => {}
            _ => {
                self.others.insert(session.id.clone());
            }
        }
    }

    /// Sessions with open asks of which it is not known whose they are: read them, then [`Run::meet`] them.
    #[must_use]
    pub fn strangers(&self) -> Vec<String> {
        let unknown = |id: &&str| !self.family.contains(*id) && !self.others.contains(*id);
        self.asks.values().map(OpenAsk::session).filter(unknown).map(str::to_owned).collect()
    }

    /// Takes note that a session is not ours.
    pub fn dismiss(&mut self, session: &str) {
        self.others.insert(session.to_owned());
    }

    /// The asks that wait for a person, by id.
    #[must_use]
    pub fn asks(&self) -> Vec<(AskId, About)> {
        self.asks
            .iter()
            .filter(|(_, asked)| self.family.contains(asked.session()))
            .filter(|(_, asked)| !self.is_unsaid(asked))
            .map(|(id, asked)| {
                let about = match asked {
                    OpenAsk::Permission(asked) => asked.about(self.call_input(&asked.tool.call_id)),
                    OpenAsk::Question(asked) => asked.about(),
                };
                (id.as_str().into(), about)
            })
            .collect()
    }

    /// The plan, for the card.
    #[must_use]
    pub fn plan(&self) -> Vec<PlanItem> {
        plan_of(self.turn())
    }

    /// The last steps, for the card, and how many came before them.
    #[must_use]
    pub fn steps(&self) -> (Vec<CardStep>, usize) {
        let (mut steps, earlier) = steps_of(self.turn());
        steps.extend(self.retrying().map(|retrying| retrying.step()));
        let (steps, more) = last_of(steps);
        (steps, earlier + more)
    }

    /// The model that did not answer and is asked again, while that is so.
    #[must_use]
    pub fn retrying(&self) -> Option<Retrying> {
        let Some(Status::Retry { attempt, message, next }) = &self.status else {
            return None;
        };
        // A float beyond the range saturates, and one that is no number is zero.
        let attempt = attempt.clamp(1.0, ATTEMPTS_SHOWN_MAX) as u32;
        Some(Retrying::new(message, Some(attempt), Some(*next as u64)))
    }

    /// The words of the turn in pieces: the text parts of the agent's messages, without OpenCode's own and summaries.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let said = self
            .turn()
            .iter()
            .filter(|message| message.info.role == Role::Assistant && !message.info.is_summary());
        said.flat_map(|message| &message.parts)
            .filter_map(|part| match &part.kind {
                PartKind::Text { text, synthetic: false, ignored: false, .. }
                    if !text.trim().is_empty() =>
                {
                    Some(text.clone())
                }
                _ => None,
            })
            .collect()
    }

    /// What the session is doing, as far as it is known.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// Assistant messages of the turn: a run that makes too many is in a loop.
    #[must_use]
    pub fn assistant_messages(&self) -> usize {
        self.turn().iter().filter(|message| message.info.role == Role::Assistant).count()
    }

    /// The last thing that failed, for people; not by itself the end.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// How the run stands by what is known here.
    #[must_use]
    pub fn state(&self) -> RunState {
        conclude(&self.messages, &self.prompt, &self.further, self.status.as_ref())
    }

    fn turn(&self) -> &[Message] {
        turn_of(&self.messages, &self.prompt, &self.further).unwrap_or_default()
    }

    fn note_trouble(&mut self, error: &super::types::MessageError) {
        // The second error of a pair is often the same one with a stack instead of words.
        let told_already = error.name == "UnknownError" && error.data.message.contains("\n    at ");
        if !(told_already && self.trouble.is_some()) {
            self.trouble = Some(people_reason(error));
        }
    }

    fn status_changed(&mut self, session: &str, status: Status) -> Heard {
        let idle = status == Status::Idle;
        if idle {
            self.asks.retain(|_, asked| asked.session() != session);
        }
        if session != self.session {
            return Heard::Nothing;
        }
        self.status = Some(status);
        if idle { Heard::EndSuggested } else { Heard::News }
    }

    fn message_changed(&mut self, info: Info) -> Heard {
        if info.session_id != self.session {
            return Heard::Nothing;
        }
        match self.messages.iter_mut().find(|known| known.info.id == info.id) {
            Some(known) => known.info = info,
            None => self.messages.push(Message { info, parts: Vec::new() }),
        }
        // The list's order: by creation, and a prompt that is sent again is bumped. The sort is stable.
        self.messages.sort_by(|a, b| a.info.time.created.total_cmp(&b.info.time.created));
        if let Cow::Owned(ordered) = in_order(&self.messages) {
            self.messages = ordered;
        }
        Heard::News
    }

    fn part_changed(&mut self, part: Part) -> Heard {
        if part.session_id != self.session {
            return Heard::Nothing;
        }
        self.family.extend(child_of(&part));
        let Some(message) = self.messages.iter_mut().find(|known| known.info.id == part.message_id)
        else {
            return Heard::Nothing;
        };
        match message.parts.iter_mut().find(|known| known.id == part.id) {
            Some(known) => *known = part,
            None => message.parts.push(part),
        }
        Heard::News
    }

    fn append(&mut self, delta: &Delta) {
        let part =
            self.messages.iter_mut().find(|known| known.info.id == delta.message_id).and_then(
                |message| message.parts.iter_mut().find(|known| known.id == delta.part_id),
            );
        // A part that is not known yet comes whole with its next update.
        if let Some(Part { kind: PartKind::Text { text, .. }, .. }) = part
            && delta.field == "text"
        {
            text.push_str(&delta.delta);
        }
    }

    /// Whether it is still to be told what a permission is for. An ask comes before the call behind it is written down
    /// (measured on 1.18.33), and a person approves the whole call.
    fn is_unsaid(&self, asked: &OpenAsk) -> bool {
        let OpenAsk::Permission(asked) = asked else {
            return false;
        };
        let call = self.call(&asked.tool.call_id);
        call.is_some_and(|call| call.status == ToolStatus::Pending)
    }

    fn call_input(&self, call: &str) -> Option<&Value> {
        self.call(call).map(|state| &state.input)
    }

    fn call(&self, call: &str) -> Option<&ToolState> {
        self.messages.iter().flat_map(|message| &message.parts).find_map(|part| match &part.kind {
            PartKind::Tool { call_id, state, .. } if call_id == call => Some(state),
            _ => None,
        })
    }
}

fn child_of(part: &Part) -> Option<String> {
    match &part.kind {
        PartKind::Tool { tool, state, .. } if tool == "task" => state.metadata.session_id.clone(),
        _ => None,
    }
}
