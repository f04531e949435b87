//! Discord's specials: the endpoint's probes, signatures, forms, expired tokens.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::observed::Accepted;
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "embedded::discord::only_signed_pings_are_answered", ping),
        on(&CHAT, "embedded::discord::unsigned_requests_start_nothing", bad_signature),
        on(&CHAT, "embedded::discord::malformed_bodies_get_clear_errors", malformed),
        on(&CHAT, "embedded::discord::form_and_menu_continue_sandbox", reply_form),
        on(&CHAT, "embedded::discord::deleted_threads_turn_ends_on_record", deleted),
        on(&CHAT, "embedded::discord::expired_token_still_gets_answer", expired_token),
        on(&CHAT, "embedded::discord::command_outside_threads_names_its_place", outside),
    ]
}

async fn ping(world: World) {
    let probe = world.discord.act(&json!({"type": "ping"})).await;
    assert!(probe.is_ok(), "{probe:?}");
    let answer = world.discord.deliver(r#"{"id":"1","type":1,"version":1}"#).await.unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!({"type": 1})));
    let other = world.discord.sign("1700000000", "{}");
    let refused = world
        .discord
        .post(r#"{"id":"1","type":1,"version":1}"#, "1700000000", &other)
        .await
        .unwrap();
    assert_eq!(refused.status, 401);
}

/// The scenario for other engines too: forged and stale requests are refused and start nothing, a signed one works.
pub async fn bad_signature(world: World) {
    let discord = &world.discord;
    let (forged, forged_mark) = marked("echo: forged");
    let body =
        discord.interaction("sandbox", &discord.channel(), &json!({"prompt": forged})).to_string();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let good = discord.sign(&now.to_string(), &body);
    let other_body = discord.sign(&now.to_string(), "{}");
    let stale = (now - 3_600).to_string();
    let attempts = [
        ("another body's signature", now.to_string(), other_body),
        ("no hex", now.to_string(), "zz".repeat(64)),
        ("nothing", now.to_string(), String::new()),
        ("an hour old", stale.clone(), discord.sign(&stale, &body)),
        ("a shifted timestamp", format!("{now}0"), good),
    ];
    for (what, timestamp, signature) in attempts {
        let answer = discord.post(&body, &timestamp, &signature).await.unwrap();
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    }

    let (text, mark) = marked("echo: signed by the test itself");
    let interaction = discord.interaction("sandbox", &discord.channel(), &json!({"prompt": text}));
    let talk = world.by_interaction(&interaction, &mark).await;
    assert_eq!(talk.ended(&talk.accepted[0].turn).await.outcome, Outcome::Answered);
    let calls = world.model_calls().await.unwrap();
    assert!(
        calls.iter().all(|call| !call.user.contains(&forged_mark)),
        "a forged prompt reached the agent"
    );
    talk.finish().await;
}

async fn malformed(world: World) {
    let discord = &world.discord;
    let large = format!(r#"{{"id":"1","type":2,"data":"{}"}}"#, "x".repeat(3 * 1024 * 1024));
    for (body, status) in [
        ("{", 400),
        ("[]", 400),
        (r#"{"type":99,"id":"1"}"#, 400),
        (r#"{"type":"ping"}"#, 400),
        (large.as_str(), 400),
    ] {
        let answer = discord.deliver(body).await.unwrap();
        let shown: String = body.chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
        assert!(!answer.text.is_empty(), "{shown}: no words");
    }
    // An unknown or removed command, and one without its option: the person gets an answer, and nothing starts.
    for (name, options) in [("made-up", json!({})), ("sandbox", json!({}))] {
        let body = discord.interaction(name, &discord.channel(), &options).to_string();
        let answer = discord.deliver(&body).await.unwrap();
        assert_eq!((answer.status, &answer.json()["type"]), (200, &json!(4)), "{name}: {answer:?}");
        assert_eq!(answer.json()["data"]["flags"], 64, "{name}: others see it");
    }
}

async fn reply_form(world: World) {
    let (mut talk, first) = world.begin(Platform::Discord, "echo: first").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let answer = talk
        .see(VISIBLE_MS_MAX, "the answer has a Reply button", |one| one.button("Reply").is_some())
        .await;
    let opened = world.discord.press(&talk.thread, &answer, "Reply").await.unwrap();
    assert_eq!(opened.outcome["kind"], "modal", "{}", opened.outcome);
    let (text, mark) = marked("echo: by the form");
    let form = json!({"type": "modal", "channel_id": talk.thread.channel, "custom_id": opened.outcome["modal"]["custom_id"], "fields": {"prompt": text, "when": "queue"}});
    let second = world.discord.act(&form).await.unwrap().interaction;
    talk.accepted.push(Accepted::prompt(&second, &mark));
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert!(talk.answer(&second).await.contains("by the form"));

    let (text, mark) = marked("echo: from a message");
    world
        .discord
        .act(&json!({"type": "message", "channel_id": talk.thread.channel, "text": text}))
        .await
        .unwrap();
    let typed = talk
        .see(VISIBLE_MS_MAX, "the typed message stands", |one| one.text == text && !one.by_bot)
        .await;
    let menu = json!({"type": "message_command", "name": "Send to sandbox", "channel_id": talk.thread.channel, "message_id": typed.id});
    let third = world.discord.act(&menu).await.unwrap().interaction;
    talk.accepted.push(Accepted::prompt(&third, &mark));
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert!(talk.answer(&third).await.contains("from a message"));
    let session = talk.session().await;
    assert_eq!((session.sandbox.generation, session.ended.len()), (1, 3));
    talk.finish().await;
}

async fn expired_token(world: World) {
    let discord = &world.discord;
    let (text, mark) = marked("echo: in spite of it");
    let interaction = discord.interaction("sandbox", &discord.channel(), &json!({"prompt": text}));
    let token = interaction["token"].as_str().unwrap();
    // Discord's answer to an expired token, for every route of this one.
    let fault = json!({"route": token, "status": 404, "code": 10_015, "count": 50, "body": {"message": "Unknown Webhook", "code": 10_015}});
    discord.control(Method::POST, "faults", &fault).await.unwrap();
    let answer = discord.deliver(&interaction.to_string()).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let talk = world.found(Platform::Discord, interaction["id"].as_str().unwrap(), &mark).await;
    let turn = talk.accepted[0].turn.clone();
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("in spite of it"));
    talk.finish().await;
}

async fn deleted(world: World) {
    let (talk, turn) = world.begin(Platform::Discord, "slow: 5 nobody will read this").await;
    talk.running(&turn).await;
    let gone = json!({"channel_id": talk.thread.channel});
    world.discord.control(Method::POST, "delete_channel", &gone).await.unwrap();
    let session = eventually(ANSWER_MS_MAX, "the turn ends on record", async || {
        let session = world.session(&talk.thread.key).await?;
        match (&session.turn, session.ended.len()) {
            (None, 1) => Ok(session),
            (turn, ended) => Err(format!("{turn:?}, {ended} ended")),
        }
    })
    .await;
    assert_eq!(session.ended[0].id, turn);
    // It has left the queue: a message that returns for ever would block its group.
    let messages = &world.deployment.messages_queue_url;
    let name = messages.rsplit('/').next().unwrap();
    let waiting = format!("queues/{name}/messages");
    eventually(VISIBLE_MS_MAX, "its message leaves the queue", async || {
        let listed = world.engine(Method::GET, &waiting, &Value::Null).await?;
        if listed.to_string().contains(&turn) { Err("it is still there") } else { Ok(()) }
            .map_err(str::to_owned)
    })
    .await;
}

async fn outside(world: World) {
    for name in ["stop", "status", "reset", "say"] {
        let options = if name == "say" { json!({"prompt": "echo: where?"}) } else { json!({}) };
        let body = world.discord.interaction(name, &world.discord.channel(), &options).to_string();
        let answer = world.discord.deliver(&body).await.unwrap();
        let words = answer.json()["data"]["content"].as_str().unwrap_or_default().to_owned();
        assert!(words.contains("in a thread"), "{name}: {answer:?}");
    }
}
