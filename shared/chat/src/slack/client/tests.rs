//! Tests of the client against a small Slack of our own on loopback, which gives scripted answers and records requests.
#![allow(clippy::unwrap_used)]

mod direct;
mod opening;
mod status;
mod stream;
mod styles;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{PostRef, ThreadKey};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::base::person::Outside;
use bobbin_core::records::card::{Card, CardState, Post, ShownFile};
use bobbin_core::records::message::Reply;
use bobbin_core::records::session::Session;
use serde_json::{Value, json};

use super::{Chat, Say, Slack, SlackError};

const TOKEN: &str = "xoxb-a-token-for-tests";
const TURN: &str = "slack_T1_C1_1790000000.000100";

/// Requests received, and answers to give.
#[derive(Default)]
struct Script {
    calls: Vec<(String, Value)>,
    answers: BTreeMap<String, VecDeque<(u16, Value)>>,
    /// Messages of the thread; posts are kept even if the scripted answer says otherwise.
    messages: Vec<Value>,
    uploads: Vec<(Option<String>, String)>,
}

type Shared = Arc<Mutex<Script>>;

struct Fake {
    base: String,
    script: Shared,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fake {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let script = Shared::default();
        let routes = Router::new()
            .route("/api/{method}", post(serve))
            .route("/upload", post(receive))
            .with_state((script.clone(), base.clone()));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { base, script, server }
    }

    fn client(&self) -> Slack {
        Slack::new(&format!("{}/api/", self.base), TOKEN).unwrap()
    }

    fn will_answer(&self, method: &str, status: u16, body: Value) {
        self.script
            .lock()
            .unwrap()
            .answers
            .entry(method.to_owned())
            .or_default()
            .push_back((status, body));
    }

    fn refuses(&self, method: &str, error: &str) {
        self.will_answer(method, 200, json!({ "ok": false, "error": error }));
    }

    fn sent(&self, method: &str) -> Vec<Value> {
        let script = self.script.lock().unwrap();
        script
            .calls
            .iter()
            .filter(|(name, _)| name == method)
            .map(|(_, arguments)| arguments.clone())
            .collect()
    }
}

async fn serve(
    State((script, base)): State<(Shared, String)>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != &format!("Bearer {TOKEN}")) {
        return (StatusCode::OK, axum::Json(json!({ "ok": false, "error": "invalid_auth" })))
            .into_response();
    }
    let arguments: Value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    let mut script = script.lock().unwrap();
    script.calls.push((method.clone(), arguments.clone()));
    if method == "chat.postMessage" && arguments["metadata"].is_object() {
        let ts = format!("1790000009.{:06}", script.messages.len());
        let queue = script.answers.get("chat.postMessage");
        let scripted = queue.and_then(|queue| queue.front()).cloned();
        if scripted.as_ref().is_none_or(|(_, body)| body["kept"] == true) {
            script.messages.push(
                json!({ "ts": ts, "user": "UBOT", "bot_id": "BBOT", "metadata": arguments["metadata"] }),
            );
        }
        if scripted.is_none() {
            // A person's id stands for their direct messages.
            let channel = match arguments["channel"].as_str() {
                Some("U1") => "D1",
                channel => channel.unwrap_or_default(),
            };
            return axum::Json(json!({ "ok": true, "channel": channel, "ts": ts })).into_response();
        }
    }
    // A stream is a message of the thread without a key; its end or an edit gives it one.
    if method == "chat.startStream" {
        let scripted = script.answers.get(&method).and_then(|queue| queue.front());
        let kept = scripted.is_none_or(|(_, body)| body["kept"] == true);
        let ts = format!("1790000009.{:06}", script.messages.len());
        if kept {
            let message = json!({ "ts": ts, "user": "UBOT", "bot_id": "BBOT", "text": "" });
            script.messages.push(message);
        }
        if scripted_is_none(&script, &method) {
            return axum::Json(json!({ "ok": true, "channel": "C1", "ts": ts })).into_response();
        }
    }
    if ["chat.update", "chat.stopStream"].contains(&method.as_str())
        && scripted_is_none(&script, &method)
    {
        let named = |message: &&mut Value| message["ts"] == arguments["ts"];
        if let Some(message) = script.messages.iter_mut().find(named) {
            message["metadata"] = arguments["metadata"].clone();
        }
    }
    if method == "files.completeUploadExternal" {
        let asked = script.calls.iter().rev();
        let form = asked
            .filter(|(name, _)| name == "files.getUploadURLExternal")
            .find_map(|(_, form)| form.as_str())
            .unwrap_or_default();
        let name = form.split(['=', '&']).nth(1).unwrap_or_default();
        let file = json!({ "ts": format!("1790000009.{:06}", script.messages.len()), "user": "UBOT", "files": [{ "name": name }] });
        script.messages.push(file);
    }
    if let Some((status, body)) = script.answers.get_mut(&method).and_then(VecDeque::pop_front) {
        let status = StatusCode::from_u16(status).unwrap();
        let mut response = match body.as_str() {
            Some(text) => {
                (status, [("content-type", "text/html")], text.to_owned()).into_response()
            }
            None => (status, axum::Json(body.clone())).into_response(),
        };
        if let Some(after) = body["retry_after"].as_str() {
            response.headers_mut().insert("retry-after", after.parse().unwrap());
        }
        return response;
    }
    let answer = match method.as_str() {
        "auth.test" => json!({ "ok": true, "team_id": "T1", "user_id": "UBOT", "bot_id": "BBOT" }),
        "conversations.replies" | "conversations.history" => {
            json!({ "ok": true, "messages": script.messages })
        }
        "files.getUploadURLExternal" => {
            json!({ "ok": true, "upload_url": format!("{base}/upload"), "file_id": "F1" })
        }
        _ => json!({ "ok": true }),
    };
    axum::Json(answer).into_response()
}

