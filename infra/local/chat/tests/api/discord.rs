use crate::harness::{APP, start};
use serde_json::{Value, json};

#[tokio::test]
async fn wrong_token_and_origin_are_refused() {
    let harness = start().await;
    let me = harness.http.get(format!("{}/users/@me", harness.chat.discord_api()));
    let refused =
        me.try_clone().unwrap().header("authorization", "Bot wrong").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(
        refused.json::<Value>().await.unwrap(),
        json!({"message": "401: Unauthorized", "code": 0})
    );
    let foreign =
        me.header("authorization", crate::harness::BOT).header("origin", "http://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    assert_eq!(harness.discord("GET", "/users/@me", Value::Null).await.1["id"], APP);
    harness.end().await;
}

#[tokio::test]
async fn messages_are_created_listed_edited_deleted() {
    let harness = start().await;
    let channel = harness.chat.seeds().channel_id;
    let path = format!("/channels/{channel}/messages");
    let mut ids = Vec::new();
    for n in 0..5 {
        let (status, message) = harness
            .discord(
                "POST",
                &path,
                json!({"content": format!("m{n}"), "allowed_mentions": {"parse": []}}),
            )
            .await;
        assert_eq!(status, 200, "{message}");
        ids.push(message["id"].as_str().unwrap().to_owned());
    }
    let (_, list) = harness.discord("GET", &format!("{path}?limit=2"), Value::Null).await;
    assert_eq!((&list[0]["content"], &list[1]["content"]), (&json!("m4"), &json!("m3")));
    let (_, list) =
        harness.discord("GET", &format!("{path}?after={}&limit=2", ids[0]), Value::Null).await;
    assert_eq!((&list[0]["content"], &list[1]["content"]), (&json!("m2"), &json!("m1")));
    let (_, list) = harness.discord("GET", &format!("{path}?before={}", ids[2]), Value::Null).await;
    assert_eq!(list.as_array().unwrap().len(), 2);
    let (_, edited) =
        harness.discord("PATCH", &format!("{path}/{}", ids[0]), json!({"content": "new"})).await;
    assert_eq!(edited["content"], "new");
    assert!(edited["edited_timestamp"].is_string());
    assert_eq!(harness.discord("DELETE", &format!("{path}/{}", ids[0]), Value::Null).await.0, 204);
    let (status, gone) = harness.discord("GET", &format!("{path}/{}", ids[0]), Value::Null).await;
    assert_eq!((status, &gone["code"]), (404, &json!(10_008)));
    harness.end().await;
}

#[tokio::test]
async fn enforced_nonce_returns_earlier_message() {
    let harness = start().await;
    let path = format!("/channels/{}/messages", harness.chat.seeds().channel_id);
    let body = json!({"content": "once", "nonce": "turn-1", "enforce_nonce": true});
    let (_, first) = harness.discord("POST", &path, body.clone()).await;
    let (status, second) = harness.discord("POST", &path, body).await;
    assert_eq!((status, &second["id"]), (200, &first["id"]));
    let (_, list) = harness.discord("GET", &path, Value::Null).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    harness.end().await;
}

#[tokio::test]
async fn refusals_match_discords_codes_and_paths() {
    let harness = start().await;
    let path = format!("/channels/{}/messages", harness.chat.seeds().channel_id);
    let text = |content: String| json!({"type": 10, "content": content});
    let row = |ids: &[&str]| json!({"type": 1, "components": ids.iter().map(|id| json!({"type": 2, "style": 1, "label": "x", "custom_id": id})).collect::<Vec<_>>()});
    let v2 = |components: Value| json!({"flags": 32_768, "components": components});
    let refusals = [
        (
            json!({"content": "x".repeat(2001)}),
            400,
            "/errors/content/_errors/0/code",
            "BASE_TYPE_MAX_LENGTH",
        ),
        (json!({}), 400, "/message", "Cannot send an empty message"),
        (
            json!({"content": "x", "flags": 64}),
            400,
            "/errors/flags/_errors/0/code",
            "MESSAGE_FLAGS_INVALID",
        ),
        (
            json!({"content": "x", "flags": 32_768, "components": [text("y".into())]}),
            400,
            "/errors/content/_errors/0/code",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
        ),
        (
            json!({"components": [text("y".into())]}),
            400,
            "/errors/components/0/type/_errors/0/code",
            "UNION_TYPE_CHOICES",
        ),
        (
            v2(json!([text("a".repeat(2500)), text("b".repeat(2500))])),
            400,
            "/errors/components/_errors/0/code",
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
        ),
        (v2(json!([text("語".repeat(3999))])), 500, "/message", "500: Internal Server Error"),
        (
            v2(json!([row(&["same", "same"])])),
            400,
            "/errors/components/0/components/1/custom_id/_errors/0/code",
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
        (
            v2(json!([row(&["a", "b", "c", "d", "e", "f"])])),
            400,
            "/errors/components/0/components/_errors/0/code",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            v2((0..41).map(|_| json!({"type": 14})).collect()),
            400,
            "/errors/components/_errors/0/code",
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
        ),
        (
            json!({"content": "x", "nonce": "x".repeat(26)}),
            400,
            "/errors/nonce/_errors/0/code",
            "BASE_TYPE_MAX_LENGTH",
        ),
        (
            json!({"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}}),
            400,
            "/errors/allowed_mentions/_errors/0/code",
            "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
        ),
    ];
    for (body, status, pointer, word) in refusals {
        let (seen, answer) = harness.discord("POST", &path, body).await;
        assert_eq!((seen, answer.pointer(pointer)), (status, Some(&json!(word))), "{answer}");
    }
    let (status, answer) =
        harness.discord("POST", "/channels/1/messages", json!({"content": "x"})).await;
    assert_eq!((status, &answer["code"]), (404, &json!(10_003)));
    harness.end().await;
}

#[tokio::test]
async fn allowed_mentions_decide_who_is_pinged() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let path = format!("/channels/{}/messages", seeds.channel_id);
    let content = format!("<@{}> @everyone", seeds.user_id);
    let (_, loud) = harness.discord("POST", &path, json!({"content": content})).await;
    assert_eq!(
        (&loud["mention_everyone"], loud["mentions"].as_array().unwrap().len()),
        (&json!(true), 1)
    );
    let (_, quiet) = harness
        .discord("POST", &path, json!({"content": content, "allowed_mentions": {"parse": []}}))
        .await;
    assert_eq!((&quiet["mention_everyone"], &quiet["mentions"]), (&json!(false), &json!([])));
    harness.end().await;
}

#[tokio::test]
async fn uploaded_files_are_served() {
    let harness = start().await;
    let url = format!(
        "{}/channels/{}/messages",
        harness.chat.discord_api(),
        harness.chat.seeds().channel_id
    );
    let payload = json!({"content": "a patch", "attachments": [{"id": "0", "filename": "a.diff"}]});
    let form = reqwest::multipart::Form::new()
        .text("payload_json", payload.to_string())
        .part("files[0]", reqwest::multipart::Part::bytes(b"+line".to_vec()).file_name("a.diff"));
    let sent = harness
        .http
        .post(url)
        .header("authorization", crate::harness::BOT)
        .multipart(form)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
    let message: Value = sent.json().await.unwrap();
    let served =
        harness.http.get(message["attachments"][0]["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(served.text().await.unwrap(), "+line");
    let (_, log) = harness.control("discord/requests", Value::Null).await;
    let entry = log["requests"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&entry["body"], &entry["files"][0]["filename"]), (&payload, &json!("a.diff")));
    harness.end().await;
}

async fn registered(harness: &crate::harness::Harness) {
    let commands = json!([
        {"name": "sandbox", "description": "Start", "options": [{"type": 3, "name": "prompt", "description": "Task", "required": true},
            {"type": 3, "name": "model", "description": "Model", "autocomplete": true}]},
        {"name": "Send to sandbox", "type": 3}]);
    let (status, list) =
        harness.discord("PUT", &format!("/applications/{APP}/commands"), commands.clone()).await;
    assert_eq!(status, 200, "{list}");
    let (_, again) =
        harness.discord("PUT", &format!("/applications/{APP}/commands"), commands).await;
    assert_eq!(again[0]["id"], list[0]["id"], "a command keeps its id");
}

#[tokio::test]
async fn interaction_token_answers_deferred_command() {
    let harness = start().await;
    registered(&harness).await;
    let seeds = harness.chat.seeds();
    harness.ingress.will_answer(200, json!({"type": 5}));
    let done = harness
        .interact(json!({"type": "command", "name": "sandbox", "options": {"prompt": "hello"}}))
        .await;
    assert_eq!(done["outcome"]["kind"], "deferred", "{done}");
    let got = harness.ingress.deliveries("/discord/interactions").remove(0).body;
    assert_eq!(
        (&got["type"], &got["guild_id"], &got["context"]),
        (&json!(2), &json!(seeds.guild_id), &json!(0))
    );
    assert_eq!(got["data"]["options"], json!([{"name": "prompt", "type": 3, "value": "hello"}]));
    assert_eq!(got["member"]["user"]["id"], seeds.user_id);
    let token = done["token"].as_str().unwrap();
    let url = |rest: &str| format!("{}/webhooks/{APP}/{token}{rest}", harness.chat.discord_api());
    let edited: Value = harness
        .http
        .patch(url("/messages/@original"))
        .json(&json!({"content": "anchor"}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&edited["content"], &edited["flags"], &edited["type"]),
        (&json!("anchor"), &json!(0), &json!(20))
    );
    let follow: Value = harness
        .http
        .post(url(""))
        .json(&json!({"content": "only you", "flags": 64}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id = follow["id"].as_str().unwrap();
    let path = format!("/channels/{}/messages/{id}", seeds.channel_id);
    assert_eq!(
        harness.discord("GET", &path, Value::Null).await.0,
        404,
        "an ephemeral message is not the bot's to read"
    );
    let (_, mine) =
        harness.control(&format!("discord/ephemeral?user_id={}", seeds.user_id), Value::Null).await;
    assert_eq!(mine["messages"][0]["message"]["content"], "only you");
    let (_, theirs) = harness
        .control(&format!("discord/ephemeral?user_id={}", seeds.member_user_id), Value::Null)
        .await;
    assert_eq!(theirs["messages"], json!([]));
    harness.control("discord/expire", json!({"token": token})).await;
    let dead = harness
        .http
        .patch(url("/messages/@original"))
        .json(&json!({"content": "late"}))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (dead.status().as_u16(), dead.json::<Value>().await.unwrap()["code"].clone()),
        (401, json!(50_027))
    );
    let unknown = harness
        .http
        .patch(format!("{}/webhooks/{APP}/never/messages/@original", harness.chat.discord_api()));
    let unknown = unknown.json(&json!({"content": "x"})).send().await.unwrap();
    assert_eq!(
        (unknown.status().as_u16(), unknown.json::<Value>().await.unwrap()["code"].clone()),
        (404, json!(10_015))
    );
    harness.end().await;
}

#[tokio::test]
async fn modal_submission_carries_its_fields() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let path = format!("/channels/{}/messages", seeds.channel_id);
    let card = json!({"flags": 32_768, "components": [{"type": 17, "components": [{"type": 10, "content": "card"},
        {"type": 1, "components": [{"type": 2, "style": 1, "label": "Reply", "custom_id": "v1:reply:1"}, {"type": 2, "style": 4, "label": "Stop", "custom_id": "v1:stop:1"}]}]}]});
    let (_, message) = harness.discord("POST", &path, card).await;
    let modal = json!({"custom_id": "v1:say:1", "title": "Reply", "components": [
        {"type": 18, "label": "Text", "component": {"type": 4, "style": 2, "custom_id": "text"}},
        {"type": 18, "label": "When", "component": {"type": 21, "custom_id": "when", "required": false, "options": [{"label": "a", "value": "a"}, {"label": "b", "value": "b"}]}}]});
    harness.ingress.will_answer(200, json!({"type": 9, "data": modal}));
    let press =
        |id: &str| json!({"type": "component", "message_id": message["id"], "custom_id": id});
    let done = harness.interact(press("v1:reply:1")).await;
    assert_eq!(done["outcome"]["modal"]["title"], "Reply");
    harness.ingress.will_answer(200, json!({"type": 6}));
    let submit =
        json!({"type": "modal", "custom_id": "v1:say:1", "fields": {"text": "go on", "when": "b"}});
    assert_eq!(harness.interact(submit).await["outcome"]["kind"], "acknowledged");
    let got = harness.ingress.deliveries("/discord/interactions").pop().unwrap().body;
    assert_eq!(got["data"]["components"][0]["component"]["value"], "go on");
    assert_eq!(got["data"]["components"][1]["component"]["value"], "b");
    assert_eq!(got["message"]["id"], message["id"]);
    harness.ingress.will_answer(200, json!({"type": 7, "data": {"flags": 32_768, "components": [{"type": 10, "content": "Stopping…"}]}}));
    assert_eq!(harness.interact(press("v1:stop:1")).await["outcome"]["kind"], "updated");
    let (_, after) = harness
        .discord("GET", &format!("{path}/{}", message["id"].as_str().unwrap()), Value::Null)
        .await;
    assert_eq!(after["components"][0]["content"], "Stopping…");
    let (status, refused) = harness.control("discord/interact", press("v1:stop:1")).await;
    assert_eq!(status, 422, "the button is gone: {refused}");
    harness.end().await;
}

#[tokio::test]
async fn selects_accept_only_offered_values() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let path = format!("/channels/{}/messages", seeds.channel_id);
    let options = json!([{"label": "a", "value": "a"}, {"label": "b", "value": "b"}]);
    let select = |id: &str, most: u64| json!({"type": 3, "custom_id": id, "options": options, "min_values": 1, "max_values": most});
    let row = |select: Value| json!({"components": [{"type": 1, "components": [select]}]});
    let (status, _) = harness.discord("POST", &path, row(select("s", 3))).await;
    assert_eq!(status, 400, "more values than options");
    let (_, message) = harness.discord("POST", &path, row(select("s", 2))).await;
    let choose = |values: Value| json!({"type": "component", "message_id": message["id"], "custom_id": "s", "values": values});
    for odd in [json!(["c"]), json!([])] {
        assert_eq!(harness.control("discord/interact", choose(odd)).await.0, 422);
    }
    let form = |component: Value| json!({"custom_id": "f", "title": "Form", "components": [{"type": 18, "label": "S", "component": component}]});
    let mut optional = select("x", 1);
    optional["min_values"] = 0.into();
    harness.ingress.will_answer(200, json!({"type": 9, "data": form(optional.clone())}));
    let refused = harness.interact(choose(json!(["a", "b"]))).await;
    assert_eq!(refused["outcome"]["kind"], "failed", "it cannot be required: {refused}");
    optional["required"] = false.into();
    harness.ingress.will_answer(200, json!({"type": 9, "data": form(optional)}));
    harness.interact(choose(json!(["a"]))).await;
    let send = |values: Value| json!({"type": "modal", "custom_id": "f", "fields": {"x": values}});
    for odd in [json!(["c"]), json!(["a", "b"])] {
        assert_eq!(harness.control("discord/interact", send(odd)).await.0, 422);
    }
    harness.ingress.will_answer(200, json!({"type": 6}));
    assert_eq!(harness.interact(send(json!([]))).await["outcome"]["kind"], "acknowledged");
    harness.end().await;
}

#[tokio::test]
async fn person_sees_a_failed_interaction() {
    let harness = start().await;
    registered(&harness).await;
    let command = json!({"type": "command", "name": "sandbox", "options": {"prompt": "x"}});
    harness.ingress.will_answer(500, Value::Null);
    assert_eq!(
        harness.interact(command.clone()).await["outcome"],
        json!({"kind": "failed", "reason": "HTTP 500 from the ingress"})
    );
    harness.ingress.will_answer(200, json!({"type": 7, "data": {"content": "not for commands"}}));
    assert_eq!(harness.interact(command).await["outcome"]["kind"], "failed");
    let user = harness.chat.seeds().user_id;
    let (_, mine) =
        harness.control(&format!("discord/ephemeral?user_id={user}"), Value::Null).await;
    assert_eq!(mine["messages"][0]["message"]["content"], "The application did not respond");
    let (status, why) = harness
        .control("discord/interact", json!({"type": "command", "name": "sandbox", "options": {}}))
        .await;
    assert_eq!((status, &why["error"]), (422, &json!("the option \"prompt\" is required")));
    harness.end().await;
}

#[tokio::test]
async fn autocomplete_and_message_commands_reach_ingress() {
    let harness = start().await;
    registered(&harness).await;
    let seeds = harness.chat.seeds();
    harness.ingress.will_answer(
        200,
        json!({"type": 8, "data": {"choices": [{"name": "Big", "value": "big"}]}}),
    );
    let typed = json!({"type": "autocomplete", "name": "sandbox", "options": {"model": "b"}, "focused": "model"});
    assert_eq!(harness.interact(typed).await["outcome"]["choices"][0]["value"], "big");
    let said = harness
        .interact(
            json!({"type": "message", "text": "a plain line", "user_id": seeds.member_user_id}),
        )
        .await;
    harness.ingress.will_answer(200, json!({"type": 4, "data": {"content": "taken", "flags": 64}}));
    let sent =
        json!({"type": "message_command", "name": "Send to sandbox", "message_id": said["id"]});
    assert_eq!(harness.interact(sent).await["outcome"]["ephemeral"], true);
    let got = harness.ingress.deliveries("/discord/interactions").pop().unwrap().body;
    let target = got["data"]["target_id"].as_str().unwrap();
    assert_eq!(got["data"]["resolved"]["messages"][target]["content"], "a plain line");
    let ping = harness.interact(json!({"type": "ping"})).await;
    assert_eq!((&ping["good"]["status"], &ping["bad"]["status"]), (&json!(200), &json!(401)));
    harness.end().await;
}

#[tokio::test]
async fn adopted_foreign_interactions_work() {
    let harness = start().await;
    let seeds = harness.chat.seeds();
    let interaction = json!({"id": "1400000000000000001", "type": 2, "token": "from-elsewhere", "channel_id": seeds.channel_id,
        "member": {"user": {"id": seeds.user_id}}, "data": {"name": "sandbox"}});
    let url =
        format!("{}/webhooks/{APP}/from-elsewhere/messages/@original", harness.chat.discord_api());
    let edit = || harness.http.patch(&url).json(&json!({"content": "anchor"})).send();
    assert_eq!(edit().await.unwrap().json::<Value>().await.unwrap()["code"], 10_015);
    harness.chat.announce_interaction(&interaction).unwrap();
    assert_eq!(
        edit().await.unwrap().json::<Value>().await.unwrap()["code"],
        10_008,
        "known, not answered yet"
    );
    let done = harness.chat.adopt_interaction(&interaction, 200, br#"{"type":5}"#).unwrap();
    assert_eq!(done["kind"], "deferred");
    assert_eq!(edit().await.unwrap().status(), 200);
    let mut forged = interaction.clone();
    forged["token"] = "forged".into();
    assert_eq!(harness.chat.adopt_interaction(&forged, 401, b"").unwrap()["kind"], "refused");
    let (_, seen) =
        harness.control(&format!("discord/ephemeral?user_id={}", seeds.user_id), Value::Null).await;
    assert_eq!(seen["messages"], json!([]), "nobody is told of a forged one");
    harness.end().await;
}
