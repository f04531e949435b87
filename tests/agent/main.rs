//! A stand-in for OpenCode in tests that are not about the agent: the real one takes 8 s of processor time and 450 MB
//! to start. It has the API calls of a turn, in the recorded shapes of version 1.18.33. The tests that it serves by day
//! use the real one every night, so that nothing is proven by the stand-in alone.
//!
//! Promised: a prompt whose id is known is not run again once it has its answer or is being worked on, unless newer
//! ones exist, and its time moves to now; the prompts of a session run one after another; each asks the model of the
//! server's configuration, and does what it calls for: commands, files, a plan, questions, with the permission that a
//! place outside of the project needs; what a run changed is told as the real one tells it; an abort ends what runs and
//! what waits; sessions survive the process. Three prompts are for load and the bench, with a line of theirs: `at once:
//! WORDS` has been answered with these words when it is accepted, `quiet: SECONDS WORDS` is answered with them after so
//! long, in which nothing is heard of it, and `long: …` with three numbers is very much work ([`Work::asked`]). Started
//! as the real one is: `opencode serve --hostname 127.0.0.1 --port N`. Deliberately absent: a password, keys of the
//! model's, asking a model that failed once more, compaction, subagents.

mod long;
mod session;
mod snapshots;
mod tools;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot};
use tokio::time::Instant;

use crate::long::{Piece, Run, Work};
use crate::session::{Prompt, Session, Store, aborted};
use crate::turn::Reply;

/// As the real server's heartbeat.
const HEARTBEAT_MS: u64 = 10_000;
/// Events that a slow listener may lag behind.
const EVENTS_MAX: usize = 256;
/// A long run waits for listeners that lag this far behind, and checks this often whether they still do.
const LAG_MAX: usize = 64;
const LAG_POLL_MS: u64 = 1;
/// A run that nobody listens to begins after this.
const LISTENER_MS_MAX: u64 = 5_000;
/// Events between two checks whether a long run is ahead of its pace.
const EVENTS_AT_ONCE: u32 = 20;

struct Agent {
    client: reqwest::Client,
    /// Address of the model, which ends in `/v1/chat/completions`.
    model_url: String,
    /// The folder that calls use by default.
    directory: PathBuf,
    /// The folder of its persistent state.
    data: Option<PathBuf>,
    store: Store,
    events: broadcast::Sender<Value>,
    sessions: Mutex<BTreeMap<String, Session>>,
    /// By their ids. After an abort some stay for ever, as they do in the real one.
    asks: Mutex<BTreeMap<String, Ask>>,
    /// Patterns that somebody has allowed for good.
    allowed: Mutex<BTreeSet<String>>,
}

/// An open question or permission.
struct Ask {
    kind: String,
    told: Value,
    reply: Option<oneshot::Sender<Reply>>,
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
    let data = data();
    let log = data.as_ref().map(|data| data.join("log"));
    let log = log.filter(|log| std::fs::create_dir_all(log).is_ok());
    let store = Store::below(data.as_deref());
    let agent = Arc::new(Agent {
        client: bobbin_tests::http::client(),
        model_url: model_url(&config)?,
        directory: std::env::current_dir()?,
        data,
        sessions: Mutex::new(store.read()),
        store,
        events,
        asks: Mutex::default(),
        allowed: Mutex::default(),
    });
    let router = Router::new()
        .route("/global/health", get(health))
        .route("/event", get(listen))
        .route("/path", get(path))
        .route("/permission", get(permissions))
        .route("/permission/{ask}/reply", post(reply_permission))
        .route("/question", get(questions))
        .route("/question/{ask}/reply", post(reply_question))
        .route("/question/{ask}/reject", post(reject_question))
        .route("/config/providers", get(async || Json(models)))
        .route("/agent", get(agents))
        .route("/session", get(sessions).post(create))
        .route("/session/status", get(statuses))
        .route("/session/{session}", get(session))
        .route("/session/{session}/abort", post(abort))
        .route("/session/{session}/diff", get(diff))
        .route("/session/{session}/message", get(messages))
        .route("/session/{session}/message/{message}", get(message))
        .route("/session/{session}/prompt_async", post(prompt))
        .layer(middleware::from_fn(move |request, next| logged(log.clone(), request, next)))
        .with_state(agent);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    // As the real one says it: who starts it on a free port waits for this line.
    let address = listener.local_addr()?;
    println!("opencode server listening on http://{address}");
    axum::serve(listener, router).await
}

/// The folder of the real one's database and logs.
fn data() -> Option<PathBuf> {
    let own = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let data = own("XDG_DATA_HOME").or_else(|| Some(own("HOME")?.join(".local/share")));
    data.map(|data| data.join("opencode"))
}

