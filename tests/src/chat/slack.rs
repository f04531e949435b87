//! Slack: acts through the chat's controls, events signed by the test itself, reads by the documented calls.

use bobbin_chat::slack::{FIELD_ACTION, message_id};
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::Person;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::Sha256;

use super::side::{Side, now_ms};
use super::slack_view;
use super::thread::{Button, ChatFile, ChatMessage, Thread, collect, texts};
use crate::http::Answer;
use crate::limits::MESSAGES_MAX;
use crate::ready::Ready;

/// A client of one stack's Slack.
#[derive(Debug, Clone)]
pub struct Slack {
    side: Side,
}

impl Slack {
    /// A client for this stack; the test's own signed requests go to `ingress`.
    #[must_use]
    pub fn new(client: &Client, ready: &Ready, ingress: &str) -> Self {
        Self { side: Side::new(client, ready, ingress) }
    }

    /// A person acts in the client, which the chat carries out as Slack would.
    ///
    /// # Errors
    /// Why the client or Slack refused it.
    pub async fn act(&self, act: &Value) -> Result<Value, String> {
        self.side.control(Method::POST, "slack/act", act).await
    }

    /// Sets flags of a member of the workspace as its administrators would; creates the member if missing.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn set_user(&self, id: &str, flags: &Value) -> Result<(), String> {
        let mut user = flags.clone();
        user["id"] = id.into();
        let set = self.side.control(Method::POST, "slack/user", &user);
        set.await.map(drop)
    }

    /// The next requests of the app to a route meet this fault.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn arm(&self, fault: &Value) -> Result<(), String> {
        let armed = self.side.control(Method::POST, "slack/faults", fault);
        armed.await.map(drop)
    }

    /// The channel of a person's direct messages with the app; creates it if missing.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn direct_channel(&self, user: &str) -> Result<String, String> {
        let asked = json!({"id": user});
        let set = self.side.control(Method::POST, "slack/user", &asked).await?;
        let channel = set["dm_id"].as_str();
        channel.map(str::to_owned).ok_or_else(|| format!("no direct messages: {set}"))
    }

    /// All direct messages of a person as one thread.
    ///
    /// # Errors
    /// When the ids are none.
    pub fn direct(&self, user: &str, channel: &str) -> Result<Thread, String> {
        let key = ThreadKey::slack_direct(&self.side.ready.slack_team_id, user)
            .map_err(|error| error.to_string())?;
        Ok(Thread { key, channel: channel.to_owned(), root: String::new() })
    }

    /// A person writes to the app: under no message, or in a thread. Answers the message's `ts`.
    ///
    /// # Errors
    /// When the event was not accepted.
    pub async fn write(
        &self,
        user: &str,
        channel: &str,
        root: Option<&str>,
        text: &str,
    ) -> Result<String, String> {
        let mut act =
            json!({"type": "message", "user_id": user, "channel_id": channel, "text": text});
        if let Some(root) = root {
            act["thread_ts"] = root.into();
        }
        let done = self.act(&act).await?;
        let deliveries = done["deliveries"].as_array().cloned().unwrap_or_default();
        if deliveries.is_empty() || deliveries.iter().any(|one| one["status"] != 200) {
            return Err(format!("the message was not accepted: {done}"));
        }
        Ok(done["ts"].as_str().unwrap_or_default().to_owned())
    }

    /// The text of a file of a message, with the bot's token.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub async fn file(&self, file: &ChatFile) -> Result<String, String> {
        let token = format!("Bearer {}", self.side.ready.slack_bot_token);
        self.side.file(&file.url, &token).await
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

    /// Types a message that mentions the bot: at the top of the channel, or in a thread. Returns its `ts`.
    ///
    /// # Errors
    /// When one of the event's deliveries was not accepted.
    pub async fn mention(&self, thread: Option<&Thread>, text: &str) -> Result<Value, String> {
        let mut act = json!({"type": "message", "text": format!("<@{}> {text}", self.side.ready.slack_bot_user_id)});
        if let Some(thread) = thread {
            act["channel_id"] = thread.channel.as_str().into();
            act["thread_ts"] = thread.root.as_str().into();
        }
        let done = self.act(&act).await?;
        let deliveries = done["deliveries"].as_array().cloned().unwrap_or_default();
        if deliveries.is_empty() || deliveries.iter().any(|one| one["status"] != 200) {
            return Err(format!("the mention was not accepted: {done}"));
        }
        Ok(done)
    }

    /// Mentions the bot in the channel: the message is the thread's root.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn start(&self, prompt: &str) -> Result<(Thread, String), String> {
        let done = self.mention(None, prompt).await?;
        let (channel, ts) =
            (done["channel"].as_str().unwrap_or_default(), done["ts"].as_str().unwrap_or_default());
        Ok((self.thread(channel, ts)?, self.turn(channel, ts)))
    }

    /// The thread with this root.
    ///
    /// # Errors
    /// When the ids are none.
    pub fn thread(&self, channel: &str, root: &str) -> Result<Thread, String> {
        let key = ThreadKey::slack(&self.side.ready.slack_team_id, channel, root)
            .map_err(|error| error.to_string())?;
        Ok(Thread { key, channel: channel.to_owned(), root: root.to_owned() })
    }

    /// The turn of a message.
    #[must_use]
    pub fn turn(&self, channel: &str, ts: &str) -> String {
        message_id(&self.side.ready.slack_team_id, channel, ts, &[])
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
    ) -> Result<Value, String> {
        let button = message.must_have(label)?;
        let act = json!({"type": "block_action", "channel_id": thread.channel, "message_ts": message.id, "action_id": button.id});
        self.act(&act).await
    }

    /// Fills the inputs of a message, by their names, and presses a button of it.
    ///
    /// # Errors
    /// When there is none such, or the inputs do not take the values.
    pub async fn fill(
        &self,
        thread: &Thread,
        message: &ChatMessage,
        label: &str,
        fields: &Value,
    ) -> Result<Value, String> {
        let button =
            message.button(label).ok_or_else(|| format!("no button {label:?} on {message:?}"))?;
        let mut values = json!({});
        for (name, value) in fields.as_object().into_iter().flatten() {
            let id = format!("{FIELD_ACTION}:{name}");
            values[&id] = json!({ (&id): value });
        }
        let act = json!({"type": "block_action", "channel_id": thread.channel, "message_ts": message.id, "action_id": button.id, "values": values});
        self.act(&act).await
    }

    /// A press of a button by anybody, also of one that is not there any more: signed by the test itself.
    ///
    /// # Errors
    /// When it was not answered with 200.
    pub async fn click(
        &self,
        thread: &Thread,
        message: &str,
        (action, value): (&str, &str),
        by: &Person,
    ) -> Result<(), String> {
        let team = &self.side.ready.slack_team_id;
        let payload = json!({
            "type": "block_actions", "user": {"id": by.id, "username": by.name, "name": by.name, "team_id": team},
            "team": {"id": team, "domain": "test"}, "enterprise": null, "is_enterprise_install": false,
            "container": {"type": "message", "message_ts": message, "channel_id": thread.channel, "thread_ts": thread.root},
            "channel": {"id": thread.channel}, "message": {"ts": message, "thread_ts": thread.root},
            "actions": [{"type": "button", "action_id": action, "value": value, "action_ts": format!("{}.{:06}", now_s(), by.id.len())}],
        });
        let body: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("payload", &payload.to_string())
            .finish();
        let timestamp = now_s().to_string();
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("x-slack-signature", &self.sign(&timestamp, &body)),
            ("x-slack-request-timestamp", &timestamp),
        ];
        let answer = self.side.post("slack/interactivity", &body, &headers).await?;
        match answer.status {
            200 => Ok(()),
            status => Err(format!("{status}: {answer:?}")),
        }
    }

    /// The messages of a thread, its root first.
    ///
    /// # Errors
    /// When the thread cannot be read.
    pub async fn messages(&self, thread: &Thread) -> Result<Vec<ChatMessage>, String> {
        let list = self.kept(thread, "&include_all_metadata=true").await?;
        Ok(list.iter().map(seen).collect())
    }

    /// Messages that only one person sees in a thread's channel, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn whispers(&self, thread: &Thread) -> Result<Vec<ChatMessage>, String> {
        let list = self.side.control(Method::GET, "slack/ephemeral", &Value::Null).await?;
        let kept = list["messages"].as_array().cloned().unwrap_or_default();
        let here = |one: &&Value| {
            one["channel"] == thread.channel.as_str()
                && one["message"]["thread_ts"] == thread.root.as_str()
        };
        Ok(kept.iter().filter(here).map(|one| seen(&one["message"])).collect())
    }

    /// A thread as a person sees it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn page(&self, thread: &Thread) -> Result<String, String> {
        Ok(slack_view::page(&self.kept(thread, "").await?))
    }

    /// The messages of a thread, oldest first; if direct messages are one thread, those that are not replies.
    async fn kept(&self, thread: &Thread, further: &str) -> Result<Vec<Value>, String> {
        let (channel, root) = (&thread.channel, &thread.root);
        let query = format!("channel={channel}&limit={MESSAGES_MAX}{further}");
        let list = match root.as_str() {
            "" => self.api(&format!("conversations.history?{query}")).await?,
            root => self.api(&format!("conversations.replies?ts={root}&{query}")).await?,
        };
        let mut messages = list["messages"].as_array().cloned().unwrap_or_default();
        if root.is_empty() {
            messages.reverse();
        }
        Ok(messages)
    }

    /// A person's Home as they see it; nothing before it was published.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn home(&self, user: &str) -> Result<Option<(String, Value)>, String> {
        let path = format!("slack/home?user_id={user}");
        let kept = self.side.control(Method::GET, &path, &Value::Null).await?;
        let view = &kept["view"];
        Ok((!view.is_null()).then(|| (slack_view::home(view), view.clone())))
    }

    /// Messages that only this person sees in a channel, outside threads too, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn told(&self, channel: &str, user: &str) -> Result<Vec<String>, String> {
        let path = format!("slack/ephemeral?user_id={user}");
        let list = self.side.control(Method::GET, &path, &Value::Null).await?;
        let kept = list["messages"].as_array().cloned().unwrap_or_default();
        let here = kept.iter().filter(|one| one["channel"] == channel);
        Ok(here.map(|one| slack_view::message(&one["message"])).collect())
    }

    /// The status of a thread's agent session; empty without one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn status(&self, thread: &Thread) -> Result<String, String> {
        let list = self.side.control(Method::GET, "slack/sessions", &Value::Null).await?;
        let all = list["sessions"].as_array().cloned().unwrap_or_default();
        let here = |one: &&Value| {
            one["channel_id"] == thread.channel.as_str() && one["thread_ts"] == thread.root.as_str()
        };
        let found = all.iter().find(here);
        Ok(found.and_then(|one| one["status"].as_str()).unwrap_or_default().to_owned())
    }

    /// The functions' requests to Slack, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn requests(&self) -> Result<Vec<Value>, String> {
        let list = self.side.control(Method::GET, "slack/requests", &Value::Null).await?;
        Ok(list["requests"].as_array().cloned().unwrap_or_default())
    }

    /// Ids of the chat's seeds.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn seeds(&self) -> Result<Value, String> {
        self.side.control(Method::GET, "seeds", &Value::Null).await
    }

    async fn api(&self, call_and_query: &str) -> Result<Value, String> {
        let url = format!("{}/{call_and_query}", self.side.ready.slack_api);
        let token = format!("Bearer {}", self.side.ready.slack_bot_token);
        let answer = self.side.read(&url, &token).await?;
        if answer["ok"] == true { Ok(answer) } else { Err(answer.to_string()) }
    }

    /// An event envelope as Slack sends it, about a message that a person typed.
    #[must_use]
    pub fn envelope(&self, kind: &str, event_id: &str, ts: &str, text: &str) -> Value {
        let r = &self.side.ready;
        json!({
            "token": "unused", "team_id": r.slack_team_id, "api_app_id": "A000", "type": "event_callback", "event_id": event_id,
            "event_time": now_s(), "is_ext_shared_channel": false,
            "authorizations": [{"enterprise_id": null, "team_id": r.slack_team_id, "user_id": r.slack_bot_user_id, "is_bot": true, "is_enterprise_install": false}],
            "event": {"type": kind, "user": r.slack_user_id, "text": text, "ts": ts, "event_ts": ts, "channel": r.slack_channel_id,
                "channel_type": "channel", "team": r.slack_team_id},
        })
    }

    /// Posts an event to the ingress, signed with the signing secret.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn deliver(&self, body: &str) -> Result<Answer, String> {
        let timestamp = now_s().to_string();
        let signature = self.sign(&timestamp, body);
        self.post(body, &timestamp, &signature).await
    }

    /// The signature of timestamp and body.
    ///
    /// # Panics
    /// Never: HMAC takes a key of any length.
    #[must_use]
    pub fn sign(&self, timestamp: &str, body: &str) -> String {
        let key = self.side.ready.slack_signing_secret.as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(format!("v0:{timestamp}:{body}").as_bytes());
        format!("v0={}", hex::encode(mac.finalize().into_bytes()))
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
            ("x-slack-signature", signature),
            ("x-slack-request-timestamp", timestamp),
        ];
        self.side.post("slack/events", body, &headers).await
    }
}

fn now_s() -> u64 {
    now_ms() / 1_000
}

fn seen(message: &Value) -> ChatMessage {
    let mut text = vec![message["text"].as_str().unwrap_or_default().to_owned()];
    texts(&message["blocks"], &mut text);
    let mut buttons = Vec::new();
    let button = |node: &Value| {
        let id = node["action_id"].as_str().filter(|_| node["type"] == "button")?;
        Some(Button {
            label: node["text"]["text"].as_str().unwrap_or_default().to_owned(),
            id: id.to_owned(),
        })
    };
    collect(&message["blocks"], &button, &mut buttons);
    ChatMessage {
        id: message["ts"].as_str().unwrap_or_default().to_owned(),
        key: message["metadata"]["event_payload"]["op_id"].as_str().map(str::to_owned),
        text: text.join("\n"),
        buttons,
        by_bot: message["bot_id"].is_string(),
        files: message["files"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|file| ChatFile {
                name: file["title"].as_str().unwrap_or_default().to_owned(),
                url: file["url_private"].as_str().unwrap_or_default().to_owned(),
            })
            .collect(),
    }
}
