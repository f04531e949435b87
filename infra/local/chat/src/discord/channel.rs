//! Channels and threads, and what the bot may do in them.

use super::check::{Faulty, HAS_THREAD, Origin};
use super::message::{self, Draft};
use super::{BOT_PERMISSIONS, Outcome, Refusal, app};
use crate::gate::{Call, Reply};
use crate::hub::{Hub, held};
use crate::ids::{iso, now_ms};
use crate::json::{Read, units};
use crate::limits::{LIST_MAX, TYPING_MS};
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// Flag of a message that forwards another one.
const HAS_SNAPSHOT: u64 = 1 << 14;
pub const ADMINISTRATOR: u128 = 1 << 3;
pub const MANAGE_CHANNELS: u128 = 1 << 4;
pub const ADD_REACTIONS: u128 = 1 << 6;
pub const VIEW_CHANNEL: u128 = 1 << 10;
pub const SEND_MESSAGES: u128 = 1 << 11;
pub const MANAGE_MESSAGES: u128 = 1 << 13;
pub const ATTACH_FILES: u128 = 1 << 15;
pub const MANAGE_THREADS: u128 = 1 << 34;
pub const CREATE_PUBLIC_THREADS: u128 = 1 << 35;
pub const CREATE_PRIVATE_THREADS: u128 = 1 << 36;
pub const SEND_IN_THREADS: u128 = 1 << 38;

/// The bot's permissions: what the invitation asked for, until a control call changes them.
pub fn bot_permissions(store: &Store) -> Result<String, StoreError> {
    let set = store.get("d.app", "", "permissions")?;
    Ok(set
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or(BOT_PERMISSIONS)
        .to_owned())
}

/// Refuses with 50013 where the bot lacks a permission.
pub fn need(store: &Store, bits: u128) -> Result<(), Refusal> {
    let have: u128 = bot_permissions(store)?.parse().unwrap_or_default();
    if have & ADMINISTRATOR != 0 || have & bits == bits {
        return Ok(());
    }
    Err(Refusal::permission())
}

/// The channel, if it is there and the bot may see it.
pub fn visible(hub: &Hub, store: &Store, id: &str) -> Result<Value, Refusal> {
    let channel = store
        .get("d.channel", &hub.seeds.guild_id, id)?
        .ok_or_else(Refusal::channel)?;
    need(store, VIEW_CHANNEL).map_err(|_| Refusal::new(403, 50_001, "Missing Access"))?;
    Ok(channel)
}

pub fn is_thread(channel: &Value) -> bool {
    (10..=12).contains(&channel.int("type"))
}

fn archived(channel: &Value) -> bool {
    channel["thread_metadata"].flag("archived")
}

/// Editing, reacting and deleting do not work in an archived thread.
pub fn not_archived(channel: &Value) -> Result<(), Refusal> {
    if archived(channel) {
        return Err(Refusal::new(400, 50_083, "Thread is archived"));
    }
    Ok(())
}

/// The channel, ready for a message of the bot: sending wakes an archived thread unless it is locked.
pub fn writable(hub: &Hub, store: &Store, id: &str) -> Result<Value, Refusal> {
    let mut channel = visible(hub, store, id)?;
    need(
        store,
        if is_thread(&channel) {
            SEND_IN_THREADS
        } else {
            SEND_MESSAGES
        },
    )?;
    if channel["thread_metadata"].flag("locked") {
        return Err(Refusal::new(403, 160_005, "Thread is locked"));
    }
    if archived(&channel) {
        set_archived(&mut channel, false);
        keep(hub, store, &channel)?;
    }
    Ok(channel)
}

pub fn set_archived(channel: &mut Value, archived: bool) {
    channel["thread_metadata"]["archived"] = archived.into();
    channel["thread_metadata"]["archive_timestamp"] = iso(now_ms()).into();
}

pub fn keep(hub: &Hub, store: &Store, channel: &Value) -> Result<(), StoreError> {
    store.put("d.channel", &hub.seeds.guild_id, channel.str("id"), channel)?;
    hub.notify(json!({"kind": "channels", "platform": "discord", "channel": channel["id"]}));
    Ok(())
}

/// Notes a new message: the last id, and the count of a thread.
pub fn touched(hub: &Hub, store: &Store, id: &str, message: &str) -> Result<(), StoreError> {
    let Some(mut channel) = store.get("d.channel", &hub.seeds.guild_id, id)? else {
        return Ok(());
    };
    channel["last_message_id"] = message.into();
    if is_thread(&channel) {
        for field in ["message_count", "total_message_sent"] {
            channel[field] = (channel.int(field) + 1).into();
        }
    }
    held(&hub.typing).remove(id);
    keep(hub, store, &channel)
}

pub fn get(hub: &Hub, store: &Store, id: &str) -> Outcome {
    Ok(Reply::json(visible(hub, store, id)?))
}

