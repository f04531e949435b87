//! What the daemon says to whoever sent a prompt, of its own accord.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use crate::world::{Daemon, wait_for};

const TOKEN: &str = "a-token-that-is-for-one-turn";

/// What a call came with: its `Authorization`, and its body.
type Heard = (String, Bytes);

/// Who is told, and answers with these statuses, the last one again and again.
struct Ear {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct Answers {
    heard: Arc<Mutex<Vec<Heard>>>,
    statuses: Arc<[u16]>,
}

impl Ear {
    async fn open(statuses: &[u16]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/nudge", listener.local_addr().unwrap());
        let heard = Arc::default();
        let answers = Answers { heard: Arc::clone(&heard), statuses: statuses.into() };
        let router =
            axum::Router::new().route("/nudge", axum::routing::post(hear)).with_state(answers);
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, heard, server }
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    async fn heard_often(&self, times: usize) {
        wait_for("the daemon to say it", async || self.heard().len() >= times).await;
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn hear(State(to): State<Answers>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let said = headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    let mut heard = to.heard.lock().unwrap();
    let status = to.statuses[heard.len().min(to.statuses.len() - 1)];
    heard.push((said, body));
    StatusCode::from_u16(status).unwrap()
}

async fn send(daemon: &Daemon, turn: &str, text: &str, nudge: Value) -> String {
    let body = json!({"message": text, "turn": turn, "nudge": nudge});
    let answer = daemon.post("/v1/sessions/s/messages", body).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    answer.headers["x-bobbin-outcome"].to_str().unwrap().to_owned()
}

fn nudge(ear: &Ear) -> Value {
    json!({"url": ear.url, "token": TOKEN})
}

/// Whether a text stands in a file below a folder.
fn stands(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return stands(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|some| some == text.as_bytes())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nudge_is_sent_once_without_content() {
    let (daemon, ear) = (Daemon::start().await, Ear::open(&[202]).await);
    daemon.create("s").await;
    send(&daemon, "t", "ask touch x", nudge(&ear)).await;
    let waiting = daemon.until("s", "t", "waiting").await;
    ear.heard_often(1).await;
    let ask = waiting["asks"][0]["permission"]["id"].as_str().unwrap();
    let reply = format!("/v1/sessions/s/permissions/{ask}/reply");
    daemon.post(&reply, json!({"reply": "once"})).await;
    daemon.until("s", "t", "done").await;
    ear.heard_often(2).await;
    // The next turn has none, and its end comes after whatever the first one might still say.
    daemon.send("s", "next", "say x").await;
    daemon.until("s", "next", "done").await;
    let word = (format!("Bearer {TOKEN}"), Bytes::new());
    assert_eq!(ear.heard(), [word.clone(), word]);
    assert!(stands(daemon.folder.path(), "touch x"), "the log is searched");
    assert!(!stands(daemon.folder.path(), TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn nudge_has_at_most_three_attempts() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let later = Ear::open(&[409, 503, 202]).await;
    send(&daemon, "t1", "say x", nudge(&later)).await;
    later.heard_often(3).await;
    let never = Ear::open(&[409]).await;
    send(&daemon, "t2", "say x", nudge(&never)).await;
    never.heard_often(3).await;
    let refuses = Ear::open(&[401]).await;
    send(&daemon, "t3", "say x", nudge(&refuses)).await;
    refuses.heard_often(1).await;
    // Three tries of one more take longer than a fourth of those before would.
    let last = Ear::open(&[409]).await;
    send(&daemon, "t4", "say x", nudge(&last)).await;
    last.heard_often(3).await;
    let heard = [&later, &never, &refuses].map(|ear| ear.heard().len());
    assert_eq!(heard, [3, 3, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_nudge_is_harmless() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    for (turn, nudge) in [
        ("t1", json!({"url": format!("http://127.0.0.1:{port}/nudge"), "token": TOKEN})),
        ("t2", json!({"url": "http://example.com/nudge", "token": TOKEN})),
        ("t3", json!({"url": "https://10.0.0.1/nudge", "token": TOKEN})),
        ("t4", json!({"url": "https://example.com/nudge", "token": "x".repeat(100_000)})),
        ("t5", json!({"where": "of a version to come", "key": TOKEN})),
        ("t6", json!(TOKEN)),
    ] {
        send(&daemon, turn, "say x", nudge).await;
        daemon.until("s", turn, "done").await;
    }
    assert!(!stands(daemon.folder.path(), TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_daemon_sends_no_old_nudges() {
    let (mut daemon, ear) = (Daemon::start().await, Ear::open(&[202]).await);
    daemon.create("s").await;
    send(&daemon, "cut", "ask touch x", json!(null)).await;
    daemon.until("s", "cut", "waiting").await;
    send(&daemon, "queued", "ask touch y", nudge(&ear)).await;
    daemon.signal("TERM");
    daemon.start_again().await;
    for (turn, text) in [("cut", "ask touch x"), ("queued", "ask touch y")] {
        daemon.until("s", turn, "lost").await;
        let again = send(&daemon, turn, text, nudge(&ear)).await;
        assert_eq!(again, "AlreadyKnown");
    }
    // It is no part of the prompt: with it or without, the prompt is the same.
    send(&daemon, "t", "ask touch z", json!(null)).await;
    daemon.until("s", "t", "waiting").await;
    let again = send(&daemon, "t", "ask touch z", nudge(&ear)).await;
    assert_eq!(again, "AlreadyKnown");
    let cancel = "/v1/sessions/s/turns/t/cancel";
    assert_eq!(daemon.post(cancel, json!({})).await.status, 204);
    daemon.until("s", "t", "done").await;
    ear.heard_often(1).await;
    daemon.send("s", "next", "say x").await;
    daemon.until("s", "next", "done").await;
    assert_eq!(ear.heard().len(), 1, "what has ended is not said again");
}
