//! Output of functions, line by line.

use std::sync::Arc;

/// Source of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    /// The function's standard output.
    Out,
    /// The function's standard error.
    Error,
    /// The engine's own line about the function: a crash, a time-out, returned messages.
    Platform,
}

/// A log line of a function.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Logical id of the function in the template.
    pub function: String,
    /// The invocation in progress when the line was read; `None` during a start.
    pub request_id: Option<String>,
    /// Process id, if the line belongs to a process.
    pub process: Option<u32>,
    /// Source of the line.
    pub stream: LogStream,
    /// The line without its line break.
    pub text: String,
}

/// Receives every line as it is read; called concurrently from many tasks, must return soon.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;
