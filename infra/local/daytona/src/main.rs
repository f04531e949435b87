//! The provider alone, for trying any Daytona client against it.

use std::path::PathBuf;
use std::process::ExitCode;

use bobbin_local_daytona::{LocalDaytona, LocalDaytonaSettings, opencode};
use bobbin_local_sandbox::program::{self, ARGUMENTS};

fn main() -> ExitCode {
    program::main(async {
        let provider = LocalDaytona::start(settings().await?).await;
        let provider = provider.map_err(|error| error.to_string())?;
        let (api, key) = (provider.api_url(), provider.api_key());
        let reached = format!("DAYTONA_API_URL={api}\nDAYTONA_API_KEY={key}");
        Ok((provider, reached))
    })
}

async fn settings() -> Result<LocalDaytonaSettings, String> {
    let mut settings = LocalDaytonaSettings::new(PathBuf::new(), "local".to_owned());
    let usage = format!(
        "usage: bobbin-daytona {ARGUMENTS} [--key KEY] [--cache DIR]\n  --cache DIR  install OpenCode there and put it on PATH inside sandboxes"
    );
    let (mut key, mut cache) = (None, None);
    program::arguments(&usage, &mut settings.run, |argument, value| {
        match argument {
            "--key" => key = Some(value.to_owned()),
            "--cache" => cache = Some(PathBuf::from(value)),
            _ => return false,
        }
        true
    })?;
    settings.api_key = key.unwrap_or(settings.api_key);
    if let Some(cache) = cache {
        let installed = opencode::install(&cache, |step| eprintln!("{step}")).await;
        let tools = installed.map_err(|error| error.to_string())?.bin_dir;
        settings.run.tools.push(tools);
    }
    Ok(settings)
}
