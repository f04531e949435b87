//! The services around a stack, on loopback: AWS with a stack of outputs, parameters and secrets but no function, the
//! chats, the sandbox provider, and an ingress that verifies as the product's own does.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bobbin_chat::{discord, slack::manifest};
use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::access::Policy;
use bobbin_local_aws::{Clock, Engine};
use bobbin_local_chat::{DiscordKeys, Inspector, LocalChat, SlackKeys};
use bobbin_local_daytona::LocalDaytona;
use futures::future::BoxFuture;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const DISCORD_TOKEN: &str = "discord-canary-0123456789";
pub const SLACK_TOKEN: &str = "xoxb-slack-canary-0123456789";
pub const SIGNING_SECRET: &str = "00c0ffee00c0ffee00c0ffee00c0ffee";
pub const DAYTONA_KEY: &str = "dtn_canary_0123456789";
pub const MODEL_KEY: &str = "sk-model-7f3a9c1e5b";
pub const APPLICATION: &str = "1300000000000000001";
/// Everything that must never be seen.
const CANARIES: [&str; 5] = [DISCORD_TOKEN, SLACK_TOKEN, SIGNING_SECRET, DAYTONA_KEY, MODEL_KEY];

const TEMPLATE: &str = r#"
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  DiscordApplicationId: { Type: String, Default: "" }
  DiscordPublicKey: { Type: String, Default: "" }
  AllowedGuilds: { Type: String, Default: "" }
  AllowedTeams: { Type: String, Default: "" }
  DaytonaSnapshot: { Type: String, Default: "" }
  Model: { Type: String, Default: anthropic/some-model }
  Overrides: { Type: String, Default: "{}" }
  GitHubAppId: { Type: String, Default: "" }
  Ingress: { Type: String }
Resources:
  IngressSecret: { Type: AWS::SecretsManager::Secret, Properties: { SecretString: "{}" } }
  WorkerSecret: { Type: AWS::SecretsManager::Secret, Properties: { SecretString: "{\"kept\":\"as it is\"}" } }
  ProviderSecret: { Type: AWS::SecretsManager::Secret, Properties: { SecretString: "{}" } }
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{ AttributeName: thread, AttributeType: S }, { AttributeName: item, AttributeType: S }]
      KeySchema: [{ AttributeName: thread, KeyType: HASH }, { AttributeName: item, KeyType: RANGE }]
Outputs:
  TableName: { Value: !Ref Table }
  IngressAddress: { Value: !Sub "${Ingress}/" }
  DiscordEndpoint: { Value: !Sub "${Ingress}/discord/interactions" }
  IngressSecretArn: { Value: !Ref IngressSecret }
  WorkerSecretArn: { Value: !Ref WorkerSecret }
  ProviderSecretArn: { Value: !Ref ProviderSecret }
"#;

struct Nothing;

impl Inspector for Nothing {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async { Vec::new() })
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async { Vec::new() })
    }
}

/// What differs from a stack that is as it should be.
#[derive(Default)]
pub struct Options {
    /// Parameters of the template.
    pub parameters: Vec<(&'static str, String)>,
    /// An endpoint of one's own for the model.
    pub model_base_url: Option<String>,
    /// Bases of a forge's API and of its pages.
    pub github: Option<[String; 2]>,
    /// Scopes of the Slack token; all that are needed where none are named.
    pub scopes: Option<Vec<String>>,
    /// Permissions of the Daytona key; likewise.
    pub permissions: Option<Vec<String>>,
}

pub struct World {
    pub chat: LocalChat,
    pub provider: LocalDaytona,
    pub engine: Engine,
    pub ingress: String,
    pub models: String,
    pub public_key: String,
    folder: TempDir,
}

impl World {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let all = || manifest::scopes().into_iter().map(str::to_owned).collect();
        let chat = LocalChat::start(bobbin_local_chat::LocalChatSettings {
            state_dir: folder.path().join("chat"),
            port: 0,
            model_is_scripted: true,
            control_key: CONTROL_KEY.to_owned().into(),
            also_named: None,
            ingress: None,
            ingress_answer_ms: bobbin_local_chat::INGRESS_ANSWER_MS_MAX,
            discord: DiscordKeys {
                application_id: APPLICATION.to_owned(),
                seed: "07".repeat(32),
                bot_token: DISCORD_TOKEN.to_owned(),
            },
            slack: SlackKeys {
                signing_secret: SIGNING_SECRET.to_owned(),
                bot_token: SLACK_TOKEN.to_owned(),
                bot_user_id: "U1".to_owned(),
                app_id: "A1".to_owned(),
                shortcuts: Vec::new(),
                commands: Vec::new(),
                scopes: options.scopes.unwrap_or_else(all),
            },
            inspector: Arc::new(Nothing),
            breakpoints: Default::default(),
        })
        .await
        .unwrap();
        let mut settings = bobbin_local_daytona::LocalDaytonaSettings::new(
            folder.path().join("daytona"),
            DAYTONA_KEY.to_owned(),
        );
        if let Some(permissions) = options.permissions {
            settings.key_permissions = permissions;
        }
        let provider = LocalDaytona::start(settings).await.unwrap();
        let public_key = public_key(&chat).await;
        let ingress = ingress(&public_key).await;
        let models = models().await;
        let seeds = chat.seeds();
        let [api, git] =
            options.github.unwrap_or_else(|| ["https://api.github.com".to_owned(), String::new()]);
        let overrides = json!({
            "discord_api": chat.discord_api(), "slack_api": chat.slack_api(), "daytona_api": provider.api_url(),
            "model_base_url": options.model_base_url.unwrap_or_default(),
            "github_api": api, "github_git": git,
        });
        let mut parameters: BTreeMap<String, String> = [
            ("DiscordApplicationId", APPLICATION.to_owned()),
            ("DiscordPublicKey", public_key.clone()),
            ("AllowedGuilds", seeds.guild_id.clone()),
            ("AllowedTeams", seeds.team_id.clone()),
            ("Overrides", overrides.to_string()),
            ("Ingress", ingress.clone()),
        ]
        .into_iter()
        .chain(options.parameters)
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        parameters.retain(|_, value| value != "-");
        let template = folder.path().join("template.yaml");
        std::fs::write(&template, TEMPLATE).unwrap();
        let engine = Engine::start(bobbin_local_aws::EngineSettings {
            template,
            parameters,
            secrets: BTreeMap::new(),
            stack_name: "bobbin".to_owned(),
            region: "us-east-1".to_owned(),
            state_dir: folder.path().join("aws"),
            functions: BTreeMap::new(),
            extra_environment: BTreeMap::new(),
            ingress_port: 0,
            endpoint_port: 0,
            also_named: None,
            clock: Clock::system(),
            log: Arc::new(|_| {}),
            breakpoints: Default::default(),
        })
        .await
        .unwrap();
        Self { chat, provider, engine, ingress, models, public_key, folder }
    }

