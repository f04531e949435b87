//! Names that make effects repeatable: sandbox names, wake-ups, prompt ids, post nonces.
//!
//! Every name is a pure function of what it names, so that a repeat after a crash finds the first attempt.

use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::base::ids::{AskId, Ms, SandboxKey, ThreadKey, TurnId, digest};

/// Hexadecimal digits of a secret's version.
const VERSION_DIGITS: usize = 16;
/// Digits of a [`short_name`]: it has room in a button's id.
const NAME_DIGITS: usize = 24;

/// The name of a sandbox in one generation: `bobbin-<stack>-<hash(key)>-g<generation>`.
///
/// Unique per Daytona organisation (reference: create answers 409 for a taken name, and that means "adopt").
#[must_use]
pub fn sandbox_name(stack: &str, key: &SandboxKey, generation: u32) -> String {
    format!("bobbin-{stack}-{}-g{generation}", key.thread().short_hash())
}

/// The name of a thread's wake-up within its stack's group of schedules: `idle-<hash(thread)>`, so that a later wake-up
/// replaces an earlier one.
#[must_use]
pub fn wake_name(thread: &ThreadKey) -> String {
    format!("idle-{}", thread.short_hash())
}

/// The id of the message that a wake-up sends. Different for every time, because the queue drops a second body with the
/// same content within five minutes.
#[must_use]
pub fn wake_message_id(thread: &ThreadKey, at_ms: Ms) -> String {
    format!("wake-{}-{at_ms}", thread.short_hash())
}

