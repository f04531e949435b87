//! The logs of the OpenCode server in a sandbox, read with a script that the provider's toolbox runs.
//!
//! There are two: the program's terminal output (`.bobbin/opencode.log`, created by `agent/opencode/start.sh` and
//! truncated at each start), and OpenCode's own, one file per start in `$XDG_DATA_HOME/opencode/log`. Promised: at most
//! [`CHUNK_BYTES_MAX`] per read, whole lines, and anything that looks like a credential is hidden. A paused sandbox is
//! never started for this.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_sandbox::{Provider, ProviderError, Sandbox};

/// Maximum bytes per read.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// Longest time for one read.
const READ: Duration = Duration::from_secs(20);
const SCRIPT: &str = include_str!("sandboxes/log.sh");
/// Exit status of the script when the log does not exist.
const NO_LOG: i64 = 66;

/// One of the two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichLog {
    /// The agent server's own log.
    Agent,
    /// The program's terminal output.
    Server,
}

/// A reader's position: a file and an offset in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Path in the sandbox.
    pub file: String,
    /// Bytes read from the sandbox so far.
    pub bytes: u64,
}

/// Start of a read.
#[derive(Debug, Clone, Copy)]
pub enum ReadFrom<'a> {
    /// The newest lines only.
    End {
        /// Number of lines from the end of the newest file.
        lines: u32,
    },
    /// Everything after this position; if the newest file is another one, all of it.
    Position(&'a Position),
}

/// Why the log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log does not exist in the sandbox.
    #[error("the sandbox has no such log yet")]
    None,
    /// The sandbox or the provider did not answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The answer does not come from the script.
    #[error("the log could not be read: {0}")]
    Unreadable(String),
}

/// Reads lines, and returns the reader's new position.
///
/// # Errors
/// [`LogError`].
pub async fn read(
    provider: &dyn Provider,
    sandbox: &Sandbox,
    which: WhichLog,
    from: ReadFrom<'_>,
) -> Result<(String, Position), LogError> {
    let (lines, file, bytes) = match from {
        ReadFrom::End { lines } => (lines, "", 0),
        ReadFrom::Position(position) => (0, position.file.as_str(), position.bytes),
    };
    let which = match which {
        WhichLog::Agent => "agent",
        WhichLog::Server => "server",
    };
    let env: BTreeMap<String, String> = [
        ("which", which.to_owned()),
        ("lines", lines.to_string()),
        ("known", file.to_owned()),
        ("from", bytes.to_string()),
        ("most", CHUNK_BYTES_MAX.to_string()),
    ]
    .map(|(name, value)| (format!("BOBBIN_LOG_{}", name.to_uppercase()), value))
    .into();
    let done = provider.exec(sandbox, SCRIPT, &env, READ).await?;
    if done.exit_code == NO_LOG {
        return Err(LogError::None);
    }
    let unreadable = || {
        let seen = bobbin_core::text::shorten(&bobbin_core::text::one_line(&done.text), 200);
        LogError::Unreadable(redact(&seen))
    };
    let (head, text) = done.text.split_once('\n').ok_or_else(unreadable)?;
    let (bytes, file) = head.split_once(' ').ok_or_else(unreadable)?;
    let end: u64 = bytes.parse().map_err(|_| unreadable())?;
    // A partial line is read again together with its other half.
    let whole = text.rfind('\n').map_or("", |at| &text[..=at]);
    let half = u64::try_from(text.len() - whole.len()).unwrap_or(0);
    let position = Position { file: file.to_owned(), bytes: end.saturating_sub(half) };
    Ok((redact(whole), position))
}
