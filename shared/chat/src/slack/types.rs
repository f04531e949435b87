//! Slack's payloads, as far as they are read. Every field may be missing, null or of another kind.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field of another kind than expected counts as absent: one odd field must not lose a message.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Entries that cannot be read are left out.
fn lenient_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let Value::Array(entries) = value else {
        return Ok(Vec::new());
    };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// An id, given as it is or as an object with an `id`.
#[derive(Debug, Default)]
pub(super) struct Id(pub(super) Option<String>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::String(id) => Some(id),
            Value::Object(object) => object.get("id").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        }))
    }
}

impl Id {
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|id| !id.is_empty())
    }
}

/// What surrounds an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Envelope {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) challenge: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) enterprise_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) context_team_id: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) authorizations: Vec<Authorization>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_ext_shared_channel: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) event: Option<Event>,
}

/// The installation that an event is delivered for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Authorization {
    #[serde(deserialize_with = "lenient")]
    pub(super) enterprise_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) user_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_enterprise_install: bool,
}

/// What happened, or (by the same fields) the message that a click stands on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
    pub(super) user: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) user_profile: Profile,
    /// The name under which an app wrote it.
    #[serde(deserialize_with = "lenient")]
    pub(super) username: String,
    pub(super) bot_id: Option<Value>,
    pub(super) bot_profile: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) event_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) thread_ts: Option<String>,
    /// Who wrote the thread's first message, of a reply (`GenericMessageEvent` of `@slack/types`).
    pub(super) parent_user_id: Id,
    pub(super) channel: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) channel_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) team: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) user_team: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) source_team: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) files: Vec<File>,
    #[serde(deserialize_with = "lenient")]
    pub(super) hidden: bool,
    /// Which tab of the app's Home was opened.
    #[serde(deserialize_with = "lenient")]
    pub(super) tab: String,
    /// The message that was deleted.
    #[serde(deserialize_with = "lenient")]
    pub(super) deleted_ts: Option<String>,
    /// That message as it was.
    #[serde(deserialize_with = "lenient")]
    pub(super) previous_message: Option<Box<Event>>,
}

/// What others call somebody, where Slack says it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    #[serde(deserialize_with = "lenient")]
    pub(super) display_name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) real_name: String,
}

/// A file of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) mimetype: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) size: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) url_private: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) url_private_download: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) mode: String,
}

/// A click, a shortcut or a submission.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Interaction {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) user: Clicker,
    #[serde(deserialize_with = "lenient")]
    pub(super) team: Surface,
    pub(super) enterprise: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_enterprise_install: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) callback_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) container: Container,
    pub(super) channel: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Event,
    #[serde(deserialize_with = "lenient")]
    pub(super) message_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) action_ts: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) actions: Vec<Action>,
    #[serde(deserialize_with = "lenient")]
    pub(super) state: State,
    /// The view in which it was done, if it was one.
    #[serde(deserialize_with = "lenient")]
    pub(super) view: View,
    /// Of a request for suggestions: the element's action id.
    #[serde(deserialize_with = "lenient")]
    pub(super) action_id: String,
    /// Of a request for suggestions: what was typed so far.
    #[serde(deserialize_with = "lenient")]
    pub(super) value: String,
}

/// A modal or a Home.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct View {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) app_installed_team_id: Option<String>,
}

/// What stands in the inputs of a surface, by block and action.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    #[serde(deserialize_with = "lenient")]
    pub(super) values: BTreeMap<String, BTreeMap<String, Stated>>,
}

/// What stands in one input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    #[serde(deserialize_with = "lenient")]
    pub(super) value: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) selected_option: Option<Selected>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) selected_options: Vec<Selected>,
}

/// The person who clicked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Clicker {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) username: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
}

/// The workspace of the surface on which somebody clicked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Surface {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) enterprise_id: Option<String>,
}

/// Where the clicked element stands.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    #[serde(deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) thread_ts: Option<String>,
}

/// A button, select or input that was used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Action {
    #[serde(deserialize_with = "lenient")]
    pub(super) action_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) action_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) selected_option: Option<Selected>,
}

/// What was picked in a select.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selected {
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
}
