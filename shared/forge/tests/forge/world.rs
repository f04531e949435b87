//! A server on loopback: GitHub's REST API from a script, judged by its description, and `git http-backend` on the
//! repositories of a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_forge::github::{Addresses, GitHub, GitHubSettings};
use bobbin_forge::{RepositoryAt, RepositoryId, RepositoryName};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::description;
use crate::git::ObjectPlace;

/// The token that the script mints.
pub const TOKEN: &str = "ghs_7_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiI3In0.c2lnbmF0dXJlb2ZhdG9rZW4";
pub const CLIENT_SECRET: &str = "c5f3e0a1client0secret";

/// An answer of the script.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    body: Value,
    headers: Vec<(&'static str, String)>,
    /// Media type and text, of what is no JSON.
    plain: Option<(&'static str, String)>,
    undescribed: bool,
}

/// Answers with this status, and the least that GitHub says with it, these values in it.
pub fn reply(status: u16, body: Value) -> Reply {
    Reply { status, body, headers: Vec::new(), plain: None, undescribed: false }
}

impl Reply {
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// One that GitHub gives though its description does not have it.
    pub fn undescribed(self) -> Self {
        Self { undescribed: true, ..self }
    }

    /// An HTML page from something in between.
    pub fn page(status: u16) -> Self {
        let plain = Some(("text/html", "<h1>Oh</h1>".to_owned()));
        Self { plain, ..reply(status, Value::Null) }
    }

    /// A file.
    pub fn text(text: &str) -> Self {
        Self { plain: Some(("text/plain", text.to_owned())), ..reply(200, Value::Null) }
    }
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method, path and query.
    pub line: String,
    pub headers: HeaderMap,
    pub body: Value,
    pub form: String,
}

impl Seen {
    pub fn bearer(&self) -> &str {
        self.headers["authorization"].to_str().unwrap().strip_prefix("Bearer ").unwrap()
    }
}

type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Script {
    replies: BTreeMap<String, Vec<Reply>>,
    seen: Vec<Seen>,
    before_push: Option<Hook>,
    root: PathBuf,
}

type Shared = Arc<Mutex<Script>>;

pub struct World {
    base: String,
    script: Shared,
    task: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub async fn start() -> Self {
        let script = Shared::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, script, task }
    }

    /// One that serves the repositories of this place, and mints tokens.
    pub async fn serving(place: &ObjectPlace) -> Self {
        let world = Self::start().await;
        locked(&world.script).root = place.root.clone();
        world.minting();
        world
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The next answer to calls of this route; the last one is given again and again.
    pub fn on(&self, line: &str, reply: Reply) {
        locked(&self.script).replies.entry(line.to_owned()).or_default().push(reply);
    }

    /// Mints tokens for installation 7 and the repository `acme/web`, and revokes them.
    pub fn minting(&self) {
        let body = json!({"token": TOKEN, "repositories": [repository()]});
        self.on("POST /app/installations/7/access_tokens", reply(201, body));
        self.on("DELETE /installation/token", reply(204, Value::Null));
    }

    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.script).seen.clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// The only request of this route.
    pub fn one(&self, line: &str) -> Seen {
        let mut found = self.seen().into_iter().filter(|seen| seen.line.starts_with(line));
        let first = found.next().unwrap_or_else(|| panic!("no {line} in {:?}", self.lines()));
        assert!(found.next().is_none(), "{line} more than once");
        first
    }

    /// Something that happens when a push arrives, before git sees it.
    pub fn before_push(&self, hook: impl FnOnce() + Send + 'static) {
        locked(&self.script).before_push = Some(Box::new(hook));
    }

    pub fn settings(&self) -> GitHubSettings {
        GitHubSettings {
            addresses: Addresses { git: format!("{}/git", self.base), ..Addresses::of(&self.base) },
            issuer: "Iv23abc".to_owned(),
            private_key: std::fs::read_to_string(&key().private).unwrap().into(),
            slug: "bobbin".to_owned(),
            client_id: "Iv23abc".to_owned(),
            client_secret: CLIENT_SECRET.to_owned().into(),
        }
    }

    pub fn github(&self) -> GitHub {
        GitHub::new(self.settings()).unwrap()
    }
}

/// The values of `acme/web` that are read.
pub fn repository() -> Value {
    json!({
        "id": 42, "name": "web", "full_name": "acme/web", "private": true, "archived": false,
        "default_branch": "main", "size": 108, "owner": owner(),
    })
}

pub fn owner() -> Value {
    json!({"id": 9, "login": "acme", "type": "Organization"})
}

/// The values of installation 7 that are read.
pub fn installation() -> Value {
    json!({
        "id": 7, "account": owner(), "repository_selection": "selected",
        "html_url": "https://github.example/organizations/acme/settings/installations/7",
        "suspended_at": null,
        "permissions": {
            "contents": "write", "pull_requests": "write", "metadata": "read", "checks": "read",
            "statuses": "read", "actions": "read", "issues": "read", "members": "read",
        },
    })
}

pub fn name() -> RepositoryName {
    RepositoryName::new("acme", "web").unwrap()
}

pub fn at() -> RepositoryAt {
    RepositoryAt { installation: 7, repository: RepositoryId(42), name: name() }
}

