//! Channels, their messages, and the status that an agent gives to a thread.

use super::chat::{root_of, shown};
use super::{Outcome, changed, channel, fail};
use crate::gate::loose_text;
use crate::hub::Hub;
use crate::ids::{now_ms, slack_id, ts_micros};
use crate::json::Read;
use crate::limits::SLACK_LIST_MAX;
use crate::seeds::direct_message;
use crate::store::{FIRST, LAST, Store, StoreError};
use serde_json::{Value, json};

/// The direct message with a person, made when it is not there.
pub fn direct(hub: &Hub, store: &Store, user: &str) -> Result<Value, StoreError> {
    let all = store.all("s.channel", "")?;
    if let Some(found) = all
        .into_iter()
        .find(|one| one.flag("is_im") && one.str("user") == user)
    {
        return Ok(found);
    }
    let made = direct_message(&slack_id('D'), user, &hub.seeds.team_id);
    store.put("s.channel", "", made.str("id"), &made)?;
    changed(hub, "channels", made.str("id"), "");
    Ok(made)
}

pub fn info(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    Ok(json!({"channel": channel(hub, store, args, "channel")?}))
}

pub fn list(store: &Store, args: &Value) -> Outcome {
    let types = if args.has("types") {
        args.str("types")
    } else {
        "public_channel"
    };
    let mut channels = store.all("s.channel", "")?;
    channels.retain(|one| {
        types.split(',').any(|kind| {
            if one.flag("is_im") {
                kind.trim() == "im"
            } else {
                kind.trim() == "public_channel"
            }
        })
    });
    Ok(json!({"channels": channels, "response_metadata": {"next_cursor": ""}}))
}

pub fn open(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    if args.has("channel") {
        return info(hub, store, args);
    }
    let users: Vec<&str> = args
        .str("users")
        .split(',')
        .filter(|one| !one.is_empty())
        .collect();
    let [user] = users.as_slice() else {
        return fail("users_list_not_supplied");
    };
    if store.get("s.user", "", user)?.is_none() {
        return fail("user_not_found");
    }
    let dm = direct(hub, store, user)?;
    Ok(json!({"channel": if args.flag("return_im") { dm } else { json!({"id": dm["id"]}) }}))
}

pub fn members(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let one = channel(hub, store, args, "channel")?;
    let members = if one.flag("is_im") {
        vec![one["user"].clone(), hub.slack.bot_user_id.as_str().into()]
    } else {
        store
            .all("s.user", "")?
            .iter()
            .map(|user| user["id"].clone())
            .collect()
    };
    Ok(json!({"members": members, "response_metadata": {"next_cursor": ""}}))
}

fn flag(args: &Value, name: &str) -> bool {
    ["true", "1"].contains(&loose_text(args, name).as_str())
}

fn limit(args: &Value, default: u64) -> u64 {
    loose_text(args, "limit")
        .parse()
        .ok()
        .filter(|n| *n > 0)
        .unwrap_or(default)
        .min(SLACK_LIST_MAX)
}

/// Whether a `ts` lies between `oldest` and `latest` (exclusive unless `inclusive`).
fn within(args: &Value, ts: &str) -> bool {
    let micros = |field: &str| {
        let text = loose_text(args, field);
        ts_micros(&text).or_else(|| {
            text.split('.')
                .next()?
                .parse::<u64>()
                .ok()
                .map(|seconds| seconds * 1_000_000)
        })
    };
    let at = ts_micros(ts).unwrap_or_default();
    let inclusive = flag(args, "inclusive");
    let after = micros("oldest").is_none_or(|oldest| at > oldest || (inclusive && at == oldest));
    let before = micros("latest")
        .filter(|latest| *latest > 0)
        .is_none_or(|latest| at < latest || (inclusive && at == latest));
    after && before
}

