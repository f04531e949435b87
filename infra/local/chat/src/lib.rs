//! Discord- and Slack-compatible APIs and the chat page of the laptop stack.
//!
//! Promised: a bot that talks to the documented HTTP APIs of both platforms finds its routes, limits, error bodies and timing
//! here; a person (or a test, through `/_control`) acts in the page, and the act reaches the ingress signed as the platform signs it.
//! State is one SQLite file and survives a restart. Only loopback is bound, requests that a foreign web page could make a
//! browser send are refused, and the page and `/_control` open to the stack's key alone: the APIs have the bots' tokens.
//!
//! Absent on purpose: a gateway, voice, direct messages and roles on Discord; streams, OAuth and several teams on Slack.

mod control;
mod discord;
mod door;
mod fault;
mod gate;
mod hub;
mod ids;
mod json;
mod limits;
mod page;
mod prune;
mod seeds;
pub mod sign;
mod slack;
mod store;

pub use door::entrance;
pub use seeds::Seeds;
pub use store::StoreError;

use bobbin_local_gate::{ControlKey, Gates};
use futures::future::BoxFuture;
use hub::Hub;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The development identity of the Discord application.
#[derive(Clone)]
pub struct DiscordKeys {
    /// Snowflake of the application; the bot user has the same id.
    pub application_id: String,
    /// 64 hex digits: the seed of the Ed25519 key that signs interactions.
    pub seed: String,
    /// What the bot sends as `Authorization: Bot …`.
    pub bot_token: String,
}

/// The development identity of the Slack app, and what its manifest declares.
#[derive(Clone)]
pub struct SlackKeys {
    /// Key of the v0 signature.
    pub signing_secret: String,
    /// What the bot sends as `Authorization: Bearer …`.
    pub bot_token: String,
    /// `U…`, the bot's user.
    pub bot_user_id: String,
    /// `A…`, the app.
    pub app_id: String,
    /// Message shortcuts of the manifest.
    pub shortcuts: Vec<SlackShortcut>,
    /// Slash commands of the manifest.
    pub commands: Vec<SlackCommand>,
    /// Scopes that the bot token has; told with every answer, and enforced by nothing here.
    pub scopes: Vec<String>,
}

/// A message shortcut (manifest `features.shortcuts` with `type: message`).
#[derive(Clone)]
pub struct SlackShortcut {
    /// Reaches the app as `callback_id`.
    pub callback_id: String,
    /// What people read in the message's menu.
    pub name: String,
}

/// A slash command (manifest `features.slash_commands`).
#[derive(Clone)]
pub struct SlackCommand {
    /// With its slash.
    pub command: String,
    /// One line for people.
    pub description: String,
    /// What may follow the command.
    pub usage_hint: String,
}

/// What the page shows beside a thread; read about once a second while somebody looks.
pub trait Backstage: Send + Sync + 'static {
    /// Session records as JSON objects with at least `thread`, `phase`, `generation` and `timeline`.
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>>;
    /// Sandboxes as JSON objects with at least `name` and `state`.
    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>>;
}

/// How to start the chat.
pub struct Settings {
    /// Folder of the SQLite file `chat.sqlite`; made when missing.
    pub state_dir: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Base of the function URL, such as `http://127.0.0.1:8080`; may follow with [`Chat::set_ingress`].
    pub ingress: Option<String>,
    /// The Discord application.
    pub discord: DiscordKeys,
    /// The Slack app.
    pub slack: SlackKeys,
    /// What the page, and who acts or reads as a person, has to say.
    pub control_key: ControlKey,
    /// A name or address of this machine by which the bot reaches it that does not share its loopback.
    pub also_named: Option<String>,
    /// Session records and sandboxes for the page.
    pub backstage: Arc<dyn Backstage>,
    /// Test control: holds calls of functions.
    pub gates: Gates,
}

/// Why the chat did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken, or the state folder cannot be made.
    #[error("{what}: {source}; choose another port or state folder")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The SQLite file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The seed of the signing key is not 32 bytes of hex.
    #[error("the Discord seed must be 64 hex digits")]
    Seed,
    /// No HTTP client could be made.
    #[error("the client for the ingress cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}

/// A running chat.
pub struct Chat {
    hub: Arc<Hub>,
    server: JoinHandle<()>,
}

