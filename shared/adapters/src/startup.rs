//! How a function begins to work, and how it ends that cannot: with one line that a person can act on.
//!
//! Promised: a wrong configuration is reported to Lambda as an error of initialisation and stands in the log as one line,
//! both in the same words; nothing panics, and the process ends as failed. Lambda would show a process that merely ends as
//! "exited without providing a reason". Deliberately absent: what can be wrong, which the parts say themselves.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;

use crate::lambda::{self, Failure, Invocation, RUNTIME_API};

/// The report takes no longer: Lambda is on the same machine.
const REPORT_MS_MAX: u64 = 2_000;
/// The kind of error, as Lambda shows it.
const KIND: &str = "Bobbin.Configuration";

/// Whether this process was started by Lambda, or by something that speaks its Runtime API.
///
/// # Errors
/// A sentence that says how the program is to be run.
pub fn in_lambda() -> Result<(), String> {
    match env::var(RUNTIME_API) {
        Ok(address) if !address.is_empty() => Ok(()),
        _ => Err(format!(
            "{RUNTIME_API} is not set: this program runs as a Lambda function; `cargo run` starts the whole stack on this machine"
        )),
    }
}

/// Reports why the function cannot start; what the process ends with.
pub async fn refuse(why: &str) -> ExitCode {
    let why = one_line(why);
    tracing::error!(event = "start.refused", "{why}");
    if let Ok(address) = env::var(RUNTIME_API) {
        let report = lambda::refuse(&address, KIND, &why);
        let told = tokio::time::timeout(Duration::from_millis(REPORT_MS_MAX), report).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::warn!(event = "start.unreported", "Lambda did not take the report");
        }
    }
    ExitCode::FAILURE
}

/// Works until no more work can be asked for; what the process ends with then. That is a failure: Lambda ends a process
/// from outside.
pub async fn work<A: Serialize>(
    handler: impl AsyncFn(&Invocation) -> Result<A, Failure>,
) -> ExitCode {
    let address = env::var(RUNTIME_API).unwrap_or_default();
    let lost = lambda::serve(&address, handler).await;
    tracing::error!(
        event = "runtime.lost",
        "no more work could be asked for: {lost}"
    );
    ExitCode::FAILURE
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