fn scripted_is_none(script: &Script, method: &str) -> bool {
    script.answers.get(method).is_none_or(VecDeque::is_empty)
}

async fn receive(
    State((script, _)): State<(Shared, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> &'static str {
    let token = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    script.lock().unwrap().uploads.push((token, String::from_utf8_lossy(&body).into_owned()));
    "OK"
}

fn thread() -> ThreadKey {
    ThreadKey::slack("T1", "C1", "1790000000.000100").unwrap()
}

fn chunk(text: &str) -> Post {
    Post::Chunk { text: text.to_owned(), last: true, file: None, card: None }
}

fn card(state: CardState) -> Post {
    Post::Card(Card {
        turn: TURN.into(),
        state,
        plan: Vec::new(),
        steps: Vec::new(),
        earlier: 0,
        since_ms: 0,
        now_ms: 1_000,
        model: "m".to_owned(),
        trouble: None,
        waiting: 0,
        publish: None,
        spending: None,
        set_up: None,
        ends_ms: None,
    })
}

/// Posts or edits as the worker does, in the thread and turn of these tests.
async fn send(
    slack: &Slack,
    kind: &PostKind,
    at: Option<&PostRef>,
    post: &Post,
) -> Result<PostRef, Failure> {
    slack.post(&thread(), &TURN.into(), kind, at, post).await
}

fn key(kind: &PostKind) -> String {
    post_key(&thread(), &TURN.into(), kind)
}

#[tokio::test]
async fn card_is_posted_once_then_edited() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let at = send(&slack, &PostKind::Card, None, &card(CardState::Working)).await.unwrap();
    assert_eq!(at, PostRef { channel: "C1".into(), id: "1790000009.000000".into() });
    let posted = &fake.sent("chat.postMessage")[0];
    assert_eq!(posted["metadata"]["event_payload"]["op_id"], key(&PostKind::Card));
    assert_eq!(
        (&posted["channel"], &posted["thread_ts"]),
        (&json!("C1"), &json!("1790000000.000100"))
    );
    let again = send(&slack, &PostKind::Card, Some(&at), &card(CardState::Stopping)).await.unwrap();
    assert_eq!(again, at);
    assert_eq!(fake.sent("chat.update")[0]["ts"], at.id);
    assert_eq!(fake.sent("chat.postMessage").len(), 1);
}

#[tokio::test]
async fn earlier_processes_post_is_edited() {
    let fake = Fake::start().await;
    let first = fake
        .client()
        .post(&thread(), &TURN.into(), &PostKind::Chunk(0), None, &chunk("one"))
        .await
        .unwrap();
    let second = fake.client();
    let found = send(&second, &PostKind::Chunk(0), None, &chunk("one, complete")).await.unwrap();
    assert_eq!(found, first);
    assert_eq!(fake.sent("chat.postMessage").len(), 1);
    assert_eq!(fake.sent("chat.update")[0]["blocks"][0]["text"], "one, complete");
    send(&second, &PostKind::Chunk(1), None, &chunk("two")).await.unwrap();
    assert_eq!(fake.sent("conversations.replies").len(), 2, "a process reads a turn's thread once");
    let asked = fake.sent("conversations.replies")[0].as_str().unwrap().to_owned();
    assert!(
        asked.contains("include_all_metadata=true") && asked.contains("oldest=1790000000.000100"),
        "{asked}"
    );
}

