//! Tenants: how much one may have, and how soon a key or a setting counts.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of tenants, their keys and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantLimits {
    /// Sandboxes that one tenant may have; 0 is no bound.
    #[serde(rename = "tenant_sandboxes")]
    pub sandboxes: u32,
    /// How long a link works by which a key of a tenant's own is entered.
    pub setup_link_ms: u64,
    /// How old the copy of a secret that a process goes by may be when an invocation starts; and how often at most a
    /// signature that does not match has the secret read again.
    pub secrets_ms: u64,
    /// A switch of whether a person's direct messages are one thread counts for messages that are sent this much later: by
    /// then it is stored, whatever its write takes and by however much the clocks of chat and functions differ.
    pub direct_switch_ms: u64,
}

/// A delivery that is not the first one of its message goes by secrets that may be so many times older than `secrets_ms`: it
/// is a look at a run, or tries again.
pub const SECRETS_AGES: u64 = 5;
/// Reading secrets more often would let whoever sends bad signatures have it done for each.
const MIN_SECRETS_MS: u64 = 1_000;

impl TenantLimits {
    /// The defaults of the design.
    pub const DEFAULT: Self = Self {
        sandboxes: 100,
        setup_link_ms: 10 * MINUTE_MS,
        secrets_ms: MINUTE_MS,
        direct_switch_ms: 20_000,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[(self.secrets_ms >= MIN_SECRETS_MS, "secrets_ms must be at least 1000")])
    }
}
