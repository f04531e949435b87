//! A forge in a folder of its own, with git and a browser that know nothing else.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bobbin_local_forge::{ForgeIdentity, ForgeSettings, LocalForge};
use bobbin_rules::github::{Exchange, ExchangeVerdict, judge};
use bobbin_test_server::{Received, Reply, Server};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

pub const KEY: &str = "control";
pub const WEBHOOK_SECRET: &str = "It's a Secret to Everybody";
const WAIT_MS_MAX: u64 = 30_000;

pub struct World {
    pub forge: LocalForge,
    /// What is told of events.
    pub hook: Server,
    pub http: Client,
    pub folder: PathBuf,
    pub id: ForgeIdentity,
}

/// A folder that no other test uses.
fn fresh_folder(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("bobbin-forge-{name}-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("work")).unwrap();
    folder
}

fn settings(folder: &Path) -> ForgeSettings {
    let mut settings = ForgeSettings::new(folder.join("state"), KEY.to_owned().into());
    settings.seeds.webhook_secret = Some(WEBHOOK_SECRET.to_owned());
    settings
}

/// What git said.
pub struct GitOutput {
    pub is_ok: bool,
    pub out: String,
    pub err: String,
}

impl From<Output> for GitOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Self {
            is_ok: output.status.success(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

impl GitOutput {
    /// Fails with what git said unless it is well.
    pub fn well(self) -> String {
        assert!(self.is_ok, "{}", self.err);
        self.out
    }

    /// Fails unless git failed and said all of this.
    pub fn refused(self, texts: &[&str]) {
        assert!(!self.is_ok, "{}", self.out);
        for text in texts {
            // What the server says is padded up to where another line would have ended.
            let lines: Vec<&str> = self.err.lines().map(str::trim_end).collect();
            assert!(lines.join("\n").contains(text), "{text}\nis not in\n{}", self.err);
        }
    }
}

impl World {
    pub async fn start(name: &str) -> Self {
        Self::with(settings(&fresh_folder(name))).await
    }

    pub async fn with(settings: ForgeSettings) -> Self {
        let folder = settings.state_dir.parent().unwrap().to_owned();
        let forge = LocalForge::start(settings).await.unwrap();
        let hook = Server::answering([Reply::json(200, &json!({}))]).await;
        let callbacks = vec!["http://127.0.0.1/github/callback".to_owned()];
        forge.set_app_addresses(Some(format!("{}/hook", hook.base())), callbacks, None).unwrap();
        let http = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(60))
            .user_agent("bobbin-forge-check")
            .build()
            .unwrap();
        let id = forge.identity();
        World { forge, hook, http, folder, id }
    }

    pub async fn end(self) {
        self.forge.stop().await;
        self.hook.stop().await;
        std::fs::remove_dir_all(self.folder).unwrap();
    }

    /// Stops the forge, and starts it again over the same state.
    pub async fn restarted(self) -> Self {
        self.forge.stop().await;
        self.hook.stop().await;
        Self::with(settings(&self.folder)).await
    }

    pub fn api(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.forge.api()));
        if token.is_empty() { request } else { request.bearer_auth(token) }
    }

    /// Sends and reads the answer as JSON; `Null` when there is none. GitHub's description finds nothing wrong.
    pub async fn send(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let request = request.build().unwrap();
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let sent = request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec);
        let sent = sent.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let response = self.http.execute(request).await.unwrap();
        let status = response.status();
        let answer = serde_json::from_slice(&response.bytes().await.unwrap()).ok();
        let exchange = Exchange {
            method: &method,
            path: &path,
            request: sent.as_ref(),
            status: status.as_u16(),
            answer: answer.as_ref(),
        };
        if let ExchangeVerdict::Known { call, wrong } = judge(&exchange) {
            assert_eq!(wrong, Vec::<String>::new(), "{call} {status}");
        }
        (status, answer.unwrap_or_default())
    }

    pub async fn get(&self, path: &str, token: &str) -> (StatusCode, Value) {
        self.send(self.api(Method::GET, path, token)).await
    }

    /// A call in the administrator's name that is not refused.
    pub async fn as_ada(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.api(method, path, &self.id.user_token).json(&body);
        let (status, answer) = self.send(request).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// A test's own word to the forge.
    pub async fn control(&self, path: &str, body: Value) -> Value {
        let request = self.api(Method::POST, &format!("/_control/{path}"), KEY).json(&body);
        let (status, answer) = self.send(request).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// A private repository of the organisation, and its id.
    pub async fn repository(&self, name: &str, more: Value) -> u64 {
        let mut body = json!({ "name": name, "private": true, "auto_init": true });
        for (field, value) in more.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let made = self.as_ada(Method::POST, "/orgs/laptop/repos", body).await;
        made["id"].as_u64().unwrap()
    }

    /// A token of the installation, made as an app makes it.
    pub async fn mint(&self, body: Value) -> String {
        let path = format!("/app/installations/{}/access_tokens", self.id.installation);
        let request = self.api(Method::POST, &path, &self.app_token()).json(&body);
        let (status, answer) = self.send(request).await;
        assert_eq!(status, 201, "{answer}");
        answer["token"].as_str().unwrap().to_owned()
    }

    /// The token that the app signs itself.
    pub fn app_token(&self) -> String {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let (now, part) = (now.as_secs(), |value: Value| URL_SAFE_NO_PAD.encode(value.to_string()));
        let head = part(json!({"alg": "RS256", "typ": "JWT"}));
        let claims = part(json!({"iat": now - 60, "exp": now + 540, "iss": self.id.client_id}));
        let text = format!("{head}.{claims}");
        let lines = self.id.private_key.lines().filter(|line| !line.starts_with('-'));
        let der = STANDARD.decode(lines.collect::<String>()).unwrap();
        let key = ring::rsa::KeyPair::from_der(&der).unwrap();
        let mut signature = vec![0; key.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        let padding = &ring::signature::RSA_PKCS1_SHA256;
        key.sign(padding, &random, text.as_bytes(), &mut signature).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The address of a repository, with a token in it.
    pub fn address(&self, repository: &str, token: &str) -> String {
        let base = self.forge.git();
        let with = base.replacen("://", &format!("://x-access-token:{token}@"), 1);
        let base = if token.is_empty() { base } else { with };
        format!("{base}/{repository}.git")
    }

    /// Git in a folder below this world's own, without anybody's configuration.
    pub async fn git(&self, folder: &str, arguments: &[&str]) -> GitOutput {
        let mut command = tokio::process::Command::new("git");
        command
            .env("HOME", &self.folder)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(self.folder.join("work").join(folder))
            .kill_on_drop(true);
        command.output().await.unwrap().into()
    }

    /// A clone of a repository in a folder of this name.
    pub async fn clone_of(&self, repository: &str, token: &str, folder: &str) {
        let address = self.address(repository, token);
        self.git("", &["clone", "-q", &address, folder]).await.well();
    }

    /// A commit of one file, and its id.
    pub async fn commit(&self, folder: &str, path: &str, text: impl AsRef<[u8]>) -> String {
        let file = self.folder.join("work").join(folder).join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        self.git(folder, &["add", "-A"]).await.well();
        self.git(folder, &["commit", "-q", "-m", &format!("Change {path}")]).await.well();
        self.git(folder, &["rev-parse", "HEAD"]).await.well()
    }

    /// Pushes what is checked out to a branch.
    pub async fn push(
        &self,
        folder: &str,
        repository: &str,
        token: &str,
        branch: &str,
    ) -> GitOutput {
        let to = format!("HEAD:refs/heads/{branch}");
        self.git(folder, &["push", &self.address(repository, token), &to]).await
    }

    /// A page, for a browser with this cookie.
    pub async fn page(&self, path: &str, cookie: &str) -> (StatusCode, String) {
        let request = self.http.get(format!("{}{path}", self.forge.git())).header("cookie", cookie);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// Sends a form as this forge's own page does.
    pub async fn form(&self, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Response {
        let base = self.forge.git();
        let request = self.http.post(format!("{base}{path}"));
        request.header("cookie", cookie).header("origin", base).form(fields).send().await.unwrap()
    }

    /// The cookie of a person who signed in.
    pub async fn signed_in(&self, login: &str) -> String {
        let fields = [("login", login), ("password", &self.id.password), ("return_to", "/")];
        let response = self.form("/login", "", &fields).await;
        assert_eq!(response.status(), 303);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// The webhooks of an event, when there are as many as expected.
    pub async fn told(&self, event: &str, action: &str, count: usize) -> Vec<Received> {
        let is_it = |one: &Received| {
            one.headers["x-github-event"] == event && one.json()["action"] == action
        };
        let found = || self.hook.received().into_iter().filter(is_it).collect::<Vec<_>>();
        wait_for(&format!("{event} {action}"), async || found().len() >= count).await;
        let found = found();
        assert_eq!(found.len(), count, "{event} {action}");
        found
    }
}

/// Where an answer sends its caller.
pub fn location(response: &Response) -> String {
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// Polls until the condition holds.
pub async fn wait_for(what: &str, condition: impl AsyncFn() -> bool) {
    let bound = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
    while !condition().await {
        assert!(Instant::now() < bound, "waited too long for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
