//! The key that verifies a platform's requests. The first request that looks signed reads it, so that nothing else
//! waits for it. It is read again when it has its age, so that a key that was replaced ends; and when a signature does
//! not match, because a platform drops the old key as soon as a new one is made.

use bobbin_chat::{BAD_SIGNATURE, Endpoints, Inbound, RawRequest, Verifier};
use bobbin_cloud::secrets::{CachedSecret, StoredKeys};
use bobbin_core::base::ids::Ms;
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
        let judge = |verifier: Verifier<'_>| to.receive(request, verifier);
        self.judged(key, request.now_ms, judge, |inbound| inbound.note == BAD_SIGNATURE).await
    }

    /// Judges something that looks signed with this key: with the stored one, and if that is wrong, with one that has
    /// been stored since.
    pub async fn judged<T>(
        &self,
        key: Key,
        now_ms: Ms,
        judge: impl Fn(Verifier<'_>) -> T,
        is_wrong: impl Fn(&T) -> bool,
    ) -> T {
        let with = |keys: &StoredKeys| match keys.of(key) {
            missing if missing.is_empty() => judge(Verifier::Missing),
            key => judge(Verifier::Key(key)),
        };
        let Ok(keys) = self.0.renewed(now_ms).await else {
            return judge(Verifier::Unread);
        };
        let judged = with(&keys);
        // No key, or the previous one: a new one may have been stored since.
        if !keys.of(key).is_empty() && !is_wrong(&judged) {
            return judged;
        }
        match self.0.newer(now_ms).await {
            Some(newer) if !newer.of(key).is_empty() => with(&newer),
            _ => judged,
        }
    }
}
