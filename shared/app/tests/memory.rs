//! What a worker holds of the largest that it takes: a program of its own, whose memory nothing else uses. The limit is
//! the function's 128 MB (`template.yaml`), of which Lambda's own part of an environment wants some 40, the program
//! itself and its connections 20.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_agent::opencode::{OpenCode, OpenCodeRuntime};
use bobbin_agent::{ANSWER_BYTES_MAX, server_http};
use bobbin_app::sandboxes::{RunContext, SandboxSettings, Sandboxes, Wanted, WorkTarget};
use bobbin_chat::{ChatSettings, Chats};
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, ThreadKey};
use bobbin_core::base::limits::{Limits, SandboxLimits};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::secret::Secret;
use bobbin_core::protocol::effect::AgentEffect;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::card::Card;
use bobbin_core::records::carried::{CarriedTo, ForgeRepository};
use bobbin_core::records::changes::ChangedFile;
use bobbin_core::records::checks::RequiredCheck;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::Attachment;
use bobbin_core::records::pull_request::PolledPullRequest;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::overrides::ChatOverrides;
use bobbin_core::tenant::prices::ModelPrices;
use bobbin_forge::git::{
    Fetch, Fetched, ObjectId, PackSink, Push, Pushed, Refs, Remote, TreeEntry,
};
use bobbin_forge::{
    Forge, ForgeError, ForgeErrorKind, ForgeFacts, ForgeResult, Installation, NewPullRequest,
    OwnerKind, PullRequest, PullRequestChange, Repository, RepositoryAt, RepositoryId,
    RepositoryList, RepositoryName,
};
use bobbin_http::{AllowedHosts, Http};
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

    async fn flags(&self, _: &ThreadKey) -> Option<ControlFlags> {
        Some(ControlFlags::default())
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
        .route("/toolbox/{id}/process/execute", post(execute))
        .route("/files/{name}", get(async || large(10 * MIB)))
        .route("/git/info/refs", get(offer))
        .route("/git/git-upload-pack", post(upload_pack))
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

/// Nothing stands there yet; then everything is well.
async fn execute(Json(asked): Json<Value>) -> Json<Value> {
    let is_look = asked["envs"]["BOBBIN_PIECES"] == "look";
    Json(json!({"exitCode": if is_look { 9 } else { 0 }, "result": format!("commit\t{TIP}\n")}))
}

const TIP: &str = "1111111111111111111111111111111111111111";

fn line(data: &[u8]) -> Bytes {
    [format!("{:04x}", data.len() + 4).as_bytes(), data].concat().into()
}

async fn offer() -> Response {
    let kind = [("content-type", "application/x-git-upload-pack-advertisement")];
    let lines =
        ["version 2\n", "ls-refs\n", "fetch=shallow filter\n"].map(|one| line(one.as_bytes()));
    (kind, [&*lines.concat(), b"0000"].concat()).into_response()
}

/// The only branch, or a pack of 100 MB.
async fn upload_pack(asked: Bytes) -> Response {
    let kind = [("content-type", "application/x-git-upload-pack-result")];
    if asked.windows(7).any(|words| words == b"ls-refs") {
        let branch = line(format!("{TIP} refs/heads/main\n").as_bytes());
        return (kind, [&*branch, b"0000"].concat()).into_response();
    }
    let piece = line(&[&[1][..], &[7; 65_000]].concat());
    let pieces = (0..100 * MIB / 65_000).map(move |_| piece.clone());
    let all = [line(b"packfile\n")].into_iter().chain(pieces).chain([Bytes::from_static(b"0000")]);
    let body = Body::from_stream(futures::stream::iter(all.map(Ok::<_, Infallible>)));
    (kind, body).into_response()
}

/// A forge of which nothing but git is there.
#[derive(Debug)]
struct OnlyGit {
    http: Http,
    address: String,
    secret: Secret,
}

impl OnlyGit {
    fn remote(&self) -> Remote<'_> {
        let (http, secret) = (&self.http, &self.secret);
        Remote { http, address: self.address.clone(), user: "bobbin", secret }
    }
}

fn absent<T>() -> ForgeResult<T> {
    panic!("nothing but git is there")
}

fn failed<T>(done: Result<T, bobbin_forge::git::GitError>) -> ForgeResult<T> {
    done.map_err(|error| ForgeError {
        kind: ForgeErrorKind::Other,
        ..Failure::Outage { after_ms: 0, seen: error.to_string() }.into()
    })
}

