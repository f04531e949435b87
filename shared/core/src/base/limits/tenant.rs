//! Tenants: how much one may have, and how soon a key or a setting takes effect.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of tenants, their keys and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantLimits {
    /// Sandboxes that one tenant may have; 0 means no bound.
    #[serde(rename = "tenant_sandboxes")]
    pub sandboxes: u32,
    /// How long a link for entering a tenant's own key works.
    pub setup_link_ms: u64,
    /// Maximum age of a process's cached copy of a secret at the start of an invocation; also the shortest time between
    /// two reads of the secret because a signature does not match.
    pub secrets_ms: u64,
}

/// A delivery that is not its message's first may use secrets that are this many times older than `secrets_ms`: it
/// polls a run, or is a retry.
pub const SECRETS_AGES: u64 = 5;
/// With a shorter time, bad signatures could cause a read of the secrets each.
const MIN_SECRETS_MS: u64 = 1_000;

impl TenantLimits {
    /// The design's defaults.
    pub const DEFAULT: Self =
        Self { sandboxes: 100, setup_link_ms: 10 * MINUTE_MS, secrets_ms: MINUTE_MS };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[(self.secrets_ms >= MIN_SECRETS_MS, "secrets_ms must be at least 1000")])
    }
}
