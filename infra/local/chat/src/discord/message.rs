//! Messages: creating, editing, listing, deleting, reactions.
//!
//! A stored message is `{message, to, token, reactors}`: Discord's object, the only person who sees it (ephemeral), and the
//! interaction token that made it. Ephemeral messages lie apart, so that no listing of the bot can find them.

use super::channel;
use super::check::{self, COMPONENTS_V2, EPHEMERAL, LOADING, Origin, SUPPRESS_EMBEDS};
use super::{Outcome, Refusal};
use crate::gate::{Call, Reply, Upload, loose_text};
use crate::hub::Hub;
use crate::ids::{alive, iso, now_ms};
use crate::json::{Read, fields};
use crate::limits::{LIST_MAX, NONCE_MS};
use crate::store::{Blob, FIRST, LAST, Store, StoreError};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A message to be made.
pub struct Draft<'a> {
    pub channel_id: &'a str,
    pub author: Value,
    pub body: &'a Value,
    pub files: &'a [Upload],
    pub origin: Origin,
    /// Message type: 0 default, 19 reply, 20 command, 23 menu command.
    pub kind: u64,
    /// The only person who sees it.
    pub to: Option<&'a str>,
    pub token: Option<&'a str>,
}

/// Reads a stored message, ephemeral or not.
pub fn find(store: &Store, channel: &str, id: &str) -> Result<Option<Value>, StoreError> {
    Ok(match store.get("d.message", channel, id)? {
        Some(kept) => Some(kept),
        None => store.get("d.ephemeral", channel, id)?,
    })
}

/// Writes a stored message and tells the pages.
pub fn keep(hub: &Hub, store: &Store, kept: &Value) -> Result<(), StoreError> {
    let message = &kept["message"];
    let kind = if kept.has("to") {
        "d.ephemeral"
    } else {
        "d.message"
    };
    store.put_message(kind, message.str("channel_id"), message.str("id"), kept)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": message["channel_id"]}));
    Ok(())
}

/// Takes a message away.
pub fn forget(hub: &Hub, store: &Store, channel: &str, id: &str) -> Result<(), StoreError> {
    store.delete("d.message", channel, id)?;
    store.delete("d.ephemeral", channel, id)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": channel}));
    Ok(())
}

/// Checks and makes a message; returns what is stored.
pub fn compose(hub: &Hub, store: &Store, draft: &Draft<'_>) -> Result<Value, Refusal> {
    check::message(draft.body, draft.body, draft.files, draft.origin)?;
    let id = hub.ids.snowflake();
    let mut flags = draft.body.int("flags");
    if draft.to.is_some() {
        flags |= EPHEMERAL;
    }
    let attachments = attach(hub, store, draft.body, draft.files, &[])?;
    let mut components = draft.body["components"]
        .as_array()
        .cloned()
        .map_or(json!([]), Value::Array);
    settle_components(&mut components, &attachments);
    let (mentions, everyone) = pinged(store, draft.body, draft.origin)?;
    let mut message = json!({"id": id, "channel_id": draft.channel_id, "author": draft.author, "content": draft.body.str("content"),
        "timestamp": iso(now_ms()), "edited_timestamp": null, "tts": false, "mention_everyone": everyone, "mentions": mentions,
        "mention_roles": [], "attachments": attachments, "embeds": draft.body["embeds"].as_array().cloned().unwrap_or_default(),
        "components": components, "pinned": false, "type": draft.kind, "flags": flags});
    let nonce = loose_text(draft.body, "nonce");
    if !nonce.is_empty() {
        message["nonce"] = nonce.into();
    }
    if draft.body.has("message_reference") {
        message["message_reference"] = draft.body["message_reference"].clone();
        message["type"] = 19.into();
    }
    if draft.author.flag("bot") {
        message["application_id"] = draft.author["id"].clone();
    }
    let kept = json!({"message": message, "to": draft.to, "token": draft.token});
    keep(hub, store, &kept)?;
    if draft.to.is_none() {
        channel::touched(hub, store, draft.channel_id, &id)?;
    }
    Ok(kept)
}

