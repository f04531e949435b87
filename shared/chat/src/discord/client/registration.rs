//! Sets up the application: its identity, and its commands.

use bobbin_http::Http;
use reqwest::Method;
use serde_json::Value;

use super::Discord;
use super::call::Call;
use super::error::DiscordError;
use super::transport::Client;
use crate::discord::commands::{Difference, commands, differences, guild_commands};

/// The application of a bot token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The application's id, part of the routes of its commands.
    pub id: String,
    /// The name that its owner gave it.
    pub name: String,
    /// The public key that verifies its interactions, 64 hex digits.
    pub verify_key: String,
    /// Where Discord delivers interactions; `None` if the application has to hold a gateway connection.
    pub endpoint: Option<String>,
}

impl Application {
    pub(super) fn read(said: &Value) -> Option<Self> {
        let text = |name: &str| said[name].as_str().map(str::to_owned);
        Some(Self {
            id: text("id")?,
            name: text("name").unwrap_or_default(),
            verify_key: text("verify_key").unwrap_or_default(),
            endpoint: text("interactions_endpoint_url").filter(|url| !url.is_empty()),
        })
    }
}

/// The application of this token; `base` ends in the version, `http` must allow its host.
///
/// # Errors
/// [`DiscordError::Revoked`] for a token that Discord does not know; others.
pub async fn application(
    http: Http,
    base: &str,
    bot_token: &str,
) -> Result<Application, DiscordError> {
    let call = call("get application", Method::GET, "/applications/@me", "");
    // The application is not known yet, so the user agent names none.
    let client = Client::new(http, base, "", bot_token);
    let found = client.call(&call, None, None).await?;
    Application::read(&found).ok_or(DiscordError::Unreadable { route: call.name, status: 200 })
}

impl Discord {
    /// What registering the commands would change, for all guilds or one.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn command_differences(
        &self,
        guild: Option<&str>,
    ) -> Result<Vec<Difference>, DiscordError> {
        let (path, wanted) = self.scope(guild);
        let listed = self.listed(&path, guild).await?;
        Ok(differences(&listed, &wanted))
    }

    /// Registers the commands, for all guilds or one, and returns the changes. Discord limits creations per day, so
    /// nothing is written if nothing changes.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn register_commands(
        &self,
        guild: Option<&str>,
    ) -> Result<Vec<Difference>, DiscordError> {
        let changed = self.command_differences(guild).await?;
        if !changed.is_empty() {
            let (path, wanted) = self.scope(guild);
            let major = guild.unwrap_or_default();
            let set = call("set commands", Method::PUT, &path, major);
            self.client.call(&set, Some(&wanted), None).await?;
        }
        Ok(changed)
    }

    /// The commands that removing would delete, for all guilds or one.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn removable_commands(
        &self,
        guild: Option<&str>,
    ) -> Result<Vec<Difference>, DiscordError> {
        let (path, _) = self.scope(guild);
        let listed = self.listed(&path, guild).await?;
        Ok(differences(&listed, &Value::Array(Vec::new())))
    }

    /// Deletes all commands, for all guilds or one, and returns their names.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn remove_commands(
        &self,
        guild: Option<&str>,
    ) -> Result<Vec<Difference>, DiscordError> {
        let gone = self.removable_commands(guild).await?;
        if !gone.is_empty() {
            let (path, _) = self.scope(guild);
            let set = call("set commands", Method::PUT, &path, guild.unwrap_or_default());
            let none = Value::Array(Vec::new());
            self.client.call(&set, Some(&none), None).await?;
        }
        Ok(gone)
    }

    async fn listed(&self, path: &str, guild: Option<&str>) -> Result<Value, DiscordError> {
        let list = call("list commands", Method::GET, path, guild.unwrap_or_default());
        self.client.call(&list, None, None).await
    }

    /// The route of a scope and its set of commands.
    fn scope(&self, guild: Option<&str>) -> (String, Value) {
        let application = &self.application;
        match guild {
            Some(guild) => {
                (format!("/applications/{application}/guilds/{guild}/commands"), guild_commands())
            }
            None => (format!("/applications/{application}/commands"), commands()),
        }
    }
}

pub(super) fn call(name: &'static str, method: Method, path: &str, major: &str) -> Call {
    Call { name, method, path: path.to_owned(), major: major.to_owned(), by_token: false }
}
