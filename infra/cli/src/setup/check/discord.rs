//! Discord: the token's application, and whether the stack and the application match.

use bobbin_chat::discord::{Application, DiscordError};

use crate::setup::discord::invitation;
use crate::setup::report::Report;
use crate::target::StackTarget;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let Some(found) = target.key("discord_bot_token").await else {
        report.note("Discord: no bot token (DISCORD_BOT_TOKEN), so it stays off");
        return;
    };
    let source = found.source;
    let app = match target.discord_application(&found.value).await {
        Ok(app) => app,
        Err(DiscordError::Revoked) => {
            report.wrong(
                &format!("Discord: the bot token of {source} is refused"),
                "Tokens are shown once and become invalid when they are reset: in the developer portal, open the application, then Bot, then Reset Token.",
            );
            return;
        }
        Err(error) => {
            report.wrong(
                &format!("Discord: the bot token could not be tried: {error}"),
                "Try again; check --discord-api if you set it.",
            );
            return;
        }
    };
    report.right(&format!(
        "Discord: the bot token of {source} is that of the application {} ({})",
        app.name, app.id
    ));
    match target.stack().await {
        Ok(_) => {
            agrees(target, report, &app);
            endpoint(target, report, &app).await;
        }
        Err(_) => report.note(&format!(
            "Discord: for sam deploy, DiscordApplicationId={} DiscordPublicKey={}",
            app.id, app.verify_key
        )),
    }
    report.note(&format!(
        "Discord: people who manage a server add the application with this link; it asks for no privileged intent:\n{}",
        invitation(&app.id)
    ));
}

/// Whether the stack has the token's application id and public key.
fn agrees(target: &StackTarget, report: &mut Report, app: &Application) {
    let pairs =
        [("DiscordApplicationId", app.id.as_str()), ("DiscordPublicKey", app.verify_key.as_str())];
    let differs: Vec<String> = pairs
        .iter()
        .filter(|(name, right)| {
            !target.parameter(name).is_some_and(|set| set.eq_ignore_ascii_case(right))
        })
        .map(|(name, right)| format!("{name}={right}"))
        .collect();
    if differs.is_empty() {
        report.right("Discord: the stack has that application's id and public key");
    } else {
        report.wrong(
            "Discord: the stack has another application's id or public key, or none; it would refuse Discord's requests",
            &target.sam_deploy(&differs.join(" ")),
        );
    }
    if target.parameter("AllowedGuilds").is_none() {
        report.wrong(
            "Discord: AllowedGuilds is empty, so nobody may use it there",
            &format!(
                "{}, the server's id: with Developer Mode on, Copy ID in the server's menu",
                target.sam_deploy("AllowedGuilds=ID")
            ),
        );
    }
}

async fn endpoint(target: &StackTarget, report: &mut Report, app: &Application) {
    let Ok(Ok(wanted)) = target.stack().await.map(|stack| stack.output("DiscordEndpoint")) else {
        return;
    };
    match app.endpoint.as_deref() {
        Some(set) if set == wanted => {
            report.right("Discord: interactions are delivered to this stack")
        }
        Some(set) => report.note(&format!(
            "Discord: interactions are delivered to {set}; bobbin discord endpoint changes that"
        )),
        None => report.note(
            "Discord: interactions are delivered nowhere yet; bobbin discord endpoint changes that",
        ),
    }
}
