//! A tenant's own keys: a server or workspace pays for its sandboxes or models itself.
//!
//! A key is stored sealed: the record of settings has only a ciphertext, which can be opened only for this stack, this
//! tenant and this provider ([`sealed_for`]). It is entered through a link that works once
//! ([`super::setup_link::SetupLink`]), and is used from the time at which its provider has accepted it. Deliberately
//! absent: the value, which is in none of these types.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::base::ids::{Ms, Tenant, digest};
use crate::base::person::Person;
use crate::tenant::keys::Key;
use crate::text::span;

/// Bytes of a key; the longest known one has 164. KMS encrypts 4,096 by itself.
pub const KEY_BYTES_MAX: usize = 512;
/// A shorter text is no provider's key.
const KEY_BYTES_MIN: usize = 8;
/// Hexadecimal digits of a fingerprint, for people to tell two keys apart.
const FINGERPRINT_DIGITS: usize = 12;

/// A key that a tenant has stored and its provider has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnKey {
    /// The value sealed by KMS, in base64.
    pub sealed: String,
    /// Distinguishes it from other keys ([`fingerprint`]).
    pub fingerprint: String,
    /// The provider's last verdict on it.
    pub state: KeyState,
    /// The person who entered it, for the list of keys.
    pub by: Person,
    /// When they entered it (Unix milliseconds).
    pub since_ms: Ms,
    /// When its provider was last asked about it.
    pub checked_at_ms: Ms,
}

/// State of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// Its provider accepts it.
    Valid,
    /// Its provider no longer accepts it.
    Refused,
    /// It cannot be unsealed: the item is damaged, or was copied from elsewhere.
    Unreadable,
}

impl KeyState {
    const fn words(self) -> &'static str {
        match self {
            Self::Valid => "is in use",
            Self::Refused => "is refused by the provider: store another one",
            Self::Unreadable => "cannot be unsealed: store it again",
        }
    }
}

/// Requests about the keys of a server or workspace. A provider is named by its word ([`Key::provider`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum OwnKeyRequest {
    /// Show the keys, and what their providers say about them.
    Show,
    /// Send a link for entering a key.
    Enter {
        /// The key's provider.
        provider: String,
    },
    /// Forget the stored key; the stack's own is used again.
    Remove {
        /// The key's provider.
        provider: String,
    },
    /// A key was entered: try it.
    Check {
        /// The link through which it was entered ([`super::setup_link::link_id`]).
        link: String,
    },
}

/// KMS's encryption context, to which a sealed value is bound. It is written in clear text to the account's log of
/// calls, so it contains nothing of a value.
#[must_use]
pub fn sealed_for(stack: &str, tenant: &Tenant, key: Key) -> BTreeMap<String, String> {
    seal_context(stack, tenant, key.provider().unwrap_or_else(|| key.name()))
}

/// The context of everything that is sealed for a tenant: values of one kind do not open as another.
pub(super) fn seal_context(stack: &str, tenant: &Tenant, kind: &str) -> BTreeMap<String, String> {
    [("stack", stack), ("tenant", tenant.as_str()), ("kind", kind)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Distinguishes a key from others, without revealing anything of it to anybody without the stack's key.
#[must_use]
pub fn fingerprint(stack_key: &str, key: Key, value: &str) -> String {
    let mut digits = keyed(stack_key, &["own-key", key.name(), value]);
    digits.truncate(FINGERPRINT_DIGITS);
    digits
}

pub(super) fn keyed(stack_key: &str, parts: &[&str]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(stack_key.as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(digest(parts).as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// The typed text without surrounding white space, if it can be a key at all.
#[must_use]
pub fn usable(typed: &str) -> Option<&str> {
    let typed = typed.trim();
    let fits = (KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&typed.len());
    (fits && typed.bytes().all(|byte| byte.is_ascii_graphic())).then_some(typed)
}

/// A line about a key, without a value.
#[must_use]
pub fn line(key: Key, own: &OwnKey, now_ms: Ms) -> String {
    let ago = |at_ms: Ms| span(now_ms.saturating_sub(at_ms));
    format!(
        "{}: `{}` {} (stored {} ago by {}, checked {} ago)",
        key.brand(),
        own.fingerprint,
        own.state.words(),
        ago(own.since_ms),
        own.by.name,
        ago(own.checked_at_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;

    fn tenant(name: &str) -> Tenant {
        let key = ThreadKey::discord(name, "2").expect("ids");
        key.tenant()
    }

    #[test]
    fn fingerprint_distinguishes_keys_and_stacks() {
        let of = |stack_key, value| fingerprint(stack_key, Key::DaytonaApiKey, value);
        assert_eq!(of("k", "dtn_one"), of("k", "dtn_one"));
        assert_ne!(of("k", "dtn_one"), of("k", "dtn_two"));
        assert_ne!(of("k", "dtn_one"), of("l", "dtn_one"));
        assert_eq!(of("k", "dtn_one").len(), 12);
    }

    #[test]
    fn implausible_keys_are_rejected() {
        assert_eq!(usable("  dtn_0123456789 \n"), Some("dtn_0123456789"));
        for none in ["", "short", "two words here", "line\nbreak-in-it", "schlüssel-mit-umlaut"] {
            assert_eq!(usable(none), None, "{none:?}");
        }
        assert_eq!(usable(&"x".repeat(KEY_BYTES_MAX + 1)), None);
    }

    #[test]
    fn sealed_value_binds_stack_tenant_kind() {
        let context = sealed_for("prod", &tenant("41"), Key::DaytonaApiKey);
        let told: Vec<(&str, &str)> =
            context.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(told, [("kind", "daytona"), ("stack", "prod"), ("tenant", "discord:41")]);
    }

    #[test]
    fn key_line_shows_owner_age_state() {
        let own = OwnKey {
            sealed: "c2VhbGVk".to_owned(),
            fingerprint: "0123456789ab".to_owned(),
            state: KeyState::Valid,
            by: Person { id: "1".to_owned(), name: "Ada".to_owned() },
            since_ms: 1_000,
            checked_at_ms: 61_000,
        };
        assert_eq!(
            line(Key::DaytonaApiKey, &own, 121_000),
            "Daytona: `0123456789ab` is in use (stored 2 min 0 s ago by Ada, checked 1 min 0 s ago)"
        );
    }
}
