//! How an OpenCode server is started in a sandbox, by itself or by the daemon in front of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::Via;
use super::request::{QUIET_ENVIRONMENT, WITHOUT_PROJECT_CONFIG, plugin_marker};
use crate::bare::PREPARE;
use crate::runtime::{Launch, LaunchInputs};

/// The script that starts the server; its first lines are set before it.
const START_SCRIPT: &str = include_str!("start.sh");
/// The variable that tells the script where the server has to listen; without it, on loopback.
const LISTEN_VARIABLE: &str = "OPENCODE_HOSTNAME";
/// What the script's own exit statuses mean: the image has no OpenCode, or no daemon.
const REFUSALS: [(i64, &str); 2] = [
    (
        69,
        "The sandbox's image has no OpenCode. The operator has to check the snapshot or the Dockerfile.",
    ),
    (
        70,
        "The sandbox's image has no bobbin-agentd, by which agents such as Claude Code and Codex are run. The operator makes one that has it, with `bobbin snapshot --daemon URL --agents claude,codex` (docs/OPERATE.md, \"How agents are run\"). Without a choice of agent or runtime a task works as before.",
    ),
];
/// The variable that holds the token that the daemon wants to see.
const TOKEN_VARIABLE: &str = "BOBBIN_AGENTD_TOKEN";
/// Prints the end of what the server wrote to its terminal, and of what the daemon wrote down.
pub(super) const LAST_WORDS: &str =
    "tail -q -n 5 .bobbin/opencode.log .bobbin/agentd.log 2>/dev/null | head -c 4000";

/// What starts a server with this configuration.
pub(super) fn launch(via: Via, inputs: LaunchInputs<'_>, config: &Value) -> Launch {
    let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut environment: BTreeMap<String, String> =
        QUIET_ENVIRONMENT.into_iter().map(set).collect();
    if !inputs.is_trusted {
        environment.extend(WITHOUT_PROJECT_CONFIG.into_iter().map(set));
    }
    if !inputs.listens_on.is_loopback() {
        environment.extend([set((LISTEN_VARIABLE, &inputs.listens_on.to_string()))]);
    }
    // The daemon gives the server a password of its own.
    let (server, secret) = match via {
        Via::Server => ("opencode", "OPENCODE_SERVER_PASSWORD"),
        Via::Daemon => ("daemon", TOKEN_VARIABLE),
    };
    environment.extend([
        set((secret, inputs.password)),
        set(("OPENCODE_CONFIG_CONTENT", &config.to_string())),
    ]);
    Launch {
        script: format!(
            "server={server}\nrestart={}\nmarker='{}'\n{PREPARE}{START_SCRIPT}",
            u8::from(inputs.restart),
            plugin_marker()
        ),
        environment,
        refusals: &REFUSALS,
    }
}

/// What keeps the server from installing its plugin package when it first meets a directory whose repository configures it:
/// as the start does for the common one.
pub(super) fn fit_workspace() -> String {
    format!(
        "if [ -d .opencode ]; then mkdir -p .opencode/node_modules && printf '%s\\n' '{}' >.opencode/package-lock.json; fi",
        plugin_marker()
    )
}
