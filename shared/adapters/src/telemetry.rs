//! Logs: one JSON object a line on stdout, readable sentences with dotted fields, never bodies, tokens or prompts.

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging at `LOG_LEVEL` (default `info`) for our own crates; libraries stay at `warn`, because at more verbose
/// levels some of them print headers.
pub fn start() {
    let level = std::env::var("LOG_LEVEL").unwrap_or_default();
    let level = match level.as_str() {
        "trace" => Level::TRACE,
        "debug" => Level::DEBUG,
        "warn" => Level::WARN,
        "error" => Level::ERROR,
        _ => Level::INFO,
    };
    let ours = [
        "bobbin_core",
        "bobbin_adapters",
        "ingress",
        "worker",
        "sweeper",
    ];
    // Not an `EnvFilter`: its regular expressions are a tenth of a small function's binary.
    let targets = Targets::new()
        .with_default(Level::WARN)
        .with_targets(ours.map(|target| (target, level)));
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_ansi(false);
    // A second start (tests in one process) keeps the first.
    let _ = tracing_subscriber::registry()
        .with(targets)
        .with(lines)
        .try_init();
}
