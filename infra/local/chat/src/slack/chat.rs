//! Messages: posting, updating, deleting, ephemeral ones, reactions, `response_url`.

use super::{Fail, Outcome, blocks, changed, channel, fail};
use crate::hub::Hub;
use crate::ids::{alive, now_ms, random_text, ts_micros};
use crate::json::{Read, push};
use crate::limits::{
    RESPONSE_URL_MS, RESPONSE_URL_USES_MAX, SLACK_TEXT_CHARS_MAX, SLACK_UPDATE_CHARS_MAX,
};
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// What a message says: `text`, `blocks` or `markdown_text`, checked.
fn content(args: &Value) -> Result<(String, Option<Value>), Fail> {
    let markdown = args.str("markdown_text");
    if !markdown.is_empty() {
        if args.has("text") || args.has("blocks") {
            return fail("markdown_text_conflict");
        }
        if markdown.chars().count() > 12_000 {
            return fail("msg_too_long");
        }
        return Ok((
            markdown.to_owned(),
            Some(json!([{"type": "markdown", "text": markdown}])),
        ));
    }
    if args.has("blocks") {
        blocks::check(&args["blocks"], false)?;
    }
    let blocks = (!args.list("blocks").is_empty()).then(|| args["blocks"].clone());
    if args.str("text").is_empty() && blocks.is_none() && args.list("attachments").is_empty() {
        return fail("no_text");
    }
    let text = args
        .str("text")
        .chars()
        .take(SLACK_TEXT_CHARS_MAX)
        .collect();
    Ok((text, blocks))
}

/// Blocks get an id where they have none.
fn numbered(mut blocks: Value) -> Value {
    for block in blocks
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter(|one| !one.has("block_id"))
    {
        block["block_id"] = random_text(5).into();
    }
    blocks
}

/// The bot's message, not yet stored.
pub fn from_bot(hub: &Hub, args: &Value) -> Outcome {
    let (text, blocks) = content(args)?;
    let mut message = json!({"type": "message", "user": hub.slack.bot_user_id, "bot_id": hub.seeds.slack_bot_id, "app_id": hub.slack.app_id,
        "team": hub.seeds.team_id, "text": text, "bot_profile": {"id": hub.seeds.slack_bot_id, "app_id": hub.slack.app_id, "name": "Bobbin",
        "deleted": false, "team_id": hub.seeds.team_id}});
    if let Some(blocks) = blocks {
        message["blocks"] = numbered(blocks);
    }
    if args.has("metadata") {
        if args["metadata"].str("event_type").is_empty()
            || !args["metadata"]["event_payload"].is_object()
        {
            return fail("invalid_metadata_format");
        }
        message["metadata"] = args["metadata"].clone();
    }
    Ok(message)
}

/// The root of the thread that a `ts` belongs to; a reply's `ts` is mapped to its root.
pub fn root_of(store: &Store, channel: &str, ts: &str) -> Result<String, Fail> {
    if ts_micros(ts).is_none() {
        return fail("invalid_thread_ts");
    }
    // A root that is not kept here may still be answered: it may be older than what is kept.
    Ok(match store.get("s.message", channel, ts)? {
        Some(message) if message.has("thread_ts") => message.str("thread_ts").to_owned(),
        _ => ts.to_owned(),
    })
}

/// Stores a message and counts it in its thread's root.
pub fn keep_new(
    hub: &Hub,
    store: &Store,
    channel: &str,
    message: &mut Value,
) -> Result<String, StoreError> {
    let ts = hub.ids.ts();
    message["ts"] = ts.as_str().into();
    store.put_message("s.message", channel, &ts, message)?;
    let thread = message.str("thread_ts").to_owned();
    if !thread.is_empty()
        && thread != ts
        && let Some(mut root) = store.get("s.message", channel, &thread)?
    {
        root["thread_ts"] = thread.as_str().into();
        root["reply_count"] = (root.int("reply_count") + 1).into();
        root["latest_reply"] = ts.as_str().into();
        if !root.list("reply_users").contains(&message["user"]) {
            push(&mut root, "reply_users", message["user"].clone());
        }
        root["reply_users_count"] = root.list("reply_users").len().into();
        store.put("s.message", channel, &thread, &root)?;
        message["parent_user_id"] = root["user"].clone();
        store.put("s.message", channel, &ts, message)?;
    }
    changed(
        hub,
        "message",
        channel,
        if thread.is_empty() { &ts } else { &thread },
    );
    Ok(ts)
}

