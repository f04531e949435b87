//! The laptop stack without its AWS: the provider with real sandboxes and the real agent in them, and its scripted model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::programs;
use crate::services::Elsewhere;
use crate::services::relay::Relay;
use crate::wire::Request;

/// From its start to the ready file; the agent is fetched when it runs for the first time.
const START_MAX: Duration = Duration::from_secs(180);
/// Between two looks whether it is ready.
const LOOK: Duration = Duration::from_millis(100);
/// Folders that are searched for an agent's log.
const DEPTH_MAX: u32 = 8;
/// What an agent's server writes when it can be reached.
const LISTENING: &str = "listening";
/// Keys of a developer would make it leave the machine.
const KEYS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "DAYTONA_API_KEY",
    "DISCORD_BOT_TOKEN",
    "SLACK_BOT_TOKEN",
];

/// A running one; it ends with its value.
pub struct Laptop {
    child: Child,
    state: PathBuf,
    ready: Value,
}

impl Laptop {
    /// Builds and starts it, with its state below this folder.
    ///
    /// # Errors
    /// A sentence with what it did instead.
    pub fn start(folder: &Path) -> Result<Self, String> {
        let program = programs::around(&["bobbin-local"])?.join("bobbin-local");
        let (state, ready) = (folder.join("state"), folder.join("ready.json"));
        let log = fs::File::create(folder.join("laptop.log")).map_err(|e| e.to_string())?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command
            .current_dir(programs::root())
            .args(["--without-aws", "--no-build", "--port", "0", "--state-dir"])
            .arg(&state)
            .arg("--ready-file")
            .arg(&ready)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        for key in KEYS {
            command.env_remove(key);
        }
        let child = command.spawn().map_err(|e| e.to_string())?;
        let mut laptop = Self {
            child,
            state,
            ready: Value::Null,
        };
        let start = Instant::now();
        while start.elapsed() < START_MAX {
            // Half-written is not there yet.
            let text = fs::read(&ready).unwrap_or_default();
            if let Ok(told) = serde_json::from_slice(&text) {
                laptop.ready = told;
                return Ok(laptop);
            }
            if let Ok(Some(status)) = laptop.child.try_wait() {
                let said = fs::read_to_string(folder.join("laptop.log")).unwrap_or_default();
                return Err(format!("the laptop stack ended with {status}: {said}"));
            }
            thread::sleep(LOOK);
        }
        Err(format!("the laptop stack was not up within {START_MAX:?}"))
    }

    /// Where the worker finds provider and model.
    #[must_use]
    pub fn elsewhere(&self) -> Elsewhere {
        let text = |name: &str| self.ready[name].as_str().unwrap_or_default().to_owned();
        Elsewhere {
            provider: self.provider(),
            provider_key: text("daytona_api_key"),
            model_api: text("model_api"),
            model: "scripted/scripted-1".to_owned(),
        }
    }

    /// Deletes every sandbox, so that the next one has the machine to itself.
    ///
    /// # Errors
    /// What the provider said.
    pub fn clear(&self) -> io::Result<()> {
        let listed = self.ask("GET", "/api/sandbox")?;
        for sandbox in listed["items"].as_array().into_iter().flatten() {
            let id = sandbox["id"].as_str().unwrap_or_default();
            self.ask("DELETE", &format!("/api/sandbox/{id}"))?;
        }
        let start = Instant::now();
        while self.ask("GET", "/api/sandbox")?["items"] != Value::Array(Vec::new()) {
            if start.elapsed() > START_MAX {
                return Err(io::Error::other("the sandboxes do not go away"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Whether a sandbox is up.
    ///
    /// # Errors
    /// What the provider said.
    pub fn is_up(&self) -> io::Result<bool> {
        let listed = self.ask("GET", "/api/sandbox")?;
        let mut sandboxes = listed["items"].as_array().into_iter().flatten();
        Ok(sandboxes.any(|sandbox| sandbox["state"] == "started"))
    }

    fn ask(&self, method: &str, path: &str) -> io::Result<Value> {
        let key = self.ready["daytona_api_key"].as_str().unwrap_or_default();
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("authorization".to_owned(), format!("Bearer {key}"))],
            body: Vec::new(),
            bytes: 0,
        };
        let answer = Relay::new(&self.provider()).pass(&request)?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Whether an agent's log that was not known before says that its server can be reached; notes it as known then.
    pub fn has_begun(&self, known: &mut Vec<PathBuf>) -> bool {
        let mut logs = Vec::new();
        find(&self.state.join("daytona"), 0, &mut logs);
        let says_so = |log: &PathBuf| {
            !known.contains(log)
                && fs::read_to_string(log).is_ok_and(|text| text.contains(LISTENING))
        };
        let found = logs.into_iter().find(says_so);
        let has_begun = found.is_some();
        known.extend(found);
        has_begun
    }

    fn provider(&self) -> String {
        let address = self.ready["daytona_api"].as_str().unwrap_or_default();
        let host = address.trim_start_matches("http://");
        host.split('/').next().unwrap_or_default().to_owned()
    }
}

impl Drop for Laptop {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // Asked, so that it ends its sandboxes. One that has gone cannot be asked, and need not be.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}

/// The logs of agents below a folder.
fn find(folder: &Path, depth: u32, logs: &mut Vec<PathBuf>) {
    let log = folder.join(".bobbin/opencode.log");
    if log.is_file() {
        logs.push(log);
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth + 1, logs);
        }
    }
}
