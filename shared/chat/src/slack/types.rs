//! Slack's payloads: the fields that we read. Every field may be missing, null or of another type.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field of an unexpected type counts as absent: one odd field must not lose a message.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Unreadable entries are left out.
fn lenient_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let Value::Array(entries) = value else {
        return Ok(Vec::new());
    };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// An id, either plain or as an object with an `id`.
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

/// Envelope of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventPayload {
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
    pub(super) event: Option<SlackEvent>,
}

/// The installation for which an event is delivered.
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

/// An event, or (with the same fields) the message that was clicked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackEvent {
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
    /// Author of the thread's first message, in a reply (`GenericMessageEvent` of `@slack/types`).
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
    pub(super) files: Vec<SlackFile>,
    #[serde(deserialize_with = "lenient")]
    pub(super) hidden: bool,
    /// The opened tab of the app's Home.
    #[serde(deserialize_with = "lenient")]
    pub(super) tab: String,
    /// The message that was deleted.
    #[serde(deserialize_with = "lenient")]
    pub(super) deleted_ts: Option<String>,
    /// The deleted message's last content.
    #[serde(deserialize_with = "lenient")]
    pub(super) previous_message: Option<Box<SlackEvent>>,
}

/// A person's display names, if Slack sends them.
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
pub(super) struct SlackFile {
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
pub(super) struct InteractionPayload {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) user: Clicker,
    #[serde(deserialize_with = "lenient")]
    pub(super) team: ClickedSurface,
    pub(super) enterprise: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_enterprise_install: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) callback_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) container: Container,
    pub(super) channel: Id,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: SlackEvent,
    #[serde(deserialize_with = "lenient")]
    pub(super) message_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) action_ts: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) actions: Vec<BlockAction>,
    #[serde(deserialize_with = "lenient")]
    pub(super) state: ViewState,
    /// The view in which it happened, if any.
    #[serde(deserialize_with = "lenient")]
    pub(super) view: View,
    /// In a request for suggestions: the element's action id.
    #[serde(deserialize_with = "lenient")]
    pub(super) action_id: String,
    /// In a request for suggestions: the text typed so far.
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

/// Values of a surface's inputs, by block and action.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ViewState {
    #[serde(deserialize_with = "lenient")]
    pub(super) values: BTreeMap<String, BTreeMap<String, Stated>>,
}

/// Value of one input.
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

/// The workspace of the surface that was clicked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClickedSurface {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) enterprise_id: Option<String>,
}

/// Location of the clicked element.
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
pub(super) struct BlockAction {
    #[serde(deserialize_with = "lenient")]
    pub(super) action_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) action_ts: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) selected_option: Option<Selected>,
}

/// The option chosen in a select.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selected {
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
}
