//! Direct messages in Slack: the thread that ingress chooses with one read of the table, and a worker's copy of a
//! message that another thread has.

use bobbin_core::records::message::Body;
use bobbin_tests::function::{Called, Function};
use serde_json::{Value, json};

use super::events::{signed, start, stored};

const GET: &str = "DynamoDB_20120810.GetItem";
const UPDATE: &str = "DynamoDB_20120810.UpdateItem";
const TENANT: &str = "tenant:slack:T0BOBBIN01";
const FIRST: &str = "slack_T0BOBBIN01_D0DIRECT001_1790000100.000100";
const OF_MESSAGE: &str = "slack:T0BOBBIN01:D0DIRECT001:1790000100.000100";
const OF_ANNA: &str = "slack:T0BOBBIN01:dm:U0ANNA00001";

fn event(folder: &str, name: &str) -> Value {
    let found = stored(folder).into_iter().find(|(one, _)| one == name);
    found.unwrap_or_else(|| panic!("there is no events/{folder}/{name}.json")).1
}

/// A later message in the thread of the message in `message_im`.
fn reply() -> Value {
    let mut event = event("slack", "message_im");
    let text = event["body"].as_str().unwrap();
    let mut body: Value = serde_json::from_str(text).unwrap();
    body["event"]["thread_ts"] = body["event"]["ts"].clone();
    body["event"]["ts"] = json!("1790000900.000100");
    event["body"] = body.to_string().into();
    event
}

/// The items that were read, and the groups of the sent messages.
fn made(calls: &[Called]) -> (Vec<String>, Vec<String>) {
    let of = |what: &'static str| calls.iter().filter(move |call| call.what == what);
    let read = of(GET).map(|call| {
        let key = &call.body["Key"];
        assert_eq!(key["thread"]["S"], TENANT);
        key["item"]["S"].as_str().unwrap().to_owned()
    });
    let sent = of("AmazonSQS.SendMessage");
    let sent = sent.map(|call| call.body["MessageGroupId"].as_str().unwrap().to_owned());
    (read.collect(), sent.collect())
}

fn logged(function: &Function, event: &str) -> usize {
    function.log().iter().filter(|line| line["event"] == event).count()
}

fn settings(one_thread: bool) -> Value {
    let settings = json!({"schema": 1, "direct_in_one_thread": one_thread}).to_string();
    json!({"Item": {"settings": {"S": settings}, "version": {"N": "1"}}})
}

/// The prompt, and its announcement.
fn both(thread: &str) -> Vec<String> {
    vec![thread.to_owned(), format!("{thread}#queued")]
}

pub async fn chosen() {
    let mut function = start("ingress").await;
    let first = signed(&event("slack", "message_im"));
    let reply = signed(&reply());
    let place = |thread: &str| json!({"Item": {"place": {"S": thread}}});
    let settings_item = || vec!["settings".to_owned()];
    let place_item = || vec![format!("direct#{FIRST}")];
    for (event, answer, read, thread) in [
        (&first, json!({}), settings_item(), OF_MESSAGE),
        (&first, settings(false), settings_item(), OF_MESSAGE),
        (&first, settings(true), settings_item(), OF_ANNA),
        (&reply, place(OF_MESSAGE), place_item(), OF_MESSAGE),
        (&reply, place(OF_ANNA), place_item(), OF_ANNA),
        // The answered message is unknown.
        (&reply, json!({}), [place_item(), settings_item()].concat(), OF_MESSAGE),
    ] {
        function.answer(GET, 200, answer.clone());
        let accepted = function.invoke(event).await.unwrap();
        assert_eq!(accepted["statusCode"], 200);
        assert_eq!(made(&function.calls()), (read, both(thread)), "{answer}");
    }
    assert_eq!(logged(&function, "ingress.undecided"), 0);
    let denied = json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "not authorized"});
    let damaged = json!({"Item": {"settings": {"S": "{"}, "version": {"N": "1"}}});
    for (status, answer) in [(400, denied), (200, damaged)] {
        function.answer(GET, status, answer);
        let accepted = function.invoke(&first).await.unwrap();
        assert_eq!(accepted["statusCode"], 200);
        assert_eq!(made(&function.calls()), (settings_item(), both(OF_MESSAGE)));
    }
    assert_eq!(logged(&function, "ingress.undecided"), 2);
    function.end().await;
}

