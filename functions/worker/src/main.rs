//! The worker: takes one message of a thread and drives its session.
//!
//! One record at a time (batch size 1): a batch would hold other threads behind one long turn.

mod dead_letters;
mod lane;
mod receipt;

use std::process::ExitCode;
use std::rc::Rc;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use bobbin_cloud::events::Raw;
use bobbin_cloud::{startup, telemetry};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};

use crate::lane::Worker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let worker = match Worker::from_environment().await {
        Ok(worker) => Rc::new(worker),
        Err(why) => return startup::refuse(&why).await,
    };
    let work = service_fn(move |event: LambdaEvent<Raw>| {
        let worker = Rc::clone(&worker);
        async move {
            let batch: SqsEvent = event.payload.read()?;
            let mut answer = SqsBatchResponse::default();
            for record in batch.records {
                let id = record.message_id.clone().unwrap_or_default();
                if !worker.take(record, event.context.deadline).await {
                    answer.batch_item_failures.push(given_back(id));
                }
            }
            Ok::<_, Diagnostic>(answer)
        }
    });
    startup::work(work).await
}

/// This message, by the queue's own id, comes again.
fn given_back(message_id: String) -> BatchItemFailure {
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}
