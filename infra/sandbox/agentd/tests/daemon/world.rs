//! A daemon for a test, and what can be seen of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bobbin_http::{AllowedHosts, Guard, Http, HttpError, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::description::Description;

/// A larger body is refused before all of it has come, and the refusal can be lost with the connection that is closed
/// with it: then it is asked for again.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
const REFUSED_TRIES_MAX: u32 = 5;

/// Patience of a test, far beyond what anything takes.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
pub const TOKEN: &str = "a-token-of-the-tests";

static DESCRIPTION: LazyLock<Description> = LazyLock::new(Description::read);

pub fn http() -> Http {
    Http::guarded(Guard::new(AllowedHosts::Named(Vec::new()), true))
}

/// An agent that speaks the protocol, as an argument of the daemon.
pub fn stand_in() -> String {
    let program = std::env::current_exe().expect("a test has a program");
    let folder = program.parent().and_then(Path::parent).expect("target/debug");
    format!("standin={}", folder.join("examples/stand-in-acp").display())
}

/// A daemon that runs in a folder of its own.
pub struct Daemon {
    pub folder: TempDir,
    pub port: u16,
    pub child: Child,
    /// Bound and never listening: nobody else is given the port while the daemon is down.
    _port: tokio::net::TcpSocket,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Daemon {
    pub async fn start() -> Self {
        Self::start_with(&["--acp", &stand_in()], &[]).await
    }

    pub async fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("project")).expect("a folder");
        let held = tokio::net::TcpSocket::new_v4().expect("a socket");
        held.set_reuseaddr(true).expect("an option");
        held.bind((std::net::Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let port = held.local_addr().expect("a port").port();
        let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let child = Command::new("true").spawn().expect("a process");
        let mut daemon = Self { folder, port, child, _port: held, arguments, environment };
        daemon.start_again().await;
        daemon
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bobbin-agentd"));
        command
            .args(["--port", &self.port.to_string(), "--token", TOKEN, "--state"])
            .arg(self.state())
            .arg("--log")
            .arg(self.folder.path().join("daemon.log"))
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub async fn start_again(&mut self) {
        let _ = self.child.wait();
        // A killed serving half keeps it until the kernel has buried it.
        wait_for("the port", async || {
            std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, self.port)).is_ok()
        })
        .await;
        self.child = self.command().spawn().expect("the daemon starts");
        self.wait_until_it_answers().await;
    }

    pub async fn wait_until_it_answers(&self) {
        wait_for("the daemon to answer", async || {
            let request = http().request(Method::GET, &self.url("/v1/health")).expect("loopback");
            let answer = http().send(request.bearer_auth(TOKEN)).await;
            answer.is_ok_and(|answer| answer.status == 200)
        })
        .await;
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The half that serves.
    pub fn serving(&self) -> u32 {
        children(self.child.id())
            .into_iter()
            .find(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.split(|byte| *byte == 0).any(|word| word == b"--serve")
            })
            .expect("the serving half runs")
    }

    /// A call, whose answer is as the description has it.
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let is_large = body.as_ref().is_some_and(|body| body.to_string().len() > BODY_BYTES_MAX);
        let sent = async || {
            let mut request = http()
                .request(method.clone(), &self.url(path))
                .expect("loopback")
                .bearer_auth(TOKEN);
            request = request.timeout(WAIT_MAX);
            if let Some(body) = &body {
                request = request.json(body);
            }
            http().send(request).await
        };
        let mut sending = sent().await;
        for _ in 1..REFUSED_TRIES_MAX {
            if !is_large || !matches!(sending, Err(HttpError::Transport { .. })) {
                break;
            }
            sending = sent().await;
        }
        let answer = sending.expect("an answer");
        let kind = answer.media_type();
        let body = if answer.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
                panic!("{method} {path}: no JSON: {}", String::from_utf8_lossy(&answer.body))
            })
        };
        DESCRIPTION.check(&method, path, answer.status, &kind, &body);
        Answer { status: answer.status, headers: answer.headers, body }
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.call(Method::GET, path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, Some(body)).await
    }

    pub async fn create(&self, session: &str) -> Value {
        self.create_with(session, json!({"agent": "standin"})).await
    }

    pub async fn create_with(&self, session: &str, body: Value) -> Value {
        let answer = self.post(&format!("/v1/sessions/{session}"), body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Sends a turn; answers the result of it.
    pub async fn send(&self, session: &str, turn: &str, text: &str) -> String {
        let answer = self
            .post(
                &format!("/v1/sessions/{session}/messages"),
                json!({"message": text, "turn": turn}),
            )
            .await;
        assert_eq!(answer.status, 204, "{}", answer.body);
        assert_eq!(answer.headers["x-bobbin-turn"], turn);
        answer.headers["x-bobbin-outcome"].to_str().expect("text").to_owned()
    }

    pub async fn turn(&self, session: &str, turn: &str) -> Value {
        self.get(&format!("/v1/sessions/{session}/turns/{turn}")).await
    }

    pub async fn until(&self, session: &str, turn: &str, state: &str) -> Value {
        self.until_any(session, turn, &[state]).await
    }

    /// Until a turn is in one of these states.
    pub async fn until_any(&self, session: &str, turn: &str, states: &[&str]) -> Value {
        let begun = Instant::now();
        let mut offset = 0;
        loop {
            let seen = self.turn(session, turn).await;
            if states.iter().any(|state| seen["state"] == *state) {
                return seen;
            }
            assert!(
                begun.elapsed() < WAIT_MAX,
                "{turn} is never {states:?}: {seen}; the daemon says {}",
                self.log()
            );
            // The next event, or a moment.
            offset = seen["lastEvent"].as_u64().unwrap_or(offset);
            self.get(&format!("/v1/sessions/{session}/events?offset={offset}&wait=100")).await;
        }
    }

    /// All events of a session.
    pub async fn events(&self, session: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let offset = all.last().map_or(0, |event| event["id"].as_u64().expect("a number"));
            let page = self.get(&format!("/v1/sessions/{session}/events?offset={offset}")).await;
            all.extend(page["events"].as_array().expect("a list").iter().cloned());
            if page["hasMore"] == false {
                return all;
            }
        }
    }

    /// What the agent said in a turn, as one text.
    pub async fn said(&self, session: &str, turn: &str) -> String {
        let events = self.events(session).await;
        let texts = events.iter().filter(|event| {
            event["turn"] == turn && event["data"]["message"]["role"] == "assistant"
        });
        let parts = texts.flat_map(|event| {
            event["data"]["message"]["parts"].as_array().cloned().unwrap_or_default()
        });
        parts.filter_map(|part| Some(part["text"].as_str()?.to_owned())).collect()
    }

    /// Prompts that the agent has been given.
    pub fn prompts(&self) -> Vec<String> {
        let notes = std::fs::read_to_string(self.project().join("prompts")).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("daemon.log")).unwrap_or_default()
    }

    pub fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            signal("TERM", self.child.id());
        }
        let _ = self.child.wait();
    }
}

pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "{name} to {pid}");
}

pub fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
                == Some(parent)
        })
        .collect()
}

/// Whether a process runs: not one that has ended and is not buried.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub fn pid_in(file: &Path) -> u32 {
    std::fs::read_to_string(file).expect("a file").trim().parse().expect("a process id")
}

/// Looks until it is so.
pub async fn wait_for(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let bound = Instant::now() + WAIT_MAX;
    while !is_so().await {
        assert!(Instant::now() < bound, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