#[tokio::test]
async fn unclear_post_is_verified_before_retry() {
    for (status, body) in [
        (503, json!("<html>")),
        (200, json!({ "ok": false, "error": "internal_error" })),
        (200, json!("<html>")),
    ] {
        let fake = Fake::start().await;
        // The first time it was posted although the answer says otherwise; the second time it was not.
        let kept = match &body {
            Value::Object(_) => json!({ "ok": false, "error": "internal_error", "kept": true }),
            _ => json!({ "kept": true }),
        };
        fake.will_answer("chat.postMessage", if kept["ok"].is_boolean() { 200 } else { 500 }, kept);
        let slack = fake.client();
        let at = send(&slack, &PostKind::Chunk(0), None, &chunk("one")).await.unwrap();
        assert_eq!(at.id, "1790000009.000000");
        assert_eq!(fake.sent("chat.postMessage").len(), 1);
        fake.will_answer("chat.postMessage", status, body);
        let next = send(&slack, &PostKind::Chunk(1), None, &chunk("two")).await.unwrap();
        assert_eq!(next.id, "1790000009.000001");
        assert_eq!(fake.sent("chat.postMessage").len(), 3);
    }
}

#[tokio::test]
async fn other_apps_key_is_ignored() {
    let fake = Fake::start().await;
    let forged = json!({ "ts": "1790000008.000000", "user": "UEVIL", "bot_id": "BEVIL",
        "metadata": { "event_type": "bobbin", "event_payload": { "op_id": key(&PostKind::Chunk(0)) } } });
    fake.script.lock().unwrap().messages.push(forged);
    fake.client()
        .post(&thread(), &TURN.into(), &PostKind::Chunk(0), None, &chunk("one"))
        .await
        .unwrap();
    assert_eq!(fake.sent("chat.postMessage").len(), 1);
}

#[tokio::test]
async fn uneditable_card_is_posted_anew() {
    for error in ["message_not_found", "cant_update_message", "edit_window_closed"] {
        let fake = Fake::start().await;
        let slack = fake.client();
        let at = send(&slack, &PostKind::Card, None, &card(CardState::Working)).await.unwrap();
        fake.refuses("chat.update", error);
        let anew =
            send(&slack, &PostKind::Card, Some(&at), &card(CardState::Stopping)).await.unwrap();
        assert_ne!(anew, at, "{error}");
        assert_eq!(fake.sent("chat.postMessage").len(), 2);
    }
}

#[tokio::test]
async fn only_short_wait_is_spent_inline() {
    let fake = Fake::start().await;
    let slack = fake.client();
    fake.will_answer(
        "chat.update",
        429,
        json!({ "ok": false, "error": "ratelimited", "retry_after": "0.05" }),
    );
    let at = PostRef { channel: "C1".into(), id: "1.2".into() };
    send(&slack, &PostKind::Notice, Some(&at), &Post::Notice("x".into())).await.unwrap();
    assert_eq!(fake.sent("chat.update").len(), 2);
    fake.will_answer(
        "chat.update",
        429,
        json!({ "ok": false, "error": "ratelimited", "retry_after": "30" }),
    );
    let error =
        send(&slack, &PostKind::Notice, Some(&at), &Post::Notice("x".into())).await.unwrap_err();
    assert!(matches!(error, Failure::Wait { after_ms: 30_000, .. }), "{error:?}");
    for _ in 0..3 {
        fake.will_answer("chat.update", 429, json!({ "retry_after": "0.01" }));
    }
    let error =
        send(&slack, &PostKind::Notice, Some(&at), &Post::Notice("x".into())).await.unwrap_err();
    assert!(
        matches!(error, Failure::Wait { after_ms: 10, .. }),
        "waiting in place has an end: {error:?}"
    );
}

