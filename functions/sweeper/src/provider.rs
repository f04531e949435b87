//! The provider's client, with the key as it stands in its secret: made again when the key has been replaced.

use std::sync::{Arc, Mutex, PoisonError};

use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::secrets::{Kept, ProviderSecret};
use bobbin_core::ids::Ms;
use bobbin_sandbox::daytona::Daytona;

/// Longest time for reading the secret.
const READ_MS_MAX: u64 = 5_000;

/// The client, and the secret behind it, which the first tick reads.
#[derive(Debug)]
pub struct Provider {
    kept: Kept<ProviderSecret>,
    api: String,
    /// As it was last made, and of what.
    made: Mutex<Option<(Arc<ProviderSecret>, Daytona)>>,
}

impl Provider {
    /// From the function's environment.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing.
    pub fn new(aws: &Aws, config: &Config) -> Result<Self, String> {
        Ok(Self {
            kept: Kept::named_by("PROVIDER_SECRET_ID", aws, config, READ_MS_MAX)?,
            api: config.daytona_api.clone(),
            made: Mutex::new(None),
        })
    }

    /// The client; none while there is no key.
    ///
    /// # Errors
    /// When the secret was never read, or the provider's address cannot be used.
    pub async fn daytona(&self, now_ms: Ms) -> Result<Option<Daytona>, String> {
        let secret = self.kept.fresh(now_ms).await?;
        if secret.daytona_api_key.is_empty() {
            return Ok(None);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, daytona)) = &*made
            && Arc::ptr_eq(of, &secret)
        {
            return Ok(Some(daytona.clone()));
        }
        let daytona = Daytona::new(&self.api, secret.daytona_api_key.expose())
            .map_err(|e| format!("daytona_api of the parameter Overrides: {e}"))?;
        *made = Some((secret, daytona.clone()));
        Ok(Some(daytona))
    }
}
