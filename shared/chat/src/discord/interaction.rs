//! The payloads of interactions, parsed tolerantly: unknown fields are ignored, unknown numbers kept, null counts as
//! absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::commands::FilledIn;

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Payload of a command, click, form or completion.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Interaction {
    /// Snowflake; unique, so it is the deduplication id.
    pub id: String,
    /// 1 ping, 2 command, 3 component, 4 completion, 5 form.
    #[serde(rename = "type")]
    pub kind: u16,
    /// Answers this interaction for 15 minutes. Secret.
    pub token: String,
    /// Parsed in a second step, by kind.
    pub data: Option<Value>,
    /// The guild; absent in direct messages.
    pub guild_id: Option<String>,
    pub channel_id: Option<String>,
    /// The channel or thread as an object; absent in old payloads.
    pub channel: Option<Channel>,
    /// The person, in a guild.
    pub member: Option<GuildMember>,
    /// The person, in a direct message.
    pub user: Option<User>,
    /// The message that was clicked, or from which a form was opened.
    pub message: Option<DiscordMessage>,
    /// Our permissions in this channel, decimal.
    pub app_permissions: Option<String>,
    /// 0 guild, 1 direct message with the bot, 2 any other.
    pub context: Option<u16>,
    /// `"0"`: guild that installed the application; `"1"`: user who did.
    #[serde(deserialize_with = "or_default")]
    pub authorizing_integration_owners: BTreeMap<String, String>,
}

/// A channel or thread.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Channel {
    /// 0 text, 1 direct message, 2 voice, 5 announcement, 10 to 12 threads, 13 stage, 15 forum, 16 media.
    #[serde(rename = "type")]
    pub kind: u16,
    /// Channel of a thread.
    pub parent_id: Option<String>,
}

impl Channel {
    /// Whether it is a thread (of an announcement channel, public, private).
    #[must_use]
    pub const fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }
}

/// The acting person, as a member of the guild.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct GuildMember {
    pub user: Option<User>,
    /// Name in this guild.
    pub nick: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub roles: Vec<String>,
    /// The person's permissions in this channel, as a decimal number.
    pub permissions: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct User {
    pub id: String,
    /// Unique name; `global_name` is shown if set.
    pub username: String,
    pub global_name: Option<String>,
    /// An app or a bot, not a person.
    #[serde(deserialize_with = "or_default")]
    pub bot: bool,
}

/// A message: the fields that we read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DiscordMessage {
    #[serde(deserialize_with = "or_default")]
    pub content: String,
    pub flags: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub attachments: Vec<DiscordAttachment>,
    /// The author; absent in a snapshot.
    pub author: Option<User>,
    /// Embeds, in which other bots write: builds, alerts, tickets.
    #[serde(deserialize_with = "or_default")]
    pub embeds: Vec<Value>,
    /// Copies of the messages that it forwards.
    #[serde(deserialize_with = "or_default")]
    pub message_snapshots: Vec<ForwardedMessage>,
    /// The message that it replies to; null if that was deleted.
    pub referenced_message: Option<Box<DiscordMessage>>,
}

/// The copy of a forwarded message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ForwardedMessage {
    /// Without its author: Discord does not say who wrote it.
    #[serde(deserialize_with = "or_default")]
    pub message: DiscordMessage,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DiscordAttachment {
    pub filename: String,
    /// Size of the file in bytes, by Discord's count.
    pub size: u64,
    /// Address on Discord's CDN, valid until its signature expires.
    pub url: String,
    pub content_type: Option<String>,
}

/// Objects for the ids in the data.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resolved {
    #[serde(deserialize_with = "or_default")]
    pub attachments: BTreeMap<String, DiscordAttachment>,
    #[serde(deserialize_with = "or_default")]
    pub messages: BTreeMap<String, DiscordMessage>,
}

/// Data of a command or completion.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InvokedCommand {
    pub name: String,
    /// 1 slash, 2 user menu, 3 message menu.
    #[serde(rename = "type")]
    pub kind: u16,
    /// The options with their values.
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<CommandOption>,
    #[serde(deserialize_with = "or_default")]
    pub resolved: Resolved,
    /// Target of a menu command.
    pub target_id: Option<String>,
}

/// Options of the command itself or its subcommand.
impl FilledIn for InvokedCommand {
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }

    /// Accepts every name that a client with an older set of commands may use.
    fn required(&self, name: &str) -> &str {
        let first = || {
            let option = self.options.iter().find(|option| option.kind == TEXT)?;
            option.value.as_ref()?.as_str()
        };
        self.text(name).or_else(first).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn subcommand(&self) -> Option<&str> {
        self.chosen().map(|chosen| chosen.name.as_str())
    }
}

impl InvokedCommand {
    /// The subcommand with its options.
    #[must_use]
    pub fn chosen(&self) -> Option<&CommandOption> {
        self.options.iter().find(|option| option.kind == SUBCOMMAND)
    }

    /// The option that the person is typing into.
    #[must_use]
    pub fn focused(&self) -> Option<&CommandOption> {
        self.filled().iter().find(|option| option.focused)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let mut filled = self.filled().iter();
        filled.find(|option| option.name == name)?.value.as_ref()
    }

    /// The options that hold values.
    fn filled(&self) -> &[CommandOption] {
        self.chosen().map_or(&self.options, |chosen| &chosen.options)
    }
}

/// Option type: subcommand.
const SUBCOMMAND: u16 = 1;
/// Option type: text.
const TEXT: u16 = 3;

/// An option of a command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CommandOption {
    pub name: String,
    /// 1 subcommand, 3 text, 5 yes or no, 6 user, 7 channel, 8 role, 11 attachment.
    #[serde(rename = "type")]
    pub kind: u16,
    /// The value of the option.
    pub value: Option<Value>,
    /// The options of a subcommand.
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<CommandOption>,
    /// In a completion: the person is typing into this option.
    #[serde(deserialize_with = "or_default")]
    pub focused: bool,
}

/// Data of a click.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Component {
    pub custom_id: String,
    /// Values chosen in a select.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}

/// Data of a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Modal {
    /// Id of the form, as it was opened.
    pub custom_id: String,
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<FormComponent>,
    #[serde(deserialize_with = "or_default")]
    pub resolved: Resolved,
}

impl Modal {
    /// The input with this id, in a label or an old action row.
    #[must_use]
    pub fn field(&self, custom_id: &str) -> Option<&FormComponent> {
        let inputs = self
            .components
            .iter()
            .flat_map(|part| part.component.as_deref().into_iter().chain(&part.components));
        inputs.into_iter().find(|field| field.custom_id == custom_id)
    }
}

/// A part of a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FormComponent {
    pub custom_id: String,
    /// The text or choice.
    #[serde(deserialize_with = "or_default")]
    pub value: Value,
    /// Chosen options or files.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
    /// The input of a label.
    pub component: Option<Box<FormComponent>>,
    /// The inputs of an action row.
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<FormComponent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_prompt_option_name_still_works() {
        let read = |text| serde_json::from_str::<InvokedCommand>(text).expect("valid");
        let old = read(
            r#"{"options":[{"name":"file","type":11,"value":"1"},{"name":"task","type":3,"value":"do it"}]}"#,
        );
        assert_eq!(old.required("prompt"), "do it");
        let both = read(
            r#"{"options":[{"name":"a","type":3,"value":"x"},{"name":"prompt","type":3,"value":"y"}]}"#,
        );
        assert_eq!(both.required("prompt"), "y");
        assert_eq!(read("{}").required("prompt"), "");
    }
}
