//! Setting the application up: who it is, and which commands it has.

use bobbin_core::wire::discord::commands::{Difference, commands, differences, guild_commands};
use reqwest::Method;
use serde_json::Value;

use super::client::{Call, Client};
use super::{Discord, DiscordError};
use crate::http::Http;

/// The application that a bot token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Asks whose token it is; `base` ends in the version, `http` must allow its host.
///
/// # Errors
/// [`DiscordError::Revoked`] for a token that Discord does not know; others.
pub async fn application(
    http: Http,
    base: &str,
    bot_token: &str,
) -> Result<Application, DiscordError> {
    let call = call("get application", Method::GET, "/applications/@me", "");
    // The application is not known yet, so the agent names none.
    let client = Client::new(http, base, "", bot_token);
    let found = client.call(&call, None, None).await?;
    let text = |name: &str| found[name].as_str().map(str::to_owned);
    match text("id") {
        Some(id) => Ok(Application {
            id,
            name: text("name").unwrap_or_default(),
        }),
        None => Err(DiscordError::Unreadable {
            route: call.name,
            status: 200,
        }),
    }
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
        let major = guild.unwrap_or_default();
        let list = call("list commands", Method::GET, &path, major);
        let listed = self.client.call(&list, None, None).await?;
        Ok(differences(&listed, &wanted))
    }

    /// Registers the commands, for all guilds or one, and answers what that changed. Creations are counted by the day,
    /// so nothing is written where nothing changes.
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

    /// The route of a scope and the set that belongs there.
    fn scope(&self, guild: Option<&str>) -> (String, Value) {
        let application = &self.application;
        match guild {
            Some(guild) => (
                format!("/applications/{application}/guilds/{guild}/commands"),
                guild_commands(),
            ),
            None => (format!("/applications/{application}/commands"), commands()),
        }
    }
}

fn call(name: &'static str, method: Method, path: &str, major: &str) -> Call {
    Call {
        name,
        method,
        path: path.to_owned(),
        major: major.to_owned(),
        by_token: false,
    }
}
