//! Metrics with alarms are counted when something goes wrong, and not before.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::SandboxKey;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::signals::{
    Alarm, CONTROL_DROPPED, DIMENSION, GIVEN_UP, INGRESS_FAILED, NAMESPACE, ORPHANS_HELD,
    TABLE_FAILED,
};
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Body, Message, NewSandbox, Work};
use bobbin_sandbox::labels::{StackIdentity, labels};
use bobbin_tests::function::{Called, Function};
use serde_json::{Value, json};

use super::events::{signed, start, stored};

/// The sums of its metrics, as CloudWatch adds them up for the stack.
fn sums(function: &Function) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in function.log() {
        for metrics in line["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
            assert_eq!(metrics["Namespace"], NAMESPACE);
            assert_eq!(metrics["Dimensions"], json!([[DIMENSION]]));
            assert_eq!(line[DIMENSION], "local");
            for metric in metrics["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                let sum = line[name].as_u64().unwrap();
                *sums.entry(name.to_owned()).or_default() += sum;
            }
        }
    }
    sums
}

fn count(function: &Function, alarm: Alarm) -> u64 {
    let sums = sums(function);
    sums.get(alarm.metric()).copied().unwrap_or_default()
}

/// How often an event is in the log.
fn logged(function: &Function, event: &str) -> usize {
    let log = function.log();
    log.iter().filter(|line| line["event"] == event).count()
}

fn event(folder: &str, name: &str) -> Value {
    let found = stored(folder).into_iter().find(|(one, _)| one == name);
    found.unwrap_or_else(|| panic!("there is no events/{folder}/{name}.json")).1
}

pub async fn ingress() {
    let mut function = start("ingress").await;
    let mention = event("slack", "app_mention");
    let accepted = function.invoke(&signed(&mention)).await.unwrap();
    assert_eq!(accepted["statusCode"], 200);
    assert_eq!(count(&function, Alarm::WorkDropped), 0);
    // An unsigned request is not our failure.
    let stale = function.invoke(&mention).await.unwrap();
    assert_eq!(stale["statusCode"], 401);
    assert_eq!(count(&function, Alarm::WorkDropped), 0);

    let gone = json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "The specified queue does not exist."});
    function.answer("AmazonSQS.SendMessage", 400, gone);
    let refused = function.invoke(&signed(&mention)).await.unwrap();
    assert_eq!(refused["statusCode"], 503, "{refused}");
    assert_eq!(count(&function, Alarm::WorkDropped), 1);
    let told = event("discord", "say-in-thread");
    let told = function.invoke(&signed(&told)).await.unwrap();
    assert_eq!(told["statusCode"], 200, "Discord shows words only then");
    assert_eq!(count(&function, Alarm::WorkDropped), 2);
    assert_eq!(logged(&function, INGRESS_FAILED), 2);
    let hook = event("github", "installation-deleted");
    let refused = function.invoke(&hook).await.unwrap();
    assert_eq!((&refused["statusCode"], count(&function, Alarm::WorkDropped)), (&json!(401), 2));
    let unqueued = function.invoke(&signed(&hook)).await.unwrap();
    assert_eq!((&unqueued["statusCode"], count(&function, Alarm::WorkDropped)), (&json!(503), 3));
    function.end().await;
}