/// Other messages do not wait for the table.
pub async fn others() {
    let mut function = start("ingress").await;
    for (folder, name) in [
        ("discord", "say-in-thread"),
        ("discord", "stop"),
        ("slack", "app_mention"),
        ("slack", "app_home_opened"),
        ("slack", "block_actions_stop"),
        ("slack", "thread_broadcast"),
    ] {
        function.invoke(&signed(&event(folder, name))).await.unwrap();
        let calls = function.calls();
        assert!(!made(&calls).1.is_empty(), "{folder}/{name} is not accepted: {calls:#?}");
        let table = calls.iter().find(|call| call.what.starts_with("DynamoDB"));
        assert!(table.is_none(), "{folder}/{name}: {table:?}");
    }
    function.end().await;
}

/// The event of a worker, in another thread.
fn record(name: &str, thread: &str) -> Value {
    let mut event = event("worker", name);
    let record = &mut event["Records"][0];
    let mut body = Body::decode(record["body"].as_str().unwrap()).unwrap();
    match &mut body {
        Body::Message(message) => message.thread = thread.parse().unwrap(),
        Body::Control(control) => control.thread = thread.parse().unwrap(),
        other => panic!("{other:?}"),
    }
    record["attributes"]["MessageGroupId"] = body.group().into();
    record["body"] = body.encode().into();
    event
}

/// The stored items of direct messages, and whether anything was posted.
fn taken(calls: &[Called]) -> (Vec<String>, bool) {
    let updates = calls.iter().filter(|call| call.what == UPDATE);
    let items = updates.filter_map(|call| {
        let item = call.body["Key"]["item"]["S"].as_str()?;
        item.starts_with("direct#").then(|| {
            assert_eq!(call.body["Key"]["thread"]["S"], TENANT);
            item.to_owned()
        })
    });
    let posted = calls.iter().any(|call| call.what.starts_with("POST /slack/chat."));
    (items.collect(), posted)
}

pub async fn taken_once() {
    let mut function = start("worker").await;
    let _ = function.calls();
    let elsewhere = json!({"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed"});
    let away = json!({"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "slow down"});
    for thread in [OF_MESSAGE, OF_ANNA] {
        for name in ["prompt", "stop"] {
            let event = record(name, thread);
            let held = json!([{"itemIdentifier": event["Records"][0]["messageId"]}]);
            let mut invoke = async |status: u16, answer: &Value| {
                function.answer(UPDATE, status, answer.clone());
                let answer = function.invoke(&event).await.unwrap();
                let (items, posted) = taken(&function.calls());
                assert!(!items.is_empty(), "{name} in {thread} is not taken");
                (answer["batchItemFailures"].clone(), posted)
            };
            // Another thread has it: it is dropped.
            assert_eq!(invoke(400, &elsewhere).await, (json!([]), false), "{name} in {thread}");
            // No thread had it. (The provider here makes no sandbox, so a prompt is held.)
            let done = if name == "prompt" { held.clone() } else { json!([]) };
            assert_eq!(invoke(200, &json!({})).await, (done, true), "{name} in {thread}");
            // A prompt waits for the table; a control message is given up after its own time.
            let (failed, posted) = invoke(400, &away).await;
            if name == "prompt" {
                assert_eq!((failed, posted), (held, false), "{thread}");
            } else {
                assert!(posted, "{thread}: the stop is not answered");
            }
        }
    }
    assert_eq!(logged(&function, "message.elsewhere"), 4);
    // In a channel there is none of that.
    function.answer(UPDATE, 400, elsewhere);
    let channel = "slack:T0BOBBIN01:C0BUILD0001:1790000000.000100";
    function.invoke(&record("stop", channel)).await.unwrap();
    assert_eq!(taken(&function.calls()), (Vec::new(), true));
    function.end().await;
}
