//! The worker: takes one message of a thread and drives its session.
//!
//! One record at a time (batch size 1): a larger batch would hold other threads up behind one long turn.

mod dead_letters;
mod lane;
mod receipt;
mod unfit;

use std::process::ExitCode;
use std::rc::Rc;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use bobbin_cloud::events::Raw;
use bobbin_cloud::{startup, telemetry};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use tokio::sync::OnceCell;

use crate::lane::Worker;
use crate::unfit::UnfitMessages;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let worker = Rc::new(OnceCell::new());
    let mut unfit = None;
    if let Err(why) = worker.get_or_try_init(Worker::from_environment).await {
        let Ok(able) = UnfitMessages::from_environment() else {
            return startup::refuse(&why).await;
        };
        startup::report_refused(&why);
        unfit = Some(able);
    }
    let unfit = Rc::new(unfit);
    let work = service_fn(move |event: LambdaEvent<Raw>| {
        let (worker, unfit) = (Rc::clone(&worker), Rc::clone(&unfit));
        async move {
            let batch: SqsEvent = event.payload.read()?;
            // A secret that was wrong may have been corrected since.
            let worker = match worker.get_or_try_init(Worker::from_environment).await {
                Ok(worker) => worker,
                Err(why) => {
                    for record in &batch.records {
                        if let Some(unfit) = &*unfit {
                            unfit.give_back(record, &why).await;
                        }
                    }
                    return Err(startup::unfit(&why));
                }
            };
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

/// Retries the message with this queue message id.
fn given_back(message_id: String) -> BatchItemFailure {
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}
