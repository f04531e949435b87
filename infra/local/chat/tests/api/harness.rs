//! A chat on a free port, and an ingress that verifies, keeps what it got, and answers as told.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bobbin_local_chat::{
    DiscordKeys, ForgePane, Inspector, LocalChat, LocalChatSettings, PaneAnswer, PaneRequest,
    SlackCommand, SlackKeys, SlackShortcut, sign,
};
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const BOT: &str = "Bot local-bot-token";
pub const XOXB: &str = "Bearer xoxb-local";
pub const SECRET: &str = "local-signing-secret";
pub const APP: &str = "1300000000000000001";
pub const SLACK_BOT: &str = "U0BOBBIN";

/// A delivery that reached the ingress.
#[derive(Clone)]
pub struct Got {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Clone)]
pub struct Ingress {
    key: VerifyingKey,
    pub got: Arc<Mutex<Vec<Got>>>,
    /// Answers in order; without one it is 200 and an empty object.
    pub answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
}

impl Ingress {
    pub fn will_answer(&self, status: u16, body: Value) {
        self.answers.lock().unwrap().push_back((status, body));
    }

    pub fn deliveries(&self, path: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|one| one.path == path).cloned().collect()
    }
}

/// The only pull request of the forge; its texts are written as a page would not want them.
pub const TITLE: &str = "<b>Merge</b> me";
pub const TEXT: &str = "<img src=x onerror=alert(1)>\n@everyone";
const REPOSITORY: &str = "acme/tool";

struct Nothing;

impl Inspector for Nothing {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        async { vec![json!({"thread": "discord:1:2", "phase": "active", "generation": 1, "timeline": []})] }.boxed()
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        async { Vec::new() }.boxed()
    }

    fn forge(&self) -> Option<&dyn ForgePane> {
        Some(self)
    }
}

fn pull(number: u64) -> Value {
    json!({"number": number, "title": TITLE, "body": TEXT, "state": "draft", "files": [{"path": "a", "patch": "+b"}]})
}

impl ForgePane for Nothing {
    fn repositories(&self) -> PaneAnswer<'_> {
        let one = json!({"full_name": REPOSITORY, "branches": [{"name": "main"}], "pull_requests": [pull(1)]});
        async move { Ok(json!([one])) }.boxed()
    }

    fn pull_request(&self, repository: String, number: u64) -> PaneAnswer<'_> {
        let known = repository == REPOSITORY && number == 1;
        async move { if known { Ok(pull(number)) } else { Err("Not Found".to_owned()) } }.boxed()
    }

    fn act(&self, wish: PaneRequest) -> PaneAnswer<'_> {
        let done = match wish {
            PaneRequest::Merge { .. } => Err("Pull Request is still a draft".to_owned()),
            other => Ok(json!({"asked": format!("{other:?}")})),
        };
        async { done }.boxed()
    }
}

pub struct Harness {
    pub chat: LocalChat,
    pub ingress: Ingress,
    pub http: reqwest::Client,
    pub dir: PathBuf,
}

/// What the chat's control calls are allowed by.
pub const CONTROL_KEY: &str = "the-key-of-the-stack";

fn settings(dir: PathBuf, ingress: Option<String>) -> LocalChatSettings {
    LocalChatSettings {
        breakpoints: bobbin_local_breakpoint::Breakpoints::default(),
        state_dir: dir,
        port: 0,
        model_is_scripted: true,
        control_key: CONTROL_KEY.to_owned().into(),
        also_named: None,
        ingress,
        ingress_answer_ms: bobbin_local_chat::INGRESS_ANSWER_MS_MAX,
        discord: DiscordKeys {
            application_id: APP.to_owned(),
            seed: "07".repeat(32),
            bot_token: "local-bot-token".to_owned(),
        },
        slack: SlackKeys {
            scopes: Vec::new(),
            signing_secret: SECRET.to_owned(),
            bot_token: "xoxb-local".to_owned(),
            bot_user_id: SLACK_BOT.to_owned(),
            app_id: "A0BOBBIN".to_owned(),
            shortcuts: vec![SlackShortcut {
                callback_id: "send".to_owned(),
                name: "Send to Bobbin".to_owned(),
            }],
            commands: vec![SlackCommand {
                command: "/bobbin".to_owned(),
                description: "Status".to_owned(),
                usage_hint: "status".to_owned(),
            }],
        },
        inspector: Arc::new(Nothing),
    }
}

