//! The stack's secrets: flat JSON objects in Secrets Manager, one per need, so that a function reads no key that it
//! does not use.
//!
//! Promised: a cached copy is used for a bounded time, so that a replaced key is picked up without a redeploy. A failed
//! read keeps the existing copy. No sender can cause more than one read in that time. No value is in a log, in an error
//! or in the output of `Debug`. Deliberately absent: writing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_sdk_secretsmanager::Client;
use bobbin_core::base::ids::Ms;
pub use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::keys::Key;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tokio::sync::Mutex;

use crate::aws::{Aws, Late};
use crate::config::{Config, required};

/// Shortest interval between two reads for a newer value, regardless of the reason.
const NEWER_MS: u64 = 60_000;
/// Pause between two attempts to read a secret that was never read.
const RETRY_MS: u64 = 2_000;
/// Shortest stack key, in characters; the template makes 48.
const STACK_KEY_CHARS_MIN: usize = 32;

/// The value of a key that is not stored.
static NONE: Secret = Secret::none();

/// The keys in one secret, by their names. What else is in it is not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredKeys(BTreeMap<&'static str, Secret>);

impl StoredKeys {
    /// A key; empty if it is not stored here.
    #[must_use]
    pub fn of(&self, key: Key) -> &Secret {
        self.0.get(key.name()).unwrap_or(&NONE)
    }
}

impl<'de> Deserialize<'de> for StoredKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = StoredKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredKeys, A::Error> {
        let mut keys = StoredKeys::default();
        while let Some(name) = map.next_key::<String>()? {
            match Key::named(&name) {
                Some(key) => {
                    keys.0.insert(key.name(), map.next_value()?);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(keys)
    }
}

/// All keys of the worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerKeys {
    /// Chat tokens and model keys.
    worker: Arc<StoredKeys>,
    /// Keys of the sandbox providers.
    provider: Arc<StoredKeys>,
    /// The key that the template generated, from which sandbox passwords are derived.
    stack: Arc<StoredKeys>,
}

impl WorkerKeys {
    /// A key, from the secret in which it belongs; empty if it is not stored, or is not the worker's.
    #[must_use]
    pub fn of(&self, key: Key) -> &Secret {
        match key.secret() {
            "WorkerSecret" => self.worker.of(key),
            "ProviderSecret" => self.provider.of(key),
            "StackKey" => self.stack.of(key),
            _ => &NONE,
        }
    }

    /// The keys of the sandbox providers.
    #[must_use]
    pub fn of_providers(&self) -> &StoredKeys {
        &self.provider
    }
}

/// A secret, and this process's cached copy.
#[derive(Debug)]
pub struct CachedSecret {
    aws: Late<Client>,
    id: String,
    /// Largest age of the copy.
    age_ms: u64,
    state: Mutex<CachedCopy>,
}

#[derive(Debug)]
struct CachedCopy {
    copy: Option<Arc<StoredKeys>>,
    /// Time of the last read, successful or not.
    tried_at_ms: Option<Ms>,
}

impl CachedSecret {
    /// The secret with this name or ARN, not read yet. A read takes at most `read_ms`.
    #[must_use]
    pub fn new(aws: &Aws, id: String, age_ms: u64, read_ms: u64) -> Self {
        Self {
            aws: Late::new(aws.clone(), Aws::secrets, read_ms),
            id,
            age_ms,
            state: Mutex::new(CachedCopy { copy: None, tried_at_ms: None }),
        }
    }

    /// The secret whose name or ARN is in a variable of the function.
    ///
    /// # Errors
    /// Names the variable that is not set.
    pub fn named_by(
        variable: &str,
        aws: &Aws,
        config: &Config,
        read_ms: u64,
    ) -> Result<Self, String> {
        let age_ms = config.limits.tenant.secrets_ms;
        Ok(Self::new(aws, required(variable)?, age_ms, read_ms))
    }

