//! Discord- and Slack-compatible APIs, and the laptop stack's chat page.
//!
//! Promised: a bot that uses the documented HTTP APIs of both platforms finds the routes that Bobbin needs, with their
//! limits, error bodies and timing; a person (or a test, through `/_control`) acts in the page, and the action reaches
//! the ingress with the platform's signature. State is one SQLite file and survives a restart. Only loopback is bound,
//! requests that a foreign web page could make a browser send are refused, and the page and `/_control` require the
//! stack's key: the APIs have the bots' tokens. The page also shows the stack's forge, which comes by a trait.
//!
//! Absent on purpose: a gateway, voice, direct messages, reactions and the callback route on Discord; modals,
//! reactions, OAuth and several teams on Slack.

mod access;
mod action;
mod bot_requests;
mod control;
mod discord;
mod fault;
mod files;
mod forge;
mod forge_pane;
mod http;
mod hub;
mod identity;
mod ids;
mod ingress;
mod json;
mod limits;
mod live;
mod page;
mod prune;
mod seeds;
mod settings;
pub mod sign;
mod slack;
mod store;

pub use access::login_url;
pub use forge_pane::{ForgePane, PaneAnswer, PaneRequest};
pub use identity::{DiscordKeys, SlackCommand, SlackKeys, SlackShortcut};
pub use limits::INGRESS_ANSWER_MS_MAX;
pub use seeds::Seeds;
pub use settings::{ChatStartError, Inspector, LocalChatSettings};
pub use store::ChatStoreError;

use hub::Hub;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running chat; listens until it is stopped.
pub struct LocalChat {
    hub: Arc<Hub>,
    server: JoinHandle<()>,
}

impl LocalChat {
    /// Binds the port, opens the store, seeds it on the first start, and serves.
    ///
    /// # Errors
    /// [`ChatStartError`]; nothing is left running after one.
    pub async fn start(settings: LocalChatSettings) -> Result<LocalChat, ChatStartError> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| ChatStartError::Io { what, source }
        };
        std::fs::create_dir_all(&settings.state_dir)
            .map_err(io("making the chat's state folder"))?;
        let listener = TcpListener::bind(("127.0.0.1", settings.port))
            .await
            .map_err(io(&format!("binding 127.0.0.1:{}", settings.port)))?;
        let address = listener.local_addr().map_err(io("reading the bound address"))?;
        let breakpoints = settings.breakpoints.clone();
        let hub = Hub::open(settings, address.port())?;
        let router = breakpoints.before(
            "chat",
            bobbin_local_breakpoint::peer,
            page::router(Arc::clone(&hub)),
        );
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let stop = hub.stop.clone();
        let server = tokio::spawn(async move {
            let served =
                axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::error!(%error, "the chat server ended");
            }
        });
        let pruned = Arc::clone(&hub);
        hub.tasks.spawn(async move { prune::every_hour(pruned).await });
        let watcher = Arc::clone(&hub);
        hub.tasks.spawn(async move { live::watch_inspector(watcher).await });
        Ok(LocalChat { hub, server })
    }

    /// Sets the target of interactions and events: the base of the function URL.
    pub fn set_ingress(&self, base: String) {
        self.hub.ingress.set_base(base);
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

    /// Ids of the seeded guild, team, channels and people.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        self.hub.seeds.clone()
    }

    /// Registers an interaction signed by others, before it is passed on to the ingress: until its answer comes
    /// ([`LocalChat::adopt_interaction`]) its token is answered with 404 `10008`, as on Discord, and not as unknown. A
    /// known interaction is left alone.
    ///
    /// # Errors
    /// The state file failed.
    pub fn announce_interaction(&self, interaction: &Value) -> Result<(), ChatStoreError> {
        discord::announce(&self.hub, interaction)
    }

    /// Registers what others signed for Slack's routes, before it is passed on: the message in an event's envelope can
    /// then be found and answered.
    ///
    /// # Errors
    /// The state file failed.
    pub fn announce_slack(&self, payload: &Value) -> Result<(), ChatStoreError> {
        slack::announce(&self.hub, payload)
    }

    /// Applies the ingress's answer to an interaction that others signed and delivered, so that its token works here as
    /// if the page had created it. After an answer other than 200 the interaction is forgotten.
    ///
    /// # Errors
    /// The state file failed. An answer that Discord would refuse is not an error; the returned outcome names it.
    pub fn adopt_interaction(
        &self,
        interaction: &Value,
        status: u16,
        answer: &[u8],
    ) -> Result<Value, ChatStoreError> {
        discord::adopt(&self.hub, interaction, status, answer)
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
