//! Programs started by their arguments: their output is kept in order, and can be followed from the beginning.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command as Program};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::process::signal_group;
use super::protocol::{Environment, InitRefusal};
use crate::limits::{COMMANDS_MAX, OUTPUT_BYTES_MAX, OUTPUT_DRAIN_MS_MAX};
use crate::random::token;

/// A shell's exit code for a missing program.
const NOT_FOUND: i32 = 127;
/// Added by a shell to the number of a fatal signal.
const BY_SIGNAL: i32 = 128;
/// Letters of a command's id.
const ID_LETTERS: usize = 24;

/// The programs of one sandbox started like this.
#[derive(Default)]
pub(super) struct Commands {
    all: Mutex<BTreeMap<String, Arc<StartedProgram>>>,
}

#[derive(Default)]
struct Printed {
    /// Stream name and text, in order of arrival.
    pieces: Vec<(&'static str, String)>,
    bytes: usize,
    exit: Option<i32>,
}

struct StartedProgram {
    pid: Option<u32>,
    printed: watch::Sender<Printed>,
}

impl StartedProgram {
    fn print(&self, stream: &'static str, text: String) {
        self.printed.send_modify(|printed| {
            // Further output is discarded, so that the program does not block.
            if printed.bytes < OUTPUT_BYTES_MAX {
                printed.bytes += text.len();
                printed.pieces.push((stream, text));
            }
        });
    }

    fn end(&self, code: i32) {
        self.printed.send_modify(|printed| printed.exit = Some(code));
    }
}

impl Commands {
    pub(super) async fn spawn(
        &self,
        argv: &[String],
        env: &Environment,
        cwd: &Path,
        timeout_ms: Option<u64>,
    ) -> Result<Value, InitRefusal> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(InitRefusal::bad_request("no program is named"));
        };
        let child = Program::new(program)
            .args(arguments)
            .current_dir(cwd)
            .process_group(0)
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let command = Arc::new(StartedProgram {
            pid: child.as_ref().ok().and_then(Child::id),
            printed: watch::Sender::new(Printed::default()),
        });
        match child {
            Ok(child) => watch_over(child, &command, timeout_ms),
            Err(error) => {
                command.print("stderr", format!("{program}: {error}\n"));
                command.end(NOT_FOUND);
            }
        }
        let id = format!("cmd_{}", token(ID_LETTERS));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= COMMANDS_MAX {
            all.retain(|_, one| one.printed.borrow().exit.is_none());
        }
        if all.len() >= COMMANDS_MAX {
            signal_group(command.pid, Signal::KILL);
            return Err(InitRefusal::bad_request(format_args!(
                "more than {COMMANDS_MAX} commands run"
            )));
        }
        all.insert(id.clone(), command);
        Ok(json!({ "id": id }))
    }

    pub(super) async fn follow(
        &self,
        id: &str,
        from: usize,
        wait_ms: u64,
    ) -> Result<Value, InitRefusal> {
        let mut printed = self.find(id)?.printed.subscribe();
        let news = printed.wait_for(|now| now.exit.is_some() || now.pieces.len() > from);
        // A time-out without news is an answer too; the sender lives as long as the command is known.
        let _ = tokio::time::timeout(Duration::from_millis(wait_ms), news).await;
        let now = printed.borrow();
        let pieces = now.pieces.get(from..).unwrap_or_default();
        Ok(json!({ "pieces": pieces, "next": now.pieces.len(), "exit": now.exit }))
    }

    pub(super) async fn signal(&self, id: &str, signal: i32) -> Result<Value, InitRefusal> {
        let command = self.find(id)?;
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| InitRefusal::bad_request(format_args!("{signal} is not a signal")))?;
        if command.printed.borrow().exit.is_none() {
            signal_group(command.pid, signal);
        }
        Ok(Value::Null)
    }

    fn find(&self, id: &str) -> Result<Arc<StartedProgram>, InitRefusal> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get(id).cloned();
        found.ok_or_else(|| InitRefusal::not_found(format_args!("command {id}")))
    }
}

/// Reads its output and records its exit, in separate tasks.
fn watch_over(mut child: Child, command: &Arc<StartedProgram>, timeout_ms: Option<u64>) {
    let out = child.stdout.take().map(|out| tokio::spawn(read(out, "stdout", Arc::clone(command))));
    let err = child.stderr.take().map(|err| tokio::spawn(read(err, "stderr", Arc::clone(command))));
    let command = Arc::clone(command);
    tokio::spawn(async move {
        let status = match timeout_ms {
            None => child.wait().await,
            Some(ms) => match tokio::time::timeout(Duration::from_millis(ms), child.wait()).await {
                Ok(ended) => ended,
                Err(_) => {
                    signal_group(command.pid, Signal::KILL);
                    child.wait().await
                }
            },
        };
        // A program that it left behind may keep its output open.
        for reader in [out, err].into_iter().flatten() {
            drained(reader).await;
        }
        let code = status.map_or(NOT_FOUND, |status| {
            let by_signal = || BY_SIGNAL + status.signal().unwrap_or_default();
            status.code().unwrap_or_else(by_signal)
        });
        command.end(code);
    });
}

async fn drained(reader: JoinHandle<()>) {
    // Later output is still read, and returned by later calls.
    let _ = tokio::time::timeout(Duration::from_millis(OUTPUT_DRAIN_MS_MAX), reader).await;
}

/// Reads to the end without splitting a character.
async fn read(
    mut stream: impl AsyncRead + Unpin,
    name: &'static str,
    command: Arc<StartedProgram>,
) {
    let mut held = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        held.extend_from_slice(&chunk[..count]);
        let text = whole_characters(&mut held);
        if !text.is_empty() {
            command.print(name, text);
        }
    }
    if !held.is_empty() {
        command.print(name, String::from_utf8_lossy(&held).into_owned());
    }
}

/// Takes whole characters; an incomplete one stays.
fn whole_characters(held: &mut Vec<u8>) -> String {
    let cut = match std::str::from_utf8(held) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid bytes are replaced.
        _ => held.len(),
    };
    let rest = held.split_off(cut);
    let text = String::from_utf8_lossy(held).into_owned();
    *held = rest;
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_characters_are_held_until_whole() {
        let mut held = "aä".as_bytes()[..2].to_vec();
        assert_eq!(whole_characters(&mut held), "a");
        held.extend_from_slice(&"ä€".as_bytes()[1..]);
        assert_eq!(whole_characters(&mut held), "ä€");
        assert!(held.is_empty());
        held.extend_from_slice(&[b'b', 0xff, b'c']);
        assert_eq!(whole_characters(&mut held), "b\u{fffd}c");
    }
}