impl Chat {
    /// Binds, opens the state, seeds it at the first start, and serves.
    ///
    /// # Errors
    /// See [`Error`]; nothing is left running after one.
    pub async fn start(settings: Settings) -> Result<Chat, Error> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| Error::Io { what, source }
        };
        std::fs::create_dir_all(&settings.state_dir)
            .map_err(io("making the chat's state folder"))?;
        let listener = TcpListener::bind(("127.0.0.1", settings.port))
            .await
            .map_err(io(&format!("binding 127.0.0.1:{}", settings.port)))?;
        let address = listener
            .local_addr()
            .map_err(io("reading the bound address"))?;
        let gates = settings.gates.clone();
        let hub = Hub::open(settings, address.port())?;
        let router = gates.before(
            "chat",
            bobbin_local_gate::peer,
            page::router(Arc::clone(&hub)),
        );
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let stop = hub.stop.clone();
        let server = tokio::spawn(async move {
            let served = axum::serve(listener, router)
                .with_graceful_shutdown(stop.cancelled_owned())
                .await;
            if let Err(error) = served {
                tracing::error!(%error, "the chat server ended");
            }
        });
        let pruned = Arc::clone(&hub);
        hub.tasks
            .spawn(async move { prune::now_and_then(pruned).await });
        let watcher = Arc::clone(&hub);
        hub.tasks
            .spawn(async move { page::watch_backstage(watcher).await });
        Ok(Chat { hub, server })
    }

    /// Where interactions and events go: the base of the function URL.
    pub fn set_ingress(&self, base: String) {
        self.hub.set_ingress(base);
    }

    /// Address of the page.
    #[must_use]
    pub fn page(&self) -> String {
        self.hub.base.clone()
    }

    /// Base of the Discord-compatible API.
    #[must_use]
    pub fn discord_api(&self) -> String {
        format!("{}/api/v10", self.hub.base)
    }

    /// Base of the Slack-compatible API.
    #[must_use]
    pub fn slack_api(&self) -> String {
        format!("{}/slack/api", self.hub.base)
    }

    /// The `verify_key` of the Discord application (64 hex digits).
    #[must_use]
    pub fn discord_public_key(&self) -> String {
        self.hub.discord_public_key()
    }

    /// Ids of the guild, team, channels and people made at the first start.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        self.hub.seeds.clone()
    }

    /// Makes an interaction known that somebody else signed, before it is passed on to the ingress: until its answer comes
    /// ([`Chat::adopt_interaction`]) its token is met with 404 `10008`, as on Discord, and not as unknown. Known ones are left alone.
    ///
    /// # Errors
    /// The state file failed.
    pub fn announce_interaction(&self, interaction: &Value) -> Result<(), StoreError> {
        discord::interaction::announce(&self.hub, interaction)
    }

    /// Makes known what somebody else signed for Slack's routes, before it is passed on: an event's envelope (its message can then
    /// be found, reacted to and answered) or an interaction's payload (its `trigger_id` then opens views).
    ///
    /// # Errors
    /// The state file failed.
    pub fn announce_slack(&self, payload: &Value) -> Result<(), StoreError> {
        slack::act::announce(&self.hub, payload)
    }

    /// Takes in the ingress's answer to an interaction that somebody else signed and delivered, so that its token works here
    /// as if the page had made it. An answer other than 200 makes the interaction unknown again.
    ///
    /// # Errors
    /// The state file failed. An answer that Discord would refuse is not an error; the returned outcome names it.
    pub fn adopt_interaction(
        &self,
        interaction: &Value,
        status: u16,
        answer: &[u8],
    ) -> Result<Value, StoreError> {
        discord::interaction::adopt(&self.hub, interaction, status, answer)
    }

    /// Stops serving and waits (bounded) for open requests and deliveries.
    pub async fn stop(self) {
        self.hub.stop.cancel();
        self.hub.tasks.close();
        let bound = std::time::Duration::from_millis(limits::STOP_MS_MAX);
        let mut server = self.server;
        let both = async {
            self.hub.tasks.wait().await;
            let _ = (&mut server).await;
        };
        if tokio::time::timeout(bound, both).await.is_err() {
            server.abort();
        }
    }
}
