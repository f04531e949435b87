//! One process of a function: start, environment, output, end.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use bobbin_local_breakpoint::own_only;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::runtime_api::{FunctionInvocation, ProcessInvocations, ProcessPhase};
use crate::limits;
use crate::log::{LogLine, LogSink, LogStream};
use crate::serve::serve;
use crate::signature::AccessKey;

/// Marks every process of a state folder, so that the next start finds leftovers.
const MARKER: &str = "BOBBIN_STATE_DIR";

/// How to start a function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionLaunch {
    pub(crate) logical_id: String,
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(crate) region: String,
    pub(crate) timeout: Duration,
    pub(crate) memory_mb: u64,
    /// Address of the trace daemon, if it is traced.
    pub(crate) daemon: Option<SocketAddr>,
    pub(crate) concurrency_max: usize,
    pub(crate) environment: BTreeMap<String, String>,
    /// Key that signs its calls, if signatures are checked.
    pub(crate) key: Option<AccessKey>,
    /// The executable, named `bootstrap`, in its own folder.
    pub(crate) executable: PathBuf,
    pub(crate) endpoint: String,
    pub(crate) state_dir: PathBuf,
}

impl FunctionLaunch {
    /// The complete environment of a process: the template's variables, then Lambda's own.
    fn environment(&self, runtime_api: &str, instance: &str) -> BTreeMap<String, String> {
        let task_root = self.executable.parent().unwrap_or(Path::new("/"));
        let mut environment = self.environment.clone();
        let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
        set("AWS_LAMBDA_RUNTIME_API", runtime_api.to_owned());
        set("AWS_LAMBDA_FUNCTION_NAME", self.name.clone());
        set("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned());
        set("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", self.memory_mb.to_string());
        set("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned());
        set("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", self.name));
        set("AWS_LAMBDA_LOG_STREAM_NAME", format!("[$LATEST]{instance}"));
        if let Some(daemon) = self.daemon {
            set("AWS_XRAY_DAEMON_ADDRESS", daemon.to_string());
        }
        set("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023".to_owned());
        set("AWS_REGION", self.region.clone());
        set("AWS_DEFAULT_REGION", self.region.clone());
        // If the endpoint takes any signature, these only let a client build one.
        let any = || "local".to_owned();
        let (id, secret, token) = match self.key.clone() {
            Some(key) => (key.id, key.secret, key.session_token),
            None => (any(), any(), Some(any())),
        };
        set("AWS_ACCESS_KEY_ID", id);
        set("AWS_SECRET_ACCESS_KEY", secret);
        if let Some(token) = token {
            set("AWS_SESSION_TOKEN", token);
        }
        set("AWS_ENDPOINT_URL", self.endpoint.clone());
        set("LAMBDA_TASK_ROOT", task_root.display().to_string());
        set("_HANDLER", "bootstrap".to_owned());
        set("TZ", ":UTC".to_owned());
        set(MARKER, self.state_dir.display().to_string());
        environment
    }
}

/// A running process; [`FunctionProcess::kill`] ends it, dropping does not.
pub(crate) struct FunctionProcess {
    pub(crate) id: u32,
    pub(crate) phase: watch::Receiver<ProcessPhase>,
    pub(crate) work: mpsc::Sender<FunctionInvocation>,
    invocations: Arc<ProcessInvocations>,
    killed: AtomicBool,
}

impl FunctionProcess {
    /// Starts the executable with its own Runtime API; `on_exit` runs when it is gone.
    pub(crate) async fn start(
        launch: &FunctionLaunch,
        log: &LogSink,
        tasks: &TaskTracker,
        on_exit: impl FnOnce(u32) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let mut child = spawn(launch, &address)?;
        let id =
            child.id().ok_or_else(|| io::Error::other("the process ended while it was started"))?;

        let (work_sender, work) = mpsc::channel(1);
        let (phase_sender, phase) = watch::channel(ProcessPhase::Starting);
        let invocations = Arc::new(ProcessInvocations::new(work, phase_sender.clone()));
        let process = Arc::new(Self {
            id,
            phase,
            work: work_sender,
            invocations: Arc::clone(&invocations),
            killed: AtomicBool::new(false),
        });
        let gone = CancellationToken::new();
        tasks.spawn(serve(listener, own_only(invocations.router(), None), gone.clone()));
        let (function, log) = (launch.logical_id.clone(), Arc::clone(log));
        if let Some(out) = child.stdout.take() {
            let process = Arc::clone(&process);
            let (function, log) = (function.clone(), Arc::clone(&log));
            tasks.spawn(process.forward_output(function, log, LogStream::Out, out));
        }
        if let Some(error) = child.stderr.take() {
            let process = Arc::clone(&process);
            tasks.spawn(process.forward_output(function, log, LogStream::Error, error));
        }
        tasks.spawn(async move {
            let reason = match child.wait().await {
                Ok(status) => exit_reason(status),
                Err(error) => format!("Runtime exited and could not be waited for: {error}"),
            };
            // Its own children are killed too.
            kill_group(id);
            // Order matters: code that lists the process checks the phase afterwards.
            phase_sender.send_replace(ProcessPhase::Exited(reason));
            on_exit(id);
            gone.cancel();
        });
        Ok(process)
    }

