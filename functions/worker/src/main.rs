//! The worker: takes one message of a thread and drives its session.
//!
//! One record at a time (batch size 1): a batch would hold other threads behind one long turn.

mod lane;

use std::process::ExitCode;

use bobbin_adapters::lambda::Invocation;
use bobbin_adapters::lambda::event::{SqsAnswer, SqsEvent};
use bobbin_adapters::{startup, telemetry};

use crate::lane::Worker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let worker = match Worker::from_environment().await {
        Ok(worker) => worker,
        Err(why) => return startup::refuse(&why).await,
    };
    startup::work(async |invocation: &Invocation| {
        let mut answer = SqsAnswer::default();
        for record in invocation.event::<SqsEvent>()?.records {
            let id = record.message_id.clone().unwrap_or_default();
            if !worker.take(record, invocation.deadline_ms).await {
                answer.give_back(id);
            }
        }
        Ok(answer)
    })
    .await
}
