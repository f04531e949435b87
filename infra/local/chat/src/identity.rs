//! The development identities of the Discord application and of the Slack app.

/// The development identity of the Discord application.
#[derive(Clone)]
pub struct DiscordKeys {
    /// Snowflake of the application; the bot user's id as well.
    pub application_id: String,
    /// 64 hex digits: seed of the Ed25519 key that signs interactions.
    pub seed: String,
    /// The bot's `Authorization: Bot …`.
    pub bot_token: String,
}

/// The development identity of the Slack app, and its manifest's declarations.
#[derive(Clone)]
pub struct SlackKeys {
    /// Key of the v0 signature.
    pub signing_secret: String,
    /// The bot's `Authorization: Bearer …`.
    pub bot_token: String,
    /// The bot user's id, `U…`.
    pub bot_user_id: String,
    /// The app's id, `A…`, in events and commands.
    pub app_id: String,
    /// Message shortcuts of the manifest.
    pub shortcuts: Vec<SlackShortcut>,
    /// Slash commands of the manifest.
    pub commands: Vec<SlackCommand>,
    /// The bot token's scopes; reported with every answer, never enforced here.
    pub scopes: Vec<String>,
}

/// A message shortcut (manifest `features.shortcuts` with `type: message`).
#[derive(Clone)]
pub struct SlackShortcut {
    /// Sent to the app as `callback_id`.
    pub callback_id: String,
    /// Name in the message's menu.
    pub name: String,
}

/// A slash command (manifest `features.slash_commands`).
#[derive(Clone)]
pub struct SlackCommand {
    /// Command with its slash.
    pub command: String,
    /// One-line description.
    pub description: String,
    /// Hint about the arguments.
    pub usage_hint: String,
}
