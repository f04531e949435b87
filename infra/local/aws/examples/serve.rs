//! Serves a template until it is killed: `serve TEMPLATE STATE_DIR [LogicalId=EXECUTABLE…]`.
//!
//! Prints one JSON object when it is up. For trying the engine with any AWS client, and for tests that kill it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bobbin_local_aws::{Clock, Engine, EngineSettings};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: serve TEMPLATE STATE_DIR [LogicalId=EXECUTABLE…]";
    let template = PathBuf::from(arguments.next().ok_or(usage)?);
    let state_dir = PathBuf::from(arguments.next().ok_or(usage)?);
    let functions = arguments
        .filter_map(|argument| {
            let (id, path) = argument.split_once('=')?;
            Some((id.to_owned(), PathBuf::from(path)))
        })
        .collect();
    let engine = Engine::start(EngineSettings {
        breakpoints: bobbin_local_breakpoint::Breakpoints::default(),
        template,
        parameters: BTreeMap::new(),
        secrets: Default::default(),
        stack_name: "test".to_owned(),
        region: "us-east-1".to_owned(),
        state_dir,
        functions,
        extra_environment: BTreeMap::new(),
        ingress_port: 0,
        endpoint_port: 0,
        also_named: None,
        clock: Clock::system(),
        log: Arc::new(|line| eprintln!("{} {}", line.function, line.text)),
    })
    .await?;
    println!(
        "{}",
        json!({ "endpoint": engine.endpoint(), "outputs": engine.outputs(), "unhonoured": engine.unhonoured() })
    );
    tokio::signal::ctrl_c().await?;
    engine.stop().await;
    Ok(())
}
