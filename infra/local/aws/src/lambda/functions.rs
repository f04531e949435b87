//! All functions of the stack: look-up, asynchronous invocation, ending of idle processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use bobbin_local_breakpoint::{Invocation, Invocations};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::outcome::InvocationOutcome;
use super::pool::Function;
use super::process::FunctionLaunch;
use crate::clock::Clock;
use crate::limits;
use crate::log::LogSink;

/// All functions of the stack.
pub(crate) struct Functions {
    by_logical_id: BTreeMap<String, Arc<Function>>,
    clock: Clock,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Functions {
    pub(crate) fn new(
        functions: impl IntoIterator<Item = FunctionLaunch>,
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
        Arc::new(Self { by_logical_id, clock, tasks: tasks.clone(), stopping: stopping.clone() })
    }

    /// Finds a function by its logical id.
    pub(crate) fn by_logical_id(&self, id: &str) -> Option<&Arc<Function>> {
        self.by_logical_id.get(id)
    }

    /// Finds a function by name or ARN, as the Lambda API does.
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
                processes.into_iter().map(move |process| (id.clone(), process))
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
            let check_ms = self.clock.now_ms() + limits::FUNCTION_IDLE_CHECK_MS;
            let wait = self.clock.sleep_until_ms(check_ms);
            if self.stopping.run_until_cancelled(wait).await.is_none() {
                return;
            }
            for function in self.by_logical_id.values() {
                function.end_idle();
            }
        }
    }

    /// Invokes asynchronously: retried twice, after one and two minutes, under the same request id, then dropped with a
    /// log line (AWS).
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
                if let InvocationOutcome::Answer(_) =
                    function.invoke(&request_id, payload.clone()).await
                {
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
                let text = "An asynchronous invocation was given up after its retries.";
                function.log_platform(None, None, text);
            }
        });
    }
}

impl Invocations for Functions {
    fn invocations(&self) -> Vec<Invocation> {
        let functions = self.by_logical_id.values();
        functions.flat_map(|function| function.invocations()).collect()
    }
}
