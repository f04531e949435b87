//! Discord: acts through the chat's controls, interactions signed by the test itself, reads by the documented calls.

use std::sync::atomic::{AtomicU64, Ordering};

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::Person;
use ed25519_dalek::{Signer, SigningKey};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::side::{Side, now_ms};
use super::thread::{Button, ChatFile, ChatMessage, Thread, collect, texts};
use super::view;
use crate::http::Answer;
use crate::limits::MESSAGES_MAX;
use crate::ready::Ready;

/// Snowflakes count from the first second of 2015 (Discord's documentation).
const EPOCH_MS: u64 = 1_420_070_400_000;

/// A client of one stack's Discord.
#[derive(Debug, Clone)]
pub struct Discord {
    side: Side,
}

/// The result of an act: Discord's answer as the person sees it.
#[derive(Debug, Clone)]
pub struct Acted {
    /// Id of the interaction, which is also the turn's.
    pub interaction: String,
    /// Answers it for fifteen minutes.
    pub token: String,
    /// Ingress's answer and the platform's reaction, as the local chat reports them.
    pub outcome: Value,
}

impl Discord {
    /// A client for this stack; the test's own signed requests go to `ingress`.
    #[must_use]
    pub fn new(client: &Client, ready: &Ready, ingress: &str) -> Self {
        Self { side: Side::new(client, ready, ingress) }
    }

    /// A person acts in the client, which the chat carries out as Discord would.
    ///
    /// # Errors
    /// Why the client or Discord refused it.
    pub async fn act(&self, act: &Value) -> Result<Acted, String> {
        let done = self.control(Method::POST, "interact", act).await?;
        let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
        Ok(Acted {
            interaction: text("interaction_id"),
            token: text("token"),
            outcome: done["outcome"].clone(),
        })
    }

