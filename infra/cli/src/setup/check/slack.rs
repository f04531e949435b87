//! Slack: the token's app, its missing scopes, and whether the signing secret is well-formed.

use std::collections::BTreeSet;

use bobbin_chat::slack::manifest::scopes;
use bobbin_chat::slack::{AppInstallation, SlackError};

use super::lists;
use crate::setup::report::Report;
use crate::target::StackTarget;

/// Hex digits of a signing secret.
const SIGNING_SECRET_DIGITS: usize = 32;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let token = target.key("slack_bot_token").await;
    let secret = target.key("slack_signing_secret").await;
    let (Some(token), Some(secret)) = (&token, &secret) else {
        match (token, secret) {
            (None, None) => report.note("Slack: no bot token (SLACK_BOT_TOKEN) and no signing secret (SLACK_SIGNING_SECRET), so it stays off"),
            (Some(_), None) => report.wrong("Slack: there is a bot token but no signing secret", "Set SLACK_SIGNING_SECRET: https://api.slack.com/apps, the app, Basic Information, App Credentials."),
            _ => report.wrong("Slack: there is a signing secret but no bot token", "Set SLACK_BOT_TOKEN: https://api.slack.com/apps, the app, OAuth & Permissions, after Install to Workspace."),
        }
        return;
    };
    let plain = secret.value.expose();
    if plain.len() != SIGNING_SECRET_DIGITS || !plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        report.wrong(
            &format!("Slack: what {} holds is not a signing secret: one has {SIGNING_SECRET_DIGITS} hex digits", secret.source),
            "Use the Signing Secret from Basic Information, App Credentials, not the client secret or the verification token.",
        );
    }
    let installed = match target.slack(&token.value) {
        Ok(slack) => slack.installed().await,
        Err(why) => {
            report.wrong(&format!("Slack: {why}"), "");
            return;
        }
    };
    match installed {
        Ok(installed) => installed_app(target, report, &installed, token.source).await,
        Err(SlackError::Token { error }) => report.wrong(
            &format!("Slack: the bot token of {} is refused ({error})", token.source),
            "Use the Bot User OAuth Token (xoxb-) from OAuth & Permissions; installing the app again creates a new one.",
        ),
        Err(error) => report.wrong(
            &format!("Slack: the bot token could not be tried: {error}"),
            "Try again; check --slack-api if you set it.",
        ),
    }
}

async fn installed_app(
    target: &StackTarget,
    report: &mut Report,
    app: &AppInstallation,
    source: &str,
) {
    let team = &app.identity.team;
    if app.identity.bot.is_empty() {
        report.wrong(
            &format!("Slack: the token of {source} is a person's, not a bot's"),
            "Use the Bot User OAuth Token (xoxb-) from OAuth & Permissions.",
        );
        return;
    }
    report.right(&format!(
        "Slack: the bot token of {source} is that of {} in the workspace {} ({team})",
        app.identity.user, app.team_name
    ));
    told_scopes(report, app.scopes.as_deref());
    if target.stack().await.is_ok() && !lists(target.parameter("AllowedTeams"), team) {
        report.wrong(
            &format!("Slack: AllowedTeams does not list {team}, so nobody may use it there"),
            &target.sam_deploy_listing("AllowedTeams", team),
        );
    }
}

fn told_scopes(report: &mut Report, has: Option<&[String]>) {
    let Some(has) = has else {
        report.note("Slack: it did not say which scopes the token has");
        return;
    };
    let has: BTreeSet<&str> = has.iter().map(String::as_str).collect();
    let needed = scopes();
    let missing: Vec<&str> = needed.difference(&has).copied().collect();
    let more: Vec<&str> = has.difference(&needed).copied().collect();
    if missing.is_empty() {
        report.right(&format!("Slack: it has the {} needed scopes", needed.len()));
    } else {
        report.wrong(
            &format!("Slack: it lacks {}", missing.join(", ")),
            "Paste the manifest of bobbin slack manifest under App Manifest, then install the app again under OAuth & Permissions.",
        );
    }
    if !more.is_empty() {
        report.note(&format!("Slack: it has more scopes than needed: {}", more.join(", ")));
    }
}