    /// Runs the program with nothing in its environment but what reaches this world, and these variables.
    pub async fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = self.command(arguments, environment);
        let output = tokio::task::spawn_blocking(move || command.output());
        Said::new(&output.await.unwrap().unwrap())
    }

    /// The program with nothing in its environment but what reaches this world, and these variables.
    pub fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bobbin"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("AWS_ENDPOINT_URL", self.engine.endpoint())
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "an-id")
            .env("AWS_SECRET_ACCESS_KEY", "a-key")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("DISCORD_API", self.chat.discord_api())
            .env("SLACK_API", self.chat.slack_api())
            .env("DAYTONA_API", self.provider.api_url())
            .env("ANTHROPIC_API", format!("{}/anthropic", self.models))
            .env("OPENAI_API", format!("{}/openai", self.models))
            .env("OPENROUTER_API", format!("{}/openrouter", self.models))
            .stdin(std::process::Stdio::null());
        for (name, value) in environment {
            match *value {
                "-" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command
    }

    /// Runs a command in a terminal of its own and types a line at each prompt; what the terminal showed.
    #[cfg(target_os = "linux")]
    pub async fn type_in(&self, command: &str, prompt: &str, lines: &[&str]) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let program = env!("CARGO_BIN_EXE_bobbin");
        let mut terminal = tokio::process::Command::new("script")
            .args([
                "--quiet",
                "--return",
                "--command",
                &format!("{program} {command}"),
                "/dev/null",
            ])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("AWS_ENDPOINT_URL", self.engine.endpoint())
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "an-id")
            .env("AWS_SECRET_ACCESS_KEY", "a-key")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (mut to, mut from) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
        let (mut shown, mut typed, mut piece) = (String::new(), 0, [0; 1024]);
        let talk = async {
            loop {
                let read = from.read(&mut piece).await.unwrap();
                if read == 0 {
                    return;
                }
                shown.push_str(&String::from_utf8_lossy(&piece[..read]));
                while typed < shown.matches(prompt).count() {
                    to.write_all(format!("{}\n", lines[typed]).as_bytes()).await.unwrap();
                    typed += 1;
                }
            }
        };
        let within = std::time::Duration::from_secs(60);
        assert!(tokio::time::timeout(within, talk).await.is_ok(), "{shown}");
        assert!(terminal.wait().await.unwrap().success(), "{shown}");
        assert_eq!(typed, lines.len(), "{shown}");
        shown
    }

    /// The same with every key in the environment.
    pub async fn run_keyed(&self, arguments: &[&str]) -> Said {
        self.run(arguments, &KEYED).await
    }

    /// What a secret of the stack holds.
    pub async fn secret(&self, logical_id: &str) -> Value {
        let body = json!({ "SecretId": self.engine.resource(logical_id).unwrap() });
        let client = client();
        let request = client
            .post(self.engine.endpoint())
            .header("x-amz-target", "secretsmanager.GetSecretValue")
            .body(body.to_string());
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        serde_json::from_str(answer["SecretString"].as_str().unwrap()).unwrap()
    }

    /// What went to a chat, as method and route.
    pub async fn requests(&self, platform: &str) -> Vec<String> {
        let list = self.control(Method::GET, platform, "requests", &Value::Null).await;
        let line = |one: &Value| {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let route = text("route");
            format!("{} {}", text("method"), route.trim_start_matches("/api/v10"))
        };
        list["requests"].as_array().unwrap().iter().map(line).collect()
    }

    pub async fn control(&self, method: Method, platform: &str, path: &str, body: &Value) -> Value {
        let url = format!("{}/_control/{platform}/{path}", self.chat.page());
        let request = client().request(method, url).bearer_auth(CONTROL_KEY);
        let request = request.json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// A call of the provider, with its key.
    pub async fn provider(&self, method: Method, path: &str, body: Value) -> Value {
        let base = self.provider.api_url();
        let url = format!("{}{path}", base.trim_end_matches("/api"));
        let request = client().request(method, url).bearer_auth(DAYTONA_KEY);
        let answer = request.json(&body).send().await.unwrap();
        answer.json().await.unwrap_or_default()
    }
}

