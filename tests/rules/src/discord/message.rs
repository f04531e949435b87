//! Messages, first answers, forms, threads.

use serde_json::{Value, json};

use super::{COMPONENTS_V2, EPHEMERAL, Rules, is_blank, parts, units};

/// People whom one message may call.
const CALLED_MAX: usize = 4;

/// A path without a description to look it up in: ids and tokens become parameters.
pub(super) fn template(path: &str) -> String {
    let parameter = |part: &str| part.len() > 12 || part.bytes().any(|b| b.is_ascii_digit());
    let parts = path.split('/').map(|part| if parameter(part) { "{id}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// A thread without a message that it hangs on is private unless it says otherwise.
pub(super) fn thread(path: &str, body: &Value, rules: &mut Rules) {
    let name = body["name"].as_str().unwrap_or_default();
    rules.must(
        (1..=100).contains(&units(name)) && !is_blank(name),
        "a thread's name has 1 to 100 units",
    );
    rules.must(
        path.contains("/messages/") || body["type"].is_u64(),
        "a thread without a message names its type",
    );
}

/// A message, an edit of one, or a first answer.
pub(super) fn check(path: &str, body: &Value, rules: &mut Rules) {
    let callback = path.ends_with("/callback");
    let kind = body["type"].as_u64();
    let data = if callback { &body["data"] } else { body };
    let shown = if callback {
        matches!(kind, Some(4 | 7))
    } else {
        path.contains("/messages") || path.starts_with("/webhooks/")
    };
    if shown {
        message(path, callback, data, rules);
    }
    let flags = data["flags"].as_u64().unwrap_or(0);
    if callback && matches!(kind, Some(5 | 6)) {
        rules.must(
            matches!(flags, 0 | EPHEMERAL) && data.get("content").is_none(),
            "a deferral has flags 0 or 64 and nothing else",
        );
    }
    if callback && kind == Some(9) {
        let count = data["components"].as_array().map_or(0, Vec::len);
        rules.must((1..=5).contains(&count), "a form has 1 to 5 parts");
        let title = data["title"].as_str().unwrap_or_default();
        rules.must((1..=45).contains(&units(title)), "a form's title has 1 to 45 units");
        parts::form(&data["components"], rules);
    }
    parts::check(&data["components"], rules);
    let shown = data.to_string().contains("attachment://");
    let attached = data["attachments"].as_array().is_some_and(|files| !files.is_empty());
    rules.must(!shown || attached, "what is shown as an attachment is attached");
}

fn message(path: &str, callback: bool, data: &Value, rules: &mut Rules) {
    let flags = data["flags"].as_u64().unwrap_or(0);
    let v2 = flags & COMPONENTS_V2 != 0;
    let content = data["content"].as_str();
    let by_token = callback || path.starts_with("/webhooks/");
    mentions(data, rules);
    let fits = |text: &str| (1..=2_000).contains(&units(text)) && !is_blank(text);
    rules.must(content.is_none_or(fits), "content has 1 to 2000 units");
    rules.must(v2 != content.is_some(), "either components v2 or content");
    rules.must(data.get("embeds").is_none(), "no embeds are used");
    let all = parts::all(&data["components"]);
    let old = |part: &&Value| matches!(part["type"].as_u64(), Some(1..=8));
    rules.must(v2 || all.iter().all(old), "v2 components need their flag");
    rules.must(by_token || flags & EPHEMERAL == 0, "ephemeral is for answers");
    let nonce = data.get("nonce");
    rules.must(nonce.is_none() || data["enforce_nonce"] == true, "a nonce must be enforced");
    let short = |nonce: &Value| nonce.as_str().is_none_or(|nonce| (1..=25).contains(&units(nonce)));
    rules.must(nonce.is_none_or(short), "a nonce has 1 to 25 characters");
}

/// Nobody is pinged but a few people, by their ids, who are named in the message itself.
fn mentions(data: &Value, rules: &mut Rules) {
    let mentions = &data["allowed_mentions"];
    rules.must(mentions["parse"] == json!([]), "allowed_mentions must parse nothing");
    let fields = mentions.as_object();
    let known = |name: &String| name == "parse" || name == "users";
    rules.must(
        fields.is_some_and(|fields| fields.keys().all(known)),
        "neither roles nor the author of an answered message are pinged",
    );
    let Some(people) = mentions["users"].as_array() else {
        return;
    };
    rules.must((1..=CALLED_MAX).contains(&people.len()), "one to four people are pinged");
    let text = data.to_string();
    let named = |id: &Value| {
        let id = id.as_str().unwrap_or_default();
        let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        plain && text.contains(&format!("<@{id}>"))
    };
    rules.must(people.iter().all(named), "who is pinged is named");
}
