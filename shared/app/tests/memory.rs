//! What a worker holds of the largest that it takes: a program of its own, whose memory nothing else uses. The limit is
//! the function's 128 MB (`template.yaml`), of which Lambda's own part of an environment wants some 40, the program
//! itself and its connections 20.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_agent::opencode::{OpenCode, OpenCodeRuntime};
use bobbin_agent::{ANSWER_BYTES_MAX, server_http};
use bobbin_app::sandboxes::{RunContext, SandboxSettings, Sandboxes, WorkTarget};
use bobbin_chat::{ChatSettings, Chats};
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey};
use bobbin_core::base::limits::{Limits, SandboxLimits};
use bobbin_core::base::secret::Secret;
use bobbin_core::protocol::effect::AgentEffect;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::card::Card;
use bobbin_core::records::changes::ChangedFile;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::Attachment;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::overrides::ChatOverrides;
use bobbin_sandbox::daytona::{DaytonaSandboxes, DaytonaSettings, SourceImage};
use bobbin_sandbox::labels::{StackIdentity, labels};
use futures::StreamExt as _;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;
/// What any of it may add to the memory of the process.
const HELD_MAX: u64 = 48 * MIB;
/// A piece of every large answer: nothing is allocated for it.
static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];

struct Desk;

impl RunContext for Desk {
    fn now_ms(&self) -> Ms {
        0
    }

    fn visible_until_ms(&self) -> Ms {
        Ms::MAX
    }

    async fn waiting(&self) -> u64 {
        0
    }

    async fn flags(&self, _: &ThreadKey) -> ControlFlags {
        ControlFlags::default()
    }

    async fn show(&self, _: &ThreadKey, _: &PostKind, _: &PostRef, _: Card) -> Option<PostRef> {
        None
    }
}

/// So many bytes that the server makes as they are read.
fn large(bytes: u64) -> Response {
    let pieces = bytes / PIECE.len() as u64;
    let stream =
        futures::stream::iter((0..pieces).map(|_| Ok::<_, Infallible>(Bytes::from_static(&PIECE))));
    let length = [("content-length", bytes.to_string())];
    (length, Body::from_stream(stream)).into_response()
}

/// Provider, toolbox, the platform's files and an agent, none of which keeps anything.
struct Outside {
    base: String,
    uploaded: AtomicU64,
    pages: AtomicU64,
}

async fn outside() -> Arc<Outside> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = Arc::new(Outside {
        base: format!("http://{}", listener.local_addr().unwrap()),
        uploaded: AtomicU64::new(0),
        pages: AtomicU64::new(0),
    });
    let routes = Router::new()
        .route("/api/sandbox/{name}", get(sandbox))
        .route("/toolbox/{id}/files", get(async || Json(json!([]))))
        .route("/toolbox/{id}/files/bulk-upload", post(upload))
        .route("/files/{name}", get(async || large(10 * MIB)))
        .route("/session/{id}/message", get(messages))
        .route("/session/{id}/diff", get(diff))
        .with_state(Arc::clone(&world));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    world
}

fn thread() -> ThreadKey {
    ThreadKey::discord("1", "2").unwrap()
}

async fn sandbox(State(world): State<Arc<Outside>>) -> Json<Value> {
    let stack = StackIdentity { name: "test", id: "this-one" };
    Json(json!({
        "id": "11111111-1111-4111-8111-111111111111", "name": "bobbin-test", "state": "started",
        "labels": labels(stack, &thread().sandbox(), 1), "toolboxProxyUrl": format!("{}/toolbox", world.base),
    }))
}

async fn upload(State(world): State<Arc<Outside>>, request: Request) -> Json<Value> {
    let mut body = request.into_body().into_data_stream();
    while let Some(piece) = body.next().await {
        let bytes = piece.unwrap().len() as u64;
        world.uploaded.fetch_add(bytes, Ordering::SeqCst);
    }
    Json(json!({}))
}

/// Each message is as large as an answer may be: only one alone can be read.
async fn messages(
    State(world): State<Arc<Outside>>,
    Query(asked): Query<std::collections::BTreeMap<String, String>>,
) -> Response {
    world.pages.fetch_add(1, Ordering::SeqCst);
    let many: u64 = asked["limit"].parse().unwrap();
    if many > 1 {
        return large(many * ANSWER_BYTES_MAX as u64);
    }
    let head = r#"[{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1}},"parts":[{"id":"prt_1","type":"file","mime":"image/png","url":"data:image/png;base64,"#;
    let tail = r#""}]}]"#;
    let pieces = (ANSWER_BYTES_MAX - head.len() - tail.len()) / PIECE.len();
    let body = [Bytes::from_static(head.as_bytes())]
        .into_iter()
        .chain((0..pieces).map(|_| Bytes::from_static(&PIECE)))
        .chain([Bytes::from_static(tail.as_bytes())]);
    let body = Body::from_stream(futures::stream::iter(body.map(Ok::<_, Infallible>)));
    ([("content-type", "application/json")], body).into_response()
}

