//! The sandbox that the tools work in, and what becomes of a call there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::protocol::decide::words::not_there_for_agent;
use bobbin_core::records::workspace::COMMON_FOLDER;
use bobbin_sandbox::{Output, Provider, ProviderError, Sandbox};

use crate::bounds::{PATH_BYTES_MAX, SCRIPT_MS_MAX};

/// The sandbox that the tools work in.
#[async_trait]
pub trait Place: Sync {
    /// The sandbox, running.
    ///
    /// # Errors
    /// A text for the agent: why it does not run, and what to do.
    async fn open(&self) -> Result<Opened, String>;

    /// An agent has come that will want it: what takes time may begin.
    async fn expect(&self) {}

    /// A file that came with a message to the agent, as the agent was told of it.
    ///
    /// # Errors
    /// A text for the agent: why there is none.
    async fn attachment(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("No files come with messages here: send the bytes as `data`.".to_owned())
    }
}

/// A sandbox that runs, and who runs it.
pub struct Opened {
    /// What is asked to run scripts and move files.
    pub provider: Arc<dyn Provider>,
    /// The sandbox, as it was found a moment ago.
    pub sandbox: Sandbox,
    /// What the clone of its repository left out, as a part of a sentence.
    pub left_out: Option<String>,
}

impl Opened {
    /// Words for an agent that looks for what is there, with what it cannot find by looking.
    pub(crate) fn with_left_out(&self, words: &str) -> String {
        match &self.left_out {
            Some(left_out) => format!("{words}\n{}", not_there_for_agent(left_out)),
            None => words.to_owned(),
        }
    }
}

/// What an agent sees of a call that came to something.
pub(crate) enum Shown {
    Text(String),
    /// Bytes in base64, and their media type.
    Image(String, &'static str),
}

/// A call's content, or the text that says why there is none.
pub(crate) type Came = Result<Shown, String>;

/// A path as the sandbox takes it: absolute, or in its working directory.
pub(crate) fn located(path: &str) -> Result<String, String> {
    let usable = (1..=PATH_BYTES_MAX).contains(&path.len()) && !path.contains(char::is_control);
    if !usable {
        return Err(format!("A path has 1 to {PATH_BYTES_MAX} bytes and no control characters."));
    }
    Ok(if path.starts_with('/') { path.to_owned() } else { format!("{COMMON_FOLDER}/{path}") })
}

/// Runs one of the scripts of this crate.
pub(crate) async fn script(
    opened: &Opened,
    script: &str,
    env: &BTreeMap<String, String>,
    wait_ms: u64,
) -> Result<Output, String> {
    let within = Duration::from_millis(SCRIPT_MS_MAX + wait_ms);
    let ran = opened.provider.exec(&opened.sandbox, script, env, within).await;
    ran.map_err(|error| trouble(&error))
}

/// What an agent is told of a call to the provider that failed.
pub(crate) fn trouble(error: &ProviderError) -> String {
    format!(
        "The sandbox did not do it: {error}. It may have had an effect all the same: look before you repeat it, and wait 20 s."
    )
}

/// Variables of a script.
pub(crate) fn variables<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (format!("BOBBIN_{name}"), value)).into()
}
