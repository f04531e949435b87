//! Logs: one JSON object a line on stdout, readable sentences with dotted fields, never bodies, tokens or prompts.

use tracing_subscriber::EnvFilter;

/// Starts logging at `LOG_LEVEL` (default `info`) for our own crates; libraries stay at `warn`, because at more verbose
/// levels some of them print headers.
pub fn start() {
    let level = std::env::var("LOG_LEVEL").unwrap_or_default();
    let level = match level.as_str() {
        "trace" | "debug" | "warn" | "error" => level.as_str(),
        _ => "info",
    };
    let targets = [
        "bobbin_core",
        "bobbin_adapters",
        "ingress",
        "worker",
        "sweeper",
    ];
    let filter = targets.iter().fold("warn".to_owned(), |filter, target| {
        format!("{filter},{target}={level}")
    });
    // A second start (tests in one process) keeps the first.
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_ansi(false)
        .with_env_filter(EnvFilter::new(filter))
        .try_init();
}