    /// A copy no older than the bound. If a new read fails, the older copy.
    ///
    /// # Errors
    /// What to check, when there is no copy at all.
    pub async fn fresh(&self, now_ms: Ms) -> Result<Arc<StoredKeys>, String> {
        self.aged(now_ms, 1).await
    }

    /// Like [`CachedSecret::fresh`], but the copy may be `ages` times older.
    ///
    /// # Errors
    /// As [`CachedSecret::fresh`].
    pub async fn aged(&self, now_ms: Ms, ages: u64) -> Result<Arc<StoredKeys>, String> {
        let age_ms = self.age_ms.saturating_mul(ages);
        let mut state = self.state.lock().await;
        if state.copy.is_none() || self.is_due(&state, now_ms, age_ms) {
            self.read(&mut state, now_ms).await?;
        }
        state.copy.clone().ok_or_else(|| self.unread())
    }

    /// The copy, however old it is; reads the secret if there is none.
    ///
    /// # Errors
    /// What to check, when there is no copy.
    pub async fn known(&self, now_ms: Ms) -> Result<Arc<StoredKeys>, String> {
        self.kept(now_ms, u64::MAX).await
    }

    /// As [`CachedSecret::fresh`], but without a copy the secret is read only once in a while, however often this is
    /// called.
    ///
    /// # Errors
    /// What to check, when there is no copy.
    pub async fn renewed(&self, now_ms: Ms) -> Result<Arc<StoredKeys>, String> {
        self.kept(now_ms, self.age_ms).await
    }

    async fn kept(&self, now_ms: Ms, age_ms: u64) -> Result<Arc<StoredKeys>, String> {
        let mut state = self.state.lock().await;
        let pause_ms = if state.copy.is_some() { age_ms } else { RETRY_MS.min(self.age_ms) };
        if self.is_due(&state, now_ms, pause_ms) {
            self.read(&mut state, now_ms).await?;
        }
        state.copy.clone().ok_or_else(|| self.unread())
    }

    /// The secret's current value, if it differs from the copy. Reads at most once a minute, or as often as a copy has
    /// to be renewed, however often this is called.
    pub async fn newer(&self, now_ms: Ms) -> Option<Arc<StoredKeys>> {
        let mut state = self.state.lock().await;
        if !self.is_due(&state, now_ms, NEWER_MS.min(self.age_ms)) {
            return None;
        }
        let before = state.copy.clone();
        self.read(&mut state, now_ms).await.ok()?;
        let now = state.copy.clone();
        now.filter(|now| before.as_ref() != Some(now))
    }

    fn is_due(&self, state: &CachedCopy, now_ms: Ms, pause_ms: u64) -> bool {
        state.tried_at_ms.is_none_or(|tried_at_ms| now_ms.saturating_sub(tried_at_ms) >= pause_ms)
    }

    /// Reads the secret. A failure is an error only if there is no copy to use instead.
    async fn read(&self, state: &mut CachedCopy, now_ms: Ms) -> Result<(), String> {
        state.tried_at_ms = Some(now_ms);
        match self.value().await {
            Ok(value) => {
                if state.copy.as_deref() != Some(&value) {
                    let again = state.copy.is_some();
                    state.copy = Some(Arc::new(value));
                    if again {
                        tracing::info!(
                            event = "secret.changed",
                            secret = self.id,
                            "a secret has changed and is used from now on"
                        );
                    }
                }
                Ok(())
            }
            Err(why) if state.copy.is_some() => {
                tracing::error!(event = "secret.unread", "{why}; the earlier values stay in use");
                Ok(())
            }
            Err(why) => {
                tracing::error!(event = "secret.unread", "{why}");
                Err(why)
            }
        }
    }

