//! The logs of the OpenCode server in a sandbox, read as its toolbox runs a script.
//!
//! There are two: what the program wrote to its terminal (`.bobbin/opencode.log`, made by `agent/opencode/start.sh` and begun anew
//! with each start), and OpenCode's own, a file a start below `$XDG_DATA_HOME/opencode/log`. Promised: at most
//! [`CHUNK_BYTES_MAX`] a read, whole lines, and what looks like a credential hidden. A sandbox that does not run is never
//! started for it.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_sandbox::{Provider, ProviderError, Sandbox};

/// Bytes of one read.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// A read may take so long.
const READ: Duration = Duration::from_secs(20);
const SCRIPT: &str = include_str!("sandboxes/log.sh");
/// What the script ends with where there is no such log.
const NO_LOG: i64 = 66;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What the agent's server writes about itself.
    Agent,
    /// What the program wrote to its terminal.
    Server,
}

/// Where a reader stands: in which file, after how many bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Path in the sandbox.
    pub file: String,
    /// Bytes that were read from the sandbox so far.
    pub bytes: u64,
}

/// From where to read.
#[derive(Debug, Clone, Copy)]
pub enum From<'a> {
    /// Only the newest lines.
    End {
        /// Lines from the end of the newest file.
        lines: u32,
    },
    /// What has come since; of another file everything.
    Position(&'a Position),
}

/// Why the log could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such log in the sandbox.
    #[error("the sandbox has no such log yet")]
    None,
    /// The sandbox or the provider did not answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The answer is not the script's.
    #[error("the log could not be read: {0}")]
    Unreadable(String),
}

/// Reads lines, and says where the reader stands then.
///
/// # Errors
/// [`LogError`].
pub async fn read(
    provider: &dyn Provider,
    sandbox: &Sandbox,
    which: Which,
    from: From<'_>,
) -> Result<(String, Position), LogError> {
    let (lines, file, bytes) = match from {
        From::End { lines } => (lines, "", 0),
        From::Position(position) => (0, position.file.as_str(), position.bytes),
    };
    let which = match which {
        Which::Agent => "agent",
        Which::Server => "server",
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
    // Half a line is read again with its other half.
    let whole = text.rfind('\n').map_or("", |at| &text[..=at]);
    let half = u64::try_from(text.len() - whole.len()).unwrap_or(0);
    let position = Position { file: file.to_owned(), bytes: end.saturating_sub(half) };
    Ok((redact(whole), position))
}
