//! The worker: takes one message of a thread and drives its session.
//!
//! One record at a time (batch size 1): a batch would hold other threads behind one long turn.

mod lane;

use std::sync::Arc;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use bobbin_adapters::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};

use crate::lane::Worker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start();
    let worker = Arc::new(Worker::from_environment().await?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| {
        let worker = Arc::clone(&worker);
        async move {
            let mut response = SqsBatchResponse::default();
            let deadline_ms = event.context.deadline;
            for record in event.payload.records {
                let id = record.message_id.clone().unwrap_or_default();
                if !worker.take(record, deadline_ms).await {
                    response.add_failure(id);
                }
            }
            Ok::<_, Error>(response)
        }
    }))
    .await
}