    /// Event of its current invocation.
    pub(crate) fn event(&self) -> Option<Bytes> {
        self.invocations.event()
    }

    /// Whether it was killed: its phase may still be waiting until its exit is noticed.
    pub(crate) fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Kills the process and its group.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        if !matches!(*self.phase.borrow(), ProcessPhase::Exited(_)) {
            kill_group(self.id);
        }
    }

    /// Logs the process's output line by line until it closes.
    async fn forward_output(
        self: Arc<Self>,
        function: String,
        log: LogSink,
        stream: LogStream,
        output: impl AsyncRead + Unpin,
    ) {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = (&mut lines).take(limits::LOG_LINE_BYTES_MAX);
            match bounded.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            log(LogLine {
                function: function.clone(),
                request_id: self.invocations.request_id(),
                process: Some(self.id),
                stream,
                text: text.trim_end_matches(['\n', '\r']).to_owned(),
            });
        }
    }
}

fn spawn(launch: &FunctionLaunch, runtime_api: &str) -> io::Result<Child> {
    let instance = uuid::Uuid::new_v4().simple().to_string();
    let task_root = launch.executable.parent().unwrap_or(Path::new("/"));
    Command::new(&launch.executable)
        .env_clear()
        .envs(launch.environment(runtime_api, &instance))
        .current_dir(task_root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own process group: an interrupt at the terminal reaches only the engine, which ends its processes itself.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

fn exit_reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "Runtime exited without providing a reason".to_owned(),
        (Some(code), _) => format!("Runtime exited with error: exit status {code}"),
        (None, Some(9)) => "Runtime exited with error: signal: killed".to_owned(),
        (None, signal) => {
            format!("Runtime exited with error: signal: {}", signal.unwrap_or_default())
        }
    }
}

fn kill_group(id: u32) {
    let group = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may be gone already.
        kill_process_group(group, Signal::KILL).ok();
    }
}

/// Kills processes left over from an earlier run with this state folder, and waits until they are gone.
///
/// A process counts only if the marker in its environment names exactly this folder. Returns the process ids, or `None`
/// on a system without `/proc`: there a leftover exits by itself when it next asks for work.
pub(crate) fn kill_leftovers(state_dir: &Path) -> Option<Vec<u32>> {
    let marker = format!("{MARKER}={}", state_dir.display());
    let mut killed = Vec::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(id) = id
            && is_marked(id, &marker)
        {
            kill_group(id);
            if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
                rustix::process::kill_process(id, Signal::KILL).ok();
            }
            killed.push(id);
        }
    }
    let deadline = Instant::now() + Duration::from_millis(limits::LEFTOVER_GONE_MS_MAX);
    while killed.iter().any(|id| is_marked(*id, &marker)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(killed)
}

/// A zombie has an empty environment, so it does not count.
fn is_marked(id: u32, marker: &str) -> bool {
    std::fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    })
}
