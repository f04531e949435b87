//! The sandbox that the tools work in, and the results of calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::protocol::decide::words::for_agent;
use bobbin_core::records::workspace::COMMON_FOLDER;
use bobbin_sandbox::{Provider, ProviderError, Sandbox, ScriptOutput};

use crate::bounds::{PATH_BYTES_MAX, SCRIPT_MS_MAX};

/// The sandbox that the tools work in.
#[async_trait]
pub trait ToolPlace: Sync {
    /// The running sandbox.
    ///
    /// # Errors
    /// A text for the agent: why it does not run, and what to do.
    async fn open(&self) -> Result<OpenedSandbox, String>;

    /// An agent that will need the sandbox has connected: slow preparation may begin.
    async fn expect(&self) {}

    /// A file that came with a message to the agent, by the path that the agent was told.
    ///
    /// # Errors
    /// A text for the agent: why it does not exist.
    async fn attachment(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("No files come with messages here: send the bytes as `data`.".to_owned())
    }
}

/// A running sandbox, and its provider.
pub struct OpenedSandbox {
    /// The provider that runs scripts and moves files.
    pub provider: Arc<dyn Provider>,
    /// The sandbox, found a moment ago.
    pub sandbox: Sandbox,
    /// Paths that the clone of its repository left out, as a part of a sentence.
    pub left_out: Option<String>,
}

impl OpenedSandbox {
    /// Text for an agent that explores the files, with what the clone left out.
    pub(crate) fn with_left_out(&self, words: &str) -> String {
        match &self.left_out {
            Some(left_out) => format!("{words}\n{}", for_agent::not_there(left_out)),
            None => words.to_owned(),
        }
    }
}

/// Result of a successful call.
pub(crate) enum ToolOutput {
    Text(String),
    /// Bytes in base64, and their media type.
    Image(String, &'static str),
}

/// A call's content, or the error text.
pub(crate) type CallResult = Result<ToolOutput, String>;

/// A valid path in the sandbox: absolute, or relative to its working directory.
pub(crate) fn located(path: &str) -> Result<String, String> {
    let usable = (1..=PATH_BYTES_MAX).contains(&path.len()) && !path.contains(char::is_control);
    if !usable {
        return Err(format!("A path has 1 to {PATH_BYTES_MAX} bytes and no control characters."));
    }
    Ok(if path.starts_with('/') { path.to_owned() } else { format!("{COMMON_FOLDER}/{path}") })
}

/// Runs one of the scripts of this crate.
pub(crate) async fn script(
    opened: &OpenedSandbox,
    script: &str,
    env: &BTreeMap<String, String>,
    wait_ms: u64,
) -> Result<ScriptOutput, String> {
    let within = Duration::from_millis(SCRIPT_MS_MAX + wait_ms);
    let ran = opened.provider.exec(&opened.sandbox, script, env, within).await;
    ran.map_err(|error| trouble(&error))
}

/// The text for an agent about a failed call to the provider.
pub(crate) fn trouble(error: &ProviderError) -> String {
    format!(
        "The sandbox failed: {error}. The call may still have had an effect: check before you repeat it, and wait 20 s."
    )
}

/// Variables of a script.
pub(crate) fn variables<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (format!("BOBBIN_{name}"), value)).into()
}
