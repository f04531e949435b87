//! Signed token with which the sandbox daemon asks the worker to poll its turn now.
//!
//! Promised: it names one turn of one thread, and says nothing of what happens in it. It is signed for that turn alone
//! with the stack's key. It is recognised by a digest stored with the polling state, so that its receiver needs no key.
//! All that it can do is in [`crate::records::parked::Parked::forward`].

use crate::base::ids::{ThreadKey, TurnId, digest};
use crate::base::secret::Secret;
use crate::tokens::signed::{TokenKind, part, text_of};

/// Path at which ingress accepts it.
pub const PATH: &str = "/nudge";

const SIGNING: TokenKind =
    TokenKind { prefix: "bobbin-nudge", domain: "turn-nudge", bytes_max: 1024 };

/// The turn whose next poll may be brought forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NudgeToken {
    /// Its thread.
    pub thread: ThreadKey,
    /// The only turn that it is valid for.
    pub turn: TurnId,
}

impl NudgeToken {
    /// The text that is sent as `Authorization: Bearer …`.
    #[must_use]
    pub fn signed(&self, stack_key: &str) -> Secret {
        let (thread, turn) = (part(&self.thread.to_string()), part(self.turn.as_str()));
        SIGNING.sign(stack_key, &[&thread, &turn]).into()
    }

    /// Digest by which the token is recognised; the token cannot be derived from it.
    #[must_use]
    pub fn mark(&self, stack_key: &str) -> String {
        mark_of(self.signed(stack_key).expose())
    }

    /// Reads the claims without verifying them; `None` if malformed. Only [`mark_of`] tells whether the token is
    /// genuine.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (thread, turn) = SIGNING.parts(text)?;
        Some(Self { thread: text_of(thread)?.parse().ok()?, turn: text_of(turn)?.into() })
    }
}

/// One-way digest of the token, safe to store.
#[must_use]
pub fn mark_of(text: &str) -> String {
    digest(&["turn-nudge-mark", text])
}

/// What the daemon gets with a prompt. `Debug` shows no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nudge {
    /// The URL to send it to.
    pub url: String,
    /// The token.
    pub token: Secret,
}

impl Nudge {
    /// The nudge for the turn whose message waits for the run; `None` if no URL is known.
    #[must_use]
    pub fn of(url: &str, stack_key: &str, thread: &ThreadKey, turn: &TurnId) -> Option<Self> {
        let token = || NudgeToken { thread: thread.clone(), turn: turn.clone() };
        (!url.is_empty()).then(|| Self { url: url.to_owned(), token: token().signed(stack_key) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::bearer::Bearer;

    fn token(turn: &str) -> NudgeToken {
        NudgeToken {
            thread: ThreadKey::slack("T1", "C1", "1700000000.000100").expect("ids"),
            turn: turn.into(),
        }
    }

    #[test]
    fn nudge_mark_cannot_be_forged() {
        let signed = token("slack-Ev.1").signed("stack-key");
        let text = signed.expose();
        assert_eq!(NudgeToken::read(text), Some(token("slack-Ev.1")));
        assert_eq!(mark_of(text), token("slack-Ev.1").mark("stack-key"));
        // The characters that the header allows in a bearer token (RFC 6750, section 2.1).
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        assert!(text.starts_with("bobbin-nudge.") && text.bytes().all(plain), "{text}");
        let tag = text.rsplit_once('.').expect("a tag").1;
        let other = token("slack-Ev2").signed("stack-key");
        let named = other.expose().rsplit_once('.').expect("a tag").0;
        let forged = format!("{named}.{tag}");
        assert_eq!(NudgeToken::read(&forged), Some(token("slack-Ev2")));
        for mark in [mark_of(&forged), token("slack-Ev2").mark("another"), mark_of(text)] {
            assert_ne!(mark, token("slack-Ev2").mark("stack-key"));
        }
        for wrong in ["", ".", "bobbin-nudge.x.1.", &"a".repeat(100_000)] {
            assert_eq!(NudgeToken::read(wrong), None);
        }
    }

    #[test]
    fn nudge_and_bearer_are_not_interchangeable() {
        let bearer = Bearer { sandbox: token("1").thread.sandbox(), generation: 1 };
        let bearer = bearer.signed("stack-key");
        assert_eq!(NudgeToken::read(&bearer), None);
        let given = Nudge::of("https://x/nudge", "stack-key", &token("1").thread, &"1".into());
        let given = given.expect("an address");
        assert_eq!(Bearer::read("stack-key", given.token.expose()), None);
        assert!(!format!("{given:?}").contains("bobbin-nudge."), "{given:?}");
        let nowhere = Nudge::of("", "stack-key", &token("1").thread, &"1".into());
        assert_eq!(nowhere, None);
    }
}
