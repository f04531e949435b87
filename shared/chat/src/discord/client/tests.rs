//! Tests against a small server on loopback that gives scripted answers and records requests.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method as Verb, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{PostRef, ThreadKey};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::base::person::{Outside, Person};
use bobbin_core::records::card::{Card, CardState, CardStep, Post, ShownFile, StepState};
use bobbin_core::records::message::{Open, Prompt, Reply};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::records::usage::Usage;
use bobbin_http::{AllowedHosts, HttpError};
use tokio::time::Instant;

use serde_json::{Value, json};

use super::answers::ORIGINAL_POLL_MS;
use super::*;
use crate::discord::commands::{Difference, commands};
use crate::discord::render;

const TOKEN: &str = "interaction-token";

#[derive(Debug, Clone)]
struct Asked {
    line: String,
    query: String,
    headers: HeaderMap,
    body: String,
}

impl Asked {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

#[derive(Debug)]
struct Scripted {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn says(status: u16, body: Value) -> Scripted {
    Scripted {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.to_string(),
    }
}

fn message(id: &str) -> Scripted {
    says(200, json!({"id": id, "channel_id": "20"}))
}

fn error(status: u16, code: u64) -> Scripted {
    says(status, json!({"message": "no", "code": code}))
}

fn limited(seconds: f64) -> Scripted {
    says(429, json!({"message": "slow down", "retry_after": seconds, "global": false}))
}

#[derive(Debug, Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<Scripted>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

async fn answer(
    State(server): State<Server>,
    verb: Verb,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    server.asked.lock().unwrap().push(Asked {
        line: format!("{verb} {}", uri.path()),
        query: uri.query().unwrap_or_default().to_owned(),
        headers,
        body,
    });
    let Some(next) = server.script.lock().unwrap().pop_front() else {
        return (StatusCode::IM_A_TEAPOT, "the script is at its end").into_response();
    };
    let mut response = (StatusCode::from_u16(next.status).unwrap(), next.body).into_response();
    for (name, value) in next.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

impl Server {
    /// A server that gives these answers one after the other, and its client.
    async fn start(script: impl IntoIterator<Item = Scripted>) -> (Self, Discord) {
        let server =
            Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/api/v10", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let http = Http::new(&base, AllowedHosts::Named(Vec::new())).unwrap();
        (server, Discord::new(http, &base, "10", "bot-secret"))
    }

    fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.line.replace("/api/v10", "")).collect()
    }