pub async fn start() -> Harness {
    let dir = std::env::temp_dir().join(format!(
        "bobbin-chat-{}-{:x}",
        std::process::id(),
        rand::random::<u64>()
    ));
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    let ingress = Ingress { key, got: Arc::default(), answers: Arc::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(receive).with_state(ingress.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let chat = LocalChat::start(settings(dir.clone(), None)).await.unwrap();
    chat.set_ingress(base);
    Harness { chat, ingress, http: reqwest::Client::new(), dir }
}

async fn receive(
    State(ingress): State<Ingress>,
    uri: Uri,
    headers: HeaderMap,
    raw: Bytes,
) -> Response {
    let text = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let good = if uri.path().starts_with("/discord") {
        let signature: Option<[u8; 64]> =
            hex::decode(text("x-signature-ed25519")).ok().and_then(|bytes| bytes.try_into().ok());
        let signed = [text("x-signature-timestamp").as_bytes(), &raw].concat();
        signature.is_some_and(|bytes| {
            ingress.key.verify_strict(&signed, &Signature::from_bytes(&bytes)).is_ok()
        })
    } else {
        sign::slack(SECRET, &text("x-slack-request-timestamp"), &raw) == text("x-slack-signature")
    };
    if !good {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let body =
        serde_json::from_slice(&raw).unwrap_or_else(|_| form(&String::from_utf8_lossy(&raw)));
    let challenge = body["challenge"].clone();
    ingress.got.lock().unwrap().push(Got { path: uri.path().to_owned(), headers, body });
    if let Some(challenge) = challenge.as_str() {
        return challenge.to_owned().into_response();
    }
    let (status, answer) = ingress.answers.lock().unwrap().pop_front().unwrap_or((200, json!({})));
    let status = StatusCode::from_u16(status).unwrap();
    if answer.is_null() {
        status.into_response()
    } else {
        (status, axum::Json(answer)).into_response()
    }
}

fn form(raw: &str) -> Value {
    let url = format!("http://form.invalid/?{raw}");
    let mut fields = json!({});
    for (name, value) in reqwest::Url::parse(&url).unwrap().query_pairs() {
        fields[name.as_ref()] =
            serde_json::from_str(&value).unwrap_or_else(|_| value.as_ref().into());
    }
    fields
}

impl Harness {
    /// A Discord call of the bot: status and body.
    pub async fn discord(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}{path}", self.chat.discord_api());
        let mut request =
            self.http.request(method.parse().unwrap(), url).header("authorization", BOT);
        if !body.is_null() {
            request = request.json(&body);
        }
        read(request).await
    }

    pub async fn slack(&self, method: &str, body: Value) -> Value {
        let url = format!("{}/{method}", self.chat.slack_api());
        read(self.http.post(url).header("authorization", XOXB).json(&body)).await.1
    }

    pub async fn control(&self, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/_control/{path}", self.chat.page());
        if body.is_null() {
            read(self.http.get(url).bearer_auth(CONTROL_KEY)).await
        } else {
            read(self.http.post(url).bearer_auth(CONTROL_KEY).json(&body)).await
        }
    }

    /// What the page reads.
    pub async fn ui(&self, what: &str) -> Value {
        let url = format!("{}/ui/{what}", self.chat.page());
        read(self.http.get(url).bearer_auth(CONTROL_KEY)).await.1
    }

    /// What the forge pane reads.
    pub async fn forge(&self, what: &str) -> (u16, Value) {
        let url = format!("{}/ui/forge{what}", self.chat.page());
        read(self.http.get(url).bearer_auth(CONTROL_KEY)).await
    }

    /// What the forge pane sends.
    pub async fn press(&self, body: String) -> (u16, Value) {
        let url = format!("{}/ui/forge", self.chat.page());
        read(self.http.post(url).bearer_auth(CONTROL_KEY).body(body)).await
    }

    pub async fn interact(&self, body: Value) -> Value {
        let (status, body) = self.control("discord/interact", body).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    pub async fn act(&self, body: Value) -> Value {
        let (status, body) = self.control("slack/act", body).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Stops and starts again on the same state.
    pub async fn restart(self) -> Harness {
        let Harness { chat, ingress, http, dir } = self;
        let seeds = chat.seeds();
        chat.stop().await;
        let chat = LocalChat::start(settings(dir.clone(), None)).await.unwrap();
        assert_eq!(chat.seeds().guild_id, seeds.guild_id);
        Harness { chat, ingress, http, dir }
    }

    pub async fn end(self) {
        self.chat.stop().await;
        std::fs::remove_dir_all(&self.dir).unwrap();
    }
}

async fn read(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
}

/// Waits until `done` holds, at most 5 s.
pub async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..250 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("did not happen within 5 s: {what}");
}
