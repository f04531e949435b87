//! How a function starts, and how it exits if it cannot: with one line that a person can act on.
//!
//! Promised: a wrong configuration is reported to Lambda as an initialisation error and logged as one line, both in the
//! same words. Nothing panics, and the process exits with failure. For a process that merely exits, Lambda would show
//! "exited without providing a reason". Deliberately absent: the possible errors, which the parts report themselves.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lambda_http::http::Uri;
use lambda_runtime::tower::ServiceExt as _;
use lambda_runtime::{Diagnostic, LambdaEvent, Runtime, Service};
use lambda_runtime_api_client::body::Body;
use lambda_runtime_api_client::{Client, build_request};
use serde::Serialize;

use crate::events::Raw;

/// Bound of the report: Lambda is on the same machine.
const REPORT_MS_MAX: u64 = 2_000;
/// The error type that Lambda shows.
const KIND: &str = "Bobbin.Configuration";
/// The environment variable with the address of Lambda's Runtime API.
pub const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";
/// Variables that Lambda also sets, and without which its runtime panics (Lambda developer guide, "Defined runtime
/// environment variables").
const NAMES: [&str; 3] = ["AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_VERSION", MEMORY];
const MEMORY: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";

/// Checks that Lambda, or another implementation of its Runtime API, started this process.
///
/// # Errors
/// How to run the program.
pub fn in_lambda() -> Result<(), String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let unset = |name: &str| {
        format!(
            "{name} is not set: this program runs as a Lambda function; `cargo run` starts the whole stack on this machine"
        )
    };
    let address = set(RUNTIME_API).ok_or_else(|| unset(RUNTIME_API))?;
    if !address.parse::<Uri>().is_ok_and(|uri| uri.authority().is_some()) {
        return Err(format!(
            "{RUNTIME_API} is {address:?}, which is not an address such as 127.0.0.1:9001"
        ));
    }
    for name in NAMES {
        set(name).ok_or_else(|| unset(name))?;
    }
    if set(MEMORY).is_some_and(|size| size.parse::<i32>().is_ok()) {
        Ok(())
    } else {
        Err(format!("{MEMORY} is not a number of megabytes"))
    }
}

/// The error that Lambda receives when the function cannot work.
#[must_use]
pub fn unfit(why: &str) -> Diagnostic {
    Diagnostic { error_type: KIND.to_owned(), error_message: one_line(why) }
}

/// Logs why the function cannot work.
pub fn report_refused(why: &str) {
    tracing::error!(event = "start.refused", "{}", one_line(why));
}

/// Reports why the function cannot start; returns the exit code.
pub async fn refuse(why: &str) -> ExitCode {
    report_refused(why);
    if env::var(RUNTIME_API).is_ok_and(|address| address.parse::<Uri>().is_ok()) {
        let told = tokio::time::timeout(Duration::from_millis(REPORT_MS_MAX), report(why)).await;
        if !matches!(told, Ok(true)) {
            tracing::warn!(event = "start.unreported", "Lambda did not accept the report");
        }
    }
    ExitCode::FAILURE
}

/// Tells Lambda that this process cannot start ("Using the Lambda runtime API", "Initialization error");
/// `lambda_runtime` does that only for snapshots.
async fn report(why: &str) -> bool {
    let request = build_request()
        .method("POST")
        .uri("/2018-06-01/runtime/init/error")
        .header("lambda-runtime-function-error-type", KIND)
        .body(Body::from(serde_json::json!(unfit(why)).to_string()));
    let (Ok(request), Ok(client)) = (request, Client::builder().build()) else {
        return false;
    };
    let answer = client.call(request).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// Works until no more work can be fetched; returns the exit code.
pub async fn work<S, A>(service: S) -> ExitCode
where
    S: Service<LambdaEvent<Raw>, Response = A, Error = Diagnostic>,
    A: Serialize,
{
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let service = service
        .map_request(move |event| {
            counted.fetch_add(1, Ordering::Relaxed);
            event
        })
        .map_err(|failure: Diagnostic| {
            let Diagnostic { error_type, error_message } = &failure;
            tracing::error!(event = "invocation.failed", kind = error_type, "{error_message}");
            failure
        });
    let Err(error) = Runtime::new(service).run().await else {
        return ExitCode::SUCCESS;
    };
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        why = format!("{why}: {inner}");
        source = inner.source();
    }
    match taken.load(Ordering::Relaxed) {
        0 => {
            tracing::error!(
                event = "runtime.lost",
                "the first request for work failed at {}: {why}",
                env::var(RUNTIME_API).unwrap_or_default()
            );
            ExitCode::FAILURE
        }
        // A process of `sam local invoke` ends this way: its Runtime API is gone before the process.
        invocations => {
            tracing::info!(
                event = "runtime.ended",
                invocations,
                "requests for work keep failing: {why}"
            );
            ExitCode::SUCCESS
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