    fn asked(&self, index: usize) -> Asked {
        self.asked.lock().unwrap()[index].clone()
    }
}

fn thread() -> ThreadKey {
    ThreadKey::discord("1", "30").unwrap()
}

fn notice() -> Post {
    Post::Notice("Hello".to_owned())
}

fn at(id: &str) -> PostRef {
    PostRef { channel: "30".to_owned(), id: id.to_owned() }
}

async fn get_message(discord: &Discord, at: &PostRef) -> Result<Value, DiscordError> {
    let path = format!("/messages/{}", at.id);
    let call = in_channel("get message", Method::GET, &at.channel, &path);
    discord.client.call(&call, None, None).await
}

fn open() -> Open {
    Open {
        id: "5".into(),
        guild: "1".to_owned(),
        channel: "20".to_owned(),
        accepted_at_ms: 1_000,
        prompt: Prompt {
            text: "Fix it".to_owned(),
            by: Person { id: "4".to_owned(), name: "Sam".to_owned() },
            ..Prompt::default()
        },
        reply: reply(),
    }
}

fn reply() -> Reply {
    Reply::Discord { application: "10".to_owned(), token: TOKEN.to_owned() }
}

async fn post(discord: &Discord, at: Option<&PostRef>, post: &Post) -> Result<PostRef, Failure> {
    discord.post(&thread(), &"t1".into(), &PostKind::Notice, at, post).await
}

#[tokio::test]
async fn post_carries_nonce_token_user_agent() {
    let (server, discord) = Server::start([message("41")]).await;
    assert_eq!(post(&discord, None, &notice()).await, Ok(at("41")));
    let asked = server.asked(0);
    assert_eq!(server.lines(), ["POST /channels/30/messages"]);
    assert_eq!(asked.headers["authorization"], "Bot bot-secret");
    assert!(asked.headers["user-agent"].to_str().unwrap().starts_with("DiscordBot (https://"));
    let body = asked.json();
    assert_eq!(
        (&body["enforce_nonce"], &body["allowed_mentions"]),
        (&json!(true), &json!({"parse": []}))
    );
    assert_eq!(body["nonce"], json!(post_key(&thread(), &"t1".into(), &PostKind::Notice)));
}

#[tokio::test]
async fn retried_post_keeps_its_nonce() {
    let (server, discord) = Server::start([error(502, 0), message("41")]).await;
    let failed = post(&discord, None, &notice()).await.unwrap_err();
    assert!(matches!(failed, Failure::Outage { .. }), "{failed:?}");
    assert_eq!(post(&discord, None, &notice()).await, Ok(at("41")));
    assert_eq!(server.asked(0).json()["nonce"], server.asked(1).json()["nonce"]);
}

#[tokio::test]
async fn a_post_in_doubt_is_looked_for() {
    let since_ms = 1_790_000_000_000_u64;
    let id = |at_ms: u64| ((at_ms - 1_420_070_400_000) << 22).to_string();
    let (earlier, now) = (id(since_ms - 60_001), id(since_ms - 59_000));
    let by = |bot: bool, id: &str, content: &str| json!({"id": id, "author": {"bot": bot}, "content": content});
    let card = |turn: &str| {
        let stop = json!({"type": 2, "custom_id": format!("v1:stop:{turn}")});
        json!({"id": "62", "author": {"bot": true}, "content": "", "components": [
            {"type": 17, "components": [{"type": 1, "components": [stop]}]},
        ]})
    };
    // A person's, one of an earlier turn while this one waited, and another text.
    let others = [by(false, &now, "Hello"), by(true, &earlier, "Hello"), by(true, &now, "Hello!")];
    for turn in ["50", "again-0123"] {
        let running = json!({
            "id": turn, "by": {"id": "4", "name": "Sam"}, "accepted_at_ms": 1, "stage": {"stage": "received"},
            "outages": {"chat_since_ms": since_ms},
        });
        let mut session = Session::new(thread(), 1_000);
        session.turn = Some(serde_json::from_value(running).unwrap());
        let working = Card::new(&turn.into(), CardState::Working, 0, 1, "m");
        for (kind, post, found, stands) in [
            (PostKind::Notice, notice(), Some(by(true, &now, "Hello")), now.as_str()),
            (PostKind::Notice, notice(), None, "70"),
            (PostKind::Card, Post::Card(working.clone()), Some(card(turn)), "62"),
            (PostKind::Card, Post::Card(working.clone()), Some(card("49")), "70"),
            (PostKind::Rolled(1), Post::Card(working), Some(card(turn)), "70"),
        ] {
            let listed: Vec<Value> = others.iter().cloned().chain(found).collect();
            let script = [says(200, json!(listed)), message("70")];
            let (server, discord) = Server::start(script).await;
            discord.learn(&session);
            let posted = discord.post(&thread(), &turn.into(), &kind, None, &post).await;
            assert_eq!(posted, Ok(at(stands)), "{turn} {kind:?}");
            assert_eq!(server.asked(0).query, "limit=100");
            assert_eq!(server.lines().len(), if stands == "70" { 2 } else { 1 });
            // Without an outage nobody looks.
            session.turn.iter_mut().for_each(|turn| turn.outages.chat_since_ms = None);
            discord.learn(&session);
            session.turn.iter_mut().for_each(|turn| turn.outages.chat_since_ms = Some(since_ms));
            server.script.lock().unwrap().clear();
            server.script.lock().unwrap().push_back(message("71"));
            let posted = discord.post(&thread(), &turn.into(), &kind, None, &post).await;
            assert_eq!(posted, Ok(at("71")));
        }
    }
}

#[tokio::test]
async fn answer_file_is_sent_as_multipart() {
    let (server, discord) = Server::start([message("41")]).await;
    let chunk = Post::Chunk {
        text: "See the file.".to_owned(),
        last: true,
        file: Some("the whole answer".to_owned()),
        card: None,
    };
    post(&discord, None, &chunk).await.unwrap();
    let asked = server.asked(0);
    assert!(asked.headers["content-type"].to_str().unwrap().starts_with("multipart/form-data"));
    for part in [
        "name=\"payload_json\"",
        "name=\"files[0]\"; filename=\"answer.md\"",
        "the whole answer",
        "\"enforce_nonce\":true",
        "\"id\":\"0\"",
    ] {
        assert!(asked.body.contains(part), "{part} in {}", asked.body);
    }
}

#[tokio::test]
async fn agent_file_is_uploaded_or_explained() {
    let (server, discord) = Server::start([message("41"), error(400, 50_045), message("42")]).await;
    let file = Post::File(ShownFile { name: "chart.png".to_owned(), bytes: b"\x89PNG".to_vec() });
    for index in [0, 1] {
        let kind = PostKind::Artifact(index);
        let posted = discord.post(&thread(), &"t1".into(), &kind, None, &file).await;
        assert!(posted.is_ok(), "{posted:?}");
    }
    for part in [
        "name=\"files[0]\"; filename=\"chart.png\"",
        "image/png",
        &post_key(&thread(), &"t1".into(), &PostKind::Artifact(0)),
    ] {
        assert!(server.asked(0).body.contains(part), "{part}");
    }
    assert_eq!(
        server.asked(2).json()["content"],
        "`chart.png`\n-# The file could not be attached: this server does not accept it."
    );
}

#[tokio::test]
async fn diff_fills_the_ephemeral_answer() {
    let patch =
        format!("1 file changed, +9 -0\n  a\n\ndiff --git a/a b/a\n{}", "+x\n".repeat(3_000));
    let deferred = says(200, json!({"id": "50", "flags": 64 | 128}));
    let (server, discord) = Server::start([deferred, message("50")]).await;
    let reply = Reply::Discord { application: "app".to_owned(), token: "tok".to_owned() };
    let (thread, turn) = (&thread(), &"t1".into());
    let diff = Say::Diff { thread, turn, patch: &patch };
    assert_eq!(discord.answer(&reply, diff).await, Ok(()));
    assert_eq!(
        server.lines(),
        ["GET /webhooks/app/tok/messages/@original", "PATCH /webhooks/app/tok/messages/@original"]
    );
    for part in ["filename=\"changes.diff\"", "1 file changed, +9 -0", "+x\n+x"] {
        assert!(server.asked(1).body.contains(part), "{part}");
    }
    assert!(!server.asked(1).body.contains("32768"), "no components beside the file");
}

#[tokio::test]
async fn long_words_follow_in_further_messages() {
    let listed = |lines: usize| {
        let lines: Vec<String> = (0..lines).map(|n| format!("- Setting {n}: <#{n}>")).collect();
        lines.join("\n")
    };
    for (lines, messages) in [(3, 1), (150, 2), (3_000, 10)] {
        let words = listed(lines);
        let deferred = says(200, json!({"id": "50", "flags": 64 | 128}));
        let made = (0..messages).map(|_| message("50"));
        let (server, discord) = Server::start([deferred].into_iter().chain(made)).await;
        assert_eq!(discord.answer(&reply(), Say::Words(&words)).await, Ok(()));
        assert_eq!(server.lines().len(), 1 + messages);
        let bodies: Vec<Value> = (1..=messages).map(|n| server.asked(n).json()).collect();
        let said = |body: &Value| body["content"].as_str().unwrap().to_owned();
        let told = bodies.iter().map(said).collect::<Vec<_>>().join("\n");
        assert!(bodies[1..].iter().all(|body| body["flags"] == 64), "only for this person");
        match messages {
            10 => assert!(told.ends_with("more parts of this cannot be shown."), "{told}"),
            _ => assert!(words.lines().all(|line| told.contains(line)), "{told}"),
        }
    }
}

#[tokio::test]
async fn broken_off_words_are_not_repeated() {
    let lines: Vec<String> = (0..150).map(|n| format!("- Setting {n}: <#{n}>")).collect();
    let words = lines.join("\n");
    let deferred = || says(200, json!({"id": "50", "flags": 64 | 128}));
    let (server, discord) = Server::start([deferred(), message("50"), error(502, 0)]).await;
    assert_eq!(discord.answer(&reply(), Say::Words(&words)).await, Ok(()));
    assert_eq!(server.lines().len(), 3);
    // Nothing was shown yet: a repeat helps.
    let (_, discord) = Server::start([deferred(), error(502, 0)]).await;
    let failed = discord.answer(&reply(), Say::Words(&words)).await.unwrap_err();
    assert!(matches!(failed, Failure::Outage { .. }), "{failed:?}");
}

#[tokio::test]
async fn rejected_file_is_omitted_and_explained() {
    let (server, discord) = Server::start([error(400, 50_045), message("41")]).await;
    let chunk = Post::Chunk {
        text: "See the file.".to_owned(),
        last: true,
        file: Some("x".to_owned()),
        card: None,
    };
    assert_eq!(post(&discord, None, &chunk).await, Ok(at("41")));
    assert!(server.asked(1).json()["content"].as_str().unwrap().contains("could not be attached"));
}

#[tokio::test]
async fn guild_name_needs_bot_membership() {
    let listed = |id: &str| says(200, json!([{"id": id, "name": "Acme"}]));
    let (server, discord) = Server::start([listed("41"), listed("42"), says(200, json!([]))]).await;
    let named = discord.guild_name("41").await;
    assert_eq!(named, Ok(Some("Acme".to_owned())));
    let asked = server.asked(0);
    assert_eq!(
        (asked.line.as_str(), asked.query.as_str()),
        ("GET /api/v10/users/@me/guilds", "after=40&limit=1")
    );
    for _ in 0..2 {
        assert_eq!(discord.guild_name("41").await, Ok(None));
    }
}

#[tokio::test]
async fn answer_replies_to_card_if_allowed() {
    let script = [message("41"), error(403, 160_002), message("42")];
    let (server, discord) = Server::start(script).await;
    let chunk =
        Post::Chunk { text: "It works.".to_owned(), last: true, file: None, card: Some(at("40")) };
    assert_eq!(post(&discord, None, &chunk).await, Ok(at("41")));
    assert_eq!(
        server.asked(0).json()["message_reference"],
        json!({"message_id": "40", "fail_if_not_exists": false})
    );
    // Without permission to read the history.
    assert_eq!(post(&discord, None, &chunk).await, Ok(at("42")));
    let less = server.asked(2).json();
    assert_eq!(less["content"], "It works.");
    assert_eq!(less["message_reference"], Value::Null);
}

#[tokio::test]
async fn uneditable_message_is_posted_anew() {
    for refused in [error(404, 10_008), error(429, 30_046)] {
        let (server, discord) = Server::start([refused, message("42")]).await;
        assert_eq!(post(&discord, Some(&at("41")), &notice()).await, Ok(at("42")));
        assert_eq!(
            server.lines(),
            ["PATCH /channels/30/messages/41", "POST /channels/30/messages"]
        );
        assert_ne!(
            server.asked(1).json()["nonce"],
            json!(post_key(&thread(), &"t1".into(), &PostKind::Notice))
        );
        assert!(server.asked(0).json().get("nonce").is_none());
    }
}

#[tokio::test]
async fn archived_thread_is_reopened_for_edit() {
    let (server, discord) =
        Server::start([error(400, 50_083), says(200, json!({"id": "30"})), message("41")]).await;
    assert_eq!(post(&discord, Some(&at("41")), &notice()).await, Ok(at("41")));
    assert_eq!(
        server.lines(),
        ["PATCH /channels/30/messages/41", "PATCH /channels/30", "PATCH /channels/30/messages/41"]
    );
    assert_eq!(server.asked(1).json(), json!({"archived": false}));
}

#[tokio::test]
async fn archived_locked_thread_counts_as_closed() {
    let refusals = || [error(400, 50_083), error(403, 50_013)];
    let (_server, discord) = Server::start(refusals()).await;
    let closed = post(&discord, Some(&at("41")), &notice()).await.unwrap_err();
    assert!(
        matches!(&closed, Failure::ThreadClosed { seen } if seen == "the thread is archived and locked"),
        "{closed:?}"
    );
    let (_server, discord) = Server::start(refusals()).await;
    let kept = discord.delete_message(&at("41")).await;
    assert_eq!(kept, Err(DiscordError::Locked));
}

#[tokio::test]
async fn refused_final_edit_still_shows_reason() {
    let (server, discord) = Server::start([error(400, 50_035), message("41")]).await;
    let ended = CardState::Ended {
        outcome: Outcome::Failed { reason: "no quota".to_owned() },
        usage: Usage::default(),
    };
    let card = Post::Card(Card::new(&"t1".into(), ended, 0, 0, "m"));
    assert_eq!(post(&discord, Some(&at("41")), &card).await, Ok(at("41")));
    let sent = server.asked(1).json();
    assert_eq!(sent["flags"], 32_768);
    let text = sent["components"][0]["content"].as_str().unwrap();
    assert!(text.contains("no quota"), "{text}");
}

#[tokio::test]
async fn filtered_message_is_replaced_by_notice() {
    for code in [200_000, 240_000] {
        let (server, discord) = Server::start([error(400, code), message("41")]).await;
        assert_eq!(post(&discord, None, &notice()).await, Ok(at("41")));
        let said = server.asked(1).json();
        let said = said["content"].as_str().unwrap();
        assert!(said.contains("blocked by this server's message filter"));
    }
}

#[tokio::test]
async fn server_limits_and_outages_are_retryable() {
    for (status, code, is_outage) in [
        (429, 20_028, false),
        (429, 20_029, false),
        (429, 40_062, false),
        (503, 130_000, false),
        (500, 0, true),
        (502, 0, true),
        (408, 0, true),
    ] {
        let (_server, discord) = Server::start((0..3).map(|_| error(status, code))).await;
        let failure = post(&discord, None, &notice()).await.unwrap_err();
        let as_said = if is_outage {
            matches!(failure, Failure::Outage { .. })
        } else {
            matches!(failure, Failure::Wait { .. })
        };
        assert!(as_said, "{code}: {failure:?}");
    }
}

#[tokio::test]
async fn final_edit_waits_for_its_bucket() {
    let with = |mut answer: Scripted, left: &str, seconds: &str| {
        answer.headers.extend([
            ("x-ratelimit-bucket", "abcd".to_owned()),
            ("x-ratelimit-remaining", left.to_owned()),
            ("x-ratelimit-reset-after", seconds.to_owned()),
        ]);
        answer
    };
    let mut refused = with(limited(0.3), "0", "0.3");
    refused.headers.push(("x-ratelimit-scope", "user".to_owned()));
    let (server, discord) = Server::start([
        with(message("41"), "1", "0.2"),
        with(message("41"), "0", "0.2"),
        refused,
        message("41"),
    ])
    .await;
    post(&discord, None, &notice()).await.unwrap();
    post(&discord, Some(&at("41")), &notice()).await.unwrap();
    let since = Instant::now();
    // The bucket is used up; then one more refusal, and the edit succeeds all the same.
    assert_eq!(post(&discord, Some(&at("41")), &notice()).await, Ok(at("41")));
    assert!(since.elapsed() >= Duration::from_millis(450), "{:?}", since.elapsed());
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn oversized_card_is_resent_smaller() {
    let (server, discord) = Server::start([error(500, 0), message("41")]).await;
    let steps = vec![CardStep { text: "word ".repeat(30), state: StepState::Done }; 12];
    let card = Card {
        turn: "t1".into(),
        state: CardState::Working,
        plan: Vec::new(),
        steps,
        earlier: 0,
        since_ms: 0,
        now_ms: 0,
        model: "m".to_owned(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
        ends_ms: None,
    };
    assert_eq!(post(&discord, None, &Post::Card(card)).await, Ok(at("41")));
    assert!(server.asked(1).body.len() < server.asked(0).body.len());
    assert_eq!(server.asked(0).json()["nonce"], server.asked(1).json()["nonce"]);
}

#[tokio::test]
async fn invalid_body_is_resent_as_text() {
    let (server, discord) = Server::start([error(400, 50_035), message("41")]).await;
    let card = Card {
        turn: "t1".into(),
        state: CardState::Working,
        plan: Vec::new(),
        steps: Vec::new(),
        earlier: 0,
        since_ms: 0,
        now_ms: 0,
        model: "m".to_owned(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
        ends_ms: None,
    };
    assert_eq!(post(&discord, None, &Post::Card(card)).await, Ok(at("41")));
    assert!(server.asked(1).json()["content"].as_str().unwrap().starts_with("**Working**"));
}

#[tokio::test]
async fn only_short_rate_limit_is_awaited() {
    let (server, discord) = Server::start([limited(0.05), message("41"), limited(7.5)]).await;
    assert_eq!(post(&discord, None, &notice()).await, Ok(at("41")));
    assert_eq!(server.lines().len(), 2);
    let refused = post(&discord, None, &notice()).await.unwrap_err();
    assert!(matches!(refused, Failure::Wait { after_ms: 7_400..=7_501, .. }), "{refused:?}");
    // Known by now: not asked again.
    let again = post(&discord, None, &notice()).await;
    assert!(matches!(again, Err(Failure::Wait { after_ms: 1..=7_501, .. })), "{again:?}");
    assert_eq!(server.lines().len(), 3);
}

#[tokio::test]
async fn exhausted_limit_stops_further_calls() {
    let mut last = message("41");
    last.headers.extend([
        ("x-ratelimit-remaining", "0".to_owned()),
        ("x-ratelimit-reset-after", "30.0".to_owned()),
    ]);
    let (server, discord) = Server::start([last, message("42")]).await;
    post(&discord, None, &notice()).await.unwrap();
    assert!(matches!(
        post(&discord, None, &notice()).await,
        Err(Failure::Wait { after_ms: 29_000..=30_001, .. })
    ));
    let other = ThreadKey::discord("1", "31").unwrap();
    discord.post(&other, &"t1".into(), &PostKind::Notice, None, &notice()).await.unwrap();
    assert_eq!(server.lines().len(), 2, "another channel has its own limit");
}

#[tokio::test]
async fn rejected_bot_token_is_retried_later() {
    let (server, discord) = Server::start([error(401, 0), message("41")]).await;
    let refused = post(&discord, None, &notice()).await.unwrap_err();
    assert!(
        matches!(refused, Failure::Outage { seen, .. } if seen.contains("`bobbin secrets`") && !seen.contains("bot-secret"))
    );
    assert_eq!(post(&discord.clone(), None, &notice()).await, Err(DiscordError::Revoked.into()));
    assert_eq!(server.lines().len(), 1);
    assert!(!format!("{discord:?}").contains("bot-secret"));
    // It was refused by mistake, or is valid again.
    let (_server, discord) = Server::start([error(401, 0), message("41")]).await;
    let discord = discord.leaving_a_refused_token_for(std::time::Duration::ZERO);
    post(&discord, None, &notice()).await.unwrap_err();
    assert_eq!(post(&discord, None, &notice()).await, Ok(at("41")));
}

#[tokio::test]
async fn closed_thread_differs_from_deleted() {
    for (status, code, class, word) in [
        (404, 10_003, "thread_gone", "deleted"),
        (404, 10_004, "thread_gone", "deleted"),
        (403, 50_001, "thread_closed", "View Channels"),
        (403, 50_013, "thread_closed", "View Channels"),
        (400, 160_005, "thread_closed", "locked"),
    ] {
        let (_server, discord) = Server::start([error(status, code)]).await;
        let failure = post(&discord, None, &notice()).await.unwrap_err();
        assert_eq!(serde_json::to_value(&failure).unwrap()["class"], class, "{code}: {failure:?}");
        assert!(failure.to_string().contains(word), "{code}: {failure:?}");
    }
}

#[tokio::test]
async fn the_closing_notice_archives_its_thread() {
    let archived = [says(200, json!({"id": "30"})), error(403, 50_013)];
    for archived in archived {
        let (server, discord) = Server::start([message("41"), archived]).await;
        let closing = Post::Closing("Hello".to_owned());
        assert_eq!(post(&discord, None, &closing).await, Ok(at("41")));
        assert_eq!(server.lines(), ["POST /channels/30/messages", "PATCH /channels/30"]);
        assert_eq!(server.asked(1).json(), json!({"archived": true}));
    }
}

#[tokio::test]
async fn closed_thread_notifies_requester_in_channel() {
    let found = json!({"id": "30", "type": 11, "parent_id": "7"});
    let (server, discord) = Server::start([says(200, found), message("41")]).await;
    let word = "Your task has ended.";
    let people = ["5".to_owned()];
    let (thread, turn) = (thread(), "t1".into());
    let told = discord.notify_outside(&thread, &turn, &people, word);
    told.await.unwrap();
    assert_eq!(server.lines(), ["GET /channels/30", "POST /channels/7/messages"]);
    let sent = server.asked(1).json();
    let content = sent["content"].as_str().unwrap();
    assert!(content.contains("<#30>: Your task has ended."), "{content}");
    assert_eq!(sent["allowed_mentions"]["users"], json!(["5"]));
    assert_eq!(sent["enforce_nonce"], true);
}

#[tokio::test]
async fn who_cannot_see_a_channel_is_an_outsider() {
    const VIEW: &str = "2147484672";
    let overwrite = |id: &str, deny: &str, allow: &str| json!({"id": id, "type": 0, "deny": deny, "allow": allow});
    let guild = json!({"owner_id": "1", "roles": [
        {"id": "20", "permissions": VIEW}, {"id": "5", "permissions": "0"}, {"id": "6", "permissions": "8"},
        {"id": "7", "permissions": "32"}]});
    let hidden = overwrite("20", VIEW, "0");
    for (user, roles, overwrites, sees, manages) in [
        ("2", json!([]), json!([]), true, false),
        ("2", json!([]), json!([hidden]), false, false),
        ("2", json!(["5"]), json!([hidden, overwrite("5", "0", VIEW)]), true, false),
        ("2", json!(["5"]), json!([overwrite("5", VIEW, "0")]), false, false),
        // What one role is denied, another is allowed; a person's own word is the last.
        (
            "2",
            json!(["5", "7"]),
            json!([overwrite("5", VIEW, "0"), overwrite("7", "0", VIEW)]),
            true,
            true,
        ),
        (
            "2",
            json!(["5"]),
            json!([overwrite("5", "0", VIEW), overwrite("2", VIEW, "0")]),
            false,
            false,
        ),
        // Nothing hides from administrators and the owner.
        ("2", json!(["6"]), json!([hidden]), true, true),
        ("1", json!([]), json!([hidden]), true, true),
    ] {
        let channel = json!({"id": "7", "permission_overwrites": overwrites});
        let member = json!({"roles": roles});
        let talk = json!({"id": "30", "type": 11});
        let answers =
            [says(200, member), says(200, guild.clone()), says(200, channel), says(200, talk)];
        let (server, discord) = Server::start(answers).await;
        let guild_thread = ThreadKey::Discord { guild: "20".to_owned(), thread: "30".to_owned() };
        let found = discord.membership(&guild_thread, user, Some("7")).await.unwrap();
        assert_eq!((found.outside.is_none(), found.manages), (sees, manages), "{overwrites}");
        assert_eq!(
            server.lines(),
            [
                &*format!("GET /guilds/20/members/{user}"),
                "GET /guilds/20",
                "GET /channels/7",
                "GET /channels/30"
            ]
        );
    }
    // Who may only read for now, and what is private.
    for (until, kind, sees) in [
        (Some("2999-01-01T00:00:00+00:00"), 11, false),
        (Some("2020-01-01T00:00:00+00:00"), 11, true),
        (None, 12, false),
    ] {
        let member = json!({"roles": [], "communication_disabled_until": until});
        let channel = json!({"id": "7", "permission_overwrites": []});
        let talk = json!({"id": "30", "type": kind});
        let answers = [member, guild.clone(), channel, talk].map(|body| says(200, body));
        let (_server, discord) = Server::start(answers).await;
        let guild_thread = ThreadKey::Discord { guild: "20".to_owned(), thread: "30".to_owned() };
        let found = discord.membership(&guild_thread, "2", Some("7")).await.unwrap();
        assert_eq!(found.outside.is_none(), sees, "{until:?} {kind}");
    }
    let (_server, discord) = Server::start([error(404, 10_007), error(403, 50_001)]).await;
    let guild_thread = thread();
    let gone = discord.membership(&guild_thread, "2", Some("7")).await.unwrap();
    assert_eq!(gone.outside, Some(Outside::Outsider));
    assert!(discord.membership(&guild_thread, "2", Some("7")).await.is_err());
}

#[tokio::test]
async fn non_json_response_is_an_outage() {
    let html = || Scripted {
        status: 200,
        headers: vec![("content-type", "text/html".to_owned())],
        body: "<h1>hi</h1>".to_owned(),
    };
    let in_front = [503, 403].map(|status| Scripted { status, ..html() });
    let script = [html()].into_iter().chain(in_front).chain([says(200, json!({}))]);
    let (_server, discord) = Server::start(script).await;
    for _ in 0..4 {
        let failed = post(&discord, None, &notice()).await.unwrap_err();
        assert!(matches!(failed, Failure::Outage { .. }), "{failed:?}");
    }
}

#[tokio::test]
async fn unreachable_server_is_an_outage() {
    let http = Http::new("http://127.0.0.1:1", AllowedHosts::Named(Vec::new())).unwrap();
    let discord = Discord::new(http, "http://127.0.0.1:1", "10", "t");
    let failed = get_message(&discord, &at("41")).await.unwrap_err();
    assert!(matches!(failed, DiscordError::Http(HttpError::Transport { .. })), "{failed:?}");
    let failed = post(&discord, None, &notice()).await.unwrap_err();
    assert!(matches!(failed, Failure::Outage { .. }), "{failed:?}");
}

#[tokio::test]
async fn token_edits_anchor_bot_opens_thread() {
    let (server, discord) = Server::start([message("30"), says(201, json!({"id": "30"}))]).await;
    assert_eq!(discord.open(&open(), 2_000).await, Ok(thread()));
    assert_eq!(
        server.lines(),
        [
            format!("PATCH /webhooks/10/{TOKEN}/messages/@original").as_str(),
            "POST /channels/20/messages/30/threads"
        ]
    );
    assert!(server.asked(0).headers.get("authorization").is_none(), "the token is enough");
    assert!(
        server.asked(0).json()["content"].as_str().unwrap().starts_with("**Sam** asked: Fix it")
    );
    assert_eq!(server.asked(1).json()["name"], "Fix it");
}

#[tokio::test]
async fn refused_prompt_is_not_started() {
    let refusal = says(200, json!({"id": "30", "channel_id": "20", "flags": 64}));
    let (server, discord) = Server::start([refusal]).await;
    let unheard = discord.open(&open(), 2_000).await.unwrap_err();
    assert_eq!(
        unheard,
        Failure::NonRecoverable {
            advice: "it could not be accepted in time. Please try again".to_owned()
        }
    );
    assert_eq!(server.lines().len(), 1, "no thread was asked for");
}

#[tokio::test]
async fn existing_thread_is_adopted() {
    let (_server, discord) = Server::start([message("30"), error(400, 160_004)]).await;
    assert_eq!(discord.open(&open(), 2_000).await, Ok(thread()));
}

#[tokio::test]
async fn unprocessed_answer_is_polled_again() {
    let (server, discord) = Server::start([
        error(404, 10_015),
        error(404, 10_008),
        message("30"),
        says(201, json!({"id": "30"})),
    ])
    .await;
    assert_eq!(discord.open(&open(), 2_000).await, Ok(thread()));
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn bot_posts_anchor_without_live_token() {
    let late = 1_000 + bobbin_core::base::limits::REPLY_TOKEN_MS;
    // Messages of others, or answers that never became the task's line, are left alone.
    let others = json!([
        {"id": "28", "interaction_metadata": {"id": "1"}},
        {"id": "29", "interaction_metadata": {"id": open().id}, "flags": 128},
    ]);
    let made = || [message("30"), says(201, json!({"id": "30"}))];
    for looked in [says(200, others), error(403, 50_001)] {
        let (server, discord) = Server::start([looked].into_iter().chain(made())).await;
        assert_eq!(discord.open(&open(), late).await, Ok(thread()));
        assert_eq!(server.lines()[1], "POST /channels/20/messages");
        assert_eq!(server.asked(1).json()["enforce_nonce"], true);
    }

    let dead = (0..ORIGINAL_WAIT_MS_MAX / ORIGINAL_POLL_MS).map(|_| error(404, 10_015));
    let (server, discord) = Server::start(dead.chain([says(200, json!([]))]).chain(made())).await;
    assert_eq!(discord.open(&open(), 2_000).await, Ok(thread()));
    let tries = server.lines().len();
    assert_eq!(discord.answer(&reply(), Say::Words("late")).await, Ok(()));
    assert_eq!(server.lines().len(), tries, "a dead token is not tried again");
}

#[tokio::test]
async fn terminal_prompt_anchor_bears_its_id() {
    let mut task = open();
    task.id = "send-1790000000250-00000001".into();
    task.accepted_at_ms = 1_790_000_000_250;
    task.prompt.membership.operates = true;
    let Reply::Discord { token, .. } = &mut task.reply else {
        panic!("it is Discord's");
    };
    token.clear();
    let made = [says(200, json!([])), message("30"), says(201, json!({"id": "30"}))];
    let (server, discord) = Server::start(made).await;
    assert_eq!(discord.open(&task, task.accepted_at_ms).await, Ok(thread()));
    // There is no deferred answer to edit. Discord's ids hold the time: a minute before the task.
    let after = (1_790_000_000_250_u64 - 60_000 - 1_420_070_400_000) << 22;
    let looked = server.asked(0).query.clone();
    assert_eq!(looked, format!("after={after}&limit=100"));
    assert_eq!(
        server.lines(),
        [
            "GET /channels/20/messages",
            "POST /channels/20/messages",
            "POST /channels/20/messages/30/threads"
        ]
    );
    let line = server.asked(1).json()["content"].clone();
    assert_eq!(
        line,
        "**Sam** asked: Fix it\n-# Sent from a terminal as send-1790000000250-00000001. The work continues in the thread below."
    );

    // A repeat finds the line, and not another one with the same text.
    let other = "**Sam** asked: Fix it\n-# Sent from a terminal as send-1790000000250-00000009. The work continues in the thread below.";
    let there = json!([
        {"id": "29", "author": {"bot": true}, "content": other},
        {"id": "30", "author": {"bot": true}, "content": line},
    ]);
    let (server, discord) = Server::start([says(200, there), error(400, 160_004)]).await;
    assert_eq!(discord.open(&task, task.accepted_at_ms).await, Ok(thread()));
    assert_eq!(server.lines().len(), 2, "no second line is posted");
}

#[tokio::test]
async fn late_thread_uses_existing_anchor() {
    let late = 1_000 + bobbin_core::base::limits::REPLY_TOKEN_MS;
    let line = json!([
        {"id": "31", "interaction_metadata": {"id": "1"}},
        {"id": "30", "interaction_metadata": {"id": open().id}, "flags": 0},
    ]);
    let (server, discord) = Server::start([says(200, line), says(201, json!({"id": "30"}))]).await;
    assert_eq!(discord.open(&open(), late).await, Ok(thread()));
    assert_eq!(
        server.lines(),
        ["GET /channels/20/messages", "POST /channels/20/messages/30/threads"],
        "no second line is posted"
    );
}

#[tokio::test]
async fn unacknowledged_anchor_is_not_posted_twice() {
    let late = 1_000 + bobbin_core::base::limits::REPLY_TOKEN_MS;
    let said = render::anchor(&open())["content"].clone();
    let listed = json!([
        {"id": "28", "content": said, "author": {"id": "9"}},
        {"id": "29", "content": "something else", "author": {"id": "77", "bot": true}},
        {"id": "31", "content": said, "author": {"id": "77", "bot": true}, "interaction_metadata": {"id": "8"}},
        {"id": "30", "content": said, "author": {"id": "77", "bot": true}},
    ]);
    let (server, discord) =
        Server::start([says(200, listed), says(201, json!({"id": "30"}))]).await;
    assert_eq!(discord.open(&open(), late).await, Ok(thread()));
    assert_eq!(
        server.lines()[1],
        "POST /channels/20/messages/30/threads",
        "no second line is posted"
    );
}

#[tokio::test]
async fn refused_thread_is_reported_in_channel() {
    let (server, discord) =
        Server::start([message("30"), error(400, 160_006), message("30")]).await;
    let refused = discord.open(&open(), 2_000).await.unwrap_err();
    assert!(matches!(refused, Failure::NonRecoverable { .. }));
    assert_eq!(server.lines()[2], "PATCH /channels/20/messages/30");
    assert!(
        server.asked(2).json()["content"].as_str().unwrap().contains("too many active threads")
    );
}

#[tokio::test]
async fn dead_token_notice_goes_to_channel() {
    let dead = (0..ORIGINAL_WAIT_MS_MAX / ORIGINAL_POLL_MS).map(|_| error(404, 10_015));
    let (server, discord) = Server::start(dead.chain([message("33")])).await;
    let (open, words) = (open(), "No thread could be started: 503.");
    discord.answer(&open.reply, Say::Unopened { open: &open, words }).await.unwrap();
    let last = server.lines().len() - 1;
    assert_eq!(server.lines()[last], "POST /channels/20/messages");
    let posted = server.asked(last).json();
    let asked_by = &open.prompt.by.id;
    assert_eq!(posted["allowed_mentions"]["users"], json!([asked_by]));
    assert!(posted.to_string().contains("No thread could be started: 503."));
    assert_eq!(posted["enforce_nonce"], true);
}

#[tokio::test]
async fn command_edits_answer_click_posts_followup() {
    let (server, discord) =
        Server::start([says(200, json!({"id": "1", "flags": 192})), message("1")]).await;
    discord.answer(&reply(), Say::Words("It runs.")).await.unwrap();
    assert_eq!(server.lines()[1], format!("PATCH /webhooks/10/{TOKEN}/messages/@original"));

    let (server, discord) =
        Server::start([says(200, json!({"id": "1", "flags": 32_768})), message("2")]).await;
    discord.answer(&reply(), Say::Words("Stopping.")).await.unwrap();
    assert_eq!(server.lines()[1], format!("POST /webhooks/10/{TOKEN}"));
    assert_eq!(server.asked(1).json()["flags"], 64);
}

#[tokio::test]
async fn commands_are_written_only_when_changed() {
    let (server, discord) =
        Server::start([says(200, commands()), says(200, json!([])), says(200, json!([]))]).await;
    assert_eq!(discord.register_commands(None).await, Ok(Vec::new()));
    let added = discord.register_commands(Some("1")).await.unwrap();
    assert_eq!(added[0], Difference::Added("/sandbox".to_owned()));
    assert_eq!(
        server.lines(),
        [
            "GET /applications/10/commands",
            "GET /applications/10/guilds/1/commands",
            "PUT /applications/10/guilds/1/commands"
        ]
    );
}

#[tokio::test]
async fn message_deletion_is_idempotent() {
    let (_server, discord) = Server::start([
        Scripted { status: 204, headers: Vec::new(), body: String::new() },
        error(404, 10_008),
        error(404, 10_008),
    ])
    .await;
    assert_eq!(discord.delete_message(&at("41")).await, Ok(()));
    assert_eq!(discord.delete_message(&at("41")).await, Ok(()));
    assert_eq!(get_message(&discord, &at("41")).await.map_err(|e| e.code()), Err(10_008));
}
