//! Metrics, as CloudWatch reads them out of the log (embedded metric format 1): no call, no permission, no wait.
//!
//! Each line is one JSON object on stdout with the stack as its only dimension. Where nobody reads the log as metrics it
//! is one log line more. Deliberately absent: threads, people and texts; a metric of each would cost money and tell on
//! somebody.

use std::io::Write;

use bobbin_core::ids::Ms;
use bobbin_core::signals::{COST, DIMENSION, NAMESPACE, Signal, TOKENS};
use bobbin_core::usage::Usage;
use serde_json::{Map, Value, json};

/// Values of one metric in one line: CloudWatch reads no more.
const VALUES_MAX: usize = 100;

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things; CloudWatch adds them up.
    Count,
    /// A time, in milliseconds.
    Milliseconds,
}

/// One value of a metric.
pub type Metric = (&'static str, Unit, u64);

/// Metrics in CloudWatch's embedded format, written to standard output under the stack's name.
#[derive(Debug, Clone)]
pub struct Metrics {
    stack: String,
}

impl Metrics {
    /// Metrics of this stack.
    #[must_use]
    pub fn new(stack: &str) -> Self {
        Self {
            stack: stack.to_owned(),
        }
    }

    /// Writes these values. A log that cannot be written to loses them, as it loses everything else.
    pub fn put(&self, metrics: &[Metric], now_ms: Ms) {
        if let Some(line) = line(&self.stack, metrics, now_ms) {
            // One write for the line and its end, so that lines of other threads do not come between.
            let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// The metrics of what has happened to a session, and of what its ended turns took.
#[must_use]
pub fn of(signals: &[Signal], ended: &[Usage]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for signal in signals {
        metrics.push((signal.kind.name(), Unit::Count, 1));
        if let (Some(name), Some(ms)) = (signal.kind.took(), signal.took_ms) {
            metrics.push((name, Unit::Milliseconds, ms));
        }
    }
    for usage in ended {
        metrics.push((TOKENS, Unit::Count, usage.tokens));
        metrics.push((COST, Unit::Count, usage.cost_micro_usd));
    }
    metrics
}

fn line(stack: &str, metrics: &[Metric], now_ms: Ms) -> Option<String> {
    let mut values: Map<String, Value> = Map::new();
    let mut named = Vec::new();
    for (name, unit, value) in metrics {
        match values.get_mut(*name).and_then(Value::as_array_mut) {
            Some(list) if list.len() < VALUES_MAX => list.push(json!(value)),
            Some(_) => {}
            None => {
                values.insert((*name).to_owned(), json!([value]));
                let unit = match unit {
                    Unit::Count => "Count",
                    Unit::Milliseconds => "Milliseconds",
                };
                named.push(json!({"Name": name, "Unit": unit}));
            }
        }
    }
    if named.is_empty() {
        return None;
    }
    values.insert(DIMENSION.to_owned(), json!(stack));
    values.insert(
        "_aws".to_owned(),
        json!({"Timestamp": now_ms, "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": named}]}),
    );
    Some(Value::Object(values).to_string())
}

#[cfg(test)]
mod tests {
    use bobbin_core::signals::{Kind, ORPHANS};

    use super::*;

    #[test]
    fn a_line_is_what_cloudwatch_reads_as_metrics() {
        let told = |kind, took_ms| Signal {
            kind,
            turn: Some("secret-looking turn".into()),
            took_ms,
        };
        let usage = serde_json::from_value(json!({"tokens": 5, "cost_micro_usd": 7}));
        let usage = usage.expect("a usage");
        let metrics = of(
            &[
                told(Kind::TurnAnswered, Some(1_200)),
                told(Kind::AskSettled, None),
                told(Kind::AskSettled, None),
            ],
            &[usage],
        );
        let line = line("bobbin", &metrics, 42).expect("there are metrics");
        let read: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            read,
            json!({
                "_aws": {"Timestamp": 42, "CloudWatchMetrics": [{"Namespace": "Bobbin", "Dimensions": [["Stack"]], "Metrics": [
                    {"Name": "turn.answered", "Unit": "Count"}, {"Name": "turn.answered.ms", "Unit": "Milliseconds"},
                    {"Name": "ask.settled", "Unit": "Count"}, {"Name": "turn.tokens", "Unit": "Count"},
                    {"Name": "turn.cost.micro_usd", "Unit": "Count"},
                ]}]},
                "Stack": "bobbin", "turn.answered": [1], "turn.answered.ms": [1_200], "ask.settled": [1, 1],
                "turn.tokens": [5], "turn.cost.micro_usd": [7],
            })
        );
    }

    #[test]
    fn nothing_that_happened_writes_nothing_and_a_metric_has_a_bounded_number_of_values() {
        assert_eq!(line("bobbin", &[], 42), None);
        let many = vec![(ORPHANS, Unit::Count, 1); 3 * VALUES_MAX];
        let line = line("bobbin", &many, 42).expect("there are metrics");
        let read: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(read[ORPHANS].as_array().map(Vec::len), Some(VALUES_MAX));
    }
}
