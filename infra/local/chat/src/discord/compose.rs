//! Creating and editing messages, and their mentions.

use super::attachments::attach;
use super::channel;
use super::flags::{COMPONENTS_V2, EPHEMERAL, LOADING, SUPPRESS_EMBEDS};
use super::refusal::DiscordRefusal;
use super::validation::Origin;
use super::{components, stored_message, validation};
use crate::http::UploadedFile;
use crate::hub::Hub;
use crate::ids::{iso, now_ms};
use crate::json::{JsonFields, loose_text};
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A new message.
pub struct Draft<'a> {
    pub channel_id: &'a str,
    pub author: Value,
    pub body: &'a Value,
    pub files: &'a [UploadedFile],
    pub origin: Origin,
    /// Message type: 0 default, 19 reply, 20 command, 23 menu command.
    pub kind: u64,
    /// The only person who sees it (ephemeral).
    pub to: Option<&'a str>,
    pub token: Option<&'a str>,
}

/// Checks and creates a message; returns the stored form.
pub fn compose(hub: &Hub, store: &ChatStore, draft: &Draft<'_>) -> Result<Value, DiscordRefusal> {
    validation::message(draft.body, draft.body, draft.files, draft.origin)?;
    let id = hub.ids.snowflake();
    let mut flags = draft.body.int("flags");
    if draft.to.is_some() {
        flags |= EPHEMERAL;
    }
    let attachments = attach(hub, store, draft.body, draft.files, &[])?;
    let mut components =
        draft.body["components"].as_array().cloned().map_or(json!([]), Value::Array);
    components::number(&mut components);
    let (mentions, everyone) = pinged(store, draft.body, draft.origin)?;
    let mut message = json!({"id": id, "channel_id": draft.channel_id, "author": draft.author, "content": draft.body.str("content"),
        "timestamp": iso(now_ms()), "edited_timestamp": null, "tts": false, "mention_everyone": everyone, "mentions": mentions,
        "mention_roles": [], "attachments": attachments, "embeds": draft.body["embeds"].as_array().cloned().unwrap_or_default(),
        "components": components, "pinned": false, "type": draft.kind, "flags": flags});
    let nonce = loose_text(draft.body, "nonce");
    if !nonce.is_empty() {
        message["nonce"] = nonce.into();
    }
    if draft.author.flag("bot") {
        message["application_id"] = draft.author["id"].clone();
    }
    let kept = json!({"message": message, "to": draft.to, "token": draft.token});
    stored_message::save(hub, store, &kept)?;
    if draft.to.is_none() {
        channel::touched(hub, store, draft.channel_id, &id)?;
    }
    Ok(kept)
}

/// Makes a stored message a reply to another one in its channel.
pub fn reply(hub: &Hub, kept: &mut Value, answered: Value) {
    let message = &mut kept["message"];
    message["type"] = 19.into();
    message["message_reference"] = refers(hub, &answered, 0);
    message["referenced_message"] = answered;
}

/// A message reference: a reply (0) or a forward (1).
pub fn refers(hub: &Hub, to: &Value, kind: u64) -> Value {
    json!({"type": kind, "guild_id": hub.seeds.guild_id, "channel_id": to["channel_id"], "message_id": to["id"]})
}

/// Checks and applies an edit; returns the stored form.
pub fn edit(
    hub: &Hub,
    store: &ChatStore,
    mut kept: Value,
    sent: &Value,
    files: &[UploadedFile],
    origin: Origin,
) -> Result<Value, DiscordRefusal> {
    let mut whole = kept["message"].clone();
    for (field, none) in [("content", json!("")), ("embeds", json!([])), ("components", json!([]))]
    {
        if let Some(value) = sent.get(field) {
            whole[field] = if value.is_null() { none } else { value.clone() };
        }
    }
    if sent.has("flags") {
        let changeable = SUPPRESS_EMBEDS | COMPONENTS_V2;
        let before = whole.int("flags");
        // A message cannot go back from components v2.
        whole["flags"] = ((before & !SUPPRESS_EMBEDS) | (sent.int("flags") & changeable)).into();
    }
    let old = kept["message"].list("attachments").to_vec();
    let remaining: Vec<Value> = match sent["attachments"].as_array() {
        Some(named) => old
            .into_iter()
            .filter(|one| named.iter().any(|name| loose_text(name, "id") == one.str("id")))
            .collect(),
        None => old,
    };
    whole["attachments"] = json!(remaining);
    validation::message(sent, &whole, files, origin)?;
    let attachments = attach(hub, store, sent, files, &remaining)?;
    components::number(&mut whole["components"]);
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
    stored_message::save(hub, store, &kept)?;
    Ok(kept)
}

/// The edited text with this request's mention rule: an edit without a rule uses the default.
fn with_text(whole: &Value, sent: &Value) -> Value {
    json!({"content": whole["content"], "components": whole["components"], "allowed_mentions": sent["allowed_mentions"]})
}

/// Who is pinged: by default everybody mentioned in a bot's message, only users in an interaction's answer.
fn pinged(
    store: &ChatStore,
    body: &Value,
    origin: Origin,
) -> Result<(Value, bool), ChatStoreError> {
    let mut text = body.str("content").to_owned();
    gather_text(&body["components"], &mut text);
    let rule = &body["allowed_mentions"];
    let parses = |kind: &str| rule.list("parse").iter().any(|one| one == kind);
    let everyone = (text.contains("@everyone") || text.contains("@here"))
        && if rule.is_null() { origin == Origin::Bot } else { parses("everyone") };
    let mut users = Vec::new();
    for id in mentioned_users(&text) {
        let named = rule.list("users").iter().any(|one| one == id.as_str());
        if rule.is_null() || parses("users") || named {
            users.extend(store.get("d.user", "", &id)?.map(|entry| entry["user"].clone()));
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
