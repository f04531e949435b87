//! The messages of a thread or a channel, in pages.

use super::channels::channel;
use super::failure::{MethodResult, fail};
use super::messages::{root_of, shown};
use crate::ids::ts_micros;
use crate::json::{JsonFields, loose_text};
use crate::limits::SLACK_LIST_MAX;
use crate::store::ChatStore;
use serde_json::{Value, json};

pub fn replies(store: &ChatStore, args: &Value) -> MethodResult {
    let id = channel(store, args, "channel")?.str("id").to_owned();
    let root = root_of(store, &id, args.str("ts"))?;
    let mut messages = store.all("s.message", &id)?;
    messages.retain(|one| one.str("ts") == root || one.str("thread_ts") == root);
    if messages.is_empty() {
        return fail("thread_not_found");
    }
    // The root is always included.
    messages.retain(|one| one.str("ts") == root || within(args, one.str("ts")));
    Ok(page(args, messages))
}

/// Top-level messages of a channel, newest first. Source: Slack's page of `conversations.history`.
pub fn history(store: &ChatStore, args: &Value) -> MethodResult {
    let id = channel(store, args, "channel")?.str("id").to_owned();
    let mut messages = store.all("s.message", &id)?;
    messages.retain(|one| {
        let root = one.str("thread_ts");
        let stands_there = root.is_empty() || root == one.str("ts");
        (stands_there || one.str("subtype") == "thread_broadcast") && within(args, one.str("ts"))
    });
    messages.sort_by(|a, b| b.str("ts").cmp(a.str("ts")));
    Ok(page(args, messages))
}

/// Who is in a channel: everybody of the workspace, unless the channel lists its people.
pub fn members(store: &ChatStore, args: &Value) -> MethodResult {
    let channel = channel(store, args, "channel")?;
    let everybody = store.all("s.user", "")?.into_iter().map(|user| user["id"].clone());
    let people = match channel["members"].as_array() {
        Some(people) => people.clone(),
        None => everybody.collect(),
    };
    let start: usize = args.str("cursor").parse().unwrap_or_default();
    let end = people.len().min(start + usize::try_from(limit(args)).unwrap_or(usize::MAX));
    let next = if end < people.len() { end.to_string() } else { String::new() };
    let page = people.get(start..end).unwrap_or_default();
    Ok(json!({"members": page, "response_metadata": {"next_cursor": next}}))
}

fn flag(args: &Value, name: &str) -> bool {
    ["true", "1"].contains(&loose_text(args, name).as_str())
}

fn limit(args: &Value) -> u64 {
    loose_text(args, "limit")
        .parse()
        .ok()
        .filter(|n| *n > 0)
        .unwrap_or(SLACK_LIST_MAX)
        .min(SLACK_LIST_MAX)
}

/// Whether a `ts` lies between `oldest` and `latest` (exclusive unless `inclusive`).
fn within(args: &Value, ts: &str) -> bool {
    let micros = |field: &str| {
        let text = loose_text(args, field);
        ts_micros(&text).or_else(|| {
            text.split('.').next()?.parse::<u64>().ok().map(|seconds| seconds * 1_000_000)
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

/// Cuts a page after the cursor, which is the last `ts` of the previous page.
fn page(args: &Value, mut messages: Vec<Value>) -> Value {
    if let Some(at) =
        messages.iter().position(|one| args.has("cursor") && one.str("ts") == args.str("cursor"))
    {
        messages.drain(..=at);
    }
    let limit = usize::try_from(limit(args)).unwrap_or(usize::MAX);
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    let cursor = if has_more { messages.last().map(|one| one["ts"].clone()) } else { None };
    let with_metadata = flag(args, "include_all_metadata");
    let shown: Vec<Value> = messages.iter().map(|one| shown(one, with_metadata)).collect();
    json!({"messages": shown, "has_more": has_more, "response_metadata": {"next_cursor": cursor.unwrap_or_else(|| "".into())}})
}
