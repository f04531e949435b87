//! What control messages wrote beside a thread's record: it conflicts with nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, PostRef, TurnId};
use crate::base::person::Person;
use crate::records::ask::Settlement;
use crate::records::message::Prompt;
use crate::records::session::Session;

/// What the control lane wrote beside the record: it may conflict with nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ControlFlags {
    /// Who cancelled which turn (by turn id).
    pub cancelled: BTreeMap<TurnId, Person>,
    /// How asks were settled (by ask id).
    pub settled: BTreeMap<AskId, Settlement>,
    /// Prompts that wait behind the present turn (by turn id).
    pub queued: BTreeMap<TurnId, Queued>,
    /// Who wants which of them sent into the present turn (by turn id).
    pub now: BTreeMap<TurnId, Person>,
    /// Who stopped everything, and up to when (by the id of that control message). It cancels prompts that nobody has
    /// announced yet, too.
    pub stopped_all: BTreeMap<TurnId, StoppedAll>,
}

/// A Stop all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoppedAll {
    /// Who wanted it.
    pub by: Person,
    /// What was accepted up to then is cancelled.
    pub until_ms: Ms,
}

impl ControlFlags {
    /// Those that this record makes superfluous: of turns that have begun or ended, and of asks whose turn is over.
    /// What still waits in the queue keeps its control flags.
    #[must_use]
    pub fn spent(&self, session: &Session) -> Self {
        let ended = |id: &TurnId| session.ended.iter().any(|turn| turn.id == *id);
        let present = |id: &TurnId| session.turn.as_ref().is_some_and(|turn| turn.covers(id));
        let mut spent = self.clone();
        spent.cancelled.retain(|turn, _| ended(turn));
        spent.queued.retain(|turn, _| ended(turn) || present(turn));
        spent.now.retain(|turn, _| ended(turn) || present(turn));
        let begun_ms = session.turn.as_ref().map_or(0, |turn| turn.accepted_at_ms);
        spent.stopped_all.retain(|_, all| all.until_ms < begun_ms);
        if session.turn.is_some() {
            spent.settled.clear();
        }
        spent
    }

    /// Those that are left when these are removed.
    #[must_use]
    pub fn without(mut self, removed: &Self) -> Self {
        self.cancelled.retain(|turn, _| !removed.cancelled.contains_key(turn));
        self.settled.retain(|ask, _| !removed.settled.contains_key(ask));
        self.queued.retain(|turn, _| !removed.queued.contains_key(turn));
        self.now.retain(|turn, _| !removed.now.contains_key(turn));
        self.stopped_all.retain(|id, _| !removed.stopped_all.contains_key(id));
        self
    }

    /// Who cancelled the turn that was accepted at this time, by a Stop of its own or by a Stop all.
    #[must_use]
    pub fn cancelled_by(&self, turn: &TurnId, accepted_at_ms: Ms) -> Option<&Person> {
        let all = self.stopped_all.values();
        let all = all.filter(|all| accepted_at_ms <= all.until_ms);
        self.cancelled.get(turn).or_else(|| all.map(|all| &all.by).next())
    }

    /// Whether a person has said something that is not among the others: a stop, a decision, or the wish that a waiting prompt
    /// is sent at once.
    #[must_use]
    pub fn ask_for_more_than(&self, others: &Self) -> bool {
        self.cancelled.keys().any(|turn| !others.cancelled.contains_key(turn))
            || self.settled.keys().any(|ask| !others.settled.contains_key(ask))
            || self.now.keys().any(|turn| !others.now.contains_key(turn))
            || self.stopped_all.keys().any(|id| !others.stopped_all.contains_key(id))
    }

    /// The prompts that wait behind the present turn and will be worked on, oldest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<(&TurnId, &Queued)> {
        let wait = |(turn, one): &(&TurnId, &Queued)| {
            !one.refused && self.cancelled_by(turn, one.accepted_at_ms).is_none()
        };
        let mut waiting: Vec<_> = self.queued.iter().filter(wait).collect();
        waiting.sort_by_key(|(_, one)| one.accepted_at_ms);
        waiting
    }
}

/// A prompt that waits in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queued {
    /// Who asked for it.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Its card, once it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// More prompts than the thread may have were waiting when it came: it will not be worked on.
    #[serde(default)]
    pub refused: bool,
    /// What is asked, where it is small enough to be kept here: so it can be sent into the turn before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<Prompt>>,
}
