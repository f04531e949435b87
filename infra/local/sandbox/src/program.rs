//! A provider as a separate program, for trying any client against it.

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::confine::Confinement;
use crate::init::sandbox_init_main;
use crate::settings::RunSettings;

/// Arguments of every provider's program, for its usage.
pub const ARGUMENTS: &str =
    "--state-dir DIR [--port N] [--tools DIR]... [--transition-ms N] [--unconfined]";

/// A running provider.
pub trait RunningProvider {
    /// Confinement of its sandboxes.
    fn confinement(&self) -> &Confinement;

    /// Stops it.
    fn end(self) -> impl Future<Output = ()>;
}

/// Runs a provider until the program is ended; first prints the text from `start` about how to reach it.
pub fn main<P: RunningProvider>(
    start: impl Future<Output = Result<(P, String), String>>,
) -> ExitCode {
    if let Some(code) = sandbox_init_main() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result =
        runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(start)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run<P: RunningProvider>(
    start: impl Future<Output = Result<(P, String), String>>,
) -> Result<(), String> {
    let (provider, reached) = start.await?;
    if let Confinement::None { why } = provider.confinement() {
        eprintln!("warning: sandboxes are not confined: {why}");
    }
    // Install the handlers first: a reader of the address may stop the program at once.
    let listen = |kind| signal(kind).map_err(|error| error.to_string());
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    println!("{reached}");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    provider.end().await;
    Ok(())
}

/// Parses the program's arguments: [`ARGUMENTS`] into `run`, and options with a value that `own` accepts.
///
/// # Errors
/// The usage, if an argument is unknown or lacks its value, or no state folder is named.
pub fn arguments(
    usage: &str,
    run: &mut RunSettings,
    mut own: impl FnMut(&str, &str) -> bool,
) -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--unconfined" {
            run.confine = false;
            continue;
        }
        let value = arguments.next().ok_or(usage)?;
        let needs_number = || format!("{argument} needs a number\n{usage}");
        match argument.as_str() {
            "--state-dir" => run.state_dir = PathBuf::from(value),
            "--port" => run.port = value.parse().map_err(|_| needs_number())?,
            "--tools" => run.tools.push(PathBuf::from(value)),
            "--transition-ms" => run.transition_ms = value.parse().map_err(|_| needs_number())?,
            other if own(other, &value) => {}
            _ => return Err(usage.to_owned()),
        }
    }
    if run.state_dir.as_os_str().is_empty() { Err(usage.to_owned()) } else { Ok(()) }
}
