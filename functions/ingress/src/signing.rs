//! The key that verifies a platform's requests. The first request that looks signed reads it, so that nothing else
//! waits for it. It is read again when a signature does not match, because a platform drops the old key as soon as a
//! new one is made.

use bobbin_chat::{BAD_SIGNATURE, Endpoints, Inbound, RawRequest, Verifier};
use bobbin_cloud::secrets::{CachedSecret, StoredKeys};
use bobbin_core::tenant::keys::Key;

/// Longest time for reading the secret: a platform waits three seconds in all.
pub const READ_MS_MAX: u64 = 1_500;

/// The secret of ingress.
#[derive(Debug)]
pub struct Signing(CachedSecret);

impl Signing {
    /// With this stack's secret, not read yet.
    #[must_use]
    pub const fn new(secret: CachedSecret) -> Self {
        Self(secret)
    }

    /// Handles a request that looks signed with this key.
    pub async fn receive(&self, to: &dyn Endpoints, key: Key, request: &RawRequest<'_>) -> Inbound {
        let judged = |keys: &StoredKeys| match keys.of(key) {
            missing if missing.is_empty() => to.receive(request, Verifier::Missing),
            key => to.receive(request, Verifier::Key(key)),
        };
        let Ok(keys) = self.0.known(request.now_ms).await else {
            return to.receive(request, Verifier::Unread);
        };
        let inbound = judged(&keys);
        // No key, or the previous one: a new one may have been stored since.
        if !keys.of(key).is_empty() && inbound.note != BAD_SIGNATURE {
            return inbound;
        }
        match self.0.newer(request.now_ms).await {
            Some(newer) if !newer.of(key).is_empty() => judged(&newer),
            _ => inbound,
        }
    }
}
