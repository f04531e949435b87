//! OpenRouter's keys: a management key, which calls no model, makes model keys with a limit of money.
//!
//! Promised: the value of a key is returned once and kept nowhere here; no error holds a key. Deliberately absent:
//! repeats. The call that makes a key is not repeatable, since names need not be unique: the caller finds by name what
//! a call left whose answer never came.

use std::fmt;

use bobbin_core::base::ids::Ms;
use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::budgets::MicroUsd;
use bobbin_http::{AllowedHosts, Http, HttpError, Method, ReceivedAnswer};
use chrono::{DateTime, SecondsFormat};
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

/// Keys of a page of the list.
const PAGE_KEYS: usize = 100;
/// Most pages that are read.
const PAGES_MAX: usize = 50;

/// A key as it is listed: everything but its value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ListedKey {
    /// Its id in the routes.
    pub hash: String,
    /// The name that its maker gave it.
    pub name: String,
    /// US dollars that it may spend altogether; `None`: any.
    pub limit: Option<f64>,
    /// US dollars that it has spent.
    pub usage: f64,
}

/// A new key.
pub struct MadeKey {
    /// Its id in the routes.
    pub hash: String,
    /// The key itself.
    pub value: Secret,
}

/// A call that was not answered as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMakerError {
    /// The management key is wrong, or may not do this.
    #[error("OpenRouter refuses the management key")]
    Refused,
    /// Any other failure: what was seen.
    #[error("{0}")]
    Failed(String),
}

impl From<HttpError> for KeyMakerError {
    fn from(error: HttpError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The client. It holds the management key.
pub struct KeyMaker {
    http: Http,
    base: String,
    management_key: Secret,
}

impl fmt::Debug for KeyMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMaker").field("base", &self.base).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct ManagedAnswer<T> {
    data: T,
}

#[derive(Deserialize)]
struct KeyShownOnce {
    key: Secret,
    data: ListedKey,
}

impl KeyMaker {
    /// At the API with this base.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base is not an allowed address.
    pub fn new(base: &str, management_key: Secret) -> Result<Self, HttpError> {
        let http = Http::new(base, AllowedHosts::Named(Vec::new()))?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), management_key })
    }

    /// Base of its API.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// All keys of the account, also disabled ones.
    ///
    /// # Errors
    /// [`KeyMakerError`]; also when there are more than can be read.
    pub async fn list(&self) -> Result<Vec<ListedKey>, KeyMakerError> {
        let mut all = Vec::new();
        for page in 0..PAGES_MAX {
            let path = format!("keys?include_disabled=true&offset={}", page * PAGE_KEYS);
            let found: ManagedAnswer<Vec<ListedKey>> = self.sent(Method::GET, &path, None).await?;
            let is_last = found.data.len() < PAGE_KEYS;
            all.extend(found.data);
            if is_last {
                return Ok(all);
            }
        }
        Err(KeyMakerError::Failed(format!("there are more than {} keys", all.len())))
    }

    /// Makes a key that spends at most this, until that time.
    ///
    /// # Errors
    /// [`KeyMakerError`]; the key may have been made all the same.
    pub async fn make(
        &self,
        name: &str,
        limit: MicroUsd,
        until_ms: Ms,
    ) -> Result<MadeKey, KeyMakerError> {
        let until = i64::try_from(until_ms).ok().and_then(DateTime::from_timestamp_millis);
        let until = until.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = json!({
            "name": name, "limit": dollars(limit), "limit_reset": null, "expires_at": until,
            "include_byok_in_limit": true,
        });
        let made: KeyShownOnce = self.sent(Method::POST, "keys", Some(&body)).await?;
        Ok(MadeKey { hash: made.data.hash, value: made.key })
    }

    /// Renames a key, which may spend so much more from now on; `None`: any amount.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn limit(
        &self,
        key: &ListedKey,
        name: &str,
        more: Option<MicroUsd>,
    ) -> Result<(), KeyMakerError> {
        let limit = more.map(|more| key.usage + dollars(more));
        let body = json!({ "name": name, "limit": limit });
        let path = format!("keys/{}", key.hash);
        self.sent::<Value>(Method::PATCH, &path, Some(&body)).await.map(drop)
    }

    /// Deletes a key; already gone is success.
    ///
    /// # Errors
    /// [`KeyMakerError`].
    pub async fn delete(&self, hash: &str) -> Result<(), KeyMakerError> {
        let answer = self.answered(Method::DELETE, &format!("keys/{hash}"), None).await?;
        if answer.status == 404 { Ok(()) } else { read::<Value>(&answer).map(drop) }
    }

    async fn sent<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, KeyMakerError> {
        read(&self.answered(method, path, body).await?)
    }

    async fn answered(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ReceivedAnswer, HttpError> {
        let request = self.http.request(method, &format!("{}/{path}", self.base))?;
        let with_body = |request: RequestBuilder| match body {
            Some(body) => request.json(body),
            None => request,
        };
        let request = with_body(request.bearer_auth(self.management_key.expose()));
        self.http.send(request).await
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: &ReceivedAnswer) -> Result<T, KeyMakerError> {
    match answer.status {
        401 | 403 => Err(KeyMakerError::Refused),
        status if !answer.ok() => {
            Err(KeyMakerError::Failed(format!("OpenRouter answered with status {status}")))
        }
        _ => answer
            .json()
            .ok_or_else(|| KeyMakerError::Failed("OpenRouter's answer is unreadable".to_owned())),
    }
}

fn dollars(amount: MicroUsd) -> f64 {
    amount as f64 / 1_000_000.0
}
