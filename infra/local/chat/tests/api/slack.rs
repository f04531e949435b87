use crate::harness::{SECRET, SLACK_BOT, start, until};
use bobbin_local_chat::sign;
use serde_json::{Value, json};

#[test]
fn the_documented_vector_is_reproduced() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = sign::slack("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body.as_bytes());
    assert_eq!(signature, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
    assert_ne!(sign::slack(SECRET, "1531420618", body.as_bytes()), signature);
}

#[tokio::test]
async fn messages_are_posted_updated_and_found() {
    let harness = start().await;
    let channel = harness.chat.seeds().slack_channel_id;
    let root = harness.slack("chat.postMessage", json!({"channel": channel, "text": "root"})).await;
    let meta = json!({"event_type": "bobbin", "event_payload": {"op_id": "1"}});
    let reply = harness
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "reply", "thread_ts": root["ts"], "metadata": meta,
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "reply"}}]}),
        )
        .await;
    assert_eq!(reply["ok"], true, "{reply}");
    let nested = harness
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "second", "thread_ts": reply["ts"]}),
        )
        .await;
    assert_eq!(nested["message"]["thread_ts"], root["ts"], "a reply's ts is mapped to its root");
    let replies = harness
        .slack(
            "conversations.replies",
            json!({"channel": channel, "ts": root["ts"], "include_all_metadata": true}),
        )
        .await;
    assert_eq!(replies["messages"][1]["metadata"], meta);
    assert_eq!(replies["messages"][0]["reply_count"], 2);
    let plain =
        harness.slack("conversations.replies", json!({"channel": channel, "ts": root["ts"]})).await;
    assert!(plain["messages"][1].get("metadata").is_none());
    let updated = harness
        .slack("chat.update", json!({"channel": channel, "ts": reply["ts"], "text": "only text"}))
        .await;
    assert!(updated["message"].get("blocks").is_none(), "text without blocks removes the blocks");
    let gone = json!({"channel": channel, "ts": "1700000000.000100", "text": "x"});
    assert_eq!(harness.slack("chat.update", gone).await["error"], "message_not_found");
    harness.end().await;
}

