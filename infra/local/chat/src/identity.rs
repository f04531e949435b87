//! The development identities of the Discord application and of the Slack app.

/// The development identity of the Discord application.
#[derive(Clone)]
pub struct DiscordKeys {
    /// Snowflake of the application; the bot user has the same id.
    pub application_id: String,
    /// 64 hex digits: the seed of the Ed25519 key that signs interactions.
    pub seed: String,
    /// What the bot sends as `Authorization: Bot …`.
    pub bot_token: String,
}

/// The development identity of the Slack app, and what its manifest declares.
#[derive(Clone)]
pub struct SlackKeys {
    /// Key of the v0 signature.
    pub signing_secret: String,
    /// What the bot sends as `Authorization: Bearer …`.
    pub bot_token: String,
    /// `U…`, the bot's user.
    pub bot_user_id: String,
    /// `A…`, by which events and commands name the app.
    pub app_id: String,
    /// Message shortcuts of the manifest.
    pub shortcuts: Vec<SlackShortcut>,
    /// Slash commands of the manifest.
    pub commands: Vec<SlackCommand>,
    /// Scopes that the bot token has; told with every answer, and enforced by nothing here.
    pub scopes: Vec<String>,
}

/// A message shortcut (manifest `features.shortcuts` with `type: message`).
#[derive(Clone)]
pub struct SlackShortcut {
    /// Reaches the app as `callback_id`.
    pub callback_id: String,
    /// What people read in the message's menu.
    pub name: String,
}

/// A slash command (manifest `features.slash_commands`).
#[derive(Clone)]
pub struct SlackCommand {
    /// The command with its slash.
    pub command: String,
    /// One line for people.
    pub description: String,
    /// What may follow the command.
    pub usage_hint: String,
}
