//! The local Discord and Slack: their identities and registered commands.

use std::fs;
use std::path::Path;

use bobbin_chat::discord;
use bobbin_local_chat::{DiscordKeys, LocalChat, SlackCommand, SlackKeys, SlackShortcut};

use crate::keys::StackKeys;

/// The identity of the Discord application, from the stack's own keys.
#[must_use]
pub fn discord_keys(keys: &StackKeys) -> DiscordKeys {
    DiscordKeys {
        application_id: keys.discord_application_id.clone(),
        seed: keys.discord_seed.clone(),
        bot_token: keys.discord_bot_token.clone(),
    }
}

/// The Slack app, as declared in its manifest.
///
/// # Errors
/// The manifest cannot be read.
pub fn slack_keys(root: &Path, keys: &StackKeys) -> Result<SlackKeys, String> {
    let file = root.join("infra/slack-manifest.json");
    let text =
        fs::read_to_string(&file).map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
    let manifest: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("{} is not JSON: {e}", file.display()))?;
    let list = |name: &str| manifest["features"][name].as_array().cloned().unwrap_or_default();
    let word =
        |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let scopes = manifest["oauth_config"]["scopes"]["bot"].as_array();
    Ok(SlackKeys {
        scopes: scopes
            .into_iter()
            .flatten()
            .filter_map(|scope| scope.as_str().map(str::to_owned))
            .collect(),
        signing_secret: keys.slack_signing_secret.clone(),
        bot_token: keys.slack_bot_token.clone(),
        bot_user_id: keys.slack_bot_user_id.clone(),
        app_id: keys.slack_app_id.clone(),
        shortcuts: list("shortcuts")
            .iter()
            .filter(|shortcut| shortcut["type"] == "message")
            .map(|shortcut| SlackShortcut {
                callback_id: word(shortcut, "callback_id"),
                name: word(shortcut, "name"),
            })
            .collect(),
        commands: list("slash_commands")
            .iter()
            .map(|command| SlackCommand {
                command: word(command, "command"),
                description: word(command, "description"),
                usage_hint: word(command, "usage_hint"),
            })
            .collect(),
    })
}

/// Registers the deployment's set of commands at the local Discord.
///
/// # Errors
/// The local Discord's answer.
pub async fn register_commands(
    client: &reqwest::Client,
    chat: &LocalChat,
    keys: &StackKeys,
) -> Result<(), String> {
    let address = format!(
        "{}/applications/{}/guilds/{}/commands",
        chat.discord_api(),
        keys.discord_application_id,
        chat.seeds().guild_id
    );
    let sent = client
        .put(address)
        .header("authorization", format!("Bot {}", keys.discord_bot_token))
        .json(&discord::guild_commands())
        .send()
        .await;
    let answer = sent.map_err(|e| format!("the local Discord did not accept the commands: {e}"))?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(format!(
        "the local Discord refused the commands: {}",
        answer.text().await.unwrap_or_default()
    ))
}
