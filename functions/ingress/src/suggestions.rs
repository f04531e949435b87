//! What is suggested while somebody types: read from the table within the time that the platform gives, or not at all.

use std::collections::BTreeSet;
use std::time::Duration;

use bobbin_chat::{Chats, HttpAnswer, Known, Lookup, Sought};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::ids::{SandboxName, Tenant};
use bobbin_core::sandboxes::Listed;
use bobbin_core::settings::Settings;

/// How long the reads may take together: the platform waits three seconds, and a process that has just been started
/// has spent some of them.
const READ_MS_MAX: u64 = 1_500;
/// Sandboxes whose state is read: a platform shows 25 at most, and those in use come first.
const SANDBOXES_MAX: usize = 100;

/// Reads settings, catalogues and the sandboxes that have a name.
#[derive(Debug)]
pub struct Suggestions(Store);

impl Suggestions {
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self(Store::new(aws, table))
    }

    /// The suggestions; none when the table did not answer in time, or not with something that can be read.
    pub async fn read(&self, lookup: &Lookup) -> Option<HttpAnswer> {
        let within = Duration::from_millis(READ_MS_MAX);
        let why = match tokio::time::timeout(within, self.known(lookup)).await {
            Ok(Ok((settings, known))) => {
                return Some(Chats::suggestions(lookup, &settings, &known));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {READ_MS_MAX} ms"),
        };
        tracing::warn!(
            event = "ingress.unsuggested",
            tenant = %lookup.tenant,
            "nothing could be suggested: {why}"
        );
        None
    }

    async fn known(&self, lookup: &Lookup) -> Result<(Settings, Known), StoreError> {
        let tenant = &lookup.tenant;
        let (settings, catalogue, sandboxes) = match lookup.sought {
            Sought::Choice(_) => {
                let both = tokio::try_join!(self.0.settings(tenant), self.0.catalogue(tenant));
                let (settings, catalogue) = both?;
                (settings, catalogue, Vec::new())
            }
            Sought::Sandbox => {
                let both = tokio::try_join!(self.0.settings(tenant), self.sandboxes(tenant));
                let (settings, sandboxes) = both?;
                (settings, Default::default(), sandboxes)
            }
        };
        let known = Known {
            catalogue,
            sandboxes,
            now_ms: now_ms(),
        };
        Ok((settings, known))
    }

    /// The sandboxes that have a name. How one stands is beside the point where that cannot be read: its name can be chosen.
    async fn sandboxes(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(SandboxName, Option<Listed>)>, StoreError> {
        let names = self.0.names(tenant).await?;
        let keys: BTreeSet<_> = names.iter().take(SANDBOXES_MAX).map(|(_, key)| key.clone()).collect();
        let records = match self.0.sandboxes(&keys).await {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(event = "ingress.unlisted", %tenant, %error, "sandboxes are suggested by their names alone");
                Default::default()
            }
        };
        let listed = |(name, key)| {
            let record = records.get(&key);
            let record = record.and_then(|read| read.as_ref().ok()?.as_ref());
            let listed = record.filter(|record| record.name.as_ref() == Some(&name));
            let listed = listed.map(|record| Listed::of(&key, record));
            (name, listed)
        };
        Ok(names.into_iter().map(listed).collect())
    }
}
