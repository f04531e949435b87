//! What a thread has not been told, because it could not be written in: kept on its record until it can.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostKind, PostRef, TurnId};
use crate::records::card::{Card, CardState, Post};
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// Bytes that one takes in a record besides its words, generously.
const BYTES: usize = 512;

/// A post that a thread has not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Untold {
    /// The turn, or the message, that it belongs to.
    pub turn: TurnId,
    /// What it is for: with thread and turn it is the nonce.
    pub kind: PostKind,
    /// Since when it could not be said.
    pub since_ms: Ms,
    /// The platform's ids of who is called by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
    /// What it says.
    #[serde(flatten)]
    pub said: Said,
}

/// What such a post says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// A part of an answer.
    Part {
        /// The words, already within the platform's limit.
        text: String,
        /// The last part.
        #[serde(default)]
        last: bool,
    },
    /// A word about the session.
    Word {
        /// The words.
        text: String,
    },
    /// A card, which looks as if its turn were under way.
    Card {
        /// Where it stands; none: there is none yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<PostRef>,
        /// How the turn ended.
        outcome: Outcome,
        /// What it took.
        usage: Usage,
        /// Model of the agent, as provider/model.
        model: String,
        /// When the turn was accepted.
        accepted_at_ms: Ms,
    },
}

impl Untold {
    /// What is posted, or edited where it stands.
    #[must_use]
    pub fn post(&self) -> Post {
        let post = match &self.said {
            Said::Part { text, last } => {
                Post::Chunk { text: text.clone(), last: *last, file: None, card: None }
            }
            Said::Word { text } => Post::Notice(text.clone()),
            Said::Card { outcome, usage, model, accepted_at_ms, .. } => {
                let state = CardState::Ended { outcome: outcome.clone(), usage: *usage };
                let ended_ms = self.since_ms;
                Post::Card(Card::new(&self.turn, state, *accepted_at_ms, ended_ms, model))
            }
        };
        if self.people.is_empty() {
            return post;
        }
        Post::Calling { people: self.people.clone(), post: Box::new(post) }
    }

    /// Where it stands already, if it does.
    #[must_use]
    pub const fn at(&self) -> Option<&PostRef> {
        match &self.said {
            Said::Card { at, .. } => at.as_ref(),
            Said::Part { .. } | Said::Word { .. } => None,
        }
    }

    /// Bytes that it takes in a record, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        BYTES
            + match &self.said {
                Said::Part { text, .. } | Said::Word { text } => text.len(),
                Said::Card { outcome, .. } => match outcome {
                    Outcome::Failed { reason } => reason.len(),
                    _ => 0,
                },
            }
    }
}