/// Writes a line of the log, a file a start, as the real one does of each call.
async fn logged(folder: Option<PathBuf>, request: Request, next: Next) -> Response {
    if let Some(folder) = folder {
        let line = format!(
            "timestamp={} level=INFO service=server method={} path={} request\n",
            now_ms(),
            request.method(),
            request.uri().path()
        );
        let file = folder.join(format!("{}.log", std::process::id()));
        let log = std::fs::File::options().create(true).append(true).open(file);
        // A disk that is full costs the line.
        let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
    }
    next.run(request).await
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
            let Some(prompt) = first else {
                self.tell("session.status", json!({"sessionID": id, "status": {"type": "idle"}}));
                self.tell("session.idle", json!({"sessionID": id}));
                return;
            };
            if let Some(work) = Work::asked(&prompt.text) {
                self.work(&id, &prompt.id, work).await;
            } else if let Some((takes, words)) = quiet(&prompt.text) {
                let created = now_ms();
                let mut begun = assistant(&id, &prompt.id, created, Ok(String::new()));
                begun["info"]["time"] = json!({"created": created});
                begun["info"]["finish"] = Value::Null;
                self.keep(&id, begun);
                tokio::time::sleep(takes).await;
                let message = assistant(&id, &prompt.id, created, Ok(words));
                self.tell("message.updated", json!({"sessionID": id, "info": message["info"]}));
                self.keep(&id, message);
            } else {
                self.follow(&id, &prompt).await;
            }
            if let Some(session) = self.sessions().get_mut(&id) {
                session.prompts.remove(0);
            }
            self.save();
        }
    }

    /// Keeps the sessions as they are now.
    fn save(&self) {
        self.store.write(&self.sessions());
    }

    fn asks(&self) -> MutexGuard<'_, BTreeMap<String, Ask>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an ask down, and answers it with its id.
    fn ask(&self, kind: &str, mut told: Value, reply: oneshot::Sender<Reply>) -> Value {
        let mut asks = self.asks();
        let prefix = if kind == "permission" { "per" } else { "que" };
        let id = format!("{prefix}_{:x}{:04x}{}", now_ms(), asks.len(), std::process::id());
        told["id"] = id.as_str().into();
        asks.insert(id, Ask { kind: kind.to_owned(), told: told.clone(), reply: Some(reply) });
        told
    }

    /// The open asks of a kind, as their events showed them.
    fn asked(&self, kind: &str) -> Json<Value> {
        let asks = self.asks();
        let asks = asks.values().filter(|ask| ask.kind == kind);
        Json(asks.map(|ask| ask.told.clone()).collect())
    }

    /// Settles an ask, and tells that it is; nobody may wait for it any more.
    fn settle(&self, id: &str, event: &str, mut more: Value, reply: Reply) -> Response {
        let settled = self.asks().remove(id);
        let Some(Ask { told, reply: Some(waits), .. }) = settled else {
            return missing("Request", id);
        };
        more["sessionID"] = told["sessionID"].clone();
        more["requestID"] = id.into();
        self.tell(event, more);
        // A run that was stopped waits for nothing.
        let _ = waits.send(reply);
        Json(true).into_response()
    }

    fn is_allowed(&self, pattern: &str) -> bool {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(pattern)
    }

    fn allow(&self, pattern: String) {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(pattern);
    }

    fn keep(&self, session: &str, message: Value) {
        if let Some(session) = self.sessions().get_mut(session) {
            session.keep(message);
        }
    }

    /// Waits for somebody who listens.
    async fn heard(&self, look: Duration) {
        let nobody_after = Instant::now() + Duration::from_millis(LISTENER_MS_MAX);
        while self.events.receiver_count() == 0 && Instant::now() < nobody_after {
            tokio::time::sleep(look).await;
        }
    }

    /// Runs a long run, at its pace and that of its listeners.
    async fn work(&self, session: &str, prompt: &str, work: Work) {
        let look = Duration::from_millis(LAG_POLL_MS);
        self.heard(look).await;
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
}

/// A line `quiet: SECONDS WORDS`: how long it takes, and the answer.
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
            // A listener that was too slow reads again, as after a heartbeat.
            Ok(Err(broadcast::error::RecvError::Lagged(_))) | Err(_) => {
                json!({"type": "server.heartbeat", "properties": {}})
            }
        };
        Some((event, events))
    });
    let all = stream::once(async { connected }).chain(told);
    Sse::new(all.map(|event| Ok(Event::default().data(event.to_string()))))
}

async fn agents() -> Json<Value> {
    let agent = |(name, mode): (&str, &str)| json!({"name": name, "mode": mode});
    Json([("build", "primary"), ("plan", "primary"), ("general", "subagent")].map(agent).into())
}

async fn path(State(agent): State<Arc<Agent>>) -> Json<Value> {
    Json(json!({"directory": agent.directory}))
}

