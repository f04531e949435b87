//! The providers, with the keys as they stand in their secret: made again when a key has been replaced.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::secrets::{CachedSecret, ProviderSecret};
use bobbin_core::ids::Ms;
use bobbin_core::keys::Key;
use bobbin_core::secret::Secret;
use bobbin_sandbox::Provider;

use crate::providers::{self, ProviderSettings, Providers};

/// Longest time for reading the secret.
const READ_MS_MAX: u64 = 5_000;

/// Providers by their names.
pub type Named = Vec<(&'static str, Arc<dyn Provider>)>;

/// The providers that have keys, and the secret behind them, which the first tick reads.
pub struct KeyedProviders {
    secret: CachedSecret<ProviderSecret>,
    config: Config,
    /// As they were last made, and of what.
    made: Mutex<Option<(Arc<ProviderSecret>, Named)>>,
}

impl KeyedProviders {
    /// From the function's environment.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing.
    pub fn new(aws: &Aws, config: &Config) -> Result<Self, String> {
        Ok(Self {
            secret: CachedSecret::named_by("PROVIDER_SECRET_ID", aws, config, READ_MS_MAX)?,
            config: config.clone(),
            made: Mutex::new(None),
        })
    }

    /// The key that the configured provider is called with.
    ///
    /// # Errors
    /// A sentence that names the providers there are.
    pub fn key(&self) -> Result<Key, String> {
        providers::key_of(&self.config.provider)
    }

    /// The providers that there are keys for; none before the first key is stored.
    ///
    /// # Errors
    /// When the secret was never read, or the configured provider's settings cannot be used.
    pub async fn get(&self, now_ms: Ms) -> Result<Named, String> {
        let secret = self.secret.fresh(now_ms).await?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, named)) = &*made
            && Arc::ptr_eq(of, &secret)
        {
            return Ok(named.clone());
        }
        let settings = ProviderSettings::from(&self.config);
        let all = Providers::new(&settings, &secret)?;
        let mut named = Vec::new();
        for name in all.names() {
            let key = secret.of(providers::key_of(name)?);
            if key.is_some_and(|key| !Secret::is_empty(key)) {
                named.extend(all.of(name).map(|provider| (name, provider)));
            }
        }
        *made = Some((secret, named.clone()));
        Ok(named)
    }
}