    async fn value(&self) -> Result<StoredKeys, String> {
        let id = &self.id;
        let text = self.text().await?;
        // The decoder's message can quote the value, so the error keeps only the position.
        serde_json::from_str(text.expose()).map_err(|e| {
            format!(
                "the secret {id} is not a JSON object of texts (line {}, column {}): store it again with `bobbin secrets`",
                e.line(),
                e.column()
            )
        })
    }

    /// The text of the secret; an error never contains a part of it.
    async fn text(&self) -> Result<Secret, String> {
        let id = &self.id;
        let aws = self.aws.get();
        let get = aws.client.get_secret_value().secret_id(id);
        let got = get.send().await.map_err(|e| {
            let error = aws.failed(e);
            format!("the secret {id} cannot be read: {}", error.with_remedy())
        })?;
        let text = got.secret_string.map(Secret::from);
        text.ok_or_else(|| format!("the secret {id} holds no text"))
    }

    fn unread(&self) -> String {
        format!("the secret {} could not be read a moment ago", self.id)
    }
}

/// The secrets of the worker.
#[derive(Debug)]
pub struct WorkerSecrets {
    worker: CachedSecret,
    provider: CachedSecret,
    stack: CachedSecret,
}

impl WorkerSecrets {
    /// The secrets whose names or ARNs are in the worker's variables.
    #[must_use]
    pub const fn new(worker: CachedSecret, provider: CachedSecret, stack: CachedSecret) -> Self {
        Self { worker, provider, stack }
    }

    /// All keys, from copies that may be `ages` times older than the bound; missing ones are read concurrently. The
    /// stack's own key is read once.
    ///
    /// # Errors
    /// What to check, when one was never read.
    pub async fn aged(&self, now_ms: Ms, ages: u64) -> Result<WorkerKeys, String> {
        // Each read completes: a failed one does not discard the others.
        let (worker, provider, stack) = tokio::join!(
            self.worker.aged(now_ms, ages),
            self.provider.aged(now_ms, ages),
            self.stack.known(now_ms)
        );
        let (worker, provider, stack) = (worker?, provider?, stack?);
        if stack.of(Key::StackKey).expose().len() < STACK_KEY_CHARS_MIN {
            return Err(format!(
                "{} in the secret {} has fewer than {STACK_KEY_CHARS_MIN} characters: deploy the template again",
                Key::StackKey.name(),
                Key::StackKey.secret()
            ));
        }
        Ok(WorkerKeys { worker, provider, stack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> Arc<StoredKeys> {
        Arc::new(serde_json::from_str(text).expect("valid"))
    }

    #[test]
    fn debug_output_hides_secrets() {
        let stack = stored(r#"{"stack_key":"canary"}"#);
        assert_eq!(stack.of(Key::StackKey).expose(), "canary");
        let keys = WorkerKeys { stack, ..WorkerKeys::default() };
        assert!(!format!("{keys:?}").contains("canary"));
    }

    #[test]
    fn unknown_entries_are_not_read() {
        let kept = stored(r#"{"kept": 5, "slack_bot_token": "xoxb"}"#);
        assert_eq!(kept.of(Key::SlackBotToken).expose(), "xoxb");
        assert_eq!(kept, stored(r#"{"slack_bot_token": "xoxb"}"#));
        assert!(kept.of(Key::DiscordBotToken).is_empty());
    }

    #[test]
    fn each_key_has_its_secret() {
        for key in Key::ALL {
            let all = Key::ALL.map(|one| format!("\"{}\":\"{}\"", one.name(), one.secret()));
            let only = |secret: &str| {
                let text = format!("{{{}}}", all.join(","));
                stored(&text.replace(&format!("\"{secret}\""), "\"right\""))
            };
            let keys = WorkerKeys {
                worker: only("WorkerSecret"),
                provider: only("ProviderSecret"),
                stack: only("StackKey"),
            };
            let is_ingress = key.secret() == "IngressSecret";
            assert_eq!(keys.of(key).expose(), if is_ingress { "" } else { "right" }, "{key:?}");
        }
    }
}
