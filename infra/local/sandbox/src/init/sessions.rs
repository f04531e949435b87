//! Persistent shells: commands are sourced into one, so that folder and variables persist between them.
//!
//! Each command has a folder with its text, its two output files, a FIFO for its input and, at the end, its exit code.
//! Sessions are lost when the sandbox stops.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{Mutex, watch};

use super::process::{shell_command, signal_group};
use super::protocol::{Environment, InitRefusal};
use crate::limits::{
    OUTPUT_BYTES_MAX, POLL_MS, SESSION_COMMANDS_MAX, SESSION_GRACE_MS, SESSION_WAIT_MS_MAX,
    SESSIONS_MAX,
};
use crate::random::uuid;

/// One sandbox's sessions, by ids that their owners chose.
pub(super) struct ShellSessions {
    root: PathBuf,
    all: Mutex<BTreeMap<String, Arc<ShellSession>>>,
}

struct ShellSession {
    root: PathBuf,
    pid: Option<u32>,
    stdin: Mutex<ChildStdin>,
    commands: Mutex<Vec<ShellCommand>>,
    /// The shell's exit code, once it has exited.
    ended: watch::Receiver<Option<i32>>,
}

/// A command of the shell.
struct ShellCommand {
    id: String,
    text: String,
    /// Our end of its input while it may still run: without it, input sent before the shell opens its own end would be
    /// lost.
    input: Option<File>,
}

impl ShellSessions {
    pub(super) fn new(root: PathBuf) -> Self {
        ShellSessions { root, all: Mutex::default() }
    }

    pub(super) async fn create(
        &self,
        id: &str,
        env: &Environment,
        home: &Path,
    ) -> Result<Value, InitRefusal> {
        let mut all = self.all.lock().await;
        if all.contains_key(id) {
            return Err(InitRefusal::new(409, "CONFLICT", "conflict: session already exists"));
        }
        if all.len() >= SESSIONS_MAX {
            return Err(InitRefusal::bad_request(format_args!(
                "more than {SESSIONS_MAX} sessions"
            )));
        }
        let session = ShellSession::start(self.root.join(uuid()), env, home)
            .map_err(InitRefusal::internal)?;
        all.insert(id.to_owned(), Arc::new(session));
        Ok(Value::Null)
    }

    pub(super) async fn run(&self, id: &str, text: &str, wait: bool) -> Result<Value, InitRefusal> {
        let session = self.find(id).await?;
        let command = session.begin(text).await?;
        if !wait {
            return Ok(json!({ "cmdId": command }));
        }
        let bound = Instant::now() + Duration::from_millis(SESSION_WAIT_MS_MAX);
        loop {
            if let Some(code) = session.exit_code(&command).await {
                let mut answer = session.logs(&command);
                answer["cmdId"] = json!(command);
                answer["exitCode"] = json!(code);
                return Ok(answer);
            }
            if Instant::now() >= bound {
                return Err(InitRefusal::new(
                    408,
                    "REQUEST_TIMEOUT",
                    "request timeout: the session's command is still running",
                ));
            }
            tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
        }
    }

    pub(super) async fn list(&self) -> Value {
        let all = self.all.lock().await;
        let mut list = Vec::new();
        for (id, session) in all.iter().filter(|(id, _)| id.as_str() != "entrypoint") {
            list.push(session.view(id).await);
        }
        Value::Array(list)
    }

    pub(super) async fn get(&self, id: &str) -> Result<Value, InitRefusal> {
        Ok(self.find(id).await?.view(id).await)
    }

    pub(super) async fn command(&self, id: &str, command: &str) -> Result<Value, InitRefusal> {
        let session = self.find(id).await?;
        let text = session.text(command).await?;
        Ok(session.command_view(command, &text).await)
    }

    /// Logs of a command; of the session's first one if the command is empty (the entrypoint's).
    pub(super) async fn logs(&self, id: &str, command: &str) -> Result<Value, InitRefusal> {
        let session = self.find(id).await?;
        let command = match command {
            "" => session
                .commands
                .lock()
                .await
                .first()
                .map(|command| command.id.clone())
                .unwrap_or_default(),
            named => named.to_owned(),
        };
        session.text(&command).await?;
        let mut logs = session.logs(&command);
        logs["exitCode"] = json!(session.exit_code(&command).await);
        Ok(logs)
    }

    pub(super) async fn input(
        &self,
        id: &str,
        command: &str,
        data: &str,
    ) -> Result<Value, InitRefusal> {
        let session = self.find(id).await?;
        session.text(command).await?;
        if session.exit_code(command).await.is_some() {
            return Err(completed());
        }
        let input = {
            let commands = session.commands.lock().await;
            let found = commands.iter().find(|known| known.id == command);
            let input = found.and_then(|known| known.input.as_ref());
            input.map(File::try_clone).transpose().map_err(InitRefusal::internal)?
        };
        let input = input.ok_or_else(completed)?;
        let mut input = tokio::fs::File::from_std(input);
        input.write_all(data.as_bytes()).await.map_err(InitRefusal::internal)?;
        input.flush().await.map_err(InitRefusal::internal)?;
        Ok(Value::Null)
    }

