//! The reaping half: parent of the serving half, and of orphaned descendants.
//!
//! Promised: on SIGTERM and SIGINT everything ends within a second; when the serving half was killed, all its
//! descendants end before another one starts; no zombie stays.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::arguments::{DaemonArguments, TOKEN_VARIABLE};
use crate::limits::{LOOK_MS, RESTART_ROW_MS, RESTARTS_MAX, STOP_MS_MAX};
use crate::process::tree;

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReaperError {
    #[error("its processes cannot be watched: {0}")]
    System(#[from] std::io::Error),
    #[error("it was killed {RESTARTS_MAX} times in a row and is not started again")]
    KeepsEnding,
}

/// How the serving half ended.
enum ServingEnd {
    /// It exited by itself with this status, and has reported why.
    Exited(u8),
    Killed,
    /// The daemon was asked to stop.
    Asked,
}

/// Runs until a signal arrives or the serving half exits by itself.
pub(crate) fn run(mut arguments: DaemonArguments) -> Result<ExitCode, Box<dyn std::error::Error>> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if arguments.port == 0 {
        // Chosen here, so that a restarted serving half has the same port.
        let free = std::net::TcpListener::bind((arguments.host, 0))?;
        arguments.port = free.local_addr()?.port();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(supervise(&arguments))?)
}

async fn supervise(arguments: &DaemonArguments) -> Result<ExitCode, ReaperError> {
    let mut ends = Ends {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        stdin: arguments.while_stdin.then(end_of_stdin),
    };
    let mut adopted = signal(SignalKind::child())?;
    let mut row = 0;
    loop {
        let begun = Instant::now();
        let mut child = serving_half(arguments)?;
        let end = watch(&mut child, &mut ends, &mut adopted).await;
        let grace = match end {
            ServingEnd::Asked => Duration::from_millis(STOP_MS_MAX),
            ServingEnd::Exited(_) | ServingEnd::Killed => Duration::ZERO,
        };
        if let (ServingEnd::Asked, Some(pid)) = (&end, child.id()) {
            // It ends its own agents itself, in order.
            tree::signal(pid, Signal::TERM);
            // Beyond the bound it is killed below with all others.
            let _ = tokio::time::timeout(grace, child.wait()).await;
        }
        end_all(&mut child).await;
        match end {
            ServingEnd::Asked => return Ok(ExitCode::SUCCESS),
            ServingEnd::Exited(status) => return Ok(ExitCode::from(status)),
            ServingEnd::Killed => {}
        }
        if begun.elapsed() > Duration::from_millis(RESTART_ROW_MS) {
            row = 0;
        }
        row += 1;
        if row > RESTARTS_MAX {
            return Err(ReaperError::KeepsEnding);
        }
        eprintln!("bobbin-agentd: the serving half was killed and is started again");
    }
}

/// Requests to stop the daemon.
struct Ends {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Ends {
    async fn come(&mut self) {
        let stdin = async {
            match &mut self.stdin {
                // An error means that the reading thread has ended.
                Some(ended) => drop(ended.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = stdin => {}
        }
    }
}

/// Reports the end of standard input, from a separate thread that ends with the process: the read cannot be cancelled.
fn end_of_stdin() -> oneshot::Receiver<()> {
    let (sender, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Whatever the result, the other end is closed.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(sender);
    });
    ended
}

fn serving_half(arguments: &DaemonArguments) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--serve", &std::process::id().to_string()])
        .args(["--host", &arguments.host.to_string()])
        .args(["--port", &arguments.port.to_string()])
        .arg("--state")
        .arg(&arguments.state)
        .env(TOKEN_VARIABLE, &arguments.token);
    if let Some(log) = &arguments.log {
        command.arg("--log").arg(log);
    }
    for agent in &arguments.acp {
        command.arg("--acp").arg(agent);
    }
    command
        .stdin(std::process::Stdio::null())
        // The terminal's Ctrl-C is for this half, which then ends the other.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn watch(
    child: &mut Child,
    ends: &mut Ends,
    adopted: &mut tokio::signal::unix::Signal,
) -> ServingEnd {
    loop {
        tokio::select! {
            status = child.wait() => {
                return match status.ok().and_then(|status| status.code()) {
                    Some(code) => ServingEnd::Exited(u8::try_from(code).unwrap_or(1)),
                    None => ServingEnd::Killed,
                };
            }
            () = ends.come() => return ServingEnd::Asked,
            _ = adopted.recv() => bury(child.id()),
        }
    }
}

/// Reaps every exited child except the serving half, which the runtime waits for.
fn bury(spared: Option<u32>) {
    for pid in tree::zombies(std::process::id()) {
        if Some(pid) == spared {
            continue;
        }
        if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
            // Somebody else may already have waited for it.
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills all descendants until none is left.
async fn end_all(child: &mut Child) {
    let own = std::process::id();
    loop {
        let left = tree::end(move || tree::below(own), Duration::ZERO).await;
        // A zombie has no children any more.
        let _ = child.try_wait();
        bury(child.id());
        if left == 0 {
            return;
        }
        tracing::error!(left, "processes cannot be ended");
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}
