//! Event source mappings from queues to functions.
//!
//! A FIFO queue delivers one batch per message group at a time, with as many groups in parallel as the mapping allows;
//! a group never has two, because the queue locks it until the batch is deleted or visible again.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event;
use super::outcome::{InvocationOutcome, request_id};
use super::pool::Function;
use crate::limits;
use crate::sqs::{Received, Sqs};

/// One mapping of the template.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) queue: String,
    pub(crate) queue_arn: String,
    pub(crate) region: String,
    pub(crate) batch_size: usize,
    pub(crate) concurrency_max: usize,
    /// Whether the function reports failed messages (`ReportBatchItemFailures`).
    pub(crate) reports_failures: bool,
}

/// Runs a mapping until the engine stops.
pub(crate) async fn run(
    mapping: Mapping,
    sqs: Arc<Sqs>,
    function: Arc<Function>,
    tasks: TaskTracker,
    stopping: CancellationToken,
) {
    let mapping = Arc::new(mapping);
    let batches = Arc::new(Semaphore::new(mapping.concurrency_max));
    let mut changes = sqs.watch(&mapping.queue);
    while !stopping.is_cancelled() {
        let permit = tokio::select! {
            permit = Arc::clone(&batches).acquire_owned() => permit,
            () = stopping.cancelled() => return,
        };
        let batch = match sqs.take_batch(&mapping.queue, mapping.batch_size) {
            Ok(batch) => batch,
            Err(error) => {
                function.log_platform(
                    None,
                    None,
                    &format!("{} was not read: {error}", mapping.queue),
                );
                tokio::time::sleep(Duration::from_millis(limits::MAPPING_PAUSE_MS)).await;
                continue;
            }
        };
        if batch.is_empty() {
            drop(permit);
            sqs.changed(&mapping.queue, &mut changes).await;
            continue;
        }
        let (mapping, sqs, function) = (mapping.clone(), sqs.clone(), function.clone());
        let stopping = stopping.clone();
        tasks.spawn(async move {
            let payload = event::sqs_event(&mapping.queue_arn, &mapping.region, &batch);
            let outcome = function.invoke(&request_id(), payload).await;
            // Messages of functions that the engine's stop killed are released at its next start.
            if !stopping.is_cancelled() || matches!(outcome, InvocationOutcome::Answer(_)) {
                settle(&mapping, &sqs, &function, &batch, &outcome);
            }
            drop(permit);
        });
    }
}

/// Deletes successful messages; failed ones stay invisible as the queue or the function has set.
fn settle(
    mapping: &Mapping,
    sqs: &Sqs,
    function: &Function,
    batch: &[Received],
    outcome: &InvocationOutcome,
) {
    let failures = match outcome {
        InvocationOutcome::Answer(body) if mapping.reports_failures => failed_ids(body, batch),
        InvocationOutcome::Answer(_) => Ok(Vec::new()),
        InvocationOutcome::Failed(_) => Err("the function failed".to_owned()),
        InvocationOutcome::Throttled => Err("the function is at its concurrency".to_owned()),
    };
    let (failed, done): (Vec<_>, Vec<_>) = match &failures {
        Ok(ids) => batch.iter().partition(|message| ids.contains(&message.id)),
        Err(reason) => {
            let count = batch.len();
            function.log_platform(
                None,
                None,
                &format!("{count} message(s) of {} are retried: {reason}", mapping.queue),
            );
            (batch.iter().collect(), Vec::new())
        }
    };
    match sqs.finish_batch(&mapping.queue, &done, &failed) {
        Ok(refused) => {
            for line in refused {
                function.log_platform(None, None, &line);
            }
        }
        Err(error) => function.log_platform(None, None, &format!("A batch was not ended: {error}")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchResponse {
    #[serde(default)]
    batch_item_failures: Option<Vec<BatchItemFailure>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchItemFailure {
    item_identifier: String,
}

/// Ids of failed messages. An empty answer means none; an invalid one fails the whole batch (AWS).
fn failed_ids(body: &[u8], batch: &[Received]) -> Result<Vec<String>, String> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let response: Option<BatchResponse> = serde_json::from_slice(body)
        .map_err(|error| format!("its batch response could not be read ({error})"))?;
    let failures = response.and_then(|response| response.batch_item_failures).unwrap_or_default();
    failures
        .into_iter()
        .map(|failure| {
            let is_known = batch.iter().any(|message| message.id == failure.item_identifier);
            if is_known {
                Ok(failure.item_identifier)
            } else {
                Err("its batch response names an item that was not in the batch".to_owned())
            }
        })
        .collect()
}
