//! How the chat is started, and why it may not start.

use crate::identity::{DiscordKeys, SlackKeys};
use crate::store::StoreError;
use bobbin_local_breakpoint::{Breakpoints, ControlKey};
use futures::future::BoxFuture;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// What the page shows beside a thread; read about once a second while somebody looks.
pub trait Inspector: Send + Sync + 'static {
    /// Records of threads as JSON objects with at least `thread`, and `sandbox` with the record of the one that it works in.
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>>;
    /// Sandboxes as JSON objects with at least `name`, and `at_provider` where the provider has one.
    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>>;
}

/// How to start the chat.
pub struct Settings {
    /// Folder of the SQLite file `chat.sqlite`; made when missing.
    pub state_dir: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// No real model answers, which the page says.
    pub model_is_scripted: bool,
    /// Base of the function URL, such as `http://127.0.0.1:8080`; may follow with `Chat::set_ingress`.
    pub ingress: Option<String>,
    /// Time that both platforms give the ingress for a first answer; theirs is [`crate::INGRESS_ANSWER_MS_MAX`].
    pub ingress_answer_ms: u64,
    /// Identity of the Discord application.
    pub discord: DiscordKeys,
    /// Identity of the Slack app, and what its manifest declares.
    pub slack: SlackKeys,
    /// What the page, and who acts or reads as a person, has to say.
    pub control_key: ControlKey,
    /// A name or address of this machine by which the bot reaches it that does not share its loopback.
    pub also_named: Option<String>,
    /// Session records and sandboxes for the page.
    pub inspector: Arc<dyn Inspector>,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}

/// Why the chat did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken, or the state folder cannot be made.
    #[error("{what}: {source}; choose another port or state folder")]
    Io {
        /// The step that failed, as it stands in the sentence.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The SQLite file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The seed of the signing key is not 32 bytes of hex.
    #[error("the Discord seed must be 64 hex digits")]
    Seed,
    /// No HTTP client could be made.
    #[error("the client for the ingress cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}
