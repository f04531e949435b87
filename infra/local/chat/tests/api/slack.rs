use crate::fake::{SECRET, SLACK_BOT, until, world};
use bobbin_local_chat::sign;
use serde_json::{Value, json};

#[test]
fn the_documented_vector_is_reproduced() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = sign::slack(
        "8f742231b10e8888abcd99yyyzzz85a5",
        "1531420618",
        body.as_bytes(),
    );
    assert_eq!(
        signature,
        "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    );
    assert_ne!(
        sign::slack(SECRET, "1531420618", body.as_bytes()),
        signature
    );
}

#[tokio::test]
async fn a_message_is_posted_updated_found_and_deleted() {
    let world = world().await;
    let channel = world.chat.seeds().slack_channel_id;
    let root = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "root"}),
        )
        .await;
    let meta = json!({"event_type": "bobbin", "event_payload": {"op_id": "1"}});
    let reply = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "reply", "thread_ts": root["ts"], "metadata": meta,
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "reply"}}]}),
        )
        .await;
    assert_eq!(reply["ok"], true, "{reply}");
    let nested = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "second", "thread_ts": reply["ts"]}),
        )
        .await;
    assert_eq!(
        nested["message"]["thread_ts"], root["ts"],
        "a reply's ts is mapped to its root"
    );
    let replies = world
        .slack(
            "conversations.replies",
            json!({"channel": channel, "ts": root["ts"], "include_all_metadata": true}),
        )
        .await;
    assert_eq!(replies["messages"][1]["metadata"], meta);
    assert_eq!(replies["messages"][0]["reply_count"], 2);
    let plain = world
        .slack(
            "conversations.replies",
            json!({"channel": channel, "ts": root["ts"]}),
        )
        .await;
    assert!(plain["messages"][1].get("metadata").is_none());
    let updated = world
        .slack(
            "chat.update",
            json!({"channel": channel, "ts": reply["ts"], "text": "only text"}),
        )
        .await;
    assert!(
        updated["message"].get("blocks").is_none(),
        "text without blocks removes the blocks"
    );
    let history = world
        .slack("conversations.history", json!({"channel": channel}))
        .await;
    assert_eq!(
        history["messages"].as_array().unwrap().len(),
        1,
        "replies are not in the history"
    );
    assert_eq!(
        world
            .slack(
                "chat.delete",
                json!({"channel": channel, "ts": reply["ts"]})
            )
            .await["ok"],
        true
    );
    assert_eq!(
        world
            .slack(
                "chat.update",
                json!({"channel": channel, "ts": reply["ts"], "text": "x"})
            )
            .await["error"],
        "message_not_found"
    );
    world.end().await;
}

#[tokio::test]
async fn what_slack_refuses_is_refused_by_name() {
    let world = world().await;
    let channel = world.chat.seeds().slack_channel_id;
    assert_eq!(
        world
            .slack("chat.postMessage", json!({"channel": channel}))
            .await["error"],
        "no_text"
    );
    assert_eq!(
        world
            .slack(
                "chat.postMessage",
                json!({"channel": "C0NONE", "text": "x"})
            )
            .await["error"],
        "channel_not_found"
    );
    assert_eq!(
        world.slack("no.such", json!({})).await["error"],
        "unknown_method"
    );
    let url = format!("{}/auth.test", world.chat.slack_api());
    let wrong: Value = world
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
    let form = world
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
        (0..51)
            .map(|_| json!({"type": "divider"}))
            .collect::<Value>(),
        json!([{"type": "nonsense"}]),
    ];
    for blocks in bad {
        let answer = world
            .slack(
                "chat.postMessage",
                json!({"channel": channel, "text": "x", "blocks": blocks}),
            )
            .await;
        assert_eq!(answer["error"], "invalid_blocks");
        assert!(
            answer["response_metadata"]["messages"][0]
                .as_str()
                .unwrap()
                .contains("json-pointer:/blocks")
        );
    }
    world
        .slack(
            "reactions.add",
            json!({"channel": channel, "name": "eyes", "timestamp": "1"}),
        )
        .await;
    world.end().await;
}

