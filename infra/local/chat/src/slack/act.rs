//! A person's action on Slack: Slack's payload for it, signed and delivered, and the effect of the answer.

use super::actor::{SlackActor, actor};
use super::channels::changed;
use super::deliver::{deliver, post_event, retry, status};
use super::messages::root_of;
use super::{interactivity, typed_message};
use crate::action::{ActionResult, refused};
use crate::hub::Hub;
use crate::ids::random_text;
use crate::json::JsonFields;
use serde_json::{Value, json};
use std::sync::Arc;

/// Performs a person's action; returns the deliveries or the outcome.
pub async fn act(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    match act.str("type") {
        "message" => typed_message::say(hub, act).await,
        "delete" => typed_message::delete(hub, act).await,
        "block_suggestion" => interactivity::block_suggestion(hub, act).await,
        "block_action" => interactivity::block_action(hub, act).await,
        "slash" => interactivity::slash(hub, act).await,
        "shortcut" => interactivity::shortcut(hub, act).await,
        "stop_session" => stop_session(hub, act).await,
        "home_opened" => home_opened(hub, act).await,
        "retry" => retry(hub, act).await,
        "url_verification" => {
            let challenge = random_text(40);
            let answer = post_event(
                hub,
                &json!({"type": "url_verification", "challenge": challenge, "token": "local"}),
                None,
            )
            .await;
            let right = answer
                .as_ref()
                .is_ok_and(|answer| String::from_utf8_lossy(&answer.body).contains(&challenge));
            Ok(json!({"status": status(&answer), "challenge_returned": right}))
        }
        other => refused(format!(
            "unknown type {other:?}: message, delete, block_action, block_suggestion, slash, shortcut, stop_session, home_opened, retry, url_verification"
        )),
    }
}

/// The person presses Slack's own Stop button of an agent session.
async fn stop_session(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    let event = {
        let store = hub.store();
        let SlackActor { user, channel } = actor(hub, &store, act)?;
        let thread = root_of(&store, channel.str("id"), act.str("thread_ts"))?;
        if store.get("s.session", channel.str("id"), &thread)?.is_none() {
            return refused("this thread has no agent session");
        }
        changed(hub, "status", channel.str("id"), &thread);
        json!({"type": "agent_session_stopped", "channel": channel["id"], "thread_ts": thread, "user": user["id"],
            "streaming_message_ts": [], "event_ts": hub.ids.ts()})
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
}

/// The person opens the app's Home; the app gets an event, and publishes one.
async fn home_opened(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    let event = {
        let store = hub.store();
        let SlackActor { user, channel } = actor(hub, &store, act)?;
        let tab = act.str_or("tab", "home");
        json!({"type": "app_home_opened", "user": user["id"], "channel": channel["id"], "tab": tab, "event_ts": hub.ids.ts(),
            "view": store.get("s.home", "", user.str("id"))?})
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
}
