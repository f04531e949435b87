//! The worker: takes one message of a thread and drives its session.
//!
//! One record at a time (batch size 1): a batch would hold other threads behind one long turn.

mod lane;

use std::process::ExitCode;
use std::sync::Arc;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use bobbin_adapters::{startup, telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};

use crate::lane::Worker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let worker = match Worker::from_environment().await {
        Ok(worker) => Arc::new(worker),
        Err(why) => return startup::refuse(&why).await,
    };
    let working = lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| {
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
    }));
    startup::ended(working.await)
}
