//! The ledger: one item per turn, beside the record, kept for a month.
//!
//! It holds what the record is too small for: what was asked and answered (in brief), the usage, and where the posts
//! are. An entry is written in the same transaction as the record that closes its turn, so neither is ever without the
//! other.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, TurnId};
use crate::base::person::Person;
use crate::records::message::Prompt;
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;
use crate::tenant::selection::Selection;
use crate::text::{one_line, shorten, units};

/// Characters (UTF-16 units) of a prompt or an answer that an entry keeps.
pub const BRIEF_UNITS_MAX: usize = 240;
/// Entries of a digest.
pub const DIGEST_ENTRIES_MAX: usize = 40;
/// Characters (UTF-16 units) of one entry in a digest.
pub const DIGEST_ENTRY_UNITS_MAX: usize = 500;
/// Characters (UTF-16 units) of a whole digest.
pub const DIGEST_UNITS_MAX: usize = 6_000;
/// Bytes of a prompt that an entry keeps whole, so that it can be run again: an item holds 400 KB.
const AGAIN_BYTES_MAX: usize = 300_000;

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The id of the message that the turn began with.
    pub turn: TurnId,
    /// The requester.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// When its end was recorded.
    pub ended_at_ms: Ms,
    /// Answered, failed, cancelled or lost, with the reason.
    pub outcome: Outcome,
    /// Usage: time, tokens and money.
    #[serde(default)]
    pub usage: Usage,
    /// Selection of the turn.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
    /// Beginning of the prompt, on one line.
    pub asked: String,
    /// Beginning of the answer, on one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answered: String,
    /// Its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<PostRef>,
    /// How often a new card replaced an earlier one.
    #[serde(default)]
    pub rolls: u32,
    /// The parts of its answer, in order.
    #[serde(default)]
    pub posted: Vec<PostRef>,
    /// The whole prompt, kept only if a person may want to run it again: the turn was lost or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Prompt>,
    /// File changes as one patch. Written with the entry as an item of its own, so that reading entries stays cheap.
    #[serde(skip)]
    pub patch: Option<String>,
}

impl LedgerEntry {
    /// Milliseconds from acceptance to end.
    #[must_use]
    pub const fn took_ms(&self) -> u64 {
        self.ended_at_ms.saturating_sub(self.accepted_at_ms)
    }
}

/// The beginning of a text, on one line.
#[must_use]
pub fn brief(text: &str) -> String {
    shorten(&one_line(text), BRIEF_UNITS_MAX)
}

/// The prompt as an entry keeps it: without the addresses of files, which will have expired by the time it is used.
/// `None` if it is too long to be kept.
#[must_use]
pub fn kept(prompt: &Prompt) -> Option<Prompt> {
    (prompt.text.len() <= AGAIN_BYTES_MAX)
        .then(|| Prompt { attachments: Vec::new(), ..prompt.clone() })
}

/// The digest of the thread for a new agent session; empty if there is nothing. The newest entries win.
#[must_use]
pub fn digest(entries: &[LedgerEntry]) -> String {
    const HEAD: &str = "This thread's conversation began in another sandbox, and files from there may be gone. Questions and answers so far, oldest first and shortened:";
    let mut newest: Vec<&LedgerEntry> = entries.iter().collect();
    newest.sort_by_key(|entry| std::cmp::Reverse(entry.ended_at_ms));
    let mut room = DIGEST_UNITS_MAX - units(HEAD) - 1;
    let mut lines = Vec::new();
    for entry in newest.into_iter().take(DIGEST_ENTRIES_MAX) {
        let line = shorten(&line(entry), DIGEST_ENTRY_UNITS_MAX);
        let Some(left) = room.checked_sub(units(&line) + 1) else {
            break;
        };
        room = left;
        lines.push(line);
    }
    if lines.is_empty() {
        return String::new();
    }
    lines.push(HEAD.to_owned());
    lines.reverse();
    lines.join("\n")
}

fn line(entry: &LedgerEntry) -> String {
    let end = match &entry.outcome {
        Outcome::Answered if entry.answered.is_empty() => "answered without text".to_owned(),
        Outcome::Answered => format!("answered: {}", entry.answered),
        Outcome::Joined { .. } => "answered together with the one before it".to_owned(),
        Outcome::Failed { .. } => "this failed".to_owned(),
        Outcome::OverBudget { .. } => "this was stopped by a budget".to_owned(),
        Outcome::Cancelled { .. } => "this was stopped".to_owned(),
        Outcome::Lost => "this was cut off when its sandbox vanished".to_owned(),
    };
    format!("- {} asked: {} | {end}", entry.by.name, entry.asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u64, asked: &str, answered: &str) -> LedgerEntry {
        LedgerEntry {
            turn: format!("t{n}").into(),
            by: Person { id: "1".to_owned(), name: "Ada".to_owned() },
            accepted_at_ms: n,
            ended_at_ms: n,
            outcome: Outcome::Answered,
            usage: Usage::default(),
            selection: Selection::default(),
            asked: brief(asked),
            answered: brief(answered),
            card: None,
            rolls: 0,
            posted: Vec::new(),
            again: None,
            patch: None,
        }
    }

    #[test]
    fn digest_lists_entries_oldest_first() {
        let lost = LedgerEntry { outcome: Outcome::Lost, ..entry(2, "add\na test", "") };
        assert_eq!(
            digest(&[lost, entry(1, "what is here?", "A parser.")]),
            "This thread's conversation began in another sandbox, and files from there may be gone. Questions and answers so far, oldest first and shortened:\n- Ada asked: what is here? | answered: A parser.\n- Ada asked: add a test | this was cut off when its sandbox vanished"
        );
        assert_eq!(digest(&[]), "");
    }

    #[test]
    fn digest_is_bounded_keeping_newest() {
        let many: Vec<LedgerEntry> =
            (0..200).map(|n| entry(n, &"ä".repeat(9_000), &"ö".repeat(9_000))).collect();
        let told = digest(&many);
        assert!(crate::text::units(&told) <= DIGEST_UNITS_MAX);
        assert!(
            told.lines().skip(1).all(|line| crate::text::units(line) <= DIGEST_ENTRY_UNITS_MAX)
        );
        let short: Vec<LedgerEntry> = (0..200).map(|n| entry(n, &format!("q{n}"), "a")).collect();
        let told = digest(&short);
        assert_eq!(told.lines().count(), DIGEST_ENTRIES_MAX + 1);
        assert!(told.contains("q199") && told.contains("q160") && !told.contains("q159"));
    }

    #[test]
    fn kept_prompt_is_small_without_addresses() {
        let prompt = Prompt {
            text: "x".to_owned(),
            by: Person::default(),
            attachments: vec![crate::records::message::Attachment {
                name: "a".to_owned(),
                url: "https://files.example/secret".to_owned(),
                size: 1,
                media_type: None,
            }],
            ..Prompt::default()
        };
        assert_eq!(kept(&prompt).expect("small").attachments, Vec::new());
        let huge = Prompt { text: "x".repeat(AGAIN_BYTES_MAX + 1), ..prompt };
        assert_eq!(kept(&huge), None);
    }
}