/// What the chat's control calls answer to.
const CONTROL_KEY: &str = "the-key-of-the-stack";

/// The keys that these tests store, each by its name.
pub const KEYED: [(&str, &str); 5] = [
    ("DISCORD_BOT_TOKEN", DISCORD_TOKEN),
    ("SLACK_BOT_TOKEN", SLACK_TOKEN),
    ("SLACK_SIGNING_SECRET", SIGNING_SECRET),
    ("DAYTONA_API_KEY", DAYTONA_KEY),
    ("ANTHROPIC_API_KEY", MODEL_KEY),
];

/// What the program said, and how it ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let said = Self {
            code: output.status.code().unwrap(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        for canary in CANARIES {
            // No part of a key either: its first and its last half stand for all of them.
            let (first, last) = canary.split_at(canary.len() / 2);
            for part in [first, last] {
                assert!(
                    !said.out.contains(part) && !said.err.contains(part),
                    "{}{}",
                    said.out,
                    said.err
                );
            }
        }
        said
    }

    /// It ended so, and said exactly this.
    #[track_caller]
    pub fn is(&self, code: i32, out: &str) {
        assert_eq!(self.out, out, "{}", self.err);
        assert_eq!((self.code, self.err.as_str()), (code, ""));
    }

    /// It was refused, and the person was told this.
    #[track_caller]
    pub fn refused(&self, words: &str) {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(self.err.contains(words), "{}", self.err);
    }

    /// It said this, among other things.
    #[track_caller]
    pub fn holds(&self, words: &str) {
        assert!(self.out.contains(words), "{}{}", self.out, self.err);
    }
}

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn public_key(chat: &LocalChat) -> String {
    let request = client()
        .get(format!("{}/applications/@me", chat.discord_api()))
        .header("authorization", format!("Bot {DISCORD_TOKEN}"));
    let app: Value = request.send().await.unwrap().json().await.unwrap();
    app["verify_key"].as_str().unwrap().to_owned()
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// Answers interactions by the product's own verification; under `/lax/` everything is a good PING.
async fn ingress(public_key: &str) -> String {
    let app =
        discord::App::new(public_key, APPLICATION, Policy::default(), Limits::DEFAULT).unwrap();
    let verified = |State(app): State<Arc<discord::App>>, headers: HeaderMap, body: Bytes| async move {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now_ms = u64::try_from(since.as_millis()).unwrap();
        let (signature, timestamp) =
            (header("x-signature-ed25519"), header("x-signature-timestamp"));
        let answer = discord::interactions(&body, signature, timestamp, &app, now_ms).answer;
        let kind = [("content-type", answer.content_type)];
        (StatusCode::from_u16(answer.status).unwrap(), kind, answer.body)
    };
    let router = Router::new()
        .route("/discord/interactions", post(verified))
        .route("/lax/discord/interactions", post(async || axum::Json(json!({ "type": 1 }))))
        .with_state(Arc::new(app));
    serve(router).await
}

/// The model providers' answers about a key: the right one is [`MODEL_KEY`], and OpenRouter names a part of it.
async fn models() -> String {
    let keyed = |header: &'static str, answer: Value| {
        axum::routing::get(move |headers: HeaderMap| {
            let sent = headers.get(header).and_then(|value| value.to_str().ok());
            let is_right = sent.is_some_and(|sent| sent.trim_start_matches("Bearer ") == MODEL_KEY);
            let status = if is_right { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            std::future::ready((status, axum::Json(answer.clone())))
        })
    };
    let list = json!({ "data": [{ "id": "some-model" }, { "id": "other-model" }] });
    let credit = json!({ "data": { "label": "another-ca...", "limit_remaining": 4.5 } });
    let router = Router::new()
        .route("/anthropic/models", keyed("x-api-key", list.clone()))
        .route("/openai/models", keyed("authorization", list.clone()))
        .route("/openrouter/key", keyed("authorization", credit))
        .route("/openrouter/keys", keyed("authorization", json!({ "data": [] })))
        .route("/own/models", axum::routing::get(async move || axum::Json(list)));
    serve(router).await
}
