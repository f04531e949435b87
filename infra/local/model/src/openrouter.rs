//! OpenRouter's keys API: a management key creates model keys with a spending limit. The model accepts requests with
//! such a key until its limit is spent.
//!
//! As there: a key is shown once; names need not be unique; a page has 100; a request that runs is finished and booked
//! afterwards, so several at once pass the limit; a key that has ended stays in the list; a management key calls no
//! model. Other than there: whatever is no key made here counts as a management key, or as a model key without a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::calls::now_ms;
use crate::limits::MADE_KEYS_MAX;
use crate::server::{ServerState, bearer};

/// Keys of a page.
const PAGE_KEYS: usize = 100;
/// How keys made here begin.
const KEY_PREFIX: &str = "sk-or-v1-";
/// What is said of a key that has spent its limit.
const SPENT: &str =
    "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys";

/// The keys that were made, oldest first, and what a million tokens cost.
#[derive(Debug, Default)]
pub(crate) struct MadeKeys(Mutex<KeyLedger>);

#[derive(Debug, Default)]
struct KeyLedger {
    keys: Vec<KeyRow>,
    made: u64,
    usd_per_million: f64,
}

/// A key without its value, which nobody can ask for again: its hash is enough to know it by.
#[derive(Debug, Clone)]
struct KeyRow {
    hash: String,
    name: String,
    label: String,
    limit: Option<f64>,
    limit_reset: Option<String>,
    usage: f64,
    disabled: bool,
    with_byok: bool,
    created_ms: u64,
    updated_ms: Option<u64>,
    expires_ms: Option<u64>,
}

impl KeyRow {
    fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.usage).max(0.0))
    }

    fn to_json(&self) -> Value {
        json!({
            "hash": self.hash, "name": self.name, "label": self.label, "disabled": self.disabled,
            "limit": self.limit, "limit_remaining": self.left(), "limit_reset": self.limit_reset,
            "include_byok_in_limit": self.with_byok, "usage": self.usage, "usage_daily": self.usage,
            "usage_weekly": self.usage, "usage_monthly": self.usage, "byok_usage": 0,
            "byok_usage_daily": 0, "byok_usage_weekly": 0, "byok_usage_monthly": 0,
            "created_at": iso(self.created_ms), "updated_at": self.updated_ms.map(iso),
            "expires_at": self.expires_ms.map(iso), "creator_user_id": null, "external_user": null,
            "workspace_id": "00000000-0000-0000-0000-000000000000",
        })
    }

    /// What the key itself is told about itself.
    fn own_json(&self) -> Value {
        let mut own = self.to_json();
        for (name, value) in [
            ("is_free_tier", json!(false)),
            ("is_management_key", json!(false)),
            ("is_provisioning_key", json!(false)),
            ("organization_id", Value::Null),
            ("allowed_data_regions", json!([])),
            ("free_model_daily_requests", json!({"limit": 50, "remaining": 50, "used": 0})),
            ("rate_limit", json!({"interval": "10s", "note": "deprecated", "requests": -1})),
        ] {
            own[name] = value;
        }
        own
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payer {
    /// Nobody is billed.
    Nobody,
    /// The key with this hash.
    Key(String),
}

/// Why a key pays for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// It was never made, or has ended.
    Unknown,
    /// It has spent its limit.
    Spent,
}

impl IntoResponse for NotAdmitted {
    fn into_response(self) -> Response {
        match self {
            Self::Unknown => refusal(StatusCode::UNAUTHORIZED, "User not found."),
            Self::Spent => refusal(StatusCode::FORBIDDEN, SPENT),
        }
    }
}

