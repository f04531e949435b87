//! A worker that cannot begin to work: its configuration is wrong, or what its keys are for cannot be used.
//!
//! Promised: what comes to it is given back for seconds, longer each time. A process that ended instead would leave each message
//! hidden for the queue's own visibility, a Stop too, long after the configuration is right again.

use aws_lambda_events::sqs::SqsMessage;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::required;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::startup;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::limits::Limits;

use crate::receipt::Receipt;

/// What giving back takes.
pub(crate) struct Unfit {
    queues: Queues,
    limits: Limits,
}

impl Unfit {
    /// From the little of the environment that this takes.
    ///
    /// # Errors
    /// A sentence that names what is missing or wrong: nothing can be given back either.
    pub(crate) fn from_environment() -> Result<Self, String> {
        startup::in_lambda()?;
        let messages = required("MESSAGES_QUEUE_URL")?;
        let control = required("CONTROL_QUEUE_URL")?;
        Ok(Self {
            queues: Queues::at(&Aws::from_environment()?, messages, control),
            limits: Limits::default(),
        })
    }

    /// Has a message come again in seconds, and says nothing to anybody: a chat cannot be reached without a configuration.
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