/// An app's key, made by OpenSSL once for all tests: as GitHub gives it, the same in PKCS#8, and its public half.
pub struct Key {
    pub private: PathBuf,
    pub pkcs8: PathBuf,
    pub public: PathBuf,
    pub folder: PathBuf,
}

pub fn key() -> &'static Key {
    static KEY: OnceLock<Key> = OnceLock::new();
    KEY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        let at = |name: &str| folder.join(name);
        let key = Key {
            private: at("app.pem"),
            pkcs8: at("app8.pem"),
            public: at("public.pem"),
            folder: folder.clone(),
        };
        openssl(&folder, &["genrsa", "-traditional", "-out", "app.pem", "2048"]);
        let pkcs8 = ["pkcs8", "-topk8", "-nocrypt", "-in", "app.pem", "-out", "app8.pem"];
        openssl(&folder, &pkcs8);
        openssl(&folder, &["rsa", "-in", "app.pem", "-pubout", "-out", "public.pem"]);
        key
    })
}

pub fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("openssl");
    let output =
        command.args(arguments).current_dir(folder).output().expect("openssl is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn answer(State(script): State<Shared>, request: Request) -> Response {
    match request.uri().path().strip_prefix("/git/").map(str::to_owned) {
        Some(path) => git(&script, &path, request).await,
        None => rest(&script, request).await,
    }
}

async fn rest(script: &Shared, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let method = head.method.as_str();
    // A GitHub Enterprise Server has the same API below a path.
    let path = head.uri.path();
    let path = path.strip_prefix("/api/v3").unwrap_or(path);
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    description::check_request(method, path, head.uri.query().unwrap_or_default(), &json);
    let route = format!("{method} {path}");
    let mut script = locked(script);
    script.seen.push(Seen {
        line: format!("{method} {}", head.uri),
        headers: head.headers,
        body: json,
        form: String::from_utf8_lossy(&body).into_owned(),
    });
    let found = script.replies.get_mut(&route).map(|replies| match replies.as_slice() {
        [only] => only.clone(),
        _ => replies.remove(0),
    });
    let nothing = || reply(404, json!({"message": "Not Found", "documentation_url": "x"}));
    let Reply { status, body, headers, plain, undescribed } = found.unwrap_or_else(nothing);
    let code = StatusCode::from_u16(status).unwrap();
    let mut response = if let Some((kind, text)) = plain {
        (code, [("content-type", kind)], text).into_response()
    } else if status == 204 {
        code.into_response()
    } else {
        let body =
            if undescribed { body } else { description::answer(method, path, status, &body) };
        let kind = [("content-type", "application/json; charset=utf-8")];
        (code, kind, body.to_string()).into_response()
    };
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// `git http-backend` (CGI), behind a token.
async fn git(script: &Shared, path: &str, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let header = |name: &str| head.headers.get(name).map(|v| v.to_str().unwrap().to_owned());
    let expected = format!("Basic {}", STANDARD.encode(format!("x-access-token:{TOKEN}")));
    if header("authorization").as_ref() != Some(&expected) {
        return (StatusCode::UNAUTHORIZED, "Bad credentials").into_response();
    }
    let (root, hook) = {
        let mut script = locked(script);
        script.seen.push(Seen {
            line: format!("{} {}", head.method, head.uri),
            headers: head.headers.clone(),
            body: Value::Null,
            form: String::new(),
        });
        let is_push = head.method == "POST" && path.ends_with("/git-receive-pack");
        (script.root.clone(), is_push.then(|| script.before_push.take()).flatten())
    };
    if let Some(hook) = hook {
        hook();
    }
    let mut backend = Command::new("git");
    backend
        .arg("http-backend")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "bobbin")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", format!("/{path}"))
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    for (variable, name) in [("GIT_PROTOCOL", "git-protocol"), ("CONTENT_LENGTH", "content-length")]
    {
        if let Some(value) = header(name) {
            backend.env(variable, value);
        }
    }
    let mut child = backend.spawn().expect("git is installed");
    let mut stdin = child.stdin.take().unwrap();
    tokio::spawn(async move {
        let mut body = body.into_data_stream();
        while let Some(Ok(piece)) = body.next().await {
            if stdin.write_all(&piece).await.is_err() {
                break;
            }
        }
    });
    let mut stdout = child.stdout.take().unwrap();
    let mut start = Vec::new();
    let end = loop {
        if let Some(end) = start.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let mut piece = [0; 4096];
        let read = stdout.read(&mut piece).await.unwrap();
        assert!(read > 0, "git http-backend ended early");
        start.extend_from_slice(&piece[..read]);
    };
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&start[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value.split(' ').next().unwrap().parse::<u16>().unwrap()),
            _ => response.header(name, value),
        };
    }
    let first = Bytes::copy_from_slice(&start[end + 4..]);
    let rest = futures::stream::unfold((stdout, child), |(mut stdout, child)| async move {
        let mut piece = vec![0; 32 * 1024];
        let read = stdout.read(&mut piece).await.unwrap_or(0);
        piece.truncate(read);
        (read > 0).then(|| (Ok::<_, std::io::Error>(Bytes::from(piece)), (stdout, child)))
    });
    let all = futures::stream::once(async move { Ok(first) }).chain(rest);
    response.body(Body::from_stream(all)).unwrap()
}
