//! One command in a shell.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::protocol::{Environment, InitRefusal};
use crate::limits::OUTPUT_BYTES_MAX;

/// bash if it exists, else sh.
pub(super) fn shell() -> &'static str {
    ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("/bin/sh")
}

/// A shell in its own process group, with this environment on top of ours.
pub(super) fn shell_command(env: &Environment, cwd: &Path) -> Command {
    let mut command = Command::new(shell());
    command.current_dir(cwd).process_group(0).stdin(Stdio::piped()).envs(env);
    command
}

/// Signals a child's whole process group.
pub(super) fn signal_group(pid: Option<u32>, signal: Signal) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The group may have ended by itself.
        let _ = kill_process_group(pid, signal);
    }
}

/// Runs `text` from a shell's standard input; returns `{exitCode, result}` when its output is closed by everybody.
/// After `timeout_ms` its process group is killed and the call refused with 408; its output is lost.
pub(super) async fn execute(
    text: &str,
    env: &Environment,
    cwd: &Path,
    timeout_ms: Option<u64>,
) -> Result<Value, InitRefusal> {
    let started = start(text, env, cwd);
    let (mut child, output) = match started {
        Ok(started) => started,
        Err(error) => return Ok(json!({ "exitCode": -1, "result": error.to_string() })),
    };
    let pid = child.id();
    let finished = async {
        let bytes = read_capped(output).await;
        (bytes, child.wait().await)
    };
    let (bytes, status) = match timeout_ms {
        None => finished.await,
        Some(ms) => match tokio::time::timeout(Duration::from_millis(ms), finished).await {
            Ok(finished) => finished,
            Err(_) => {
                signal_group(pid, Signal::KILL);
                // Killed, so it exits at once; without this wait it would stay a zombie.
                let _ = child.wait().await;
                return Err(InitRefusal::new(
                    408,
                    "PROCESS_EXECUTION_TIMEOUT",
                    "request timeout: command execution timeout",
                ));
            }
        },
    };
    let code = status.ok().and_then(|status| status.code()).unwrap_or(-1);
    Ok(json!({ "exitCode": code, "result": String::from_utf8_lossy(&bytes) }))
}

fn start(text: &str, env: &Environment, cwd: &Path) -> std::io::Result<(Child, pipe::Receiver)> {
    // One pipe for both streams keeps their order.
    let (reader, writer) = std::io::pipe()?;
    let mut command = shell_command(env, cwd);
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds our copies of the writing end; the reader would never see its end.
    drop(command);
    if let Some(mut stdin) = child.stdin.take() {
        let text = format!("{text}\n");
        tokio::spawn(async move {
            // A shell that exits before it has read everything is not an error.
            let _ = stdin.write_all(text.as_bytes()).await;
        });
    }
    Ok((child, pipe::Receiver::from_owned_fd(reader.into())?))
}

/// Reads to the end and keeps the first [`OUTPUT_BYTES_MAX`]. JSON may need six bytes for one, so control characters in
/// bulk could overflow a frame; the cap for them is a sixth.
async fn read_capped(mut output: pipe::Receiver) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut written = 0;
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = output.read(&mut chunk).await {
        for byte in &chunk[..count] {
            written += if *byte < 0x20 && *byte != b'\n' && *byte != b'\t' { 6 } else { 2 };
            if written > OUTPUT_BYTES_MAX * 2 {
                break;
            }
            kept.push(*byte);
        }
    }
    kept
}
