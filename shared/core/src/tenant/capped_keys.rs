//! Capped keys: model keys of single sandboxes, each with a limit of money and an end at its vendor. If a budget is
//! set, they bound spending at the vendor, which counts it.
//!
//! The key itself is never stored. Its name tells its sandbox and generation, and Bobbin finds it by that name. Names
//! need not be unique at the vendor, and a key is shown only once, so a lost key is deleted, never recovered. A limit
//! is set once per turn; the name says for which turn.

use std::fmt;

use crate::base::ids::{Ms, SandboxKey, TurnId, digest};
use crate::tenant::budgets::MicroUsd;

/// How long a key opens anything.
pub const LIFE_MS: u64 = 24 * 3_600_000;

/// Hexadecimal digits of a turn in a name.
const TURN_DIGITS: usize = 12;
/// In the name of a key that has the limit with which it was made.
const NO_TURN: &str = "0";

/// What a capped key may spend from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyLimit {
    /// At most this.
    Dollars(MicroUsd),
    /// No limit: the budget was removed.
    Unlimited,
}

/// The name of a key at its vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CappedKeyName {
    /// The sandbox whose server has the key.
    pub sandbox: SandboxKey,
    /// The sandbox's generation.
    pub generation: u32,
    /// When the key was made.
    pub made_ms: Ms,
    /// Identifies the turn for which its limit was given last.
    turn: String,
}

/// Beginning of the names of all keys of the stack with this id.
#[must_use]
pub fn prefix(stack_id: &str) -> String {
    format!("bobbin {stack_id} ")
}

impl CappedKeyName {
    /// The name of a new key.
    #[must_use]
    pub fn new(sandbox: &SandboxKey, generation: u32, made_ms: Ms) -> Self {
        Self { sandbox: sandbox.clone(), generation, made_ms, turn: NO_TURN.to_owned() }
    }

    /// The name after a limit was given for this turn.
    #[must_use]
    pub fn with_limit_for(&self, turn: &TurnId) -> Self {
        Self { turn: mark(turn), ..self.clone() }
    }

    /// Whether the limit was given for this turn already.
    #[must_use]
    pub fn has_limit_for(&self, turn: &TurnId) -> bool {
        self.turn == mark(turn)
    }

    /// When the key ends by itself.
    #[must_use]
    pub const fn until_ms(&self) -> Ms {
        self.made_ms.saturating_add(LIFE_MS)
    }

    /// As the vendor keeps it, for the stack with this id.
    #[must_use]
    pub fn text(&self, stack_id: &str) -> String {
        format!("{}{self}", prefix(stack_id))
    }

    /// Reads the name of a key; `None` if it is not one of the stack with this id.
    #[must_use]
    pub fn parse(stack_id: &str, text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(&prefix(stack_id))?.splitn(4, ' ');
        let mut next = |before: &str| parts.next()?.strip_prefix(before);
        let (generation, made_ms) = (next("g")?.parse().ok()?, next("m")?.parse().ok()?);
        let turn = next("t")?.to_owned();
        Some(Self { sandbox: next("")?.parse().ok()?, generation, made_ms, turn })
    }
}

impl fmt::Display for CappedKeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sandbox, generation, made_ms, turn } = self;
        write!(f, "g{generation} m{made_ms} t{turn} {sandbox}")
    }
}

fn mark(turn: &TurnId) -> String {
    digest(&["capped", turn])[..TURN_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;

    #[test]
    fn a_name_says_whose_key_it_is() {
        let threads = [
            ThreadKey::discord("1", "2"),
            ThreadKey::slack("T1", "C1", "1.2"),
            ThreadKey::slack_direct("T1", "U1"),
        ];
        for thread in threads {
            let sandbox = thread.expect("valid").sandbox();
            let name = CappedKeyName::new(&sandbox, 3, 1_700_000_000_000);
            let text = name.text("9f2c-a");
            assert_eq!(CappedKeyName::parse("9f2c-a", &text), Some(name));
            assert_eq!(CappedKeyName::parse("9f2c", &text), None, "of another stack");
        }
        for foreign in
            ["", "mine", "bobbin 9f2c-a", "bobbin 9f2c-a g1 m2 t0 x", "bobbin 9f2c-a g m t"]
        {
            assert_eq!(CappedKeyName::parse("9f2c-a", foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_limit_is_given_once_a_turn() {
        let (one, other) = (TurnId::from("m1"), TurnId::from("m2"));
        let sandbox = ThreadKey::discord("1", "2").expect("valid").sandbox();
        let made = CappedKeyName::new(&sandbox, 1, 5);
        assert!(!made.has_limit_for(&one));
        let given = made.with_limit_for(&one);
        assert!(given.has_limit_for(&one) && !given.has_limit_for(&other));
        assert_eq!((given.made_ms, given.until_ms()), (5, 5 + LIFE_MS));
    }
}
