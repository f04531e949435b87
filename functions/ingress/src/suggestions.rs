//! Suggestions while somebody types: read from the table within the platform's time limit, or not at all.

use std::time::Duration;

use bobbin_chat::{Chats, HttpAnswer, KnownValues, Lookup, SuggestionKind};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::records::tool_sandbox;
use bobbin_core::tenant::settings::Settings;

/// Longest time for all reads together: the platform waits three seconds, and a process that has just started has spent
/// some of them.
const READ_MS_MAX: u64 = 1_500;

/// Reads settings, catalogues and sandbox names.
#[derive(Debug)]
pub struct Suggestions(Store);

impl Suggestions {
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self(Store::new(aws, table))
    }

    /// The suggestions; `None` if the table did not answer in time or an item cannot be read.
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

    /// Settings, catalogue, and sandbox names if they are asked for: all items of the tenant, none of a thread.
    async fn known(&self, lookup: &Lookup) -> Result<(Settings, KnownValues), StoreError> {
        let tenant = &lookup.tenant;
        let names = async {
            match lookup.sought {
                SuggestionKind::Choice(_) => Ok(Vec::new()),
                SuggestionKind::Sandbox => self.0.names(tenant).await,
            }
        };
        let (settings, catalogue, names) =
            tokio::try_join!(self.0.settings(tenant), self.0.catalogue(tenant), names)?;
        let known = KnownValues {
            catalogue,
            names: names
                .into_iter()
                .filter(|(name, key)| tool_sandbox::is_seen_from(None, (name, key)))
                .map(|(name, _)| name)
                .collect(),
            now_ms: now_ms(),
        };
        Ok((settings, known))
    }
}
