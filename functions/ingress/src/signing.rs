//! The Slack app and its signing secret. The first request that looks signed by Slack reads the secret, so that nothing
//! else waits for it. It is read again when a signature does not match, because Slack drops the old secret as soon as a
//! new one is made.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_chat::{HttpAnswer, Inbound, slack};
use bobbin_cloud::secrets::{CachedSecret, IngressSecret};
use bobbin_core::base::ids::Ms;
use bobbin_core::tenant::access::Policy;

/// Longest time for reading the secret: Slack waits three seconds in all.
pub const READ_MS_MAX: u64 = 1_500;
/// For the log: the missing key, its secret, and the command that stores it.
const MISSING: &str = "slack: the key slack_signing_secret is missing in the secret IngressSecret, `bobbin secrets` stores it";

/// A request as signed by Slack.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The body, unparsed.
    pub raw: &'a [u8],
    /// `X-Slack-Signature`; empty if the header is missing.
    pub signature: &'a str,
    /// `X-Slack-Request-Timestamp`, in Unix seconds; empty if the header is missing.
    pub timestamp: &'a str,
}

/// The Slack endpoint that reads a request.
pub type SlackEndpoint = fn(&[u8], &str, &str, &slack::App, Ms) -> Inbound;

/// The app and its secret.
#[derive(Debug)]
pub struct Signing {
    secret: CachedSecret<IngressSecret>,
    policy: Policy,
    /// The last app built, and the secret it was built from.
    made: Mutex<Option<(Arc<IngressSecret>, Arc<slack::App>)>>,
}

impl Signing {
    /// With this stack's secret, not read yet.
    #[must_use]
    pub const fn new(secret: CachedSecret<IngressSecret>, policy: Policy) -> Self {
        Self { secret, policy, made: Mutex::new(None) }
    }

    /// Handles a request. One that cannot have been signed is judged without the secret.
    pub async fn receive(
        &self,
        endpoint: SlackEndpoint,
        request: Signed<'_>,
        now_ms: Ms,
    ) -> Inbound {
        let read = |app: &slack::App| {
            endpoint(request.raw, request.signature, request.timestamp, app, now_ms)
        };
        if !slack::looks_signed(request.signature, request.timestamp, now_ms) {
            return read(&slack::App::default());
        }
        let Ok(secret) = self.secret.known(now_ms).await else {
            return later("slack: the signing secret could not be read");
        };
        let known = (!secret.slack_signing_secret.is_empty()).then(|| read(&self.app(secret)));
        match known {
            Some(inbound) if inbound.note != slack::BAD_SIGNATURE => inbound,
            // No secret, or the previous one: a new one may have been stored since.
            known => match self.secret.newer(now_ms).await {
                Some(newer) if !newer.slack_signing_secret.is_empty() => read(&self.app(newer)),
                _ => known.unwrap_or_else(|| later(MISSING)),
            },
        }
    }

    fn app(&self, secret: Arc<IngressSecret>) -> Arc<slack::App> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((of, app)) if Arc::ptr_eq(of, &secret) => Arc::clone(app),
            _ => {
                let app = Arc::new(slack::App {
                    signing_secret: secret.slack_signing_secret.expose().to_owned(),
                    policy: self.policy.clone(),
                });
                *made = Some((secret, Arc::clone(&app)));
                app
            }
        }
    }
}

/// Nothing can be verified just now. Slack sends events again, so the event is not lost yet.
fn later(note: &'static str) -> Inbound {
    let answer = HttpAnswer::text(
        503,
        "Bobbin has no signing secret of this Slack app yet, or cannot read it right now. Its operator stores it with `bobbin secrets`; Bobbin uses it within a minute.",
    );
    Inbound::only(answer, note)
}
