//! Injected faults: the next N requests whose "METHOD /path" contains a text get an error of the platform.

use crate::limits::{FAULT_DELAY_MS_MAX, FAULTS_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fault, as in the control call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ChatFault {
    /// Part of "METHOD /path", such as `POST /channels` or `chat.update`; empty matches all.
    #[serde(default)]
    pub route: String,
    /// How many requests it hits.
    #[serde(default = "once")]
    pub count: u64,
    /// HTTP status of the answer; 0 only delays.
    #[serde(default)]
    pub status: u16,
    /// Platform's error: Discord's numeric `code`.
    #[serde(default)]
    pub code: u64,
    /// Platform's error: Slack's `error` (with status 200).
    #[serde(default)]
    pub error: String,
    /// Full answer in place of the generated one.
    #[serde(default)]
    pub body: Option<Value>,
    /// Seconds, for a 429.
    #[serde(default = "one_second")]
    pub retry_after: f64,
    /// Delay before anything happens.
    #[serde(default)]
    pub delay_ms: u64,
    /// The request is processed, and only its answer is lost.
    #[serde(default)]
    pub after: bool,
}

fn once() -> u64 {
    1
}

fn one_second() -> f64 {
    1.0
}

/// Armed faults, oldest first.
#[derive(Default)]
pub struct ChatFaults(Vec<ChatFault>);

impl ChatFaults {
    /// Adds a fault; `false` if too many are armed.
    pub fn add(&mut self, mut fault: ChatFault) -> bool {
        fault.delay_ms = fault.delay_ms.min(FAULT_DELAY_MS_MAX);
        let room = self.0.len() < FAULTS_MAX;
        if room && fault.count > 0 {
            self.0.push(fault);
        }
        room
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn waiting(&self) -> &[ChatFault] {
        &self.0
    }

    /// The fault for this request, counted down.
    pub fn take(&mut self, route: &str) -> Option<ChatFault> {
        let at = self.0.iter().position(|fault| route.contains(&fault.route))?;
        self.0[at].count -= 1;
        let met = self.0[at].clone();
        self.0.retain(|fault| fault.count > 0);
        Some(met)
    }
}
