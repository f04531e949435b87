//! A person's own account at the forge, which they connected by signing in there.
//!
//! It belongs to one person of one tenant. Its token is stored sealed for both ([`linked_seal`]), so that an item
//! copied elsewhere does not open there. Deliberately absent: the token, which is in none of these types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, Tenant};
use crate::tenant::own_keys::seal_context;

/// Longest time for which a renewal keeps others from renewing too. Afterwards its worker is held to be gone.
pub const RENEWAL_MS_MAX: u64 = 60_000;
/// Before the person's id in the kind of a sealed token: the worker's role may seal this kind alone (`template.yaml`).
const KIND: &str = "linked:";

/// An account that a person connected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkedAccount {
    /// The forge's id of the account, which it keeps when it is renamed.
    pub id: u64,
    /// Its name when it was last seen, for show.
    pub login: String,
    /// The token sealed by KMS, in base64.
    pub sealed: String,
    /// The token is a refresh token, good once. Otherwise it is an access token that does not expire.
    pub renews: bool,
    /// When the person connected it.
    pub since_ms: Ms,
    /// When the token ends if it is not used; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_ms: Option<Ms>,
    /// Id of the link through which it was connected, so that a repeat is recognised.
    pub link: String,
    /// When a worker began to renew the token and had not yet stored the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewing_ms: Option<Ms>,
}

impl LinkedAccount {
    /// Whether another worker is renewing the token.
    #[must_use]
    pub fn is_renewing(&self, now_ms: Ms) -> bool {
        // A claim from the future is from a clock that went back.
        self.renewing_ms.is_some_and(|since_ms| {
            (since_ms..since_ms.saturating_add(RENEWAL_MS_MAX)).contains(&now_ms)
        })
    }
}

/// KMS's encryption context of a person's token. It is written in clear text to the account's log of calls.
#[must_use]
pub fn linked_seal(stack: &str, tenant: &Tenant, person: &str) -> BTreeMap<String, String> {
    seal_context(stack, tenant, &format!("{KIND}{person}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;

    #[test]
    fn sealed_token_binds_stack_tenant_person() {
        let tenant = ThreadKey::discord("41", "2").expect("ids").tenant();
        let context = linked_seal("prod", &tenant, "7");
        let told: Vec<(&str, &str)> =
            context.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(told, [("kind", "linked:7"), ("stack", "prod"), ("tenant", "discord:41")]);
    }

    #[test]
    fn renewal_excludes_others_for_a_minute() {
        let account = LinkedAccount {
            id: 1,
            login: "ada".to_owned(),
            sealed: "c2VhbGVk".to_owned(),
            renews: true,
            since_ms: 0,
            ends_ms: None,
            link: "link".to_owned(),
            renewing_ms: Some(1_000),
        };
        let at = [999, 1_000, 60_999, 61_000].map(|now_ms| account.is_renewing(now_ms));
        assert_eq!(at, [false, true, true, false]);
    }
}