#[tokio::test]
async fn refused_blocks_are_resent_as_text() {
    let fake = Fake::start().await;
    fake.will_answer("chat.postMessage", 200, json!({ "ok": false, "error": "invalid_blocks", "response_metadata": { "messages": ["[ERROR] bad [json-pointer:/blocks/0]"] } }));
    fake.client()
        .post(&thread(), &TURN.into(), &PostKind::Notice, None, &Post::Notice("Paused.".into()))
        .await
        .unwrap();
    let sent = fake.sent("chat.postMessage");
    assert_eq!(
        (sent.len(), &sent[1]["text"], &sent[1]["blocks"]),
        (2, &json!("Paused."), &json!([]))
    );
}

#[tokio::test]
async fn refused_answer_is_resent_whole() {
    let fake = Fake::start().await;
    let people = vec!["U123".to_owned()];
    let text = format!("{}this & that", "word ".repeat(2_000));
    let post = Post::Calling { people, post: Box::new(chunk(&text)) };
    fake.refuses("chat.postMessage", "invalid_blocks");
    let at = send(&fake.client(), &PostKind::Chunk(1), None, &post).await.unwrap();
    let sent = fake.sent("chat.postMessage");
    let whole = format!("{}this &amp; that\n<@U123>", "word ".repeat(2_000));
    assert_eq!((&sent[1]["text"], &sent[1]["blocks"]), (&json!(whole), &json!([])));
    assert!(sent[0]["text"].as_str().unwrap().len() <= 4_000, "beside blocks it is short");
    // Another process finds it; an edit could not show it whole.
    fake.refuses("chat.update", "invalid_blocks");
    let found = send(&fake.client(), &PostKind::Chunk(1), None, &post).await.unwrap();
    assert_eq!((found, fake.sent("chat.update").len()), (at, 1));
}

#[tokio::test]
async fn overlong_answer_comes_with_file() {
    let fake = Fake::start().await;
    let long = Post::Chunk {
        text: "first part".into(),
        last: true,
        file: Some("the whole answer, ä".into()),
        card: None,
    };
    fake.client().post(&thread(), &TURN.into(), &PostKind::Chunk(0), None, &long).await.unwrap();
    assert_eq!(fake.script.lock().unwrap().uploads, [(None, "the whole answer, ä".to_owned())]);
    assert_eq!(
        fake.sent("files.getUploadURLExternal")[0],
        format!(
            "filename=answer-{}.md&length=20",
            &post_key(&thread(), &TURN.into(), &PostKind::Chunk(0))[..8]
        )
    );
    let complete = &fake.sent("files.completeUploadExternal")[0];
    assert_eq!(
        (&complete["files"][0]["id"], &complete["thread_ts"]),
        (&json!("F1"), &json!("1790000000.000100"))
    );
    assert_eq!(
        fake.sent("chat.postMessage")[0]["blocks"][0]["text"],
        "first part\n\n_This is only a part: the whole answer is in the file `answer.md` above._"
    );
}

fn shown(name: &str, bytes: &[u8]) -> Post {
    Post::File(ShownFile { name: name.to_owned(), bytes: bytes.to_vec() })
}

#[tokio::test]
async fn agent_file_is_uploaded_once() {
    let fake = Fake::start().await;
    let kind = PostKind::Artifact(0);
    let file = shown("chart.png", b"png");
    // It was posted, but the answer was lost.
    fake.will_answer("files.completeUploadExternal", 500, json!("<html>"));
    let first = fake.client();
    let unclear = send(&first, &kind, None, &file).await;
    assert!(matches!(unclear, Err(Failure::Outage { .. })), "{unclear:?}");
    let again = send(&first, &kind, None, &file).await;
    assert_eq!(again.unwrap().id, "1790000009.000000");
    let other_worker = fake.client();
    send(&other_worker, &kind, None, &file).await.unwrap();
    assert_eq!(fake.sent("files.completeUploadExternal").len(), 1);
    // Another artifact with the same file name is a different file.
    send(&other_worker, &PostKind::Artifact(1), None, &file).await.unwrap();
    let completed = fake.sent("files.completeUploadExternal");
    assert_eq!(completed.len(), 2);
    assert_eq!(completed[1]["files"][0]["title"], "chart.png");
}

#[tokio::test]
async fn long_diff_is_uploaded_once() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let summary = "1 file changed, +1 -0\n  a (new, +1 -0)";
    let patch = format!("{summary}\n\ndiff --git a/a b/a\n{}", "+x\n".repeat(3_000));
    assert!(!slack.post_diff(&thread(), &TURN.into(), &patch).await.unwrap());
    assert!(slack.post_diff(&thread(), &TURN.into(), &patch).await.unwrap());
    assert!(fake.client().post_diff(&thread(), &TURN.into(), &patch).await.unwrap());
    let completed = fake.sent("files.completeUploadExternal");
    assert_eq!(completed.len(), 1, "a repeated click doubles nothing");
    assert_eq!(completed[0]["initial_comment"], format!("```{summary}```"));
    assert_eq!(fake.script.lock().unwrap().uploads[0].1, patch);
}

