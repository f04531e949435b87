//! CPU and memory of a stack's processes while it runs, by kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

/// Time between two checks. A process's use between its last check and its end is not counted.
const POLL: Duration = Duration::from_millis(1_000);
const KIB: u64 = 1024;

/// The use of one kind of process.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Kind {
    /// CPU of all of them, in seconds.
    pub cpu_s: f64,
    /// Most of them at once.
    pub processes: usize,
    /// Peak memory of one of them (resident), in bytes.
    pub one_bytes: u64,
    /// Peak memory of all together (resident; shared memory counts in each), in bytes.
    pub together_bytes: u64,
}

#[derive(Default)]
struct Samples {
    /// By process id: its kind and its CPU in nanoseconds.
    cpu: BTreeMap<u32, (&'static str, u64)>,
    kinds: BTreeMap<&'static str, Kind>,
}

/// Checks them until it is asked for the result.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    samples: Arc<Mutex<Samples>>,
    sampling: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the stack with this process id and this folder.
    pub fn start(stack: u32, folder: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(Mutex::new(Samples::default()));
        let (over, shared, folder) =
            (Arc::clone(&is_over), Arc::clone(&samples), folder.to_owned());
        let sampling = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                sample(stack, &folder, &shared);
                thread::sleep(POLL);
            }
            sample(stack, &folder, &shared);
        });
        Self { is_over, samples, sampling: Some(sampling) }
    }

    /// The measurements, by kind.
    pub fn end(mut self) -> BTreeMap<&'static str, Kind> {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(sampling) = self.sampling.take() {
            let _ = sampling.join();
        }
        self.so_far()
    }

    /// The same before the end.
    pub fn so_far(&self) -> BTreeMap<&'static str, Kind> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds = samples.kinds.clone();
        for (kind, ns) in samples.cpu.values() {
            kinds.entry(kind).or_default().cpu_s += *ns as f64 / 1e9;
        }
        kinds
    }
}

fn sample(stack: u32, folder: &Path, samples: &Mutex<Samples>) {
    let Ok(entries) = fs::read_dir("/proc") else {
        return;
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut now: BTreeMap<&'static str, Kind> = BTreeMap::new();
    let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
    for pid in pids {
        // One that ends meanwhile was counted before.
        let Some(kind) = kind(pid, stack, folder) else {
            continue;
        };
        let Some((bytes, peak)) = memory(pid) else {
            continue;
        };
        if let Some(ns) = cpu_ns(pid) {
            samples.cpu.insert(pid, (kind, ns));
        }
        let here = now.entry(kind).or_default();
        here.processes += 1;
        here.together_bytes += bytes;
        here.one_bytes = here.one_bytes.max(peak);
    }
    for (kind, here) in now {
        let most = samples.kinds.entry(kind).or_default();
        most.processes = most.processes.max(here.processes);
        most.together_bytes = most.together_bytes.max(here.together_bytes);
        most.one_bytes = most.one_bytes.max(here.one_bytes);
    }
}

/// The kind of a process; `None`: it does not belong to this stack.
fn kind(pid: u32, stack: u32, folder: &Path) -> Option<&'static str> {
    if pid == stack {
        return Some("engine");
    }
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    if let Ok(inside) = program.strip_prefix(folder) {
        let inside = inside.to_string_lossy();
        let functions = [("Ingress", "ingress"), ("Worker", "worker"), ("Sweeper", "sweeper")];
        let function = functions.iter().find(|(id, _)| inside.contains(id));
        return match function {
            Some((_, name)) => Some(name),
            None if inside.contains("agent") => Some("agents"),
            None => None,
        };
    }
    // The first process of each sandbox is the stack's own program.
    let own = fs::read_link(format!("/proc/{stack}/exe")).ok()?;
    (program == own).then_some("sandboxes")
}

/// Current and peak memory, in bytes.
fn memory(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((kib("VmRSS:")? * KIB, kib("VmHWM:")? * KIB))
}

/// CPU of all living threads of a process.
fn cpu_ns(pid: u32) -> Option<u64> {
    // User and system time of the process, its ended threads included, in hundredths of a second.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks * 10_000_000)
}
