use crate::harness::start;
use serde_json::{Value, json};

#[tokio::test]
async fn starter_message_gets_one_thread() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let (_, anchor) = harness
        .discord(
            "POST",
            &format!("/channels/{}/messages", seeds.channel_id),
            json!({"content": "anchor"}),
        )
        .await;
    let id = anchor["id"].as_str().unwrap();
    let path = format!("/channels/{}/messages/{id}/threads", seeds.channel_id);
    let (status, thread) = harness
        .discord("POST", &path, json!({"name": "task", "auto_archive_duration": 1440}))
        .await;
    assert_eq!((status, &thread["id"], &thread["type"]), (201, &anchor["id"], &json!(11)));
    let (status, again) = harness.discord("POST", &path, json!({"name": "task"})).await;
    assert_eq!((status, &again["code"]), (400, &json!(160_004)));
    let (_, active) = harness
        .discord("GET", &format!("/guilds/{}/threads/active", seeds.guild_id), Value::Null)
        .await;
    assert_eq!(active["threads"][0]["id"], anchor["id"]);
    let (status, nested) = harness
        .discord("POST", &format!("/channels/{id}/threads"), json!({"name": "x", "type": 11}))
        .await;
    assert_eq!((status, &nested["code"]), (400, &json!(50_024)));
    let (status, private) = harness
        .discord("POST", &format!("/channels/{}/threads", seeds.channel_id), json!({"name": "x"}))
        .await;
    assert_eq!(
        (status, &private["code"]),
        (403, &json!(50_013)),
        "without a type it would be private"
    );
    harness.end().await;
}

#[tokio::test]
async fn sending_reopens_archived_not_locked_threads() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let (_, thread) = harness
        .discord(
            "POST",
            &format!("/channels/{}/threads", seeds.channel_id),
            json!({"name": "t", "type": 11}),
        )
        .await;
    let id = thread["id"].as_str().unwrap();
    let path = format!("/channels/{id}/messages");
    let (_, message) = harness.discord("POST", &path, json!({"content": "one"})).await;
    let edit = format!("{path}/{}", message["id"].as_str().unwrap());
    harness.discord("PATCH", &format!("/channels/{id}"), json!({"archived": true})).await;
    let (_, archived) = harness.discord("GET", &format!("/channels/{id}"), Value::Null).await;
    assert_eq!(archived["thread_metadata"]["archived"], true);
    let (status, refused) = harness.discord("PATCH", &edit, json!({"content": "two"})).await;
    assert_eq!((status, &refused["code"]), (400, &json!(50_083)));
    assert_eq!(harness.discord("POST", &path, json!({"content": "wake"})).await.0, 200);
    assert_eq!(harness.discord("PATCH", &edit, json!({"content": "two"})).await.0, 200);
    harness
        .control("discord/thread", json!({"channel_id": id, "locked": true, "archived": true}))
        .await;
    let (status, locked) = harness.discord("POST", &path, json!({"content": "x"})).await;
    assert_eq!((status, &locked["code"]), (403, &json!(160_005)));
    harness.control("discord/delete_channel", json!({"channel_id": id})).await;
    assert_eq!(harness.discord("POST", &path, json!({"content": "x"})).await.1["code"], 10_003);
    harness.end().await;
}

#[tokio::test]
async fn armed_faults_hit_named_route() {
    let harness = start().await;
    let path = format!("/channels/{}/messages", harness.chat.seeds().channel_id);
    harness.control("discord/faults", json!({"route": "POST /api/v10/channels", "count": 2, "status": 429, "retry_after": 0.2})).await;
    for _ in 0..2 {
        let (status, body) = harness.discord("POST", &path, json!({"content": "x"})).await;
        assert_eq!((status, &body["retry_after"]), (429, &json!(0.2)));
    }
    harness.control("discord/faults", json!({"route": "POST", "status": 500, "after": true})).await;
    assert_eq!(harness.discord("POST", &path, json!({"content": "done though"})).await.0, 500);
    let (_, list) = harness.discord("GET", &path, Value::Null).await;
    assert_eq!(
        list[0]["content"], "done though",
        "the request was carried out, only its answer was lost"
    );
    harness
        .control(
            "slack/faults",
            json!({"route": "chat.postMessage", "status": 200, "error": "not_in_channel"}),
        )
        .await;
    assert_eq!(
        harness.slack("chat.postMessage", json!({"channel": "general", "text": "x"})).await["error"],
        "not_in_channel"
    );
    harness.end().await;
}

#[tokio::test]
async fn limits_are_enforced_once_switched_on() {
    let harness = start().await;
    let path = format!("/channels/{}/messages", harness.chat.seeds().channel_id);
    harness.control("discord/limits", json!({"enforce": true})).await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(harness.discord("GET", &path, Value::Null).await.0);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 2);
    harness.end().await;
}

#[tokio::test]
async fn messages_survive_a_restart() {
    let harness = start().await;
    let path = format!("/channels/{}/messages", harness.chat.seeds().channel_id);
    let (_, before) = harness.discord("POST", &path, json!({"content": "kept"})).await;
    let harness = harness.restart().await;
    let (_, list) = harness.discord("GET", &path, Value::Null).await;
    assert_eq!(list[0]["id"], before["id"]);
    let (_, after) = harness.discord("POST", &path, json!({"content": "new"})).await;
    assert!(after["id"].as_str() > before["id"].as_str());
    harness.end().await;
}
