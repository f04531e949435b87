//! The laptop stack as a program: started in a folder of its own, described by its ready file, ended without a trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::limits::{START_MS_MAX, STOP_MS_MAX, TAIL_LINE_CHARS_MAX, TAIL_LINES_MAX};
use crate::wait::within_blocking;
use crate::{binaries, processes};

/// What `--ready-file` tells.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Ready {
    pub console: String,
    pub ingress: String,
    pub aws_endpoint: String,
    pub aws_access_key_id: String,
    pub aws_secret_access_key: String,
    pub control_key: String,
    pub daytona_api: String,
    pub daytona_api_key: String,
    pub discord_api: String,
    pub slack_api: String,
    pub model_api: String,
    pub discord_public_key: String,
    pub discord_private_key: String,
    pub slack_signing_secret: String,
    pub slack_bot_token: String,
    pub discord_bot_token: String,
    pub discord_application_id: String,
    pub discord_guild_id: String,
    pub discord_channel_id: String,
    pub discord_user_id: String,
    pub slack_team_id: String,
    pub slack_channel_id: String,
    pub slack_user_id: String,
    pub slack_bot_user_id: String,
    pub table: String,
    pub messages_queue_url: String,
    pub control_queue_url: String,
    pub pids: BTreeMap<String, u32>,
}

impl Ready {
    /// What a test call of any local service says, as its `Authorization`.
    #[must_use]
    pub fn control(&self) -> String {
        format!("Bearer {}", self.control_key)
    }

    /// The address by which a browser comes into the chat page.
    #[must_use]
    pub fn entrance(&self) -> String {
        format!("{}/?key={}", self.console, self.control_key)
    }
}

/// How to start one.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds that differ from the defaults, by their names; an empty object or null for none.
    pub limits: Value,
    /// Leave the embedded AWS engine out.
    pub without_aws: bool,
    /// Parameters of the template that differ, by their names; null for none.
    pub parameters: Value,
    /// Keys in its secrets that differ, by their names; an empty one is not there. Null for none.
    pub keys: Value,
    /// Sandboxes run the stand-in for OpenCode (`tests/agent`).
    pub stand_in_agent: bool,
    /// More of the environment, such as a key that is wrong on purpose.
    pub environment: Vec<(String, String)>,
    /// The address at which containers reach it.
    pub containers: Option<String>,
    /// The folder with its programs, where it is not the one of the tests.
    pub binaries: Option<PathBuf>,
}

impl Options {
    fn binaries(&self) -> &Path {
        let own = self.binaries.as_deref();
        own.unwrap_or_else(|| binaries::folder())
    }

    /// With these bounds.
    #[must_use]
    pub fn limits(limits: Value) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }
}

/// A running stack. It ends when this is dropped; [`Stack::end`] also says what was left behind.
pub struct Stack {
    program: Child,
    guard: Child,
    folder: Arc<TempDir>,
    killed: bool,
    /// What it told when it was up.
    pub ready: Ready,
    /// From its start to the ready file.
    pub took: Duration,
}

