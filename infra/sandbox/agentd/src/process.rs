//! Agent processes, and ending all their descendants.
//!
//! Promised: when [`AgentProcess::end`] returns, neither the agent nor anything that it started is running, whatever
//! process group or session it had moved to: descendants are found through `/proc`, and orphans through a variable in
//! their inherited environment. A process that escapes both (with a cleared environment and a dead parent) is left to
//! the reaper, whose child it is by then (`reaper`). On systems without `/proc` only the agent's own process group
//! ends.

pub(crate) mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::host::Host;
use crate::limits::{AGENT_GRACE_MS, STDERR_BYTES_MAX};

/// Names the launch in the environment of all its descendants.
pub(crate) const LAUNCH_VARIABLE: &str = "BOBBIN_AGENTD_LAUNCH";

/// Names the daemon's folder in their environment.
const STATE_VARIABLE: &str = "BOBBIN_AGENTD_STATE";

/// How to start an agent.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// On top of the daemon's own environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
}

/// A running agent.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    child: Child,
    marker: String,
    said: Arc<Mutex<Vec<u8>>>,
}

impl AgentProcess {
    pub(crate) fn spawn(program: &Program, host: &Host) -> std::io::Result<Self> {
        let marker = host.marker();
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .envs(&program.environment)
            .env(LAUNCH_VARIABLE, &marker)
            .env(STATE_VARIABLE, &host.state_dir)
            .env_remove(crate::arguments::TOKEN_VARIABLE)
            .current_dir(&program.directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(keep_last(stderr, said.clone()));
        }
        Ok(Self { child, marker, said })
    }

    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Whether it has exited by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it and all its descendants; returns the end of its standard error.
    pub(crate) async fn end(mut self, host: &Host) -> Option<String> {
        let root = self.child.id();
        let grace = host.grace_ms(AGENT_GRACE_MS);
        let marker = format!("{LAUNCH_VARIABLE}={}", self.marker);
        let find = move || tree::of(root, &marker);
        if let Some(pid) = root {
            tree::signal_group(pid, Signal::TERM);
        }
        let ending = tree::end(find, Duration::from_millis(grace));
        let (left, _) = tokio::join!(ending, self.child.wait());
        if left > 0 {
            tracing::error!(left, "processes of an agent cannot be ended");
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        (!said.is_empty()).then_some(said)
    }
}

/// Ends agents left over by earlier daemons of this folder, if both halves were killed at once, and this daemon's own.
pub(crate) async fn end_left_over(host: &Host) {
    let marker = format!("{STATE_VARIABLE}={}", host.state_dir.display());
    let left = tree::end(move || tree::marked(&marker), Duration::ZERO).await;
    if left > 0 {
        tracing::error!(left, "processes that agents left cannot be ended");
    }
}

/// Reads an agent's standard error and keeps its end.
async fn keep_last(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..read]);
        let over = said.len().saturating_sub(STDERR_BYTES_MAX);
        said.drain(..over);
    }
}
