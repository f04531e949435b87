//! What came of a command, for people and for programs, and the exit code that says it.

use std::fmt::Arguments;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

/// A line beside the output, on standard error.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stderr().lock(), format_args!($($words)*), "\n")
    };
}

/// Words beside the output that the cursor stays behind.
macro_rules! tell_part {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stderr().lock(), format_args!($($words)*), "")
    };
}

/// A line of the output.
macro_rules! show {
    ($($words:tt)*) => {
        $crate::output::write(&mut std::io::stdout().lock(), format_args!($($words)*), "\n")
    };
}

/// Writes to a stream whose reader may have gone. `println!` and `eprintln!` panic there, and the exit code would no longer
/// say how the command ended.
pub fn write(stream: &mut impl Write, words: Arguments<'_>, end: &str) {
    let written = write!(stream, "{words}{end}");
    let _ = written.and_then(|()| stream.flush());
}

/// How the program ends: what scripts read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All that was asked for is done.
    Done = 0,
    /// Something is wrong, was refused, or failed.
    Failed = 1,
    /// Used wrongly; clap ends with the same number where it refuses a command line.
    Usage = 2,
    /// Nothing went wrong, and there is something to notice: something is left to do, or nothing was found.
    Notice = 3,
    /// The turn that was followed has failed.
    TurnFailed = 4,
    /// Somebody stopped the turn that was followed.
    Cancelled = 5,
    /// The sandbox of the turn that was followed vanished while the agent worked.
    Lost = 6,
    /// The time for following was over before the turn.
    StillRuns = 7,
    /// Somebody pressed Ctrl-C: the following ended, and nothing else.
    Interrupted = 130,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

/// What a command answers with.
pub struct Output {
    /// What is printed, unless JSON is wanted.
    pub text: String,
    /// Printed in place of the text with `--json`.
    pub json: serde_json::Value,
    pub status: Status,
}

impl Output {
    /// An answer in both forms.
    ///
    /// # Errors
    /// That it has no JSON form.
    pub fn new(text: String, json: &impl Serialize, status: Status) -> Result<Self, CommandError> {
        let json = serde_json::to_value(json)
            .map_err(|e| format!("the answer has no JSON form: {e}. Leave --json out."))?;
        Ok(Self { text, json, status })
    }

    /// Prints it in the form that was asked for.
    pub fn print(self, json: bool) -> Status {
        let text = match json {
            // What has been shown line by line has no object.
            true if self.json.is_null() => String::new(),
            true => format!("{:#}", self.json),
            false => self.text,
        };
        // Whoever reads has gone: that is no failure of the command.
        let _ = print(&text);
        self.status
    }
}

/// A command that did not do what it was asked for: what to do next.
#[derive(Debug)]
pub struct CommandError {
    /// A sentence for people, on standard error.
    pub message: String,
    /// How the command ends.
    pub status: Status,
}

impl CommandError {
    /// What was asked about is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: Status::Notice }
    }
}

impl CommandError {
    /// Tells it: the sentence beside the output, and to a program an object in place of the answer.
    pub fn tell(&self, json: bool) -> Status {
        if json {
            let told = serde_json::json!({"error": self.message, "exit": self.status as u8});
            // Whoever reads has gone: that is no failure of the command.
            let _ = print(&format!("{told:#}"));
        }
        tell!("{}", self.message);
        self.status
    }
}

impl<T: Into<String>> From<T> for CommandError {
    fn from(message: T) -> Self {
        Self { message: message.into(), status: Status::Failed }
    }
}

/// Prints a text that ends in exactly one line break; nothing for nothing.
///
/// # Errors
/// That nobody reads any more.
pub fn print(text: &str) -> std::io::Result<()> {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
