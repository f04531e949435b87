//! The tenant's settings, read where they decide the thread of a message: within the platform's time limit, or not at
//! all, and then the worker decides.

use std::time::Duration;

use bobbin_cloud::aws::Aws;
use bobbin_cloud::store::Store;
use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::settings::Settings;

/// Longest time for the read: reading the signing secret, sending to the queue and announcing have their own shares of
/// the three seconds.
const READ_MS_MAX: u64 = 400;

/// Tenant settings. Ingress may read only items that belong to no thread.
#[derive(Debug)]
pub struct TenantSettings(Store);

impl TenantSettings {
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self(Store::new(aws, table))
    }

    /// The current settings; `None` if the table did not answer in time or the item cannot be read.
    pub async fn of(&self, tenant: &Tenant) -> Option<Settings> {
        let read = self.0.settings(tenant);
        let why = match tokio::time::timeout(Duration::from_millis(READ_MS_MAX), read).await {
            Ok(Ok(settings)) => return Some(settings),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {READ_MS_MAX} ms"),
        };
        tracing::warn!(
            event = "ingress.undecided",
            %tenant,
            "the worker decides to which thread a message belongs: {why}"
        );
        None
    }
}
