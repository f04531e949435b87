//! The serving half: sessions and their API.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::agents::Agents;
use crate::api;
use crate::arguments::DaemonArguments;
use crate::connections;
use crate::daemon_log;
use crate::driver::SharedServers;
use crate::host::Host;
use crate::limits::STOP_GRACE_MS;
use crate::process::{end_left_over, tree};
use crate::sessions::Sessions;

/// Serves until SIGTERM, sent by the reaping half, or by the system if that half was killed.
pub(crate) fn run(
    arguments: DaemonArguments,
    reaper: u32,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent != i32::try_from(reaper).ok() {
        return Err("the reaping half has ended".into());
    }
    daemon_log::begin(arguments.log.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(serve(arguments));
    // Tasks that still wait are not awaited.
    runtime.shutdown_background();
    served
}

async fn serve(arguments: DaemonArguments) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let agents = Agents::new(arguments.state.join("agents"), &arguments.acp)?;
    std::fs::create_dir_all(&arguments.state)?;
    let state_dir = arguments.state.canonicalize()?;
    let host = Arc::new(Host::open(&state_dir, agents)?);
    end_left_over(&host).await;
    let shared = Arc::new(SharedServers::default());
    let sessions = Arc::new(Sessions::open(host.clone(), shared.clone()).await?);
    let listener = TcpListener::bind((arguments.host, arguments.port)).await.map_err(|error| {
        format!(
            "cannot listen on {}:{}: {error}; give another --port, or 0 for a free one",
            arguments.host, arguments.port
        )
    })?;
    let address: SocketAddr = listener.local_addr()?;
    println!("bobbin-agentd listening on http://{address}");
    let app = api::router(sessions.clone(), host.clone(), shared, &arguments.token);
    tokio::select! {
        () = connections::serve(listener, app) => {}
        _ = terminate.recv() => {}
    }
    host.stopping();
    let own = std::process::id();
    tree::end(move || tree::below(own), Duration::from_millis(STOP_GRACE_MS)).await;
    end_left_over(&host).await;
    Ok(ExitCode::SUCCESS)
}