/// Checks and applies an edit; returns what is stored.
pub fn amend(
    hub: &Hub,
    store: &Store,
    mut kept: Value,
    sent: &Value,
    files: &[Upload],
    origin: Origin,
) -> Result<Value, Refusal> {
    let mut whole = kept["message"].clone();
    for (field, none) in [
        ("content", json!("")),
        ("embeds", json!([])),
        ("components", json!([])),
    ] {
        if let Some(value) = sent.get(field) {
            whole[field] = if value.is_null() { none } else { value.clone() };
        }
    }
    if sent.has("flags") {
        let changeable = SUPPRESS_EMBEDS | COMPONENTS_V2;
        let before = whole.int("flags");
        // Components v2 cannot be taken back from a message.
        whole["flags"] = ((before & !SUPPRESS_EMBEDS) | (sent.int("flags") & changeable)).into();
    }
    let old = kept["message"].list("attachments").to_vec();
    let remaining: Vec<Value> = match sent["attachments"].as_array() {
        Some(named) => old
            .into_iter()
            .filter(|one| {
                named
                    .iter()
                    .any(|name| loose_text(name, "id") == one.str("id"))
            })
            .collect(),
        None => old,
    };
    whole["attachments"] = json!(remaining);
    check::message(sent, &whole, files, origin)?;
    let attachments = attach(hub, store, sent, files, &remaining)?;
    settle_components(&mut whole["components"], &attachments);
    let (mentions, everyone) = pinged(store, &with_text(&whole, sent), origin)?;
    whole["attachments"] = attachments;
    whole["mentions"] = mentions;
    whole["mention_everyone"] = everyone.into();
    let flags = whole.int("flags");
    if flags & LOADING == 0 {
        whole["edited_timestamp"] = iso(now_ms()).into();
    }
    whole["flags"] = (flags & !LOADING).into();
    kept["message"] = whole;
    keep(hub, store, &kept)?;
    Ok(kept)
}

/// The edited message's text with the mentions rule of this request: an edit without a rule falls back to the default.
fn with_text(whole: &Value, sent: &Value) -> Value {
    json!({"content": whole["content"], "components": whole["components"], "allowed_mentions": sent["allowed_mentions"]})
}

/// Who is pinged: by default everybody named in a bot's message, users only in an interaction's answer.
fn pinged(store: &Store, body: &Value, origin: Origin) -> Result<(Value, bool), StoreError> {
    let mut text = body.str("content").to_owned();
    gather_text(&body["components"], &mut text);
    let rule = &body["allowed_mentions"];
    let parses = |kind: &str| rule.list("parse").iter().any(|one| one == kind);
    let everyone = (text.contains("@everyone") || text.contains("@here"))
        && if rule.is_null() {
            origin == Origin::Bot
        } else {
            parses("everyone")
        };
    let mut users = Vec::new();
    for id in mentioned_users(&text) {
        let named = rule.list("users").iter().any(|one| one == id.as_str());
        if rule.is_null() || parses("users") || named {
            users.extend(
                store
                    .get("d.user", "", &id)?
                    .map(|entry| entry["user"].clone()),
            );
        }
    }
    Ok((Value::Array(users), everyone))
}

fn mentioned_users(text: &str) -> BTreeSet<String> {
    let after = text.split("<@").skip(1);
    after
        .filter_map(|rest| rest.trim_start_matches('!').split_once('>'))
        .filter(|(id, _)| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        .map(|(id, _)| id.to_owned())
        .collect()
}

fn gather_text(node: &Value, text: &mut String) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| gather_text(one, text)),
        Value::Object(_) => {
            if node.int("type") == 10 {
                text.push('\n');
                text.push_str(node.str("content"));
            }
            gather_text(&node["components"], text);
        }
        _ => {}
    }
}

/// Keeps uploaded files and lists the message's attachments: those that remain, then the new ones.
fn attach(
    hub: &Hub,
    store: &Store,
    sent: &Value,
    files: &[Upload],
    remaining: &[Value],
) -> Result<Value, Refusal> {
    let mut list = remaining.to_vec();
    for (at, file) in files.iter().enumerate() {
        let slot = file
            .field
            .strip_prefix("files[")
            .and_then(|rest| rest.strip_suffix(']'))
            .map_or(at.to_string(), str::to_owned);
        let named = sent
            .list("attachments")
            .iter()
            .find(|one| loose_text(one, "id") == slot);
        let filename = named
            .map(|one| one.str("filename"))
            .filter(|name| !name.is_empty())
            .unwrap_or(&file.filename);
        let mut attachment = keep_file(
            hub,
            store,
            filename,
            &file.content_type,
            file.bytes.to_vec(),
        )?;
        if let Some(description) = named.and_then(|one| one["description"].as_str()) {
            attachment["description"] = description.into();
        }
        list.push(attachment);
    }
    Ok(Value::Array(list))
}

