//! A conversation and its messages, whatever the platform.

use bobbin_core::base::ids::ThreadKey;
use serde_json::Value;

/// The platform that a test talks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Threads below messages of a server's channel.
    Discord,
    /// Threads by the `ts` of their first message.
    Slack,
}

impl Platform {
    /// Both, for tests whose promise holds on each.
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
    /// The place of its messages: Discord's thread id, Slack's channel id.
    pub channel: String,
    /// Slack's root `ts`; the thread id on Discord.
    pub root: String,
}

/// A button that can be pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    /// Its label.
    pub label: String,
    /// Discord's `custom_id`, Slack's `action_id`.
    pub id: String,
}

/// A message in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Discord's id, Slack's `ts`.
    pub id: String,
    /// The name that the bot gave it when it posted it (Discord's nonce, Slack's metadata).
    pub key: Option<String>,
    /// Everything that can be read on it.
    pub text: String,
    /// Its buttons.
    pub buttons: Vec<Button>,
    /// The bot wrote it.
    pub by_bot: bool,
    /// Files that came with it.
    pub files: Vec<ChatFile>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatFile {
    /// The name that people read.
    pub name: String,
    /// The address to fetch it from.
    pub url: String,
}

impl ChatMessage {
    /// The button with this label, which must be there.
    pub(super) fn must_have(&self, label: &str) -> Result<&Button, String> {
        self.button(label).ok_or_else(|| format!("no button {label:?} on {self:?}"))
    }

    /// The button with this label, whatever the case of its letters.
    #[must_use]
    pub fn button(&self, label: &str) -> Option<&Button> {
        self.buttons.iter().find(|button| button.label.eq_ignore_ascii_case(label))
    }
}

/// All texts below a node, in order: labels and contents, no ids.
pub(super) fn texts(node: &Value, out: &mut Vec<String>) {
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
pub(super) fn collect<T>(node: &Value, pick: &impl Fn(&Value) -> Option<T>, out: &mut Vec<T>) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| collect(one, pick, out)),
        Value::Object(fields) => {
            out.extend(pick(node));
            fields.values().for_each(|value| collect(value, pick, out));
        }
        _ => {}
    }
}
