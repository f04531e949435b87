//! Records whose sandbox no provider lists: if they are most, they are kept until a person has checked.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::signals::{ACCOUNT_OTHER, VANISHED_HELD};
use bobbin_core::records::account::{Account, AccountRecord};
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_tests::function::{Function, Started};
use serde_json::{Value, json};

use super::events::stored;
use super::secret;

/// The organisation of the stack's key, as the provider reports it.
const OURS: &str = "00000000-0000-4000-8000-000000000001";

fn now_ms() -> Ms {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Ms::try_from(now.as_millis()).unwrap()
}

fn key(nth: u64) -> SandboxKey {
    format!("discord:1240000000000000100:{nth}").parse().unwrap()
}

/// Items of the index: every shard of it has these.
fn index(sandboxes: u64) -> Value {
    let item = |nth| json!({"thread": {"S": key(nth).to_string()}, "item": {"S": "sandbox"}, "due_shard": {"N": "0"}});
    let items: Vec<Value> = (0..sandboxes).map(item).collect();
    json!({"Items": items, "Count": sandboxes, "ScannedCount": sandboxes})
}

/// What the table holds: an account of the provider's, and the records.
fn table(account: &str, confirmed_at_ms: Option<Ms>, sandboxes: u64) -> Value {
    let account = AccountRecord { account: Account::of(account), confirmed_at_ms };
    let account = schema::write(Shape::Account, &account, &UnknownFields::default()).unwrap();
    let mut items = vec![json!({
        "thread": {"S": "provider:daytona"}, "item": {"S": "account"}, "account": {"S": account}, "version": {"N": "1"},
    })];
    for nth in 0..sandboxes {
        let record = SandboxRecord { phase: Phase::Paused, generation: 1, ..SandboxRecord::new(1) };
        items.push(json!({
            "thread": {"S": key(nth).to_string()}, "item": {"S": "sandbox"}, "record": {"S": record.encode()}, "version": {"N": "1"},
        }));
    }
    json!({"Responses": {"local-Table": items}, "UnprocessedKeys": {}})
}

/// A tick; returns how many records it asked for a check.
async fn tick(sweeper: &mut Function) -> (Result<Value, Value>, usize) {
    let (_, event) = stored("sweeper").into_iter().next().unwrap();
    let _ = sweeper.calls();
    let told = sweeper.invoke(&event).await;
    let calls = sweeper.calls();
    let sent = calls.iter().filter(|call| call.what == "AmazonSQS.SendMessageBatch");
    let bodies = sent.flat_map(|call| call.body["Entries"].as_array().cloned().unwrap_or_default());
    let is_look = |entry: &Value| {
        let body = entry["MessageBody"].as_str().unwrap_or_default();
        body.contains(r#""work":"reconcile""#)
    };
    let looks = bodies.filter(is_look);
    (told, looks.count())
}

fn logged(sweeper: &Function, event: &str) -> usize {
    let log = sweeper.log();
    log.iter().filter(|line| line["event"] == event).count()
}

pub async fn held() {
    let started = Function::start("sweeper", secret(), |environment| {
        for (name, value) in environment {
            if name == "OVERRIDES" {
                let mut overrides: Value = serde_json::from_str(value).unwrap();
                // Every tick compares.
                overrides["limits"] = json!({"reconcile_ms": 60_000});
                *value = overrides.to_string();
            }
        }
    });
    let Started::Ready(mut sweeper) = started.await else { panic!("it does not start") };
    // Of another stack: it names its account and is not one of ours.
    let foreign = json!({
        "id": "a", "name": "a", "state": "started", "organizationId": OURS, "labels": {"stack": "another's"},
    });
    sweeper.answer("GET /daytona/sandbox", 200, json!({"items": [foreign], "nextCursor": null}));

    // Armed items are also due here, and a sweep of each is under way.
    let out = json!({"Attributes": {"sweep": {"S": "sweep-1"}}});
    sweeper.answer("DynamoDB_20120810.UpdateItem", 200, out);
    sweeper.answer("DynamoDB_20120810.Query", 200, index(1));
    sweeper.answer("DynamoDB_20120810.BatchGetItem", 200, table(OURS, None, 1));
    let (told, looks) = tick(&mut sweeper).await;
    let held = told.unwrap_err()["errorMessage"].to_string();
    assert!(held.contains("sandboxes on record; their records are kept as they are"), "{held}");
    assert_eq!((looks, logged(&sweeper, VANISHED_HELD)), (0, 1));

    // A person has given up the sandboxes of the other account.
    sweeper.answer("DynamoDB_20120810.BatchGetItem", 200, table(OURS, Some(now_ms()), 1));
    let (told, looks) = tick(&mut sweeper).await;
    assert!(told.is_ok() && looks > 0, "{told:?}, {looks}");
    let a_week_ago = now_ms() - 7 * 24 * 60 * 60_000;
    sweeper.answer("DynamoDB_20120810.BatchGetItem", 200, table(OURS, Some(a_week_ago), 1));
    let (told, looks) = tick(&mut sweeper).await;
    assert!(told.is_err() && looks == 0, "{told:?}, {looks}");

    // In another account nothing is searched, not even for one sandbox.
    sweeper.answer(
        "DynamoDB_20120810.Query",
        200,
        json!({"Items": [], "Count": 0, "ScannedCount": 0}),
    );
    sweeper.answer("DynamoDB_20120810.BatchGetItem", 200, table("another", None, 1));
    let (told, looks) = tick(&mut sweeper).await;
    let other = told.unwrap_err()["errorMessage"].to_string();
    assert!(other.contains("to another account than its sandboxes"), "{other}");
    assert_eq!(looks, 0);
    assert!(logged(&sweeper, ACCOUNT_OTHER) > 0);
    sweeper.end().await;
}