#[tokio::test]
async fn a_mention_arrives_twice_in_alternating_order() {
    let world = world().await;
    for _ in 0..2 {
        let done = world
            .act(json!({"type": "message", "typed": true, "text": "@bobbin fix <this> & that"}))
            .await;
        assert_eq!(done["deliveries"].as_array().unwrap().len(), 2);
    }
    let got = world.ingress.deliveries("/slack/events");
    let kinds: Vec<&str> = got
        .iter()
        .map(|one| one.body["event"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["app_mention", "message", "message", "app_mention"]);
    let (first, twin) = (&got[0].body, &got[1].body);
    assert_eq!(first["event"]["ts"], twin["event"]["ts"]);
    assert_ne!(first["event_id"], twin["event_id"]);
    assert_eq!(
        first["event"]["text"],
        format!("<@{SLACK_BOT}> fix &lt;this&gt; &amp; that")
    );
    assert_eq!(first["authorizations"][0]["user_id"], SLACK_BOT);
    let again = world
        .act(json!({"type": "retry", "event_id": first["event_id"]}))
        .await;
    assert_eq!(again["status"], 200);
    let retried = world.ingress.deliveries("/slack/events").pop().unwrap();
    assert_eq!(
        (
            &retried.headers["x-slack-retry-num"],
            &retried.body["event_id"]
        ),
        (&"1".parse().unwrap(), &first["event_id"])
    );
    world.end().await;
}

#[tokio::test]
async fn a_failed_event_is_retried_until_it_is_taken() {
    let world = world().await;
    world
        .control("slack/retries", json!({"delays_ms": [0, 10, 20]}))
        .await;
    world.ingress.will_answer(500, Value::Null);
    world.ingress.will_answer(503, Value::Null);
    let dm = world.chat.seeds().slack_dm_id;
    let done = world
        .act(json!({"type": "message", "channel_id": dm, "text": "hello"}))
        .await;
    assert_eq!(done["deliveries"][0]["status"], 500);
    until("two retries", || {
        world.ingress.deliveries("/slack/events").len() == 3
    })
    .await;
    let got = world.ingress.deliveries("/slack/events");
    assert_eq!(got[0].body["event"]["channel_type"], "im");
    assert!(got[0].headers.get("x-slack-retry-num").is_none());
    assert_eq!(
        (
            &got[2].headers["x-slack-retry-num"],
            &got[2].headers["x-slack-retry-reason"]
        ),
        (&"2".parse().unwrap(), &"http_error".parse().unwrap())
    );
    let checked = world.act(json!({"type": "url_verification"})).await;
    assert_eq!(checked["challenge_returned"], true);
    world.end().await;
}

#[tokio::test]
async fn a_button_opens_a_view_and_its_values_come_back() {
    let world = world().await;
    let channel = world.chat.seeds().slack_channel_id;
    let button = json!([{"type": "actions", "block_id": "b1", "elements": [{"type": "button", "action_id": "reply", "value": "v1:1", "text": {"type": "plain_text", "text": "Reply"}}]}]);
    let card = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "card", "blocks": button}),
        )
        .await;
    world
        .act(json!({"type": "block_action", "message_ts": card["ts"], "action_id": "reply"}))
        .await;
    let payload = world
        .ingress
        .deliveries("/slack/interactivity")
        .remove(0)
        .body["payload"]
        .clone();
    assert_eq!(
        (
            &payload["actions"][0]["value"],
            &payload["container"]["message_ts"]
        ),
        (&json!("v1:1"), &card["ts"])
    );
    let view = json!({"type": "modal", "callback_id": "say", "title": {"type": "plain_text", "text": "Reply"}, "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [{"type": "input", "block_id": "t", "label": {"type": "plain_text", "text": "Text"}, "element": {"type": "plain_text_input", "action_id": "a", "multiline": true}}]});
    let opened = world
        .slack(
            "views.open",
            json!({"trigger_id": payload["trigger_id"], "view": view}),
        )
        .await;
    assert_eq!(opened["ok"], true, "{opened}");
    assert_eq!(
        world
            .slack(
                "views.open",
                json!({"trigger_id": payload["trigger_id"], "view": view})
            )
            .await["error"],
        "exchanged_trigger_id"
    );
    let stale = world
        .slack(
            "views.update",
            json!({"view_id": opened["view"]["id"], "hash": "old", "view": view}),
        )
        .await;
    assert_eq!(stale["error"], "hash_conflict");
    world.ingress.will_answer(
        200,
        json!({"response_action": "errors", "errors": {"t": "too short"}}),
    );
    let submit = json!({"type": "view_submission", "values": {"t": {"a": "go on"}}});
    assert_eq!(
        world.act(submit.clone()).await["outcome"]["errors"]["t"],
        "too short"
    );
    assert_eq!(world.act(submit).await["outcome"]["kind"], "closed");
    let got = world
        .ingress
        .deliveries("/slack/interactivity")
        .pop()
        .unwrap()
        .body["payload"]
        .clone();
    assert_eq!(
        got["view"]["state"]["values"]["t"]["a"],
        json!({"type": "plain_text_input", "value": "go on"})
    );
    let url = payload["response_url"].as_str().unwrap();
    for (nth, expected) in [200, 200, 200, 200, 200, 404].into_iter().enumerate() {
        let used = world
            .http
            .post(url)
            .json(&json!({"text": format!("only you {nth}"), "replace_original": false}))
            .send()
            .await
            .unwrap();
        assert_eq!(used.status(), expected);
    }
    let user = world.chat.seeds().slack_user_id;
    let (_, seen) = world
        .control(&format!("slack/ephemeral?user_id={user}"), Value::Null)
        .await;
    assert_eq!(seen["messages"].as_array().unwrap().len(), 5);
    world.end().await;
}

#[tokio::test]
async fn commands_shortcuts_and_stop_reach_their_routes() {
    let world = world().await;
    let seeds = world.chat.seeds();
    world.ingress.will_answer(
        200,
        json!({"response_type": "ephemeral", "text": "all is well"}),
    );
    world
        .act(json!({"type": "slash", "command": "/bobbin", "text": "status"}))
        .await;
    let form = world.ingress.deliveries("/slack/commands").remove(0).body;
    assert_eq!(
        (&form["command"], &form["text"]),
        (&json!("/bobbin"), &json!("status"))
    );
    let (_, seen) = world
        .control(
            &format!("slack/ephemeral?user_id={}", seeds.slack_user_id),
            Value::Null,
        )
        .await;
    assert_eq!(seen["messages"][0]["message"]["text"], "all is well");
    let said = world
        .act(json!({"type": "message", "text": "no mention"}))
        .await;
    assert_eq!(said["deliveries"].as_array().unwrap().len(), 1);
    world
        .act(json!({"type": "shortcut", "callback_id": "send", "message_ts": said["ts"]}))
        .await;
    let payload = world
        .ingress
        .deliveries("/slack/interactivity")
        .remove(0)
        .body["payload"]
        .clone();
    assert_eq!(
        (&payload["type"], &payload["message"]["text"]),
        (&json!("message_action"), &json!("no mention"))
    );
    let status = json!({"channel_id": seeds.slack_channel_id, "thread_ts": said["ts"], "status": "processing", "title": "Task"});
    assert_eq!(
        world.slack("agents.sessions.setStatus", status).await["ok"],
        true
    );
    world
        .act(json!({"type": "stop_session", "thread_ts": said["ts"]}))
        .await;
    let event = world
        .ingress
        .deliveries("/slack/events")
        .pop()
        .unwrap()
        .body["event"]
        .clone();
    assert_eq!(
        (&event["type"], &event["thread_ts"]),
        (&json!("agent_session_stopped"), &said["ts"])
    );
    world.end().await;
}

#[tokio::test]
async fn a_file_goes_up_in_three_steps_and_down_only_with_the_token() {
    let world = world().await;
    let channel = world.chat.seeds().slack_channel_id;
    let ask = world
        .slack(
            "files.getUploadURLExternal",
            json!({"filename": "a.diff", "length": 5}),
        )
        .await;
    let upload = ask["upload_url"].as_str().unwrap();
    assert_eq!(
        world
            .http
            .post(upload)
            .body("+line")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    let done = world.slack("files.completeUploadExternal", json!({"files": [{"id": ask["file_id"], "title": "Diff"}], "channel_id": channel, "initial_comment": "here"})).await;
    assert_eq!(done["files"][0]["title"], "Diff", "{done}");
    let history = world
        .slack("conversations.history", json!({"channel": channel}))
        .await;
    let file = &history["messages"][0]["files"][0];
    let url = file["url_private_download"].as_str().unwrap();
    let stranger = world.http.get(url).send().await.unwrap();
    assert_eq!(stranger.status(), 200);
    assert!(
        stranger
            .text()
            .await
            .unwrap()
            .starts_with("<!DOCTYPE html>")
    );
    let own = world
        .http
        .get(url)
        .header("authorization", crate::fake::XOXB)
        .send()
        .await
        .unwrap();
    assert_eq!(own.text().await.unwrap(), "+line");
    world.end().await;
}

#[tokio::test]
async fn what_another_client_delivers_is_known_once_announced() {
    let world = world().await;
    let seeds = world.chat.seeds();
    let event = json!({"type": "app_mention", "user": seeds.slack_user_id, "text": "hi", "ts": "1700000000.000200", "channel": seeds.slack_channel_id});
    let eyes = json!({"channel": seeds.slack_channel_id, "name": "eyes", "timestamp": "1700000000.000200"});
    assert_eq!(
        world.slack("reactions.add", eyes.clone()).await["error"],
        "message_not_found"
    );
    world
        .chat
        .announce_slack(&json!({"type": "event_callback", "event": event}))
        .unwrap();
    assert_eq!(world.slack("reactions.add", eyes).await["ok"], true);
    world
        .chat
        .announce_slack(&json!({"type": "event_callback", "event": event}))
        .unwrap();
    let got = json!({"channel": seeds.slack_channel_id, "timestamp": "1700000000.000200"});
    assert_eq!(
        world.slack("reactions.get", got).await["message"]["reactions"][0]["name"],
        "eyes",
        "the twin changes nothing"
    );
    let view = json!({"type": "modal", "title": {"type": "plain_text", "text": "T"}, "blocks": []});
    let open = json!({"trigger_id": "theirs", "view": view});
    assert_eq!(
        world.slack("views.open", open.clone()).await["error"],
        "invalid_trigger_id"
    );
    world.chat.announce_slack(&json!({"type": "block_actions", "trigger_id": "theirs", "user": {"id": seeds.slack_user_id}})).unwrap();
    assert_eq!(world.slack("views.open", open).await["ok"], true);
    world.end().await;
}

#[tokio::test]
async fn what_stands_in_a_messages_inputs_is_sent_with_each_click() {
    let world = world().await;
    let channel = world.chat.seeds().slack_channel_id;
    let plain = |text: &str| json!({"type": "plain_text", "text": text});
    let input = |id: &str, element: Value| json!({"type": "input", "block_id": id, "label": plain(id), "element": element});
    let options = json!([{"text": plain("A"), "value": "a"}, {"text": plain("B"), "value": "b"}]);
    let blocks = json!([
        input("one", json!({"type": "static_select", "action_id": "one", "options": options})),
        input("many", json!({"type": "multi_static_select", "action_id": "many", "options": options})),
        input("text", json!({"type": "plain_text_input", "action_id": "text"})),
        {"type": "actions", "elements": [{"type": "button", "action_id": "go", "value": "v", "text": plain("Go")}]},
    ]);
    let card = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "form", "blocks": blocks}),
        )
        .await;
    assert_eq!(card["ok"], true, "{card}");
    let wrong = json!([input(
        "b",
        json!({"type": "button", "action_id": "b", "text": plain("B")})
    )]);
    let refused = world
        .slack(
            "chat.postMessage",
            json!({"channel": channel, "text": "form", "blocks": wrong}),
        )
        .await;
    assert_eq!(refused["error"], "invalid_blocks");
    let press = |values: Value| json!({"type": "block_action", "message_ts": card["ts"], "action_id": "go", "values": values});
    world
        .act(press(
            json!({"one": {"one": "b"}, "many": {"many": ["a", "b"]}, "text": {"text": ""}}),
        ))
        .await;
    let got = world
        .ingress
        .deliveries("/slack/interactivity")
        .pop()
        .unwrap()
        .body["payload"]
        .clone();
    let state = &got["state"]["values"];
    assert_eq!(state["one"]["one"]["selected_option"]["value"], "b");
    assert_eq!(state["many"]["many"]["selected_options"][1]["value"], "b");
    assert_eq!(
        state["text"]["text"],
        json!({"type": "plain_text_input", "value": null})
    );
    world.act(press(json!({}))).await;
    let got = world
        .ingress
        .deliveries("/slack/interactivity")
        .pop()
        .unwrap()
        .body["payload"]
        .clone();
    assert_eq!(
        got["state"]["values"]["one"]["one"]["selected_option"],
        Value::Null
    );
    world.end().await;
}
