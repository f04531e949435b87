//! One function and its processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use bobbin_local_breakpoint as breakpoint;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::outcome::InvocationOutcome;
use super::process::{FunctionLaunch, FunctionProcess};
use super::runtime_api::{FunctionInvocation, ProcessPhase};
use super::traces;
use crate::clock::{Clock, system_ms};
use crate::limits;
use crate::log::{LogLine, LogSink, LogStream};

/// A function: how to start it, and its processes.
pub(crate) struct Function {
    launch: FunctionLaunch,
    clock: Clock,
    log: LogSink,
    tasks: TaskTracker,
    stopping: CancellationToken,
    concurrency: Semaphore,
    processes: Arc<Mutex<BTreeMap<u32, Arc<FunctionProcess>>>>,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    process: Arc<FunctionProcess>,
    since_ms: i64,
}

impl Function {
    pub(super) fn new(
        launch: FunctionLaunch,
        clock: Clock,
        log: LogSink,
        tasks: TaskTracker,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            concurrency: Semaphore::new(launch.concurrency_max),
            launch,
            clock,
            log,
            tasks,
            stopping,
            processes: Arc::default(),
            idle: Mutex::default(),
        }
    }

    pub(crate) fn logical_id(&self) -> &str {
        &self.launch.logical_id
    }

    pub(crate) fn name(&self) -> &str {
        &self.launch.name
    }

    pub(crate) fn arn(&self) -> &str {
        &self.launch.arn
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        lock(&self.processes).keys().copied().collect()
    }

    /// Its processes with an invocation.
    pub(super) fn invocations(&self) -> Vec<breakpoint::Invocation> {
        let processes = lock(&self.processes);
        let serving = |process: &Arc<FunctionProcess>| {
            Some(breakpoint::Invocation {
                process: process.id,
                function: self.launch.logical_id.clone(),
                event: process.event()?,
            })
        };
        processes.values().filter_map(serving).collect()
    }

    /// Kills every process; returns their ids.
    pub(crate) fn kill(&self) -> Vec<u32> {
        let processes: Vec<_> = lock(&self.processes).values().cloned().collect();
        for process in &processes {
            process.kill();
        }
        processes.iter().map(|process| process.id).collect()
    }

    pub(super) fn end_idle(&self) {
        let now_ms = self.clock.now_ms();
        lock(&self.idle).retain(|idle| {
            let is_fresh = now_ms - idle.since_ms < limits::FUNCTION_IDLE_MS_MAX;
            if !is_fresh {
                idle.process.kill();
            }
            is_fresh
        });
    }

    /// Invokes the function and waits for the outcome. The invocation goes on if the caller goes away (AWS).
    pub(crate) async fn invoke(
        self: &Arc<Self>,
        request_id: &str,
        payload: Bytes,
    ) -> InvocationOutcome {
        let (function, request_id) = (Arc::clone(self), request_id.to_owned());
        let running = self.tasks.spawn(async move { function.run(request_id, payload).await });
        match running.await {
            Ok(outcome) => outcome,
            Err(error) => InvocationOutcome::failed("Runtime.Unknown", &error.to_string()),
        }
    }

    async fn run(&self, request_id: String, payload: Bytes) -> InvocationOutcome {
        let Ok(_permit) = self.concurrency.try_acquire() else {
            return InvocationOutcome::Throttled;
        };
        let process = match self.take_process(&request_id).await {
            Ok(process) => process,
            Err(outcome) => return outcome,
        };
        let timeout_ms = i64::try_from(self.launch.timeout.as_millis()).unwrap_or(i64::MAX);
        let (reply, answered) = oneshot::channel();
        let invocation = FunctionInvocation {
            request_id: request_id.clone(),
            function_arn: self.launch.arn.clone(),
            trace: self.launch.daemon.map(|_| traces::header(system_ms())),
            deadline_ms: system_ms().saturating_add(timeout_ms),
            payload,
            reply,
        };
        let mut phase = process.phase.clone();
        let mut phase_after_loss = process.phase.clone();
        let sent = process.work.send(invocation).await;
        tokio::select! {
            biased;
            answer = answered, if sent.is_ok() => {
                if let Ok(invoked) = answer {
                    lock(&self.idle).push(Idle { process, since_ms: self.clock.now_ms() });
                    return invoked.result.map_or_else(InvocationOutcome::Failed, InvocationOutcome::Answer);
                }
                process.kill();
                self.crashed(&request_id, &process, &mut phase_after_loss).await
            }
            outcome = self.crashed(&request_id, &process, &mut phase) => outcome,
            () = tokio::time::sleep(self.launch.timeout) => {
                process.kill();
                self.timed_out(&request_id, &process)
            }
        }
    }

    /// A process ready for work: an idle one, else a new one. As on AWS a failed start is retried once, under the
    /// function's own time limit.
    async fn take_process(
        &self,
        request_id: &str,
    ) -> Result<Arc<FunctionProcess>, InvocationOutcome> {
        loop {
            let Some(idle) = lock(&self.idle).pop() else {
                break;
            };
            let returning = Duration::from_millis(limits::FUNCTION_RETURN_MS_MAX);
            if waiting(&idle.process, returning).await.is_ok() && !idle.process.was_killed() {
                return Ok(idle.process);
            }
            idle.process.kill();
        }
        let init = Duration::from_millis(limits::FUNCTION_INIT_MS_MAX);
        if let Ok(process) = self.start(request_id, init).await {
            return Ok(process);
        }
        self.start(request_id, self.launch.timeout).await
    }

    async fn start(
        &self,
        request_id: &str,
        within: Duration,
    ) -> Result<Arc<FunctionProcess>, InvocationOutcome> {
        if self.stopping.is_cancelled() {
            return Err(InvocationOutcome::failed("Runtime.ExitError", "The engine is stopping."));
        }
        let processes = Arc::clone(&self.processes);
        let on_exit = move |id| {
            lock(&processes).remove(&id);
        };
        let process = FunctionProcess::start(&self.launch, &self.log, &self.tasks, on_exit)
            .await
            .map_err(|error| {
            let message = format!(
                "RequestId: {request_id} Error: {} could not be started: {error}",
                self.launch.executable.display()
            );
            self.log_platform(Some(request_id), None, &message);
            InvocationOutcome::failed("Runtime.InvalidEntrypoint", &message)
        })?;
        lock(&self.processes).insert(process.id, Arc::clone(&process));
        // It may have exited, and been removed, before it was inserted.
        if matches!(*process.phase.borrow(), ProcessPhase::Exited(_)) {
            lock(&self.processes).remove(&process.id);
        }
        if self.stopping.is_cancelled() {
            process.kill();
        }
        match waiting(&process, within).await {
            Ok(()) => Ok(process),
            Err(NotReady::InitFailed(body)) => {
                process.kill();
                Err(InvocationOutcome::Failed(body))
            }
            Err(NotReady::Exited) => {
                let mut phase = process.phase.clone();
                Err(self.crashed(request_id, &process, &mut phase).await)
            }
            Err(NotReady::TooSlow) => {
                process.kill();
                Err(self.timed_out(request_id, &process))
            }
        }
    }

    /// Waits for the process to exit and reports it.
    async fn crashed(
        &self,
        request_id: &str,
        process: &FunctionProcess,
        phase: &mut watch::Receiver<ProcessPhase>,
    ) -> InvocationOutcome {
        let ended = phase
            .wait_for(|phase| matches!(phase, ProcessPhase::Exited(_)))
            .await
            .map(|phase| phase.clone());
        let reason = match ended {
            Ok(ProcessPhase::Exited(reason)) => reason,
            _ => "Runtime exited".to_owned(),
        };
        let message = format!("RequestId: {request_id} Error: {reason}");
        self.log_platform(Some(request_id), Some(process.id), &message);
        InvocationOutcome::failed("Runtime.ExitError", &message)
    }

    fn timed_out(&self, request_id: &str, process: &FunctionProcess) -> InvocationOutcome {
        let seconds = self.launch.timeout.as_secs_f64();
        let message =
            format!("RequestId: {request_id} Error: Task timed out after {seconds:.2} seconds");
        self.log_platform(Some(request_id), Some(process.id), &message);
        InvocationOutcome::failed("Sandbox.Timedout", &message)
    }

    /// Logs a line of the engine about this function.
    pub(super) fn log_platform(&self, request_id: Option<&str>, process: Option<u32>, text: &str) {
        (self.log)(LogLine {
            function: self.launch.logical_id.clone(),
            request_id: request_id.map(str::to_owned),
            process,
            stream: LogStream::Platform,
            text: text.to_owned(),
        });
    }
}

enum NotReady {
    InitFailed(Bytes),
    Exited,
    TooSlow,
}

async fn waiting(process: &FunctionProcess, within: Duration) -> Result<(), NotReady> {
    let mut phase = process.phase.clone();
    let settled =
        phase.wait_for(|phase| !matches!(phase, ProcessPhase::Starting | ProcessPhase::Busy));
    match tokio::time::timeout(within, settled).await {
        Ok(Ok(phase)) => match &*phase {
            ProcessPhase::InitFailed(body) => Err(NotReady::InitFailed(body.clone())),
            ProcessPhase::Exited(_) => Err(NotReady::Exited),
            ProcessPhase::Starting | ProcessPhase::Waiting | ProcessPhase::Busy => Ok(()),
        },
        Ok(Err(_)) => Err(NotReady::Exited),
        Err(_) => Err(NotReady::TooSlow),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
