//! Tools: the tools of a sandbox for an agent that runs elsewhere, as a Model Context Protocol server.
//!
//! `bobbin_mcp` implements the tools; here is only the HTTP around them, the authentication, and the check that the
//! sandbox runs. A sandbox is never started, stopped, created or deleted from here: that is requested in the sandbox's
//! own group.

mod place;
mod router;

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
    Router::new(Config::from_environment()?, &Aws::from_environment()?)
}
