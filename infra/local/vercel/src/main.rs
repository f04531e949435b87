//! The provider alone, for trying any client of Vercel Sandbox against it.

use std::path::PathBuf;
use std::process::ExitCode;

use bobbin_local_sandbox::program::{self, ARGUMENTS};
use bobbin_local_vercel::{LocalVercel, LocalVercelSettings};

fn main() -> ExitCode {
    program::main(async {
        let settings = settings()?;
        let (token, team, project) =
            (settings.token.clone(), settings.team_id.clone(), settings.project_id.clone());
        let provider = LocalVercel::start(settings).await;
        let provider = provider.map_err(|error| error.to_string())?;
        let api = provider.api_url();
        let reached = format!(
            "VERCEL_API_URL={api}\nVERCEL_TOKEN={token}\nVERCEL_TEAM_ID={team}\nVERCEL_PROJECT_ID={project}"
        );
        Ok((provider, reached))
    })
}

fn settings() -> Result<LocalVercelSettings, String> {
    let text = str::to_owned;
    let (mut token, mut team, mut project) = (text("local"), text("team_local"), text("prj_local"));
    let mut settings =
        LocalVercelSettings::new(PathBuf::new(), String::new(), String::new(), String::new());
    let usage =
        format!("usage: bobbin-vercel {ARGUMENTS} [--token TOKEN] [--team ID] [--project ID]");
    program::arguments(&usage, &mut settings.run, |argument, value| {
        match argument {
            "--token" => token = text(value),
            "--team" => team = text(value),
            "--project" => project = text(value),
            _ => return false,
        }
        true
    })?;
    Ok(LocalVercelSettings { run: settings.run, token, team_id: team, project_id: project })
}
