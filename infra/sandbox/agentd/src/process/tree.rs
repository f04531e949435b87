//! Process ancestry, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::limits::{KILL_MS_MAX, LOOK_MS};

/// The process and its descendants, and processes with this entry in their environment; without exited ones and the
/// caller.
pub(crate) fn of(root: Option<u32>, marker: &str) -> BTreeSet<u32> {
    let parents = parents();
    let mut found: BTreeSet<u32> =
        parents.keys().copied().filter(|pid| has_in_environment(*pid, marker)).collect();
    found.extend(root.filter(|root| parents.contains_key(root)));
    with_descendants(&parents, found)
}

/// The process's descendants, without itself.
pub(crate) fn below(root: u32) -> BTreeSet<u32> {
    let parents = parents();
    let mut found = with_descendants(&parents, BTreeSet::from([root]));
    found.remove(&root);
    found
}

/// Every process with this entry in its environment.
pub(crate) fn marked(marker: &str) -> BTreeSet<u32> {
    of(None, marker)
}

fn with_descendants(parents: &BTreeMap<u32, u32>, mut found: BTreeSet<u32>) -> BTreeSet<u32> {
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found.remove(&std::process::id());
    found
}

/// The parent of each process that has not exited.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let (state, parent) = status_of(pid)?;
    (!matches!(state, 'Z' | 'X')).then_some(parent)
}

/// A process's state and parent.
fn status_of(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, including parentheses (proc_pid_stat(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

fn has_in_environment(pid: u32, marker: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    })
}

/// Ends the found processes: SIGTERM first, SIGKILL after the grace, until none is left. Returns how many remain: 0
/// unless the system does not permit it.
pub(crate) async fn end(
    find: impl Fn() -> BTreeSet<u32> + Clone + Send + 'static,
    grace: Duration,
) -> usize {
    let begun = Instant::now();
    let last = begun + grace + Duration::from_millis(KILL_MS_MAX);
    let mut asked = BTreeSet::new();
    loop {
        let find = find.clone();
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        let now = Instant::now();
        if found.is_empty() || now >= last {
            return found.len();
        }
        for pid in found {
            if now - begun >= grace {
                signal(pid, Signal::KILL);
            } else if asked.insert(pid) {
                signal(pid, Signal::TERM);
            }
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

pub(crate) fn signal(process: u32, signal: Signal) {
    if let Some(process) = pid(process) {
        // It may already have exited, which is fine.
        let _ = kill_process(process, signal);
    }
}

pub(crate) fn signal_group(process: u32, signal: Signal) {
    if let Some(process) = pid(process) {
        // It may already have exited, which is fine.
        let _ = kill_process_group(process, signal);
    }
}

/// Exited children of this process that have not been waited for.
pub(crate) fn zombies(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| status_of(*pid).is_some_and(|(state, found)| state == 'Z' && found == parent))
        .collect()
}
