//! Processes of this machine: finding those with a mark, and ending a group.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

/// Processes (without the calling one) that name `mark` in their command line or environment.
#[must_use]
pub fn marked(mark: &Path) -> Vec<(u32, String)> {
    let mark = mark.as_os_str().as_encoded_bytes();
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let names = |pid: &u32, file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark)
    };
    pids.filter(|pid| *pid != own && (names(pid, "cmdline") || names(pid, "environ")))
        .map(|pid| (pid, command(pid)))
        .collect()
}

/// Ends the remaining processes of a program that name this folder.
///
/// # Errors
/// What was left.
pub fn end_left(folder: &Path) -> Result<(), String> {
    let left = marked(folder);
    for (pid, _) in &left {
        kill(*pid);
    }
    if left.is_empty() { Ok(()) } else { Err(format!("processes were left behind: {left:?}")) }
}

fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
    words.chars().take(200).collect()
}

/// Whether a process exists (a zombie that nobody has waited for does not).
#[must_use]
pub fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let zombie = state.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'));
    !zombie && to_pid(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

/// Asks a process to end.
pub fn terminate(pid: u32) {
    signal(pid, Signal::TERM);
}

/// Ends a process without asking.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = to_pid(pid) {
        // It may have ended already.
        let _ = kill_process(pid, signal);
    }
}

/// Ends a process group that this program made.
pub fn kill_group(leader: u32) {
    if let Some(pid) = to_pid(leader) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
