//! Protocol between the provider and a sandbox's first process: length-prefixed JSON frames, calls on its standard
//! input, replies on its standard output.

use std::collections::BTreeMap;
use std::fmt::Display;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::codec::LengthDelimitedCodec;

use crate::limits::FRAME_BYTES_MAX;

/// Variables of a process, on top of the sandbox's own.
pub type Environment = BTreeMap<String, String>;

/// A call, with the id for its reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitCall {
    /// Id of the call.
    pub id: u64,
    /// The operation.
    pub op: Op,
}

/// The reply to the call with this id; id 0 is the greeting.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitReply {
    /// Id of the call.
    pub id: u64,
    /// Result of the call.
    pub outcome: Result<Value, InitRefusal>,
}

/// A call that was refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitRefusal {
    /// HTTP status.
    pub status: u16,
    /// Error code for programs.
    pub code: String,
    /// Message for people.
    pub message: String,
}

impl InitRefusal {
    /// A refusal with this status, code and message.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        InitRefusal { status, code: code.to_owned(), message: message.into() }
    }

    /// The caller's error.
    pub fn bad_request(reason: impl Display) -> Self {
        Self::new(400, "BAD_REQUEST", format!("bad request: {reason}"))
    }

    /// Something was not found.
    pub fn not_found(reason: impl Display) -> Self {
        Self::new(404, "NOT_FOUND", format!("not found: {reason}"))
    }

    /// Not the caller's error.
    pub fn internal(error: impl Display) -> Self {
        Self::new(500, "INTERNAL_SERVER_ERROR", error.to_string())
    }
}

/// The operations of a sandbox. Paths may be relative to its home.
#[derive(Debug, Serialize, Deserialize)]
// Each variant describes its fields.
#[allow(missing_docs)]
pub enum Op {
    /// Runs a text in a shell and waits until its output is closed by everybody.
    Execute { command: String, env: Environment, cwd: Option<String>, timeout_ms: Option<u64> },
    /// Starts a program by its arguments, without a shell, and returns its `id` at once. A missing program has exited
    /// with 127. After `timeout_ms` its process group is killed.
    Spawn { argv: Vec<String>, env: Environment, cwd: Option<String>, timeout_ms: Option<u64> },
    /// Output of a spawned command from this piece on, as `{pieces: [[stream, text]], next, exit}`; waits up to
    /// `wait_ms` for something new.
    Follow { command: String, from: usize, wait_ms: u64 },
    /// Signals the process group of a spawned command.
    Signal { command: String, signal: i32 },
    /// Connects a port inside to the provider, which recognises the connection by its ticket.
    Connect { port: u16, ticket: u64 },
    /// Starts a persistent shell.
    SessionCreate { session: String, env: Environment },
    /// Runs a command in such a shell, and waits for its end if requested.
    SessionRun { session: String, command: String, wait: bool },
    /// Lists the shells.
    SessionList,
    /// One shell.
    SessionGet { session: String },
    /// A command of a shell.
    SessionCommand { session: String, command: String },
    /// Output of a command.
    SessionLogs { session: String, command: String },
    /// Text for a command's input.
    SessionInput { session: String, command: String, data: String },
    /// Ends a shell and its commands.
    SessionDelete { session: String },
    /// The bytes of a file.
    Read { path: String },
    /// Writes a file, with its parents; sets permission bits if given.
    Write {
        path: String,
        data: Base64Bytes,
        #[serde(default)]
        mode: Option<u32>,
    },
    /// The entries below a folder, to this depth.
    List { path: String, depth: u32 },
    /// One entry.
    Info { path: String },
    /// Creates a folder with these permission bits, with its parents if requested.
    Folder { path: String, mode: u32, parents: bool },
    /// Renames a file or folder, or moves it into a folder.
    Move { source: String, destination: String },
    /// Removes a file, or a folder with its contents.
    Delete { path: String, recursive: bool },
    /// Finds files by name.
    Search { path: String, pattern: String },
    /// Finds lines in files by content.
    Find { path: String, pattern: String },
    /// Ends every process of the sandbox, then itself.
    Shutdown { grace_ms: u64 },
}

/// Bytes in JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Base64Bytes(String);

impl Base64Bytes {
    /// Encodes bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Base64Bytes(STANDARD.encode(bytes))
    }

    /// The decoded bytes; `None` if the text is not base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }
}

/// Codec of frames up to [`FRAME_BYTES_MAX`].
pub(crate) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec()
}
