//! Dead letters: each tick asks once whether there are any, because an event source mapping polls an empty queue all
//! month.

use bobbin_cloud::config::{Config, required};
use bobbin_cloud::queue::Queues;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::message::{Body, DeadLetters};
use serde_json::{Value, json};

/// The queues that a tick checks.
pub struct DeadQueues {
    letters: [String; 2],
    wakes: String,
}

impl DeadQueues {
    /// From the function's environment.
    ///
    /// # Errors
    /// A sentence that names the missing variable.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            letters: config.dead_queue_urls.clone(),
            wakes: required("WAKES_DEAD_QUEUE_URL")?,
        })
    }

    /// Has the worker tell about dead letters, if there are any.
    ///
    /// # Errors
    /// A queue did not answer, or some wake-ups could not be delivered: those need a person.
    pub async fn check(&self, queues: &Queues, now_ms: Ms) -> Result<Value, String> {
        let [messages, control] = &self.letters;
        let (messages, control, wakes) = tokio::join!(
            queues.waiting(messages),
            queues.waiting(control),
            queues.waiting(&self.wakes)
        );
        // A queue that does not answer must not hide the other's letters.
        let waiting = [&messages, &control].into_iter().flatten().sum::<u64>();
        if waiting > 0 {
            let id = format!("dead-letters-{now_ms}");
            tracing::warn!(
                event = "message.dead",
                correlation_id = id,
                waiting,
                "dead letters are waiting: the worker notifies their threads and requesters"
            );
            let look = Body::DeadLetters(DeadLetters { id });
            queues.send(&look).await.map_err(|e| e.to_string())?;
        }
        let (_, _, wakes) = (
            messages.map_err(|e| e.to_string())?,
            control.map_err(|e| e.to_string())?,
            wakes.map_err(|e| e.to_string())?,
        );
        if wakes > 0 {
            return Err(format!(
                "{wakes} wake-ups could not be delivered (docs/RUNBOOK.md, SweeperFails)"
            ));
        }
        Ok(json!({"waiting": waiting}))
    }
}
