//! How an OpenCode server is started in a sandbox.

use std::collections::BTreeMap;

use bobbin_core::failure::Failure;

use super::request::{QUIET_ENVIRONMENT, WITHOUT_PROJECT_CONFIG, plugin_marker};
use crate::runtime::{Launch, LaunchInputs};

/// The script that prepares the project and starts the server; its first lines are set before it.
const START_SCRIPT: &str = include_str!("start.sh");
/// The variable that tells the script where the server has to listen; without it, on loopback.
const LISTEN_VARIABLE: &str = "OPENCODE_HOSTNAME";
/// Exit status of the script when the image has no OpenCode.
const EXIT_NOT_INSTALLED: i64 = 69;
/// Prints the end of what the server wrote to its terminal.
pub(super) const LAST_WORDS: &str = "tail -n 5 .bobbin/opencode.log 2>/dev/null | head -c 4000";

/// What starts a server with this configuration.
pub(super) fn launch(inputs: LaunchInputs<'_>, config: String) -> Launch {
    let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut environment: BTreeMap<String, String> =
        QUIET_ENVIRONMENT.into_iter().map(set).collect();
    if !inputs.is_trusted {
        environment.extend([set(WITHOUT_PROJECT_CONFIG)]);
    }
    if !inputs.listens_on.is_loopback() {
        environment.extend([set((LISTEN_VARIABLE, &inputs.listens_on.to_string()))]);
    }
    environment.extend([
        set(("OPENCODE_SERVER_PASSWORD", inputs.password)),
        set(("OPENCODE_CONFIG_CONTENT", &config)),
    ]);
    Launch {
        script: format!(
            "restart={}\nmarker='{}'\n{START_SCRIPT}",
            u8::from(inputs.restart),
            plugin_marker()
        ),
        environment,
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

/// What the script's exit status means.
pub(super) fn not_launched(exit_code: i64) -> Option<Failure> {
    (exit_code == EXIT_NOT_INSTALLED).then(|| Failure::NonRecoverable {
        advice: "The sandbox's image has no OpenCode. The operator has to check the snapshot or the Dockerfile."
            .to_owned(),
    })
}
