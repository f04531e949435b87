//! Logs: one JSON object per line on stdout, a dotted `event` and a readable sentence, never bodies, tokens or prompts.
//!
//! The fields of a span, above all the `correlation_id` of the current message, are in every line within it; a line's
//! own field of the same name takes precedence.

mod line;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use line::JsonLine;

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
    // Targets are matched by prefix: every crate of `shared/`, and the programs.
    let ours = ["bobbin_", "ingress", "worker", "sweeper", "tools"];
    // Not an `EnvFilter`: its regular expressions are a tenth of a small function's binary.
    let targets = Targets::new()
        .with_default(Level::WARN)
        .with_targets(ours.map(|target| (target, level)))
        // `startup::work` reports a failed invocation itself, and Rust reports where a panic happened.
        .with_target("lambda_runtime::layers::panic", LevelFilter::OFF);
    let lines =
        tracing_subscriber::fmt::layer().fmt_fields(JsonFields::new()).event_format(JsonLine);
    // A second start (tests in one process) keeps the first.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}
