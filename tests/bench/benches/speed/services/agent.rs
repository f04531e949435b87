//! An OpenCode server: sessions, prompts, their messages and the event stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::run::{Course, Run};
use super::{Body, Reply, Request, Service};
use crate::wire;

/// How the call is named by which a prompt has been sent.
pub(super) const PROMPT_SENT: &str = "send the prompt";
/// What a stream says while there is nothing to say.
pub(super) const HEARTBEAT: &[u8] = b"data: {\"type\":\"server.heartbeat\",\"properties\":{}}\n\n";
/// Events that a listener may lag behind before the run waits for it.
const EVENTS_WAITING_MAX: usize = 64;
/// Events between two looks whether a long run is ahead of its pace.
const EVENTS_AT_ONCE: u32 = 20;
/// A long run that nobody listens to begins after this.
const LISTENER_WAIT: Duration = Duration::from_secs(5);

/// The server.
#[derive(Default)]
pub struct Agent {
    state: Mutex<State>,
    /// Somebody has begun to listen.
    heard: Condvar,
    told: AtomicU64,
    told_bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    course: Option<Course>,
    sessions: BTreeMap<String, Session>,
    listeners: Vec<SyncSender<Vec<u8>>>,
}

#[derive(Default)]
struct Session {
    info: Value,
    messages: Vec<Value>,
    is_busy: bool,
}

impl Agent {
    /// How prompts are run from now on; at once unless told.
    pub fn run_as(&self, course: Course) {
        self.state().course = Some(course);
    }

