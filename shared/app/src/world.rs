//! The real world: table, provider, agent and chats behind the core's ports.

use std::sync::Arc;

use bobbin_chat::Chats;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::breaker::Breakers;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_cloud::spans::{Span, Spans, Trace};
use bobbin_cloud::store::{Left, Store, StoreError, Written};
use bobbin_cloud::wake::Wakes;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::protocol::effect::{AgentEffect, Effect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::ports::{Loaded, Performed, RecordsWrite, Saved, World};
use bobbin_core::protocol::signals::{Alarm, TABLE_FAILED, USED, signals};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::session::Session;
use bobbin_core::records::usage::Usage;
use bobbin_core::shown::sandboxes::Listed;

use crate::accounts::Accounts;
use crate::forge::StackForge;
use crate::performing::Performing;
use crate::sandboxes::Sandboxes;
use crate::tenants::Tenants;
use crate::visibility::Visibility;
use crate::{catalogue, clients};

/// The world of one delivery. It keeps nothing that it read or did.
pub struct Live {
    parts: WorldParts,
    visibility: Visibility,
    /// Receipt handle of the message in hand; empty: it cannot be brought forward.
    receipt: String,
    /// Trace of the invocation.
    trace: Option<Trace>,
}

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

impl Live {
    /// The world of one delivery.
    #[must_use]
    pub fn new(parts: WorldParts, visibility: Visibility) -> Self {
        Self { trace: parts.spans.present(), parts, visibility, receipt: String::new() }
    }

    /// For the message with this receipt.
    #[must_use]
    pub fn holding(self, receipt: &str) -> Self {
        Self { receipt: receipt.to_owned(), ..self }
    }

    fn counted(&self, error: &StoreError) -> Failure {
        counted(&self.parts.metrics, error)
    }

    /// Logs for the operator what this write says has happened.
    fn log_signals(&self, RecordsWrite { session, before, entries, .. }: RecordsWrite<'_>) {
        let signals = signals(before, session, now_ms());
        for signal in &signals {
            let (event, thread, took_ms) = (signal.kind.name(), &session.thread, signal.took_ms);
            let generation = session.sandbox.generation;
            match signal.turn.as_deref() {
                // Also if it happened during another turn's delivery.
                Some(turn) => {
                    tracing::info!(event, %thread, correlation_id = turn, turn, took_ms, generation, "{event}");
                }
                None => tracing::info!(event, %thread, took_ms, generation, "{event}"),
            }
            if let Some(alarm) = signal.kind.alarm() {
                self.parts.metrics.count(alarm, now_ms());
            }
        }
        for entry in entries {
            let (turn, thread, took_ms) = (&*entry.turn, &session.thread, entry.took_ms());
            let (tenant, model) = (thread.tenant(), entry.selection.model.as_deref());
            let Usage { tokens, cost_micro_usd, files, added, removed, files_unknown: _ } =
                entry.usage;
            tracing::info!(event = USED, %thread, %tenant, correlation_id = turn, model, took_ms, tokens, cost_micro_usd, files, added, removed, "resources that a turn used");
        }
    }

    /// Records the status of a named sandbox for suggestions, as last written at the end of the delivery.
    pub async fn note_sandbox(&self, written: &Session) {
        let (key, sandbox) = (written.sandbox_key(), &written.sandbox);
        if let Some(name) = &sandbox.sharing.name {
            let glance = Listed::of(&key, sandbox).glance();
            catalogue::note_sandbox(&self.parts.store, &key.tenant(), name, glance).await;
        }
    }
}

impl World for Live {
    fn now_ms(&self) -> Ms {
        now_ms()
    }

    fn visible_until_ms(&self) -> Ms {
        self.visibility.get()
    }

    async fn load(&self, thread: &ThreadKey, turn: &TurnId) -> Result<Loaded, Failure> {
        let found = self.parts.store.load(thread, turn).await.map_err(|e| self.counted(&e))?;
        self.parts.learn(thread, &found);
        Ok(found)
    }

    async fn save(&self, write: RecordsWrite<'_>) -> Result<Saved, Failure> {
        let RecordsWrite { session, expected, entries, flags, .. } = write;
        let stale = flags.spent(session);
        let expires_at_ms = now_ms() + self.parts.ledger_ms;
        let saved = self.parts.store.save(session, expected, &stale, entries, expires_at_ms).await;
        Ok(match saved.map_err(|e| self.counted(&e))? {
            Written::Yes(stand) => {
                self.log_signals(write);
                Saved::Written(stand.unwrap_or_else(|| flags.clone().without(&stale)))
            }
            Written::Conflict => Saved::Conflict,
            Written::OverBudget { scope, used } => Saved::OverBudget { scope, used },
        })
    }

    async fn swept(&self, thread: &ThreadKey, sweep: &TurnId) -> Result<(), Failure> {
        let done = self.parts.store.sweep_is_done(thread, sweep).await;
        done.map_err(|e| self.counted(&e))
    }

    async fn park(&self, thread: &ThreadKey, parked: &Parked) -> Option<ControlFlags> {
        let mark = self.parts.sandboxes.nudge_mark(thread, &parked.turn);
        let left = self.parts.store.park(thread, parked, (&self.receipt, &mark)).await;
        match left {
            // Anything wanted was already there for this delivery's own read.
            Ok(Left::Quiet | Left::Overtaken) => return None,
            Ok(Left::Wanted) => {}
            Err(error) => {
                tracing::warn!(event = "poll.not_parked", %thread, %error, "the next poll starts without the state of this one");
                return None;
            }
        }
        match self.parts.store.flags(thread).await {
            Ok(flags) => Some(flags),
            Err(error) => {
                tracing::warn!(event = "flags.unread", %thread, %error, "the flags could not be read");
                None
            }
        }
    }

    async fn prepare(&self, asked: &Addressed<'_>) {
        if let Effect::Agent(
            AgentEffect::SendPrompt { .. }
            | AgentEffect::FindPrompt { .. }
            | AgentEffect::CheckServer { .. }
            | AgentEffect::FindAgentSession { .. },
        ) = asked.effect
        {
            // A key that does not open now fails again in the effect.
            let performing = Performing::new(&self.parts, asked, &self.visibility);
            if let Ok(sandboxes) = performing.sandboxes().await {
                sandboxes.prepare(&asked.at.sandbox, asked.at.generation).await;
            }
        }
    }

    async fn perform(&self, asked: &Addressed<'_>) -> Performed {
        let began_ms = now_ms();
        let performing = Performing::new(&self.parts, asked, &self.visibility);
        let event = performing.perform().await;
        let flags = performing.read();
        let ended_ms = now_ms();
        let took_ms = ended_ms.saturating_sub(began_ms);
        let (thread, effect) = (&asked.at.thread, asked.effect);
        self.parts.spans.put(
            self.trace.as_ref(),
            &Span {
                name: effect.name(),
                began_ms,
                ended_ms,
                failed: matches!(event, Event::Failed(_) | Event::NotSent(_)),
                thread: &thread.to_string(),
                turn: asked.at.turn.as_deref().unwrap_or_default(),
            },
        );
        match &event {
            Event::Failed(failure) | Event::NotSent(failure) => {
                tracing::warn!(event = "effect.failed", %thread, effect = effect.name(), took_ms, ?failure, "an effect failed")
            }
            _ => {
                tracing::debug!(event = "effect.done", %thread, effect = effect.name(), took_ms, "an effect is done")
            }
        }
        Performed { event, flags }
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
