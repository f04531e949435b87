//! Lambda: runs the real executables behind the real Runtime API.
//!
//! Promised: one process per concurrent invocation, kept warm and ended when idle; a cleared environment built from the
//! template; `Timeout` enforced; crashes, time-outs and failed starts reported in AWS's words; output passed on line by
//! line with function and request id; no process outlives the engine, or its successor in the same state folder.
//!
//! Deliberately absent: limits on memory and processor, the freeze between invocations, layers, extensions, versions,
//! response streaming, roles.

mod api;
mod event;
mod mapping;
mod pool;
mod process;
mod runtime_api;
mod traces;
mod url;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use bobbin_local_breakpoint::{Invocation, Invocations};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::limits;
use crate::log::{LogLine, LogSink, LogStream};

pub(crate) use api::PATH_PREFIX;
pub(crate) use mapping::{Mapping, run as run_mapping};
pub(crate) use pool::Function;
pub(crate) use process::{Launch, kill_leftovers};
pub use runtime_api::{Invoked, RuntimeApi};
pub(crate) use traces::Traces;
pub(crate) use url::router as url_router;

/// An id for an invocation.
pub(crate) fn request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What an invocation came to.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The function's response, as it sent it.
    Answer(Bytes),
    /// The function failed; the body is AWS's error object.
    Failed(Bytes),
    /// No more processes at once are allowed.
    Throttled,
}

impl Outcome {
    fn failed(error_type: &str, message: &str) -> Self {
        Self::Failed(failure(error_type, message))
    }
}

/// AWS's error object.
fn failure(error_type: &str, message: &str) -> Bytes {
    let body = json!({ "errorType": error_type, "errorMessage": message });
    body.to_string().into()
}

impl Invocations for Functions {
    fn invocations(&self) -> Vec<Invocation> {
        let functions = self.by_logical_id.values();
        functions
            .flat_map(|function| function.invocations())
            .collect()
    }
}

/// All functions of the stack.
pub(crate) struct Functions {
    by_logical_id: BTreeMap<String, Arc<Function>>,
    clock: Clock,
    log: LogSink,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Functions {
    pub(crate) fn new(
        functions: impl IntoIterator<Item = Launch>,
        clock: Clock,
        log: &LogSink,
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> Arc<Self> {
        let by_logical_id = functions
            .into_iter()
            .map(|launch| {
                let function = Function::new(
                    launch,
                    clock.clone(),
                    log.clone(),
                    tasks.clone(),
                    stopping.clone(),
                );
                (function.logical_id().to_owned(), Arc::new(function))
            })
            .collect();
        Arc::new(Self {
            by_logical_id,
            clock,
            log: log.clone(),
            tasks: tasks.clone(),
            stopping: stopping.clone(),
        })
    }

    /// By its id in the template.
    pub(crate) fn by_logical_id(&self, id: &str) -> Option<&Arc<Function>> {
        self.by_logical_id.get(id)
    }

    /// By name or ARN, as the Lambda API names functions.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Function>> {
        self.by_logical_id
            .values()
            .find(|function| function.name() == name || function.arn() == name)
    }

    /// Live processes: logical id and process id.
    pub(crate) fn processes(&self) -> Vec<(String, u32)> {
        self.by_logical_id
            .iter()
            .flat_map(|(id, function)| {
                let processes = function.processes();
                processes
                    .into_iter()
                    .map(move |process| (id.clone(), process))
            })
            .collect()
    }

    /// Kills every process of every function.
    pub(crate) fn kill_all(&self) {
        for function in self.by_logical_id.values() {
            function.kill();
        }
    }

    /// Ends idle processes until the engine stops.
    pub(crate) async fn end_idle(self: Arc<Self>) {
        loop {
            let look_ms = self.clock.now_ms() + limits::FUNCTION_IDLE_LOOK_MS;
            let wait = self.clock.sleep_until_ms(look_ms);
            if self.stopping.run_until_cancelled(wait).await.is_none() {
                return;
            }
            for function in self.by_logical_id.values() {
                function.end_idle();
            }
        }
    }

    /// Invokes asynchronously: tried again twice, a minute and two later, under the same request id, then given up with a
    /// line in the log (AWS).
    pub(crate) fn invoke_event(
        self: &Arc<Self>,
        function: &Arc<Function>,
        request_id: String,
        payload: Bytes,
    ) {
        let functions = Arc::clone(self);
        let function = Arc::clone(function);
        self.tasks.spawn(async move {
            for attempt in 0..=limits::EVENT_INVOCATION_RETRIES_MAX {
                if let Outcome::Answer(_) = function.invoke(&request_id, payload.clone()).await {
                    return;
                }
                let pause_ms = limits::EVENT_INVOCATION_BACKOFF_MS * i64::from(attempt + 1);
                let at_ms = functions.clock.now_ms() + pause_ms;
                let wait = functions.clock.sleep_until_ms(at_ms);
                if attempt == limits::EVENT_INVOCATION_RETRIES_MAX
                    || functions.stopping.run_until_cancelled(wait).await.is_none()
                {
                    break;
                }
            }
            if !functions.stopping.is_cancelled() {
                (functions.log)(LogLine {
                    function: function.logical_id().to_owned(),
                    request_id: None,
                    process: None,
                    stream: LogStream::Platform,
                    text: "An asynchronous invocation was given up after its retries.".to_owned(),
                });
            }
        });
    }
}
