//! Amp: `amp --execute --stream-json`. Never run here, because it needs Amp's own server; its output is documented.
//!
//! It has no asks: its permissions are set at its start.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::convert::{Converted, Understood, count_at, decode, finish, started, tag, text_at};
use crate::event::{TokenUsage, TurnEnded, TurnOutcome, UsageScope};
use crate::generated::amp as wire;
use crate::stream_json::{self, Blocks};

/// Converts Amp's output to universal events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AmpConverter {
    blocks: Blocks,
}

impl AmpConverter {
    /// Converts one line to events.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        let session = text_at(&raw, "/session_id");
        let understood = self.understand(&raw);
        finish(session, understood, raw)
    }

    fn understand(&mut self, line: &Value) -> Understood {
        Ok(match (tag(line, "type"), tag(line, "subtype")) {
            ("system", "init") => vec![started::<wire::InitLine>(line)?],
            ("assistant", _) => {
                let all = stream_json::assistant(line, &mut self.blocks)?;
                all.into_iter().map(Into::into).collect()
            }
            ("user", _) => vec![stream_json::user(line)?.into()],
            ("result", _) => vec![ended(decode(line)?).into()],
            _ => Vec::new(),
        })
    }
}

fn ended(line: wire::ResultLine) -> TurnEnded {
    let failed = line.is_error || line.subtype != "success";
    let usage = line.usage.map(|told| TokenUsage {
        input_tokens: count_at(&told, "/input_tokens"),
        output_tokens: count_at(&told, "/output_tokens"),
        cache_read_tokens: count_at(&told, "/cache_read_input_tokens"),
        cache_write_tokens: count_at(&told, "/cache_creation_input_tokens"),
        ..TokenUsage::of(UsageScope::Turn)
    });
    TurnEnded {
        outcome: if failed { TurnOutcome::Failed } else { TurnOutcome::Done },
        reason: Some(line.subtype),
        message: line.error.or(line.result).filter(|_| failed),
        usage,
    }
}
