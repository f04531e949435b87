//! The stack's secrets: flat JSON objects in Secrets Manager, one for each need, so that a function reads no key that
//! it does not use.
//!
//! Promised: a copy is gone by for a bounded time, so that a key that is replaced is picked up without a redeploy; a
//! read that fails leaves the copy that there is; nothing that a sender does has more than one read made for it in that
//! time. No value is in a log, in an error or in what `Debug` shows. Deliberately absent: writing.

use std::sync::Arc;

use aws_sdk_secretsmanager::Client;
use bobbin_core::base::ids::Ms;
pub use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::keys::Key;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::aws::{Aws, Late};
use crate::config::{Config, required};

/// Between two looks for a newer value, whatever makes one wanted.
const NEWER_MS: u64 = 60_000;
/// Between two tries of a secret that could not be read yet.
const RETRY_MS: u64 = 2_000;
/// Characters of a stack key; the template makes 48.
const STACK_KEY_CHARS_MIN: usize = 32;

/// What ingress reads. A key that is not there is empty, as in the other secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressSecret {
    /// Verifies what Slack signs.
    pub slack_signing_secret: Secret,
}

/// What the worker alone reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WorkerSecret {
    /// Speaks as the bot on Discord; an interaction is answered without it.
    pub discord_bot_token: Secret,
    /// Speaks as the bot on Slack.
    pub slack_bot_token: Secret,
    /// Pays for Anthropic's models.
    pub anthropic_api_key: Secret,
    /// Pays for `OpenAI`'s models, or for those of an endpoint of one's own.
    pub openai_api_key: Secret,
    /// Pays for `OpenRouter`'s models.
    pub openrouter_api_key: Secret,
}

/// What the worker and the sweeper read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProviderSecret {
    /// Runs the sandboxes at Daytona.
    pub daytona_api_key: Secret,
    /// Runs the sandboxes at Vercel.
    pub vercel_token: Secret,
    /// Logs in at SSH hosts.
    pub ssh_key: Secret,
}

impl ProviderSecret {
    /// The key of a provider; none for a key that is not one's.
    #[must_use]
    pub const fn of(&self, key: Key) -> Option<&Secret> {
        match key {
            Key::DaytonaApiKey => Some(&self.daytona_api_key),
            Key::VercelToken => Some(&self.vercel_token),
            Key::SshKey => Some(&self.ssh_key),
            _ => None,
        }
    }
}

/// Made by the template, and never changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StackKey {
    /// Passwords of sandboxes are derived from it.
    pub stack_key: Secret,
}

/// All keys of the worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// What the worker alone reads: chat tokens and model keys.
    pub worker: Arc<WorkerSecret>,
    /// What the sandboxes' provider is called with.
    pub provider: Arc<ProviderSecret>,
    /// What the sandboxes' passwords are made from.
    pub stack: Arc<StackKey>,
}

/// A secret, and the copy of it that this process goes by.
#[derive(Debug)]
pub struct CachedSecret<T> {
    aws: Late<Client>,
    id: String,
    /// How old the copy may be.
    age_ms: u64,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    copy: Option<Arc<T>>,
    /// Of the last read, whatever came of it.
    tried_at_ms: Option<Ms>,
}

impl<T: DeserializeOwned + PartialEq> CachedSecret<T> {
    /// The secret with this name or ARN, not read yet. A read takes no longer than `read_ms`.
    #[must_use]
    pub fn new(aws: &Aws, id: String, age_ms: u64, read_ms: u64) -> Self {
        Self {
            aws: Late::new(aws.clone(), Aws::secrets, read_ms),
            id,
            age_ms,
            state: Mutex::new(State { copy: None, tried_at_ms: None }),
        }
    }

    /// The secret whose name or ARN a variable of the function holds.
    ///
    /// # Errors
    /// A sentence that names the variable that is not set.
    pub fn named_by(
        variable: &str,
        aws: &Aws,
        config: &Config,
        read_ms: u64,
    ) -> Result<Self, String> {
        let age_ms = config.limits.tenant.secrets_ms;
        Ok(Self::new(aws, required(variable)?, age_ms, read_ms))
    }

    /// A copy that is no older than the bound. Where it cannot be read anew, the older one.
    ///
    /// # Errors
    /// What to look at, when there is no copy at all.
    pub async fn fresh(&self, now_ms: Ms) -> Result<Arc<T>, String> {
        self.aged(now_ms, 1).await
    }

    /// The same with a copy that may be so many times older.
    ///
    /// # Errors
    /// As [`CachedSecret::fresh`].
    pub async fn aged(&self, now_ms: Ms, ages: u64) -> Result<Arc<T>, String> {
        let age_ms = self.age_ms.saturating_mul(ages);
        let mut state = self.state.lock().await;
        if state.copy.is_none() || self.is_due(&state, now_ms, age_ms) {
            self.read(&mut state, now_ms).await?;
        }
        state.copy.clone().ok_or_else(|| self.unread())
    }

