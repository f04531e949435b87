//! A turn: a prompt from its acceptance to its end.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, TurnId};
use crate::base::limits::PollLimits;
use crate::base::names::PromptIds;
use crate::base::person::Person;
use crate::records::ask::Ask;
use crate::records::card::card_kind;
use crate::records::message::Prompt;
use crate::records::outcome::Outcome;
use crate::records::spending::Reservation;
use crate::records::stage::{Prompted, Stage};
use crate::tenant::selection::Selection;

/// A prompt from acceptance to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// The requester.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Its selection: decided once, so that every delivery continues with the same.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
    /// Its stage, with what belongs to that stage.
    pub stage: Stage,
    /// Its card in the thread.
    #[serde(default)]
    pub card: CardPlace,
    /// Its questions and permission requests.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// Its tries, each with a bound.
    #[serde(default)]
    pub tries: Tries,
    /// Outages that it waits out.
    #[serde(default)]
    pub outages: Outages,
    /// A delivery has the turn in hand. If still set when the next delivery comes, the last one never returned its
    /// message, unless it left a [`Parked`](crate::records::parked::Parked) state, as deliveries that only poll the
    /// run do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_hand: bool,
    /// Its message was returned to wait for another user of the sandbox, and not because something failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// The person who pressed Stop, once seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Person>,
    /// The last trouble, for the report if it keeps going wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The checkout was moved for it to the newest commit of a branch: what the agent is told of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
    /// What it has set aside of the budgets; `None` if none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reservation>,
    /// Prompts that waited behind this turn and were sent into its run, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Steered>,
}

/// A turn's card in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CardPlace {
    /// The present card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PostRef>,
    /// When it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<Ms>,
    /// How often a new card replaced one that had become too old.
    #[serde(default)]
    pub rolls: u32,
    /// The previous card, until it points to the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<PostRef>,
}

impl CardPlace {
    /// It stands there. True: it stood somewhere before.
    pub fn stands_at(&mut self, at: PostRef, now_ms: Ms) -> bool {
        self.old.take_if(|old| *old == at);
        let is_edited = self.at.replace(at).is_some();
        if !is_edited {
            self.since_ms = Some(now_ms);
        }
        is_edited
    }
}

/// Tries of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tries {
    /// Failed deliveries of the message.
    #[serde(default)]
    pub attempts: u32,
    /// How often the chat refused the end.
    #[serde(default)]
    pub refusals: u32,
    /// Restarts of the agent's server.
    #[serde(default)]
    pub server_restarts: u32,
}

/// Outages that a turn waits out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Outages {
    /// When the provider's outage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_since_ms: Option<Ms>,
    /// When the chat's outage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_since_ms: Option<Ms>,
}

impl Turn {
    /// Whether its run is only polled, because it has gone on for too long to be held, or was let go.
    #[must_use]
    pub fn is_only_polled(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        self.stage.is_running() && !self.is_wanted_over() && !self.is_held(limits, now_ms)
    }

    /// Whether a delivery still holds its run: its time is not over, and no delivery has let go of it.
    #[must_use]
    pub fn is_held(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        let held =
            |prompted: &Prompted| !prompted.let_go && now_ms < limits.held_until(prompted.at_ms);
        self.stage.prompted().is_some_and(held)
    }

    /// Whether a person or a bound wants its run to end.
    #[must_use]
    pub const fn is_wanted_over(&self) -> bool {
        self.cancelled_by.is_some() || self.aborting().is_some()
    }

    /// Why Bobbin aborts its run; `None` if it does not.
    #[must_use]
    pub const fn aborting(&self) -> Option<&String> {
        match self.stage.prompted() {
            Some(prompted) => prompted.aborting.as_ref(),
            None => None,
        }
    }

    /// Has its run aborted for this reason; no effect if the agent has no prompt.
    pub fn abort(&mut self, reason: String) {
        if let Some(prompted) = self.stage.prompted_mut() {
            prompted.aborting = Some(reason);
        }
    }

    /// The name of its present card.
    #[must_use]
    pub const fn card_kind(&self) -> crate::base::names::PostKind {
        card_kind(self.card.rolls)
    }

    /// Whether this is its message, or that of a prompt that was sent into its run.
    #[must_use]
    pub fn covers(&self, id: &TurnId) -> bool {
        self.id == *id || self.steered.iter().any(|steered| steered.turn == *id)
    }

    /// Message ids of all its prompts that the agent may have, newest last.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let steered = self.steered.iter().map(|steered| &steered.ids);
        let ids = self.stage.ids().into_iter().chain(steered);
        ids.map(|ids| ids.message.clone()).collect()
    }

    /// Message ids of the prompts that were sent into the run and that the agent has.
    #[must_use]
    pub fn further(&self) -> Vec<String> {
        let sent = self.steered.iter().filter(|steered| steered.sent);
        sent.map(|steered| steered.ids.message.clone()).collect()
    }
}

/// A prompt that was sent into the run of the turn before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Steered {
    /// The id of its message.
    pub turn: TurnId,
    /// The prompt and its author.
    pub prompt: Prompt,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// The person who wanted it sent at once.
    pub wanted_by: Person,
    /// Its ids at OpenCode, minted with this intent.
    pub ids: PromptIds,
    /// Its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// The agent has it.
    #[serde(default)]
    pub sent: bool,
    /// Its card says that it was sent.
    #[serde(default)]
    pub shown: bool,
}

/// An ended turn, as far as deduplication needs it. The rest is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndedTurn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// Its outcome.
    pub outcome: Outcome,
    /// When it ended.
    pub at_ms: Ms,
}

impl Turn {
    /// Model of the turn; `configured` is used for turns that began before models could be chosen.
    #[must_use]
    pub fn model<'a>(&'a self, configured: &'a str) -> &'a str {
        self.selection.model.as_deref().unwrap_or(configured)
    }
}
