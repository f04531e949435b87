//! Tokens that this stack signs with its own key, each kind for one purpose: `PREFIX.PART.….TAG`, in characters that a
//! bearer token may have (RFC 6750, section 2.1). They are not stored.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base::ids::digest;

/// A kind of token.
pub(crate) struct TokenKind {
    /// Prefix that tells a finder what the token is.
    pub(crate) prefix: &'static str,
    /// The purpose: no token of one kind is valid as one of another.
    pub(crate) domain: &'static str,
    /// Longest token, in bytes.
    pub(crate) bytes_max: usize,
}

impl TokenKind {
    /// The token with these parts, none of which contains a dot.
    pub(crate) fn sign(&self, stack_key: &str, parts: &[&str]) -> String {
        let named = format!("{}.{}", self.prefix, parts.join("."));
        let tag = self.tag(stack_key, &named).finalize().into_bytes();
        format!("{named}.{}", hex::encode(tag))
    }

    /// The two parts of a token. `None` if this stack did not sign it, or has no key, because then anybody could sign.
    /// The tag is compared in constant time.
    pub(crate) fn read<'t>(&self, stack_key: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
        let parts = self.parts(text).filter(|_| !stack_key.is_empty())?;
        let (named, signature) = text.rsplit_once('.')?;
        let signature = hex::decode(signature).ok()?;
        self.tag(stack_key, named).verify_slice(&signature).ok()?;
        Some(parts)
    }

    /// The two parts of a text in the form of a token, whoever made it.
    pub(crate) fn parts<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        let text = (text.len() <= self.bytes_max).then_some(text)?;
        let (named, _) = text.rsplit_once('.')?;
        let parts = named.strip_prefix(self.prefix)?.strip_prefix('.')?;
        parts.split_once('.')
    }

    fn tag(&self, stack_key: &str, named: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(stack_key.as_bytes())
            .expect("HMAC takes a key of any length");
        mac.update(digest(&[self.domain, named]).as_bytes());
        mac
    }
}

/// Encodes a part that may hold any character.
pub(crate) fn part(text: &str) -> String {
    hex::encode(text)
}

/// Decodes such a part.
pub(crate) fn text_of(part: &str) -> Option<String> {
    String::from_utf8(hex::decode(part).ok()?).ok()
}
