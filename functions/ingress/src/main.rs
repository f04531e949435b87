//! Ingress: verifies, parses, accepts and answers within three seconds.
//!
//! What a request means is decided in `bobbin_core::wire`; here is only the HTTP around it. Nothing is answered before
//! the queue has accepted, and nothing is written anywhere else. All that is read is what a tenant's people are suggested
//! while they type.

mod door;
mod signing;
mod suggestions;

use std::process::ExitCode;

use bobbin_adapters::config::Config;
use bobbin_adapters::direct::Direct;
use bobbin_adapters::lambda::Invocation;
use bobbin_adapters::{startup, telemetry};

use crate::door::Door;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let door = match open() {
        Ok(door) => door,
        Err(why) => return startup::refuse(&why).await,
    };
    startup::work(async |invocation: &Invocation| Ok(door.answer(&invocation.event()?).await)).await
}

fn open() -> Result<Door, String> {
    startup::in_lambda()?;
    let config = Config::from_environment()?;
    let aws = Direct::from_environment()?;
    Door::new(&config, aws)
}
