//! A command's result, for people and for programs, and its exit code.

use std::fmt::Arguments;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

/// Prints a line to standard error.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stderr().lock(), format_args!($($words)*), "\n")
    };
}

/// Prints to standard error without a line break.
macro_rules! tell_part {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stderr().lock(), format_args!($($words)*), "")
    };
}

/// Prints a line to standard output.
macro_rules! show {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stdout().lock(), format_args!($($words)*), "\n")
    };
}

/// Writes to a stream that may be closed. `println!` and `eprintln!` would panic, and the exit code would no longer
/// tell how the command ended.
pub fn write(stream: &mut impl Write, words: Arguments<'_>, end: &str) {
    let written = write!(stream, "{words}{end}");
    let _ = written.and_then(|()| stream.flush());
}

/// Exit code, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Everything requested is done.
    Done = 0,
    /// Something is wrong, was refused, or failed.
    Failed = 1,
    /// Usage error; the code that clap uses.
    Usage = 2,
    /// Nothing failed, but there is something to notice: work is left, or nothing was found.
    Notice = 3,
    /// The followed turn failed.
    TurnFailed = 4,
    /// Somebody stopped the followed turn.
    Cancelled = 5,
    /// The followed turn's sandbox vanished while the agent worked.
    Lost = 6,
    /// Time ran out before the turn ended.
    StillRuns = 7,
    /// Ctrl-C: following ended, and nothing else.
    Interrupted = 130,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// A command's answer.
pub struct Output {
    /// Text output.
    pub text: String,
    /// Replaces the text with `--json`.
    pub json: serde_json::Value,
    pub status: ExitStatus,
}

impl Output {
    /// An answer in both forms.
    ///
    /// # Errors
    /// It has no JSON form.
    pub fn new(
        text: String,
        json: &impl Serialize,
        status: ExitStatus,
    ) -> Result<Self, CommandError> {
        let json = serde_json::to_value(json)
            .map_err(|e| format!("the answer has no JSON form: {e}. Leave --json out."))?;
        Ok(Self { text, json, status })
    }

    /// Prints it in the requested form.
    pub fn print(self, json: bool) -> ExitStatus {
        let text = match json {
            // Output that was followed live has no object.
            true if self.json.is_null() => String::new(),
            true => format!("{:#}", self.json),
            false => self.text,
        };
        // A closed pipe is not an error.
        let _ = print(&text);
        self.status
    }
}

/// A command's failure, with advice.
#[derive(Debug)]
pub struct CommandError {
    /// A sentence for standard error.
    pub message: String,
    /// Exit code.
    pub status: ExitStatus,
}

impl CommandError {
    /// Something named was not found.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: ExitStatus::Notice }
    }
}

impl CommandError {
    /// Prints the sentence to standard error and, for programs, an object in place of the answer.
    pub fn tell(&self, json: bool) -> ExitStatus {
        if json {
            let told = serde_json::json!({"error": self.message, "exit": self.status as u8});
            // A closed pipe is not an error.
            let _ = print(&format!("{told:#}"));
        }
        tell!("{}", self.message);
        self.status
    }
}

impl<T: Into<String>> From<T> for CommandError {
    fn from(message: T) -> Self {
        Self { message: message.into(), status: ExitStatus::Failed }
    }
}

/// Prints a text with exactly one line break at its end; prints nothing for an empty text.
///
/// # Errors
/// The reader is gone.
pub fn print(text: &str) -> std::io::Result<()> {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