pub async fn worker() {
    let mut function = start("worker").await;
    let stop = event("worker", "stop");
    function.invoke(&stop).await.unwrap();
    let look = event("worker", "dead-letters");
    function.invoke(&look).await.unwrap();
    assert_eq!(count(&function, Alarm::WorkDropped), 0);
    function.answer("AmazonSQS.ReceiveMessage", 200, unreadable_dead_letters());
    function.invoke(&look).await.unwrap();
    let buried = count(&function, Alarm::WorkDropped);
    assert!(buried > 0);
    assert_eq!(logged(&function, GIVEN_UP) as u64, buried);
    function.answer("AmazonSQS.ReceiveMessage", 200, json!({}));

    let sweep = event("worker", "sweep");
    function.invoke(&sweep).await.unwrap();
    assert_eq!(count(&function, Alarm::ServiceAway), 0);
    let denied = json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "not authorized"});
    function.answer("DynamoDB_20120810.BatchGetItem", 400, denied);
    function.invoke(&sweep).await.unwrap();
    assert_eq!(count(&function, Alarm::ServiceAway), 1);
    assert_eq!(logged(&function, TABLE_FAILED), 1);
    assert_eq!(count(&function, Alarm::WorkDropped), buried);
    let answer = function.invoke(&stop).await.unwrap();
    assert_eq!(answer["batchItemFailures"], json!([]), "it is given up");
    assert_eq!(count(&function, Alarm::WorkDropped), buried + 1);
    assert_eq!(logged(&function, CONTROL_DROPPED), 1);
    function.end().await;
}

/// The queue's dead letters: an unreadable one without a thread.
fn unreadable_dead_letters() -> Value {
    json!({"Messages": [{
        "MessageId": "059f36b4-0000-4000-8000-000000000009", "ReceiptHandle": "an-example-receipt", "Body": "{",
        "Attributes": {"ApproximateReceiveCount": "1001", "SentTimestamp": "1795168800000", "MessageGroupId": "nobody's"},
    }]})
}

/// Dead letters of a sandbox's group: nobody waits for the first in a chat; a person asked for the second.
pub async fn sandbox_letters() {
    let key: SandboxKey = "slack:T0BOBBIN01:C0BUILD0001:1790000000.000100".parse().unwrap();
    let new: NewSandbox = serde_json::from_value(json!({"name": "shared"})).unwrap();
    let by = Person { id: "U0ANNA00001".to_owned(), name: "Anna".to_owned() };
    let want = Operation::Destroy;
    let operate = Work::Operate { want, by: Some(by) };
    for (work, is_told) in [(Work::Create(new), false), (operate, true)] {
        let mut function = start("worker").await;
        let message = Body::Message(Message {
            id: "dead-1".into(),
            thread: key.group(),
            accepted_at_ms: 1_795_168_800_000,
            work,
        });
        let letter = json!({"Messages": [{
            "MessageId": "059f36b4-0000-4000-8000-000000000009", "ReceiptHandle": "an-example-receipt",
            "Body": message.encode(),
            "Attributes": {"ApproximateReceiveCount": "1001", "SentTimestamp": "1795168800000", "MessageGroupId": key.group().to_string()},
        }]});
        function.answer("AmazonSQS.ReceiveMessage", 200, letter);
        let _ = function.calls();
        let look = event("worker", "dead-letters");
        function.invoke(&look).await.unwrap();
        let calls = function.calls();
        let made = |what: &str| calls.iter().any(|call| call.what == what);
        assert!(made("AmazonSQS.DeleteMessage"), "it stays: {calls:#?}");
        assert!(!made("AmazonSQS.SendMessage"), "it is sent on: {calls:#?}");
        let told = calls.iter().any(|call| {
            call.what == "POST /slack/chat.postMessage"
                && call.body.to_string().contains("U0ANNA00001")
        });
        assert_eq!(told, is_told, "{calls:#?}");
        function.end().await;
    }
}

