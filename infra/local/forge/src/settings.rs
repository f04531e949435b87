//! Settings of a forge, and start errors.

use std::net::IpAddr;
use std::path::PathBuf;

use bobbin_local_breakpoint::{Breakpoints, ControlKey};

use crate::seeds::Seeds;

/// Settings of a forge.
#[derive(Clone)]
pub struct ForgeSettings {
    /// Folder of its state; created if missing.
    pub state_dir: PathBuf,
    /// Port of the REST API on 127.0.0.1; 0 picks a free one.
    pub api_port: u16,
    /// Port of git and of the pages on 127.0.0.1; 0 picks a free one.
    pub web_port: u16,
    /// A second address to listen on, with the same ports.
    pub also_on: Option<IpAddr>,
    /// This machine's name or address for callers that do not share its loopback.
    pub also_named: Option<String>,
    /// Key required by the test controls.
    pub control_key: ControlKey,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
    /// What is there at the first start.
    pub seeds: Seeds,
    /// Requests of one caller in an hour.
    pub requests_max: u64,
}

impl ForgeSettings {
    /// Free ports, loopback only, GitHub's own limits.
    #[must_use]
    pub fn new(state_dir: PathBuf, control_key: ControlKey) -> Self {
        Self {
            state_dir,
            api_port: 0,
            web_port: 0,
            also_on: None,
            also_named: None,
            control_key,
            breakpoints: Breakpoints::default(),
            seeds: Seeds::default(),
            requests_max: crate::limits::REQUESTS_MAX,
        }
    }
}

/// Why a forge did not start.
#[derive(Debug, thiserror::Error)]
pub enum ForgeStartError {
    /// A port is taken, or the state folder cannot be made or read.
    #[error("the forge: {what}: {source}; choose another port or state folder")]
    Io {
        /// The failed step, phrased for the sentence.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no usable `git`.
    #[error("the forge needs git 2.38 or newer: {0}; install it from your system")]
    Git(String),
    /// A seed cannot be used.
    #[error("the forge's seeds: {0}")]
    Seeds(String),
    /// The HTTP client for webhooks cannot be made.
    #[error("the client for webhooks cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}
