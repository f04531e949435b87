//! OpenCode with the tools of another sandbox instead of its own, over an MCP server.

use bobbin_core::base::failure::Failure;
use serde_json::{Value, json};

use super::client::{OpenCode, OpenCodeError};
use crate::runtime::{AgentError, ServerLaunch, ToolServer};

/// Name of the server: OpenCode prefixes the name of each tool with it, as in `sandbox_run_command`.
pub(super) const SERVER: &str = "sandbox";
/// The variable in OpenCode's environment with the bearer token.
const BEARER_VARIABLE: &str = "BOBBIN_TOOLS_TOKEN";
/// Milliseconds that OpenCode waits for a call: longer than any call waits for a command.
const CALL_MS: u64 = 640_000;

/// The part of a configuration that enables only the tools of a sandbox: built-in ones would work where the agent runs.
#[must_use]
pub fn tools_config(tools: &ToolServer, bearer: &str) -> Value {
    // The last matching rule counts, and the names are sorted.
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

/// Adds the tools to a server's configuration; the bearer token is only in its environment.
pub(super) fn configured(config: &mut Value, tools: &ToolServer) {
    let own = tools_config(tools, &format!("{{env:{BEARER_VARIABLE}}}"));
    for part in ["mcp", "permission"] {
        config[part] = own[part].clone();
    }
}

/// Passes the bearer token to the server.
pub(super) fn with_bearer(mut launch: ServerLaunch, bearer: &str) -> ServerLaunch {
    let variable = BEARER_VARIABLE.to_owned();
    launch.environment.insert(variable, bearer.to_owned());
    launch
}

impl OpenCode {
    /// Makes sure that the server has its tools: it connects to them once, when it first opens a directory, and
    /// continues without those that it did not find (measured on 1.18.33).
    pub(super) async fn ensure_tools(&self) -> Result<(), AgentError> {
        if self.has_tools().await? {
            return Ok(());
        }
        self.connect_tools(SERVER).await?;
        if self.has_tools().await? {
            return Ok(());
        }
        let seen = "the agent's sandbox cannot reach the tools of the other sandbox".to_owned();
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
