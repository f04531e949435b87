//! Texts that this stack signs with its own key, each kind for one purpose: `PREFIX.PART.….TAG`, of what a bearer may be made
//! (RFC 6750, section 2.1). Nothing is stored of one.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base::ids::digest;

/// A kind of such texts.
pub(crate) struct Signing {
    /// By which somebody who finds one knows what it is.
    pub(crate) prefix: &'static str,
    /// What it is for: no text of one kind counts as one of another.
    pub(crate) domain: &'static str,
    /// The longest, in bytes.
    pub(crate) bytes_max: usize,
}

impl Signing {
    /// The text of these parts, none of which has a dot in it.
    pub(crate) fn sign(&self, stack_key: &str, parts: &[&str]) -> String {
        let named = format!("{}.{}", self.prefix, parts.join("."));
        let tag = self.tag(stack_key, &named).finalize().into_bytes();
        format!("{named}.{}", hex::encode(tag))
    }

    /// The two parts of such a text; none where this stack did not sign it, or has no key, with which anybody could sign. The
    /// tag is compared in constant time.
    pub(crate) fn read<'t>(&self, stack_key: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
        let parts = self.parts(text).filter(|_| !stack_key.is_empty())?;
        let (named, signature) = text.rsplit_once('.')?;
        let signature = hex::decode(signature).ok()?;
        self.tag(stack_key, named).verify_slice(&signature).ok()?;
        Some(parts)
    }

    /// The two parts of a text that looks like one, whoever made it.
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

/// A part that may hold any character.
pub(crate) fn part(text: &str) -> String {
    hex::encode(text)
}

/// What such a part holds.
pub(crate) fn text_of(part: &str) -> Option<String> {
    String::from_utf8(hex::decode(part).ok()?).ok()
}
