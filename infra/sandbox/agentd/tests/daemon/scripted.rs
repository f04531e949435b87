//! Agents played by scripts: what the real ones cannot be made to do at the right moment.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Json, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::world::Daemon;

/// A daemon that finds this script as the program of an agent, and the script's folder.
async fn scripted(agent: &str, script: &str) -> (Daemon, TempDir) {
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join(agent);
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    (Daemon::start_with(&[], &[("PATH", path.as_str())]).await, bin)
}

async fn reply(daemon: &Daemon, turn: &str, reply: &str) {
    let waiting = daemon.until("s", turn, "waiting").await;
    let ask = waiting["asks"][0]["permission"]["id"].as_str().unwrap();
    let path = format!("/v1/sessions/s/permissions/{ask}/reply");
    assert_eq!(daemon.post(&path, json!({"reply": reply})).await.status, 204);
}

/// In each turn a subagent's thread ends first; then it asks, and works on or exits by the answer.
const CODEX: &str = r#"#!/bin/sh
id=2
ended() {
  printf '{"method":"turn/completed","params":{"threadId":"%s","turn":{"id":"%s-%s","items":[],"status":"completed"}}}\n' "$1" "$1" "$id"
}
while read -r line; do
  case $line in
    *'"initialize"'*) echo '{"id":1,"result":{}}' ;;
    *'"thread/start"'*) echo '{"id":2,"result":{"thread":{"id":"own"}}}' ;;
    *'"turn/start"'*)
      id=$((id + 1))
      printf '{"id":%s,"result":{"turn":{"id":"own-%s"}}}\n' "$id" "$id"
      ended child
      printf '{"id":%s,"method":"item/commandExecution/requestApproval","params":{"threadId":"own","turnId":"own-%s","itemId":"item","command":"ls"}}\n' "$id" "$id"
      ;;
    *'"accept"'*)
      echo late >late.txt
      ended own
      ;;
    *'"decline"'*) exit 3 ;;
  esac
done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn ended_subagent_leaves_turn_open() {
    let (daemon, _bin) = scripted("codex", CODEX).await;
    daemon.create_with("s", json!({"agent": "codex"})).await;
    for (turn, answer, state) in [("late", "once", "done"), ("cut", "reject", "failed")] {
        daemon.send("s", turn, "work").await;
        reply(&daemon, turn, answer).await;
        daemon.until("s", turn, state).await;
        let events = daemon.events("s").await;
        let ends = events
            .iter()
            .filter(|event| event["turn"] == turn && event["data"].get("turnEnded").is_some());
        let sessions: Vec<&str> = ends.filter_map(|end| end["agentSessionId"].as_str()).collect();
        assert_eq!(sessions, ["child", "own"], "{turn}");
    }
    let changes = daemon.get("/v1/sessions/s/turns/late/changes").await;
    assert_eq!(changes["files"][0]["file"], "late.txt", "{changes}");
}

/// OpenCode's server with one session, as far as a turn with a permission needs it.
#[derive(Default)]
struct PlayedServer {
    stream: Option<UnboundedSender<String>>,
    streams: u32,
    sessions: u32,
    /// Of its session.
    directory: String,
    /// Paths that were called: the first call of each is not answered.
    called: BTreeSet<String>,
    is_busy: bool,
    has_prompt: bool,
}

impl PlayedServer {
    fn say(&self, kind: &str, properties: &Value) {
        let event = json!({"type": kind, "properties": properties});
        if let Some(stream) = &self.stream {
            // Nobody may listen any more.
            let _ = stream.send(format!("data: {event}\n\n"));
        }
    }

    fn open(&mut self) -> Response {
        self.streams += 1;
        if [1, 4].contains(&self.streams) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        let (sender, receiver) = unbounded_channel();
        self.stream = Some(sender);
        self.say("server.connected", &json!({}));
        let events = futures::stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((Ok::<String, Infallible>(event), receiver))
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
    }

    fn answer(&mut self, method: &Method, path: &str) -> Response {
        let message = |role: &str| {
            let time = json!({"created": 1, "completed": 2});
            let head = json!({"id": "msg_1", "role": role, "time": time, "finish": "stop"});
            json!({"info": head, "parts": []})
        };
        let answer = match path {
            "/global/health" => json!({"healthy": true, "version": "0"}),
            "/session" if *method == Method::POST => {
                // The first one is made, and its answer is lost.
                self.sessions += 1;
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            "/session" if self.sessions == 0 => json!([]),
            "/session" => json!([{
                "id": "ses_1", "title": "s", "directory": self.directory, "metadata": {"bobbin": "s"},
            }]),
            "/permission" | "/question" => json!([]),
            "/event" => return self.open(),
            _ if self.called.insert(path.to_owned()) => {
                // The next look need not wait for its time.
                self.say("session.idle", &json!({"sessionID": "ses_1"}));
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            "/session/ses_1/prompt_async" => {
                (self.is_busy, self.has_prompt) = (true, true);
                let ask = json!({
                    "id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["ls"],
                    "always": [],
                });
                self.say("permission.asked", &ask);
                return StatusCode::NO_CONTENT.into_response();
            }
            "/session/status" if self.is_busy => json!({"ses_1": {"type": "busy"}}),
            "/session/status" => json!({}),
            "/permission/per_1/reply" => {
                self.is_busy = false;
                self.stream = None;
                json!(true)
            }
            "/session/ses_1/message" => json!([message("assistant")]),
            _ if self.has_prompt => message("user"),
            _ => {
                let error = json!({"name": "NotFoundError", "data": {"message": "no message"}});
                return (StatusCode::NOT_FOUND, Json(error)).into_response();
            }
        };
        Json(answer).into_response()
    }
}

async fn answer(
    State(server): State<Arc<Mutex<PlayedServer>>>,
    method: Method,
    uri: Uri,
) -> Response {
    server.lock().unwrap().answer(&method, uri.path())
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_opencode_calls_are_repeated() {
    let server: Arc<Mutex<PlayedServer>> = Arc::default();
    let router = Router::new().fallback(answer).with_state(server.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let script = format!("#!/bin/sh\necho 'opencode server listening on {base}'\nexec sleep 600\n");
    let (daemon, _bin) = scripted("opencode", &script).await;
    server.lock().unwrap().directory =
        daemon.project().canonicalize().unwrap().display().to_string();
    daemon.create_with("s", json!({"agent": "opencode"})).await;
    daemon.send("s", "t", "work").await;
    reply(&daemon, "t", "once").await;
    let ended = daemon.until("s", "t", "done").await;
    assert_eq!(ended["outcome"], "done", "{ended}");
    assert_eq!(server.lock().unwrap().sessions, 1, "a session is created once");
}