#[tokio::test]
async fn other_workers_diff_is_not_repeated() {
    let fake = Fake::start().await;
    let (one, other) = (fake.client(), fake.client());
    // The first process knows the thread's posts before the other uploads the file.
    let card = card(CardState::Working);
    send(&one, &PostKind::Card, None, &card).await.unwrap();
    let patch = format!("1 file changed, +1 -0\n\n{}", "+x\n".repeat(3_000));
    for (slack, stood) in [(&other, false), (&one, true)] {
        let posted = slack.post_diff(&thread(), &TURN.into(), &patch).await;
        assert_eq!(posted.unwrap(), stood);
    }
    assert_eq!(fake.sent("files.completeUploadExternal").len(), 1);
}

#[tokio::test]
async fn other_workers_posts_are_not_doubled() {
    let fake = Fake::start().await;
    let (one, other) = (fake.client(), fake.client());
    let card = card(CardState::Working);
    send(&one, &PostKind::Card, None, &card).await.unwrap();
    // The other posts the answer and dies before that is on record.
    let (kind, answer) = (PostKind::Chunk(0), chunk("the answer"));
    let stands = send(&other, &kind, None, &answer).await.unwrap();
    let mut session = Session::new(thread(), 1_000);
    session.turn = Some(
        serde_json::from_value(json!({
            "id": TURN, "by": {"id": "U1", "name": "a"}, "accepted_at_ms": 1,
            "prompt": {"text": "x", "by": {"id": "U1", "name": "a"}}, "started_at_ms": 1, "stage": {"stage": "received"},
        }))
        .unwrap(),
    );
    one.learn(&session);
    assert_eq!(send(&one, &kind, None, &answer).await.unwrap(), stands);
    assert_eq!(fake.sent("chat.postMessage").len(), 2);
}

#[tokio::test]
async fn answer_arrives_despite_refused_file() {
    let fake = Fake::start().await;
    fake.will_answer(
        "files.getUploadURLExternal",
        200,
        json!({ "ok": false, "error": "missing_scope", "needed": "files:write" }),
    );
    let long =
        Post::Chunk { text: "first part".into(), last: true, file: Some("all".into()), card: None };
    fake.client().post(&thread(), &TURN.into(), &PostKind::Chunk(0), None, &long).await.unwrap();
    let text = fake.sent("chat.postMessage")[0]["blocks"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("files:write") && text.ends_with("first part"), "{text}");
}

#[tokio::test]
async fn private_reply_is_ephemeral_in_channels() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let to = |channel: &str| Reply::Slack {
        channel: channel.into(),
        thread_ts: Some("1.2".into()),
        user: "U1".into(),
    };
    slack.answer(&to("C1"), Say::Words("not here")).await.unwrap();
    let told = &fake.sent("chat.postEphemeral")[0];
    assert_eq!(
        (&told["user"], &told["thread_ts"], &told["text"]),
        (&json!("U1"), &json!("1.2"), &json!("not here"))
    );
    slack.answer(&to("D1"), Say::Words("not here")).await.unwrap();
    assert_eq!(fake.sent("chat.postMessage")[0]["channel"], "D1");
}

#[tokio::test]
async fn absent_from_channel_is_told_directly() {
    // The app, or the person.
    for absent in ["not_in_channel", "user_not_in_channel"] {
        let fake = Fake::start().await;
        fake.refuses("chat.postEphemeral", absent);
        let reply = Reply::Slack { channel: "C1".into(), thread_ts: None, user: "U1".into() };
        fake.client().answer(&reply, Say::Words("the settings")).await.unwrap();
        let told = &fake.sent("chat.postMessage")[0];
        assert_eq!((&told["channel"], &told["text"]), (&json!("U1"), &json!("the settings")));
    }
}

