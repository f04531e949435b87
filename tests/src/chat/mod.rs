//! Both chat platforms, as a person and as a reader of the documented APIs see them.

mod discord;
mod slack;
pub mod slack_view;
pub mod view;

pub use discord::Discord;
pub use slack::Slack;

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::ids::{Ms, ThreadKey};
use reqwest::{Client, Method};
use serde_json::Value;

use crate::http::{Answer, call, send};
use crate::stack::Ready;

/// Which platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Discord.
    Discord,
    /// Slack.
    Slack,
}

impl Platform {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Discord, Self::Slack];

    /// Its name in the names of tests.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Discord => "discord",
            Self::Slack => "slack",
        }
    }
}

/// A conversation that a test has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its key in the records.
    pub key: ThreadKey,
    /// Where its messages are read: Discord's thread id, Slack's channel id.
    pub channel: String,
    /// Slack's root `ts`; the thread id on Discord.
    pub root: String,
}

/// A button that can be pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    /// What people read on it.
    pub label: String,
    /// Discord's `custom_id`, Slack's `action_id`.
    pub id: String,
}

/// A message as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Discord's id, Slack's `ts`.
    pub id: String,
    /// The name that the bot gave it when it posted it (Discord's nonce, Slack's metadata).
    pub key: Option<String>,
    /// Everything that can be read on it.
    pub text: String,
    /// What can be pressed.
    pub buttons: Vec<Button>,
    /// The bot wrote it.
    pub by_bot: bool,
    /// Files that came with it.
    pub files: Vec<SeenFile>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// The name that people read.
    pub name: String,
    /// Where it can be fetched.
    pub url: String,
}

/// One stack, as a platform's client reaches it.
#[derive(Debug, Clone)]
struct Side {
    client: Client,
    ready: Ready,
    ingress: String,
}

impl Side {
    /// For this stack; what a test signs itself goes to `ingress`.
    fn new(client: &Client, ready: &Ready, ingress: &str) -> Self {
        Self {
            client: client.clone(),
            ready: ready.clone(),
            ingress: ingress.trim_end_matches('/').to_owned(),
        }
    }

    /// A control call of the chat.
    async fn control(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let url = format!("{}/_control/{path}", self.ready.console);
        let control = self.ready.control();
        call(&self.client, method, &url, &control, body).await?.ok()
    }

    /// A read call of a platform's API.
    async fn read(&self, url: &str, authorization: &str) -> Result<Value, String> {
        call(&self.client, Method::GET, url, authorization, &Value::Null)
            .await?
            .ok()
    }

    /// The text of a file of the platform.
    async fn file(&self, url: &str, authorization: &str) -> Result<String, String> {
        let request = self.client.get(url).header("authorization", authorization);
        match send(request).await? {
            answer if answer.status == 200 => Ok(answer.text),
            answer => Err(format!("{}: {}", answer.status, answer.text)),
        }
    }

    /// Keeps a file at the chat, to be sent along with an act; answers its id.
    async fn upload(&self, name: &str, media_type: &str, bytes: &[u8]) -> Result<String, String> {
        let url = format!("{}/ui/upload?name={name}", self.ready.console);
        let request = self.client.post(url).body(bytes.to_vec());
        let request = request.header("authorization", self.ready.control());
        let kept = send(request.header("content-type", media_type))
            .await?
            .ok()?;
        let id = kept["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("the file was not kept: {kept}"))
    }

    /// Posts a body to the ingress under these headers, right or wrong.
    async fn post(
        &self,
        path: &str,
        body: &str,
        headers: [(&str, &str); 2],
    ) -> Result<Answer, String> {
        let request = self.client.post(format!("{}/{path}", self.ingress));
        let request = request
            .body(body.to_owned())
            .header("content-type", "application/json");
        let signed = headers.into_iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        });
        send(signed).await
    }
}

fn now_ms() -> Ms {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            Ms::try_from(since.as_millis()).unwrap_or(Ms::MAX)
        })
}

impl Seen {
    /// The button with this label, which must be there.
    fn must_have(&self, label: &str) -> Result<&Button, String> {
        self.button(label)
            .ok_or_else(|| format!("no button {label:?} on {self:?}"))
    }

    /// The button with this label, whatever the case of its letters.
    #[must_use]
    pub fn button(&self, label: &str) -> Option<&Button> {
        self.buttons
            .iter()
            .find(|button| button.label.eq_ignore_ascii_case(label))
    }
}

/// All texts below a node, in the order in which they stand: labels and contents, no ids.
fn texts(node: &Value, out: &mut Vec<String>) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| texts(one, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text)
                        if ["content", "text", "label", "title", "description"]
                            .contains(&name.as_str()) =>
                    {
                        out.push(text.clone());
                    }
                    Value::Array(_) | Value::Object(_) => texts(value, out),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Every object below a node that `pick` takes.
fn collect<T>(node: &Value, pick: &impl Fn(&Value) -> Option<T>, out: &mut Vec<T>) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| collect(one, pick, out)),
        Value::Object(fields) => {
            out.extend(pick(node));
            fields.values().for_each(|value| collect(value, pick, out));
        }
        _ => {}
    }
}
