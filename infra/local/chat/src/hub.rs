//! What all parts share: state, keys, live notices, and the way to the ingress.

use crate::fault::Faults;
use crate::ids::Ids;
use crate::limits::{
    EVENTS_KEPT_MAX, INGRESS_ANSWER_BYTES_MAX, INGRESS_ANSWER_MS_MAX, LIVE_BACKLOG_MAX,
    RETRY_DELAYS_MS,
};
use crate::seeds::{self, Seeds};
use crate::store::{Store, StoreError};
use crate::{Backstage, DiscordKeys, Error, Settings, SlackKeys};
use bobbin_local_gate::ControlKey;
use ed25519_dalek::SigningKey;
use futures::StreamExt;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct Hub {
    store: Mutex<Store>,
    pub ids: Ids,
    pub base: String,
    pub control_key: ControlKey,
    pub also_named: Option<String>,
    pub discord: DiscordKeys,
    pub slack: SlackKeys,
    pub signing_key: SigningKey,
    pub seeds: Seeds,
    pub backstage: Arc<dyn Backstage>,
    pub live: broadcast::Sender<Value>,
    pub viewers: Arc<tokio::sync::Semaphore>,
    /// Last read of the session records and sandboxes.
    pub behind: Mutex<Value>,
    pub discord_faults: Mutex<Faults>,
    pub slack_faults: Mutex<Faults>,
    pub enforce_rates: AtomicBool,
    pub rates: Mutex<HashMap<String, (u64, u64)>>,
    /// Who types where, until when (ms).
    pub typing: Mutex<HashMap<String, u64>>,
    /// Counts mentions, so that the order of the twin events alternates.
    pub mentions: AtomicU64,
    pub retry_delays_ms: Mutex<Vec<u64>>,
    /// Delivered events by id, newest last.
    pub events: Mutex<VecDeque<(String, Value)>>,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
    ingress: RwLock<Option<String>>,
    http: reqwest::Client,
}

/// The ingress's first answer.
pub struct Answer {
    pub status: u16,
    pub no_retry: bool,
    pub body: Vec<u8>,
}

/// Why there was no first answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("the ingress's address is not known yet; wait until the stack is up")]
    NoIngress,
    #[error("no answer within 3 s")]
    TooLate,
    #[error("the ingress could not be reached")]
    Unreachable,
}

impl Hub {
    pub fn open(settings: Settings, port: u16) -> Result<Arc<Hub>, Error> {
        let seed = hex::decode(&settings.discord.seed)
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let signing_key = SigningKey::from_bytes(&seed.ok_or(Error::Seed)?);
        let store = Store::open(&settings.state_dir.join("chat.sqlite"))?;
        let ids = Ids::resume(
            store.greatest_id("d.message")?.as_deref(),
            store.greatest_id("s.message")?.as_deref(),
        );
        let seeds = seeds::plant(&store, &ids, &settings.discord, &settings.slack)?;
        // Another part of the program may have chosen a provider already; then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_millis(INGRESS_ANSWER_MS_MAX))
            .build()?;
        Ok(Arc::new(Hub {
            store: Mutex::new(store),
            ids,
            base: format!("http://127.0.0.1:{port}"),
            control_key: settings.control_key,
            also_named: settings.also_named,
            discord: settings.discord,
            slack: settings.slack,
            signing_key,
            seeds,
            backstage: settings.backstage,
            live: broadcast::Sender::new(LIVE_BACKLOG_MAX),
            viewers: Arc::new(tokio::sync::Semaphore::new(crate::limits::LIVE_VIEWERS_MAX)),
            behind: Mutex::new(Value::Null),
            discord_faults: Mutex::default(),
            slack_faults: Mutex::default(),
            enforce_rates: AtomicBool::new(false),
            rates: Mutex::default(),
            typing: Mutex::default(),
            mentions: AtomicU64::new(0),
            retry_delays_ms: Mutex::new(RETRY_DELAYS_MS.to_vec()),
            events: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            ingress: RwLock::new(settings.ingress),
            http,
        }))
    }

    /// The state, for one call at a time.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        held(&self.store)
    }

    pub fn discord_public_key(&self) -> String {
        hex::encode(self.signing_key.verifying_key().to_bytes())
    }

    pub fn set_ingress(&self, base: String) {
        let base = base.trim_end_matches('/').to_owned();
        *self.ingress.write().unwrap_or_else(PoisonError::into_inner) = Some(base);
    }

    /// Tells the open pages what to read again. Nobody listening is fine.
    pub fn notify(&self, notice: Value) {
        let _ = self.live.send(notice);
    }

    pub fn remember_event(&self, id: &str, envelope: &Value) {
        let mut events = held(&self.events);
        events.push_back((id.to_owned(), envelope.clone()));
        while events.len() > EVENTS_KEPT_MAX {
            events.pop_front();
        }
    }

    /// Posts to the ingress and waits for its first answer as long as the platforms do.
    pub async fn deliver(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, NoAnswer> {
        let base = self
            .ingress
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or(NoAnswer::NoIngress)?;
        self.deliver_to(&format!("{base}{path}"), headers, body)
            .await
    }

    /// The same to an address of its own.
    pub async fn deliver_to(
        &self,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, NoAnswer> {
        let mut request = self.http.post(url).body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                NoAnswer::TooLate
            } else {
                NoAnswer::Unreachable
            }
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let no_retry = response
            .headers()
            .get("x-slack-no-retry")
            .is_some_and(|value| value == "1");
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(failed)?);
            if body.len() > INGRESS_ANSWER_BYTES_MAX {
                return Err(NoAnswer::Unreachable);
            }
        }
        Ok(Answer {
            status,
            no_retry,
            body,
        })
    }
}

/// Locks; a panic elsewhere leaves plain data behind, which is still good.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<NoAnswer> for String {
    fn from(error: NoAnswer) -> String {
        error.to_string()
    }
}

/// What a failed read of the state means to a page or a control call.
pub fn broken(error: &StoreError) -> (axum::http::StatusCode, String) {
    tracing::error!(%error, "the chat's state failed");
    (
        axum::http::StatusCode::INTERNAL_SERVER_ERROR,
        error.to_string(),
    )
}
