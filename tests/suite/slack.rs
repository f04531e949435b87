//! Slack's specials: the endpoint's check, signatures, twins and retries, direct messages.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::http;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{CHAT, COMMON, on};

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "embedded::slack::url_check_returns_its_challenge", url_verification),
        on(&CHAT, "embedded::slack::unsigned_requests_start_nothing", bad_signature),
        on(&COMMON, "embedded::slack::repeated_mention_events_make_one_turn", twins),
        on(&CHAT, "embedded::slack::a_direct_message_needs_no_mention", direct_message),
        on(&CHAT, "embedded::slack::malformed_bodies_get_clear_errors", malformed),
    ]
}

async fn url_verification(world: World) {
    let probe = world.slack.act(&json!({"type": "url_verification"})).await.unwrap();
    assert_eq!(
        (&probe["status"], &probe["challenge_returned"]),
        (&json!(200), &json!(true)),
        "{probe}"
    );
    let body =
        json!({"type": "url_verification", "challenge": "c-123", "token": "unused"}).to_string();
    let answer = world.slack.deliver(&body).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.text.contains("c-123"), "{answer:?}");
    let unsigned = world.slack.post(&body, "1700000000", "v0=00").await.unwrap();
    assert_eq!(unsigned.status, 401);
}

fn now_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// The scenario for other engines too: forged and stale requests are refused and start nothing, a signed one works.
pub async fn bad_signature(world: World) {
    let slack = &world.slack;
    let bot = format!("<@{}>", world.ready.slack_bot_user_id);
    let (forged, forged_mark) = marked("echo: forged");
    let body = slack
        .envelope(
            "app_mention",
            "Ev0FORGED",
            &format!("{}.000100", now_s()),
            &format!("{bot} {forged}"),
        )
        .to_string();
    let (now, stale, future) =
        (now_s().to_string(), (now_s() - 3_600).to_string(), (now_s() + 3_600).to_string());
    let attempts = [
        ("another body's signature", now.clone(), slack.sign(&now, "{}")),
        ("another version", now.clone(), slack.sign(&now, &body).replacen("v0=", "v1=", 1)),
        ("nothing", now.clone(), String::new()),
        ("an hour old", stale.clone(), slack.sign(&stale, &body)),
        ("an hour ahead", future.clone(), slack.sign(&future, &body)),
    ];
    for (what, timestamp, signature) in attempts {
        let answer = slack.post(&body, &timestamp, &signature).await.unwrap();
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    }

    // The same event by the same person, signed, on an existing message in the channel.
    let (talk, turn) = world.begin(Platform::Slack, "echo: signed").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let calls = world.model_calls().await.unwrap();
    assert!(
        calls.iter().all(|call| !call.user.contains(&forged_mark)),
        "a forged prompt reached the agent"
    );
    talk.finish().await;
}

async fn twins(world: World) {
    let slack = &world.slack;
    let (text, mark) =
        marked("write: once.txt exactly once\nrun: echo again >> once.txt; cat once.txt");
    let done = slack.mention(None, &text).await.unwrap();
    let deliveries = done["deliveries"].as_array().unwrap();
    let kinds: Vec<&str> = deliveries.iter().filter_map(|one| one["type"].as_str()).collect();
    assert!(
        kinds.len() == 2 && kinds.contains(&"message") && kinds.contains(&"app_mention"),
        "{done}"
    );
    for (number, delivery) in deliveries.iter().enumerate() {
        let retry = json!({"type": "retry", "event_id": delivery["event_id"], "num": number + 1, "reason": "http_timeout"});
        assert_eq!(slack.act(&retry).await.unwrap()["status"], 200);
    }
    let (channel, ts) = (done["channel"].as_str().unwrap(), done["ts"].as_str().unwrap());
    let turn = slack.turn(channel, ts);
    let thread = slack.thread(channel, ts).unwrap();
    let talk = world.talk(Platform::Slack, thread, &turn, &mark);
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    // A retry after the end finds the turn among the ended ones.
    let late = json!({"type": "retry", "event_id": deliveries[0]["event_id"], "num": 3, "reason": "http_timeout"});
    assert_eq!(slack.act(&late).await.unwrap()["status"], 200);
    let file = world.provider.download(&talk.sandbox().await, "once.txt").await.unwrap();
    assert_eq!(file.lines().collect::<Vec<_>>(), ["exactly onceagain"]);
    assert_eq!(talk.session().await.ended.len(), 1);
    talk.finish().await;
}

async fn direct_message(world: World) {
    let url = format!("{}/_control/seeds", world.ready.console);
    let seeds =
        http::call(&http::client(), Method::GET, &url, &world.ready.control(), &Value::Null)
            .await
            .unwrap()
            .ok()
            .unwrap();
    let (text, mark) = marked("echo: just between us");
    let done = world
        .slack
        .act(&json!({"type": "message", "channel_id": seeds["slack_dm_id"], "text": text}))
        .await
        .unwrap();
    let (channel, ts) = (done["channel"].as_str().unwrap(), done["ts"].as_str().unwrap());
    let turn = world.slack.turn(channel, ts);
    let thread = world.slack.thread(channel, ts).unwrap();
    let talk = world.talk(Platform::Slack, thread, &turn, &mark);
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("just between us"));
    talk.check().await;
    let reset = world
        .slack
        .act(&json!({"type": "message", "channel_id": channel, "thread_ts": ts, "text": "reset"}))
        .await
        .unwrap();
    assert!(reset["ts"].is_string(), "{reset}");
    eventually(ANSWER_MS_MAX, "the reset deletes the sandbox", async || {
        let left = world.provider.of(&talk.thread.key).await?;
        if left.iter().any(|one| one.live()) { Err(format!("{left:?}")) } else { Ok(()) }
    })
    .await;
}

async fn malformed(world: World) {
    let large = format!(r#"{{"type":"event_callback","x":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
    for (body, status) in [("{", 400), ("[]", 400), ("{}", 400), (large.as_str(), 413)] {
        let answer = world.slack.deliver(body).await.unwrap();
        let shown: String = body.chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
        assert!(!answer.text.is_empty(), "{shown}: no words");
    }
    // Unknown kinds of events are acknowledged: Slack would send them again otherwise.
    let mut event = world.slack.envelope("reaction_added", "Ev0OTHER", "1700000000.000100", "");
    let answer = world.slack.deliver(&event.to_string()).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    event["type"] = "sim".into();
    let answer = world.slack.deliver(&event.to_string()).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}