pub fn post(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let to = channel(hub, store, args, "channel")?;
    if to.flag("is_archived") {
        return fail("is_archived");
    }
    let mut message = from_bot(hub, args)?;
    if args.has("thread_ts") {
        message["thread_ts"] = root_of(store, to.str("id"), args.str("thread_ts"))?.into();
        if args.flag("reply_broadcast") {
            message["subtype"] = "thread_broadcast".into();
        }
    }
    let ts = keep_new(hub, store, to.str("id"), &mut message)?;
    Ok(json!({"channel": to["id"], "ts": ts, "message": shown(&message, false)}))
}

/// A message as the API shows it: metadata only where asked for.
pub fn shown(message: &Value, with_metadata: bool) -> Value {
    let mut message = message.clone();
    if !with_metadata && let Some(fields) = message.as_object_mut() {
        fields.remove("metadata");
    }
    message
}

/// A message of the bot itself, or the refusal that Slack gives.
pub fn own(
    hub: &Hub,
    store: &Store,
    args: &Value,
    refusal: &'static str,
) -> Result<(String, Value), Fail> {
    let channel = channel(hub, store, args, "channel")?.str("id").to_owned();
    let Some(message) = store.get("s.message", &channel, args.str("ts"))? else {
        return fail("message_not_found");
    };
    if message.str("bot_id") != hub.seeds.slack_bot_id {
        return fail(refusal);
    }
    Ok((channel, message))
}

pub fn update(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let (channel, mut message) = own(hub, store, args, "cant_update_message")?;
    if args.str("text").chars().count() > SLACK_UPDATE_CHARS_MAX {
        return fail("msg_too_long");
    }
    let fresh = from_bot(hub, args)?;
    message["text"] = fresh["text"].clone();
    // Text without blocks removes the old blocks; an update with blocks shows no "edited" mark.
    message["blocks"] = fresh["blocks"].clone();
    if fresh.has("metadata") {
        message["metadata"] = fresh["metadata"].clone();
    }
    if !fresh.has("blocks") {
        message["edited"] = json!({"user": hub.slack.bot_user_id, "ts": hub.ids.ts()});
        message
            .as_object_mut()
            .map(|fields| fields.remove("blocks"));
    }
    store.put("s.message", &channel, args.str("ts"), &message)?;
    let thread = if message.has("thread_ts") {
        message.str("thread_ts")
    } else {
        args.str("ts")
    };
    changed(hub, "message", &channel, thread);
    Ok(
        json!({"channel": channel, "ts": args["ts"], "text": message["text"], "message": shown(&message, false)}),
    )
}

pub fn delete(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let (channel, message) = own(hub, store, args, "cant_delete_message")?;
    store.delete("s.message", &channel, args.str("ts"))?;
    let thread = message.str("thread_ts");
    if let Some(mut root) = store
        .get("s.message", &channel, thread)?
        .filter(|_| thread != args.str("ts"))
    {
        root["reply_count"] = root.int("reply_count").saturating_sub(1).into();
        store.put("s.message", &channel, thread, &root)?;
    }
    changed(hub, "message", &channel, thread);
    Ok(json!({"channel": channel, "ts": args["ts"]}))
}

/// Stores a message that only one person sees.
pub fn keep_ephemeral(
    hub: &Hub,
    store: &Store,
    channel: &str,
    to: &str,
    message: &mut Value,
) -> Result<String, StoreError> {
    let ts = hub.ids.ts();
    message["ts"] = ts.as_str().into();
    message["is_ephemeral"] = true.into();
    store.put_message(
        "s.ephemeral",
        channel,
        &ts,
        &json!({"message": message, "to": to}),
    )?;
    changed(hub, "message", channel, message.str("thread_ts"));
    Ok(ts)
}

pub fn post_ephemeral(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let to = channel(hub, store, args, "channel")?;
    if store.get("s.user", "", args.str("user"))?.is_none() {
        return fail("user_not_in_channel");
    }
    let mut message = from_bot(hub, args)?;
    if args.has("thread_ts") {
        message["thread_ts"] = root_of(store, to.str("id"), args.str("thread_ts"))?.into();
    }
    let ts = keep_ephemeral(hub, store, to.str("id"), args.str("user"), &mut message)?;
    Ok(json!({"message_ts": ts}))
}

pub fn permalink(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let channel = channel(hub, store, args, "channel")?.str("id").to_owned();
    let ts = args.str("message_ts");
    if store.get("s.message", &channel, ts)?.is_none() {
        return fail("message_not_found");
    }
    Ok(json!({"channel": channel, "permalink": format!("{}/#slack/{channel}/{ts}", hub.base)}))
}

fn reaction_target(hub: &Hub, store: &Store, args: &Value) -> Result<(String, Value), Fail> {
    let channel = channel(hub, store, args, "channel")?.str("id").to_owned();
    match store.get("s.message", &channel, args.str("timestamp"))? {
        Some(message) => Ok((channel, message)),
        None => fail("message_not_found"),
    }
}

