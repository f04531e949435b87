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
pub type Environment = BTreeMap<String, String>;

/// A call, and the id that its reply carries.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Id of the call.
    pub id: u64,
    /// What is asked for.
    pub op: Op,
}

/// The reply to the call with this id; id 0 is the greeting.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// Id of the call.
    pub id: u64,
    /// What came of it.
    pub outcome: Result<Value, Refusal>,
}

/// A call that was refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// What it is as a status of HTTP.
    pub status: u16,
    /// A word for programs.
    pub code: String,
    /// A sentence.
    pub message: String,
}

impl Refusal {
    /// With these words.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Refusal { status, code: code.to_owned(), message: message.into() }
    }

    /// One for which the caller is to blame.
    pub fn bad_request(reason: impl Display) -> Self {
        Self::new(400, "BAD_REQUEST", format!("bad request: {reason}"))
    }

    /// Something that is not there.
    pub fn not_found(reason: impl Display) -> Self {
        Self::new(404, "NOT_FOUND", format!("not found: {reason}"))
    }

    /// One for which the caller is not to blame.
    pub fn internal(error: impl Display) -> Self {
        Self::new(500, "INTERNAL_SERVER_ERROR", error.to_string())
    }
}

/// Everything a sandbox is asked to do. Paths may be relative to its home.
#[derive(Debug, Serialize, Deserialize)]
// Each variant says what its fields are.
#[allow(missing_docs)]
pub enum Op {
    /// Runs a text in a shell and waits for everybody who holds its output.
    Execute { command: String, env: Environment, cwd: Option<String>, timeout_ms: Option<u64> },
    /// Starts a program by its arguments, without a shell, and answers its `id` at once. One that is not found has ended
    /// with 127. Over `timeout_ms` its process group is killed.
    Spawn { argv: Vec<String>, env: Environment, cwd: Option<String>, timeout_ms: Option<u64> },
    /// What a spawned command has printed from this piece on, as `{pieces: [[stream, text]], next, exit}`; holds the answer
    /// for up to `wait_ms` while there is nothing new.
    Follow { command: String, from: usize, wait_ms: u64 },
    /// Signals the process group of a spawned command.
    Signal { command: String, signal: i32 },
    /// Connects a port inside with the provider, which knows the connection by its ticket.
    Connect { port: u16, ticket: u64 },
    /// Starts a shell that stays.
    SessionCreate { session: String, env: Environment },
    /// Gives a command to such a shell, and waits for its end if asked to.
    SessionRun { session: String, command: String, wait: bool },
    /// The shells.
    SessionList,
    /// One of them.
    SessionGet { session: String },
    /// A command of one.
    SessionCommand { session: String, command: String },
    /// What that has printed.
    SessionLogs { session: String, command: String },
    /// Text for its input.
    SessionInput { session: String, command: String, data: String },
    /// Ends a shell and what it runs.
    SessionDelete { session: String },
    /// The bytes of a file.
    Read { path: String },
    /// Writes a file, with its parents, and with these permission bits if they are named.
    Write {
        path: String,
        data: Base64Bytes,
        #[serde(default)]
        mode: Option<u32>,
    },
    /// The entries below a folder, so many levels deep.
    List { path: String, depth: u32 },
    /// One entry.
    Info { path: String },
    /// Makes a folder with these permission bits, with its parents if they are to be made too.
    Folder { path: String, mode: u32, parents: bool },
    /// Renames a file or folder, or moves it into a folder.
    Move { source: String, destination: String },
    /// Removes a file, or a folder with what is in it.
    Delete { path: String, recursive: bool },
    /// Files by their names.
    Search { path: String, pattern: String },
    /// Lines of files by what they hold.
    Find { path: String, pattern: String },
    /// End every process of the sandbox, then yourself.
    Shutdown { grace_ms: u64 },
}

/// Bytes as JSON can hold them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Base64Bytes(String);

impl Base64Bytes {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Base64Bytes(STANDARD.encode(bytes))
    }

    /// The bytes; none where the text is no base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }
}

/// Frames of at most [`FRAME_BYTES_MAX`].
pub(crate) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec()
}
