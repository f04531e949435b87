//! The sweeper: turns what is due into messages, every minute, and deletes sandboxes that belong to nobody. It decides
//! nothing, and it touches no sandbox of a live generation: those are stopped and deleted in their thread's own group.

mod orphans;
mod tick;

use std::sync::Arc;

use bobbin_adapters::aws::Clients;
use bobbin_adapters::config::Config;
use bobbin_adapters::daytona::Daytona;
use bobbin_adapters::queue::Queues;
use bobbin_adapters::secrets::Secrets;
use bobbin_adapters::store::Store;
use bobbin_adapters::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start();
    let config = Config::from_environment()?;
    let clients = Clients::from_environment()?;
    let secrets = Secrets::read(&clients.secrets, &config.secret_id).await?;
    let daytona = Daytona::new(&config.daytona_api, secrets.daytona_api_key.expose())
        .map_err(|e| format!("DAYTONA_API: {e}"))?;
    let store = Store::new(clients.dynamodb, &config.table);
    let queues = Queues::new(clients.sqs, &config);
    let sweeper = Arc::new((config, store, queues, daytona));
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let sweeper = Arc::clone(&sweeper);
        async move {
            let (config, store, queues, daytona) = &*sweeper;
            // Both are tried, whatever becomes of the other; an error of either is one of the tick's.
            let (due, orphans) = (
                tick::tick(store, queues).await,
                orphans::reap(config, store, daytona).await,
            );
            Ok::<_, Error>(json!({"due": due?, "orphans": orphans?}))
        }
    }))
    .await
}