pub fn of_guild(hub: &Hub, store: &Store, guild: &str) -> Outcome {
    app::guild(store, guild)?;
    let channels = store.all("d.channel", &hub.seeds.guild_id)?;
    Ok(Reply::json(
        channels.into_iter().filter(|one| !is_thread(one)).collect(),
    ))
}

pub fn active_threads(hub: &Hub, store: &Store, guild: &str) -> Outcome {
    app::guild(store, guild)?;
    let mut threads = store.all("d.channel", &hub.seeds.guild_id)?;
    threads.retain(|one| is_thread(one) && !archived(one));
    threads.reverse();
    let members: Vec<Value> = threads.iter().map(|one| membership(hub, one)).collect();
    Ok(Reply::json(json!({"threads": threads, "members": members})))
}

pub fn archived_threads(hub: &Hub, store: &Store, call: &Call, parent: &str) -> Outcome {
    visible(hub, store, parent)?;
    let limit = call
        .asked("limit")
        .parse::<usize>()
        .ok()
        .filter(|n| *n > 0)
        .unwrap_or(50)
        .min(LIST_MAX as usize);
    let before = call.asked("before");
    let mut threads = store.all("d.channel", &hub.seeds.guild_id)?;
    let stamp = |one: &Value| one["thread_metadata"].str("archive_timestamp").to_owned();
    threads.retain(|one| {
        is_thread(one)
            && archived(one)
            && one.str("parent_id") == parent
            && (before.is_empty() || stamp(one).as_str() < before)
    });
    threads.sort_by_key(|one| std::cmp::Reverse(stamp(one)));
    let has_more = threads.len() > limit;
    threads.truncate(limit);
    let members: Vec<Value> = threads.iter().map(|one| membership(hub, one)).collect();
    Ok(Reply::json(
        json!({"threads": threads, "members": members, "has_more": has_more}),
    ))
}

fn membership(hub: &Hub, thread: &Value) -> Value {
    json!({"id": thread["id"], "user_id": hub.discord.application_id, "flags": 0, "join_timestamp": thread["thread_metadata"]["create_timestamp"]})
}