/// The changes of a turn, as many of them as an answer can hold.
async fn diff() -> Response {
    let (head, tail) = (r#"{"file":"a","additions":1,"patch":""#, r#""}"#);
    let each = head.len() + PIECE.len() + tail.len() + 1;
    let pieces = (ANSWER_BYTES_MAX - 2) / each;
    let body = (0..pieces).flat_map(move |at| {
        let before = if at == 0 { "[" } else { "," };
        [before.as_bytes(), head.as_bytes(), PIECE.as_slice(), tail.as_bytes()]
            .map(Bytes::from_static)
    });
    let body = body.chain([Bytes::from_static(b"]")]);
    let body = Body::from_stream(futures::stream::iter(body.map(Ok::<_, Infallible>)));
    ([("content-type", "application/json")], body).into_response()
}

fn provider(base: &str) -> Arc<DaytonaSandboxes> {
    let settings = DaytonaSettings {
        api: format!("{base}/api"),
        stack: "test".to_owned(),
        stack_id: "this-one".to_owned(),
        image: SourceImage::Snapshot("image".to_owned()),
        limits: SandboxLimits::DEFAULT,
    };
    Arc::new(DaytonaSandboxes::new(settings, "key").unwrap())
}

fn runtime() -> Arc<OpenCodeRuntime> {
    let settings = ModelSettings {
        model: "anthropic/a-model".to_owned(),
        models: Vec::new(),
        model_base_url: None,
        keys: ModelKeys::default(),
    };
    Arc::new(OpenCodeRuntime::new(&settings).unwrap())
}

fn settings(base: &str) -> SandboxSettings {
    let token = Secret::none();
    SandboxSettings {
        stack: "test".to_owned(),
        stack_id: "0".to_owned(),
        project_config_of: Vec::new(),
        model_keys_inside: false,
        keys_of: None,
        nudge_url: String::new(),
        stack_key: "stack-key".to_owned(),
        files: Chats::files(&ChatSettings {
            overrides: &ChatOverrides {
                discord_api: format!("{base}/discord"),
                ..ChatOverrides::default()
            },
            variable: |_| String::new(),
            key: &|_| &token,
        }),
        limits: Limits::DEFAULT,
    }
}

/// By how much the memory of this process grew at most while this was done (`VmHWM` of `/proc/self/status`).
async fn held<T>(work: impl Future<Output = T>) -> (T, u64) {
    let status = |name: &str| -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() * 1024
    };
    // Writing 5 makes the present memory the highest so far (proc_pid_clear_refs(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let done = work.await;
    (done, status("VmHWM:").saturating_sub(before))
}

/// One after the other: all measure the same process.
#[tokio::test]
async fn largest_payloads_use_bounded_memory() {
    let world = outside().await;
    let sandboxes =
        Sandboxes::new(settings(&world.base), provider(&world.base), runtime()).unwrap();
    let files: Vec<Attachment> = (0..Limits::DEFAULT.files.attachments)
        .map(|at| Attachment {
            name: format!("{at}.bin"),
            url: format!("{}/files/{at}", world.base),
            size: 10 * MIB,
            media_type: None,
        })
        .collect();
    let attach = AgentEffect::Attach { turn: "t-1".into(), files };
    let here = thread();
    let target = WorkTarget {
        thread: &here,
        sandbox: &here.sandbox(),
        generation: 1,
        workspace: &Workspace::Common,
    };
    let (event, bytes) = held(sandboxes.perform_agent(&Desk, target, &attach)).await;
    let Event::Attached { note, missed, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(missed, Vec::<String>::new());
    assert_eq!(note.lines().count(), 11, "{note}");
    assert!(world.uploaded.load(Ordering::SeqCst) >= 100 * MIB);
    assert!(bytes < HELD_MAX, "ten files: {} MiB", bytes / MIB);
    println!("ten of the largest files: {} MiB", bytes / MIB);

    let endpoint = Endpoint { url: world.base.clone(), headers: Vec::new() };
    let http = server_http(&world.base).unwrap();
    let agent = OpenCode::new(http, endpoint, "password");
    let (found, bytes) = held(agent.newest("ses_1")).await;
    assert_eq!(found.unwrap().len(), 1, "the newest of them alone");
    assert_eq!(world.pages.load(Ordering::SeqCst), 3, "20, 4, 1");
    assert!(bytes < HELD_MAX, "an answer: {} MiB", bytes / MIB);
    println!("the largest answer: {} MiB", bytes / MIB);

    let (found, bytes) = held(async {
        let files = agent.diff("ses_1", "msg_1").await.unwrap();
        files.into_iter().map(ChangedFile::from).collect::<Vec<_>>()
    })
    .await;
    assert_eq!(found.len(), 255);
    assert!(bytes < HELD_MAX, "changes: {} MiB", bytes / MIB);
    println!("the largest changes: {} MiB", bytes / MIB);
}