#[async_trait]
impl Forge for OnlyGit {
    fn facts(&self) -> ForgeFacts<'_> {
        ForgeFacts { name: "git", brand: "Git", web: "", git: &self.address, install: "" }
    }

    async fn installation(&self, _: &str, _: OwnerKind) -> ForgeResult<Installation> {
        absent()
    }

    async fn installation_by_id(&self, _: u64) -> ForgeResult<Installation> {
        absent()
    }

    async fn repositories(&self, _: u64) -> ForgeResult<RepositoryList> {
        absent()
    }

    async fn repository(&self, _: &RepositoryName) -> ForgeResult<Repository> {
        absent()
    }

    async fn repository_by_id(&self, _: u64, _: RepositoryId) -> ForgeResult<Repository> {
        absent()
    }

    async fn refs(&self, _: &RepositoryAt, prefixes: &[String]) -> ForgeResult<Refs> {
        failed(self.remote().refs(prefixes).await)
    }

    async fn fetch(
        &self,
        _: &RepositoryAt,
        what: &Fetch,
        sink: &mut dyn PackSink,
    ) -> ForgeResult<Fetched> {
        failed(self.remote().fetch(what, sink).await)
    }

    async fn push(&self, _: &RepositoryAt, _: Push) -> ForgeResult<Pushed> {
        absent()
    }

    async fn tree(&self, _: &RepositoryAt, _: &ObjectId) -> ForgeResult<Vec<TreeEntry>> {
        absent()
    }

    async fn merge_base(
        &self,
        _: &RepositoryAt,
        _: &ObjectId,
        _: &ObjectId,
    ) -> ForgeResult<ObjectId> {
        absent()
    }

    async fn pull_request(&self, _: &RepositoryAt, _: &str) -> ForgeResult<Option<PullRequest>> {
        absent()
    }

    async fn open_pull_request(
        &self,
        _: &RepositoryAt,
        _: &NewPullRequest,
    ) -> ForgeResult<PullRequest> {
        absent()
    }

    async fn required_checks(&self, _: &RepositoryAt, _: &str) -> ForgeResult<Vec<RequiredCheck>> {
        absent()
    }

    async fn writers(&self, _: &RepositoryAt, _: &[String]) -> ForgeResult<Vec<String>> {
        absent()
    }

    async fn poll_pull_request(&self, _: &RepositoryAt, _: u64) -> ForgeResult<PolledPullRequest> {
        absent()
    }

    async fn update_pull_request(
        &self,
        _: &RepositoryAt,
        _: &PullRequestChange,
    ) -> ForgeResult<PullRequest> {
        absent()
    }
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
        prices: ModelPrices::new(),
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
    let here = thread();
    let target = WorkTarget {
        thread: &here,
        sandbox: &here.sandbox(),
        generation: 1,
        workspace: &Workspace::Common,
    };
    let forge = OnlyGit {
        http: Http::new(&world.base, AllowedHosts::Named(Vec::new())).unwrap(),
        address: format!("{}/git", world.base),
        secret: Secret::none(),
    };
    let repository = ForgeRepository {
        installation: 1,
        id: 1,
        name: "acme/api".to_owned(),
        address: "https://github.com/acme/api".to_owned(),
        is_private: true,
        branch: "main".to_owned(),
    };
    let wanted = Wanted {
        repository: &repository,
        at: None,
        pull: None,
        to: &CarriedTo::Project,
        size_kb: 0,
    };
    let carry = sandboxes.carry(&forge, target, wanted, 120_000);
    let (carried, bytes) = held(carry).await;
    let Ok(Event::Carried { carried, .. }) = carried else {
        panic!("{carried:?}");
    };
    assert_eq!(carried.base.as_deref(), Some(TIP));
    assert!(world.uploaded.swap(0, Ordering::SeqCst) >= 99 * MIB);
    assert!(bytes < HELD_MAX, "a pack: {} MiB", bytes / MIB);
    println!("a pack of 100 MB: {} MiB", bytes / MIB);

    let files: Vec<Attachment> = (0..Limits::DEFAULT.files.attachments)
        .map(|at| Attachment {
            name: format!("{at}.bin"),
            url: format!("{}/files/{at}", world.base),
            size: 10 * MIB,
            media_type: None,
        })
        .collect();
    let attach = AgentEffect::Attach { turn: "t-1".into(), files };
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