/// Starts a thread, from a message (its id becomes the thread's) or without one.
pub fn start_thread(
    hub: &Hub,
    store: &Store,
    call: &Call,
    parent_id: &str,
    starter: Option<&str>,
) -> Outcome {
    let parent = visible(hub, store, parent_id)?;
    if ![0, 5].contains(&parent.int("type")) {
        return Err(Refusal::new(
            400,
            50_024,
            "Cannot execute action on this channel type",
        ));
    }
    let kind = match starter {
        Some(_) => 11,
        // Discord makes a thread without a type private.
        None => call.body["type"].as_u64().unwrap_or(12),
    };
    need(
        store,
        if kind == 12 {
            CREATE_PRIVATE_THREADS
        } else {
            CREATE_PUBLIC_THREADS
        },
    )?;
    check_thread(&call.body)?;
    let starter = match starter {
        None => None,
        Some(id) => Some(
            store
                .get("d.message", parent_id, id)?
                .ok_or_else(Refusal::message)?,
        ),
    };
    let id = starter.as_ref().map_or_else(
        || hub.ids.snowflake(),
        |kept| kept["message"].str("id").to_owned(),
    );
    if store.get("d.channel", &hub.seeds.guild_id, &id)?.is_some() {
        return Err(Refusal::new(
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
    keep(hub, store, &thread)?;
    announce(hub, store, &thread, parent_id, starter)?;
    let mut answer = thread;
    answer["member"] = membership(hub, &answer);
    Ok(Reply {
        status: 201,
        ..Reply::json(answer)
    })
}

fn check_thread(body: &Value) -> Result<(), Refusal> {
    let mut wrong = Faulty::default();
    if !(1..=100).contains(&units(body.str("name"))) {
        wrong.at(
            "name",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 100 in length.",
        );
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

/// The traces that a new thread leaves: a mark on its starter and the starter shown inside, or a line in the parent.
fn announce(
    hub: &Hub,
    store: &Store,
    thread: &Value,
    parent: &str,
    starter: Option<Value>,
) -> Result<(), Refusal> {
    let author = app::bot(hub, store)?;
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
        message::keep(hub, store, &kept)?;
    } else {
        line["message_reference"]["channel_id"] = thread["id"].clone();
    }
    message::keep(
        hub,
        store,
        &json!({"message": line, "to": null, "token": null}),
    )?;
    Ok(())
}

pub fn patch(hub: &Hub, store: &Store, call: &Call, id: &str) -> Outcome {
    let mut channel = visible(hub, store, id)?;
    if !is_thread(&channel) {
        need(store, MANAGE_CHANNELS)?;
    }
    if call.body.has("name") {
        check_thread(&call.body)?;
    }
    let metadata = channel["thread_metadata"].clone();
    if call.body.has("locked") && call.body.flag("locked") != metadata.flag("locked") {
        need(store, MANAGE_THREADS)?;
        channel["thread_metadata"]["locked"] = call.body["locked"].clone();
    }
    if metadata.flag("locked") && metadata.flag("archived") {
        // What moderators have closed is opened by them alone.
        need(store, MANAGE_THREADS)?;
    }
    if is_thread(&channel) && call.body.has("archived") {
        set_archived(&mut channel, call.body.flag("archived"));
    } else {
        not_archived(&channel)?;
    }
    for field in ["name", "topic", "rate_limit_per_user"] {
        if call.body.has(field) {
            channel[field] = call.body[field].clone();
        }
    }
    if call.body.has("auto_archive_duration") {
        channel["thread_metadata"]["auto_archive_duration"] =
            call.body["auto_archive_duration"].clone();
    }
    keep(hub, store, &channel)?;
    Ok(Reply::json(channel))
}

pub fn delete(hub: &Hub, store: &Store, id: &str) -> Outcome {
    let channel = visible(hub, store, id)?;
    need(
        store,
        if is_thread(&channel) {
            MANAGE_THREADS
        } else {
            MANAGE_CHANNELS
        },
    )?;
    remove(hub, store, &channel)?;
    Ok(Reply::json(channel))
}

/// Takes a channel or thread away with its messages; threads of a channel go with it.
pub fn remove(hub: &Hub, store: &Store, channel: &Value) -> Result<(), StoreError> {
    let id = channel.str("id");
    let guild = &hub.seeds.guild_id;
    let below = store
        .all("d.channel", guild)?
        .into_iter()
        .filter(|one| one.str("parent_id") == id);
    for one in below.chain([channel.clone()]) {
        for kind in ["d.message", "d.ephemeral"] {
            store.delete_scope(kind, one.str("id"))?;
        }
        store.delete("d.channel", guild, one.str("id"))?;
    }
    if let Some(mut kept) = store.get("d.message", channel.str("parent_id"), id)? {
        kept["message"]["flags"] = (kept["message"].int("flags") & !HAS_THREAD).into();
        kept["message"]["thread"] = Value::Null;
        message::keep(hub, store, &kept)?;
    }
    hub.notify(json!({"kind": "channels", "platform": "discord", "channel": id}));
    Ok(())
}

pub fn typing(hub: &Hub, store: &Store, id: &str) -> Outcome {
    writable(hub, store, id)?;
    held(&hub.typing).insert(id.to_owned(), now_ms() + TYPING_MS);
    hub.notify(json!({"kind": "typing", "platform": "discord", "channel": id}));
    Ok(Reply::empty())
}

/// Posts what a person typed. Plain text reaches no HTTP-only app; it is there to be read and used by message commands.
pub fn say(
    hub: &Hub,
    store: &Store,
    channel_id: &str,
    user: &Value,
    body: &Value,
) -> Result<Value, Refusal> {
    let channel = store
        .get("d.channel", &hub.seeds.guild_id, channel_id)?
        .ok_or_else(Refusal::channel)?;
    if archived(&channel) {
        let mut awake = channel;
        set_archived(&mut awake, false);
        keep(hub, store, &awake)?;
    }
    let named = |channel: &str, id: &str| {
        let kept = store.get("d.message", channel, id)?;
        kept.map(|kept| kept["message"].clone())
            .ok_or_else(Refusal::message)
    };
    let mut own = body.clone();
    if body.has("forward") {
        // A forward has no words of its own; what it carries counts.
        own["content"] = "forwarded".into();
    }
    let draft = Draft {
        channel_id,
        author: user.clone(),
        body: &own,
        files: &[],
        origin: Origin::Bot,
        kind: 0,
        to: None,
        token: None,
    };
    let mut kept = message::compose(hub, store, &draft)?;
    let refers = |to: &Value, kind: u64| json!({"type": kind, "guild_id": hub.seeds.guild_id, "channel_id": to["channel_id"], "message_id": to["id"]});
    if body.has("reply_to") {
        let answered = named(channel_id, body.str("reply_to"))?;
        kept["message"]["type"] = 19.into();
        kept["message"]["message_reference"] = refers(&answered, 0);
        kept["message"]["referenced_message"] = answered;
    }
    if body.has("forward") {
        let from = &body["forward"];
        let original = named(from.str("channel_id"), from.str("message_id"))?;
        let mut snapshot = json!({});
        // Discord's list of what a snapshot holds; whose words they are is not in it.
        for field in [
            "type",
            "content",
            "embeds",
            "attachments",
            "timestamp",
            "edited_timestamp",
            "flags",
            "mentions",
            "mention_roles",
            "components",
        ] {
            snapshot[field] = original[field].clone();
        }
        kept["message"]["content"] = "".into();
        kept["message"]["flags"] = HAS_SNAPSHOT.into();
        kept["message"]["message_reference"] = refers(&original, 1);
        kept["message"]["message_snapshots"] = json!([{"message": snapshot}]);
    }
    if body.has("uploads") {
        kept["message"]["attachments"] = body["uploads"].clone();
    }
    message::keep(hub, store, &kept)?;
    Ok(kept["message"].clone())
}
