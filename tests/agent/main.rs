//! A stand-in for OpenCode where a test needs more agents at once than a machine carries of the real one (6 s of
//! processor time and 450 MB each): the calls of its API that a plain turn takes, in its shapes of version 1.18.33.
//!
//! Promised: a prompt whose id is known is not run again, unless newer ones exist, and its time moves to now; the prompts of a
//! session run one after another; each asks the model of the server's configuration once and becomes one assistant message;
//! an abort ends what runs and what waits. Three prompts are for load and the bench, with a line of theirs: `at once: WORDS`
//! has been answered with these words when it is accepted, `quiet: SECONDS WORDS` is answered with them after so long, in which
//! nothing is heard of it, and `long: …` is very much work ([`Work::asked`]). Started as the real one is:
//! `opencode serve --hostname 127.0.0.1 --port N`. Deliberately absent: tools, permissions, questions, a password, and
//! state that survives the process.

mod long;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::long::{Piece, Run, Work};

/// As the real server's heartbeat.
const HEARTBEAT_MS: u64 = 10_000;
/// One answer of the model.
const MODEL_MS_MAX: u64 = 60_000;
/// Events that a slow listener may lag behind.
const EVENTS_MAX: usize = 256;
/// A long run waits for listeners who lag so far behind, and looks so often whether they still do.
const LAG_MAX: usize = 64;
const LAG_POLL_MS: u64 = 1;
/// A long run that nobody listens to begins after this.
const LISTENER_MS_MAX: u64 = 5_000;
/// Events between two looks whether a long run is ahead of its pace.
const EVENTS_AT_ONCE: u32 = 20;

struct Agent {
    client: reqwest::Client,
    /// Address of the model, which ends in `/v1/chat/completions`.
    model_url: String,
    events: broadcast::Sender<Value>,
    sessions: Mutex<BTreeMap<String, Session>>,
}

#[derive(Default)]
struct Session {
    info: Value,
    messages: Vec<Value>,
    /// Prompts that wait or run: message id, model, text.
    prompts: Vec<(String, String, String)>,
    /// The task that works on the prompts, to be aborted by a stop.
    run: Option<AbortHandle>,
}

impl Session {
    /// The messages are listed in the order of their times: this one's is now.
    fn moved_to_now(&mut self, message: &str) {
        if let Some(at) = self.place_of(message) {
            let mut moved = self.messages.remove(at);
            moved["info"]["time"]["created"] = now_ms().into();
            self.messages.push(moved);
        }
    }

    /// In the place of what stands there of it.
    fn keep(&mut self, message: Value) {
        let id = message["info"]["id"].as_str().unwrap_or_default();
        match self.place_of(id) {
            Some(at) => self.messages[at] = message,
            None => self.messages.push(message),
        }
    }

    fn place_of(&self, message: &str) -> Option<usize> {
        let is_it = |one: &Value| one["info"]["id"] == message;
        self.messages.iter().position(is_it)
    }