/// Stores bytes as an attachment served from this server.
pub fn keep_file(
    hub: &Hub,
    store: &Store,
    name: &str,
    content_type: &str,
    bytes: Vec<u8>,
) -> Result<Value, StoreError> {
    let id = hub.ids.snowflake();
    let size = bytes.len();
    store.put_blob(
        &id,
        &Blob {
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            bytes,
        },
    )?;
    let url = format!(
        "{}/files/{id}/{}",
        hub.base,
        crate::gate::percent_encoded(name)
    );
    let expiry = now_ms() / 1_000 + 86_400;
    Ok(
        json!({"id": id, "filename": name, "size": size, "content_type": content_type,
        "url": format!("{url}?ex={expiry:x}&is={:x}&hm={}", now_ms() / 1_000, crate::ids::random_text(32)), "proxy_url": url}),
    )
}

/// Numbers the components that have no id, and points `attachment://` references to the served files.
fn settle_components(components: &mut Value, attachments: &Value) {
    let mut taken = BTreeSet::new();
    visit(components, &mut |one| {
        taken.insert(one.int("id"));
    });
    let mut next = 1;
    visit(components, &mut |one| {
        // A gallery item is no component; it has no number.
        if one.has("type") && one.int("id") == 0 {
            while taken.contains(&next) {
                next += 1;
            }
            taken.insert(next);
            one["id"] = next.into();
        }
        for field in ["media", "file"] {
            if let Some(name) = one[field]
                .str("url")
                .strip_prefix("attachment://")
                .map(str::to_owned)
            {
                let found = attachments
                    .as_array()
                    .and_then(|list| list.iter().find(|file| file.str("filename") == name));
                if let Some(file) = found {
                    one[field] = json!({"url": file["url"], "proxy_url": file["proxy_url"], "content_type": file["content_type"]});
                    one["name"] = file["filename"].clone();
                    one["size"] = file["size"].clone();
                }
            }
        }
    });
}

/// Calls `seen` for every component (gallery items included, for their media).
fn visit(node: &mut Value, seen: &mut impl FnMut(&mut Value)) {
    match node {
        Value::Array(list) => list.iter_mut().for_each(|one| visit(one, seen)),
        Value::Object(_) => {
            if node.has("type") || node.has("media") {
                seen(node);
            }
            for field in ["components", "items", "accessory"] {
                if node.has(field) {
                    visit(&mut node[field], seen);
                }
            }
        }
        _ => {}
    }
}

pub fn create(hub: &Hub, store: &Store, call: &Call, channel_id: &str) -> Outcome {
    let channel = channel::writable(hub, store, channel_id)?;
    if !call.files.is_empty() {
        channel::need(store, channel::ATTACH_FILES)?;
    }
    let nonce = loose_text(&call.body, "nonce");
    if call.body.flag("enforce_nonce")
        && let Some(earlier) = store.get("d.nonce", "", &nonce)?
        && alive(earlier.int("at_ms"), NONCE_MS)
        && let Some(kept) =
            store.get("d.message", earlier.str("channel"), earlier.str("message"))?
    {
        return Ok(Reply::json(kept["message"].clone()));
    }
    let reference = call.body["message_reference"].str("message_id");
    if !reference.is_empty() && store.get("d.message", channel_id, reference)?.is_none() {
        let mut wrong = check::Faulty::default();
        wrong.at(
            "message_reference",
            "MESSAGE_REFERENCE_UNKNOWN_MESSAGE",
            "Unknown message",
        );
        wrong.done()?;
    }
    let author = super::app::bot(hub, store)?;
    let draft = Draft {
        channel_id: channel.str("id"),
        author,
        body: &call.body,
        files: &call.files,
        origin: Origin::Bot,
        kind: 0,
        to: None,
        token: None,
    };
    let kept = compose(hub, store, &draft)?;
    if call.body.flag("enforce_nonce") {
        let made =
            json!({"channel": channel_id, "message": kept["message"]["id"], "at_ms": now_ms()});
        store.put("d.nonce", "", &nonce, &made)?;
    }
    Ok(Reply::json(kept["message"].clone()))
}

pub fn get(hub: &Hub, store: &Store, channel: &str, id: &str) -> Outcome {
    channel::visible(hub, store, channel)?;
    let kept = store
        .get("d.message", channel, id)?
        .ok_or_else(Refusal::message)?;
    Ok(Reply::json(kept["message"].clone()))
}

pub fn edit(hub: &Hub, store: &Store, call: &Call, channel_id: &str, id: &str) -> Outcome {
    let channel = channel::visible(hub, store, channel_id)?;
    channel::not_archived(&channel)?;
    let kept = store
        .get("d.message", channel_id, id)?
        .ok_or_else(Refusal::message)?;
    if kept["message"]["author"].str("id") != hub.discord.application_id {
        return Err(Refusal::new(
            403,
            50_005,
            "Cannot edit a message authored by another user",
        ));
    }
    let kept = amend(hub, store, kept, &call.body, &call.files, Origin::Bot)?;
    Ok(Reply::json(kept["message"].clone()))
}

