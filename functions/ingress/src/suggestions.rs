//! What is suggested while somebody types: read from the table within the time that the platform gives, or not at all.

use std::time::Duration;

use bobbin_chat::{Chats, HttpAnswer, Lookup};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::store::Store;

/// How long the two reads may take together: the platform waits three seconds, and a process that has just been started
/// has spent some of them.
const READ_MS_MAX: u64 = 1_500;

/// Reads settings and catalogues.
#[derive(Debug)]
pub struct Suggestions(Store);

impl Suggestions {
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self(Store::new(aws, table))
    }

    /// The suggestions; none when the table did not answer in time, or not with something that can be read.
    pub async fn read(&self, lookup: &Lookup) -> Option<HttpAnswer> {
        let both = async {
            tokio::try_join!(
                self.0.settings(&lookup.tenant),
                self.0.catalogue(&lookup.tenant)
            )
        };
        let why = match tokio::time::timeout(Duration::from_millis(READ_MS_MAX), both).await {
            Ok(Ok((settings, catalogue))) => {
                return Some(Chats::suggestions(lookup, &settings, &catalogue));
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
}
