//! The app manifest: Slack's description of this app, generated from the names that this module handles.
//!
//! Promised: pasted into Slack it creates an app that works with this ingress; it requests only the scopes that our
//! calls and events need ([`METHODS`], [`EVENTS`]). Source of methods and scopes: Slack's method and event pages.
//! Absent: tokens and secrets, which Slack creates when the app is installed; OAuth, because one app serves one
//! workspace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::actions::SHORTCUT;

/// The slash command, as registered by the app.
pub const COMMAND: &str = "/bobbin";

/// Every Web API method that we call, with the scopes without which it fails somewhere.
pub const METHODS: [(&str, &[&str]); 16] = [
    ("agents.sessions.setStatus", &["chat:write"]),
    ("assistant.threads.setStatus", &["chat:write"]),
    ("auth.test", &[]),
    ("chat.appendStream", &["chat:write"]),
    ("chat.postEphemeral", &["chat:write"]),
    ("chat.postMessage", &["chat:write"]),
    ("chat.startStream", &["chat:write"]),
    ("chat.stopStream", &["chat:write"]),
    ("chat.update", &["chat:write"]),
    (
        "conversations.history",
        &["channels:history", "groups:history", "im:history", "mpim:history"],
    ),
    (
        "conversations.replies",
        &["channels:history", "groups:history", "im:history", "mpim:history"],
    ),
    ("conversations.members", &["channels:read", "groups:read", "im:read", "mpim:read"]),
    ("files.completeUploadExternal", &["files:write"]),
    ("files.getUploadURLExternal", &["files:write"]),
    ("users.info", &["users:read"]),
    ("views.publish", &[]),
];

/// Every event that we subscribe to, with the scopes that Slack wants for it.
pub const EVENTS: [(&str, &[&str]); 9] = [
    ("agent_session_stopped", &["assistant:write"]),
    ("app_home_opened", &[]),
    ("app_mention", &["app_mentions:read"]),
    ("app_uninstalled", &[]),
    ("message.channels", &["channels:history"]),
    ("message.groups", &["groups:history"]),
    ("message.im", &["im:history"]),
    ("message.mpim", &["mpim:history"]),
    ("tokens_revoked", &[]),
];

/// Features besides methods and events that need a scope: the slash command and the shortcut; files from people, which
/// are fetched by their address.
const OTHER_SCOPES: [&str; 2] = ["commands", "files:read"];

/// An address that Slack would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the address of the app: give the function URL of the stack, https:// and a host name, without a path"
)]
pub struct BadAddress(String);

/// Every scope that the app needs, sorted by name.
#[must_use]
pub fn scopes() -> BTreeSet<&'static str> {
    METHODS
        .iter()
        .chain(&EVENTS)
        .flat_map(|(_, scopes)| scopes.iter().copied())
        .chain(OTHER_SCOPES)
        .collect()
}

/// The manifest of the app whose ingress answers at `address` (`https://…`, without a path).
///
/// # Errors
/// [`BadAddress`].
pub fn manifest(address: &str) -> Result<Value, BadAddress> {
    let base = address.trim().trim_end_matches('/');
    let host = base.strip_prefix("https://").unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return Err(BadAddress(bobbin_core::text::shorten(address, 200)));
    }
    let events: Vec<&str> = EVENTS.iter().map(|(event, _)| *event).collect();
    Ok(json!({
        "_metadata": { "major_version": 2, "minor_version": 1 },
        "display_information": {
            "name": "Bobbin",
            "description": "A coding agent with its own sandbox in every thread",
            "background_color": "#1f2937",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": true,
                "messages_tab_enabled": true,
                "messages_tab_read_only_enabled": false,
            },
            "bot_user": { "display_name": "Bobbin", "always_online": true },
            "agent_view": {
                "agent_description": "Gives every thread its own coding sandbox.",
                "suggested_prompts": [
                    { "title": "Fix a bug", "message": "Fix the failing test in " },
                    { "title": "Explain some code", "message": "Explain how " },
                ],
            },
            "slash_commands": [{
                "command": COMMAND,
                "url": format!("{base}/slack/commands"),
                "description": "Your running tasks, sandboxes, settings, help",
                "usage_hint": "status | sandbox list | config | help",
                "should_escape": true,
            }],
            "shortcuts": [{
                "name": "Send to Bobbin",
                "type": "message",
                "callback_id": SHORTCUT,
                "description": "Start a task from this message",
            }],
        },
        "oauth_config": { "scopes": { "bot": scopes() } },
        "settings": {
            "event_subscriptions": {
                "request_url": format!("{base}/slack/events"),
                "bot_events": events,
            },
            "interactivity": {
                "is_enabled": true,
                "request_url": format!("{base}/slack/interactivity"),
                "message_menu_options_url": format!("{base}/slack/interactivity"),
            },
            "org_deploy_enabled": false,
            "socket_mode_enabled": false,
            "token_rotation_enabled": false,
        },
    }))
}

/// The link that opens Slack's form for a new app with this manifest filled in.
#[must_use]
pub fn link(manifest: &Value) -> String {
    let encoded: String =
        form_urlencoded::byte_serialize(manifest.to_string().as_bytes()).collect();
    // Spaces as `%20`: not every query parser reads `+` as one.
    format!("https://api.slack.com/apps?new_app=1&manifest_json={}", encoded.replace('+', "%20"))
}
