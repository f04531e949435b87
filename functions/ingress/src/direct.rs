//! The thread of a direct message: chosen by the table within the platform's time limit. If the table does not answer
//! in time, the message begins a thread.

use std::time::Duration;

use bobbin_chat::Direct;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::base::ids::ThreadKey;

/// Longest time for all reads together. A table that does not answer costs half of the platform's three seconds; if the
/// queue needs more than the rest, the platform sends the message again, which does nothing more.
const READ_MS_MAX: u64 = 1_500;

/// Reads settings, and the threads of earlier direct messages.
#[derive(Debug)]
pub struct DirectMessages(Store);

impl DirectMessages {
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self(Store::new(aws, table))
    }

    /// Whether the message goes to the person's one thread. False if the table did not answer in time, or an item
    /// cannot be read.
    pub async fn is_one_thread(&self, direct: &Direct) -> bool {
        let within = Duration::from_millis(READ_MS_MAX);
        let why = match tokio::time::timeout(within, self.chosen(direct)).await {
            Ok(Ok(is_one_thread)) => return is_one_thread,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {READ_MS_MAX} ms"),
        };
        tracing::warn!(
            event = "ingress.undecided",
            tenant = %direct.tenant,
            message = direct.body.id(),
            "a direct message is not put into the person's one thread: {why}"
        );
        false
    }

    /// By the thread of the earlier message, if it belongs to one that a worker has taken; otherwise by the settings.
    async fn chosen(&self, direct: &Direct) -> Result<bool, StoreError> {
        if let Some(earlier) = &direct.after
            && let Some(thread) = self.0.direct_place(&direct.tenant, earlier).await?
        {
            return Ok(matches!(thread, ThreadKey::SlackDirect { .. }));
        }
        Ok(self.0.settings(&direct.tenant).await?.direct_in_one_thread)
    }
}
