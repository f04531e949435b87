//! Checks the records of a stack's chat when the stack ends: every request to Discord and every first answer to an
//! interaction, in every test. A new kind of request is checked without its own test.

use bobbin_chat::slack::manifest::METHODS;
use bobbin_rules::discord::{Sent, wrong_answer, wrong_request};
use bobbin_rules::slack::wrong_call;
use reqwest::Method;
use serde_json::Value;

use crate::http;
use crate::ready::Ready;

/// How many faults are reported; a mistake in one place shows in hundreds of requests.
const TOLD_MAX: usize = 10;

/// Faults in the functions' requests to this stack's Discord.
///
/// # Errors
/// The faults, or why they could not be looked for.
pub async fn discord(ready: &Ready) -> Result<(), String> {
    let requests = all(ready, "discord", "requests", request).await;
    let answers = all(ready, "discord", "answers", answer).await;
    requests.and(answers)
}

/// Checks every entry of one of a chat's lists.
async fn all(
    ready: &Ready,
    platform: &str,
    list: &str,
    judge: fn(&Value) -> Vec<String>,
) -> Result<(), String> {
    let (client, control) = (http::client(), ready.control());
    let url = format!("{}/_control/{platform}/{list}", ready.console);
    let read = http::call(&client, Method::GET, &url, &control, &Value::Null).await?;
    let entries = read.ok()?;
    let entries = entries[list].as_array().into_iter().flatten();
    let judged = entries.map(|entry| (judge(entry), entry));
    let wrong: Vec<String> = judged
        .filter(|(faults, _)| !faults.is_empty())
        .map(|(faults, entry)| format!("{faults:?} in {entry}"))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} {list} are not what {platform} takes:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(TOLD_MAX)].join("\n")
    ))
}

fn request(entry: &Value) -> Vec<String> {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let files = entry["files"].as_array().into_iter().flatten();
    let file = |one: &'_ Value| -> (String, String) {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        (text("field"), text("filename"))
    };
    let files: Vec<(String, String)> = files.map(file).collect();
    wrong_request(&Sent {
        method: text("method"),
        path: text("route").trim_start_matches("/api/v10"),
        body: &entry["body"],
        files: files.iter().map(|(field, name)| (field.as_str(), name.as_str())).collect(),
    })
}

fn answer(entry: &Value) -> Vec<String> {
    let kind = entry["interaction_type"].as_u64().unwrap_or_default();
    wrong_answer(kind, entry["on_message"] == true, &entry["body"])
}

/// Faults in the functions' requests to this stack's Slack: Block Kit, fallback text, metadata, and scopes that the
/// manifest does not request.
///
/// # Errors
/// The faults, or why they could not be looked for.
pub async fn slack(ready: &Ready) -> Result<(), String> {
    all(ready, "slack", "requests", slack_call).await
}

fn slack_call(entry: &Value) -> Vec<String> {
    let route = entry["route"].as_str().unwrap_or_default();
    let Some(method) = route.strip_prefix("/slack/api/") else {
        return Vec::new();
    };
    // The tests read by GET; the functions never do.
    if entry["method"] != "POST" {
        return Vec::new();
    }
    let mut faults = wrong_call(method, &entry["body"]);
    if METHODS.iter().all(|(known, _)| *known != method) {
        faults.push(format!("the manifest asks for no scopes of {method}"));
    }
    faults
}
