//! A worker that cannot start: its configuration is wrong, or its keys cannot be used.
//!
//! Promised: messages are retried after seconds, longer each time. A process that exited instead would leave each
//! message, even a Stop, hidden for the queue's own visibility timeout, long after the configuration is right again.

use aws_lambda_events::sqs::SqsMessage;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::required;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::startup;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::limits::Limits;

use crate::receipt::Receipt;

/// Everything a retry needs.
pub(crate) struct UnfitMessages {
    queues: Queues,
    limits: Limits,
}

impl UnfitMessages {
    /// From the few environment variables that a retry needs.
    ///
    /// # Errors
    /// A sentence that names the missing or wrong variable: nothing can be retried either.
    pub(crate) fn from_environment() -> Result<Self, String> {
        startup::in_lambda()?;
        let messages = required("MESSAGES_QUEUE_URL")?;
        let control = required("CONTROL_QUEUE_URL")?;
        Ok(Self {
            queues: Queues::at(&Aws::from_environment()?, messages, control),
            limits: Limits::default(),
        })
    }

    /// Retries a message after seconds and tells nobody: a chat cannot be reached without configuration.
    pub(crate) async fn give_back(&self, record: &SqsMessage, why: &str) {
        let Some(receipt) = Receipt::of(record, &self.queues, &self.limits) else {
            return;
        };
        let failure = Failure::Outage { after_ms: 0, seen: why.to_owned() };
        let arrival = receipt.arrival();
        let held = arrival.given_back(&failure, &self.limits.retry);
        let held = held.within(self.limits.retry.within_age(arrival.age_ms()));
        receipt.conclude(held).await;
    }
}
