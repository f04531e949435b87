//! A measured program: started with its own environment, checked while it runs, and ended.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bobbin_local_aws::{Invoked, RuntimeApi};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long a process may take for anything before the measurement is given up.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Time between two checks whether a program still lives.
const POLL: Duration = Duration::from_millis(200);
/// The worker's, the longest of the three.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(900);

/// A program and how it is run.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name in the table.
    pub name: String,
    pub executable: PathBuf,
    pub arguments: Vec<String>,
    /// Its environment, without what differs between runs.
    pub environment: Vec<(String, String)>,
}

pub struct Running {
    /// Just before it was started.
    pub started: Instant,
    api: RuntimeApi,
    child: Child,
    /// CPU of all children that have ended before.
    before: Duration,
}

/// The runtime for the measurement's asynchronous work.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Runtime::new().expect("a system with threads"));
    &RUNTIME
}

impl Program {
    /// The value of a variable of its environment, empty if there is none.
    #[must_use]
    pub fn variable(&self, name: &str) -> &str {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> io::Result<Running> {
        let api = runtime().block_on(RuntimeApi::start(Ipv4Addr::LOCALHOST.into()))?;
        let mut command = Command::new(&self.executable);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("AWS_LAMBDA_RUNTIME_API", api.address())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let before = cpu_of_ended()?;
        let started = Instant::now();
        let child = command.spawn()?;
        Ok(Running { started, api, child, before })
    }
}

impl Running {
    /// Gives it an event and waits for the answer.
    ///
    /// # Errors
    /// What the program did instead.
    pub fn invoke(&mut self, event: Vec<u8>) -> Result<Invoked, String> {
        self.invoke_watched(event, WAIT_MAX, POLL, |_| Ok(()))
    }

    /// The same within this time; from time to time `look` checks the process with this id.
    ///
    /// # Errors
    /// What the program did instead, and what the look finds wrong.
    pub fn invoke_watched(
        &mut self,
        event: Vec<u8>,
        within: Duration,
        every: Duration,
        mut look: impl FnMut(u32) -> Result<(), String>,
    ) -> Result<Invoked, String> {
        let id = self.child.id();
        let mut invoked = pin!(self.api.invoke(event, FUNCTION_TIMEOUT));
        let answered = wait(&mut self.child, within, every, &mut invoked, || look(id))?;
        answered.ok_or_else(|| "it asked for the next event instead of answering".to_owned())
    }

    /// Waits until the program asks for work; returns when it first did.
    ///
    /// # Errors
    /// What the program did instead.
    pub fn first_asked(&mut self) -> Result<Instant, String> {
        let mut asked = pin!(self.api.first_asked());
        wait(&mut self.child, WAIT_MAX, POLL, &mut asked, || Ok(()))
    }

    /// CPU of its threads so far.
    ///
    /// # Errors
    /// If it has ended.
    pub fn cpu(&self) -> io::Result<Duration> {
        cpu_of(self.child.id())
    }

    /// Its peak memory (resident), in bytes.
    ///
    /// # Errors
    /// If it has ended.
    pub fn peak_bytes(&self) -> io::Result<u64> {
        peak_bytes_of(self.child.id())
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn terminate(mut self) -> io::Result<()> {
        let id = i32::try_from(self.child.id()).map_err(io::Error::other)?;
        kill(Pid::from_raw(id), Signal::SIGTERM)?;
        self.child.wait().map(drop)
    }

    /// Ends it; returns the CPU (user and system) of its whole life.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub fn end(mut self) -> io::Result<Duration> {
        self.child.kill()?;
        self.child.wait()?;
        // One child runs at a time, so the rest is this one's.
        Ok(cpu_of_ended()?.saturating_sub(self.before))
    }
}

/// Waits for a program's output; fails if it exits first.
fn wait<T>(
    child: &mut Child,
    within: Duration,
    every: Duration,
    coming: &mut (impl Future<Output = T> + Unpin),
    mut look: impl FnMut() -> Result<(), String>,
) -> Result<T, String> {
    let start = Instant::now();
    while start.elapsed() < within {
        let came = runtime().block_on(async { timeout(every, &mut *coming).await });
        if let Ok(came) = came {
            return Ok(came);
        }
        look()?;
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Err(format!("it ended: {status}"));
        }
    }
    Err(format!("nothing was seen of it within {within:?}"))
}

/// The peak memory of a process (resident), in bytes.
///
/// # Errors
/// If it has ended.
pub fn peak_bytes_of(pid: u32) -> io::Result<u64> {
    status_bytes(pid, "VmHWM:")
}

/// The current memory of a process (resident), in bytes.
///
/// # Errors
/// If it has ended.
pub fn held_bytes(pid: u32) -> io::Result<u64> {
    status_bytes(pid, "VmRSS:")
}

fn status_bytes(pid: u32, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: Option<u64> = kib.and_then(|kib| kib.parse().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other(format!("no {name}")))
}

/// CPU of a process's threads so far.
///
/// # Errors
/// If it has ended.
pub fn cpu_of(pid: u32) -> io::Result<Duration> {
    let mut ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        ns += on_cpu_ns(&task?.path())?;
    }
    Ok(Duration::from_nanos(ns))
}

fn on_cpu_ns(task: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let first = text.split_whitespace().next();
    let ns = first.and_then(|ns| ns.parse().ok());
    ns.ok_or_else(|| io::Error::other("this kernel counts no CPU time a thread"))
}

fn cpu_of_ended() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |at: nix::sys::time::TimeVal| {
        u64::try_from(at.tv_sec() * 1_000_000 + at.tv_usec()).unwrap_or(0)
    };
    let total = micros(usage.user_time()) + micros(usage.system_time());
    Ok(Duration::from_micros(total))
}
