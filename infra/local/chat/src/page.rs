//! The chat page: its three files, what it reads (`/ui`), its live notices (`/live`), uploads and kept files.
//!
//! Promised: nothing external is loaded (a strict content policy says so), notices only tell what to read again, and a page
//! that missed some reads everything anew. Absent: any decision about messages; the page reads and acts like a test does.

use crate::hub::{Hub, broken, held};
use crate::ids::now_ms;
use crate::json::Read;
use crate::limits::{BACKSTAGE_POLL_MS, BACKSTAGE_READ_MS_MAX, FILE_BYTES_MAX};
use crate::store::{Blob, Store, StoreError};
use crate::{control, discord, door, slack};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use bobbin_local_gate::own_only;
use futures::{FutureExt, Stream, StreamExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
/// Kept files run nothing, whatever they hold.
const FILE_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self'";
const LOGIN_PAGE: &str = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>";

/// All routes of the server.
pub fn router(hub: Arc<Hub>) -> Router {
    let also_named = hub.also_named.clone();
    let persons = Router::new()
        .route(
            "/",
            get(|| async {
                asset(
                    "text/html; charset=utf-8",
                    include_str!("../page/index.html"),
                )
            }),
        )
        .route("/live", get(live))
        .route(
            "/ui/state",
            get(
                |State(hub): State<Arc<Hub>>| async move { read(&hub, |store| state(&hub, store)) },
            ),
        )
        .route("/ui/discord/messages", get(discord_messages))
        .route("/ui/slack/messages", get(slack_messages))
        .route(
            "/ui/backstage",
            get(|State(hub): State<Arc<Hub>>| async move { axum::Json(held(&hub.behind).clone()) }),
        )
        .route("/ui/upload", post(upload))
        .route("/_control/{*rest}", any(control::serve))
        .layer(from_fn_with_state(Arc::clone(&hub), door::persons_only));
    let routes = Router::new()
        .route(
            "/style.css",
            get(|| async { asset("text/css; charset=utf-8", include_str!("../page/style.css")) }),
        )
        .route(
            "/app.js",
            get(|| async { script(include_str!("../page/app.js")) }),
        )
        .route(
            "/dom.js",
            get(|| async { script(include_str!("../page/dom.js")) }),
        )
        .route(
            "/text.js",
            get(|| async { script(include_str!("../page/text.js")) }),
        )
        .route(
            "/discord.js",
            get(|| async { script(include_str!("../page/discord.js")) }),
        )
        .route(
            "/slack.js",
            get(|| async { script(include_str!("../page/slack.js")) }),
        )
        .route(
            "/composer.js",
            get(|| async { script(include_str!("../page/composer.js")) }),
        )
        .route(
            "/panel.js",
            get(|| async { script(include_str!("../page/panel.js")) }),
        )
        .route("/health", get(|| async { "ok" }))
        .route("/files/{id}/{name}", get(file))
        .route("/slack/files/{id}/{name}", get(slack_file))
        .route(
            "/api/{*rest}",
            any(|State(hub): State<Arc<Hub>>, request: Request| async move {
                discord::serve(&hub, request).await
            }),
        )
        .route(
            "/slack/{*rest}",
            any(|State(hub): State<Arc<Hub>>, request: Request| async move {
                slack::serve(&hub, request).await
            }),
        )
        .merge(persons)
        .layer(DefaultBodyLimit::disable())
        .with_state(hub);
    own_only(routes, also_named)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

fn script(text: &'static str) -> Response {
    asset("text/javascript; charset=utf-8", text)
}

fn read(hub: &Hub, work: impl FnOnce(&Store) -> Result<Value, StoreError>) -> Response {
    match work(&hub.store()) {
        Ok(value) => axum::Json(value).into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

/// Everything but messages: places, people, commands.
fn state(hub: &Hub, store: &Store) -> Result<Value, StoreError> {
    let guild = &hub.seeds.guild_id;
    let mut commands = discord::app::registered(store, "global")?;
    commands.extend(discord::app::registered(store, guild)?);
    let shortcuts: Vec<Value> = hub
        .slack
        .shortcuts
        .iter()
        .map(|one| json!({"callback_id": one.callback_id, "name": one.name}))
        .collect();
    let slack_commands: Vec<Value> = hub.slack.commands.iter()
        .map(|one| json!({"command": one.command, "description": one.description, "usage_hint": one.usage_hint})).collect();
    let mut threads = Vec::new();
    let mut sessions = Vec::new();
    let channels = store.all("s.channel", "")?;
    for channel in &channels {
        let id = channel.str("id");
        sessions.extend(store.all("s.session", id)?);
        let messages = store.all("s.message", id)?;
        threads.extend(rootless(id, &messages));
        threads.extend(messages.into_iter().filter(|one| one.int("reply_count") > 0).map(|root| {
            let text: String = root.str("text").chars().take(120).collect();
            json!({"channel": id, "ts": root["ts"], "text": text, "reply_count": root["reply_count"], "latest_reply": root["latest_reply"]})
        }));
    }
    Ok(json!({
        "seeds": hub.seeds,
        "discord": {"guild": store.get("d.guild", "", guild)?, "channels": store.all("d.channel", guild)?, "users": store.all("d.user", "")?,
            "commands": commands, "bot_id": hub.discord.application_id},
        "slack": {"team": store.get("s.team", "", &hub.seeds.team_id)?, "channels": channels, "threads": threads, "sessions": sessions,
            "users": store.all("s.user", "")?, "bot_user_id": hub.slack.bot_user_id, "shortcuts": shortcuts, "commands": slack_commands},
    }))
}

/// Threads whose root is not kept here (posted by somebody else's client, or too old): their replies shall be seen too.
fn rootless(channel: &str, messages: &[Value]) -> Vec<Value> {
    let kept: BTreeSet<&str> = messages.iter().map(|one| one.str("ts")).collect();
    let named = messages
        .iter()
        .filter(|one| !one.str("thread_ts").is_empty() && !kept.contains(one.str("thread_ts")));
    let threads: BTreeMap<&str, &Value> = named.map(|one| (one.str("thread_ts"), one)).collect();
    let shown = threads.into_iter().map(|(ts, last)| {
        json!({"channel": channel, "ts": ts, "text": last["text"], "reply_count": 1, "latest_reply": last["ts"]})
    });
    shown.collect()
}

type Asked = Query<HashMap<String, String>>;

fn asked<'a>(query: &'a Asked, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// A channel's messages as one person sees them: with their own ephemeral ones.
async fn discord_messages(State(hub): State<Arc<Hub>>, query: Asked) -> Response {
    let (channel, user) = (asked(&query, "channel_id"), asked(&query, "user_id"));
    read(&hub, |store| {
        let mut kept = store.all("d.message", channel)?;
        kept.extend(
            store
                .all("d.ephemeral", channel)?
                .into_iter()
                .filter(|one| one.str("to") == user),
        );
        kept.sort_by(|a, b| a["message"].str("id").cmp(b["message"].str("id")));
        let typing = held(&hub.typing)
            .get(channel)
            .is_some_and(|until| *until > now_ms());
        Ok(json!({"messages": kept, "typing": typing}))
    })
}

/// A channel's messages, or a thread's, as one person sees them; with the views that are open for that person.
async fn slack_messages(State(hub): State<Arc<Hub>>, query: Asked) -> Response {
    let (channel, user, thread) = (
        asked(&query, "channel"),
        asked(&query, "user_id"),
        asked(&query, "thread_ts"),
    );
    read(&hub, |store| {
        let belongs = |one: &Value| {
            let root = one.str("thread_ts");
            if thread.is_empty() {
                root.is_empty() || root == one.str("ts") || one.str("subtype") == "thread_broadcast"
            } else {
                root == thread || one.str("ts") == thread
            }
        };
        let mut messages = store.all("s.message", channel)?;
        let own = store
            .all("s.ephemeral", channel)?
            .into_iter()
            .filter(|one| one.str("to") == user);
        messages.extend(own.map(|mut one| one["message"].take()));
        messages.retain(belongs);
        messages.sort_by(|a, b| a.str("ts").cmp(b.str("ts")));
        Ok(
            json!({"messages": messages, "views": slack::views::stack(store, user)?, "home": store.get("s.home", "", user)?,
            "session": store.get("s.session", channel, thread)?}),
        )
    })
}

/// Keeps a person's file until it is sent with a message, an option or a form.
async fn upload(
    State(hub): State<Arc<Hub>>,
    query: Asked,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    if bytes.len() > FILE_BYTES_MAX {
        return (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the file is larger than 10 MiB",
        )
            .into_response();
    }
    let name = asked(&query, "name");
    let name = if name.is_empty() { "file" } else { name };
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("application/octet-stream");
    read(&hub, |store| {
        let attachment = discord::message::keep_file(&hub, store, name, kind, bytes.to_vec())?;
        store.put("d.upload", "", attachment.str("id"), &attachment)?;
        Ok(attachment)
    })
}

async fn file(State(hub): State<Arc<Hub>>, Path((id, _)): Path<(String, String)>) -> Response {
    match hub.store().blob(&id) {
        Ok(Some(blob)) => served(blob),
        Ok(None) => (StatusCode::NOT_FOUND, "this file is not kept any more").into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

/// With a wrong token Slack answers 200 and a login page; so does this.
async fn slack_file(
    State(hub): State<Arc<Hub>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let expected = format!("Bearer {}", hub.slack.bot_token);
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value.as_bytes() != expected.as_bytes())
    {
        return (
            [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
            LOGIN_PAGE,
        )
            .into_response();
    }
    file(State(hub), Path((id, name))).await
}

/// Pictures are shown in place, everything else is offered for saving.
fn served(blob: Blob) -> Response {
    let picture = ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .contains(&blob.content_type.as_str());
    let kind = if picture || blob.content_type.parse::<header::HeaderValue>().is_ok() {
        blob.content_type.as_str()
    } else {
        "application/octet-stream"
    };
    let place = if picture { "inline" } else { "attachment" };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, FILE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_DISPOSITION, place),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    (headers, blob.bytes).into_response()
}

/// Live notices. Too many viewers are turned away; one that fell behind is told to read everything again.
async fn live(State(hub): State<Arc<Hub>>) -> Response {
    let Ok(seat) = Arc::clone(&hub.viewers).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open").into_response();
    };
    let stop = hub.stop.clone();
    let notices = notices(hub.live.subscribe()).map(move |notice| {
        // The seat is given back when the stream ends.
        let _ = &seat;
        Ok::<_, Infallible>(Event::default().data(notice.to_string()))
    });
    let ended = async move { stop.cancelled().await };
    Sse::new(notices.take_until(ended.boxed()))
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn notices(live: tokio::sync::broadcast::Receiver<Value>) -> impl Stream<Item = Value> {
    futures::stream::unfold((live, true), |(mut live, first)| async move {
        if first {
            return Some((json!({"kind": "everything"}), (live, false)));
        }
        match live.recv().await {
            Ok(notice) => Some((notice, (live, false))),
            Err(RecvError::Lagged(_)) => Some((json!({"kind": "everything"}), (live, false))),
            Err(RecvError::Closed) => None,
        }
    })
}

/// Reads the session records while somebody looks, and tells the pages when they differ.
pub async fn watch_backstage(hub: Arc<Hub>) {
    loop {
        tokio::select! {
            () = hub.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(BACKSTAGE_POLL_MS)) => {}
        }
        if hub.live.receiver_count() == 0 {
            continue;
        }
        let reading = async { futures::join!(hub.backstage.sessions(), hub.backstage.sandboxes()) };
        let Ok((sessions, sandboxes)) =
            tokio::time::timeout(Duration::from_millis(BACKSTAGE_READ_MS_MAX), reading).await
        else {
            tracing::debug!("the session records could not be read in time");
            continue;
        };
        let now = json!({"sessions": sessions, "sandboxes": sandboxes});
        let changed = {
            let mut behind = held(&hub.behind);
            let changed = *behind != now;
            *behind = now;
            changed
        };
        if changed {
            hub.notify(json!({"kind": "backstage"}));
        }
    }
}
