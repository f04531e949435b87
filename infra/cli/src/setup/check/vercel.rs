//! Vercel: whether the token is valid and opens the project of the sandboxes.

use bobbin_sandbox::vercel::{Vercel, VercelAccount, VercelError};

use crate::setup::report::Report;
use crate::target::StackTarget;

/// Prefix of all stacks' sandbox names.
const PREFIX: &str = "bobbin-";

pub async fn check(target: &StackTarget, report: &mut Report) {
    let overrides = target.overrides();
    let Some(found) = target.key("vercel_token").await else {
        if overrides.providers.provider == "vercel" {
            report.wrong(
                "Vercel: no access token, so there can be no sandbox",
                "Set VERCEL_TOKEN: https://vercel.com/account/settings/tokens, with the team as its scope.",
            );
        }
        return;
    };
    let source = found.source;
    let account = VercelAccount {
        api: overrides.providers.vercel_api,
        token: found.value.expose().to_owned(),
        team: overrides.providers.vercel_team_id,
        project: overrides.providers.vercel_project_id,
    };
    let vercel = match Vercel::new(account) {
        Ok(vercel) => vercel,
        Err(why) => {
            return report.wrong(
                &format!("Vercel: vercel_api of the parameter Overrides: {why}"),
                "Deploy it with another one.",
            );
        }
    };
    let project = match vercel.project().await {
        Ok(project) => project,
        Err(error) => return refused(report, source, &error),
    };
    match vercel.list(PREFIX).await {
        Ok(listed) => report.right(&format!(
            "Vercel: the token of {source} opens the project {project}; it has {} Bobbin sandboxes",
            listed.len()
        )),
        Err(error) => refused(report, source, &error),
    }
}

fn refused(report: &mut Report, source: &str, error: &VercelError) {
    match error {
        VercelError::BadKey => report.wrong(
            &format!("Vercel: the token of {source} is refused"),
            "Create a new one at https://vercel.com/account/settings/tokens; tokens can expire.",
        ),
        VercelError::NoProject { setting } => report.wrong(
            &format!("Vercel: {setting} is not set, so there can be no sandbox"),
            "Set it in the parameter Overrides: the team's id is in the team's settings, the project's id in the project's settings.",
        ),
        VercelError::Forbidden { .. } | VercelError::NotFound => report.wrong(
            &format!("Vercel: the token of {source} does not open this team and project: {error}"),
            "Check vercel_team_id and vercel_project_id of the parameter Overrides, and the token's scope.",
        ),
        other => report.wrong(
            &format!("Vercel: the token could not be tried: {other}"),
            "Try again; check vercel_api of the parameter Overrides if you set it.",
        ),
    }
}
