//! The forge alone, for trying any client of GitHub against it.

use std::path::PathBuf;
use std::process::ExitCode;

use bobbin_local_forge::{ForgeSettings, LocalForge};
use bobbin_local_sandbox::random::token;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: bobbin-forge --state-dir DIR [--api-port N] [--web-port N] [--webhook URL] [--callback URL]...";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(|error| error.to_string()).and_then(|it| it.block_on(run()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let key = token(32);
    let mut settings = ForgeSettings::new(PathBuf::new(), key.clone().into());
    let (mut webhook, mut callbacks) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.parse().map_err(|_| format!("{argument} needs a number\n{USAGE}"));
        match argument.as_str() {
            "--state-dir" => settings.state_dir = PathBuf::from(value),
            "--api-port" => settings.api_port = number()?,
            "--web-port" => settings.web_port = number()?,
            "--webhook" => webhook = Some(value),
            "--callback" => callbacks.push(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if settings.state_dir.as_os_str().is_empty() {
        return Err(USAGE.to_owned());
    }
    let forge = LocalForge::start(settings).await.map_err(|error| error.to_string())?;
    forge.set_app_addresses(webhook, callbacks, None)?;
    let listen = |kind| signal(kind).map_err(|error| error.to_string());
    // Install the handlers first: a reader of the address may stop the program at once.
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let identity = serde_json::to_string_pretty(&forge.identity());
    let identity = identity.map_err(|error| error.to_string())?;
    println!(
        "GITHUB_API={}\nGITHUB_GIT={}\nCONTROL_KEY={key}\n{identity}",
        forge.api(),
        forge.git()
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    forge.stop().await;
    Ok(())
}
