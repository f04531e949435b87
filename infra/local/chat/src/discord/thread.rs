//! Threads: starting one, the messages that this leaves, and the active threads.

use super::channel;
use super::flags::HAS_THREAD;
use super::permissions::{CREATE_PRIVATE_THREADS, CREATE_PUBLIC_THREADS, require};
use super::refusal::{DiscordRefusal, FormErrors, RouteResult};
use super::stored_message;
use super::users::{self, known_guild};
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::ids::{iso, now_ms};
use crate::json::{JsonFields, units};
use crate::store::ChatStore;
use serde_json::{Value, json};

/// Starts a thread from a message (whose id becomes the thread's) or without one.
pub fn start(
    hub: &Hub,
    store: &ChatStore,
    call: &ApiRequest,
    parent_id: &str,
    starter: Option<&str>,
) -> RouteResult {
    let parent = channel::visible(hub, store, parent_id)?;
    if ![0, 5].contains(&parent.int("type")) {
        return Err(DiscordRefusal::new(400, 50_024, "Cannot execute action on this channel type"));
    }
    let kind = match starter {
        Some(_) => 11,
        // Without a type Discord makes a private thread.
        None => call.body["type"].as_u64().unwrap_or(12),
    };
    require(store, if kind == 12 { CREATE_PRIVATE_THREADS } else { CREATE_PUBLIC_THREADS })?;
    check_thread(&call.body)?;
    let starter = match starter {
        None => None,
        Some(id) => {
            Some(store.get("d.message", parent_id, id)?.ok_or_else(DiscordRefusal::message)?)
        }
    };
    let id = starter
        .as_ref()
        .map_or_else(|| hub.ids.snowflake(), |kept| kept["message"].str("id").to_owned());
    if store.get("d.channel", &hub.seeds.guild_id, &id)?.is_some() {
        return Err(DiscordRefusal::new(
            400,
            160_004,
            "A thread has already been created for this message",
        ));
    }
    let now = iso(now_ms());
    let thread = json!({"id": id, "type": kind, "guild_id": hub.seeds.guild_id, "parent_id": parent_id, "owner_id": hub.discord.application_id,
        "name": call.body["name"], "last_message_id": null, "message_count": 0, "member_count": 1, "total_message_sent": 0,
        "rate_limit_per_user": call.body.int("rate_limit_per_user"), "flags": 0,
        "thread_metadata": {"archived": false, "locked": false, "archive_timestamp": now, "create_timestamp": now,
            "auto_archive_duration": call.body["auto_archive_duration"].as_u64().unwrap_or(4320)}});
    channel::save(hub, store, &thread)?;
    leave_traces(hub, store, &thread, parent_id, starter)?;
    let mut answer = thread;
    answer["member"] = membership(hub, &answer);
    Ok(ApiResponse { status: 201, ..ApiResponse::json(answer) })
}

fn check_thread(body: &Value) -> Result<(), DiscordRefusal> {
    let mut wrong = FormErrors::default();
    if !(1..=100).contains(&units(body.str("name"))) {
        wrong.at("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
    }
    if body.has("auto_archive_duration")
        && ![60, 1440, 4320, 10_080].contains(&body.int("auto_archive_duration"))
    {
        wrong.at(
            "auto_archive_duration",
            "BASE_TYPE_CHOICES",
            "Value must be one of {60, 1440, 4320, 10080}.",
        );
    }
    wrong.done()
}

/// What a new thread leaves behind: a flag on its starter message and the starter shown inside, or a line in the
/// parent.
fn leave_traces(
    hub: &Hub,
    store: &ChatStore,
    thread: &Value,
    parent: &str,
    starter: Option<Value>,
) -> Result<(), DiscordRefusal> {
    let author = users::bot(hub, store)?;
    let reference = json!({"channel_id": parent, "guild_id": hub.seeds.guild_id, "message_id": starter.as_ref().map(|kept| kept["message"]["id"].clone())});
    let (channel_id, kind, content) = match &starter {
        Some(_) => (thread.str("id"), 21, ""),
        None => (parent, 18, thread.str("name")),
    };
    let mut line = json!({"id": hub.ids.snowflake(), "channel_id": channel_id, "author": author, "content": content, "timestamp": iso(now_ms()),
        "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [], "attachments": [], "embeds": [],
        "components": [], "pinned": false, "type": kind, "flags": 0, "message_reference": reference});
    if let Some(mut kept) = starter {
        line["referenced_message"] = kept["message"].clone();
        kept["message"]["flags"] = (kept["message"].int("flags") | HAS_THREAD).into();
        kept["message"]["thread"] = thread.clone();
        stored_message::save(hub, store, &kept)?;
    } else {
        line["message_reference"]["channel_id"] = thread["id"].clone();
    }
    stored_message::save(hub, store, &json!({"message": line, "to": null, "token": null}))?;
    Ok(())
}

pub fn active_threads(hub: &Hub, store: &ChatStore, guild: &str) -> RouteResult {
    known_guild(store, guild)?;
    let mut threads = store.all("d.channel", &hub.seeds.guild_id)?;
    threads.retain(|one| channel::is_thread(one) && !channel::archived(one));
    threads.reverse();
    let members: Vec<Value> = threads.iter().map(|one| membership(hub, one)).collect();
    Ok(ApiResponse::json(json!({"threads": threads, "members": members})))
}

fn membership(hub: &Hub, thread: &Value) -> Value {
    json!({"id": thread["id"], "user_id": hub.discord.application_id, "flags": 0, "join_timestamp": thread["thread_metadata"]["create_timestamp"]})
}
