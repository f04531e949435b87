//! The laptop stack as a program: started in its own folder, described by its ready file, ended without a trace.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::limits::{
    STACK_CHARS_MAX, START_MS_MAX, STOP_MS_MAX, TAIL_LINE_CHARS_MAX, TAIL_LINES_MAX,
};
use crate::ready::Ready;
use crate::wait::within_blocking;
use crate::{binaries, failures, judge, processes};

/// The variable that makes the stack log more than by default, and the filter for its functions' output.
const LOG: &str = "BOBBIN_LOG";
const FUNCTIONS_LOG: &str = "warn,dynoxide=error,functions=info";
/// A message that comes again, which is telling; and why a run's does, which is not.
const HELD: &str = "the message is retried";
const ONLY_POLLED: &str = "the run goes on without a delivery";

/// Time that the platforms give the ingress for a first answer.
const CHAT_ANSWER_MS: &str = "BOBBIN_CHAT_ANSWER_MS";
/// A busy machine is not ingress's fault: the bench measures its share of their three seconds.
const PATIENT_MS: u64 = 60_000;

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
    /// The folder with its programs, if it is not the tests' own.
    pub binaries: Option<PathBuf>,
}

impl Options {
    fn binaries(&self) -> &Path {
        let own = self.binaries.as_deref();
        own.unwrap_or_else(|| binaries::folder())
    }

    /// The defaults with these limits.
    #[must_use]
    pub fn limits(limits: Value) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The same for tests that are not about the agent: with the stand-in for OpenCode, and at night with OpenCode
    /// itself.
    #[must_use]
    pub fn lean(limits: Value) -> Self {
        Self { stand_in_agent: !at_night(), ..Self::limits(limits) }
    }
}

/// Whether this is the run of all tests in all their ways.
#[must_use]
pub fn at_night() -> bool {
    std::env::var("BOBBIN_PLATFORMS").as_deref() == Ok("all")
}

/// A running stack. It ends when this is dropped; [`Stack::end`] also reports leftovers.
pub struct Stack {
    program: Child,
    guard: Child,
    folder: Arc<TempDir>,
    killed: bool,
    /// Its message when it was up.
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
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .process_group(0);
        if !options.parameters.is_null() {
            command.arg("--parameters").arg(options.parameters.to_string());
        }
        if !options.keys.is_null() {
            command.arg("--keys").arg(options.keys.to_string());
        }
        // A developer's keys would make it leave the machine.
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "OPENROUTER_MANAGEMENT_KEY",
            "DAYTONA_API_KEY",
            "DISCORD_BOT_TOKEN",
            "SLACK_BOT_TOKEN",
        ] {
            if !options.environment.iter().any(|(given, _)| given == name) {
                command.env_remove(name);
            }
        }
        let is_told = options.environment.iter().any(|(given, _)| given == LOG);
        if !is_told && std::env::var_os(LOG).is_none() {
            command.env(LOG, FUNCTIONS_LOG);
        }
        let is_timed = options.environment.iter().any(|(given, _)| given == CHAT_ANSWER_MS);
        if !is_timed {
            command.env(CHAT_ANSWER_MS, PATIENT_MS.to_string());
        }
        if options.without_aws {
            command.arg("--without-aws");
        }
        if let Some(host) = &options.containers {
            command.arg(format!("--containers={host}"));
        }
        if options.stand_in_agent {
            command.env("BOBBIN_AGENT_DIR", stand_in_agent(options.binaries(), folder.path()));
        }
        let since = Instant::now();
        let mut program =
            command.spawn().unwrap_or_else(|error| panic!("the stack cannot be started: {error}"));
        let guard = guard(program.id());
        let ready = within_blocking(START_MS_MAX, || {
            match (Ready::read(&ready_file), program.try_wait()) {
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

    /// Process id of the stack's one program.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.id()
    }

    /// The folder of all its files; a restart continues from there.
    #[must_use]
    pub fn folder(&self) -> &Arc<TempDir> {
        &self.folder
    }

    /// The folder of its state.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The end of its output.
    #[must_use]
    pub fn tail(&self) -> String {
        tail(&output(&self.folder))
    }

    /// Kills it, as the system does when memory runs out. Its leftovers stay.
    pub fn kill(mut self) {
        processes::kill(self.program.id());
        let _ = self.program.wait();
        self.killed = true;
    }

    /// Ends it by SIGTERM and checks for leftovers.
    ///
    /// # Errors
    /// When it did not end within its bound, or ended as failed, or processes of it are left; those are ended then.
    pub fn end(mut self) -> Result<(), String> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), String> {
        if let Ok(Some(_)) = self.program.try_wait() {
            return processes::end_left(self.folder.path());
        }
        let judged = self.judged();
        processes::terminate(self.program.id());
        let ended = within_blocking(STOP_MS_MAX, || match self.program.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => Err(format!("it still runs {} s after SIGTERM", STOP_MS_MAX / 1_000)),
        });
        if ended.is_err() {
            processes::kill_group(self.program.id());
            let _ = self.program.wait();
        }
        let left = processes::end_left(self.folder.path());
        match ended? {
            status if status.success() => left.and(judged),
            status => Err(format!("after SIGTERM it ended with {status}\n{}", self.tail())),
        }
    }

    /// Whether its platforms accept everything that it sent.
    fn judged(&self) -> Result<(), String> {
        if self.ready.console.is_empty() {
            return Ok(());
        }
        // A test that drops its stack may be within its own runtime, in which nothing can block.
        let ready = self.ready.clone();
        let judge = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| e.to_string())?
                .block_on(async {
                    let (discord, slack) =
                        (judge::discord(&ready).await, judge::slack(&ready).await);
                    discord.and(slack)
                })
        });
        judge.join().map_err(|panic| words(panic.as_ref()))?
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.tail();
            let from = said.char_indices().rev().nth(STACK_CHARS_MAX);
            let last = &said[from.map_or(0, |(at, _)| at)..];
            failures::note(&format!("the end of what its stack said: {last}"));
        }
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

fn output(folder: &TempDir) -> PathBuf {
    folder.path().join("output.log")
}

/// The last lines of a file of output that say more than that something went as usual.
#[must_use]
pub fn tail(file: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
    let usual = |line: &str| [r#""level":"INFO""#, " INFO ["].iter().any(|it| line.contains(it));
    let is_held = |line: &str| line.contains(HELD) && !line.contains(ONLY_POLLED);
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !usual(line) || is_held(line))
        .map(|line| line.chars().take(TAIL_LINE_CHARS_MAX).collect())
        .collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}

/// The message of a panic.
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
    json!({"poll_ms": 300, "card_edit_ms": 500, "backoff_ms": 500, "pull_request_quiet_ms": 2_000})
}
