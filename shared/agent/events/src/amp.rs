//! Amp: `--stream-json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::convert::{Converted, text_at, unknown};

/// Makes universal events of what it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Converter {}

impl Converter {
    /// Makes events of one line.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        unknown(text_at(&raw, "/session_id"), raw)
    }
}