    /// Events that have been told of long runs, and their bytes.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        let (told, bytes) = (&self.told, &self.told_bytes);
        (told.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who listens; who has gone is forgotten.
    fn tell(&self, event: &Value) {
        let text = format!("data: {event}\n\n");
        self.told.fetch_add(1, Ordering::Relaxed);
        self.told_bytes
            .fetch_add(text.len() as u64, Ordering::Relaxed);
        let chunk = wire::chunk(text.as_bytes());
        // Waits for who is slow without holding up who asks for something else.
        let mut listeners = std::mem::take(&mut self.state().listeners);
        listeners.retain(|listener| listener.send(chunk.clone()).is_ok());
        self.state().listeners.extend(listeners);
    }

    fn work(&self, run: &Run, session: &str, messages: usize, events: usize, per_second: u32) {
        let state = self.state();
        let unheard = |state: &mut State| state.listeners.is_empty();
        let waited = self.heard.wait_timeout_while(state, LISTENER_WAIT, unheard);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        let keep = |message: Value| {
            if let Some(session) = self.state().sessions.get_mut(session) {
                session.messages.push(message);
            }
        };
        let (start, mut told) = (Instant::now(), 0_u32);
        let tell = |event: Value| {
            self.tell(&event);
            told += 1;
            if told.is_multiple_of(EVENTS_AT_ONCE) {
                let due = start + Duration::from_secs(1) * told / per_second.max(1);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        };
        run.work(messages, events, tell, keep);
        if let Some(session) = self.state().sessions.get_mut(session) {
            session.is_busy = false;
        }
        self.tell(&run.event("session.status", json!({"status": {"type": "idle"}})));
        self.tell(&run.event("session.idle", json!({})));
    }
}

impl Service for Arc<Agent> {
    fn answer(&self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let asked = || serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
        match (request.method.as_str(), &segments[..]) {
            ("GET", ["global", "health"]) => {
                Reply::json("health", &json!({"healthy": true, "version": "1.18.33"}))
            }
            ("GET", ["event"]) => self.listen(),
            ("GET", ["permission"]) => Reply::json("permissions", &json!([])),
            ("GET", ["question"]) => Reply::json("questions", &json!([])),
            ("GET", ["config", "providers"]) => Reply::json(
                "models",
                &json!({"providers": [{"id": "anthropic", "models": {"claude-sonnet-4-5": {}}}], "default": {}}),
            ),
            ("GET", ["agent"]) => {
                Reply::json("agents", &json!([{"name": "build", "mode": "primary"}]))
            }
            ("GET", ["session"]) => {
                let state = self.state();
                let sessions: Vec<&Value> = state.sessions.values().map(|one| &one.info).collect();
                Reply::json("find the session", &json!(sessions))
            }
            ("POST", ["session"]) => self.create(&asked()),
            ("GET", ["session", "status"]) => {
                let state = self.state();
                let busy = state.sessions.iter().filter(|(_, session)| session.is_busy);
                let busy: BTreeMap<&String, Value> =
                    busy.map(|(id, _)| (id, json!({"type": "busy"}))).collect();
                Reply::json("status", &json!(busy))
            }
            ("POST", ["session", id, "prompt_async"]) => self.prompt(id, &asked()),
            ("GET", ["session", id]) => match self.state().sessions.get(*id) {
                Some(session) => Reply::json("session", &session.info),
                None => missing("session", "Session", id),
            },
            ("GET", ["session", id, "message"]) => self.messages(id, query),
            ("GET", ["session", id, "message", message]) => {
                let state = self.state();
                let messages = state.sessions.get(*id).map(|session| &session.messages);
                let mut found = messages.into_iter().flatten();
                match found.find(|one| one["info"]["id"] == *message) {
                    Some(found) => Reply::json("look for the prompt", found),
                    None => missing("look for the prompt", "Message", message),
                }
            }
            ("GET", ["session", _, "diff"]) => Reply::json("changed files", &json!([])),
            _ => Reply::unknown(request),
        }
    }
}

impl Agent {
    fn listen(&self) -> Reply {
        let (sender, events) = sync_channel(EVENTS_WAITING_MAX);
        let connected = json!({"id": "evt_1ffbd58ed001dw7Zn3PLy6ZjE3", "type": "server.connected", "properties": {}});
        // There is room for the first.
        let _ = sender.send(wire::chunk(format!("data: {connected}\n\n").as_bytes()));
        self.state().listeners.push(sender);
        self.heard.notify_all();
        Reply {
            name: "event stream".to_owned(),
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            body: Body::Stream(events),
        }
    }

    fn create(&self, asked: &Value) -> Reply {
        let mut state = self.state();
        let now_ms = now_ms();
        let id = format!("ses_{now_ms:012x}{:04x}AAAAAAAAAA", state.sessions.len());
        let info = json!({
            "id": id, "slug": "crisp-panda", "version": "1.18.33", "projectID": "global",
            "directory": "/home/daytona/project", "title": asked["title"], "metadata": asked["metadata"],
            "time": {"created": now_ms, "updated": now_ms},
        });
        let session = Session {
            info: info.clone(),
            ..Session::default()
        };
        state.sessions.insert(id, session);
        Reply::json("make a session", &info)
    }

    fn messages(&self, id: &str, query: &str) -> Reply {
        let name = "messages";
        let state = self.state();
        let Some(session) = state.sessions.get(id) else {
            return missing(name, "Session", id);
        };
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let messages = &session.messages;
        let before = parameter("before");
        let end =
            before.and_then(|cursor| messages.iter().position(|one| one["info"]["id"] == cursor));
        let end = end.unwrap_or(messages.len());
        let limit = parameter("limit").and_then(|limit| limit.parse().ok());
        let start = end.saturating_sub(limit.unwrap_or(usize::MAX));
        let mut reply = Reply::json(name, &json!(messages[start..end]));
        if let (1.., Some(Value::String(oldest))) =
            (start, messages.get(start).map(|one| &one["info"]["id"]))
        {
            reply.headers.push(("x-next-cursor", oldest.clone()));
        }
        reply
    }

    /// Takes a prompt; one whose id is known is not run again.
    fn prompt(self: &Arc<Self>, id: &str, asked: &Value) -> Reply {
        let mut state = self.state();
        let course = state.course.unwrap_or(Course::AtOnce);
        let Some(session) = state.sessions.get_mut(id) else {
            return missing(PROMPT_SENT, "Session", id);
        };
        let message = asked["messageID"].as_str().unwrap_or_default();
        let is_known = session
            .messages
            .iter()
            .any(|one| one["info"]["id"] == message);
        if !is_known {
            let now_ms = now_ms();
            let info = json!({
                "id": message, "sessionID": id, "role": "user", "time": {"created": now_ms}, "agent": "build",
                "model": asked["model"], "summary": {"diffs": []},
            });
            let mut parts = asked["parts"].clone();
            for part in parts.as_array_mut().into_iter().flatten() {
                part["sessionID"] = json!(id);
                part["messageID"] = json!(message);
            }
            session.messages.push(json!({"info": info, "parts": parts}));
            let run = Run::new(id, message, now_ms);
            match course {
                Course::AtOnce => session.messages.push(run.answer()),
                Course::Long {
                    messages,
                    events,
                    events_per_second,
                } => {
                    session.is_busy = true;
                    let (agent, id) = (Arc::clone(self), id.to_owned());
                    thread::spawn(move || {
                        agent.work(&run, &id, messages, events, events_per_second)
                    });
                }
            }
        }
        Reply::empty(PROMPT_SENT, 204)
    }
}

fn missing(name: &str, what: &str, id: &str) -> Reply {
    let error =
        json!({"name": "NotFoundError", "data": {"message": format!("{what} not found: {id}")}});
    Reply::of(name, 404, &error)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
