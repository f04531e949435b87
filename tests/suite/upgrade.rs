//! A newer worker was here: its records wait for it, whatever an older one is asked meanwhile.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::trial;

/// Deliveries that show that a message is held and not under way.
const DELIVERIES: i64 = 3;

pub fn trials() -> Vec<Trial> {
    vec![trial("embedded::upgrade::older_worker_leaves_newer_records_intact", newer)]
}

async fn newer() {
    let mut limits = quick();
    limits["newer_ms"] = json!(500);
    limits["newer_ms_max"] = json!(1_000);
    limits["idle_pause_ms"] = json!(5_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    for (platform, item) in Platform::ALL.into_iter().zip(["session", "sandbox"]) {
        one(&world, platform, item).await;
    }
    stack.end().unwrap();
}

/// The newer record is the thread's or its sandbox's.
async fn one(world: &World, platform: Platform, item: &str) {
    let (mut talk, first) = world.begin(platform, "write: kept.txt kept").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let thread = talk.thread.key.clone();
    let sandbox = talk.sandbox().await;

    // A newer worker's record: another shape, with unknown words.
    let present = record(world, &thread, item).await;
    let mut newer: Value = serde_json::from_str(&present).unwrap();
    let written = newer["schema"].clone();
    newer["schema"] = json!(1_000);
    newer["phase"] = json!("hibernating");
    let newer = newer.to_string();
    put(world, &thread, item, &newer).await;

    // A prompt, a control message, the sweeper: all wait, and nothing is touched.
    let second = talk.say("run: cat kept.txt").await;
    let queues = [&world.deployment.messages_queue_url, &world.deployment.control_queue_url];
    held(world, queues[0], &thread, &second).await;
    let asked = match platform {
        Platform::Discord => world
            .discord
            .command(&talk.thread, "status", &json!({}))
            .await
            .map(|acted| acted.interaction),
        Platform::Slack => {
            let said = world.slack.mention(Some(&talk.thread), "status").await;
            said.map(|said| world.slack.turn(&talk.thread.channel, said["ts"].as_str().unwrap()))
        }
    };
    held(world, queues[1], &thread, &asked.unwrap()).await;
    world.sweep().await.unwrap();
    assert_eq!(record(world, &thread, item).await, newer, "an older worker wrote over it");
    assert_eq!(
        world.provider.of(&thread).await.unwrap().iter().filter(|one| one.live()).count(),
        1,
        "a sandbox that only a newer worker knows was touched"
    );
    assert_eq!(talk.sandbox().await.id, sandbox.id);
    assert!(!talk.has_ended(&second).await);

    // The deployment was undone, or only a field is newer: the messages are processed, the field stays.
    let mut old: Value = serde_json::from_str(&present).unwrap();
    old["from_the_future"] = json!({"a": [1, 2]});
    put(world, &thread, item, &old.to_string()).await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("kept"), "{answer}");
    let after: Value = serde_json::from_str(&record(world, &thread, item).await).unwrap();
    assert_eq!(
        (&after["from_the_future"], &after["schema"]),
        (&json!({"a": [1, 2]}), &written),
        "an older worker lost a field"
    );
    assert!(after["version"].as_u64() > old["version"].as_u64());
    talk.check().await;
    talk.reset().await;
    world.check_quiet().await;
}

fn key(thread: &ThreadKey, item: &str) -> Value {
    json!({"thread": {"S": thread.to_string()}, "item": {"S": item}})
}

/// The record of a thread or of its sandbox, as it is stored.
async fn record(world: &World, thread: &ThreadKey, item: &str) -> String {
    let key = key(thread, item);
    let body = json!({"TableName": world.deployment.table, "ConsistentRead": true, "Key": key});
    let answer = world.aws.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await;
    answer.unwrap()["Item"]["record"]["S"].as_str().unwrap().to_owned()
}

async fn put(world: &World, thread: &ThreadKey, item: &str, record: &str) {
    let body = json!({
        "TableName": world.deployment.table, "Key": key(thread, item), "UpdateExpression": "SET #record = :record",
        "ExpressionAttributeNames": {"#record": "record"}, "ExpressionAttributeValues": {":record": {"S": record}},
    });
    world.aws.call("dynamodb", "DynamoDB_20120810.UpdateItem", &body).await.unwrap();
}

/// Waits until the thread's first message has been retried more than once, and this one is still there: itself, or
/// behind it in their group.
async fn held(world: &World, queue_url: &str, thread: &ThreadKey, id: &str) {
    let name = queue_url.rsplit('/').next().unwrap();
    let path = format!("queues/{name}/messages");
    eventually(VISIBLE_MS_MAX, "the message is held", async || {
        let waiting = world.engine(Method::GET, &path, &Value::Null).await?;
        let all = waiting.as_array().cloned().unwrap_or_default();
        let of = |word: &str| {
            let all = all.iter().filter(move |one| one["body"].to_string().contains(word));
            all.filter_map(|one| one["receives"].as_i64()).max()
        };
        match (of(&thread.to_string()), of(id)) {
            (Some(first), Some(_)) if first >= DELIVERIES => Ok(()),
            seen => Err(format!("the first of the thread and {id} were delivered {seen:?} times")),
        }
    })
    .await;
}
