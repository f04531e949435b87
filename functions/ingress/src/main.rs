//! Ingress: verifies, parses, accepts and answers within three seconds.
//!
//! What a request means is decided in `bobbin_core::wire`; here is only the HTTP around it. Nothing is answered before
//! the queue has accepted, and nothing is written anywhere else. All that is read is what a tenant's people are suggested
//! while they type.

mod door;
mod signing;
mod suggestions;

use std::sync::Arc;

use bobbin_adapters::config::Config;
use bobbin_adapters::direct::Direct;
use bobbin_adapters::telemetry;
use lambda_http::{Error, Request, service_fn};

use crate::door::Door;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    telemetry::start();
    let config = Config::from_environment()?;
    let aws = Direct::from_environment()?;
    let door = Arc::new(Door::new(&config, aws)?);
    lambda_http::run(service_fn(move |request: Request| {
        let door = Arc::clone(&door);
        async move { door.answer(&request).await }
    }))
    .await
}