    pub(super) async fn delete(&self, id: &str) -> Result<Value, InitRefusal> {
        let session = self.find(id).await?;
        self.all.lock().await.remove(id);
        signal_group(session.pid, Signal::TERM);
        let mut ended = session.ended.clone();
        let gone = ended.wait_for(Option::is_some);
        if tokio::time::timeout(Duration::from_millis(SESSION_GRACE_MS), gone).await.is_err() {
            signal_group(session.pid, Signal::KILL);
        }
        // A folder that stays is removed with the sandbox.
        let _ = tokio::fs::remove_dir_all(&session.root).await;
        Ok(Value::Null)
    }

    async fn find(&self, id: &str) -> Result<Arc<ShellSession>, InitRefusal> {
        let found = self.all.lock().await.get(id).cloned();
        found.ok_or_else(|| InitRefusal::not_found("session not found"))
    }
}

impl ShellSession {
    fn start(root: PathBuf, env: &Environment, home: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(&root)?;
        let mut command = shell_command(env, home);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let pid = child.id();
        let stdin = child
            .stdin
            .take()
            .ok_or_else(|| std::io::Error::other("the shell has no standard input"))?;
        let (sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            let code = child.wait().await.ok().and_then(|status| status.code()).unwrap_or(-1);
            sender.send_replace(Some(code));
        });
        Ok(ShellSession { root, pid, stdin: Mutex::new(stdin), commands: Mutex::default(), ended })
    }

    /// Passes the text to the shell, which reads one command after another.
    async fn begin(&self, text: &str) -> Result<String, InitRefusal> {
        let ended =
            || InitRefusal::new(410, "SESSION_ENDED", "gone: the session's shell has ended");
        if self.ended.borrow().is_some() {
            return Err(ended());
        }
        let mut commands = self.commands.lock().await;
        if commands.len() >= SESSION_COMMANDS_MAX {
            return Err(InitRefusal::bad_request(
                "too many commands in one session; open a new one",
            ));
        }
        let id = uuid();
        let folder = self.root.join(&id);
        std::fs::create_dir_all(&folder).map_err(InitRefusal::internal)?;
        std::fs::write(folder.join("text"), format!("{text}\n")).map_err(InitRefusal::internal)?;
        for stream in ["stdout", "stderr"] {
            std::fs::write(folder.join(stream), "").map_err(InitRefusal::internal)?;
        }
        let input = open_fifo(&folder.join("input")).await.map_err(InitRefusal::internal)?;
        for known in commands.iter_mut().filter(|known| known.input.is_some()) {
            if self.exit_code(&known.id).await.is_some() {
                known.input = None;
            }
        }
        let quoted = format!("'{}'", folder.to_string_lossy().replace('\'', r"'\''"));
        let line = format!(
            "{{ . {quoted}/text; }} <>{quoted}/input >{quoted}/stdout 2>{quoted}/stderr; \
             printf %s $? >{quoted}/exit.new; mv {quoted}/exit.new {quoted}/exit\n"
        );
        self.stdin.lock().await.write_all(line.as_bytes()).await.map_err(|_| ended())?;
        commands.push(ShellCommand { id: id.clone(), text: text.to_owned(), input: Some(input) });
        Ok(id)
    }

    async fn text(&self, command: &str) -> Result<String, InitRefusal> {
        let commands = self.commands.lock().await;
        let found =
            commands.iter().find(|known| known.id == command).map(|known| known.text.clone());
        found.ok_or_else(|| InitRefusal::not_found("command not found"))
    }

    /// `None` while it runs. A command that ends the shell has the shell's code.
    async fn exit_code(&self, command: &str) -> Option<i32> {
        // Read before the file: a shell that exits in between has written the file.
        let shell = *self.ended.borrow();
        let written = tokio::fs::read_to_string(self.root.join(command).join("exit")).await.ok();
        written.and_then(|code| code.trim().parse().ok()).or(shell)
    }

    fn logs(&self, command: &str) -> Value {
        let read = |stream: &str| {
            let bytes = std::fs::read(self.root.join(command).join(stream)).unwrap_or_default();
            String::from_utf8_lossy(&bytes[..bytes.len().min(OUTPUT_BYTES_MAX / 8)]).into_owned()
        };
        let (stdout, stderr) = (read("stdout"), read("stderr"));
        let mut output = String::new();
        // The prefixes that mark the two streams in the merged text.
        for (prefix, text) in [("\u{1}\u{1}\u{1}", &stdout), ("\u{2}\u{2}\u{2}", &stderr)] {
            if !text.is_empty() {
                output.push_str(prefix);
                output.push_str(text);
            }
        }
        json!({ "output": output, "stdout": stdout, "stderr": stderr })
    }

    async fn command_view(&self, id: &str, text: &str) -> Value {
        let mut view = json!({ "id": id, "command": text });
        if let Some(code) = self.exit_code(id).await {
            view["exitCode"] = json!(code);
        }
        view
    }

    async fn view(&self, id: &str) -> Value {
        let mut views = Vec::new();
        for command in self.commands.lock().await.iter() {
            views.push(self.command_view(&command.id, &command.text).await);
        }
        json!({ "sessionId": id, "commands": views })
    }
}

/// Creates a FIFO. Opening it for reading and writing blocks nobody and keeps it open for later input.
async fn open_fifo(path: &Path) -> std::io::Result<File> {
    let made = tokio::process::Command::new("mkfifo")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .await?;
    if !made.success() {
        return Err(std::io::Error::other("mkfifo failed"));
    }
    File::options().read(true).write(true).open(path)
}

fn completed() -> InitRefusal {
    InitRefusal::new(410, "COMMAND_ALREADY_COMPLETED", "gone: command has already completed")
}
