//! What setting up asks of Discord beside the commands: the endpoint, and a channel for a turn that proves that all works.

use reqwest::Method;
use serde_json::{Value, json};

use super::Discord;
use super::call::in_channel;
use super::error::DiscordError;
use super::registration::{Application, call};

/// Messages of a thread that are read.
const MESSAGES_MAX: u32 = 50;

/// A channel in which a test can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its server; none for a direct message.
    pub guild: Option<String>,
    /// Its name, without the `#`.
    pub name: String,
    /// Discord's number of its kind; 0 is an ordinary one.
    pub kind: u64,
}

impl Discord {
    /// Sets where Discord delivers interactions, or clears that. Discord tries the address first, and refuses (code
    /// 50035, naming the field) what does not answer as it should.
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
    /// [`DiscordError`]; code 50001 where the bot cannot see it, 10003 where there is none.
    pub async fn channel(&self, id: &str) -> Result<Channel, DiscordError> {
        let get = in_channel("get channel", Method::GET, id, "");
        let said = self.client.call(&get, None, None).await?;
        Ok(Channel {
            guild: said["guild_id"].as_str().map(str::to_owned),
            name: said["name"].as_str().unwrap_or_default().to_owned(),
            kind: said["type"].as_u64().unwrap_or_default(),
        })
    }

    /// The name of a server that the bot is in; none where it is not.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn guild_name(&self, guild: &str) -> Result<Option<String>, DiscordError> {
        // One page of one: the first after the id before it.
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

    /// The words of a channel's last messages, newest first.
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