pub fn react(hub: &Hub, store: &Store, args: &Value, add: bool) -> Outcome {
    let (channel, mut message) = reaction_target(hub, store, args)?;
    let name = args.str("name").trim_matches(':');
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-+':".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return fail("invalid_name");
    }
    let me = Value::from(hub.slack.bot_user_id.as_str());
    let mut reactions = message.list("reactions").to_vec();
    let at = reactions.iter().position(|one| one.str("name") == name);
    let mine = at.is_some_and(|at| reactions[at].list("users").contains(&me));
    match (add, mine, at) {
        (true, true, _) => return fail("already_reacted"),
        (false, false, _) => return fail("no_reaction"),
        (true, false, None) => reactions.push(json!({"name": name, "users": [me], "count": 1})),
        (true, false, Some(at)) => push(&mut reactions[at], "users", me),
        (false, true, at) => {
            let at = at.expect("a reaction that is mine stands in the list");
            let users: Vec<Value> = reactions[at]
                .list("users")
                .iter()
                .filter(|one| **one != me)
                .cloned()
                .collect();
            reactions[at]["users"] = Value::Array(users);
        }
    }
    reactions.retain(|one| !one.list("users").is_empty());
    for one in &mut reactions {
        one["count"] = one.list("users").len().into();
    }
    message["reactions"] = Value::Array(reactions);
    store.put("s.message", &channel, args.str("timestamp"), &message)?;
    changed(hub, "message", &channel, message.str("thread_ts"));
    Ok(json!({}))
}

pub fn reactions(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let (channel, message) = reaction_target(hub, store, args)?;
    Ok(json!({"type": "message", "channel": channel, "message": shown(&message, false)}))
}

/// Makes a `response_url` for an act on this surface.
pub fn response_url(
    hub: &Hub,
    store: &Store,
    channel: &str,
    user: &str,
    thread: &str,
    message: &str,
) -> Result<String, StoreError> {
    let token = random_text(32);
    let place = json!({"channel": channel, "user": user, "thread_ts": thread, "message_ts": message, "uses": 0, "created_ms": now_ms()});
    store.put("s.response", "", &token, &place)?;
    Ok(format!("{}/slack/response/{token}", hub.base))
}

/// A use of a `response_url`: a new message, or the replacing or deleting of the one acted on.
pub fn respond(hub: &Hub, store: &Store, token: &str, args: &Value) -> Outcome {
    let Some(mut place) = store.get("s.response", "", token)? else {
        return fail("invalid_url");
    };
    if !alive(place.int("created_ms"), RESPONSE_URL_MS) {
        return fail("expired_url");
    }
    if place.int("uses") >= RESPONSE_URL_USES_MAX {
        return fail("used_url");
    }
    place["uses"] = (place.int("uses") + 1).into();
    store.put("s.response", "", token, &place)?;
    say_to(hub, store, &place, args)
}

/// Carries out an answer to an act, given inline or through its `response_url`.
pub fn say_to(hub: &Hub, store: &Store, place: &Value, args: &Value) -> Outcome {
    let (channel, acted_on) = (place.str("channel"), place.str("message_ts"));
    let ephemeral = store.get("s.ephemeral", channel, acted_on)?;
    if args.flag("delete_original") {
        for kind in ["s.message", "s.ephemeral"] {
            store.delete(kind, channel, acted_on)?;
        }
        changed(hub, "message", channel, place.str("thread_ts"));
        return Ok(json!({}));
    }
    let mut message = from_bot(hub, args)?;
    let thread = if args.has("thread_ts") {
        root_of(store, channel, args.str("thread_ts"))?
    } else {
        place.str("thread_ts").to_owned()
    };
    if !thread.is_empty() {
        message["thread_ts"] = thread.as_str().into();
    }
    if args.flag("replace_original") {
        message["ts"] = acted_on.into();
        if let Some(mut kept) = ephemeral {
            message["is_ephemeral"] = true.into();
            kept["message"] = message;
            store.put("s.ephemeral", channel, acted_on, &kept)?;
        } else if let Some(mut old) = store.get("s.message", channel, acted_on)? {
            old["text"] = message["text"].clone();
            old["blocks"] = message["blocks"].clone();
            store.put("s.message", channel, acted_on, &old)?;
        }
        changed(hub, "message", channel, &thread);
    } else if args.str("response_type") == "in_channel" {
        keep_new(hub, store, channel, &mut message)?;
    } else {
        keep_ephemeral(hub, store, channel, place.str("user"), &mut message)?;
    }
    Ok(json!({}))
}