async fn permissions(State(agent): State<Arc<Agent>>) -> Json<Value> {
    agent.asked("permission")
}

async fn questions(State(agent): State<Arc<Agent>>) -> Json<Value> {
    agent.asked("question")
}

async fn reply_permission(
    State(agent): State<Arc<Agent>>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let reply = body["reply"].as_str().unwrap_or_default().to_owned();
    let told = json!({"reply": reply});
    agent.settle(&id, "permission.replied", told, Reply::Permission(reply))
}

async fn reply_question(
    State(agent): State<Arc<Agent>>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let answers = serde_json::from_value(body["answers"].clone()).unwrap_or_default();
    let told = json!({"answers": body["answers"]});
    agent.settle(&id, "question.replied", told, Reply::Answers(Some(answers)))
}

async fn reject_question(State(agent): State<Arc<Agent>>, Path(id): Path<String>) -> Response {
    agent.settle(&id, "question.rejected", json!({}), Reply::Answers(None))
}

async fn diff(
    State(agent): State<Arc<Agent>>,
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let sessions = agent.sessions();
    let Some(session) = sessions.get(&id) else {
        return missing("Session", &id);
    };
    let sum = query.get("messageID").and_then(|prompt| session.changed.get(prompt));
    Json(sum.cloned().unwrap_or_else(|| json!([]))).into_response()
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

async fn create(
    State(agent): State<Arc<Agent>>,
    Query(query): Query<BTreeMap<String, String>>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let directory = query.get("directory").map_or_else(|| agent.directory.clone(), PathBuf::from);
    let mut sessions = agent.sessions();
    let now_ms = now_ms();
    // Like the real ones, in order of time; the number distinguishes ids of the same millisecond.
    let id = format!("ses_{now_ms:x}{:04x}{}", sessions.len(), std::process::id());
    let info = json!({
        "id": id, "title": body["title"], "metadata": body["metadata"], "version": bobbin_agent::opencode::VERSION,
        "directory": directory, "time": {"created": now_ms, "updated": now_ms},
    });
    let session = Session { info: info.clone(), ..Session::default() };
    sessions.insert(id, session);
    agent.store.write(&sessions);
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
        let is_done = session.is_newest(&message) && session.is_taken(&message);
        session.moved_to_now(&message);
        if is_done {
            return StatusCode::NO_CONTENT.into_response();
        }
    } else {
        let mut parts = body["parts"].clone();
        for part in parts.as_array_mut().into_iter().flatten() {
            part["sessionID"] = id.as_str().into();
            part["messageID"] = message.as_str().into();
        }
        let info = json!({
            "id": message, "sessionID": id, "role": "user", "agent": "build", "model": body["model"],
            "time": {"created": now_ms()},
        });
        agent.tell("message.updated", json!({"sessionID": id, "info": info}));
        for part in parts.as_array().into_iter().flatten() {
            agent.tell("message.part.updated", json!({"sessionID": id, "part": part}));
        }
        session.messages.push(json!({"info": info, "parts": parts}));
    }
    if let Some(answer) = at_once {
        let message = assistant(&id, &message, now_ms(), Ok(answer.to_owned()));
        session.messages.push(message);
        return StatusCode::NO_CONTENT.into_response();
    }
    let images = body["parts"].as_array().into_iter().flatten();
    let images = images.filter(|part| part["type"] == "file").map(|part| text(&part["url"]));
    session.prompts.push(Prompt {
        id: message,
        provider: text(&body["model"]["providerID"]),
        model: text(&body["model"]["modelID"]),
        system: text(&body["system"]),
        text: words,
        images: images.collect(),
    });
    if session.prompts.len() == 1 {
        let run = tokio::spawn(Arc::clone(&agent).run(id));
        session.run = Some(run.abort_handle());
    }
    agent.store.write(&sessions);
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
        let broken = session.break_off();
        if let Some(prompt) = stopped.last() {
            let error = json!({"sessionID": id, "error": aborted()});
            agent.tell("session.error", error);
            let answers = |broken: &Value| broken["info"]["parentID"] == prompt.id.as_str();
            let last = broken.clone().filter(answers).unwrap_or_else(|| {
                let mut message = assistant(&id, &prompt.id, now_ms(), Ok(String::new()));
                message["parts"] = json!([]);
                message["info"]["error"] = aborted();
                message
            });
            for message in broken.into_iter().chain([last]) {
                agent.tell("message.updated", json!({"sessionID": id, "info": message["info"]}));
                session.keep(message);
            }
            agent.tell("session.status", json!({"sessionID": id, "status": {"type": "idle"}}));
            agent.tell("session.idle", json!({"sessionID": id}));
        }
    }
    agent.store.write(&sessions);
    Json(true)
}
