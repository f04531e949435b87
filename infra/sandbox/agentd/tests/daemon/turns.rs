//! Turns: once each, in order, answered, cancelled, failed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bobbin_http::Method;
use serde_json::json;

use crate::world::{Daemon, TOKEN, WAIT_MAX, http, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn resent_turn_runs_once() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let sends = futures::future::join_all((0..8).map(|_| daemon.send("s", "t", "say once"))).await;
    assert_eq!(sends.iter().filter(|outcome| *outcome == "Accepted").count(), 1, "{sends:?}");
    assert_eq!(sends.iter().filter(|outcome| *outcome == "AlreadyKnown").count(), 7);
    daemon.until("s", "t", "done").await;
    assert_eq!(daemon.send("s", "t", "say once").await, "AlreadyKnown");
    daemon.send("s", "next", "say next").await;
    daemon.until("s", "next", "done").await;
    assert_eq!(daemon.prompts(), ["say once", "say next"]);
    let other =
        daemon.post("/v1/sessions/s/messages", json!({"message": "say other", "turn": "t"})).await;
    assert_eq!(
        (other.status, &other.body["type"]),
        (409, &json!("urn:sandbox-agent:error:conflict"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_clients_turns_are_serialised() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let client = async |name: &str| {
        for number in 0..5 {
            daemon.send("s", &format!("{name}{number}"), &format!("say {name}{number}")).await;
        }
    };
    tokio::join!(client("a"), client("b"));
    for turn in ["a4", "b4"] {
        daemon.until("s", turn, "done").await;
    }
    let prompts = daemon.prompts();
    for name in ["a", "b"] {
        let own: Vec<&String> =
            prompts.iter().filter(|text| text.starts_with(&format!("say {name}"))).collect();
        assert_eq!(
            own,
            (0..5)
                .map(|number| format!("say {name}{number}"))
                .collect::<Vec<_>>()
                .iter()
                .collect::<Vec<_>>()
        );
    }
    let events = daemon.events("s").await;
    let ids: Vec<u64> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    // What is said in a turn comes before its end, and that before the next turn.
    let mut order: Vec<&str> = events.iter().filter_map(|event| event["turn"].as_str()).collect();
    order.dedup();
    assert_eq!(order.len(), 10, "{order:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_request_never_duplicates_turn() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let body = json!({"message": "say x", "turn": "T"}).to_string();
    let length = body.len();
    let request = format!(
        "POST /v1/sessions/s/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut turns = Vec::new();
    for cut in (0..=request.len()).step_by(7).chain([request.len() - 1, request.len()]) {
        // The same length, whatever the cut.
        let turn = ('A'..='Z')
            .chain('a'..='z')
            .nth(turns.len())
            .expect("a letter for each cut")
            .to_string();
        let text = request.replace("\"turn\":\"T\"", &format!("\"turn\":{}", json!(turn)));
        let mut connection = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
        connection.write_all(&text.as_bytes()[..cut.min(text.len())]).unwrap();
        drop(connection);
        turns.push(turn);
    }
    for turn in &turns {
        let answer =
            daemon.post("/v1/sessions/s/messages", json!({"message": "say x", "turn": turn})).await;
        if answer.status == 409 {
            // As many wait as may: the rest later.
            wait_for("the queue to empty", async || {
                daemon
                    .post("/v1/sessions/s/messages", json!({"message": "say x", "turn": turn}))
                    .await
                    .status
                    == 204
            })
            .await;
        }
        daemon.until("s", turn, "done").await;
    }
    assert_eq!(daemon.prompts().len(), turns.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_answer_reaches_agent_once() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    for (turn, reply, chosen) in
        [("t1", "once", "yes"), ("t2", "always", "ever"), ("t3", "reject", "no")]
    {
        daemon.send("s", turn, "ask touch x").await;
        let waiting = daemon.until("s", turn, "waiting").await;
        let ask = &waiting["asks"][0]["permission"];
        assert_eq!(ask["patterns"], json!(["touch x"]));
        let path = format!("/v1/sessions/s/permissions/{}/reply", ask["id"].as_str().unwrap());
        let answers = tokio::join!(
            daemon.post(&path, json!({"reply": reply})),
            daemon.post(&path, json!({"reply": reply}))
        );
        let mut statuses = [answers.0.status, answers.1.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 404]);
        daemon.until("s", turn, "done").await;
        assert_eq!(daemon.said("s", turn).await, format!("chosen: {chosen}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn form_answers_reach_own_fields() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let form = json!({
        "branch": {"type": "string", "enum": ["main", "dev"]},
        "branch_name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "sure": {"type": "boolean"},
        "why_note": {"type": "string"},
    });
    let cases = [
        (
            "chosen",
            json!([["main"], ["5"], ["0.5"], ["true"], ["5"]]),
            json!({"branch": "main", "count": 5, "ratio": 0.5, "sure": true, "why_note": "5"}),
        ),
        (
            "free",
            json!([["mine"], [], [], ["false"], ["because"]]),
            json!({"branch_name": "mine", "sure": false, "why_note": "because"}),
        ),
    ];
    for (turn, answers, content) in cases {
        daemon.send("s", turn, &format!("form {form}")).await;
        let waiting = daemon.until("s", turn, "waiting").await;
        let ask = waiting["asks"][0]["question"]["id"].as_str().unwrap();
        let path = format!("/v1/sessions/s/questions/{ask}/reply");
        assert_eq!(daemon.post(&path, json!({"answers": answers})).await.status, 204);
        daemon.until("s", turn, "done").await;
        let expected = json!({"action": "accept", "content": content});
        assert_eq!(daemon.said("s", turn).await, format!("answered: {expected}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bypass_mode_asks_nobody() {
    let daemon = Daemon::start().await;
    daemon.create_with("s", json!({"agent": "standin", "permissionMode": "bypass"})).await;
    daemon.send("s", "t", "ask touch x").await;
    daemon.until("s", "t", "done").await;
    assert_eq!(daemon.said("s", "t").await, "chosen: yes");
}

#[tokio::test(flavor = "multi_thread")]
async fn next_turn_runs_after_cancel() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "t1", "hang").await;
    daemon.send("s", "t2", "say never").await;
    daemon.send("s", "t3", "ask x").await;
    wait_for("the agent to hang", async || daemon.said("s", "t1").await == "hanging").await;
    for turn in ["t2", "t1", "t1"] {
        assert_eq!(
            daemon.post(&format!("/v1/sessions/s/turns/{turn}/cancel"), json!({})).await.status,
            204
        );
    }
    for turn in ["t1", "t2"] {
        let ended = daemon.until("s", turn, "done").await;
        assert_eq!(ended["outcome"], "cancelled", "{ended}");
    }
    daemon.until("s", "t3", "waiting").await;
    assert_eq!(daemon.post("/v1/sessions/s/cancel", json!({})).await.status, 204);
    daemon.until("s", "t3", "done").await;
    assert_eq!(daemon.said("s", "t3").await, "chosen: nothing");
    assert_eq!(daemon.prompts(), ["hang", "ask x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn next_turn_replaces_deaf_agent() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "t1", "deaf").await;
    daemon.until("s", "t1", "done").await;
    // More than a pipe takes.
    daemon.send("s", "t2", &format!("say {}", "x".repeat(1_000_000))).await;
    assert_eq!(daemon.post("/v1/sessions/s/turns/t2/cancel", json!({})).await.status, 204);
    assert_eq!(daemon.until("s", "t2", "done").await["outcome"], "cancelled");
    daemon.send("s", "t3", "say after").await;
    daemon.until("s", "t3", "done").await;
    assert_eq!(daemon.said("s", "t3").await, "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn next_turn_runs_after_failure() {
    let daemon = Daemon::start().await;
    let first = daemon.create("s").await["agentSessionId"].clone();
    daemon.send("s", "t1", "fail Session not found").await;
    let failed = daemon.until("s", "t1", "failed").await;
    assert_eq!(failed["message"], "the model is not there: Session not found");
    daemon.send("s", "t2", "say before\ndie").await;
    let failed = daemon.until("s", "t2", "failed").await;
    assert_eq!(
        (&failed["reason"], &failed["message"]),
        (&json!("agent_process_exited"), &json!("standin ended"))
    );
    daemon.send("s", "t3", "say after").await;
    daemon.until("s", "t3", "done").await;
    assert_eq!(daemon.said("s", "t3").await, "after");
    // The agent's own session was taken up.
    assert_eq!(daemon.get("/v1/sessions").await["sessions"][0]["agentSessionId"], first);
    let events = daemon.events("s").await;
    let ends: Vec<_> =
        events.iter().filter(|event| event["data"].get("turnEnded").is_some()).collect();
    assert_eq!(
        ends.iter().map(|end| end["turn"].as_str().unwrap()).collect::<Vec<_>>(),
        ["t1", "t2", "t3"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_session_keeps_only_events() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "t1", "hang").await;
    wait_for("the agent to hang", async || daemon.said("s", "t1").await == "hanging").await;
    assert_eq!(daemon.post("/v1/sessions/s/terminate", json!({})).await.status, 204);
    assert_eq!(daemon.turn("s", "t1").await["outcome"], "cancelled");
    let refused = daemon.post("/v1/sessions/s/messages", json!({"message": "x"})).await;
    assert_eq!(refused.status, 409);
    assert_eq!(daemon.get("/v1/sessions").await["sessions"][0]["ended"], true);
    assert_eq!(daemon.said("s", "t1").await, "hanging");
}

#[tokio::test(flavor = "multi_thread")]
async fn paged_and_streamed_events_agree() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let none = daemon.events("s").await.len() as u64;
    let path = format!("/v1/sessions/s/events?offset={none}&wait=60000");
    let poll = daemon.get(&path);
    let begun = Instant::now();
    let (page, _) = tokio::join!(poll, daemon.send("s", "t", "say one\nsay two\nsay three"));
    assert!(!page["events"].as_array().unwrap().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(30));
    daemon.until("s", "t", "done").await;
    let events = daemon.events("s").await;
    let two = daemon.get("/v1/sessions/s/events?offset=1&limit=2").await;
    assert_eq!(two["events"], json!(events[1..3]));
    assert_eq!(two["hasMore"], true);
    for offset in [0, 2] {
        let path = daemon.url(&format!("/v1/sessions/s/events/sse?offset={offset}"));
        let request = http().request(Method::GET, &path).unwrap().bearer_auth(TOKEN);
        let mut response = http().open(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut sse = bobbin_agent::Sse::default();
        let mut streamed: Vec<serde_json::Value> = Vec::new();
        while streamed.len() < events.len() - offset {
            let bytes = response.chunk().await.unwrap().expect("the stream goes on");
            streamed.extend(
                sse.push(&bytes).unwrap().iter().map(|text| serde_json::from_str(text).unwrap()),
            );
        }
        assert_eq!(streamed, events[offset..]);
    }
}

/// More than the daemon keeps open at once.
const STRANGERS: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn half_open_requests_block_nobody() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let url = daemon.url("/v1/sessions/s/events/sse");
    let request = http().request(Method::GET, &url).unwrap();
    let request = request.bearer_auth(TOKEN).timeout(2 * WAIT_MAX);
    let mut known = http().open(request).await.unwrap();
    let strangers: Vec<TcpStream> = (0..STRANGERS)
        .map(|_| {
            let mut stranger = TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
            stranger.write_all(b"GET /v1/health HTTP/1.1\r\nhost:").unwrap();
            stranger
        })
        .collect();
    assert_eq!(daemon.get("/v1/health").await, json!({"status": "ok"}));
    let is_closed = |mut stranger: &TcpStream| {
        stranger.set_nonblocking(true).unwrap();
        !matches!(stranger.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    // The oldest ones gave way at once, and the others by their time.
    let gave_way = strangers.iter().filter(|one| is_closed(one)).count();
    assert!((1..STRANGERS).contains(&gave_way), "{gave_way}");
    wait_for("the others to be closed", async || strangers.iter().all(is_closed)).await;
    daemon.send("s", "t", "say hello").await;
    let mut heard = String::new();
    while !heard.contains("hello") {
        let chunk = known.chunk().await.expect("who has the token stays");
        let chunk = chunk.expect("the stream goes on");
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_line_keeps_turn_running() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    let lines = "noise warning: café\nlatin café \nlong 17000000\nsay still here";
    daemon.send("s", "t", lines).await;
    daemon.until("s", "t", "done").await;
    assert_eq!(daemon.said("s", "t").await, "caf\u{fffd} still here");
    let events = daemon.events("s").await;
    let unread: Vec<String> = events
        .iter()
        .filter_map(|event| event["data"]["message"]["error"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(unread.len(), 2, "{unread:?}");
    assert!(unread[1].contains("longer than"), "{unread:?}");
    let session = daemon.get("/v1/sessions").await;
    daemon.send("s", "next", "say next").await;
    daemon.until("s", "next", "done").await;
    let after = daemon.get("/v1/sessions").await;
    let own = |sessions: &serde_json::Value| sessions["sessions"][0]["agentSessionId"].clone();
    assert_eq!(own(&after), own(&session), "the agent is the same process");
}
