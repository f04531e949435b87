//! Slack's Web API: the arguments of calls. Limits as Slack documents them; where it only recommends, the
//! recommendation.

mod blocks;

use serde_json::Value;

pub use blocks::wrong_blocks;

/// The longest text that can be edited later.
const TEXT_UNITS_MAX: usize = 4_000;
/// Text of one call of a stream.
const PIECE_UNITS_MAX: usize = 12_000;
/// A view as JSON.
const VIEW_BYTES_MAX: usize = 250_000;
/// What metadata may hold: names of ours, never content.
const METADATA_BYTES_MAX: usize = 500;

/// What is wrong with the arguments of a method; a method of which nothing is known here is wrong too.
#[must_use]
pub fn wrong_call(method: &str, arguments: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for forbidden in ["link_names", "parse", "as_user", "token", "attachments"] {
        if !arguments[forbidden].is_null() {
            wrong.push(format!("{method} has {forbidden}"));
        }
    }
    match method {
        "auth.test" => {}
        "chat.postMessage" | "chat.update" | "chat.postEphemeral" => {
            message(method, arguments, &mut wrong);
        }
        "chat.startStream" | "chat.appendStream" | "chat.stopStream" => {
            stream(method, arguments, &mut wrong);
        }
        "conversations.history" => needs(arguments, &["channel"], &mut wrong),
        "conversations.members" => needs(arguments, &["channel"], &mut wrong),
        "conversations.replies" => needs(arguments, &["channel", "ts"], &mut wrong),
        "agents.sessions.setStatus" => {
            needs(arguments, &["channel_id", "thread_ts", "status"], &mut wrong);
            let known = ["processing", "active", "suspended", "closed"];
            if !known.iter().any(|known| arguments["status"] == *known) {
                wrong.push(format!("unknown status {}", arguments["status"]));
            }
        }
        "assistant.threads.setStatus" => {
            needs(arguments, &["channel_id", "thread_ts"], &mut wrong);
            if !arguments["status"].is_string() {
                wrong.push("status is no text".to_owned());
            }
        }
        "files.getUploadURLExternal" => {
            needs(arguments, &["filename", "length"], &mut wrong);
            if text(arguments, "length") == "0" {
                wrong.push("an empty file".to_owned());
            }
        }
        "files.completeUploadExternal" => {
            needs(arguments, &["channel_id"], &mut wrong);
            // Under no message only in direct messages.
            if !text(arguments, "channel_id").starts_with(['D', 'U', 'W']) {
                needs(arguments, &["thread_ts"], &mut wrong);
            }
            let files = arguments["files"].as_array().map_or(0, Vec::len);
            if !(1..=10).contains(&files) {
                wrong.push(format!("{files} files"));
            }
        }
        "users.info" => needs(arguments, &["user"], &mut wrong),
        "views.publish" => home(arguments, &mut wrong),
        other => wrong.push(format!("nothing is known of {other}")),
    }
    wrong
}

fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn needs(arguments: &Value, names: &[&str], wrong: &mut Vec<String>) {
    for name in names {
        if text(arguments, name).is_empty() {
            wrong.push(format!("{name} is missing"));
        }
    }
}

fn message(method: &str, arguments: &Value, wrong: &mut Vec<String>) {
    needs(arguments, &["channel", "text"], wrong);
    let length = units(text(arguments, "text"));
    if length > TEXT_UNITS_MAX {
        wrong.push(format!("text has {length} characters"));
    }
    match arguments["blocks"].as_array() {
        // The words alone, where Slack did not take the blocks.
        None => wrong.push("blocks are missing".to_owned()),
        Some(blocks) if blocks.is_empty() => {}
        Some(blocks) => wrong.extend(wrong_blocks(blocks, 50)),
    }
    match method {
        "chat.postMessage" => {
            for name in ["unfurl_links", "unfurl_media"] {
                if arguments[name] != false {
                    wrong.push(format!("{name} is not off"));
                }
            }
            metadata(arguments, wrong);
        }
        "chat.update" => {
            needs(arguments, &["ts"], wrong);
            metadata(arguments, wrong);
        }
        _ => needs(arguments, &["user"], wrong),
    }
}

/// Every app in the channel can read it.
fn metadata(arguments: &Value, wrong: &mut Vec<String>) {
    let metadata = &arguments["metadata"];
    let named = !text(metadata, "event_type").is_empty() && metadata["event_payload"].is_object();
    if !named || metadata.to_string().len() > METADATA_BYTES_MAX {
        wrong.push(format!("metadata is no name: {metadata}"));
    }
}

fn stream(method: &str, arguments: &Value, wrong: &mut Vec<String>) {
    needs(arguments, &["channel"], wrong);
    let length = units(text(arguments, "markdown_text"));
    if length > PIECE_UNITS_MAX {
        wrong.push(format!("a piece has {length} characters"));
    }
    match method {
        "chat.startStream" => {
            needs(arguments, &["thread_ts", "recipient_user_id", "recipient_team_id"], wrong)
        }
        "chat.stopStream" => {
            needs(arguments, &["ts"], wrong);
            metadata(arguments, wrong);
        }
        _ => needs(arguments, &["ts", "markdown_text"], wrong),
    }
}

fn home(arguments: &Value, wrong: &mut Vec<String>) {
    needs(arguments, &["user_id"], wrong);
    let view = &arguments["view"];
    if view["type"] != "home" {
        wrong.push("the view is no Home".to_owned());
    }
    if view.to_string().len() > VIEW_BYTES_MAX {
        wrong.push("the view is too large".to_owned());
    }
    match view["blocks"].as_array() {
        Some(blocks) => wrong.extend(wrong_blocks(blocks, 100)),
        None => wrong.push("the view has no blocks".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn slack_rules_find_each_mistake() {
        let right = json!({"channel": "C1", "text": "x", "blocks": [{"type": "markdown", "text": "x"}], "unfurl_links": false,
            "unfurl_media": false, "metadata": {"event_type": "bobbin", "event_payload": {"op_id": "1"}}});
        assert_eq!(wrong_call("chat.postMessage", &right), Vec::<String>::new());
        for (name, value) in [
            ("text", json!("")),
            ("text", json!("x".repeat(4_001))),
            ("link_names", json!(true)),
            ("parse", json!("full")),
            ("unfurl_links", json!(true)),
            ("metadata", json!({"event_type": "bobbin"})),
            (
                "metadata",
                json!({"event_type": "bobbin", "event_payload": {"op_id": "x".repeat(600)}}),
            ),
            ("blocks", json!([{"type": "unheard_of"}])),
            ("blocks", Value::Null),
        ] {
            let mut mistaken = right.clone();
            mistaken[name] = value;
            assert_eq!(wrong_call("chat.postMessage", &mistaken).len(), 1, "{name}: {mistaken}");
        }
        assert!(!wrong_call("chat.delete", &json!({})).is_empty());
        let stream = json!({"channel": "C1", "thread_ts": "1.1", "markdown_text": "x"});
        assert_eq!(wrong_call("chat.startStream", &stream).len(), 2);
        let status = json!({"channel_id": "C1", "thread_ts": "1.1", "status": "working"});
        assert_eq!(wrong_call("agents.sessions.setStatus", &status).len(), 1);
        let view =
            json!({"user_id": "U1", "view": {"type": "modal", "blocks": [{"type": "divider"}]}});
        assert_eq!(wrong_call("views.publish", &view).len(), 1);
    }
}