#[tokio::test]
async fn refusals_use_slacks_error_names() {
    let harness = start().await;
    let channel = harness.chat.seeds().slack_channel_id;
    assert_eq!(
        harness.slack("chat.postMessage", json!({"channel": channel})).await["error"],
        "no_text"
    );
    assert_eq!(
        harness.slack("chat.postMessage", json!({"channel": "C0NONE", "text": "x"})).await["error"],
        "channel_not_found"
    );
    assert_eq!(harness.slack("no.such", json!({})).await["error"], "unknown_method");
    let url = format!("{}/auth.test", harness.chat.slack_api());
    let wrong: Value = harness
        .http
        .post(&url)
        .header("authorization", "Bearer xoxb-wrong")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(wrong, json!({"ok": false, "error": "invalid_auth"}));
    let form = harness
        .http
        .post(url)
        .form(&[("token", "xoxb-local")])
        .send()
        .await
        .unwrap()
        .json::<Value>()
        .await
        .unwrap();
    assert_eq!(form["user_id"], SLACK_BOT);
    let bad = [
        json!([{"type": "header", "text": {"type": "plain_text", "text": "x".repeat(151)}}]),
        json!([{"type": "task_card", "task_id": "1", "title": "t", "status": "completed"}]),
        json!([{"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "x".repeat(76)}, "action_id": "a"}]}]),
        json!([{"type": "markdown", "text": "x".repeat(7000)}, {"type": "markdown", "text": "x".repeat(7000)}]),
        (0..51).map(|_| json!({"type": "divider"})).collect::<Value>(),
        json!([{"type": "nonsense"}]),
    ];
    for blocks in bad {
        let answer = harness
            .slack("chat.postMessage", json!({"channel": channel, "text": "x", "blocks": blocks}))
            .await;
        assert_eq!(answer["error"], "invalid_blocks");
        assert!(
            answer["response_metadata"]["messages"][0]
                .as_str()
                .unwrap()
                .contains("json-pointer:/blocks")
        );
    }
    harness.end().await;
}

#[tokio::test]
async fn mention_arrives_twice_in_alternating_order() {
    let harness = start().await;
    for _ in 0..2 {
        let done = harness
            .act(json!({"type": "message", "typed": true, "text": "@bobbin fix <this> & that"}))
            .await;
        assert_eq!(done["deliveries"].as_array().unwrap().len(), 2);
    }
    let got = harness.ingress.deliveries("/slack/events");
    let kinds: Vec<&str> =
        got.iter().map(|one| one.body["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["app_mention", "message", "message", "app_mention"]);
    let (first, twin) = (&got[0].body, &got[1].body);
    assert_eq!(first["event"]["ts"], twin["event"]["ts"]);
    assert_ne!(first["event_id"], twin["event_id"]);
    assert_eq!(first["event"]["text"], format!("<@{SLACK_BOT}> fix &lt;this&gt; &amp; that"));
    assert_eq!(first["authorizations"][0]["user_id"], SLACK_BOT);
    let again = harness.act(json!({"type": "retry", "event_id": first["event_id"]})).await;
    assert_eq!(again["status"], 200);
    let retried = harness.ingress.deliveries("/slack/events").pop().unwrap();
    assert_eq!(
        (&retried.headers["x-slack-retry-num"], &retried.body["event_id"]),
        (&"1".parse().unwrap(), &first["event_id"])
    );
    harness.end().await;
}

#[tokio::test]
async fn failed_event_is_retried_until_accepted() {
    let harness = start().await;
    harness.control("slack/retries", json!({"delays_ms": [0, 10, 20]})).await;
    harness.ingress.will_answer(500, Value::Null);
    harness.ingress.will_answer(503, Value::Null);
    let dm = harness.chat.seeds().slack_dm_id;
    let done = harness.act(json!({"type": "message", "channel_id": dm, "text": "hello"})).await;
    assert_eq!(done["deliveries"][0]["status"], 500);
    until("two retries", || harness.ingress.deliveries("/slack/events").len() == 3).await;
    let got = harness.ingress.deliveries("/slack/events");
    assert_eq!(got[0].body["event"]["channel_type"], "im");
    assert!(got[0].headers.get("x-slack-retry-num").is_none());
    assert_eq!(
        (&got[2].headers["x-slack-retry-num"], &got[2].headers["x-slack-retry-reason"]),
        (&"2".parse().unwrap(), &"http_error".parse().unwrap())
    );
    let checked = harness.act(json!({"type": "url_verification"})).await;
    assert_eq!(checked["challenge_returned"], true);
    harness.end().await;
}

#[tokio::test]
async fn press_carries_its_value_and_container() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let button = json!([{"type": "actions", "block_id": "b1", "elements": [{"type": "button", "action_id": "reply", "value": "v1:1", "text": {"type": "plain_text", "text": "Reply"}}]}]);
    let card = json!({"channel": seeds.slack_channel_id, "text": "card", "blocks": button});
    let card = harness.slack("chat.postMessage", card).await;
    harness
        .act(json!({"type": "block_action", "message_ts": card["ts"], "action_id": "reply"}))
        .await;
    let pressed = || {
        let mut got = harness.ingress.deliveries("/slack/interactivity");
        got.pop().unwrap().body["payload"].clone()
    };
    let payload = pressed();
    assert_eq!(payload["actions"][0]["value"], "v1:1");
    assert_eq!(payload["container"]["message_ts"], card["ts"]);
    assert_eq!(payload["message"]["text"], "card");

    let publish = |hash: Value| json!({"user_id": seeds.slack_user_id, "view": {"type": "home", "blocks": button}, "hash": hash});
    let home = harness.slack("views.publish", publish(Value::Null)).await;
    assert_eq!(home["ok"], true, "{home}");
    let stale = harness.slack("views.publish", publish("old".into())).await;
    assert_eq!(stale["error"], "hash_conflict");
    harness
        .act(json!({"type": "block_action", "view_id": home["view"]["id"], "action_id": "reply"}))
        .await;
    let payload = pressed();
    assert_eq!(payload["container"]["view_id"], home["view"]["id"]);
    assert!(payload.get("message").is_none(), "{payload}");
    harness.end().await;
}

#[tokio::test]
async fn commands_shortcuts_and_stops_reach_ingress() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    harness.ingress.will_answer(200, json!({"response_type": "ephemeral", "text": "all is well"}));
    harness.act(json!({"type": "slash", "command": "/bobbin", "text": "status"})).await;
    let form = harness.ingress.deliveries("/slack/commands").remove(0).body;
    assert_eq!((&form["command"], &form["text"]), (&json!("/bobbin"), &json!("status")));
    let (_, seen) = harness
        .control(&format!("slack/ephemeral?user_id={}", seeds.slack_user_id), Value::Null)
        .await;
    assert_eq!(seen["messages"][0]["message"]["text"], "all is well");
    let said = harness.act(json!({"type": "message", "text": "no mention"})).await;
    assert_eq!(said["deliveries"].as_array().unwrap().len(), 1);
    harness.act(json!({"type": "shortcut", "callback_id": "send", "message_ts": said["ts"]})).await;
    let payload =
        harness.ingress.deliveries("/slack/interactivity").remove(0).body["payload"].clone();
    assert_eq!(
        (&payload["type"], &payload["message"]["text"]),
        (&json!("message_action"), &json!("no mention"))
    );
    let status = json!({"channel_id": seeds.slack_channel_id, "thread_ts": said["ts"], "status": "processing", "title": "Task"});
    assert_eq!(harness.slack("agents.sessions.setStatus", status).await["ok"], true);
    harness.act(json!({"type": "stop_session", "thread_ts": said["ts"]})).await;
    let event = harness.ingress.deliveries("/slack/events").pop().unwrap().body["event"].clone();
    assert_eq!(
        (&event["type"], &event["thread_ts"]),
        (&json!("agent_session_stopped"), &said["ts"])
    );
    harness.end().await;
}

#[tokio::test]
async fn file_download_needs_bot_token() {
    let harness = start().await;
    let channel = harness.chat.seeds().slack_channel_id;
    let ask = harness
        .slack("files.getUploadURLExternal", json!({"filename": "a.diff", "length": 5}))
        .await;
    let upload = ask["upload_url"].as_str().unwrap();
    assert_eq!(harness.http.post(upload).body("+line").send().await.unwrap().status(), 200);
    let root = json!({"channel": channel, "text": "root"});
    let root = harness.slack("chat.postMessage", root).await["ts"].clone();
    let done = harness.slack("files.completeUploadExternal", json!({"files": [{"id": ask["file_id"], "title": "Diff"}], "channel_id": channel, "thread_ts": root, "initial_comment": "here"})).await;
    assert_eq!(done["files"][0]["title"], "Diff", "{done}");
    let thread = json!({"channel": channel, "ts": root});
    let thread = harness.slack("conversations.replies", thread).await;
    let file = &thread["messages"][1]["files"][0];
    let url = file["url_private_download"].as_str().unwrap();
    let stranger = harness.http.get(url).send().await.unwrap();
    assert_eq!(stranger.status(), 200);
    assert!(stranger.text().await.unwrap().starts_with("<!DOCTYPE html>"));
    let own =
        harness.http.get(url).header("authorization", crate::harness::XOXB).send().await.unwrap();
    assert_eq!(own.text().await.unwrap(), "+line");
    harness.end().await;
}

#[tokio::test]
async fn announced_foreign_events_are_known() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let event = json!({"type": "app_mention", "user": seeds.slack_user_id, "text": "hi", "ts": "1700000000.000200", "channel": seeds.slack_channel_id});
    let thread = json!({"channel": seeds.slack_channel_id, "ts": "1700000000.000200"});
    let read = || harness.slack("conversations.replies", thread.clone());
    assert_eq!(read().await["error"], "thread_not_found");
    for _ in 0..2 {
        harness.chat.announce_slack(&json!({"type": "event_callback", "event": event})).unwrap();
        let messages = read().await["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 1, "{messages}");
        assert_eq!(messages[0]["text"], "hi");
    }
    harness.end().await;
}

#[tokio::test]
async fn press_carries_message_input_values() {
    let harness = start().await;
    let channel = harness.chat.seeds().slack_channel_id;
    let plain = |text: &str| json!({"type": "plain_text", "text": text});
    let input = |id: &str, element: Value| json!({"type": "input", "block_id": id, "label": plain(id), "element": element});
    let options = json!([{"text": plain("A"), "value": "a"}, {"text": plain("B"), "value": "b"}]);
    let blocks = json!([
        input("one", json!({"type": "static_select", "action_id": "one", "options": options})),
        input("many", json!({"type": "multi_static_select", "action_id": "many", "options": options})),
        input("text", json!({"type": "plain_text_input", "action_id": "text"})),
        {"type": "actions", "elements": [{"type": "button", "action_id": "go", "value": "v", "text": plain("Go")}]},
    ]);
    let card = harness
        .slack("chat.postMessage", json!({"channel": channel, "text": "form", "blocks": blocks}))
        .await;
    assert_eq!(card["ok"], true, "{card}");
    let wrong =
        json!([input("b", json!({"type": "button", "action_id": "b", "text": plain("B")}))]);
    let refused = harness
        .slack("chat.postMessage", json!({"channel": channel, "text": "form", "blocks": wrong}))
        .await;
    assert_eq!(refused["error"], "invalid_blocks");
    let press = |values: Value| json!({"type": "block_action", "message_ts": card["ts"], "action_id": "go", "values": values});
    harness
        .act(press(
            json!({"one": {"one": "b"}, "many": {"many": ["a", "b"]}, "text": {"text": ""}}),
        ))
        .await;
    let got =
        harness.ingress.deliveries("/slack/interactivity").pop().unwrap().body["payload"].clone();
    let state = &got["state"]["values"];
    assert_eq!(state["one"]["one"]["selected_option"]["value"], "b");
    assert_eq!(state["many"]["many"]["selected_options"][1]["value"], "b");
    assert_eq!(state["text"]["text"], json!({"type": "plain_text_input", "value": null}));
    harness.act(press(json!({}))).await;
    let got =
        harness.ingress.deliveries("/slack/interactivity").pop().unwrap().body["payload"].clone();
    assert_eq!(got["state"]["values"]["one"]["one"]["selected_option"], Value::Null);
    harness.end().await;
}
