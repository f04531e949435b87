//! Metrics in CloudWatch's embedded metric format 1, taken from the log: no call, no permission, no wait.
//!
//! Only events that an alarm counts are metrics, and each is written only when it happens: metrics are billed by the
//! hour. Each line is one JSON object on stdout with the stack as its only dimension. Deliberately absent: threads,
//! people and texts; those are in the log lines beside it.

use std::io::Write;

use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::signals::{Alarm, DIMENSION, NAMESPACE};
use serde_json::{Value, json};

/// Metrics in CloudWatch's embedded format, written to standard output under the stack's name.
#[derive(Debug, Clone)]
pub struct Metrics {
    stack: String,
}

impl Metrics {
    /// Metrics of this stack.
    #[must_use]
    pub fn new(stack: &str) -> Self {
        Self { stack: stack.to_owned() }
    }

    /// Counts one event of this alarm. If the log cannot be written, it is lost like everything else.
    pub fn count(&self, alarm: Alarm, now_ms: Ms) {
        let line = line(&self.stack, alarm, now_ms);
        // One write for the line and its newline, so that lines of other threads do not come between.
        let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
    }
}

fn line(stack: &str, alarm: Alarm, now_ms: Ms) -> Value {
    let name = alarm.metric();
    json!({
        "_aws": {"Timestamp": now_ms, "CloudWatchMetrics": [{
            "Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": [{"Name": name, "Unit": "Count"}],
        }]},
        DIMENSION: stack,
        name: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_line_matches_cloudwatch_format() {
        assert_eq!(
            line("bobbin", Alarm::WorkDropped, 42),
            json!({
                "_aws": {"Timestamp": 42, "CloudWatchMetrics": [{"Namespace": "Bobbin", "Dimensions": [["Stack"]], "Metrics": [
                    {"Name": "work.dropped", "Unit": "Count"},
                ]}]},
                "Stack": "bobbin", "work.dropped": 1,
            })
        );
    }
}
