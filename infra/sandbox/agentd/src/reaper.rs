//! The half that reaps: parent of the serving half, and of whatever loses its parent below it.
//!
//! Promised: on SIGTERM and SIGINT everything ends within a second; when the serving half was killed, all that descends
//! from it ends before another is started; no zombie stays.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::arguments::{Arguments, TOKEN_VARIABLE};
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

/// How the serving half came to its end.
enum End {
    /// By itself, with this status: it said why.
    Exited(u8),
    Killed,
    /// Somebody wants the daemon to end.
    Asked,
}

/// Runs until a signal comes or the serving half ends by itself.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Box<dyn std::error::Error>> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if arguments.port == 0 {
        // Chosen here, so that a serving half that is started again has the port of the one before.
        let free = std::net::TcpListener::bind((arguments.host, 0))?;
        arguments.port = free.local_addr()?.port();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(supervise(&arguments))?)
}

async fn supervise(arguments: &Arguments) -> Result<ExitCode, ReaperError> {
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
            End::Asked => Duration::from_millis(STOP_MS_MAX),
            End::Exited(_) | End::Killed => Duration::ZERO,
        };
        if let (End::Asked, Some(pid)) = (&end, child.id()) {
            // Its own agents it ends by itself, in order.
            tree::signal(pid, Signal::TERM);
            // Over the bound it is killed below with all others.
            let _ = tokio::time::timeout(grace, child.wait()).await;
        }
        end_all(&mut child).await;
        match end {
            End::Asked => return Ok(ExitCode::SUCCESS),
            End::Exited(status) => return Ok(ExitCode::from(status)),
            End::Killed => {}
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

/// What asks the daemon to end.
struct Ends {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Ends {
    async fn come(&mut self) {
        let stdin = async {
            match &mut self.stdin {
                // An error means that nobody reads any more: the thread has ended.
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

/// Tells when standard input ends. In a thread of its own, which ends with the process: a read of it cannot be given up.
fn end_of_stdin() -> oneshot::Receiver<()> {
    let (sender, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // However it ends, nobody is at the other end any more.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(sender);
    });
    ended
}

fn serving_half(arguments: &Arguments) -> std::io::Result<Child> {
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
) -> End {
    loop {
        tokio::select! {
            status = child.wait() => {
                return match status.ok().and_then(|status| status.code()) {
                    Some(code) => End::Exited(u8::try_from(code).unwrap_or(1)),
                    None => End::Killed,
                };
            }
            () = ends.come() => return End::Asked,
            _ = adopted.recv() => bury(child.id()),
        }
    }
}

/// Takes the status of every child that has ended but the serving half, which the runtime waits for.
fn bury(spared: Option<u32>) {
    for pid in tree::zombies(std::process::id()) {
        if Some(pid) == spared {
            continue;
        }
        if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
            // It is gone if somebody else has waited for it.
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills all that descends from here, until nothing is left.
async fn end_all(child: &mut Child) {
    let own = std::process::id();
    loop {
        let left = tree::end(move || tree::below(own), Duration::ZERO).await;
        // Whoever is dead and not buried has no children any more.
        let _ = child.try_wait();
        bury(child.id());
        if left == 0 {
            return;
        }
        tracing::error!(left, "processes cannot be ended");
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}
