//! How a function ends that cannot start: with one line that a person can act on.
//!
//! Promised: a wrong configuration is reported to Lambda as an error of initialisation and stands in the log as one line,
//! both in the same words; nothing panics, and the process ends as failed. Lambda would show a process that merely ends as
//! "exited without providing a reason". Deliberately absent: what can be wrong, which the parts say themselves.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The report takes no longer: Lambda is on the same machine.
const REPORT_MS_MAX: u64 = 2_000;
/// Bytes of the answer that are waited for, so that the report is not cut off.
const ANSWER_BYTES_MAX: usize = 1_024;
/// Where Lambda is asked for work.
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";
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
        let report = report(&address, &why);
        let told = tokio::time::timeout(Duration::from_millis(REPORT_MS_MAX), report).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::warn!(event = "start.unreported", "Lambda did not take the report");
        }
    }
    ExitCode::FAILURE
}

/// What the process ends with when there is no more work: Lambda ends it, or the connection to it is lost.
#[must_use]
pub fn ended(ended: Result<(), impl std::fmt::Display>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(
                event = "runtime.lost",
                "no more work could be asked for: {error}"
            );
            ExitCode::FAILURE
        }
    }
}

/// `POST /runtime/init/error`, as Lambda's Runtime API takes it; the client that the runtime has itself does not say it.
async fn report(address: &str, why: &str) -> std::io::Result<()> {
    let body = json!({ "errorMessage": why, "errorType": KIND, "stackTrace": [] }).to_string();
    let request = format!(
        "POST /2018-06-01/runtime/init/error HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Lambda-Runtime-Function-Error-Type: {KIND}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(request.as_bytes()).await?;
    let mut answer = [0; ANSWER_BYTES_MAX];
    connection.read(&mut answer).await.map(|_| ())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