/// The password of a sandbox's OpenCode server: derived, so that nothing needs to be stored.
#[must_use]
pub fn sandbox_password(stack_key: &str, sandbox_name: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<Sha256>::new_from_slice(stack_key.as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(sandbox_name.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// Version of a secret's value: it differs for another value, or another stack's key. The value cannot be derived from
/// it, because nobody else has the stack's key.
#[must_use]
pub fn secret_version(stack_key: &str, variable: &str, value: &str) -> String {
    let digits = digest(&["secret-version", stack_key, variable, value]);
    format!("Made and renewed by Bobbin: {}", &digits[..VERSION_DIGITS])
}

/// The ids of a prompt at OpenCode, minted once when the intent is saved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PromptIds {
    /// The message's id, `msg_…`.
    pub message: String,
    /// Prefix of the part ids (`prt_…`); a part's index is appended.
    pub part: String,
}

impl PromptIds {
    /// Mints ids in OpenCode's ascending format (48 bits of time × 4096, then 14 characters): older versions order
    /// messages by id. The tail names tenant, thread and turn, because an id that is used again in another session
    /// overwrites the first (measured on 1.18.33).
    #[must_use]
    pub fn mint(thread: &ThreadKey, turn: &TurnId, now_ms: Ms) -> Self {
        let time = format!("{:012x}", (now_ms.wrapping_mul(0x1000)) & 0xffff_ffff_ffff);
        let tail = &digest(&["prompt", &thread.to_string(), turn])[..14];
        Self { message: format!("msg_{time}{tail}"), part: format!("prt_{time}{tail}") }
    }

    /// The id of the part with this index.
    #[must_use]
    pub fn part(&self, index: usize) -> String {
        format!("{}p{index}", self.part)
    }
}

/// The purpose of a post; together with the turn it names the post, so that it is never made twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostKind {
    /// The living progress card.
    Card,
    /// The card that replaced it when it had become too old to be edited, counted from 1.
    Rolled(u32),
    /// The line that mentions the requesters, if a turn ended without an answer.
    Call,
    /// One part of the answer, counted from 0.
    Chunk(u32),
    /// The question or permission request with this id.
    Ask(AskId),
    /// A short notice about the session (reset, sandbox deleted).
    Notice,
    /// What people are told before the agent has the prompt, named by its words: one turn may tell them several things.
    Told(String),
    /// A file that the agent left to be shown, counted from 0.
    Artifact(u32),
    /// The list of files that could not be shown.
    Unshown,
    /// The turn's file changes, as a file.
    Diff,
    /// What a pull request would publish.
    Review,
    /// The agent's review of a pull request.
    PullReview,
    /// The whole text of that, as a file.
    PullReviewText,
    /// The card of the thread's pull request.
    PullRequest,
    /// That the pull request has ended.
    PullRequestEnd,
    /// That somebody asked for a task below the pull request.
    PullRequestTask,
}

/// The name of a post: 24 hex digits (Discord's nonce has room for 25 characters; Slack carries it as metadata).
#[must_use]
pub fn post_key(thread: &ThreadKey, turn: &TurnId, kind: &PostKind) -> String {
    let kind = match kind {
        PostKind::Card => "card".to_owned(),
        PostKind::Rolled(n) => format!("card-{n}"),
        PostKind::Call => "call".to_owned(),
        PostKind::Chunk(n) => format!("chunk-{n}"),
        PostKind::Ask(id) => format!("ask-{id}"),
        PostKind::Notice => "notice".to_owned(),
        PostKind::Told(name) => format!("told-{name}"),
        PostKind::Artifact(n) => format!("artifact-{n}"),
        PostKind::Unshown => "unshown".to_owned(),
        PostKind::Diff => "diff".to_owned(),
        PostKind::Review => "review".to_owned(),
        PostKind::PullReview => "pull-review".to_owned(),
        PostKind::PullReviewText => "pull-review-text".to_owned(),
        PostKind::PullRequest => "pull-request".to_owned(),
        PostKind::PullRequestEnd => "pull-request-end".to_owned(),
        PostKind::PullRequestTask => "pull-request-task".to_owned(),
    };
    digest(&["post", &thread.to_string(), turn, &kind])[..24].to_owned()
}

/// A name made of these.
#[must_use]
pub fn short_name(parts: &[&str]) -> String {
    digest(parts)[..NAME_DIGITS].to_owned()
}

/// Whether it can be a [`short_name`].
#[must_use]
pub fn is_short_name(name: &str) -> bool {
    name.len() == NAME_DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_version_detects_changed_value() {
        let of = |value: &str| secret_version("stack-key", "OPENAI_API_KEY", value);
        assert_eq!(of("sk-one"), of("sk-one"));
        assert_ne!(of("sk-one"), of("sk-two"));
        assert_ne!(of("sk-one"), secret_version("another", "OPENAI_API_KEY", "sk-one"));
        assert!(!of("sk-one").contains("sk-one"));
    }

    #[test]
    fn names_are_distinct_and_fit_platforms() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::discord("1", "3").expect("valid");
        assert_ne!(sandbox_name("dev", &a.sandbox(), 1), sandbox_name("dev", &b.sandbox(), 1));
        assert_ne!(sandbox_name("dev", &a.sandbox(), 1), sandbox_name("dev", &a.sandbox(), 2));
        let nonce = post_key(&a, &"t".into(), &PostKind::Chunk(0));
        assert!(nonce.len() <= 25);
        assert_ne!(nonce, post_key(&a, &"t".into(), &PostKind::Chunk(1)));
    }

    #[test]
    fn thread_has_one_named_wake_up() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::slack("T1", "C1", "1700000000.000100").expect("valid");
        assert_eq!(wake_name(&a), wake_name(&a.clone()));
        assert_ne!(wake_name(&a), wake_name(&b));
        for name in [wake_name(&a), wake_name(&b)] {
            // The characters that EventBridge Scheduler accepts in a name.
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            assert!(name.len() <= 64 && name.bytes().all(fits), "{name}");
        }
        assert_ne!(wake_message_id(&a, 1), wake_message_id(&a, 2));
        assert_ne!(wake_message_id(&a, 1), wake_message_id(&b, 1));
    }

    #[test]
    fn prompt_ids_ascend_and_are_distinct() {
        let a = ThreadKey::discord("1", "2").expect("valid");
        let b = ThreadKey::discord("1", "3").expect("valid");
        let first = PromptIds::mint(&a, &"t1".into(), 1_795_294_965_124);
        let second = PromptIds::mint(&a, &"t2".into(), 1_795_294_965_125);
        assert!(first.message < second.message);
        assert!(first.message.starts_with("msg_") && first.part(0).starts_with("prt_"));
        assert_ne!(first, PromptIds::mint(&b, &"t1".into(), 1_795_294_965_124));
    }
}
