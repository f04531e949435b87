//! Start of an OpenCode server in a sandbox, by itself or through the daemon in front of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::Via;
use super::request::{QUIET_ENVIRONMENT, WITHOUT_PROJECT_CONFIG, plugin_marker};
use crate::bare::PREPARE;
use crate::runtime::{LaunchInputs, ServerLaunch};

/// The script that starts the server; its first lines are prepended.
const START_SCRIPT: &str = include_str!("start.sh");
/// The variable with the address on which the server has to listen; loopback without it.
const LISTEN_VARIABLE: &str = "OPENCODE_HOSTNAME";
/// Meaning of the script's own exit statuses: the image has no OpenCode, or no daemon.
const REFUSALS: [(i64, &str); 2] = [
    (
        69,
        "The sandbox's image has no OpenCode. The operator has to check the snapshot or the Dockerfile.",
    ),
    (
        70,
        "The sandbox's image has no bobbin-agentd, which runs agents such as Claude Code and Codex. The operator adds it with `bobbin snapshot --daemon URL --agents claude,codex` (docs/OPERATE.md, \"How agents are run\"). Tasks that choose no agent and no runtime still work.",
    ),
];
/// The variable with the token that the daemon requires.
const TOKEN_VARIABLE: &str = "BOBBIN_AGENTD_TOKEN";
/// Prints the end of the server's terminal output and of the daemon's log.
pub(super) const LAST_WORDS: &str =
    "tail -q -n 5 .bobbin/opencode.log .bobbin/agentd.log 2>/dev/null | head -c 4000";

/// The launch of a server with this configuration.
pub(super) fn launch(via: Via, inputs: LaunchInputs<'_>, config: &Value) -> ServerLaunch {
    let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut environment: BTreeMap<String, String> =
        QUIET_ENVIRONMENT.into_iter().map(set).collect();
    if !inputs.is_trusted {
        environment.extend(WITHOUT_PROJECT_CONFIG.into_iter().map(set));
    }
    if !inputs.listens_on.is_loopback() {
        environment.extend([set((LISTEN_VARIABLE, &inputs.listens_on.to_string()))]);
    }
    // The daemon gives the server a separate password.
    let (server, secret) = match via {
        Via::Server => ("opencode", "OPENCODE_SERVER_PASSWORD"),
        Via::Daemon => ("daemon", TOKEN_VARIABLE),
    };
    environment.extend([
        set((secret, inputs.password)),
        set(("OPENCODE_CONFIG_CONTENT", &config.to_string())),
    ]);
    ServerLaunch {
        script: format!(
            "server={server}\nrestart={}\nmarker='{}'\n{PREPARE}{START_SCRIPT}",
            u8::from(inputs.restart),
            plugin_marker()
        ),
        environment,
        refusals: &REFUSALS,
    }
}

/// Keeps the server from installing its plugin package when it first opens a directory whose repository configures it,
/// as the start does for the common directory.
pub(super) fn fit_workspace() -> String {
    format!(
        "if [ -d .opencode ]; then mkdir -p .opencode/node_modules && printf '%s\\n' '{}' >.opencode/package-lock.json; fi",
        plugin_marker()
    )
}
