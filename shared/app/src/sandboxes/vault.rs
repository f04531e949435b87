//! Model keys that stay outside: the provider keeps them, and a sandbox sees what stands for them.
//!
//! Promised: a key is made or renewed at the provider before a sandbox is made or its server is started; a sandbox that was
//! made with placeholders never sees a key. Deliberately absent: the end of a secret whose stack is deleted
//! (docs/OPERATE.md), and any way to read a value back.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::failure::Failure;
use bobbin_sandbox::daytona::DaytonaError;
use bobbin_sandbox::daytona::secrets::{Secret, WriteSecret, secret_name, version};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::models::ModelKey;
use super::{PREPARE_MS_MAX, Sandboxes};

/// What the provider said holds for so long: another worker may still write a key that has been replaced.
const KNOWN_MS: u64 = 5 * 60_000;

/// What the provider keeps, as it last said.
#[derive(Default)]
pub(super) struct Vault(Mutex<Option<(Instant, Kept)>>);

/// Where the keys are.
#[derive(Clone)]
pub(super) enum Kept {
    /// At the provider: per variable the secret's name and what stands for it.
    Outside(BTreeMap<String, Placeholder>),
    /// Nowhere but here: the provider keeps none for this stack.
    Nowhere,
}

/// What stands for a key in a sandbox.
#[derive(Clone)]
pub(super) struct Placeholder {
    secret: String,
    pub(super) text: String,
}

impl Kept {
    /// Variable to the name of its secret.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        let Self::Outside(kept) = self else {
            return BTreeMap::new();
        };
        let name =
            |(variable, one): (&String, &Placeholder)| (variable.clone(), one.secret.clone());
        kept.iter().map(name).collect()
    }
}

impl Sandboxes {
    /// Gives the provider the keys, for the sandboxes that run: a key has been replaced. What does not succeed in time is
    /// done when a server is started next.
    pub async fn renew_keys(&self) {
        if let Ok((_, keys)) = self.models.for_server() {
            let bound = Duration::from_millis(PREPARE_MS_MAX);
            let _ = timeout(bound, self.keep(&keys)).await;
        }
    }

    /// Sees to it that the provider keeps these keys.
    ///
    /// # Errors
    /// What the provider's answer means. That it keeps no secrets, or not with this key, is [`Kept::Nowhere`].
    pub(super) async fn keep(&self, keys: &[ModelKey]) -> Result<Kept, Failure> {
        if self.settings.model_keys_inside {
            return Ok(Kept::Nowhere);
        }
        // Whoever comes meanwhile waits for this answer and asks nothing.
        let mut known = self.vault.0.lock().await;
        if let Some((until, kept)) = &*known
            && Instant::now() < *until
        {
            return Ok(kept.clone());
        }
        let kept = match self.kept(keys).await {
            Ok(kept) => Kept::Outside(kept),
            Err(
                error @ (DaytonaError::Forbidden { .. }
                | DaytonaError::NotFound
                | DaytonaError::Unavailable { status: 501, .. }),
            ) => {
                tracing::warn!(
                    event = "model.keys.inside",
                    %error,
                    "the provider keeps no secrets for this stack: new sandboxes get the model keys themselves"
                );
                Kept::Nowhere
            }
            Err(error) => return Err(error.failure()),
        };
        *known = Some((
            Instant::now() + Duration::from_millis(KNOWN_MS),
            kept.clone(),
        ));
        Ok(kept)
    }

    async fn kept(&self, keys: &[ModelKey]) -> Result<BTreeMap<String, Placeholder>, DaytonaError> {
        let mut kept = BTreeMap::new();
        let wanted: Vec<&ModelKey> = keys.iter().filter(|key| !key.hosts.is_empty()).collect();
        if wanted.is_empty() {
            return Ok(kept);
        }
        let there = self.daytona.secrets().await?;
        for key in wanted {
            let name = secret_name(self.settings.of_stack(), key.variable);
            let secret = self.written(key, &name, &there).await?;
            let placeholder = Placeholder {
                secret: name,
                text: secret.placeholder,
            };
            kept.insert(key.variable.to_owned(), placeholder);
        }
        Ok(kept)
    }

    async fn written(
        &self,
        key: &ModelKey,
        name: &str,
        there: &[Secret],
    ) -> Result<Secret, DaytonaError> {
        let mut body = WriteSecret {
            name: None,
            value: key.value.clone(),
            description: version(&self.settings.stack_key, key.variable, &key.value),
            hosts: key.hosts.clone(),
        };
        match there.iter().find(|one| one.name == name) {
            Some(found) if body.is(found) => Ok(found.clone()),
            Some(found) => match self.daytona.update_secret(&found.id, &body).await {
                // Deleted since the list was read: the next try makes it.
                Err(DaytonaError::NotFound) => Err(DaytonaError::Conflict {
                    message: format!("the secret {name} is gone"),
                }),
                other => other,
            },
            None => {
                body.name = Some(name.to_owned());
                self.daytona.create_secret(&body).await
            }
        }
    }
}
