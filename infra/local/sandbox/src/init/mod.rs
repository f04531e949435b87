//! The first process of a sandbox: a mode of the provider's program.
//!
//! It runs what the provider requests, so that a server started by a command outlives that command. When its standard
//! input ends, because the provider stopped or was killed, it ends every process of the sandbox and itself. It listens
//! on nothing, except for the forwarded connections of a sandbox with its own network.

mod commands;
mod files;
mod network;
mod process;
pub mod protocol;
mod sessions;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use axum::body::Bytes;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use crate::limits::CALLS_MAX;
use crate::processes::{ProcessSet, SANDBOX_VARIABLE, STATE_DIR_VARIABLE, UNCONFINED_VARIABLE};
use commands::Commands;
use files::Ground;
use protocol::{InitCall, InitRefusal, InitReply, Op, codec};
use sessions::ShellSessions;

/// First argument that selects this mode.
pub(crate) const ARGUMENT: &str = "--sandbox-init";

/// Runs as a sandbox's first process if the arguments say so.
///
/// Call it first in `main` of the program that starts a provider: the provider starts that program again for each
/// sandbox. `None` means an ordinary start.
#[must_use]
pub fn sandbox_init_main() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != ARGUMENT) {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(serve()),
        Err(error) => Err(error),
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox init: {error}");
            ExitCode::FAILURE
        }
    })
}

async fn serve() -> std::io::Result<()> {
    // The provider's own umask is stricter than programs inside expect.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| {
            std::io::Error::other(format!("{name} is not set; only the provider starts this"))
        })
    };
    let processes =
        ProcessSet::of_sandbox(&variable(STATE_DIR_VARIABLE)?, &variable(SANDBOX_VARIABLE)?);
    let home = PathBuf::from(variable("HOME")?);
    let confined = std::env::var_os(UNCONFINED_VARIABLE).is_none();
    // Bubblewrap started by root cannot do this: it may not enter a home that only its user can read.
    std::env::set_current_dir(&home)?;

    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let output = FramedWrite::new(pipe::Sender::from_owned_fd(output)?, codec());
    let (replies, queue) = mpsc::channel::<InitReply>(CALLS_MAX);
    let writer = tokio::spawn(write_replies(output, queue));
    network::forward_ports().await?;
    let greeting = InitReply { id: 0, outcome: Ok(json!({ "pid": std::process::id() })) };
    replies.send(greeting).await.map_err(std::io::Error::other)?;

    let ground = Arc::new(Ground { home, confined });
    let grace_ms = answer_calls(&replies, &ground).await?;
    processes.end(grace_ms).await;
    writer.abort();
    Ok(())
}

async fn write_replies(
    mut output: FramedWrite<pipe::Sender, LengthDelimitedCodec>,
    mut queue: mpsc::Receiver<InitReply>,
) {
    while let Some(reply) = queue.recv().await {
        let frame = serde_json::to_vec(&reply).unwrap_or_default();
        if output.send(Bytes::from(frame)).await.is_err() {
            return;
        }
    }
}

/// Performs calls until the provider says to stop, or is gone. Returns the grace period for processes.
async fn answer_calls(
    replies: &mpsc::Sender<InitReply>,
    ground: &Arc<Ground>,
) -> std::io::Result<u64> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut calls = FramedRead::new(pipe::Receiver::from_owned_fd(input)?, codec());
    let sessions = Arc::new(ShellSessions::new(std::env::temp_dir().join(".sessions")));
    let commands = Arc::new(Commands::default());
    let permits = Arc::new(Semaphore::new(CALLS_MAX));
    while let Some(Ok(frame)) = calls.next().await {
        let Ok(call) = serde_json::from_slice::<InitCall>(&frame) else {
            break;
        };
        if let Op::Shutdown { grace_ms } = call.op {
            return Ok(grace_ms);
        }
        let permit = permits.clone().acquire_owned();
        let permit = permit.await.map_err(std::io::Error::other)?;
        let (replies, ground) = (replies.clone(), Arc::clone(ground));
        let (sessions, commands) = (sessions.clone(), commands.clone());
        tokio::spawn(async move {
            let reply = InitReply {
                id: call.id,
                outcome: perform(call.op, &sessions, &commands, &ground).await,
            };
            // If the provider is gone, the end of the input tells, and this process ends too.
            let _ = replies.send(reply).await;
            drop(permit);
        });
    }
    Ok(0)
}

async fn perform(
    op: Op,
    sessions: &ShellSessions,
    commands: &Commands,
    ground: &Arc<Ground>,
) -> Result<Value, InitRefusal> {
    let home = ground.home.as_path();
    match op {
        Op::Execute { command, env, cwd, timeout_ms } => {
            let cwd = cwd.map_or_else(|| home.to_path_buf(), |cwd| home.join(cwd));
            process::execute(&command, &env, &cwd, timeout_ms).await
        }
        Op::SessionCreate { session, env } => sessions.create(&session, &env, home).await,
        Op::SessionRun { session, command, wait } => sessions.run(&session, &command, wait).await,
        Op::SessionList => Ok(sessions.list().await),
        Op::SessionGet { session } => sessions.get(&session).await,
        Op::SessionCommand { session, command } => sessions.command(&session, &command).await,
        Op::SessionLogs { session, command } => sessions.logs(&session, &command).await,
        Op::SessionInput { session, command, data } => {
            sessions.input(&session, &command, &data).await
        }
        Op::SessionDelete { session } => sessions.delete(&session).await,
        Op::Spawn { argv, env, cwd, timeout_ms } => {
            let cwd = cwd.map_or_else(|| home.to_path_buf(), |cwd| home.join(cwd));
            commands.spawn(&argv, &env, &cwd, timeout_ms).await
        }
        Op::Follow { command, from, wait_ms } => commands.follow(&command, from, wait_ms).await,
        Op::Signal { command, signal } => commands.signal(&command, signal).await,
        Op::Connect { port, ticket } => network::connect(port, ticket)
            .await
            .map(|()| Value::Null)
            .map_err(InitRefusal::not_found),
        Op::Shutdown { .. } => Ok(Value::Null),
        file => {
            let ground = Arc::clone(ground);
            tokio::task::spawn_blocking(move || files::perform(file, &ground))
                .await
                .unwrap_or_else(|error| Err(InitRefusal::internal(error)))
        }
    }
}