impl Stack {
    /// Starts one in a new folder, after building what it needs.
    ///
    /// # Panics
    /// When it is not up within its bound; the message holds the end of its output.
    #[must_use]
    pub fn start(options: &Options) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("bobbin-test-")
            .tempdir()
            .expect("the system has a folder for temporary files");
        Self::start_in(&Arc::new(folder), options)
    }

    /// Starts one in a folder that may hold the state of an earlier one.
    ///
    /// # Panics
    /// As [`Stack::start`].
    #[must_use]
    pub fn start_in(folder: &Arc<TempDir>, options: &Options) -> Self {
        let program = options.binaries().join("bobbin-local");
        let ready_file = folder.path().join("ready.json");
        // The file of an earlier run tells nothing about this one.
        let _ = std::fs::remove_file(&ready_file);
        let log = File::options()
            .create(true)
            .append(true)
            .open(output(folder))
            .expect("the folder is ours");
        let mut command = Command::new(program);
        command
            .current_dir(binaries::workspace())
            .arg("--ready-file")
            .arg(&ready_file)
            .arg("--state-dir")
            .arg(folder.path().join("state"))
            .args(["--port", "0", "--no-build", "--limits"])
            .arg(if options.limits.is_null() {
                "{}".to_owned()
            } else {
                options.limits.to_string()
            })
            .envs(
                options
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .process_group(0);
        if !options.parameters.is_null() {
            command
                .arg("--parameters")
                .arg(options.parameters.to_string());
        }
        if !options.keys.is_null() {
            command.arg("--keys").arg(options.keys.to_string());
        }
        // A developer's keys would make it leave the machine.
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "DAYTONA_API_KEY",
            "DISCORD_BOT_TOKEN",
            "SLACK_BOT_TOKEN",
        ] {
            if !options.environment.iter().any(|(given, _)| given == name) {
                command.env_remove(name);
            }
        }
        if options.without_aws {
            command.arg("--without-aws");
        }
        if let Some(host) = &options.containers {
            command.arg(format!("--containers={host}"));
        }
        if options.stand_in_agent {
            command.env(
                "BOBBIN_AGENT_DIR",
                stand_in_agent(options.binaries(), folder.path()),
            );
        }
        let since = Instant::now();
        let mut program = command
            .spawn()
            .unwrap_or_else(|error| panic!("the stack cannot be started: {error}"));
        let guard = guard(program.id());
        let ready = within_blocking(START_MS_MAX, || {
            match (read_ready(&ready_file), program.try_wait()) {
                (Some(ready), _) => Ok(Ok(ready)),
                (None, Ok(Some(status))) => Ok(Err(format!("it ended with {status}"))),
                (None, _) => Err(format!("no ready file after {} s", START_MS_MAX / 1_000)),
            }
        });
        let took = since.elapsed();
        let mut stack = Self {
            program,
            guard,
            folder: Arc::clone(folder),
            killed: false,
            ready: Ready::default(),
            took,
        };
        match ready {
            Ok(Ok(ready)) => stack.ready = ready,
            Ok(Err(why)) | Err(why) => panic!("the stack is not up: {why}\n{}", stack.tail()),
        }
        stack
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.id()
    }

    /// The folder in which everything of it lies; a restart goes on from there.
    #[must_use]
    pub fn folder(&self) -> &Arc<TempDir> {
        &self.folder
    }

    /// Where it keeps its things.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The end of its output.
    #[must_use]
    pub fn tail(&self) -> String {
        tail(&output(&self.folder))
    }

    /// Ends it without asking, as the system does when memory runs out. What it leaves behind is left alone.
    pub fn kill(mut self) {
        processes::kill(self.program.id());
        let _ = self.program.wait();
        self.killed = true;
    }

    /// Ends it by SIGTERM and looks for what it left behind.
    ///
    /// # Errors
    /// When it did not end within its bound, or ended as failed, or processes of it are left; those are ended then.
    pub fn end(mut self) -> Result<(), String> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), String> {
        if let Ok(Some(_)) = self.program.try_wait() {
            return self.leftovers();
        }
        let judged = self.judged();
        processes::terminate(self.program.id());
        let ended = within_blocking(STOP_MS_MAX, || match self.program.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => Err(format!(
                "it still runs {} s after SIGTERM",
                STOP_MS_MAX / 1_000
            )),
        });
        if ended.is_err() {
            processes::kill_group(self.program.id());
            let _ = self.program.wait();
        }
        let left = self.leftovers();
        match ended? {
            status if status.success() => left.and(judged),
            status => Err(format!(
                "after SIGTERM it ended with {status}\n{}",
                self.tail()
            )),
        }
    }

    /// Whether everything that it sent out is what its platforms take.
    fn judged(&self) -> Result<(), String> {
        if self.ready.console.is_empty() {
            return Ok(());
        }
        // A test that drops its stack may be within a runtime of its own, in which nothing can block.
        let ready = self.ready.clone();
        let judge = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| e.to_string())?
                .block_on(async {
                    let (discord, slack) = (
                        crate::judge::discord(&ready).await,
                        crate::judge::slack(&ready).await,
                    );
                    discord.and(slack)
                })
        });
        judge.join().map_err(|panic| words(panic.as_ref()))?
    }

    fn leftovers(&self) -> Result<(), String> {
        let left = processes::marked(self.folder.path());
        for (pid, _) in &left {
            processes::kill(*pid);
        }
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("processes were left behind: {left:?}"))
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let stopped = if self.killed { Ok(()) } else { self.stop() };
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        if let Err(why) = stopped
            && !std::thread::panicking()
        {
            panic!("the stack did not end well: {why}");
        }
    }
}

