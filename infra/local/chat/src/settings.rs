//! Settings of the chat, and start errors.

use crate::forge_pane::ForgePane;
use crate::identity::{DiscordKeys, SlackKeys};
use crate::store::ChatStoreError;
use bobbin_local_breakpoint::{Breakpoints, ControlKey};
use futures::future::BoxFuture;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Data that the page shows beside a thread; read about once a second while a page is open.
pub trait Inspector: Send + Sync + 'static {
    /// Thread records as JSON objects with at least `thread`, and `sandbox` with the record of its sandbox.
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>>;
    /// Sandboxes as JSON objects with at least `name`, and `at_provider` if the provider has it.
    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>>;
    /// The forge of the stack, if it has one. It is not read with the others, but when its pane asks.
    fn forge(&self) -> Option<&dyn ForgePane> {
        None
    }
}

/// Settings of the chat.
pub struct LocalChatSettings {
    /// Folder of the SQLite file `chat.sqlite`; created if missing.
    pub state_dir: PathBuf,
    /// Port on 127.0.0.1; 0 picks a free one.
    pub port: u16,
    /// The model is scripted; the page says so.
    pub model_is_scripted: bool,
    /// Base of the function URL, such as `http://127.0.0.1:8080`; can be set later with `LocalChat::set_ingress`.
    pub ingress: Option<String>,
    /// Time limit for the ingress's first answer; the platforms' is [`crate::INGRESS_ANSWER_MS_MAX`].
    pub ingress_answer_ms: u64,
    /// Identity of the Discord application.
    pub discord: DiscordKeys,
    /// Identity of the Slack app, and its manifest's declarations.
    pub slack: SlackKeys,
    /// Key required by the page, and to act or read as a person.
    pub control_key: ControlKey,
    /// This machine's name or address for a bot that does not share its loopback.
    pub also_named: Option<String>,
    /// Session records and sandboxes for the page.
    pub inspector: Arc<dyn Inspector>,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}

/// Why the chat did not start.
#[derive(Debug, thiserror::Error)]
pub enum ChatStartError {
    /// The port is taken, or the state folder cannot be created.
    #[error("{what}: {source}; choose another port or state folder")]
    Io {
        /// The failed step, phrased for the sentence.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The SQLite file is unusable.
    #[error(transparent)]
    Store(#[from] ChatStoreError),
    /// The seed of the signing key is not 32 bytes of hex.
    #[error("the Discord seed must be 64 hex digits")]
    Seed,
    /// The HTTP client cannot be created.
    #[error("the client for the ingress cannot be created: {0}")]
    Client(#[from] reqwest::Error),
}