/// Cuts a page after the cursor, which is the last `ts` of the page before.
fn page(args: &Value, mut messages: Vec<Value>, default: u64) -> Value {
    if let Some(at) = messages
        .iter()
        .position(|one| args.has("cursor") && one.str("ts") == args.str("cursor"))
    {
        messages.drain(..=at);
    }
    let limit = usize::try_from(limit(args, default)).unwrap_or(usize::MAX);
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    let cursor = if has_more {
        messages.last().map(|one| one["ts"].clone())
    } else {
        None
    };
    let with_metadata = flag(args, "include_all_metadata");
    let shown: Vec<Value> = messages
        .iter()
        .map(|one| shown(one, with_metadata))
        .collect();
    json!({"messages": shown, "has_more": has_more, "response_metadata": {"next_cursor": cursor.unwrap_or_else(|| "".into())}})
}

pub fn history(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let id = channel(hub, store, args, "channel")?.str("id").to_owned();
    let mut messages = store.descending("s.message", &id, FIRST, LAST, u64::from(u32::MAX))?;
    let in_channel = |one: &Value| {
        !one.has("thread_ts")
            || one["thread_ts"] == one["ts"]
            || one.str("subtype") == "thread_broadcast"
    };
    messages.retain(|one| in_channel(one) && within(args, one.str("ts")));
    Ok(page(args, messages, 100))
}

pub fn replies(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    let id = channel(hub, store, args, "channel")?.str("id").to_owned();
    let root = root_of(store, &id, args.str("ts"))?;
    let mut messages = store.all("s.message", &id)?;
    messages.retain(|one| one.str("ts") == root || one.str("thread_ts") == root);
    if messages.is_empty() {
        return fail("thread_not_found");
    }
    // The root always comes along.
    messages.retain(|one| one.str("ts") == root || within(args, one.str("ts")));
    Ok(page(args, messages, 1000))
}

/// A thread of the arguments, for the status methods.
fn thread(hub: &Hub, store: &Store, args: &Value) -> Result<(String, String), super::Fail> {
    let id = channel(hub, store, args, "channel_id")?
        .str("id")
        .to_owned();
    if !args.has("thread_ts") {
        return fail("missing_thread_ts");
    }
    let root = root_of(store, &id, args.str("thread_ts"))?;
    Ok((id, root))
}

fn keep_session(
    hub: &Hub,
    store: &Store,
    args: &Value,
    change: impl FnOnce(&mut Value),
) -> Outcome {
    let (channel, root) = thread(hub, store, args)?;
    let mut session = store
        .get("s.session", &channel, &root)?
        .unwrap_or_else(|| json!({"channel_id": channel, "thread_ts": root}));
    change(&mut session);
    session["at_ms"] = now_ms().into();
    store.put("s.session", &channel, &root, &session)?;
    changed(hub, "status", &channel, &root);
    Ok(json!({}))
}

pub fn thread_status(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    if !args["status"].is_string() {
        return fail("invalid_arguments");
    }
    keep_session(hub, store, args, |session| {
        session["text"] = args["status"].clone()
    })
}

pub fn session_status(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    if !["processing", "active", "suspended", "closed"].contains(&args.str("status")) {
        return fail("invalid_status");
    }
    if args.str("title").chars().count() > 200 {
        return fail("invalid_title");
    }
    keep_session(hub, store, args, |session| {
        // Title and initiator count at creation only.
        if !session.has("status") {
            session["title"] = args["title"].clone();
            session["initiator_user_id"] = args["initiator_user_id"].clone();
        }
        session["status"] = args["status"].clone();
    })
}

pub fn session_rename(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    if !(1..=200).contains(&args.str("title").chars().count()) {
        return fail("invalid_title");
    }
    let (channel, root) = thread(hub, store, args)?;
    if store.get("s.session", &channel, &root)?.is_none() {
        return fail("session_not_found");
    }
    keep_session(hub, store, args, |session| {
        session["title"] = args["title"].clone()
    })
}
