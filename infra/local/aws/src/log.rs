//! What functions print, passed on line by line.

use std::sync::Arc;

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    /// The function's standard output.
    Out,
    /// The function's standard error.
    Error,
    /// The engine's own line about the function: a crash, a time-out, messages that came back.
    Platform,
}

/// One line about one function.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Logical id of the function in the template.
    pub function: String,
    /// The invocation that ran when the line was read; `None` during a start.
    pub request_id: Option<String>,
    /// Process id of the function's process, where a process is meant.
    pub process: Option<u32>,
    /// Where it comes from.
    pub stream: LogStream,
    /// The line, without its end.
    pub text: String,
}

/// Receives every line as it is read; called from many tasks at once and must return soon.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;
