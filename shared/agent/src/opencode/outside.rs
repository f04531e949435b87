//! OpenCode with the tools of another sandbox in place of its own, over a server of the Model Context Protocol.

use bobbin_core::base::failure::Failure;
use serde_json::{Value, json};

use super::client::{OpenCode, OpenCodeError};
use crate::runtime::{AgentError, Launch};

/// What the server is called: OpenCode puts it before the name of each tool, as in `sandbox_run_command`.
pub(super) const SERVER: &str = "sandbox";
/// The variable of OpenCode's environment that holds the bearer.
const BEARER_VARIABLE: &str = "BOBBIN_TOOLS_TOKEN";
/// Milliseconds that OpenCode waits for a call: longer than any call waits for a command.
const CALL_MS: u64 = 640_000;

/// Where the tools of sandboxes are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// The address at which the protocol is spoken.
    pub url: String,
    /// The tools of which each use needs a person's leave.
    pub ask: Vec<String>,
}

/// The part of a configuration that has the tools of a sandbox and no others: built-in ones would work where the agent runs.
#[must_use]
pub fn tools_config(tools: &ToolServer, bearer: &str) -> Value {
    // The last rule that fits counts, and the names are in their order.
    let mut permission = json!({"*": "deny", format!("{SERVER}_*"): "allow"});
    for tool in &tools.ask {
        permission[format!("{SERVER}_{tool}")] = "ask".into();
    }
    json!({
        "mcp": {SERVER: {
            "type": "remote",
            "url": tools.url,
            "headers": {"Authorization": format!("Bearer {bearer}")},
            "oauth": false,
            "timeout": CALL_MS,
        }},
        "permission": permission,
    })
}

/// Adds the tools to a server's configuration; the bearer is in its environment alone.
pub(super) fn configured(config: &mut Value, tools: &ToolServer) {
    let own = tools_config(tools, &format!("{{env:{BEARER_VARIABLE}}}"));
    for part in ["mcp", "permission"] {
        config[part] = own[part].clone();
    }
}

/// Gives the server its bearer.
pub(super) fn with_bearer(mut launch: Launch, bearer: &str) -> Launch {
    let variable = BEARER_VARIABLE.to_owned();
    launch.environment.insert(variable, bearer.to_owned());
    launch
}

impl OpenCode {
    /// Sees to it that the server has its tools: it looks for them once, when it first meets a directory, and goes on without
    /// those that it did not find (measured on 1.18.33).
    pub(super) async fn ensure_tools(&self) -> Result<(), AgentError> {
        if self.has_tools().await? {
            return Ok(());
        }
        self.connect_tools(SERVER).await?;
        if self.has_tools().await? {
            return Ok(());
        }
        let seen = "the tools of the sandbox cannot be reached from the agent's".to_owned();
        Err(Failure::Wait { after_ms: 0, seen }.into())
    }

    async fn has_tools(&self) -> Result<bool, OpenCodeError> {
        let status = self.tool_servers().await?;
        Ok(status[SERVER]["status"] == "connected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_agent_gets_sandbox_tools() {
        let tools = ToolServer {
            url: "https://tools.example/mcp".to_owned(),
            ask: vec!["run_command".to_owned()],
        };
        let mut config = json!({"model": "a/b"});
        configured(&mut config, &tools);
        assert_eq!(
            config.to_string(),
            r#"{"mcp":{"sandbox":{"headers":{"Authorization":"Bearer {env:BOBBIN_TOOLS_TOKEN}"},"oauth":false,"timeout":640000,"type":"remote","url":"https://tools.example/mcp"}},"model":"a/b","permission":{"*":"deny","sandbox_*":"allow","sandbox_run_command":"ask"}}"#
        );
    }
}
