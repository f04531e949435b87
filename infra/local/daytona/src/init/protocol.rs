//! What the provider and a sandbox's first process say to each other: frames of JSON with a length in front, calls
//! down its standard input, replies up its standard output.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::codec::LengthDelimitedCodec;

use crate::limits::FRAME_BYTES_MAX;

/// Variables for a process, on top of those that the sandbox starts with.
pub(crate) type Environment = BTreeMap<String, String>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) op: Op,
}

/// The reply to the call with this id; id 0 is the greeting.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    pub(crate) outcome: Result<Value, Refusal>,
}

/// A call that was refused, in the words of the toolbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Refusal {
            status,
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// One for which the caller is to blame; `reason` follows the words that the toolbox begins with.
    pub(crate) fn bad_request(reason: impl Display) -> Self {
        Self::new(400, "BAD_REQUEST", format!("bad request: {reason}"))
    }

    /// Something that is not there.
    pub(crate) fn not_found(reason: impl Display) -> Self {
        Self::new(404, "NOT_FOUND", format!("not found: {reason}"))
    }

    /// One for which the caller is not to blame.
    pub(crate) fn internal(error: impl Display) -> Self {
        Self::new(500, "INTERNAL_SERVER_ERROR", error.to_string())
    }
}

/// Everything a sandbox is asked to do. Paths may be relative to its home.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Op {
    Execute {
        command: String,
        env: Environment,
        cwd: Option<String>,
        timeout_ms: Option<u64>,
    },
    SessionCreate {
        session: String,
        env: Environment,
    },
    SessionRun {
        session: String,
        command: String,
        wait: bool,
    },
    SessionList,
    SessionGet {
        session: String,
    },
    SessionCommand {
        session: String,
        command: String,
    },
    SessionLogs {
        session: String,
        command: String,
    },
    SessionInput {
        session: String,
        command: String,
        data: String,
    },
    SessionDelete {
        session: String,
    },
    Read {
        path: String,
    },
    Write {
        path: String,
        data: Base64Bytes,
    },
    List {
        path: String,
        depth: u32,
    },
    Info {
        path: String,
    },
    Folder {
        path: String,
        mode: u32,
    },
    Move {
        source: String,
        destination: String,
    },
    Delete {
        path: String,
        recursive: bool,
    },
    Search {
        path: String,
        pattern: String,
    },
    Find {
        path: String,
        pattern: String,
    },
    /// End every process of the sandbox, then yourself.
    Shutdown {
        grace_ms: u64,
    },
}

/// Bytes as JSON can hold them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Base64Bytes(String);

impl Base64Bytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Base64Bytes(STANDARD.encode(bytes))
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }
}

/// Frames of at most [`FRAME_BYTES_MAX`].
pub(crate) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .max_frame_length(FRAME_BYTES_MAX)
        .new_codec()
}
