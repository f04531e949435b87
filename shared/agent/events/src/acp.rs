//! The Agent Client Protocol, version 1: what an agent writes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::convert::{Converted, text_at, unknown};

/// Makes universal events of what it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Converter {
    /// How often the process was started again.
    process: u64,
}

impl Converter {
    /// Makes events of one message.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        unknown(text_at(&raw, "/params/sessionId"), raw)
    }

    /// The process was started again: its numbers of requests begin anew.
    pub fn restarted(&mut self) {
        self.process += 1;
    }
}
