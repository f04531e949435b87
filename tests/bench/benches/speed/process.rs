//! A program that is measured: started with an environment of its own, looked at while it runs, and ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::runtime::{Answered, RuntimeApi, WAIT_MAX};

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct Program {
    /// As it stands in the table.
    pub name: String,
    /// The executable.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// All of its environment but what differs from run to run.
    pub environment: Vec<(String, String)>,
}

/// A started program.
pub struct Running {
    /// Its Runtime API.
    pub api: RuntimeApi,
    /// Just before it was started.
    pub started: Instant,
    child: Child,
    /// CPU of all the children that have ended before.
    before: Duration,
}

impl Program {
    /// Starts it, with these events waiting for it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, events: Vec<Vec<u8>>) -> io::Result<Running> {
        let api = RuntimeApi::start()?;
        api.give(events);
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
        Ok(Running {
            api,
            started,
            child,
            before,
        })
    }
}

/// Between two looks whether a program still lives.
const LOOK: Duration = Duration::from_millis(200);

impl Running {
    /// Waits until everything is answered and the program asks for more; takes the answers.
    ///
    /// # Errors
    /// What the program did instead.
    pub fn answers(&mut self) -> Result<Vec<Answered>, String> {
        self.wait(|api| api.answers(LOOK))
    }

    /// Waits until the program asks for work; answers when it did so for the first time.
    ///
    /// # Errors
    /// What the program did instead.
    pub fn first_asked(&mut self) -> Result<Instant, String> {
        self.wait(|api| api.first_asked(LOOK))
    }

    fn wait<T>(
        &mut self,
        look: impl Fn(&RuntimeApi) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let start = Instant::now();
        while start.elapsed() < WAIT_MAX {
            if let Some(seen) = look(&self.api)? {
                return Ok(seen);
            }
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("it ended: {status}"));
            }
        }
        Err(format!("nothing was seen of it within {WAIT_MAX:?}"))
    }

    /// CPU of its threads so far.
    ///
    /// # Errors
    /// If it has ended.
    pub fn cpu(&self) -> io::Result<Duration> {
        cpu_of(self.child.id())
    }

    /// Most memory that it has held at once (resident), in bytes.
    ///
    /// # Errors
    /// If it has ended.
    pub fn peak_bytes(&self) -> io::Result<u64> {
        self.status_bytes("VmHWM:")
    }

    /// Memory that it holds now (resident), in bytes.
    ///
    /// # Errors
    /// If it has ended.
    pub fn held_bytes(&self) -> io::Result<u64> {
        self.status_bytes("VmRSS:")
    }

    fn status_bytes(&self, name: &str) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: Option<u64> = kib.and_then(|kib| kib.parse().ok());
        kib.map(|kib| kib * 1024)
            .ok_or_else(|| io::Error::other(format!("no {name}")))
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

    /// Ends it; answers the CPU (user and system) of its whole life.
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
