//! The chat page: its files and its data (`/ui`).
//!
//! Promised: nothing external is loaded (enforced by a content security policy). Absent: any decision about messages;
//! the page reads and acts like a test does.

use crate::hub::{Hub, broken, lock};
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use crate::{access, control, discord, files, forge, live, slack};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use bobbin_local_breakpoint::own_only;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The page's static files, open to everybody: they contain no data.
const ASSETS: [(&str, &str, &str); 9] = [
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/text.js", SCRIPT, include_str!("../page/text.js")),
    ("/discord.js", SCRIPT, include_str!("../page/discord.js")),
    ("/slack.js", SCRIPT, include_str!("../page/slack.js")),
    ("/composer.js", SCRIPT, include_str!("../page/composer.js")),
    ("/panel.js", SCRIPT, include_str!("../page/panel.js")),
    ("/forge.js", SCRIPT, include_str!("../page/forge.js")),
];

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
        .route("/live", get(live::serve))
        .route(
            "/ui/state",
            get(
                |State(hub): State<Arc<Hub>>| async move { read(&hub, |store| state(&hub, store)) },
            ),
        )
        .route("/ui/discord/messages", get(discord_messages))
        .route("/ui/slack/messages", get(slack_messages))
        .route(
            "/ui/inspector",
            get(|State(hub): State<Arc<Hub>>| async move { axum::Json(lock(&hub.inspected).clone()) }),
        )
        .route("/ui/forge", get(forge::repositories).post(forge::act))
        .route("/ui/forge/pull", get(forge::pull_request))
        .route("/ui/upload", post(files::upload))
        .route("/_control/{*rest}", any(control::serve))
        .layer(from_fn_with_state(Arc::clone(&hub), access::require_key));
    let assets = ASSETS.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { asset(kind, text) }))
    });
    let routes = assets
        .route("/health", get(|| async { "ok" }))
        .route("/files/{id}/{name}", get(files::serve))
        .route("/slack/files/{id}/{name}", get(files::serve_to_bot))
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

fn read(hub: &Hub, work: impl FnOnce(&ChatStore) -> Result<Value, ChatStoreError>) -> Response {
    match work(&hub.store()) {
        Ok(value) => axum::Json(value).into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

/// Everything but messages and the forge: channels, people, commands.
fn state(hub: &Hub, store: &ChatStore) -> Result<Value, ChatStoreError> {
    let guild = &hub.seeds.guild_id;
    let mut commands = discord::commands::registered(store, "global")?;
    commands.extend(discord::commands::registered(store, guild)?);
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
        "seeds": hub.seeds, "model_is_scripted": hub.model_is_scripted, "has_forge": hub.inspector.forge().is_some(),
        "discord": {"guild": store.get("d.guild", "", guild)?, "channels": store.all("d.channel", guild)?, "users": store.all("d.user", "")?,
            "commands": commands, "bot_id": hub.discord.application_id},
        "slack": {"team": store.get("s.team", "", &hub.seeds.team_id)?, "channels": channels, "threads": threads, "sessions": sessions,
            "users": store.all("s.user", "")?, "bot_user_id": hub.slack.bot_user_id, "shortcuts": shortcuts, "commands": slack_commands},
    }))
}

/// Threads whose root is not stored here (posted by another client, or too old), so that their replies are shown.
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

type PageParameters = Query<HashMap<String, String>>;

fn asked<'a>(query: &'a PageParameters, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// A channel's messages as one person sees them, including their ephemeral ones.
async fn discord_messages(State(hub): State<Arc<Hub>>, query: PageParameters) -> Response {
    let (channel, user) = (asked(&query, "channel_id"), asked(&query, "user_id"));
    read(&hub, |store| {
        let mut kept = store.all("d.message", channel)?;
        kept.extend(
            store.all("d.ephemeral", channel)?.into_iter().filter(|one| one.str("to") == user),
        );
        kept.sort_by(|a, b| a["message"].str("id").cmp(b["message"].str("id")));
        Ok(json!({"messages": kept}))
    })
}

/// A channel's or thread's messages as one person sees them, with their Home.
async fn slack_messages(State(hub): State<Arc<Hub>>, query: PageParameters) -> Response {
    let (channel, user, thread) =
        (asked(&query, "channel"), asked(&query, "user_id"), asked(&query, "thread_ts"));
    read(&hub, |store| {
        let belongs = |one: &Value| {
            let root = one.str("thread_ts");
            if thread.is_empty() {
                root.is_empty() || root == one.str("ts")
            } else {
                root == thread || one.str("ts") == thread
            }
        };
        let mut messages = store.all("s.message", channel)?;
        let own =
            store.all("s.ephemeral", channel)?.into_iter().filter(|one| one.str("to") == user);
        messages.extend(own.map(|mut one| one["message"].take()));
        messages.retain(belongs);
        messages.sort_by(|a, b| a.str("ts").cmp(b.str("ts")));
        Ok(json!({"messages": messages, "home": store.get("s.home", "", user)?,
            "session": store.get("s.session", channel, thread)?}))
    })
}
