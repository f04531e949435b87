//! The provider, with the key as it stands in its secret: made again when the key has been replaced.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_app::providers::{self, ProviderSettings, Providers};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::secrets::{CachedSecret, ProviderSecret};
use bobbin_core::ids::Ms;
use bobbin_core::keys::Key;
use bobbin_core::secret::Secret;
use bobbin_sandbox::Provider;

/// Longest time for reading the secret.
const READ_MS_MAX: u64 = 5_000;

/// The provider, and the secret that it was made with.
type Made = (Arc<ProviderSecret>, Arc<dyn Provider>);

/// The provider, and the secret behind it, which the first tick reads.
pub struct KeyedProvider {
    secret: CachedSecret<ProviderSecret>,
    config: Config,
    /// As it was last made, and of what.
    made: Mutex<Option<Made>>,
}

impl KeyedProvider {
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

    /// The key that the provider is called with.
    ///
    /// # Errors
    /// A sentence that names the providers there are.
    pub fn key(&self) -> Result<Key, String> {
        providers::key_of(&self.config.provider)
    }

    /// The provider; none while there is no key.
    ///
    /// # Errors
    /// When the secret was never read, or the provider's address cannot be used.
    pub async fn get(&self, now_ms: Ms) -> Result<Option<Arc<dyn Provider>>, String> {
        let secret = self.secret.fresh(now_ms).await?;
        let key = self.key()?;
        if secret.of(key).is_none_or(Secret::is_empty) {
            return Ok(None);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, provider)) = &*made
            && Arc::ptr_eq(of, &secret)
        {
            return Ok(Some(Arc::clone(provider)));
        }
        let settings = ProviderSettings::from(&self.config);
        let provider = Providers::new(&settings, &secret)?.configured();
        *made = Some((secret, Arc::clone(&provider)));
        Ok(Some(provider))
    }
}
