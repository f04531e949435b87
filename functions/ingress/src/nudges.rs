//! The word of a daemon in a sandbox that its turn has ended or asks something: the next look comes now.
//!
//! Promised: the token is verified before anything is read of the table, and nothing but the time of that turn's next look can be
//! changed with it. Of the table only what is left beside a record for the next look is read. No token is in a log.

use std::time::Duration;

use bobbin_chat::HttpAnswer;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::forward::bring_forward;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::{CachedSecret, StackKey};
use bobbin_cloud::store::Store;
use bobbin_core::nudge::NudgeToken;
use bobbin_core::parked::{Forward, Wish};

use crate::signing::READ_MS_MAX;

/// How long a look may take to be brought forward: who asks waits three seconds.
const FORWARD_MS_MAX: u64 = 1_200;

/// Everything that it takes.
#[derive(Debug)]
pub struct Nudges {
    key: CachedSecret<StackKey>,
    store: Store,
}

impl Nudges {
    /// From configuration.
    ///
    /// # Errors
    /// A sentence that names the variable that is not set.
    pub fn new(config: &Config, aws: &Aws) -> Result<Self, String> {
        Ok(Self {
            key: CachedSecret::named_by("STACK_KEY_ID", aws, config, READ_MS_MAX)?,
            store: Store::new(aws, &config.table),
        })
    }

    /// What becomes of a request with this `Authorization`. A 409 says that nothing waits just now: somebody may be about it,
    /// and asking again in a moment is right.
    pub async fn take(&self, authorization: Option<&str>, queues: &Queues) -> HttpAnswer {
        let token = match self.admitted(authorization).await {
            Ok(token) => token,
            Err(refused) => return refused,
        };
        let NudgeToken { thread, turn } = &token;
        let forward = bring_forward(&self.store, queues, thread, turn, Wish::Daemon);
        let within = Duration::from_millis(FORWARD_MS_MAX);
        match tokio::time::timeout(within, forward).await {
            Ok(Ok(Forward::Now { .. } | Forward::ByItsTime)) => HttpAnswer::text(202, "Taken."),
            Ok(Ok(Forward::NotWaiting)) => HttpAnswer::text(409, "Nothing waits just now."),
            Ok(Err(_)) | Err(_) => HttpAnswer::text(503, "Not just now."),
        }
    }

    async fn admitted(&self, authorization: Option<&str>) -> Result<NudgeToken, HttpAnswer> {
        let refused = || HttpAnswer::text(401, "This is signed by nobody here.");
        let text = authorization
            .and_then(|said| said.strip_prefix("Bearer "))
            .ok_or_else(refused)?;
        let key = self.key.known(now_ms()).await;
        let key = key.map_err(|_| HttpAnswer::text(503, "Not just now."))?;
        NudgeToken::read(key.stack_key.expose(), text).ok_or_else(refused)
    }
}
