//! What lets an agent that runs elsewhere use the tools of a sandbox: a text that names the sandbox and its generation, signed
//! with the stack's key. Nothing is stored of it: it counts for as long as that generation is the present one.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ids::{SandboxKey, digest};

/// By which somebody who finds one knows what it is.
const PREFIX: &str = "bobbin-tools";
/// Bytes of one: a key of a sandbox has 128 at the most.
const BYTES_MAX: usize = 512;

/// Whose tools may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The sandbox.
    pub sandbox: SandboxKey,
    /// The generation of it that this is for, and for no other.
    pub generation: u32,
}

impl Bearer {
    /// The text that is sent as `Authorization: Bearer …`.
    #[must_use]
    pub fn signed(&self, stack_key: &str) -> String {
        let named = format!(
            "{PREFIX}.{}.{}",
            hex::encode(self.sandbox.to_string()),
            self.generation
        );
        let tag = tag(stack_key, &named).finalize().into_bytes();
        format!("{named}.{}", hex::encode(tag))
    }

    /// Reads such a text; none where this stack did not sign it. The tag is compared in constant time.
    #[must_use]
    pub fn read(stack_key: &str, text: &str) -> Option<Self> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let (named, signature) = text.rsplit_once('.')?;
        let signature = hex::decode(signature).ok()?;
        tag(stack_key, named).verify_slice(&signature).ok()?;
        let (sandbox, generation) = named
            .strip_prefix(PREFIX)?
            .strip_prefix('.')?
            .split_once('.')?;
        let sandbox = String::from_utf8(hex::decode(sandbox).ok()?).ok()?;
        Some(Self {
            sandbox: sandbox.parse().ok()?,
            generation: generation.parse().ok()?,
        })
    }
}

fn tag(stack_key: &str, named: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(stack_key.as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(digest(&["tools-bearer", named]).as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadKey;

    fn bearer(generation: u32) -> Bearer {
        Bearer {
            sandbox: ThreadKey::discord("1", "2").expect("ids").sandbox(),
            generation,
        }
    }

    #[test]
    fn a_bearer_is_read_by_the_stack_that_signed_it_and_says_which_generation_it_is_for() {
        let text = bearer(3).signed("stack-key");
        assert_eq!(Bearer::read("stack-key", &text), Some(bearer(3)));
        assert_eq!(Bearer::read("another", &text), None);
        // What the header takes of a bearer (RFC 6750, section 2.1).
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        assert!(
            text.starts_with("bobbin-tools.") && text.bytes().all(plain),
            "{text}"
        );
    }

    #[test]
    fn nothing_of_a_bearer_can_be_changed() {
        let text = bearer(3).signed("stack-key");
        let tag = text.rsplit_once('.').expect("a tag").1;
        let other = bearer(4).signed("stack-key");
        let named = other.rsplit_once('.').expect("a tag").0;
        assert_eq!(Bearer::read("stack-key", &format!("{named}.{tag}")), None);
        for wrong in [
            "",
            ".",
            "bobbin-tools.x.1.",
            &text[1..],
            &text[..text.len() - 2],
        ] {
            assert_eq!(Bearer::read("stack-key", wrong), None, "{wrong}");
        }
        assert_eq!(Bearer::read("stack-key", &"a".repeat(100_000)), None);
    }
}