/// A letter that only a newer worker can read waits for one, for a day.
pub async fn newer_letters() {
    let day_ms = 24 * 60 * 60_000;
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    for (age_ms, is_kept) in [(day_ms / 2, true), (day_ms + 60_000, false)] {
        let mut function = start("worker").await;
        let letter = json!({"Messages": [{
            "MessageId": "059f36b4-0000-4000-8000-000000000009", "ReceiptHandle": "an-example-receipt",
            "Body": event("worker", "newer")["Records"][0]["body"],
            "Attributes": {
                "ApproximateReceiveCount": "1001", "SentTimestamp": (now_ms - age_ms).to_string(),
                "MessageGroupId": "nobody's",
            },
        }]});
        function.answer("AmazonSQS.ReceiveMessage", 200, letter);
        let _ = function.calls();
        function.invoke(&event("worker", "dead-letters")).await.unwrap();
        let calls = function.calls();
        let is_dead = |call: &Called| call.body["QueueUrl"].to_string().contains("Dead");
        let made = |what: &str| calls.iter().any(|call| call.what == what && is_dead(call));
        assert_eq!(made("AmazonSQS.ChangeMessageVisibility"), is_kept, "{calls:#?}");
        assert_eq!(made("AmazonSQS.DeleteMessage"), !is_kept, "{calls:#?}");
        function.end().await;
    }
}

pub async fn sweeper() {
    let mut function = start("sweeper").await;
    let tick = event("sweeper", "tick");
    function.invoke(&tick).await.unwrap();
    assert_eq!(logged(&function, "sandbox.orphan.destroyed"), 0);
    let key: SandboxKey = "discord:1240000000000000100:1240000000000000900".parse().unwrap();
    let left = |nth: u32, id: &str| {
        json!({
            "id": format!("11111111-1111-4111-8111-1111111111{nth:02}"), "name": "left-behind", "state": "started",
            "labels": labels(StackIdentity { name: "local", id }, &key, nth), "createdAt": "2026-01-01T00:00:00Z",
        })
    };
    let at = |nth: u32| format!("GET /daytona/sandbox/11111111-1111-4111-8111-1111111111{nth:02}");
    let list = |items: &[Value]| json!({"items": items, "nextCursor": null});
    let ours = "this-one";
    let both = list(&[left(1, ours), left(2, "a namesake's")]);
    function.answer("GET /daytona/sandbox", 200, both);
    function.answer(&at(1), 200, left(1, ours));
    let answer = function.invoke(&tick).await.unwrap();
    assert_eq!(answer["orphans"], json!({"listed": 1, "deleted": 1}));
    assert_eq!(logged(&function, "sandbox.orphan.destroyed"), 1);

    // Somebody gave it another label meanwhile.
    function.answer("GET /daytona/sandbox", 200, list(&[left(1, ours)]));
    function.answer(&at(1), 200, left(1, "a namesake's"));
    let answer = function.invoke(&tick).await.unwrap();
    assert_eq!(answer["orphans"], json!({"listed": 1, "deleted": 0}));

    // Like after a table was restored to an earlier point: all of them seem to be orphans.
    let all: Vec<Value> = (1..=3).map(|nth| left(nth, ours)).collect();
    function.answer("GET /daytona/sandbox", 200, list(&all));
    let told = function.invoke(&tick).await.unwrap_err();
    assert_eq!(
        told["errorMessage"],
        "3 of 3 sandboxes look like orphans and are kept until a person has checked them (docs/RUNBOOK.md, SweeperFails)"
    );
    let destroyed = logged(&function, "sandbox.orphan.destroyed");
    assert_eq!(destroyed, 1, "no other one was deleted");
    assert_eq!(logged(&function, ORPHANS_HELD), 1);
    // One tick deletes no more than 20. Those from a time to come are too young to be judged.
    let mut many: Vec<Value> = (10..60).map(|nth| left(nth, ours)).collect();
    for young in &mut many[21..] {
        young["createdAt"] = json!("2100-01-01T00:00:00Z");
    }
    function.answer("GET /daytona/sandbox", 200, list(&many));
    for nth in 10..31 {
        function.answer(&at(nth), 200, left(nth, ours));
    }
    let answer = function.invoke(&tick).await.unwrap();
    assert_eq!(answer["orphans"], json!({"listed": 50, "deleted": 20}));
    // Lambda's count of errors raises the alarm: no metric of ours is written for it.
    assert_eq!(sums(&function), BTreeMap::new());
    function.end().await;
}