    /// Whether no prompt came after this one.
    fn is_newest(&self, message: &str) -> bool {
        let mut prompts = self.messages.iter().filter(|one| one["info"]["role"] == "user");
        prompts.next_back().is_some_and(|one| one["info"]["id"] == message)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let port = arguments
        .windows(2)
        .find(|pair| pair[0] == "--port")
        .and_then(|pair| pair[1].parse::<u16>().ok())
        .ok_or_else(|| std::io::Error::other("--port N is missing"))?;
    let config = std::env::var("OPENCODE_CONFIG_CONTENT").unwrap_or_default();
    let config: Value = serde_json::from_str(&config)?;
    let models = models(&config);
    let (events, _) = broadcast::channel(EVENTS_MAX);
    let agent = Arc::new(Agent {
        client: bobbin_tests::http::client(),
        model_url: model_url(&config)?,
        events,
        sessions: Mutex::default(),
    });
    let router = Router::new()
        .route("/global/health", get(health))
        .route("/event", get(listen))
        .route("/permission", get(async || Json(json!([]))))
        .route("/question", get(async || Json(json!([]))))
        .route("/config/providers", get(async || Json(models)))
        .route("/agent", get(async || Json(json!([{"name": "build", "mode": "primary"}]))))
        .route("/session", get(sessions).post(create))
        .route("/session/status", get(statuses))
        .route("/session/{session}", get(session))
        .route("/session/{session}/abort", post(abort))
        .route("/session/{session}/diff", get(async || Json(json!([]))))
        .route("/session/{session}/message", get(messages))
        .route("/session/{session}/message/{message}", get(message))
        .route("/session/{session}/prompt_async", post(prompt))
        .with_state(agent);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    // As the real one says it: who starts it on a free port waits for this line.
    let address = listener.local_addr()?;
    println!("opencode server listening on http://{address}");
    axum::serve(listener, router).await
}

/// The endpoint of the one provider that the configuration names.
fn model_url(config: &Value) -> std::io::Result<String> {
    let providers = config["provider"].as_object();
    providers
        .and_then(|providers| providers.values().next())
        .and_then(|provider| provider["options"]["baseURL"].as_str())
        .map(|base| format!("{}/chat/completions", base.trim_end_matches('/')))
        .ok_or_else(|| std::io::Error::other("the configuration names no endpoint"))
}

/// The models that the configuration names.
fn models(config: &Value) -> Value {
    let providers = config["provider"].as_object().into_iter().flatten();
    let one = |(id, provider): (&String, &Value)| json!({"id": id, "models": provider["models"]});
    json!({"providers": providers.map(one).collect::<Vec<_>>(), "default": {}})
}

impl Agent {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: &str, properties: Value) {
        // Nobody may be listening.
        let _ = self.events.send(
            json!({"id": "evt_1ffbd59b4001KSqMgyNtoPCtmG", "type": kind, "properties": properties}),
        );
    }

    /// Runs the prompts of a session until none waits.
    async fn run(self: Arc<Self>, id: String) {
        loop {
            let first =
                self.sessions().get(&id).and_then(|session| session.prompts.first().cloned());
            let Some((prompt, model, text)) = first else {
                self.tell("session.idle", json!({"sessionID": id}));
                return;
            };
            let created = now_ms();
            if let Some(work) = Work::asked(&text) {
                self.work(&id, &prompt, work).await;
            } else {
                let answer = match quiet(&text) {
                    Some((takes, words)) => {
                        let mut begun = assistant(&id, &prompt, created, Ok(String::new()));
                        begun["info"]["time"] = json!({"created": created});
                        begun["info"]["finish"] = Value::Null;
                        self.keep(&id, begun);
                        tokio::time::sleep(takes).await;
                        Ok(words)
                    }
                    None => self.ask(&id, &model, &text).await,
                };
                let message = assistant(&id, &prompt, created, answer);
                self.tell("message.updated", json!({"sessionID": id, "info": message["info"]}));
                self.keep(&id, message);
            }
            if let Some(session) = self.sessions().get_mut(&id) {
                session.prompts.remove(0);
            }
        }
    }

    fn keep(&self, session: &str, message: Value) {
        if let Some(session) = self.sessions().get_mut(session) {
            session.keep(message);
        }
    }

    /// Tells a long run, at its pace and at that of whoever listens.
    async fn work(&self, session: &str, prompt: &str, work: Work) {
        let nobody_after = Instant::now() + Duration::from_millis(LISTENER_MS_MAX);
        let look = Duration::from_millis(LAG_POLL_MS);
        while self.events.receiver_count() == 0 && Instant::now() < nobody_after {
            tokio::time::sleep(look).await;
        }
        let run = Run { session, prompt, began_ms: now_ms() };
        let (start, mut told) = (Instant::now(), 0_u32);
        for piece in run.steps(work).flatten() {
            let (kind, mut properties) = match piece {
                Piece::Message(message) => {
                    self.keep(session, message);
                    continue;
                }
                Piece::Event(kind, properties) => (kind, properties),
            };
            properties["sessionID"] = session.into();
            while self.events.len() >= LAG_MAX {
                tokio::time::sleep(look).await;
            }
            self.tell(kind, properties);
            told += 1;
            if told.is_multiple_of(EVENTS_AT_ONCE) {
                let due = Duration::from_secs(1) * told / work.events_a_second.max(1);
                tokio::time::sleep_until(start + due).await;
            }
        }
        let idle = json!({"sessionID": session, "status": {"type": "idle"}});
        self.tell("session.status", idle);
    }

