//! The program itself, against the laptop stack's Discord.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use std::sync::Arc;

use bobbin_local_chat::{Backstage, Chat, DiscordKeys, Settings, SlackKeys};
use futures::future::BoxFuture;
use serde_json::{Value, json};

const TOKEN: &str = "a-bot-token-that-nobody-may-see";
const APPLICATION: &str = "1300000000000000001";

struct Nothing;

impl Backstage for Nothing {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async { Vec::new() })
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async { Vec::new() })
    }
}

struct World {
    chat: Chat,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            state_dir: folder.path().to_owned(),
            port: 0,
            ingress: None,
            discord: DiscordKeys {
                application_id: APPLICATION.to_owned(),
                seed: "07".repeat(32),
                bot_token: TOKEN.to_owned(),
            },
            slack: SlackKeys {
                scopes: Vec::new(),
                signing_secret: "unused".to_owned(),
                bot_token: "unused".to_owned(),
                bot_user_id: "U1".to_owned(),
                app_id: "A1".to_owned(),
                shortcuts: Vec::new(),
                commands: Vec::new(),
            },
            backstage: Arc::new(Nothing),
            gates: bobbin_local_gate::Gates::default(),
        };
        Self {
            chat: Chat::start(settings).await.unwrap(),
            _folder: folder,
        }
    }

    async fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bobbin-setup"));
        command.args(["discord", "commands"]).args(arguments);
        command
            .env_remove("DISCORD_APPLICATION_ID")
            .env("DISCORD_API", self.chat.discord_api())
            .env("DISCORD_BOT_TOKEN", TOKEN);
        for (name, value) in environment {
            command.env(name, value);
        }
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        for words in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(words).contains(TOKEN));
        }
        output
    }

    /// What went to Discord, as method and route.
    async fn requests(&self) -> Vec<String> {
        let list = self
            .control(reqwest::Method::GET, "requests", &Value::Null)
            .await;
        let line = |one: &Value| {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let route = text("route");
            format!(
                "{} {}",
                text("method"),
                route.trim_start_matches("/api/v10")
            )
        };
        list["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(line)
            .collect()
    }

    async fn control(&self, method: reqwest::Method, path: &str, body: &Value) -> Value {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("{}/_control/discord/{path}", self.chat.page());
        let request = reqwest::Client::new().request(method, url).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn commands_are_written_once_and_again_only_when_something_differs() {
    let world = World::start().await;
    let dry = world.run(&["--dry-run"], &[]).await;
    assert_eq!(dry.status.code(), Some(3), "{}", told(&dry));
    let expected = "Discord application Bobbin (1300000000000000001), all servers: these commands would change, nothing was written.\n  \
        + /sandbox\n  + /say\n  + /status\n  + /diff\n  + /stop\n  + /reset\n  + /sandbox-config\n  + /help\n  + Send to sandbox\n";
    assert_eq!(out(&dry), expected);

    let first = world.run(&[], &[]).await;
    assert_eq!(first.status.code(), Some(0), "{}", told(&first));
    assert_eq!(
        out(&first),
        expected.replace("would change, nothing was written", "were written")
    );
    let again = world.run(&[], &[]).await;
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(
        out(&again),
        "Discord application Bobbin (1300000000000000001), all servers: the commands are as they should be, nothing was written.\n"
    );
    let path = format!("/applications/{APPLICATION}/commands");
    let me = "GET /applications/@me".to_owned();
    let (get, put) = (format!("GET {path}"), format!("PUT {path}"));
    assert_eq!(
        world.requests().await,
        [&me, &get, &me, &get, &put, &me, &get].map(String::clone)
    );
}

#[tokio::test]
async fn one_servers_commands_are_its_own() {
    let world = World::start().await;
    let guild = world.chat.seeds().guild_id;
    let id = [("DISCORD_APPLICATION_ID", APPLICATION)];
    let written = world.run(&["--guild", &guild], &id).await;
    assert_eq!(written.status.code(), Some(0), "{}", told(&written));
    let head = format!(
        "Discord application {APPLICATION}, server {guild}: these commands were written.\n"
    );
    assert!(out(&written).starts_with(&head), "{}", out(&written));
    let path = format!("/applications/{APPLICATION}/guilds/{guild}/commands");
    assert_eq!(
        world.requests().await,
        [format!("GET {path}"), format!("PUT {path}")]
    );
    let dry = world.run(&["--guild", &guild, "--dry-run"], &id).await;
    assert_eq!(dry.status.code(), Some(0));
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    let world = World::start().await;
    let wrong = world.run(&[], &[("DISCORD_BOT_TOKEN", "another")]).await;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(told(&wrong).contains("Reset Token"), "{}", told(&wrong));

    let none = world.run(&[], &[("DISCORD_BOT_TOKEN", " ")]).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(told(&none).starts_with("DISCORD_BOT_TOKEN is not set."));

    let elsewhere = world.run(&["--guild", "1300000000000009999"], &[]).await;
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(told(&elsewhere).contains("oauth2/authorize?client_id=1300000000000000001&"));

    let other = [("DISCORD_APPLICATION_ID", "1300000000000000002")];
    let other = world.run(&[], &other).await;
    assert!(
        told(&other).contains("leave DISCORD_APPLICATION_ID away"),
        "{}",
        told(&other)
    );

    let fault = json!({"route": "/commands", "status": 429, "retry_after": 60.0, "count": 3});
    world.control(reqwest::Method::POST, "faults", &fault).await;
    let slow = world.run(&[], &[]).await;
    assert!(
        told(&slow).contains("Try again in 60 s."),
        "{}",
        told(&slow)
    );

    for odd in [&["--guild", "general"][..], &["--guilds"]] {
        let odd = world.run(odd, &[]).await;
        assert_eq!(odd.status.code(), Some(2), "{}", told(&odd));
    }
}