impl MadeKeys {
    fn lock(&self) -> MutexGuard<'_, KeyLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who pays for a request with this bearer.
    ///
    /// # Errors
    /// The refusal of a key that opens nothing, or has spent its limit.
    pub(crate) fn admitted(&self, bearer: Option<&str>) -> Result<Payer, NotAdmitted> {
        let Some(key) = bearer.filter(|key| key.starts_with(KEY_PREFIX)) else {
            return Ok(Payer::Nobody);
        };
        let (ledger, hash) = (self.lock(), hash(key));
        let row = ledger.keys.iter().find(|row| row.hash == hash);
        let is_open =
            |row: &&KeyRow| !row.disabled && row.expires_ms.is_none_or(|ends| ends > now_ms());
        match row.filter(is_open) {
            None => Err(NotAdmitted::Unknown),
            Some(row) if row.left().is_some_and(|left| left <= 0.0) => Err(NotAdmitted::Spent),
            Some(_) => Ok(Payer::Key(hash)),
        }
    }

    /// Books a request, once its answer has taken so long.
    pub(crate) fn book(self: &Arc<Self>, payer: Payer, tokens: usize, takes: Duration) {
        let Payer::Key(hash) = payer else { return };
        let ledger = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            let mut ledger = ledger.lock();
            let cost = tokens as f64 * ledger.usd_per_million / 1_000_000.0;
            if let Some(row) = ledger.keys.iter_mut().find(|row| row.hash == hash) {
                row.usage += cost;
            }
        });
    }
}

/// The routes below `/v1`.
pub(crate) fn routes() -> Router<Arc<ServerState>> {
    Router::new()
        .route("/v1/key", get(own))
        .route("/v1/keys", get(list).post(make))
        .route("/v1/keys/{hash}", get(read).patch(change).delete(delete))
        .route("/price", axum::routing::put(price))
}

#[derive(Deserialize)]
struct KeysQuery {
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    include_disabled: bool,
}

async fn list(
    State(shared): State<Arc<ServerState>>,
    _: KeyManager,
    Query(query): Query<KeysQuery>,
) -> Response {
    let ledger = shared.made_keys.lock();
    let shown = ledger.keys.iter().rev().filter(|row| query.include_disabled || !row.disabled);
    let page: Vec<Value> = shown.skip(query.offset).take(PAGE_KEYS).map(KeyRow::to_json).collect();
    Json(json!({ "data": page })).into_response()
}

#[derive(Deserialize)]
struct KeyOrder {
    name: String,
    #[serde(default)]
    limit: Option<f64>,
    #[serde(default)]
    limit_reset: Option<String>,
    #[serde(default)]
    include_byok_in_limit: bool,
    #[serde(default)]
    expires_at: Option<String>,
}

async fn make(
    State(shared): State<Arc<ServerState>>,
    _: KeyManager,
    KeyRequest(new): KeyRequest<KeyOrder>,
) -> Response {
    let expires_ms = new.expires_at.as_deref().map(ms).transpose();
    let (Ok(expires_ms), false) = (expires_ms, new.name.is_empty()) else {
        return refusal(StatusCode::BAD_REQUEST, "Invalid input");
    };
    let mut ledger = shared.made_keys.lock();
    if ledger.keys.len() >= MADE_KEYS_MAX {
        return refusal(StatusCode::BAD_REQUEST, "There are too many keys.");
    }
    ledger.made += 1;
    let value = format!("{KEY_PREFIX}{}", hash(&format!("{} {}", ledger.made, now_ms())));
    let row = KeyRow {
        hash: hash(&value),
        name: new.name,
        label: format!("{}...{}", &value[..12], &value[value.len() - 3..]),
        limit: new.limit,
        limit_reset: new.limit_reset,
        usage: 0.0,
        disabled: false,
        with_byok: new.include_byok_in_limit,
        created_ms: now_ms(),
        updated_ms: None,
        expires_ms,
    };
    let answer = json!({ "key": value, "data": row.to_json() });
    ledger.keys.push(row);
    (StatusCode::CREATED, Json(answer)).into_response()
}

/// What a change leaves out stays.
#[derive(Deserialize)]
struct KeyPatch {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    disabled: Option<bool>,
    #[serde(default)]
    include_byok_in_limit: Option<bool>,
    #[serde(default, deserialize_with = "said")]
    limit: Option<Option<f64>>,
    #[serde(default, deserialize_with = "said")]
    limit_reset: Option<Option<String>>,
}

/// Tells a null from something that was not said.
fn said<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

