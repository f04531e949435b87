//! Posts in a thread: prompts, answers, cards and questions.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of posts in a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatLimits {
    /// Characters of a prompt.
    pub prompt_chars: usize,
    /// Characters of an answer posted as messages; a longer one is posted as a file.
    pub answer_chars: usize,
    /// A question or permission request without an answer for this long counts as no.
    pub ask_ms: u64,
    /// Time between two edits of the card.
    pub card_edit_ms: u64,
    /// An older card is replaced by a new one: Discord caps edits of messages older than an hour (30046).
    pub card_roll_ms: u64,
}

/// How long a Discord interaction token can be used (Discord's documentation: 15 minutes), less a margin.
pub const REPLY_TOKEN_MS: u64 = 14 * MINUTE_MS;
/// Replacing cards more often than this would only be noise.
const MIN_CARD_ROLL_MS: u64 = 1_000;

impl ChatLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        prompt_chars: 100_000,
        answer_chars: 40_000,
        ask_ms: 30 * MINUTE_MS,
        card_edit_ms: 3_000,
        card_roll_ms: 50 * MINUTE_MS,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[(self.card_roll_ms >= MIN_CARD_ROLL_MS, "card_roll_ms must be at least 1000")])
    }
}

const _: () = assert!(ChatLimits::DEFAULT.card_roll_ms < 60 * MINUTE_MS);
