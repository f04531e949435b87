use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::{client, fresh_folder, wait_for};

/// The provider as a program of its own, which can be killed.
struct Program {
    child: Child,
    api: String,
    /// Open for as long as the program may print.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(folder: &Path, confined: bool) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bobbin-daytona"));
        command.args(["--key", "k", "--transition-ms", "20", "--state-dir"]).arg(folder);
        if !confined {
            command.arg("--unconfined");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let api = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("DAYTONA_API_URL=")?.to_owned()))
            .unwrap();
        Program { child, api, _output: lines }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let sent = client()
            .request(method, format!("{}{path}", self.api))
            .bearer_auth("k")
            .json(&body)
            .send()
            .await;
        sent.unwrap().json().await.unwrap()
    }

    fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal)
            .unwrap();
        self.child.wait().unwrap();
    }
}

/// A test that fails leaves no program behind.
impl Drop for Program {
    fn drop(&mut self) {
        // Ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes that carry the variable of this state folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let variable = format!("BOBBIN_STATE_DIR={}\0", folder.canonicalize().unwrap().display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let environ = |path: &Path| std::fs::read(path.join("environ")).unwrap_or_default();
    entries
        .map(|entry| entry.path())
        .filter(|path| String::from_utf8_lossy(&environ(path)).contains(&variable))
        .map(|path| {
            String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).unwrap_or_default())
                .replace('\0', " ")
        })
        .collect()
}

async fn leaves_nothing(signal: Signal, confined: bool) {
    let folder = fresh_folder("crash");
    let mut program = Program::start(&folder, confined);
    let created = program.call(Method::POST, "/sandbox", json!({ "name": "crash" })).await;
    let toolbox = format!(
        "{}/{}",
        created["toolboxProxyUrl"].as_str().unwrap(),
        created["id"].as_str().unwrap()
    );
    let server = "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &)";
    let body = json!({ "command": server, "timeout": 10 });
    let ran = client()
        .post(format!("{toolbox}/process/execute"))
        .bearer_auth("k")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(ran.status(), 200);
    wait_for("the server", async || {
        processes_of(&folder).iter().any(|command| command.starts_with("sh -c"))
    })
    .await;

    program.signal(signal);
    wait_for("no process left", async || processes_of(&folder).is_empty()).await;

    let mut again = Program::start(&folder, confined);
    let seen = again.call(Method::GET, "/sandbox/crash", json!({})).await;
    assert_eq!(seen["state"], "stopped");
    again.signal(Signal::TERM);
    assert_eq!(processes_of(&folder), Vec::<String>::new());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn killed_provider_leaves_no_confined_process() {
    leaves_nothing(Signal::KILL, true).await;
}

#[tokio::test]
async fn killed_provider_leaves_no_unconfined_process() {
    leaves_nothing(Signal::KILL, false).await;
}

#[tokio::test]
async fn a_terminated_provider_leaves_no_process() {
    leaves_nothing(Signal::TERM, true).await;
}

/// The worst case: the first process is killed together with the provider, so nobody is left to clean up.
#[tokio::test]
async fn next_start_kills_leftover_processes() {
    let folder = fresh_folder("leftover");
    std::fs::create_dir_all(&folder).unwrap();
    let mut orphan = Command::new("sleep")
        .arg("600")
        .env("BOBBIN_STATE_DIR", folder.canonicalize().unwrap())
        .env("BOBBIN_SANDBOX", "gone")
        .spawn()
        .unwrap();
    let mut program = Program::start(&folder, true);
    assert!(!orphan.wait().unwrap().success(), "it was killed");
    program.signal(Signal::TERM);
    std::fs::remove_dir_all(folder).unwrap();
}
