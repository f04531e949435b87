//! The provider on its own, for trying any client of Vercel Sandbox against it.

use std::path::PathBuf;
use std::process::ExitCode;

use bobbin_local_vercel::{Confinement, Provider, Settings, sandbox_init_main};

const USAGE: &str = "usage: bobbin-vercel --state-dir DIR [--port N] [--token TOKEN] [--team ID] [--project ID] \
    [--tools DIR]... [--transition-ms N] [--unconfined]";

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
    let settings = settings()?;
    let (token, team, project) = (
        settings.token.clone(),
        settings.team_id.clone(),
        settings.project_id.clone(),
    );
    let provider = Provider::start(settings)
        .await
        .map_err(|error| error.to_string())?;
    if let Confinement::None { why } = provider.confinement() {
        eprintln!("warning: sandboxes are not confined: {why}");
    }
    println!("VERCEL_API_URL={}", provider.api_url());
    println!("VERCEL_TOKEN={token}\nVERCEL_TEAM_ID={team}\nVERCEL_PROJECT_ID={project}");
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| error.to_string())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.map_err(|error| error.to_string())?,
        _ = terminate.recv() => {}
    }
    provider.stop().await;
    Ok(())
}

fn settings() -> Result<Settings, String> {
    let local = || "local".to_owned();
    let mut settings = Settings::new(
        PathBuf::new(),
        local(),
        "team_local".to_owned(),
        "prj_local".to_owned(),
    );
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
            "--token" => settings.token = value,
            "--team" => settings.team_id = value,
            "--project" => settings.project_id = value,
            "--tools" => settings.tools.push(PathBuf::from(value)),
            "--transition-ms" => settings.transition_ms = number()?,
            _ => return Err(USAGE.to_owned()),
        }
    }
    if settings.state_dir.as_os_str().is_empty() {
        Err(USAGE.to_owned())
    } else {
        Ok(settings)
    }
}
