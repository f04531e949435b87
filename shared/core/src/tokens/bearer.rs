//! Signed token with which an agent that runs elsewhere uses the tools of a sandbox. It names the sandbox and its
//! generation, and is signed with the stack's key. It is not stored, and is valid as long as that generation is the
//! present one.

use crate::base::ids::SandboxKey;
use crate::tokens::signed::{TokenKind, part, text_of};

/// A sandbox's key has 128 bytes at most.
const SIGNING: TokenKind =
    TokenKind { prefix: "bobbin-tools", domain: "tools-bearer", bytes_max: 512 };

/// The sandbox whose tools may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The sandbox.
    pub sandbox: SandboxKey,
    /// The only generation that it is valid for.
    pub generation: u32,
}

impl Bearer {
    /// The text that is sent as `Authorization: Bearer …`.
    #[must_use]
    pub fn signed(&self, stack_key: &str) -> String {
        let sandbox = part(&self.sandbox.to_string());
        SIGNING.sign(stack_key, &[&sandbox, &self.generation.to_string()])
    }

    /// Reads and verifies such a token; `None` if this stack did not sign it. The tag is compared in constant time.
    #[must_use]
    pub fn read(stack_key: &str, text: &str) -> Option<Self> {
        let (sandbox, generation) = SIGNING.read(stack_key, text)?;
        Some(Self {
            sandbox: text_of(sandbox)?.parse().ok()?,
            generation: generation.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;

    fn bearer(generation: u32) -> Bearer {
        Bearer { sandbox: ThreadKey::discord("1", "2").expect("ids").sandbox(), generation }
    }

    #[test]
    fn only_signing_stack_reads_its_bearer() {
        let text = bearer(3).signed("stack-key");
        assert_eq!(Bearer::read("stack-key", &text), Some(bearer(3)));
        assert_eq!(Bearer::read("another", &text), None);
        let keyless = bearer(3).signed("");
        assert_eq!(Bearer::read("", &keyless), None, "anybody could sign it");
        // The characters that the header allows in a bearer token (RFC 6750, section 2.1).
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        assert!(text.starts_with("bobbin-tools.") && text.bytes().all(plain), "{text}");
    }

    #[test]
    fn altered_bearer_is_refused() {
        let text = bearer(3).signed("stack-key");
        let tag = text.rsplit_once('.').expect("a tag").1;
        let other = bearer(4).signed("stack-key");
        let named = other.rsplit_once('.').expect("a tag").0;
        assert_eq!(Bearer::read("stack-key", &format!("{named}.{tag}")), None);
        for wrong in ["", ".", "bobbin-tools.x.1.", &text[1..], &text[..text.len() - 2]] {
            assert_eq!(Bearer::read("stack-key", wrong), None, "{wrong}");
        }
        assert_eq!(Bearer::read("stack-key", &"a".repeat(100_000)), None);
    }
}
