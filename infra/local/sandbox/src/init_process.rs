//! The provider's end of a sandbox's first process.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::codec::{FramedRead, FramedWrite};

use crate::confine::{self, Bwrap, SeenFiles};
use crate::init::ARGUMENT;
use crate::init::protocol::{InitCall, InitRefusal, InitReply, Op, codec};
use crate::limits::{BOOT_MS_MAX, CALLS_MAX, CONNECT_MS_MAX, KILL_WAIT_MS_MAX, POLL_MS};
use crate::network::SandboxNetwork;
use crate::processes::ProcessSet;

/// Settings of a first process.
pub(crate) struct InitLaunch {
    /// `bwrap`, if sandboxes are confined.
    pub(crate) bwrap: Option<Bwrap>,
    /// The program to run inside in `--sandbox-init` mode.
    pub(crate) init: PathBuf,
    /// Readable folders and files besides the system.
    pub(crate) readable: Vec<PathBuf>,
    /// Files placed at other paths.
    pub(crate) placed: Vec<(PathBuf, &'static str)>,
    pub(crate) home: PathBuf,
    /// File for its own error output.
    pub(crate) log: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    /// Its own network, if it has one.
    pub(crate) network: Option<SandboxNetwork>,
    pub(crate) processes: ProcessSet,
}

impl InitLaunch {
    fn command(&self) -> std::io::Result<Command> {
        let mut command = match &self.bwrap {
            Some(bwrap) => {
                let mut command = Command::new(&bwrap.program);
                let seen = SeenFiles {
                    readable: &self.readable,
                    placed: &self.placed,
                    home: &self.home,
                    network: self.network.as_ref().map(|network| &*network.folder),
                };
                command.args(confine::arguments(bwrap, &seen)).arg(&self.init);
                command
            }
            None => Command::new(&self.init),
        };
        command.arg(ARGUMENT).current_dir(&self.home).env_clear().envs(&self.env);
        // Its own process group: the terminal's Ctrl-C is for the provider, which then stops its sandboxes in order.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&self.log)?);
        Ok(command)
    }
}

/// The thread that starts first processes.
///
/// A process that asks to die with its parent dies with the *thread* that started it, and the runtime ends its threads
/// at any time. This one lives as long as the provider.
pub(crate) struct Spawner {
    orders: std::sync::mpsc::Sender<(Command, oneshot::Sender<std::io::Result<Child>>)>,
}

impl Spawner {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (orders, queue) =
            std::sync::mpsc::channel::<(Command, oneshot::Sender<std::io::Result<Child>>)>();
        std::thread::Builder::new().name("sandbox-spawner".to_owned()).spawn(move || {
            while let Ok((mut command, answer)) = queue.recv() {
                if let Err(Ok(mut orphan)) = answer.send(command.spawn()) {
                    // Its requester is gone.
                    let _ = orphan.kill();
                    let _ = orphan.wait();
                }
            }
        })?;
        Ok(Spawner { orders })
    }

    async fn spawn(&self, command: Command) -> std::io::Result<Child> {
        let (sender, answer) = oneshot::channel();
        self.orders
            .send((command, sender))
            .map_err(|_| std::io::Error::other("the spawner thread has ended"))?;
        answer.await.map_err(|_| std::io::Error::other("the spawner thread has ended"))?
    }
}

type Pending = Arc<Mutex<Option<BTreeMap<u64, oneshot::Sender<Result<Value, InitRefusal>>>>>>;

/// A running sandbox. Dropping the last handle ends its processes.
pub struct InitProcess {
    calls: mpsc::Sender<InitCall>,
    pending: Pending,
    next: AtomicU64,
    ended: watch::Receiver<bool>,
    kill: mpsc::Sender<()>,
    processes: ProcessSet,
    network: Option<SandboxNetwork>,
}

/// A connection to a port of a sandbox.
pub trait PortConnection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> PortConnection for T {}

impl InitProcess {
    /// Starts the first process and waits for its greeting.
    ///
    /// # Errors
    /// The error, with the process's own error output.
    pub(crate) async fn start(
        spawner: &Spawner,
        launch: InitLaunch,
    ) -> Result<InitProcess, String> {
        let log = launch.log.clone();
        let explain = |error: &dyn std::fmt::Display| {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            format!("the sandbox's first process did not start: {error} {}", said.trim())
                .trim()
                .to_owned()
        };
        let command = launch.command().map_err(|error| explain(&error))?;
        let mut child = spawner.spawn(command).await.map_err(|error| explain(&error))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(explain(&"no pipes"));
        };
        let stdin = ChildStdin::from_std(stdin).map_err(|error| explain(&error))?;
        let stdout = ChildStdout::from_std(stdout).map_err(|error| explain(&error))?;