async fn change(
    State(shared): State<Arc<ServerState>>,
    _: KeyManager,
    Path(hash): Path<String>,
    KeyRequest(change): KeyRequest<KeyPatch>,
) -> Response {
    let mut ledger = shared.made_keys.lock();
    let Some(row) = ledger.keys.iter_mut().find(|row| row.hash == hash) else {
        return unknown();
    };
    row.name = change.name.unwrap_or_else(|| row.name.clone());
    row.disabled = change.disabled.unwrap_or(row.disabled);
    row.with_byok = change.include_byok_in_limit.unwrap_or(row.with_byok);
    row.limit = change.limit.unwrap_or(row.limit);
    row.limit_reset = change.limit_reset.unwrap_or_else(|| row.limit_reset.clone());
    row.updated_ms = Some(now_ms());
    Json(json!({ "data": row.to_json() })).into_response()
}

async fn read(
    State(shared): State<Arc<ServerState>>,
    _: KeyManager,
    Path(hash): Path<String>,
) -> Response {
    let ledger = shared.made_keys.lock();
    match ledger.keys.iter().find(|row| row.hash == hash) {
        Some(row) => Json(json!({ "data": row.to_json() })).into_response(),
        None => unknown(),
    }
}

async fn delete(
    State(shared): State<Arc<ServerState>>,
    _: KeyManager,
    Path(hash): Path<String>,
) -> Response {
    let mut ledger = shared.made_keys.lock();
    let before = ledger.keys.len();
    ledger.keys.retain(|row| row.hash != hash);
    if ledger.keys.len() == before {
        return unknown();
    }
    Json(json!({ "deleted": true })).into_response()
}

/// What a key is told about itself; another one is told that it has no limit.
async fn own(State(shared): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    let Some(key) = bearer(&headers) else {
        return refusal(StatusCode::UNAUTHORIZED, "No auth credentials found");
    };
    let ledger = shared.made_keys.lock();
    match ledger.keys.iter().find(|row| row.hash == hash(key)) {
        Some(row) => Json(json!({ "data": row.own_json() })).into_response(),
        None if key.starts_with(KEY_PREFIX) => refusal(StatusCode::UNAUTHORIZED, "User not found."),
        None => {
            Json(json!({ "data": { "label": "any", "limit_remaining": null } })).into_response()
        }
    }
}

#[derive(Deserialize)]
struct TokenPrice {
    usd_per_million: f64,
}

/// Sets the price of a million tokens. Only the program's owner may call it.
async fn price(
    State(shared): State<Arc<ServerState>>,
    headers: HeaderMap,
    Json(price): Json<TokenPrice>,
) -> Response {
    if let Some(refused) = shared.refuses_control(&headers) {
        return refused;
    }
    shared.made_keys.lock().usd_per_million = price.usd_per_million;
    StatusCode::NO_CONTENT.into_response()
}

/// Whoever may manage keys; others are refused.
struct KeyManager;

impl<S: Send + Sync> FromRequestParts<S> for KeyManager {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let message = match bearer(&parts.headers) {
            None => "Missing Authentication header",
            Some(key) if key.starts_with(KEY_PREFIX) => "Invalid management key",
            Some(_) => return Ok(Self),
        };
        Err(refusal(StatusCode::UNAUTHORIZED, message))
    }
}

/// A body; one that cannot be read is refused in the vendor's form.
struct KeyRequest<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for KeyRequest<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(why) => Err(refusal(StatusCode::BAD_REQUEST, &why.body_text())),
        }
    }
}

fn unknown() -> Response {
    refusal(StatusCode::NOT_FOUND, "API key not found")
}

fn refusal(status: StatusCode, message: &str) -> Response {
    let error = json!({ "error": { "message": message, "code": status.as_u16() } });
    (status, Json(error)).into_response()
}

fn hash(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}

fn iso(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(DateTime::from_timestamp_millis);
    at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Milliseconds since 1970 of a time as clients write it, with seconds.
fn ms(at: &str) -> Result<u64, String> {
    let at = DateTime::parse_from_rfc3339(at).map_err(|e| e.to_string())?;
    u64::try_from(at.timestamp_millis()).map_err(|e| e.to_string())
}
