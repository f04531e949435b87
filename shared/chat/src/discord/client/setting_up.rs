//! Discord calls for setting up, besides the commands: the endpoint, and a channel for a test turn.

use reqwest::Method;
use serde_json::{Value, json};

use super::Discord;
use super::call::in_channel;
use super::error::DiscordError;
use super::registration::{Application, call};

/// Maximum number of messages read from a thread.
const MESSAGES_MAX: u32 = 50;

/// A channel for a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestChannel {
    /// Its server; `None` for a direct message.
    pub guild: Option<String>,
    /// Its name, without the `#`.
    pub name: String,
    /// Discord's number of its type; 0 is an ordinary one.
    pub kind: u64,
}

impl Discord {
    /// Sets or clears the address to which Discord delivers interactions. Discord tries the address first, and refuses
    /// one that does not answer correctly (code 50035, naming the field).
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn set_endpoint(&self, url: Option<&str>) -> Result<Application, DiscordError> {
        let set = call("set endpoint", Method::PATCH, "/applications/@me", "");
        let body = json!({ "interactions_endpoint_url": url });
        let said = self.client.call(&set, Some(&body), None).await?;
        Application::read(&said).ok_or(DiscordError::Unreadable { route: set.name, status: 200 })
    }

    /// Reads a channel.
    ///
    /// # Errors
    /// [`DiscordError`]; code 50001 if the bot cannot see it, 10003 if it does not exist.
    pub async fn channel(&self, id: &str) -> Result<TestChannel, DiscordError> {
        let get = in_channel("get channel", Method::GET, id, "");
        let said = self.client.call(&get, None, None).await?;
        Ok(TestChannel {
            guild: said["guild_id"].as_str().map(str::to_owned),
            name: said["name"].as_str().unwrap_or_default().to_owned(),
            kind: said["type"].as_u64().unwrap_or_default(),
        })
    }

    /// The name of a server that the bot is in; `None` if it is not in it.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn guild_name(&self, guild: &str) -> Result<Option<String>, DiscordError> {
        // A page with one entry: the first after the preceding id.
        let before = guild.parse::<u64>().unwrap_or_default().saturating_sub(1);
        let list = call(
            "list guilds",
            Method::GET,
            &format!("/users/@me/guilds?after={before}&limit=1"),
            "",
        );
        let said = self.client.call(&list, None, None).await?;
        let found = said.as_array().and_then(|page| page.first());
        let named = found.filter(|one| one["id"] == guild);
        Ok(named.and_then(|one| one["name"].as_str()).map(str::to_owned))
    }

    /// The texts of a channel's last messages, newest first.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn words_of_channel(&self, id: &str) -> Result<Vec<String>, DiscordError> {
        let rest = format!("/messages?limit={MESSAGES_MAX}");
        let get = in_channel("list messages", Method::GET, id, &rest);
        let said = self.client.call(&get, None, None).await?;
        let messages = said.as_array().into_iter().flatten();
        let words = |one: &Value| one["content"].as_str().map(str::to_owned);
        Ok(messages.filter_map(words).collect())
    }
}
