//! The shapes of an interaction, read tolerantly: unknown fields are ignored, unknown numbers kept, null is absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::commands::FilledIn;

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What Discord sends for a command, click, form or completion.
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
    /// Read in a second step, by kind.
    pub data: Option<Value>,
    /// Guild, outside direct messages.
    pub guild_id: Option<String>,
    pub channel_id: Option<String>,
    /// The channel or thread as an object; absent in old shapes.
    pub channel: Option<Channel>,
    /// Who, in a guild.
    pub member: Option<Member>,
    /// Who, in a direct message.
    pub user: Option<User>,
    /// The message on which somebody clicked, or from which a form was opened.
    pub message: Option<Message>,
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

/// Who acts, as a member of the guild in which they act.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Member {
    pub user: Option<User>,
    /// Name in this guild.
    pub nick: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub roles: Vec<String>,
    /// What they may do in this channel, as a decimal number.
    pub permissions: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct User {
    pub id: String,
    /// Name that nobody else has; `global_name` is shown where there is one.
    pub username: String,
    pub global_name: Option<String>,
    /// An app or a bot, and no person.
    #[serde(deserialize_with = "or_default")]
    pub bot: bool,
}

/// A message, as far as we look at it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    #[serde(deserialize_with = "or_default")]
    pub content: String,
    pub flags: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub attachments: Vec<Attachment>,
    /// Who wrote it; a snapshot has none.
    pub author: Option<User>,
    /// Boxes that other bots write in: builds, alerts, tickets.
    #[serde(deserialize_with = "or_default")]
    pub embeds: Vec<Value>,
    /// The messages that it forwards, as they were then.
    #[serde(deserialize_with = "or_default")]
    pub message_snapshots: Vec<ForwardedMessage>,
    /// The message that it answers to; null where that was deleted.
    pub referenced_message: Option<Box<Message>>,
}

/// The copy of a message that another one forwards.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ForwardedMessage {
    /// Without its author: Discord does not tell whose words travel.
    #[serde(deserialize_with = "or_default")]
    pub message: Message,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Attachment {
    pub filename: String,
    /// Bytes of the file, as Discord counts them.
    pub size: u64,
    /// Address on Discord's CDN, of use only until its signature expires.
    pub url: String,
    pub content_type: Option<String>,
}

/// Objects that ids in the data stand for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resolved {
    #[serde(deserialize_with = "or_default")]
    pub attachments: BTreeMap<String, Attachment>,
    #[serde(deserialize_with = "or_default")]
    pub messages: BTreeMap<String, Message>,
}

/// Data of a command or completion.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Command {
    pub name: String,
    /// 1 slash, 2 user menu, 3 message menu.
    #[serde(rename = "type")]
    pub kind: u16,
    /// What was filled in.
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<CommandOption>,
    #[serde(deserialize_with = "or_default")]
    pub resolved: Resolved,
    /// What a menu command was used on.
    pub target_id: Option<String>,
}

/// At the command itself or its subcommand.
impl FilledIn for Command {
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }

    /// By whatever name a client knows it that still has an older set of commands.
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
}

impl Command {
    /// The subcommand that was chosen.
    #[must_use]
    pub fn subcommand(&self) -> Option<&CommandOption> {
        self.options.iter().find(|option| option.kind == SUBCOMMAND)
    }

    /// The option that somebody is typing into.
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
        self.subcommand().map_or(&self.options, |chosen| &chosen.options)
    }
}

/// Option type of a subcommand.
const SUBCOMMAND: u16 = 1;
/// Option type of a text.
const TEXT: u16 = 3;

/// An option of a command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CommandOption {
    pub name: String,
    /// 1 subcommand, 3 text, 5 yes or no, 6 user, 7 channel, 8 role, 11 attachment.
    #[serde(rename = "type")]
    pub kind: u16,
    /// What was filled in.
    pub value: Option<Value>,
    /// What was filled in at a subcommand.
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<CommandOption>,
    /// In a completion: this one is being typed into.
    #[serde(deserialize_with = "or_default")]
    pub focused: bool,
}

/// Data of a click.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Component {
    pub custom_id: String,
    /// What was chosen in a select.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}

/// Data of a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Modal {
    /// Name of the form, as it was opened.
    pub custom_id: String,
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<Field>,
    #[serde(deserialize_with = "or_default")]
    pub resolved: Resolved,
}

impl Modal {
    /// The input of this name, in a label or an old action row.
    #[must_use]
    pub fn field(&self, custom_id: &str) -> Option<&Field> {
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
pub struct Field {
    pub custom_id: String,
    /// What was typed, or chosen.
    #[serde(deserialize_with = "or_default")]
    pub value: Value,
    /// Its choices or files.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
    /// The input of a label.
    pub component: Option<Box<Field>>,
    /// The inputs of an action row.
    #[serde(deserialize_with = "or_default")]
    pub components: Vec<Field>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_prompt_option_name_still_works() {
        let read = |text| serde_json::from_str::<Command>(text).expect("valid");
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