    async fn ask(&self, session: &str, model: &str, text: &str) -> Result<String, String> {
        let body = json!({"model": model, "messages": [{"role": "user", "content": text}]});
        let sent = self
            .client
            .post(&self.model_url)
            .header("x-session-id", session)
            .timeout(Duration::from_millis(MODEL_MS_MAX))
            .json(&body)
            .send();
        let answer = sent.await.map_err(|error| error.to_string())?;
        let answer: Value = answer.json().await.map_err(|error| error.to_string())?;
        answer["choices"][0]["message"]["content"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| answer.to_string())
    }
}

/// What a line `quiet: SECONDS WORDS` asks for: how long it takes, and the answer.
fn quiet(text: &str) -> Option<(Duration, String)> {
    let asked = text.lines().find_map(|line| line.strip_prefix("quiet: "))?;
    let (seconds, words) = asked.split_once(' ')?;
    let takes = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some((takes, words.to_owned()))
}

fn assistant(session: &str, prompt: &str, created: u64, answer: Result<String, String>) -> Value {
    let id = format!("{prompt}-answer");
    let mut info = json!({
        "id": id, "sessionID": session, "role": "assistant", "parentID": prompt, "mode": "build", "cost": 0,
        "time": {"created": created, "completed": now_ms()}, "path": {"cwd": "/project", "root": "/"},
        "tokens": {"total": 120, "input": 100, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    });
    let part = |number: u32, kind: &str, text: &str| json!({"id": format!("{id}-{number}"), "sessionID": session, "messageID": id, "type": kind, "text": text});
    let parts = match answer {
        Ok(text) => {
            info["finish"] = "stop".into();
            json!([part(0, "step-start", ""), part(1, "text", &text)])
        }
        Err(why) => {
            info["error"] = json!({"name": "APIError", "data": {"message": why}});
            json!([])
        }
    };
    json!({"info": info, "parts": parts})
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn missing(what: &str, id: &str) -> Response {
    let body =
        json!({"name": "NotFoundError", "data": {"message": format!("{what} not found: {id}")}});
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

async fn health() -> Json<Value> {
    Json(json!({"healthy": true, "version": bobbin_agent::opencode::VERSION}))
}

async fn listen(
    State(agent): State<Arc<Agent>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let connected = json!({"type": "server.connected", "properties": {}});
    let told = stream::unfold(agent.events.subscribe(), |mut events| async move {
        let beat = Duration::from_millis(HEARTBEAT_MS);
        let event = match tokio::time::timeout(beat, events.recv()).await {
            Ok(Ok(event)) => event,
            Ok(Err(broadcast::error::RecvError::Closed)) => return None,
            // Who was too slow looks anew, as after a heartbeat.
            Ok(Err(broadcast::error::RecvError::Lagged(_))) | Err(_) => {
                json!({"type": "server.heartbeat", "properties": {}})
            }
        };
        Some((event, events))
    });
    let all = stream::once(async { connected }).chain(told);
    Sse::new(all.map(|event| Ok(Event::default().data(event.to_string()))))
}

async fn sessions(
    State(agent): State<Arc<Agent>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Json<Value> {
    let search = query.get("search").map_or("", String::as_str);
    let sessions = agent.sessions();
    let fits = |info: &&Value| info["title"].as_str().is_some_and(|title| title.contains(search));
    Json(sessions.values().map(|session| &session.info).filter(fits).cloned().collect())
}

async fn create(State(agent): State<Arc<Agent>>, Json(body): Json<Value>) -> Json<Value> {
    let mut sessions = agent.sessions();
    let now_ms = now_ms();
    // As the real ones, in order of time; the number tells apart what is made within a millisecond.
    let id = format!("ses_{now_ms:x}{:04x}{}", sessions.len(), std::process::id());
    let info = json!({
        "id": id, "title": body["title"], "metadata": body["metadata"], "version": bobbin_agent::opencode::VERSION,
        "time": {"created": now_ms, "updated": now_ms},
    });
    let session = Session { info: info.clone(), ..Session::default() };
    sessions.insert(id, session);
    Json(info)
}

async fn session(State(agent): State<Arc<Agent>>, Path(id): Path<String>) -> Response {
    match agent.sessions().get(&id) {
        Some(session) => Json(session.info.clone()).into_response(),
        None => missing("Session", &id),
    }
}

async fn statuses(State(agent): State<Arc<Agent>>) -> Json<Value> {
    let sessions = agent.sessions();
    let busy = sessions.iter().filter(|(_, session)| !session.prompts.is_empty());
    Json(busy.map(|(id, _)| (id.clone(), json!({"type": "busy"}))).collect())
}

async fn messages(
    State(agent): State<Arc<Agent>>,
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let sessions = agent.sessions();
    let Some(session) = sessions.get(&id) else {
        return missing("Session", &id);
    };
    let messages = &session.messages;
    let before = query.get("before");
    let end = before.and_then(|cursor| session.place_of(cursor));
    let end = end.unwrap_or(messages.len());
    let limit = query.get("limit").and_then(|limit| limit.parse().ok());
    let start = end.saturating_sub(limit.unwrap_or(usize::MAX));
    let older = messages[start..end].first().filter(|_| start > 0);
    let cursor = older.and_then(|oldest| oldest["info"]["id"].as_str());
    let cursor = cursor.map(|id| [("x-next-cursor", id.to_owned())]);
    let cursor = AppendHeaders(cursor.into_iter().flatten());
    (cursor, Json(messages[start..end].to_vec())).into_response()
}

async fn message(
    State(agent): State<Arc<Agent>>,
    Path((id, message)): Path<(String, String)>,
) -> Response {
    let sessions = agent.sessions();
    let Some(session) = sessions.get(&id) else {
        return missing("Session", &id);
    };
    let found = session.messages.iter().find(|one| one["info"]["id"] == message.as_str());
    match found {
        Some(found) => Json(found.clone()).into_response(),
        None => missing("Message", &message),
    }
}

async fn prompt(
    State(agent): State<Arc<Agent>>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = text(&body["messageID"]);
    let words = text(&body["parts"][0]["text"]);
    let at_once = words.lines().find_map(|line| line.strip_prefix("at once: "));
    let mut sessions = agent.sessions();
    let Some(session) = sessions.get_mut(&id) else {
        return missing("Session", &id);
    };
    let is_known = session.place_of(&message).is_some();
    if is_known {
        let is_newest = session.is_newest(&message);
        session.moved_to_now(&message);
        if is_newest {
            return StatusCode::NO_CONTENT.into_response();
        }
    } else {
        let mut parts = body["parts"].clone();
        for part in parts.as_array_mut().into_iter().flatten() {
            part["sessionID"] = id.as_str().into();
            part["messageID"] = message.as_str().into();
        }
        let info =
            json!({"id": message, "sessionID": id, "role": "user", "time": {"created": now_ms()}});
        session.messages.push(json!({"info": info, "parts": parts}));
    }
    if let Some(answer) = at_once {
        let message = assistant(&id, &message, now_ms(), Ok(answer.to_owned()));
        session.messages.push(message);
        return StatusCode::NO_CONTENT.into_response();
    }
    session.prompts.push((message, text(&body["model"]["modelID"]), words));
    if session.prompts.len() == 1 {
        let run = tokio::spawn(Arc::clone(&agent).run(id));
        session.run = Some(run.abort_handle());
    }
    StatusCode::NO_CONTENT.into_response()
}

/// Ends the run and all that waits for it; of a session that does nothing, or is not known, it is true as well.
async fn abort(State(agent): State<Arc<Agent>>, Path(id): Path<String>) -> Json<bool> {
    let mut sessions = agent.sessions();
    if let Some(session) = sessions.get_mut(&id) {
        if let Some(run) = session.run.take() {
            run.abort();
        }
        let stopped = std::mem::take(&mut session.prompts);
        if let Some((prompt, ..)) = stopped.last() {
            let mut message = assistant(&id, prompt, now_ms(), Ok(String::new()));
            message["parts"] = json!([]);
            message["info"]["error"] =
                json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
            session.keep(message);
            agent.tell("session.idle", json!({"sessionID": id}));
        }
    }
    Json(true)
}