        let (calls, queue) = mpsc::channel(CALLS_MAX);
        let (greeting, greeted) = oneshot::channel();
        let pending: Pending = Arc::new(Mutex::new(Some(BTreeMap::from([(0, greeting)]))));
        let (ended_sender, ended) = watch::channel(false);
        let (kill, killed) = mpsc::channel(1);
        tokio::spawn(write_calls(stdin, queue));
        tokio::spawn(read_replies(stdout, child, killed, pending.clone(), ended_sender));
        let process = InitProcess {
            calls,
            pending,
            next: AtomicU64::new(1),
            ended,
            kill,
            processes: launch.processes.clone(),
            network: launch.network,
        };
        match tokio::time::timeout(Duration::from_millis(BOOT_MS_MAX), greeted).await {
            Ok(Ok(Ok(_))) => Ok(process),
            _ => {
                process.end(0).await;
                Err(explain(&"no greeting came"))
            }
        }
    }

    /// Performs one call inside.
    ///
    /// # Errors
    /// `Ok(Err)` is the sandbox's refusal; `None` if the sandbox has ended.
    pub async fn call(&self, op: Op) -> Option<Result<Value, InitRefusal>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.insert(id, sender);
        self.calls.send(InitCall { id, op }).await.ok()?;
        answer.await.ok()
    }

    /// Connects to a port inside.
    ///
    /// # Errors
    /// Nobody listens there, or not in time.
    pub async fn dial(&self, port: u16) -> std::io::Result<Box<dyn PortConnection>> {
        let connecting = async {
            Ok::<Box<dyn PortConnection>, std::io::Error>(match &self.network {
                Some(network) => {
                    let arrival = network.expect();
                    let ticket = arrival.ticket;
                    match self.call(Op::Connect { port, ticket }).await {
                        Some(Ok(_)) => Box::new(arrival.come().await?),
                        _ => return Err(std::io::ErrorKind::ConnectionRefused.into()),
                    }
                }
                None => {
                    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                    // Small events must not be delayed.
                    let _ = stream.set_nodelay(true);
                    Box::new(stream)
                }
            })
        };
        tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), connecting)
            .await
            .map_err(std::io::Error::other)?
    }

    /// Becomes true when the first process has ended, and all others with it.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }

    /// Ends every process of the sandbox: SIGTERM, then SIGKILL after `grace_ms`. Returns how many are left.
    pub async fn end(&self, grace_ms: u64) -> usize {
        let asked = self.calls.send(InitCall { id: u64::MAX, op: Op::Shutdown { grace_ms } }).await;
        let mut ended = self.ended.clone();
        if asked.is_ok() {
            let bound = Duration::from_millis(grace_ms + KILL_WAIT_MS_MAX);
            // Beyond the bound it is killed below.
            let _ = tokio::time::timeout(bound, ended.wait_for(|ended| *ended)).await;
        }
        // A full channel means that a kill is already requested.
        let _ = self.kill.try_send(());
        let _ = tokio::time::timeout(
            Duration::from_millis(KILL_WAIT_MS_MAX),
            ended.wait_for(|ended| *ended),
        )
        .await;
        self.processes.end(0).await
    }
}

async fn write_calls(stdin: ChildStdin, mut queue: mpsc::Receiver<InitCall>) {
    let mut input = FramedWrite::new(stdin, codec());
    while let Some(call) = queue.recv().await {
        let frame = serde_json::to_vec(&call).unwrap_or_default();
        if input.send(Bytes::from(frame)).await.is_err() {
            return;
        }
    }
}

/// Passes replies to their callers until the process exits or is to be killed; then wakes everybody and reaps it.
async fn read_replies(
    stdout: ChildStdout,
    mut child: Child,
    mut killed: mpsc::Receiver<()>,
    pending: Pending,
    ended: watch::Sender<bool>,
) {
    let mut output = FramedRead::new(stdout, codec());
    loop {
        let frame = tokio::select! {
            frame = output.next() => frame,
            // Also when the last handle is dropped.
            _ = killed.recv() => break,
        };
        let Some(Ok(frame)) = frame else { break };
        let Ok(reply) = serde_json::from_slice::<InitReply>(&frame) else {
            break;
        };
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = pending.as_mut().and_then(|pending| pending.remove(&reply.id)) {
            // The caller may be gone.
            let _ = waiting.send(reply.outcome);
        }
    }
    // Dropping the senders wakes all callers.
    pending.lock().unwrap_or_else(PoisonError::into_inner).take();
    // An error means that it has already exited.
    let _ = child.kill();
    for _ in 0..KILL_WAIT_MS_MAX / POLL_MS {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
    }
    ended.send_replace(true);
}
