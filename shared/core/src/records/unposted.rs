//! Posts that a thread was not sent because it could not be written in; kept on its record until it can.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, TurnId};
use crate::base::names::PostKind;
use crate::records::card::{Card, CardState, Post};
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// Generous estimate of the bytes that one takes in a record besides its text.
const BYTES: usize = 512;

/// A post that the thread does not have yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UnpostedPost {
    /// The turn or message that it belongs to.
    pub turn: TurnId,
    /// Its purpose; with thread and turn it is the nonce.
    pub kind: PostKind,
    /// When it could not be posted first.
    pub since_ms: Ms,
    /// Platform ids of the people that it mentions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
    /// Its content.
    #[serde(flatten)]
    pub said: Said,
}

/// Content of such a post.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// A part of an answer.
    Part {
        /// The text, already within the platform's limit.
        text: String,
        /// The last part.
        #[serde(default)]
        last: bool,
    },
    /// A notice about the session.
    Word {
        /// The text.
        text: String,
    },
    /// A card that still looks as if its turn were under way.
    Card {
        /// Where it is posted; `None` if it does not exist yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<PostRef>,
        /// Outcome of the turn.
        outcome: Outcome,
        /// Usage of the turn.
        usage: Usage,
        /// Model of the agent, as provider/model.
        model: String,
        /// When the turn was accepted.
        accepted_at_ms: Ms,
    },
}

impl UnpostedPost {
    /// The post to create or edit.
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

    /// Where it is already posted, if it is.
    #[must_use]
    pub const fn at(&self) -> Option<&PostRef> {
        match &self.said {
            Said::Card { at, .. } => at.as_ref(),
            Said::Part { .. } | Said::Word { .. } => None,
        }
    }

    /// Approximate bytes that it takes in a record.
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
