//! The one `opencode serve` of a daemon: started on demand, restarted after it has exited.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin_agent::ANSWER_BYTES_MAX;
use bobbin_agent::opencode::{OpenCode, OpenCodeError, WITHOUT_PROJECT_CONFIG};
use bobbin_http::{AllowedHosts, Guard, Http};
use futures::StreamExt;
use tokio::sync::Mutex;
use tokio_util::codec::FramedRead;

use crate::agents::InstalledAgent;
use crate::driver::lines::{Lines, OutputLine};
use crate::driver::{Down, loads_project_config};
use crate::host::Host;
use crate::limits::{CALL_MS_MAX, LINE_BYTES_MAX, LOOK_MS, START_MS_MAX};
use crate::process::{AgentProcess, Program};

/// OpenCode's database path, in sandbox-agent's variable name; OpenCode's default if unset.
const DATABASE_VARIABLE: &str = "OPENCODE_COMPAT_DB_PATH";
/// Longest event stream.
const STREAM_MS_MAX: u64 = 30 * 24 * 3_600_000;
const LISTENING: &str = "opencode server listening on ";

/// Address and password of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEndpoint {
    pub(crate) base: String,
    password: String,
}

impl ServerEndpoint {
    /// A client of the server.
    ///
    /// # Errors
    /// The address is unusable.
    pub(super) fn client(&self) -> Result<OpenCode, OpenCodeError> {
        let http = Http::guarded(Guard::new(AllowedHosts::Named(Vec::new()), true));
        let endpoint =
            bobbin_core::base::endpoint::Endpoint { url: self.base.clone(), headers: Vec::new() };
        let client =
            OpenCode::new(http.with_body_bytes_max(ANSWER_BYTES_MAX), endpoint, &self.password);
        Ok(client.with_stream_of(STREAM_MS_MAX))
    }

    pub(crate) fn authorization(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("opencode:{}", self.password)))
    }
}

/// The server, if it runs.
#[derive(Debug, Default)]
pub(crate) struct Server {
    running: Mutex<Option<RunningServer>>,
}

#[derive(Debug)]
struct RunningServer {
    process: AgentProcess,
    endpoint: ServerEndpoint,
}

impl Server {
    /// The server's endpoint; starts it if needed.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) async fn endpoint(
        &self,
        agent: &InstalledAgent,
        host: &Host,
    ) -> Result<ServerEndpoint, Down> {
        let mut running = self.running.lock().await;
        if let Some(server) = running.as_mut()
            && !server.process.has_ended()
        {
            return Ok(server.endpoint.clone());
        }
        if let Some(ended) = running.take() {
            // Its leftovers are ended too.
            ended.process.end(host).await;
        }
        let started = start(agent, host).await?;
        let endpoint = started.endpoint.clone();
        *running = Some(started);
        Ok(endpoint)
    }

    /// Whether the server with this endpoint has exited.
    pub(super) async fn has_ended(&self, endpoint: &ServerEndpoint) -> bool {
        let mut running = self.running.lock().await;
        running
            .as_mut()
            .is_none_or(|server| server.endpoint != *endpoint || server.process.has_ended())
    }
}

async fn start(agent: &InstalledAgent, host: &Host) -> Result<RunningServer, Down> {
    let password = uuid::Uuid::new_v4().to_string();
    let quiet =
        ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_SHARE"];
    let mut environment: BTreeMap<String, String> =
        quiet.map(|name| (name.to_owned(), "1".to_owned())).into();
    if !loads_project_config() {
        let without =
            WITHOUT_PROJECT_CONFIG.map(|(name, value)| (name.to_owned(), value.to_owned()));
        environment.extend(without);
    }
    environment.insert("OPENCODE_SERVER_PASSWORD".to_owned(), password.clone());
    environment.insert("OPENCODE_SERVER_USERNAME".to_owned(), "opencode".to_owned());
    if let Ok(path) = std::env::var(DATABASE_VARIABLE) {
        environment.insert("OPENCODE_DB".to_owned(), path);
    }
    let mut arguments = agent.arguments.clone();
    arguments.extend(["serve", "--hostname", "127.0.0.1", "--port", "0"].map(str::to_owned));
    let program = Program {
        path: agent.path.clone(),
        arguments,
        environment,
        directory: std::env::current_dir().unwrap_or_else(|_| host.state_dir.clone()),
    };
    let mut process = AgentProcess::spawn(&program, host).map_err(|error| {
        Down::exited(format!("{} could not be started: {error}", agent.path.display()))
    })?;
    let bound = Duration::from_millis(START_MS_MAX);
    let ready = tokio::time::timeout(bound, ready(&mut process, password)).await;
    match ready {
        Ok(Some(endpoint)) => Ok(RunningServer { process, endpoint }),
        Ok(None) => {
            let said = process.end(host).await.unwrap_or_default();
            Err(Down::exited(format!("OpenCode ended while it started: {said}")))
        }
        Err(_) => {
            process.end(host).await;
            Err(Down::start_timeout("OpenCode"))
        }
    }
}

/// Waits for the line with its address, and for its first answer: a request in its first moments is never answered
/// (measured), so each attempt is a new connection with a short time-out.
async fn ready(process: &mut AgentProcess, password: String) -> Option<ServerEndpoint> {
    let mut lines = FramedRead::new(process.stdout()?, Lines::of(LINE_BYTES_MAX));
    let base = loop {
        if let OutputLine::Text(line) = lines.next().await?.ok()?
            && let Some((_, base)) = line.split_once(LISTENING)
        {
            break base.trim().to_owned();
        }
    };
    // Its further output is read and discarded, or it would block.
    tokio::spawn(async move { while let Some(Ok(_)) = lines.next().await {} });
    let endpoint = ServerEndpoint { base, password };
    while !process.has_ended() {
        if answers(&endpoint).await {
            return Some(endpoint);
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
    None
}

async fn answers(endpoint: &ServerEndpoint) -> bool {
    let Ok(client) = endpoint.client() else {
        return false;
    };
    let bound = Duration::from_millis(CALL_MS_MAX / 5);
    tokio::time::timeout(bound, client.probe()).await.is_ok_and(|health| health.is_ok())
}
