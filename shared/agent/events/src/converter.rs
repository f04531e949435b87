//! The converter of any agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::convert::Converted;
use crate::event::UniversalEventData;
use crate::message::UniversalMessage;
use crate::{acp, amp, claude, codex, opencode};

/// A converter of any agent, with what it remembers: to be stored where its reader must survive a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "agent", rename_all = "lowercase")]
pub enum Converter {
    /// Of OpenCode's event stream.
    OpenCode(opencode::Converter),
    /// Of Claude Code's `stream-json`.
    Claude(claude::Converter),
    /// Of Codex's `app-server`.
    Codex(codex::Converter),
    /// Of Amp's `--stream-json`.
    Amp(amp::Converter),
    /// Of the Agent Client Protocol, version 1.
    Acp(acp::Converter),
}

impl Converter {
    /// The converter of the agent of this name; one that speaks the Agent Client Protocol for any that is not known.
    #[must_use]
    pub fn of(agent: &str) -> Self {
        match agent {
            "opencode" => Self::OpenCode(opencode::Converter::default()),
            "claude" => Self::Claude(claude::Converter::default()),
            "codex" => Self::Codex(codex::Converter::default()),
            "amp" => Self::Amp(amp::Converter::default()),
            _ => Self::Acp(acp::Converter::default()),
        }
    }

    /// Makes events of one raw value: at least one, and the first has the value whole.
    pub fn convert(&mut self, raw: Value) -> Vec<Converted> {
        match self {
            Self::OpenCode(one) => one.convert(raw),
            Self::Claude(one) => one.convert(raw),
            Self::Codex(one) => one.convert(raw),
            Self::Amp(one) => one.convert(raw),
            Self::Acp(one) => one.convert(raw),
        }
    }

    /// Makes events of one line of an agent's output. A line that is no JSON is kept as text.
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

    /// To be called when the agent's process was started again: its numbers of requests begin anew, and so does what it
    /// reckons to have cost.
    pub fn restarted(&mut self) {
        match self {
            Self::OpenCode(_) | Self::Amp(_) => {}
            Self::Claude(one) => one.restarted(),
            Self::Codex(one) => one.restarted(),
            Self::Acp(one) => one.restarted(),
        }
    }
}
