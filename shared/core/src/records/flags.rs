//! Control flags: what control messages write beside a thread's record, so that they conflict with no other write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, PostRef, TurnId};
use crate::base::person::Person;
use crate::records::ask::AskDecision;
use crate::records::message::Prompt;
use crate::records::session::Session;

/// Flags that control messages wrote beside the record, where they conflict with no other write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ControlFlags {
    /// The person who cancelled each turn (by turn id).
    pub cancelled: BTreeMap<TurnId, Person>,
    /// Settlements of asks (by ask id).
    pub settled: BTreeMap<AskId, AskDecision>,
    /// Prompts that wait behind the present turn (by turn id).
    pub queued: BTreeMap<TurnId, Queued>,
    /// The person who wants each of them sent into the present turn (by turn id).
    pub now: BTreeMap<TurnId, Person>,
    /// Each "Stop all": its author, and the time up to which it applies (by the id of the control message). It also
    /// cancels prompts that have not been announced yet.
    pub stopped_all: BTreeMap<TurnId, StoppedAll>,
}

/// A "Stop all".
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoppedAll {
    /// Its author.
    pub by: Person,
    /// Prompts accepted up to this time are cancelled.
    pub until_ms: Ms,
}

impl ControlFlags {
    /// The flags that this record makes superfluous: those of turns that have begun or ended, and of asks whose turn is
    /// over. Prompts that still wait in the queue keep their flags.
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

    /// The flags without the removed ones.
    #[must_use]
    pub fn without(mut self, removed: &Self) -> Self {
        self.cancelled.retain(|turn, _| !removed.cancelled.contains_key(turn));
        self.settled.retain(|ask, _| !removed.settled.contains_key(ask));
        self.queued.retain(|turn, _| !removed.queued.contains_key(turn));
        self.now.retain(|turn, _| !removed.now.contains_key(turn));
        self.stopped_all.retain(|id, _| !removed.stopped_all.contains_key(id));
        self
    }

    /// The person who cancelled the turn that was accepted at this time, by its own Stop or by a "Stop all".
    #[must_use]
    pub fn cancelled_by(&self, turn: &TurnId, accepted_at_ms: Ms) -> Option<&Person> {
        let all = self.stopped_all.values();
        let all = all.filter(|all| accepted_at_ms <= all.until_ms);
        self.cancelled.get(turn).or_else(|| all.map(|all| &all.by).next())
    }

    /// Whether they contain a person's request that `others` do not: a stop, a decision, or a "Send now".
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
    /// The requester.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Its card, once posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// Too many prompts were waiting when it came: it will not be worked on.
    #[serde(default)]
    pub refused: bool,
    /// The prompt, if it is small enough to be kept here, so that it can be sent into the turn before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<Prompt>>,
}
