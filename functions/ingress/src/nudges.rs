//! Nudges: the daemon in a sandbox says that its turn has ended or asks something, and the next poll comes now.
//!
//! Promised: a nudge changes nothing but the time of that turn's next poll. Ingress has no key: it reads only the state
//! left beside a record for the next poll, and recognises a token by the digest stored there. No token is logged.

use std::time::Duration;

use bobbin_chat::HttpAnswer;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::forward::bring_forward;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_core::records::parked::Forward;
use bobbin_core::tokens::nudge::{NudgeToken, mark_of};

/// Longest time to bring a poll forward: the sender waits three seconds.
const FORWARD_MS_MAX: u64 = 1_200;

/// Everything that a nudge needs.
#[derive(Debug)]
pub struct Nudges {
    store: Store,
}

impl Nudges {
    /// From configuration.
    #[must_use]
    pub fn new(config: &Config, aws: &Aws) -> Self {
        Self { store: Store::new(aws, &config.table) }
    }

    /// Answers a request with this `Authorization`. A 409 says that no turn waits for this token just now: a delivery
    /// may be polling, and the sender should try again in a moment.
    pub async fn take(&self, authorization: Option<&str>, queues: &Queues) -> HttpAnswer {
        let text = authorization.and_then(|said| said.strip_prefix("Bearer "));
        let said = text.and_then(|text| Some((NudgeToken::read(text)?, mark_of(text))));
        let Some((NudgeToken { thread, turn }, mark)) = said else {
            return HttpAnswer::text(401, "The signature is not valid.");
        };
        let forward = bring_forward(&self.store, queues, &thread, &turn, Some(&mark));
        let within = Duration::from_millis(FORWARD_MS_MAX);
        match tokio::time::timeout(within, forward).await {
            Ok(Ok(Forward::Now { .. } | Forward::ByItsTime)) => HttpAnswer::text(202, "Taken."),
            Ok(Ok(Forward::NotWaiting)) => HttpAnswer::text(409, "Nothing is waiting right now."),
            Ok(Err(_)) | Err(_) => HttpAnswer::text(503, "Not right now. Try again."),
        }
    }
}
