//! An embedded daemon: found, started, and stopped with the program that started it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::{AgentClient, ClientError, ClientResult};

/// Variable with the path of the daemon's program.
const PROGRAM_VARIABLE: &str = "SANDBOX_AGENT_BIN";
const TOKEN_VARIABLE: &str = "BOBBIN_AGENTD_TOKEN";
const PROGRAM: &str = "bobbin-agentd";
/// Bound of its start, until it answers.
const START_MAX: Duration = Duration::from_secs(15);
/// Poll interval meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// From SIGTERM until SIGKILL.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Most bytes that are kept of its output at the start.
const SAID_BYTES_MAX: usize = 4 * 1024;

/// Options of an embedded daemon.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedOptions {
    /// Its program; if `None`: `SANDBOX_AGENT_BIN`, then beside the running program, then `PATH`.
    pub program: Option<PathBuf>,
    /// Its state folder.
    pub state: PathBuf,
    /// Variables in addition to this program's own: model addresses and keys by each agent's own names.
    pub environment: Vec<(String, String)>,
    /// Agents beyond the four built-in ones, as `NAME=COMMAND LINE`.
    pub acp: Vec<String>,
    /// Its working directory, which is the default of its sessions.
    pub directory: Option<PathBuf>,
}

/// An embedded daemon. It stops when [`Embedded::stop`] is called, when it is dropped, and when this program is killed.
#[derive(Debug)]
pub struct Embedded {
    client: AgentClient,
    child: Child,
}

impl Embedded {
    /// *Embedded* mode: starts a daemon on a free port of loopback with a random token, and waits until it answers.
    ///
    /// # Errors
    /// [`ClientError::NotStarted`]: no program, it exited, or it does not answer within 15 s.
    pub async fn start(options: &EmbeddedOptions) -> ClientResult<Self> {
        let program = find(options.program.as_deref())?;
        let not_started = |error: io::Error| {
            ClientError::NotStarted(format!("{} could not be started: {error}", program.display()))
        };
        let port = free_port().map_err(not_started)?;
        let token = hex::encode(rand::random::<[u8; 24]>());
        let mut command = Command::new(&program);
        command
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--while-stdin"])
            .arg("--state")
            .arg(&options.state)
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .env(TOKEN_VARIABLE, &token)
            // The daemon stops when the other end of this pipe is gone, however this program ended.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        for agent in &options.acp {
            command.args(["--acp", agent]);
        }
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(not_started)?;
        let stderr = child.stderr.take();
        let client = AgentClient::server(&format!("http://127.0.0.1:{port}"), &token)?;
        let said = tokio::spawn(first_words(stderr));
        let started = Self { client, child };
        started.ready(said).await
    }

    async fn ready(mut self, said: tokio::task::JoinHandle<String>) -> ClientResult<Self> {
        let deadline = Instant::now() + START_MAX;
        loop {
            if let Ok(Some(_)) = self.child.try_wait() {
                let said = said.await.unwrap_or_default();
                return Err(ClientError::NotStarted(format!(
                    "{PROGRAM} ended while it started: {said}"
                )));
            }
            if self.client.health().await.is_ok() {
                return Ok(self);
            }
            if Instant::now() > deadline {
                self.stop().await;
                return Err(ClientError::NotStarted(format!(
                    "{PROGRAM} did not answer within {} s",
                    START_MAX.as_secs()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The client of this daemon.
    #[must_use]
    pub const fn client(&self) -> &AgentClient {
        &self.client
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Stops it with all its agents: SIGTERM, then SIGKILL after 5 s.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(STOP_MAX, self.child.wait()).await.is_err() {
            // It may have ended since; and without its standard input its halves end by themselves.
            let _ = self.child.kill().await;
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended since.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
    }
}

/// A daemon, remote or embedded: *auto* mode.
#[derive(Debug)]
pub enum Auto {
    /// An existing one.
    Server(AgentClient),
    /// An embedded one.
    Embedded(Embedded),
}

impl Auto {
    /// The daemon at this address (with its token) if given, else an embedded one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn open(
        server: Option<(&str, &str)>,
        options: &EmbeddedOptions,
    ) -> ClientResult<Self> {
        match server {
            Some((base, token)) => {
                let client = AgentClient::server(base, token)?;
                client.health().await?;
                Ok(Self::Server(client))
            }
            None => Embedded::start(options).await.map(Self::Embedded),
        }
    }

    /// Its client.
    #[must_use]
    pub const fn client(&self) -> &AgentClient {
        match self {
            Self::Server(client) => client,
            Self::Embedded(daemon) => daemon.client(),
        }
    }

    /// Stops the daemon, if it is embedded.
    pub async fn close(self) {
        match self {
            Self::Server(_) => {}
            Self::Embedded(daemon) => daemon.stop().await,
        }
    }
}

/// Path of the daemon's program.
fn find(named: Option<&Path>) -> ClientResult<PathBuf> {
    let variable = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or(variable) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(ClientError::NotStarted(format!(
                "there is no file {}, which {PROGRAM_VARIABLE} or the caller names as {PROGRAM}",
                path.display()
            )))
        };
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = beside.into_iter().chain(std::env::split_paths(&path));
    places
        .find_map(|folder| Some(folder.join(PROGRAM)).filter(|file| file.is_file()))
        .ok_or_else(|| {
            ClientError::NotStarted(format!(
                "there is no {PROGRAM} beside this program or on PATH; build it (cargo build -p {PROGRAM}) or name it in {PROGRAM_VARIABLE}"
            ))
        })
}

/// A free port, chosen by the system.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Reads its standard error to the end, and keeps the beginning.
async fn first_words(stderr: Option<tokio::process::ChildStderr>) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    if let Some(mut stderr) = stderr {
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            let room = SAID_BYTES_MAX.saturating_sub(said.len());
            said.extend_from_slice(&buffer[..read.min(room)]);
        }
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}
