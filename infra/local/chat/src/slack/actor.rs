//! The actor and their place.

use crate::action::{ActionError, refused};
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::store::ChatStore;
use serde_json::Value;

/// A person, and the channel or direct message in which they act.
pub struct SlackActor {
    pub user: Value,
    pub channel: Value,
}

pub fn actor(hub: &Hub, store: &ChatStore, act: &Value) -> Result<SlackActor, ActionError> {
    let user_id = act.str_or("user_id", &hub.seeds.slack_user_id);
    let channel_id = act.str_or("channel_id", &hub.seeds.slack_channel_id);
    let Some(user) = store.get("s.user", "", user_id)?.filter(|one| !one.flag("is_bot")) else {
        return refused("there is no such person (user_id)");
    };
    let Some(channel) = store.get("s.channel", "", channel_id)? else {
        return refused("there is no such channel (channel_id)");
    };
    if channel.flag("is_im") && channel.str("user") != user_id {
        return refused("this direct message belongs to somebody else");
    }
    Ok(SlackActor { user, channel })
}
