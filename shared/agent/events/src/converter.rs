//! The converter for any agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::convert::Converted;
use crate::event::UniversalEventData;
use crate::message::UniversalMessage;
use crate::{acp, amp, claude, codex, opencode};

/// A converter for any agent, with its memory: store it if its reader must survive a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "agent", rename_all = "lowercase")]
pub enum Converter {
    /// For OpenCode's event stream.
    OpenCode(opencode::OpenCodeConverter),
    /// For Claude Code's `stream-json`.
    Claude(claude::ClaudeConverter),
    /// For Codex's `app-server`.
    Codex(codex::CodexConverter),
    /// For Amp's `--stream-json`.
    Amp(amp::AmpConverter),
    /// For the Agent Client Protocol, version 1.
    Acp(acp::AcpConverter),
}

impl Converter {
    /// The converter for the agent with this name; for an unknown one, the Agent Client Protocol's.
    #[must_use]
    pub fn of(agent: &str) -> Self {
        match agent {
            "opencode" => Self::OpenCode(opencode::OpenCodeConverter::default()),
            "claude" => Self::Claude(claude::ClaudeConverter::default()),
            "codex" => Self::Codex(codex::CodexConverter::default()),
            "amp" => Self::Amp(amp::AmpConverter::default()),
            _ => Self::Acp(acp::AcpConverter::default()),
        }
    }

    /// Converts one raw value: returns at least one event, and the first has the whole value.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        match self {
            Self::OpenCode(one) => one.convert(raw),
            Self::Claude(one) => one.convert(raw),
            Self::Codex(one) => one.convert(raw),
            Self::Amp(one) => one.convert(raw),
            Self::Acp(one) => one.convert(raw),
        }
    }

    /// Converts one line of an agent's output. A line that is not JSON is kept as text.
    pub fn convert_line(&mut self, line: &str) -> Vec<Converted> {
        match serde_json::from_str(line) {
            Ok(raw) => self.convert(raw),
            Err(error) => vec![Converted {
                agent_session_id: None,
                data: UniversalEventData::Message {
                    message: UniversalMessage::Unparsed {
                        raw: Value::String(line.to_owned()),
                        error: Some(format!("no JSON: {error}")),
                    },
                },
                raw: None,
            }],
        }
    }

    /// Call this when the agent's process was restarted: its request numbers and its reported cost start over.
    pub fn restarted(&mut self) {
        match self {
            Self::OpenCode(_) | Self::Amp(_) => {}
            Self::Claude(one) => one.restarted(),
            Self::Codex(one) => one.restarted(),
            Self::Acp(one) => one.restarted(),
        }
    }
}
