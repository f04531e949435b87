//! The laptop stack: everything that the cloud would provide, in one program, without an account.
//!
//! Embedded AWS configured from `template.yaml`, the three functions as real `bootstrap` processes, a
//! Daytona-compatible provider with real OpenCode servers, Discord- and Slack-compatible APIs with a chat page, and a
//! scripted model. Binds loopback only, unless containers are let in; ends everything that it started.

mod containers;
mod deployment;
mod failure;
mod folders;
mod forge_pane;
mod functions;
mod ingress_proxy;
mod inspector;
mod keys;
mod loopback;
mod nudge_gate;
mod options;
mod parts;
mod platforms;
mod ready;
mod real_services;
mod shutdown;
mod stack;
mod start;

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::options::{LaptopOptions, Parsed};
use crate::shutdown::Shutdown;
use crate::stack::LaptopStack;

/// Stack name; part of every sandbox's name.
const STACK: &str = "local";

fn main() -> ExitCode {
    // The first process of each sandbox is this same program in another mode.
    if let Some(code) = bobbin_local_daytona::sandbox_init_main() {
        return code;
    }
    let options = match LaptopOptions::parse(std::env::args().skip(1)) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    let filter = match EnvFilter::try_from_env("BOBBIN_LOG") {
        // At its most verbose the table logs whole items, and with them people's prompts.
        Ok(wanted) => wanted.add_directive(
            "dynoxide::server=info".parse().expect("a target and a level are a directive"),
        ),
        // A failed condition is no error, but the table logs it as a warning.
        Err(_) => EnvFilter::new("warn,dynoxide=error"),
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("The async runtime could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(options))
}

async fn run(options: LaptopOptions) -> ExitCode {
    let shutdown = match Shutdown::listen() {
        Ok(shutdown) => shutdown,
        Err(error) => {
            eprintln!("Ctrl-C and SIGTERM cannot be handled: {error}");
            return ExitCode::FAILURE;
        }
    };
    match LaptopStack::start(&options, shutdown.clone()).await {
        Ok(stack) => {
            stack.announce(&options);
            shutdown.wait().await;
            println!("\nStopping…");
            stack.stop().await;
            println!("Everything is stopped. The state is kept; `--fresh` starts empty.");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("\n{message}");
            ExitCode::FAILURE
        }
    }
}
