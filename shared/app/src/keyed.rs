//! Provider clients, rebuilt when their secret changes.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::{Config, required};
use bobbin_cloud::secrets::{CachedSecret, StoredKeys};
use bobbin_core::base::ids::Ms;
use bobbin_core::tenant::keys::Key;
use bobbin_sandbox::Provider;

use crate::capped::{self, CappedKeys};
use crate::providers::{self, Providers};

/// Longest time to read the secret.
const READ_MS_MAX: u64 = 5_000;

/// Providers by name.
pub type NamedProviders = Vec<(&'static str, Arc<dyn Provider>)>;

/// The providers that have keys, and their secret, which the first use reads.
pub struct KeyedProviders {
    secret: CachedSecret,
    config: Config,
    /// The last clients built, and the secret they were built from.
    made: Mutex<Option<(Arc<StoredKeys>, NamedProviders)>>,
}

impl KeyedProviders {
    /// From the function's environment; a copy of the secret is used until it is `age_ms` old.
    ///
    /// # Errors
    /// A sentence that names the missing variable.
    pub fn new(aws: &Aws, config: &Config, age_ms: u64) -> Result<Self, String> {
        Ok(Self {
            secret: CachedSecret::new(aws, required("PROVIDER_SECRET_ID")?, age_ms, READ_MS_MAX),
            config: config.clone(),
            made: Mutex::new(None),
        })
    }

    /// The key for the configured provider.
    ///
    /// # Errors
    /// A sentence that names the available providers.
    pub fn key(&self) -> Result<Key, String> {
        providers::key_of(&self.config.providers.provider)
    }

    /// The providers that have keys; empty before the first key is stored.
    ///
    /// # Errors
    /// The secret was never read, or the configured provider's settings are unusable.
    pub async fn get(&self, now_ms: Ms) -> Result<NamedProviders, String> {
        self.named(self.secret.fresh(now_ms).await?)
    }

    /// The stack's capped keys; `None` without a management key.
    ///
    /// # Errors
    /// The secret was never read, or a setting is unusable.
    pub async fn capped(&self, now_ms: Ms) -> Result<Option<CappedKeys>, String> {
        let secret = self.secret.fresh(now_ms).await?;
        capped::of_stack(&self.config, secret.of(Key::OpenRouterManagementKey))
    }

    /// Clients with new keys, if the secret has changed.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn newer(&self, now_ms: Ms) -> Result<Option<NamedProviders>, String> {
        let newer = self.secret.newer(now_ms).await;
        newer.map(|secret| self.named(secret)).transpose()
    }

    fn named(&self, secret: Arc<StoredKeys>) -> Result<NamedProviders, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, named)) = &*made
            && Arc::ptr_eq(of, &secret)
        {
            return Ok(named.clone());
        }
        let all = Providers::new(&providers::settings(&self.config), &secret)?;
        let mut named = Vec::new();
        for name in all.names() {
            if !secret.of(providers::key_of(name)?).is_empty() {
                named.extend(all.of(name).map(|provider| (name, provider)));
            }
        }
        *made = Some((secret, named.clone()));
        Ok(named)
    }
}
