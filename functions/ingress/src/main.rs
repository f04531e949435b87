//! Ingress: verifies, parses, accepts and answers within three seconds.
//!
//! `bobbin_chat` decides what a request means; here is only the HTTP around it. Nothing is answered before the queue
//! has accepted. Ingress reads only suggestions for a tenant's people while they type, what decides the thread of a
//! direct message (`direct`), the links to its pages, and the state left for the next poll of a run (`nudges`). It
//! writes only those links, with a key or a code that was sealed before (`setup`, `sign_in`).

mod direct;
mod nudges;
mod page;
mod router;
mod setup;
mod sign_in;
mod signing;
mod suggestions;
mod webhooks;

use std::process::ExitCode;
use std::sync::Arc;

use bobbin_cloud::aws::Aws;
use bobbin_cloud::config::Config;
use bobbin_cloud::events::Requests;
use bobbin_cloud::{startup, telemetry};
use lambda_http::{Request, service_fn};

use crate::router::Router;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let router = match open() {
        Ok(router) => Arc::new(router),
        Err(why) => return startup::refuse(&why).await,
    };
    let answer = service_fn(move |request: Request| {
        let router = Arc::clone(&router);
        async move { Ok(router.answer(&request).await) }
    });
    startup::work(Requests::to(answer)).await
}

fn open() -> Result<Router, String> {
    startup::in_lambda()?;
    let config = Config::from_environment()?;
    Router::new(&config, &Aws::from_environment()?)
}
