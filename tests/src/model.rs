//! The scripted model's call log: the requests to the agent's model, their OpenCode sessions and their order.

use serde::Deserialize;

/// One answered request of the model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// When the model was asked (Unix milliseconds).
    pub time_ms: u64,
    /// The agent's session that asked.
    pub session_id: Option<String>,
    /// Which key it was asked with: the first 16 hexadecimal digits of its SHA-256.
    #[serde(default)]
    pub key: Option<String>,
    /// The model that was asked for.
    #[serde(default)]
    pub model: String,
    /// The last user message.
    pub user: String,
    /// Names of the tools that the model was offered.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Tool results after it: how far the turn is.
    pub tool_results: usize,
    /// Words of the model's answer.
    pub text: String,
    /// `stop`, `tool_calls`, `cut` or `fail`.
    pub end: String,
    /// HTTP status of the answer.
    pub status: u16,
}

impl Call {
    /// A request that OpenCode makes for itself (titles, summaries): it quotes prompts, and is not a turn.
    #[must_use]
    pub fn internal(&self) -> bool {
        self.text == "Scripted session"
            || self.text.starts_with("Summary: the user gave the scripted model")
    }

    /// The agent got a whole answer: text, or a tool to call.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.status == 200 && matches!(self.end.as_str(), "stop" | "tool_calls")
    }
}

#[derive(Deserialize)]
struct Log {
    calls: Vec<Call>,
}

/// Reads the log's answer (`GET /calls`), oldest first.
///
/// # Errors
/// When it is none.
pub fn read(log: &serde_json::Value) -> Result<Vec<Call>, String> {
    let log = serde_json::from_value::<Log>(log.clone())
        .map_err(|error| format!("no call log: {error}"))?;
    Ok(log.calls)
}