/// A folder with the stand-in under the name of the real one.
fn stand_in_agent(binaries: &Path, folder: &Path) -> PathBuf {
    let place = folder.join("agent");
    std::fs::create_dir_all(&place).expect("the folder is ours");
    std::fs::copy(binaries.join("stand-in-agent"), place.join("opencode"))
        .unwrap_or_else(|error| panic!("the stand-in for OpenCode is not there: {error}"));
    place
}

/// Ends the stack when this program is gone, however it went: then the pipe to the guard closes.
fn guard(pid: u32) -> Child {
    Command::new("sh")
        .args(["-c", "read _; kill -TERM \"$1\"", "sh", &pid.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("every Unix has a shell")
}

fn read_ready(file: &Path) -> Option<Ready> {
    // Half-written is not there yet.
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn output(folder: &TempDir) -> PathBuf {
    folder.path().join("output.log")
}

/// The last lines of a file of output.
#[must_use]
pub fn tail(file: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.chars().take(TAIL_LINE_CHARS_MAX).collect())
        .collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}

/// A stack that many tests use: started by the first, ended by [`Shared::end`] after the last.
pub struct Shared {
    limits: fn() -> Value,
    stand_in_agent: bool,
    slot: Mutex<Slot>,
}

enum Slot {
    Unused,
    Running(Arc<Stack>),
    Broken(String),
}

impl Shared {
    /// One with these bounds, not started yet.
    #[must_use]
    pub const fn new(limits: fn() -> Value) -> Self {
        Self {
            limits,
            stand_in_agent: false,
            slot: Mutex::new(Slot::Unused),
        }
    }

    /// The same with the stand-in for OpenCode in its sandboxes, which takes a hundredth of the processor's time.
    #[must_use]
    pub const fn standing_in(limits: fn() -> Value) -> Self {
        Self {
            limits,
            stand_in_agent: true,
            slot: Mutex::new(Slot::Unused),
        }
    }

    /// The running stack.
    ///
    /// # Panics
    /// When it could not be started; every later caller fails at once with the same words.
    pub fn get(&self) -> Arc<Stack> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Unused = *slot {
            let options = Options {
                stand_in_agent: self.stand_in_agent,
                ..Options::limits((self.limits)())
            };
            let started = std::panic::catch_unwind(|| Stack::start(&options));
            *slot = match started {
                Ok(stack) => Slot::Running(Arc::new(stack)),
                Err(panic) => Slot::Broken(words(panic.as_ref())),
            };
        }
        match &*slot {
            Slot::Running(stack) => Arc::clone(stack),
            Slot::Broken(why) => panic!("{why}"),
            Slot::Unused => unreachable!("it was started above"),
        }
    }

    /// The stack, if a test has started it.
    #[must_use]
    pub fn running(&self) -> Option<Arc<Stack>> {
        match &*self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            Slot::Running(stack) => Some(Arc::clone(stack)),
            Slot::Unused | Slot::Broken(_) => None,
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// See [`Stack::end`]; also when a test still holds it.
    pub fn end(&self) -> Result<(), String> {
        let slot = std::mem::replace(
            &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner),
            Slot::Unused,
        );
        match slot {
            Slot::Running(stack) => match Arc::try_unwrap(stack) {
                Ok(stack) => stack.end(),
                Err(_) => Err("a test still holds the shared stack".to_owned()),
            },
            Slot::Unused | Slot::Broken(_) => Ok(()),
        }
    }
}

/// What a panic said.
#[must_use]
pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
    text.unwrap_or_else(|| "it failed without words".to_owned())
}

/// Bounds under which tests see a phase of minutes in seconds; everything else is as in production.
#[must_use]
pub fn quick() -> Value {
    json!({"poll_ms": 300, "card_edit_ms": 500, "backoff_ms": 500})
}
