//! The sweeper: turns what is due into messages, every minute. It decides nothing and stops nothing.

mod tick;

use std::sync::Arc;

use bobbin_adapters::aws::Clients;
use bobbin_adapters::config::Config;
use bobbin_adapters::queue::Queues;
use bobbin_adapters::store::Store;
use bobbin_adapters::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start();
    let config = Config::from_environment()?;
    let clients = Clients::from_environment()?;
    let sweeper = Arc::new((Store::new(clients.dynamodb, &config.table), Queues::new(clients.sqs, &config)));
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let sweeper = Arc::clone(&sweeper);
        async move { Ok::<_, Error>(tick::tick(&sweeper.0, &sweeper.1).await?) }
    }))
    .await
}
