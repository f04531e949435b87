//! Finds and ends a sandbox's processes by two variables in their environment.
//!
//! Everything that runs for a sandbox carries [`SANDBOX_VARIABLE`] and [`STATE_DIR_VARIABLE`]. They are read from
//! `/proc`; on systems without it nothing is found, and only the process groups that the sandbox's first process
//! started itself are ended. A process that clears its own environment escapes this search, though not a PID namespace.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::limits::{KILL_WAIT_MS_MAX, POLL_MS};

/// Variable with the sandbox id, in its processes' environment.
pub const SANDBOX_VARIABLE: &str = "BOBBIN_SANDBOX";
/// Set for an unconfined sandbox: only the files in its home are its own.
pub const UNCONFINED_VARIABLE: &str = "BOBBIN_SANDBOX_UNCONFINED";
/// Variable with the provider's state folder, in the environment of every sandbox's processes.
pub const STATE_DIR_VARIABLE: &str = "BOBBIN_STATE_DIR";

/// The processes of one sandbox, or of all.
#[derive(Clone)]
pub struct ProcessSet {
    state_dir: String,
    sandbox: Option<String>,
}

impl ProcessSet {
    /// Every process of every sandbox of this state folder.
    pub fn of_state_dir(state_dir: &str) -> Self {
        ProcessSet { state_dir: state_dir.to_owned(), sandbox: None }
    }

    /// Every process of one sandbox.
    pub fn of_sandbox(state_dir: &str, sandbox: &str) -> Self {
        ProcessSet { state_dir: state_dir.to_owned(), sandbox: Some(sandbox.to_owned()) }
    }

    fn contains(&self, environ: &[u8]) -> bool {
        let has = |name: &str, value: &str| {
            environ.split(|byte| *byte == 0).any(|entry| {
                entry
                    .strip_prefix(name.as_bytes())
                    .and_then(|rest| rest.strip_prefix(b"="))
                    .is_some_and(|found| found == value.as_bytes())
            })
        };
        has(STATE_DIR_VARIABLE, &self.state_dir)
            && self.sandbox.as_deref().is_none_or(|id| has(SANDBOX_VARIABLE, id))
    }

    /// Process ids, without the caller's own and its parent's: seen from inside, bubblewrap carries the variables too,
    /// cannot be signalled from there and exits when its child does.
    pub fn pids(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let spared = [std::process::id(), std::os::unix::process::parent_id()];
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| !spared.contains(pid))
            .filter(|pid| {
                std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|environ| self.contains(&environ))
            })
            .collect()
    }

    /// Freezes every process, like a paused container, until the returned value is dropped.
    pub async fn hold(&self) -> FrozenProcesses {
        let mut held = FrozenProcesses(BTreeSet::new());
        loop {
            let processes = self.clone();
            let pids = tokio::task::spawn_blocking(move || processes.pids()).await;
            let new: Vec<u32> =
                pids.unwrap_or_default().into_iter().filter(|pid| held.0.insert(*pid)).collect();
            // A process not frozen yet may have started another in the meantime.
            if new.is_empty() {
                return held;
            }
            for pid in new {
                send(pid, Signal::STOP);
            }
        }
    }

    /// Sends SIGTERM, waits up to `grace_ms`, then sends SIGKILL until none is left (within [`KILL_WAIT_MS_MAX`]).
    /// Returns how many remain: 0 unless the system does not permit it.
    pub async fn end(&self, grace_ms: u64) -> usize {
        let grace = Instant::now() + Duration::from_millis(grace_ms);
        let last = grace + Duration::from_millis(KILL_WAIT_MS_MAX);
        let mut asked = BTreeSet::new();
        loop {
            let processes = self.clone();
            let pids =
                tokio::task::spawn_blocking(move || processes.pids()).await.unwrap_or_default();
            let now = Instant::now();
            if pids.is_empty() || now >= last {
                return pids.len();
            }
            for pid in pids {
                if now >= grace {
                    send(pid, Signal::KILL);
                } else if asked.insert(pid) {
                    send(pid, Signal::TERM);
                }
            }
            tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
        }
    }
}

/// Frozen processes; dropping this resumes them.
pub struct FrozenProcesses(BTreeSet<u32>);

impl Drop for FrozenProcesses {
    fn drop(&mut self) {
        for pid in &self.0 {
            send(*pid, Signal::CONT);
        }
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The process may already have exited, which is fine.
        let _ = kill_process(pid, signal);
    }
}

/// Ports on which the processes listen, from `/proc`.
pub fn listening(pids: &[u32]) -> BTreeSet<u16> {
    let sockets: BTreeSet<String> = pids
        .iter()
        .filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).ok())
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    // Each process's own table: a sandbox may have its own network.
    let tables =
        pids.iter().flat_map(|pid| ["tcp", "tcp6"].map(|table| format!("/proc/{pid}/net/{table}")));
    tables
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| {
            table.lines().skip(1).filter_map(|line| listener(line, &sockets)).collect::<Vec<_>>()
        })
        .collect()
}

/// Port of a line of `/proc/net/tcp` in state LISTEN (0A) whose inode is in `sockets`.
fn listener(line: &str, sockets: &BTreeSet<String>) -> Option<u16> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != "0A" || !sockets.contains(*inode) {
        return None;
    }
    u16::from_str_radix(local.rsplit(':').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_match_by_whole_values() {
        let environ = b"A=1\0BOBBIN_STATE_DIR=/s\0BOBBIN_SANDBOX=one\0";
        assert!(ProcessSet::of_state_dir("/s").contains(environ));
        assert!(ProcessSet::of_sandbox("/s", "one").contains(environ));
        assert!(!ProcessSet::of_sandbox("/s", "on").contains(environ));
        assert!(!ProcessSet::of_state_dir("/st").contains(environ));
        assert!(!ProcessSet::of_state_dir("/").contains(environ));
    }

    #[test]
    fn a_listening_line_is_read() {
        let line = "   0: 0100007F:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        let sockets = BTreeSet::from(["4711".to_owned()]);
        assert_eq!(listener(line, &sockets), Some(4096));
        assert_eq!(listener(line, &BTreeSet::new()), None);
    }
}