pub fn delete(hub: &Hub, store: &Store, channel_id: &str, id: &str) -> Outcome {
    let channel = channel::visible(hub, store, channel_id)?;
    channel::not_archived(&channel)?;
    let kept = store
        .get("d.message", channel_id, id)?
        .ok_or_else(Refusal::message)?;
    if kept["message"]["author"].str("id") != hub.discord.application_id {
        channel::need(store, channel::MANAGE_MESSAGES)?;
    }
    forget(hub, store, channel_id, id)?;
    Ok(Reply::empty())
}

pub fn list(hub: &Hub, store: &Store, call: &Call, channel_id: &str) -> Outcome {
    channel::visible(hub, store, channel_id)?;
    let limit = match call.asked("limit") {
        "" => 50,
        text => text
            .parse()
            .ok()
            .filter(|limit| (1..=LIST_MAX).contains(limit))
            .ok_or_else(|| {
                let mut wrong = check::Faulty::default();
                wrong.at(
                    "limit",
                    "NUMBER_TYPE_RANGE",
                    "int value should be between 1 and 100.",
                );
                wrong.done().err().unwrap_or_else(Refusal::message)
            })?,
    };
    let (after, before, around) = (
        call.asked("after"),
        call.asked("before"),
        call.asked("around"),
    );
    let mut kept = if !around.is_empty() {
        let mut newer = store.ascending("d.message", channel_id, around, LAST, limit / 2)?;
        newer.reverse();
        newer.extend(store.get("d.message", channel_id, around)?);
        newer.extend(store.descending("d.message", channel_id, FIRST, around, limit / 2)?);
        newer
    } else if !after.is_empty() {
        let mut newer = store.ascending("d.message", channel_id, after, LAST, limit)?;
        newer.reverse();
        newer
    } else {
        let before = if before.is_empty() { LAST } else { before };
        store.descending("d.message", channel_id, FIRST, before, limit)?
    };
    let messages = kept.iter_mut().map(|one| one["message"].take()).collect();
    Ok(Reply::json(Value::Array(messages)))
}

pub fn react(
    hub: &Hub,
    store: &Store,
    channel_id: &str,
    id: &str,
    emoji: &str,
    add: bool,
) -> Outcome {
    let channel = channel::visible(hub, store, channel_id)?;
    channel::not_archived(&channel)?;
    if add {
        channel::need(store, channel::ADD_REACTIONS)?;
    }
    if emoji.is_empty() || (emoji.is_ascii() && !emoji.contains(':')) {
        return Err(Refusal::new(400, 10_014, "Unknown Emoji"));
    }
    let mut kept = store
        .get("d.message", channel_id, id)?
        .ok_or_else(Refusal::message)?;
    let me = hub.discord.application_id.as_str();
    let mut reactors = fields(&kept["reactors"]);
    let mut who: Vec<Value> = reactors
        .get(emoji)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    who.retain(|one| one != me);
    if add {
        who.push(me.into());
    }
    reactors.insert(emoji.to_owned(), Value::Array(who));
    kept["message"]["reactions"] = listed_reactions(&reactors, me);
    kept["reactors"] = Value::Object(reactors);
    keep(hub, store, &kept)?;
    Ok(Reply::empty())
}

fn listed_reactions(reactors: &Map<String, Value>, me: &str) -> Value {
    let entries = reactors.iter().filter_map(|(emoji, who)| {
        let who = who.as_array().filter(|who| !who.is_empty())?;
        let (name, id) = emoji.split_once(':').map_or((emoji.as_str(), None), |(name, id)| (name, Some(id)));
        Some(json!({"emoji": {"id": id, "name": name}, "count": who.len(), "me": who.iter().any(|one| one == me),
            "me_burst": false, "burst_colors": [], "count_details": {"burst": 0, "normal": who.len()}}))
    });
    Value::Array(entries.collect())
}

pub fn reactions(hub: &Hub, store: &Store, channel: &str, id: &str, emoji: &str) -> Outcome {
    channel::visible(hub, store, channel)?;
    let kept = store
        .get("d.message", channel, id)?
        .ok_or_else(Refusal::message)?;
    let mut users = Vec::new();
    for who in kept["reactors"].list(emoji) {
        users.extend(
            store
                .get("d.user", "", who.as_str().unwrap_or_default())?
                .map(|entry| entry["user"].clone()),
        );
    }
    Ok(Reply::json(Value::Array(users)))
}
