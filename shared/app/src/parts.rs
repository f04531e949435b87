//! The clients of one process, with the keys that it has read.

use std::sync::Arc;

use bobbin_chat::Chats;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::breaker::Breakers;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_cloud::spans::Spans;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_cloud::wake::Wakes;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::protocol::signals::{Alarm, TABLE_FAILED};

use crate::accounts::Accounts;
use crate::clients;
use crate::forge::StackForge;
use crate::sandboxes::Sandboxes;
use crate::tenants::Tenants;

/// The clients of one process, shared by all deliveries.
#[derive(Clone)]
pub struct WorldParts {
    /// Records, flags and ledger.
    pub store: Store,
    /// For messages to other groups.
    pub queues: Queues,
    /// Where turns are shown.
    pub chat: Arc<Chats>,
    /// Sandboxes and their agents, with the stack's own keys.
    pub sandboxes: Arc<Sandboxes>,
    /// Sandboxes of every tenant, with its own keys if it has stored some.
    pub tenants: Arc<Tenants>,
    /// The forge, if one is set up.
    pub forge: Option<Arc<StackForge>>,
    /// Wake-ups: a thread asks for a later poll.
    pub wakes: Wakes,
    /// Breakers of the providers.
    pub breakers: Breakers,
    /// Accounts in which the stack's own keys have been seen.
    pub accounts: Accounts,
    /// Counts for metrics.
    pub metrics: Metrics,
    /// Spans of a turn's time.
    pub spans: Spans,
    /// How long the ledger keeps a turn.
    pub ledger_ms: u64,
    /// How long an account is trusted to be the one on record: as long as a key that may have been replaced.
    pub account_ms: u64,
}

/// The clients of a process that hold no key of ours: they outlive a key that is replaced.
pub struct Keyless {
    /// Records, flags and ledger.
    pub store: Store,
    /// For messages to other groups.
    pub queues: Queues,
    /// Wake-ups.
    pub wakes: Wakes,
    /// Breakers of the providers.
    pub breakers: Breakers,
    /// Counts for metrics.
    pub metrics: Metrics,
    /// Spans of a turn's time.
    pub spans: Spans,
}

impl WorldParts {
    /// The clients with these keys.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn new(
        keyless: Keyless,
        aws: &Aws,
        config: &Config,
        keys: &WorkerKeys,
    ) -> Result<Self, String> {
        let Keyless { store, queues, wakes, breakers, metrics, spans } = keyless;
        let tenants = Arc::new(Tenants::new(aws, config, keys)?);
        Ok(Self {
            store,
            queues,
            wakes,
            breakers,
            // Another key may belong to another account.
            accounts: Accounts::default(),
            chat: Arc::new(clients::chat(config, keys)?),
            sandboxes: tenants.of_stack(),
            tenants,
            forge: StackForge::new(aws, config, keys)?.map(Arc::new),
            metrics,
            spans,
            ledger_ms: config.limits.record.ledger_ms,
            account_ms: config.limits.tenant.secrets_ms,
        })
    }

    /// Tells the chat what was read, before the first post of a delivery.
    pub fn learn(&self, thread: &ThreadKey, found: &Loaded) {
        if let (Ok(chat), Some(session)) = (self.chat.of(thread), &found.session) {
            chat.learn(session);
        }
    }
}

/// Counts a failure of the table, unless the table is well and only a newer worker's item or another write is in the
/// way.
pub fn count_failure(metrics: &Metrics, error: &StoreError) {
    if !matches!(error, StoreError::Newer(_) | StoreError::Contended(_)) {
        tracing::error!(event = TABLE_FAILED, %error, "the table failed a request of a delivery");
        metrics.count(Alarm::ServiceAway, now_ms());
    }
}

/// Counts the failure, and returns its class.
pub(crate) fn counted(metrics: &Metrics, error: &StoreError) -> Failure {
    count_failure(metrics, error);
    error.failure()
}
