//! Model keys kept outside: the provider holds them, and a sandbox sees placeholders.
//!
//! Promised: a key is created or renewed at the provider before a sandbox is created or its server is started; a
//! sandbox that was created with placeholders never sees a key. Deliberately absent: deletion of secrets whose stack is
//! deleted (docs/OPERATE.md), and any way to read a value back.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_agent::ModelKey;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::names::secret_version;
use bobbin_sandbox::{HostedSecret, Placeholder, Sandbox, Secrets};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::capped::NewKey;
use super::{PREPARE_MS_MAX, Sandboxes};

/// How long the provider's answer is trusted: another worker may still write a key that has been replaced.
const KNOWN_MS: u64 = 5 * 60_000;

/// The provider's secrets by its last answer, and until when it is trusted.
#[derive(Default)]
pub(super) struct OutsideKeys(Mutex<Option<(Instant, Secrets)>>);

/// Maps each variable to the name of its secret.
pub(super) fn names(kept: &BTreeMap<String, Placeholder>) -> BTreeMap<String, String> {
    let name = |(variable, one): (&String, &Placeholder)| (variable.clone(), one.secret.clone());
    kept.iter().map(name).collect()
}

impl Sandboxes {
    /// Gives the provider the replaced keys for running sandboxes. A failed update is made up for when a server is
    /// started next.
    pub async fn renew_keys(&self) {
        if let Ok(keys) = self.runtime.keys() {
            let bound = Duration::from_millis(PREPARE_MS_MAX);
            let _ = timeout(bound, self.keep(&keys)).await;
        }
    }

    /// Has the provider keep a capped key for its sandbox alone, in the place of the stack's.
    ///
    /// # Errors
    /// There is no room for it, or the class of the provider's failure.
    pub(super) async fn keep_own(
        &self,
        sandbox: &Sandbox,
        own: &NewKey,
        keys: &[ModelKey],
    ) -> Result<BTreeMap<String, Placeholder>, Failure> {
        let value = own.made.value.expose();
        let replaced = keys.iter().find(|key| key.variable == own.variable);
        let secret = HostedSecret {
            variable: own.variable.to_owned(),
            value: value.to_owned(),
            version: secret_version(&self.settings.stack_key, own.variable, value),
            hosts: replaced.map(|key| key.hosts.clone()).unwrap_or_default(),
            owner: self.settings.keys_of.clone(),
            sandbox: Some(sandbox.name.clone()),
        };
        let nowhere = |why: &str| Failure::Wait { after_ms: 0, seen: why.to_owned() };
        let store = self.provider.facts().secrets.map_err(nowhere)?;
        match store.keep(&[secret]).await? {
            Secrets::Outside(kept) => Ok(kept),
            Secrets::Nowhere { seen } => Err(nowhere(&seen)),
        }
    }

    /// Makes sure that the provider holds these keys.
    ///
    /// # Errors
    /// The class of the provider's failure.
    pub(super) async fn keep(&self, keys: &[ModelKey]) -> Result<Secrets, Failure> {
        if self.settings.model_keys_inside {
            let seen = "the keys are to be inside".to_owned();
            return Ok(Secrets::Nowhere { seen });
        }
        // Concurrent callers wait for this answer and send no request.
        let mut known = self.outside_keys.0.lock().await;
        if let Some((until, kept)) = &*known
            && Instant::now() < *until
        {
            return Ok(kept.clone());
        }
        let hosted = |key: &ModelKey| HostedSecret {
            variable: key.variable.to_owned(),
            value: key.value.clone(),
            version: secret_version(&self.settings.stack_key, key.variable, &key.value),
            hosts: key.hosts.clone(),
            owner: self.settings.keys_of.clone(),
            sandbox: None,
        };
        let secrets: Vec<HostedSecret> =
            keys.iter().filter(|key| !key.hosts.is_empty()).map(hosted).collect();
        let kept = match self.provider.facts().secrets {
            Ok(store) => store.keep(&secrets).await?,
            Err(why) => Secrets::Nowhere { seen: why.to_owned() },
        };
        if let Secrets::Nowhere { seen } = &kept {
            tracing::warn!(
                event = "model.keys.inside",
                error = %seen,
                "the provider keeps no secrets for this stack: new sandboxes get the model keys themselves"
            );
        }
        let until = Instant::now() + Duration::from_millis(KNOWN_MS);
        *known = Some((until, kept.clone()));
        Ok(kept)
    }
}