    /// The copy however old it is; read if there is none.
    ///
    /// # Errors
    /// What to look at, when there is no copy.
    pub async fn known(&self, now_ms: Ms) -> Result<Arc<T>, String> {
        let mut state = self.state.lock().await;
        if state.copy.is_none() {
            if !self.is_due(&state, now_ms, RETRY_MS.min(self.age_ms)) {
                return Err(self.unread());
            }
            self.read(&mut state, now_ms).await?;
        }
        state.copy.clone().ok_or_else(|| self.unread())
    }

    /// What stands in the secret now, if that is another value than the copy. Looks at most once a minute, or as often as a
    /// copy has to be read anew, however often this is asked.
    pub async fn newer(&self, now_ms: Ms) -> Option<Arc<T>> {
        let mut state = self.state.lock().await;
        if !self.is_due(&state, now_ms, NEWER_MS.min(self.age_ms)) {
            return None;
        }
        let before = state.copy.clone();
        self.read(&mut state, now_ms).await.ok()?;
        let now = state.copy.clone();
        now.filter(|now| before.as_ref() != Some(now))
    }

    fn is_due(&self, state: &State<T>, now_ms: Ms, pause_ms: u64) -> bool {
        state.tried_at_ms.is_none_or(|tried_at_ms| now_ms.saturating_sub(tried_at_ms) >= pause_ms)
    }

    /// Reads it. A failure is an error only where there is no copy to go on with.
    async fn read(&self, state: &mut State<T>, now_ms: Ms) -> Result<(), String> {
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
                tracing::error!(event = "secret.unread", "{why}; its earlier values are used");
                Ok(())
            }
            Err(why) => {
                tracing::error!(event = "secret.unread", "{why}");
                Err(why)
            }
        }
    }

    async fn value(&self) -> Result<T, String> {
        let id = &self.id;
        let text = self.text().await?;
        // The decoder's message can quote the value, so only its position is told.
        serde_json::from_str(text.expose()).map_err(|e| {
            format!(
                "the secret {id} is not a JSON object of texts (line {}, column {}): store it again with `bobbin secrets`",
                e.line(),
                e.column()
            )
        })
    }

    /// The text of the secret; what went wrong holds never a part of it.
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
    worker: CachedSecret<WorkerSecret>,
    provider: CachedSecret<ProviderSecret>,
    stack: CachedSecret<StackKey>,
}

impl WorkerSecrets {
    /// Those with the names or ARNs that the variables of the worker hold.
    #[must_use]
    pub const fn new(
        worker: CachedSecret<WorkerSecret>,
        provider: CachedSecret<ProviderSecret>,
        stack: CachedSecret<StackKey>,
    ) -> Self {
        Self { worker, provider, stack }
    }

    /// All keys, from copies that may be so many times older than the bound; read side by side where they have to be. The
    /// stack's own is read once.
    ///
    /// # Errors
    /// What to look at, when one was never read.
    pub async fn aged(&self, now_ms: Ms, ages: u64) -> Result<Keys, String> {
        // Each is read to its end: what could be read is kept where another one could not.
        let (worker, provider, stack) = tokio::join!(
            self.worker.aged(now_ms, ages),
            self.provider.aged(now_ms, ages),
            self.stack.known(now_ms)
        );
        let (worker, provider, stack) = (worker?, provider?, stack?);
        if stack.stack_key.expose().len() < STACK_KEY_CHARS_MIN {
            return Err(format!(
                "{} in the secret {} has fewer than {STACK_KEY_CHARS_MIN} characters: deploy the template again",
                Key::StackKey.name(),
                Key::StackKey.secret()
            ));
        }
        Ok(Keys { worker, provider, stack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_secrets() {
        let stack: StackKey = serde_json::from_str(r#"{"stack_key":"canary"}"#).expect("valid");
        assert_eq!(stack.stack_key.expose(), "canary");
        let keys = Keys { stack: Arc::new(stack), ..Keys::default() };
        assert!(!format!("{keys:?}").contains("canary"));
    }

    #[test]
    fn each_key_has_its_secret() {
        for key in Key::ALL {
            let text = format!(r#"{{"{}":"value"}}"#, key.name());
            let found = match key.secret() {
                "IngressSecret" => {
                    let read: IngressSecret = serde_json::from_str(&text).expect("valid");
                    read != IngressSecret::default()
                }
                "WorkerSecret" => {
                    let read: WorkerSecret = serde_json::from_str(&text).expect("valid");
                    read != WorkerSecret::default()
                }
                "ProviderSecret" => {
                    let read: ProviderSecret = serde_json::from_str(&text).expect("valid");
                    read != ProviderSecret::default()
                }
                _ => {
                    let read: StackKey = serde_json::from_str(&text).expect("valid");
                    read != StackKey::default()
                }
            };
            assert!(found, "{key:?} is not read from {}", key.secret());
        }
    }
}
