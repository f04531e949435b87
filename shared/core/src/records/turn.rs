//! A turn: a prompt from its acceptance to its end.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, PromptIds, TurnId};
use crate::base::limits::PollLimits;
use crate::base::person::Person;
use crate::records::ask::Ask;
use crate::records::card::card_kind;
use crate::records::message::Prompt;
use crate::records::outcome::Outcome;
use crate::records::stage::{Prompted, Stage};
use crate::tenant::selection::Selection;

/// A prompt from acceptance to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// Who asked for it.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What it runs with: judged once, so that every delivery goes on with the same.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
    /// How far it is, with what belongs to that stage.
    pub stage: Stage,
    /// Its card in the thread.
    #[serde(default)]
    pub card: CardPlace,
    /// Questions and permissions of this turn.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// What has been tried for it, each within a bound.
    #[serde(default)]
    pub tries: Tries,
    /// Since when what it needs has not answered at all.
    #[serde(default)]
    pub outages: Outages,
    /// A delivery has the turn in hand. Still so when the next one comes: that one never gave its message back, unless it
    /// left a word that it did ([`Parked`]), as those do that only poll the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_hand: bool,
    /// Its message was given back to wait for somebody else who works with the sandbox, and not because something failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Who pressed Stop, once that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Person>,
    /// What went wrong last, for the report when it keeps going wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Prompts that waited behind this turn and were sent into its run, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Steered>,
}

/// A turn's card in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CardPlace {
    /// Where the present one stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PostRef>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<Ms>,
    /// How often a new card took the place of one that had become too old.
    #[serde(default)]
    pub rolls: u32,
    /// The card before the present one, until it says where it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<PostRef>,
}

/// What has been tried for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tries {
    /// Deliveries of the message that failed.
    #[serde(default)]
    pub attempts: u32,
    /// Times that the chat refused to be told the end.
    #[serde(default)]
    pub refusals: u32,
    /// Restarts of the agent's server.
    #[serde(default)]
    pub server_restarts: u32,
}

/// Outages that a turn waits out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Outages {
    /// Since when the provider has not answered at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_since_ms: Option<Ms>,
    /// The same of the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_since_ms: Option<Ms>,
}

impl Turn {
    /// Whether its run has gone on for so long that nobody holds it any more, or was let go of.
    #[must_use]
    pub fn is_only_looked_at(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        self.stage.is_running() && !self.is_wanted_over() && !self.is_held(limits, now_ms)
    }

    /// Whether the time for which its run is held goes on, and nobody has let go of it.
    #[must_use]
    pub fn is_held(&self, limits: &PollLimits, now_ms: Ms) -> bool {
        let held =
            |prompted: &Prompted| !prompted.let_go && now_ms < limits.held_until(prompted.at_ms);
        self.stage.prompted().is_some_and(held)
    }

    /// Whether somebody, or a bound, wants its run to end.
    #[must_use]
    pub const fn is_wanted_over(&self) -> bool {
        self.cancelled_by.is_some() || self.aborting().is_some()
    }

    /// Why Bobbin aborts its run, if it does.
    #[must_use]
    pub const fn aborting(&self) -> Option<&String> {
        match self.stage.prompted() {
            Some(prompted) => prompted.aborting.as_ref(),
            None => None,
        }
    }

    /// Has its run aborted for this reason; nothing where the agent has no prompt.
    pub fn abort(&mut self, reason: String) {
        if let Some(prompted) = self.stage.prompted_mut() {
            prompted.aborting = Some(reason);
        }
    }

    /// What its present card is called.
    #[must_use]
    pub const fn card_kind(&self) -> crate::base::ids::PostKind {
        card_kind(self.card.rolls)
    }

    /// Whether this is its message, or that of a prompt that was sent into it.
    #[must_use]
    pub fn covers(&self, id: &TurnId) -> bool {
        self.id == *id || self.steered.iter().any(|steered| steered.turn == *id)
    }

    /// Message ids of all its prompts that the agent may have, the newest last.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let steered = self.steered.iter().map(|steered| &steered.ids);
        let ids = self.stage.ids().into_iter().chain(steered);
        ids.map(|ids| ids.message.clone()).collect()
    }

    /// Message ids of the prompts that were sent into the run, as far as the agent has them.
    #[must_use]
    pub fn further(&self) -> Vec<String> {
        let sent = self.steered.iter().filter(|steered| steered.sent);
        sent.map(|steered| steered.ids.message.clone()).collect()
    }
}

/// A prompt that was sent into the run of the turn before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Steered {
    /// The id of the message that asked for it.
    pub turn: TurnId,
    /// What was asked, and by whom.
    pub prompt: Prompt,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// Who wanted it sent at once.
    pub wanted_by: Person,
    /// Its ids at OpenCode, minted with this intent.
    pub ids: PromptIds,
    /// Where its card stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// The agent has it.
    #[serde(default)]
    pub sent: bool,
    /// Its card says that it was sent.
    #[serde(default)]
    pub shown: bool,
}

/// A turn that has ended, as far as a repeat needs it. The rest is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndedTurn {
    /// The id of the message that it began with.
    pub id: TurnId,
    /// How the turn ended.
    pub outcome: Outcome,
    /// When that was.
    pub at_ms: Ms,
}

impl Turn {
    /// The model that it runs with; `configured` counts for turns that began before models could be chosen.
    #[must_use]
    pub fn model<'a>(&'a self, configured: &'a str) -> &'a str {
        self.selection.model.as_deref().unwrap_or(configured)
    }
}