    /// A control call of the chat's Discord.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn control(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        self.side.control(method, &format!("discord/{path}"), body).await
    }

    /// The text of a file of a message.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub async fn file(&self, file: &ChatFile) -> Result<String, String> {
        self.side.file(&file.url, "none").await
    }

    /// Keeps a person's file, to be sent along with an act; answers its id.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn upload(
        &self,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<String, String> {
        self.side.upload(name, media_type, bytes).await
    }

    /// `/sandbox` in the channel: the deferred answer becomes the anchor, whose id is the thread's.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn start(&self, prompt: &str) -> Result<(Thread, String), String> {
        self.start_with(&json!({"prompt": prompt})).await
    }

    /// The same with these options.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn start_with(&self, options: &Value) -> Result<(Thread, String), String> {
        let act = json!({"type": "command", "name": "sandbox", "options": options});
        let acted = self.act(&act).await?;
        if acted.outcome["kind"] != "deferred" {
            return Err(format!("/sandbox was answered with {}", acted.outcome));
        }
        let anchor = acted.outcome["message_id"].as_str().unwrap_or_default();
        Ok((self.thread(anchor)?, acted.interaction))
    }

    /// The thread with this id.
    ///
    /// # Errors
    /// When the id is none.
    pub fn thread(&self, id: &str) -> Result<Thread, String> {
        let key = ThreadKey::discord(&self.side.ready.discord_guild_id, id)
            .map_err(|error| error.to_string())?;
        Ok(Thread { key, channel: id.to_owned(), root: id.to_owned() })
    }

    /// A slash command in a thread.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn command(
        &self,
        thread: &Thread,
        name: &str,
        options: &Value,
    ) -> Result<Acted, String> {
        self.act(&json!({"type": "command", "name": name, "channel_id": thread.channel, "options": options})).await
    }

    /// Presses a button.
    ///
    /// # Errors
    /// When there is none such, or the press failed.
    pub async fn press(
        &self,
        thread: &Thread,
        message: &ChatMessage,
        label: &str,
    ) -> Result<Acted, String> {
        let button = message.must_have(label)?;
        self.act(&json!({"type": "component", "channel_id": thread.channel, "message_id": message.id, "custom_id": button.id})).await
    }

    /// Chooses in a select of a message.
    ///
    /// # Errors
    /// When there is none such, or it offers no such values.
    pub async fn choose(
        &self,
        thread: &Thread,
        message: &ChatMessage,
        select: &str,
        values: &[&str],
    ) -> Result<Acted, String> {
        self.act(&json!({"type": "component", "channel_id": thread.channel, "message_id": message.id, "custom_id": select, "values": values})).await
    }

    /// Opens the form behind a button and sends it, with these values by input.
    ///
    /// # Errors
    /// When no form opens, or it does not take them.
    pub async fn fill(
        &self,
        thread: &Thread,
        message: &ChatMessage,
        label: &str,
        fields: &Value,
    ) -> Result<Acted, String> {
        let opened = self.press(thread, message, label).await?;
        let form = opened.outcome["modal"]["custom_id"]
            .as_str()
            .ok_or_else(|| format!("no form opened: {}", opened.outcome))?;
        self.act(
            &json!({"type": "modal", "channel_id": thread.channel, "custom_id": form, "fields": fields}),
        )
        .await
    }

    /// A press of a button by anybody, also of one that is not there any more: signed by the test itself.
    ///
    /// # Errors
    /// When it was not answered as Discord expects it.
    pub async fn click(
        &self,
        thread: &Thread,
        message: &str,
        custom_id: &str,
        by: &Person,
    ) -> Result<Value, String> {
        let channel = json!({"id": thread.channel, "type": 11, "parent_id": self.side.ready.discord_channel_id});
        let mut click = self.interaction("", &channel, &json!({}));
        click["type"] = 3.into();
        click["data"] = json!({"custom_id": custom_id, "component_type": 2});
        click["message"] = json!({"id": message, "channel_id": thread.channel, "components": []});
        click["member"]["user"]["id"] = by.id.as_str().into();
        click["member"]["user"]["global_name"] = by.name.as_str().into();
        let answer = self.deliver(&click.to_string()).await?;
        match answer.status {
            200 => Ok(answer.json()),
            status => Err(format!("{status}: {answer:?}")),
        }
    }

    /// The messages of a thread or channel, oldest first.
    ///
    /// # Errors
    /// When the channel cannot be read.
    pub async fn messages(&self, channel: &str) -> Result<Vec<ChatMessage>, String> {
        let list = self.api(&format!("/channels/{channel}/messages?limit={MESSAGES_MAX}")).await?;
        let mut seen: Vec<ChatMessage> =
            list.as_array().map(|list| list.iter().map(seen).collect()).unwrap_or_default();
        seen.reverse();
        Ok(seen)
    }

    /// A thread or channel as a person sees it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn page(&self, channel: &str) -> Result<String, String> {
        let path = format!("/channels/{channel}/messages?limit={MESSAGES_MAX}");
        let list = self.api(&path).await?;
        let mut list = list.as_array().cloned().unwrap_or_default();
        list.reverse();
        // That a thread begins with the message that it hangs on is shown by Discord itself.
        list.retain(|message| message["type"] != 21);
        Ok(view::page(&list))
    }

    /// One message as a person sees it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn message(&self, channel: &str, id: &str) -> Result<String, String> {
        let path = format!("/channels/{channel}/messages/{id}");
        Ok(view::message(&self.api(&path).await?))
    }

    /// The line in the channel on which a thread hangs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn line(&self, thread: &str) -> Result<String, String> {
        self.message(&self.side.ready.discord_channel_id, thread).await
    }

    /// A person types a message, which may answer (`reply_to`) or `forward` one; answers its id.
    ///
    /// # Errors
    /// Why the client refused it.
    pub async fn say(&self, act: &Value) -> Result<String, String> {
        let said = self.control(Method::POST, "interact", act).await?;
        let id = said["id"].as_str();
        id.map(str::to_owned).ok_or_else(|| format!("nothing was said: {said}"))
    }

    /// Ids of the chat's seeds.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn seeds(&self) -> Result<Value, String> {
        self.side.control(Method::GET, "seeds", &Value::Null).await
    }

    /// Messages that only the person with this id sees in a channel or thread, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn whispered(&self, channel: &str, user: &str) -> Result<Vec<String>, String> {
        let path = format!("ephemeral?user_id={user}");
        let list = self.control(Method::GET, &path, &Value::Null).await?;
        let list = list["messages"].as_array().cloned().unwrap_or_default();
        let here = list.iter().map(|one| &one["message"]);
        // A message that still says that something is being looked up is not the answer yet.
        let here = here.filter(|one| one["channel_id"] == channel);
        let answered = here.filter(|one| one["flags"].as_u64().unwrap_or(0) & 128 == 0);
        Ok(answered.map(view::message).collect())
    }

    /// The threads that are active in the guild.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn active_threads(&self) -> Result<Vec<String>, String> {
        let list = self
            .api(&format!("/guilds/{}/threads/active", self.side.ready.discord_guild_id))
            .await?;
        let ids = list["threads"].as_array().cloned().unwrap_or_default();
        Ok(ids.iter().filter_map(|one| one["id"].as_str().map(str::to_owned)).collect())
    }

    /// Messages that only this person sees, everywhere, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn whispers(&self, thread: &Thread) -> Result<Vec<ChatMessage>, String> {
        let list = self.control(Method::GET, "ephemeral", &Value::Null).await?;
        let kept = list["messages"].as_array().cloned().unwrap_or_default();
        Ok(kept
            .iter()
            .map(|one| &one["message"])
            .filter(|one| one["channel_id"] == thread.channel.as_str())
            .map(seen)
            .collect())
    }

    async fn api(&self, path: &str) -> Result<Value, String> {
        let url = format!("{}{path}", self.side.ready.discord_api);
        let token = format!("Bot {}", self.side.ready.discord_bot_token);
        self.side.read(&url, &token).await
    }

    /// The body of a slash command as Discord would send it, with an id and a token of the test's own.
    #[must_use]
    pub fn interaction(&self, name: &str, channel: &Value, options: &Value) -> Value {
        let id = snowflake();
        let user = json!({"id": self.side.ready.discord_user_id, "username": "ada", "global_name": "Ada", "discriminator": "0", "avatar": null});
        let options: Vec<Value> = options
            .as_object()
            .map(|fields| {
                fields
                    .iter()
                    .map(|(name, value)| json!({"name": name, "type": 3, "value": value}))
                    .collect()
            })
            .unwrap_or_default();
        json!({
            "id": id, "application_id": self.side.ready.discord_application_id, "type": 2, "token": format!("test-token-{id}"), "version": 1,
            "guild_id": self.side.ready.discord_guild_id, "channel_id": channel["id"], "channel": channel, "context": 0, "locale": "en-GB",
            "member": {"user": user, "roles": [], "permissions": "2147483647", "joined_at": "2026-01-01T00:00:00Z", "deaf": false, "mute": false},
            "app_permissions": "309237763136", "authorizing_integration_owners": {"0": self.side.ready.discord_guild_id},
            "entitlements": [], "attachment_size_limit": 10_485_760,
            "data": {"id": "1", "name": name, "type": 1, "options": options},
        })
    }

    /// The channel in which tests start things, as an interaction shows it.
    #[must_use]
    pub fn channel(&self) -> Value {
        json!({"id": self.side.ready.discord_channel_id, "type": 0, "name": "general", "guild_id": self.side.ready.discord_guild_id})
    }

    /// Posts a body to the ingress, signed with the development key.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn deliver(&self, body: &str) -> Result<Answer, String> {
        let timestamp = (now_ms() / 1_000).to_string();
        let signature = self.sign(&timestamp, body);
        self.post(body, &timestamp, &signature).await
    }

    /// The signature of timestamp and body.
    ///
    /// # Panics
    /// When the stack's key is no key.
    #[must_use]
    pub fn sign(&self, timestamp: &str, body: &str) -> String {
        let seed = hex::decode(&self.side.ready.discord_private_key)
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = SigningKey::from_bytes(&seed.expect("the ready file holds a seed of 32 bytes"));
        hex::encode(key.sign(format!("{timestamp}{body}").as_bytes()).to_bytes())
    }

    /// Posts a body with these headers, right or wrong.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn post(
        &self,
        body: &str,
        timestamp: &str,
        signature: &str,
    ) -> Result<Answer, String> {
        let headers = [
            ("content-type", "application/json"),
            ("x-signature-ed25519", signature),
            ("x-signature-timestamp", timestamp),
        ];
        self.side.post("discord/interactions", body, &headers).await
    }
}

