//! The files of `events/` with the real programs: each answer, and the calls to AWS.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::records::message::Body;
use bobbin_tests::binaries::workspace;
use bobbin_tests::function::{Called, Function, Started};
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::secret;

/// Development keys, which sign only these events.
pub const SLACK_SECRET: &str = "a-signing-secret-for-tests";
/// The new webhook secret and the old one, which signs here.
pub const WEBHOOK_SECRETS: &str = "a-new-webhook-secret a-webhook-secret-for-tests";
const DISCORD_SEED: [u8; 32] = [9; 32];

/// File, status, the answer (its `type` on Discord), and the queued bodies.
type Row = (&'static str, u64, &'static str, &'static str);

#[rustfmt::skip]
const DISCORD: &[Row] = &[
    ("ask-button", 200, "type 6", "control settle"),
    ("autocomplete", 200, "type 8", ""),
    ("autocomplete-config", 200, "type 8", ""),
    ("bot", 200, "type 4", ""),
    ("config-default", 200, "type 5", "control configure"),
    ("diff", 200, "type 5", "control diff"),
    ("direct-message", 200, "type 4", ""),
    ("help", 200, "type 4", ""),
    ("ping", 200, "type 1", ""),
    ("question-select", 200, "type 6", "control settle"),
    ("reply-button", 200, "type 9", ""),
    ("reply-form", 200, "type 4", "message prompt, announce"),
    ("reset", 200, "type 4", "message reset"),
    ("sandbox-in-channel", 200, "type 5", "open"),
    ("sandbox-in-thread", 200, "type 4", "message prompt, announce"),
    ("sandbox-with-choices", 200, "type 5", "open"),
    ("sandbox-with-file", 200, "type 5", "open"),
    ("sandbox-without-prompt", 200, "type 4", ""),
    ("say-in-channel", 200, "type 4", ""),
    ("say-in-thread", 200, "type 4", "message prompt, announce"),
    ("say-now", 200, "type 4", "message prompt, announce"),
    ("send-forward-to-sandbox", 200, "type 5", "open"),
    ("send-reply-to-sandbox", 200, "type 4", "message prompt, announce"),
    ("send-to-sandbox", 200, "type 5", "open"),
    ("send-to-sandbox-in-thread", 200, "type 4", "message prompt, announce"),
    ("status", 200, "type 5", "control status"),
    ("stop", 200, "type 5", "control stop"),
    ("stop-all", 200, "type 5", "control stop_all"),
    ("stop-button", 200, "type 7", "control stop"),
    ("unknown-button", 200, "type 4", ""),
    ("unknown-command", 200, "type 4", ""),
    ("unknown-type", 400, "text", ""),
    ("user-install", 200, "type 4", ""),
];

#[rustfmt::skip]
const SLACK: &[Row] = &[
    ("agent_session_stopped", 200, "nothing", "control stop"),
    ("app_home_opened", 200, "nothing", "overview home"),
    ("app_mention", 200, "nothing", "message prompt, announce"),
    ("app_uninstalled", 200, "nothing", ""),
    ("block_actions_ask", 200, "nothing", "control settle"),
    ("block_actions_form", 200, "nothing", "control settle"),
    ("block_actions_home", 200, "nothing", "overview home"),
    ("block_actions_stop", 200, "nothing", "control stop"),
    ("block_suggestion", 200, "options", ""),
    ("bot_message", 200, "nothing", ""),
    ("connect_foreign_user", 200, "nothing", "control say"),
    ("file_share", 200, "nothing", "message prompt, announce"),
    ("message_changed", 200, "nothing", ""),
    ("message_deleted", 200, "nothing", "control withdraw"),
    ("message_im", 200, "nothing", "message prompt, announce"),
    ("message_im_status", 200, "nothing", "control status"),
    ("message_shortcut", 200, "nothing", "message prompt, announce"),
    ("message_twin", 200, "nothing", "message prompt, announce"),
    ("org_install", 200, "nothing", "control help"),
    ("retry", 200, "nothing", "message prompt, announce"),
    ("slash_config", 200, "nothing", "control configure"),
    ("slash_help", 200, "response_type", ""),
    ("slash_status", 200, "nothing", "overview answer"),
    ("slash_stop", 200, "response_type", ""),
    ("slash_unknown", 200, "response_type", ""),
    ("ssl_check", 200, "nothing", ""),
    ("thread_broadcast", 200, "nothing", "message prompt, announce"),
    ("thread_reply_mention", 200, "nothing", "message prompt, announce"),
    ("thread_reply_plain", 200, "nothing", ""),
    ("url_verification", 200, "challenge", ""),
    ("view_submission", 200, "nothing", ""),
];

#[rustfmt::skip]
const GITHUB: &[Row] = &[
    ("authorization-revoked", 202, "text", "forge person"),
    ("installation-created", 202, "text", ""),
    ("installation-deleted", 202, "text", "forge installation"),
    ("installation-repositories", 202, "text", "forge installation"),
    ("installation-suspend", 202, "text", "forge installation"),
    ("ping", 202, "text", ""),
    ("push", 202, "text", ""),
    ("unreadable", 400, "text", ""),
];

#[rustfmt::skip]
const OTHERS: &[Row] = &[
    ("health", 200, "status", ""),
    ("not-found", 404, "text", ""),
];

/// The files of a folder, by name.
pub(super) fn stored(folder: &str) -> Vec<(String, Value)> {
    let folder = workspace().join("events").join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut events: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect();
    events.sort_by(|a: &(String, Value), b| a.0.cmp(&b.0));
    events
}

pub(super) async fn start(program: &str) -> Function {
    let key = hex::encode(SigningKey::from_bytes(&DISCORD_SEED).verifying_key().as_bytes());
    let started = Function::start(program, secret(), |environment| {
        environment.push(("DISCORD_PUBLIC_KEY".to_owned(), key));
    });
    match started.await {
        Started::Ready(function) => *function,
        Started::Refused(refused) => panic!("{program}: {refused:?}"),
    }
}

/// The event as its platform would send it now.
pub(super) fn signed(event: &Value) -> Value {
    let body = event["body"].as_str().unwrap_or_default();
    let raw = if event["isBase64Encoded"] == true {
        STANDARD.decode(body).unwrap()
    } else {
        body.as_bytes().to_vec()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_secs().to_string();
    let mut event = event.clone();
    let headers = &mut event["headers"];
    if headers["x-signature-ed25519"].is_string() {
        let signature =
            SigningKey::from_bytes(&DISCORD_SEED).sign(&[now.as_bytes(), &raw].concat());
        headers["x-signature-ed25519"] = json!(hex::encode(signature.to_bytes()));
        headers["x-signature-timestamp"] = json!(now);
    } else if headers["x-slack-signature"].is_string() {
        let mut mac = Hmac::<Sha256>::new_from_slice(SLACK_SECRET.as_bytes()).unwrap();
        mac.update(format!("v0:{now}:").as_bytes());
        mac.update(&raw);
        let signature = hex::encode(mac.finalize().into_bytes());
        headers["x-slack-signature"] = json!(format!("v0={signature}"));
        headers["x-slack-request-timestamp"] = json!(now);
    } else if headers["x-hub-signature-256"].is_string() {
        let (_, old) = WEBHOOK_SECRETS.split_once(' ').unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(old.as_bytes()).unwrap();
        mac.update(&raw);
        let signature = hex::encode(mac.finalize().into_bytes());
        headers["x-hub-signature-256"] = json!(format!("sha256={signature}"));
    }
    event
}

/// The sent bodies in words: `message prompt`, `control stop`.
fn sent(calls: &[Called]) -> String {
    let sends = calls.iter().filter(|call| call.what == "AmazonSQS.SendMessage");
    let kinds = sends.map(|call| {
        let body: Value = serde_json::from_str(call.body["MessageBody"].as_str().unwrap()).unwrap();
        assert_eq!(body["schema"], 1, "{body}");
        let want = &body["want"];
        let what = [
            &body["work"]["work"],
            &want["command"],
            &want["want"],
            &body["place"]["place"],
            &body["about"]["about"],
        ];
        let what = what.into_iter().find_map(Value::as_str).unwrap_or_default();
        format!("{} {what}", body["kind"].as_str().unwrap()).trim().to_owned()
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// An answer in a word.
fn kind(answer: &Value) -> String {
    let text = answer["body"].as_str().unwrap_or_default();
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        return if text.is_empty() { "nothing" } else { "text" }.to_owned();
    };
    let known =
        ["type", "challenge", "options", "option_groups", "response_type", "status", "text"];
    match known.into_iter().find(|name| !body[name].is_null()) {
        Some("type") => format!("type {}", body["type"]),
        Some(name) => name.to_owned(),
        None => body.to_string(),
    }
}

pub async fn ingress() {
    let mut function = start("ingress").await;
    let mut wrong = Vec::new();
    let tables = [("discord", DISCORD), ("slack", SLACK), ("github", GITHUB), ("ingress", OTHERS)];
    for (folder, table) in tables {
        let events = stored(folder);
        let mut told = Vec::new();
        for (name, event) in &events {
            if folder != "ingress" {
                let stale = function.invoke(event).await.unwrap();
                assert_eq!(stale["statusCode"], 401, "{folder}/{name} with a stale signature");
                assert_eq!(sent(&function.calls()), "", "{folder}/{name}");
            }
            let answer = function.invoke(&signed(event)).await.unwrap();
            let status = answer["statusCode"].as_u64().unwrap();
            told.push((name.as_str(), status, kind(&answer), sent(&function.calls())));
        }
        let stated: Vec<_> = table
            .iter()
            .map(|(name, status, kind, sent)| {
                (*name, *status, (*kind).to_owned(), (*sent).to_owned())
            })
            .collect();
        let otherwise = told.iter().filter(|row| !stated.contains(row));
        wrong.extend(otherwise.map(|row| format!("{folder}: {row:?}")));
        assert!(told.len() >= stated.len(), "{folder} has fewer files than are stated here");
    }
    assert!(wrong.is_empty(), "answered otherwise: {wrong:#?}");
    let events: BTreeSet<String> = function
        .log()
        .iter()
        .map(|line| line["event"].as_str().unwrap_or_default().to_owned())
        .collect();
    for event in ["ingress.accepted", "ingress.answered", "ingress.refused", "ingress.repeated"] {
        assert!(events.contains(event), "no {event} among {events:?}");
    }
    function.end().await;
}

/// File, whether the record is retried, and the calls to the outside, in that order among others; an empty list allows
/// only the visibility. The provider here creates no sandbox, so a prompt is held.
#[rustfmt::skip]
const WORKER: &[(&str, bool, &[&str])] = &[
    ("dead-letter", false, &["DynamoDB_20120810.BatchGetItem", "POST /slack/chat.postMessage", "DynamoDB_20120810.UpdateItem"]),
    // It is gone by now.
    ("dead-letters", false, &["AmazonSQS.ReceiveMessage", "AmazonSQS.ReceiveMessage"]),
    ("elsewhere", true, &[]),
    // This stack has no forge.
    ("forge-hint", false, &[]),
    ("newer", true, &[]),
    // The turn is written with its place in the sandbox's record.
    ("prompt", true, &["DynamoDB_20120810.BatchGetItem", "DynamoDB_20120810.TransactWriteItems", "GET /daytona/sandbox",
        "DynamoDB_20120810.TransactWriteItems", "POST /daytona/sandbox"]),
    ("stop", false, &["DynamoDB_20120810.BatchGetItem", "POST /slack/chat.postEphemeral"]),
    ("sweep", false, &["DynamoDB_20120810.BatchGetItem"]),
    ("unreadable", true, &[]),
];

pub async fn worker() {
    const VISIBILITY: &str = "AmazonSQS.ChangeMessageVisibility";
    let mut function = start("worker").await;
    // Calls at its start are not part of the answer to an event.
    let _ = function.calls();
    let events = stored("worker");
    assert_eq!(events.len(), WORKER.len(), "a file is not stated here");
    for ((name, event), (of, held, asked)) in events.iter().zip(WORKER) {
        assert_eq!(name, of);
        let record = &event["Records"][0];
        if let Ok(body) = Body::decode(record["body"].as_str().unwrap_or_default()) {
            let group = &record["attributes"]["MessageGroupId"];
            assert_eq!(*group, body.group(), "{name}: its group");
        }
        let answer = function.invoke(event).await.unwrap();
        let id = &event["Records"][0]["messageId"];
        let failed = if *held { json!([{"itemIdentifier": id}]) } else { json!([]) };
        assert_eq!(answer["batchItemFailures"], failed, "{name}");
        let calls = function.calls();
        let others = || calls.iter().filter(|call| call.what != VISIBILITY);
        let mut left = others();
        for call in *asked {
            assert!(
                left.any(|made| made.what == *call),
                "{name}: no {call} in its place among {calls:#?}"
            );
        }
        assert!(!asked.is_empty() || others().count() == 0, "{name}: {calls:#?}");
        if name == "prompt" {
            // Beside the provider's calls, in any order.
            let card = others().any(|call| call.what == "POST /slack/chat.postMessage");
            assert!(card, "{name}: no card among {calls:#?}");
        }
        if name == "newer" {
            let given_back = calls.iter().find(|call| call.what == VISIBILITY);
            assert_eq!(given_back.unwrap().body["VisibilityTimeout"], 2, "{calls:?}");
        }
    }
    let newer = |line: &&Value| line["event"] == "schema.newer";
    let log = function.log();
    assert_eq!(log.iter().filter(newer).count(), 1, "{log:#?}");
    function.end().await;
}

pub async fn sweeper() {
    let mut function = start("sweeper").await;
    for (name, event) in stored("sweeper") {
        let answer = function.invoke(&event).await.unwrap();
        assert_eq!(
            (&answer["due"], &answer["orphans"]),
            (&json!({"due": 0, "sent": 0}), &json!({"listed": 0, "deleted": 0})),
            "{name}: {answer}"
        );
        let calls = function.calls();
        let shards = calls.iter().filter(|call| call.what == "DynamoDB_20120810.Query");
        assert!(shards.count() >= 16, "{name}: not every shard was asked: {calls:?}");
        let listed = calls.iter().any(|call| call.what.starts_with("GET /daytona/"));
        assert!(listed, "{name}: the provider was not asked: {calls:?}");
        assert_eq!(answer["dead"], json!({"waiting": 0}));
        assert_eq!(sent(&calls), "", "{name}");

        let three = json!({"Attributes": {"ApproximateNumberOfMessages": "3"}});
        function.answer("AmazonSQS.GetQueueAttributes", 200, three);
        let told = function.invoke(&event).await.unwrap_err();
        assert_eq!(
            told["errorMessage"],
            "3 wake-ups could not be delivered (docs/RUNBOOK.md, SweeperFails)"
        );
        let calls = function.calls();
        let mut sends = calls.iter().filter(|call| call.what == "AmazonSQS.SendMessage");
        let look = &sends.next().expect("the worker is told").body;
        assert!(look["QueueUrl"].as_str().unwrap().ends_with("Control.fifo"));
        assert_eq!(look["MessageGroupId"], "dead-letters");
        assert!(look["MessageBody"].as_str().unwrap().contains(r#""kind":"dead_letters""#));
        assert!(sends.next().is_none(), "one word for all of them");
    }
    function.end().await;
}
