//! Shared state: store, keys, live notices, faults, and the ingress client.

use crate::fault::ChatFaults;
use crate::identity::{DiscordKeys, SlackKeys};
use crate::ids::IdSource;
use crate::ingress::IngressClient;
use crate::limits::{EVENTS_KEPT_MAX, LIVE_BACKLOG_MAX, LIVE_VIEWERS_MAX, RETRY_DELAYS_MS};
use crate::seeds::{self, Seeds};
use crate::settings::{ChatStartError, Inspector, LocalChatSettings};
use crate::store::{ChatStore, ChatStoreError};
use bobbin_local_breakpoint::ControlKey;
use ed25519_dalek::SigningKey;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct Hub {
    store: Mutex<ChatStore>,
    pub ids: IdSource,
    pub base: String,
    pub control_key: ControlKey,
    pub also_named: Option<String>,
    pub model_is_scripted: bool,
    pub discord: DiscordKeys,
    pub slack: SlackKeys,
    pub signing_key: SigningKey,
    pub seeds: Seeds,
    pub inspector: Arc<dyn Inspector>,
    pub live: broadcast::Sender<Value>,
    pub viewers: Arc<tokio::sync::Semaphore>,
    /// Session records and sandboxes as last read.
    pub inspected: Mutex<Value>,
    pub discord_faults: Mutex<ChatFaults>,
    pub slack_faults: Mutex<ChatFaults>,
    pub enforce_rates: AtomicBool,
    pub rates: Mutex<HashMap<String, (u64, u64)>>,
    /// Counts mentions, to alternate the order of the twin events.
    pub mentions: AtomicU64,
    pub retry_delays_ms: Mutex<Vec<u64>>,
    /// Delivered events by id, newest last.
    pub events: Mutex<VecDeque<(String, Value)>>,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
    pub ingress: IngressClient,
}

impl Hub {
    pub fn open(settings: LocalChatSettings, port: u16) -> Result<Arc<Hub>, ChatStartError> {
        let seed = hex::decode(&settings.discord.seed)
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let signing_key = SigningKey::from_bytes(&seed.ok_or(ChatStartError::Seed)?);
        let store = ChatStore::open(&settings.state_dir.join("chat.sqlite"))?;
        let ids = IdSource::resume(
            store.greatest_id("d.message")?.as_deref(),
            store.greatest_id("s.message")?.as_deref(),
        );
        let seeds = seeds::load_or_create(&store, &ids, &settings.discord, &settings.slack)?;
        Ok(Arc::new(Hub {
            store: Mutex::new(store),
            ids,
            base: format!("http://127.0.0.1:{port}"),
            control_key: settings.control_key,
            also_named: settings.also_named,
            model_is_scripted: settings.model_is_scripted,
            discord: settings.discord,
            slack: settings.slack,
            signing_key,
            seeds,
            inspector: settings.inspector,
            live: broadcast::Sender::new(LIVE_BACKLOG_MAX),
            viewers: Arc::new(tokio::sync::Semaphore::new(LIVE_VIEWERS_MAX)),
            inspected: Mutex::new(Value::Null),
            discord_faults: Mutex::default(),
            slack_faults: Mutex::default(),
            enforce_rates: AtomicBool::new(false),
            rates: Mutex::default(),
            mentions: AtomicU64::new(0),
            retry_delays_ms: Mutex::new(RETRY_DELAYS_MS.to_vec()),
            events: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            ingress: IngressClient::new(settings.ingress, settings.ingress_answer_ms)?,
        }))
    }

    /// The store, locked for one call.
    pub fn store(&self) -> MutexGuard<'_, ChatStore> {
        lock(&self.store)
    }

    pub fn discord_public_key(&self) -> String {
        hex::encode(self.signing_key.verifying_key().to_bytes())
    }

    /// Tells the open pages what to reload. It may have no listeners.
    pub fn notify(&self, notice: Value) {
        let _ = self.live.send(notice);
    }

    pub fn remember_event(&self, id: &str, envelope: &Value) {
        let mut events = lock(&self.events);
        events.push_back((id.to_owned(), envelope.clone()));
        while events.len() > EVENTS_KEPT_MAX {
            events.pop_front();
        }
    }
}

/// Locks a mutex; a panic elsewhere leaves plain data, which is still valid.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer to a page or a control call when reading the store failed.
pub fn broken(error: &ChatStoreError) -> (axum::http::StatusCode, String) {
    tracing::error!(%error, "the chat's state failed");
    (axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