/// A new id in Discord's format: milliseconds, then 22 bits that distinguish ids made within the same one.
fn snowflake() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (((now_ms() - EPOCH_MS) << 22) | (NEXT.fetch_add(1, Ordering::Relaxed) & 0x3f_ffff)).to_string()
}

fn seen(message: &Value) -> ChatMessage {
    let mut text = vec![message["content"].as_str().unwrap_or_default().to_owned()];
    texts(&message["components"], &mut text);
    let mut buttons = Vec::new();
    let button = |node: &Value| {
        let pressable = node["type"] == 2 && node["disabled"] != true;
        let id = node["custom_id"].as_str().filter(|_| pressable)?;
        Some(Button {
            label: node["label"].as_str().unwrap_or_default().to_owned(),
            id: id.to_owned(),
        })
    };
    collect(&message["components"], &button, &mut buttons);
    ChatMessage {
        id: message["id"].as_str().unwrap_or_default().to_owned(),
        key: message["nonce"].as_str().map(str::to_owned),
        text: text.join("\n"),
        buttons,
        by_bot: message["author"]["bot"] == true,
        files: message["attachments"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|file| ChatFile {
                name: file["filename"].as_str().unwrap_or_default().to_owned(),
                url: file["url"].as_str().unwrap_or_default().to_owned(),
            })
            .collect(),
    }
}