#[tokio::test]
async fn slack_errors_map_to_failure_classes() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let table = [
        ("invalid_auth", "outage"),
        ("token_revoked", "outage"),
        ("missing_scope", "non_recoverable"),
        ("not_in_channel", "thread_closed"),
        ("channel_not_found", "thread_closed"),
        ("is_archived", "thread_closed"),
        ("restricted_action_thread_locked", "thread_closed"),
        ("thread_not_found", "thread_gone"),
        ("msg_too_long", "non_recoverable"),
        ("something_new", "non_recoverable"),
        ("fatal_error", "outage"),
        ("service_unavailable", "outage"),
        ("team_added_to_org", "outage"),
    ];
    for (error, class) in table {
        fake.refuses("chat.update", error);
        let seen = slack.call("chat.update", &json!({})).await.unwrap_err();
        assert_eq!(serde_json::to_value(Failure::from(seen)).unwrap()["class"], class, "{error}");
    }
    fake.will_answer("chat.update", 404, json!("<html>"));
    assert!(matches!(
        Failure::from(slack.call("chat.update", &json!({})).await.unwrap_err()),
        Failure::Outage { .. }
    ));
}

#[tokio::test]
async fn failed_member_lookup_admits_nobody() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let user = |flags: Value| json!({"ok": true, "user": {"id": "U1", "profile": flags["p"], "is_restricted": flags["guest"] == true}});
    fake.will_answer("users.info", 200, user(json!({"guest": true})));
    assert_eq!(slack.outside("U1").await, Ok(Some(Outside::Outsider)));
    for error in ["user_not_found", "user_not_visible"] {
        fake.refuses("users.info", error);
        let found = slack.outside("U1").await;
        assert_eq!(found, Ok(Some(Outside::Outsider)), "{error}");
    }
    for error in ["internal_error", "token_revoked"] {
        fake.refuses("users.info", error);
        assert!(slack.outside("U1").await.is_err(), "{error}");
    }
    fake.refuses("users.info", "missing_scope");
    assert_eq!(slack.outside("U1").await, Ok(Some(Outside::Unread)));
    let foreign = json!({"ok": true, "user": {"id": "U1", "team_id": "T9"}});
    fake.will_answer("users.info", 200, foreign);
    assert_eq!(slack.outside("U1").await, Ok(Some(Outside::Outsider)));
    // A full member is not looked up at every message.
    fake.will_answer("users.info", 200, user(json!({})));
    assert_eq!(slack.outside("U1").await, Ok(None));
    let asked = fake.sent("users.info").len();
    assert_eq!(slack.outside("U1").await, Ok(None));
    assert_eq!(fake.sent("users.info").len(), asked);
}

#[tokio::test]
async fn who_is_not_in_a_channel_is_an_outsider() {
    let fake = Fake::start().await;
    let slack = fake.client();
    fake.will_answer("users.info", 200, json!({"ok": true, "user": {"id": "U1", "profile": {}}}));
    let page = |members: Value, next: &str| json!({"ok": true, "members": members, "response_metadata": {"next_cursor": next}});
    fake.will_answer("conversations.members", 200, page(json!(["U2"]), "more"));
    fake.will_answer("conversations.members", 200, page(json!(["U1"]), ""));
    let found = slack.membership(&thread(), "U1", Some("C1")).await.unwrap();
    assert_eq!((&*found.channel, found.outside), ("C1", None));
    assert_eq!(fake.sent("conversations.members").len(), 2);
    fake.will_answer("conversations.members", 200, page(json!(["U2"]), ""));
    let found = slack.membership(&thread(), "U1", Some("C1")).await.unwrap();
    assert_eq!(found.outside, Some(Outside::Outsider));
    // Without the permission nobody is believed to be there.
    fake.refuses("conversations.members", "missing_scope");
    let found = slack.membership(&thread(), "U1", Some("C1")).await.unwrap();
    assert_eq!(found.outside, Some(Outside::Outsider));
    fake.refuses("conversations.members", "internal_error");
    assert!(slack.membership(&thread(), "U1", Some("C1")).await.is_err());
}

#[tokio::test]
async fn errors_and_debug_hide_the_token() {
    let fake = Fake::start().await;
    let slack = fake.client();
    assert!(!format!("{slack:?}").contains(TOKEN));
    let stranger = Slack::new(&format!("{}/api", fake.base), "xoxb-another-token").unwrap();
    let error = stranger.call("auth.test", &json!({})).await.unwrap_err();
    assert!(
        matches!(&error, SlackError::Token { .. })
            && !format!("{error} {error:?}").contains("xoxb"),
        "{error}"
    );
    drop(fake);
    assert!(Slack::new("http://slack.com/api", TOKEN).is_err(), "plain http is only for loopback");
}
