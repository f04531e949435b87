//! The provider on its own, for trying any Daytona client against it.

use std::path::PathBuf;
use std::process::ExitCode;

use bobbin_local_daytona::{Confinement, Provider, Settings, opencode, sandbox_init_main};

const USAGE: &str = "usage: bobbin-daytona --state-dir DIR [--port N] [--key KEY] [--tools DIR]... [--cache DIR] \
    [--transition-ms N] [--unconfined]\n  --cache DIR  install OpenCode there and put it on PATH inside sandboxes";

fn main() -> ExitCode {
    if let Some(code) = sandbox_init_main() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let settings = settings().await?;
    let provider = Provider::start(settings)
        .await
        .map_err(|error| error.to_string())?;
    if let Confinement::None { why } = provider.confinement() {
        eprintln!("warning: sandboxes are not confined: {why}");
    }
    println!("DAYTONA_API_URL={}", provider.api_url());
    println!("DAYTONA_API_KEY={}", provider.api_key());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| error.to_string())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.map_err(|error| error.to_string())?,
        _ = terminate.recv() => {}
    }
    provider.stop().await;
    Ok(())
}

async fn settings() -> Result<Settings, String> {
    let mut settings = Settings::new(PathBuf::new(), "local".to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--unconfined" {
            settings.confine = false;
            continue;
        }
        let value = arguments.next().ok_or(USAGE)?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{argument} needs a number\n{USAGE}"))
        };
        match argument.as_str() {
            "--state-dir" => settings.state_dir = PathBuf::from(value),
            "--port" => settings.port = u16::try_from(number()?).map_err(|_| USAGE)?,
            "--key" => settings.api_key = value,
            "--tools" => settings.tools.push(PathBuf::from(value)),
            "--transition-ms" => settings.transition_ms = number()?,
            "--cache" => {
                let installed =
                    opencode::install(&PathBuf::from(value), |step| eprintln!("{step}")).await;
                settings
                    .tools
                    .push(installed.map_err(|error| error.to_string())?.bin_dir);
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    if settings.state_dir.as_os_str().is_empty() {
        Err(USAGE.to_owned())
    } else {
        Ok(settings)
    }
}
