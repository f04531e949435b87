//! Discord as a [`Chat`].

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Control, Open, Reply};
use bobbin_core::shown::sandboxes::{Listed, Page};
use bobbin_core::text::{self, Dialect};
use bobbin_http::{Hosts, Http, host_of};

use super::bounds::CHUNK_UNITS;
use super::client::Discord;
use crate::chat::{Chat, ChatSettings};

/// What to do when there is no Discord.
pub(crate) fn off() -> Failure {
    Failure::NonRecoverable {
        advice: "Discord is not set up: the operator has to set DiscordApplicationId and DiscordPublicKey of the template.".to_owned(),
    }
}

/// Cuts an answer. Tables first: Discord has none, and an aligned one is longer than its source.
pub(crate) fn split(answer: &str) -> Vec<String> {
    text::parts(answer, Dialect::Backticks, CHUNK_UNITS)
}

impl Discord {
    /// The client, if an application is configured.
    pub(crate) fn configured(settings: &ChatSettings<'_>) -> Result<Option<Self>, String> {
        if settings.discord_application.is_empty() {
            return Ok(None);
        }
        let hosts = Hosts::Named(host_of(settings.discord_api).into_iter().collect());
        let http = Http::new(settings.discord_api, hosts)
            .map_err(|e| format!("discord_api of the parameter Overrides: {e}"))?;
        Ok(Some(Self::new(
            http,
            settings.discord_api,
            settings.discord_application,
            settings.discord_bot_token,
        )))
    }
}

#[async_trait]
impl Chat for Discord {
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let posted = Self::post(self, thread, turn, kind, at, post).await;
        posted.map_err(|e| e.failure())
    }

    async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure> {
        Self::tell(self, reply, text).await.map_err(|e| e.failure())
    }

    async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        word: &str,
    ) -> Result<(), Failure> {
        let told = Self::tell_beside(self, thread, turn, people, word).await;
        told.map_err(|e| e.failure())
    }

    async fn answer(&self, control: &Control, text: &str) -> Result<(), Failure> {
        Chat::tell(self, &control.reply, text).await
    }

    async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), Failure> {
        let shown = Self::show_sandboxes(self, reply, page).await;
        shown.map_err(|e| e.failure())
    }

    async fn ask_destroy(
        &self,
        _: &ThreadKey,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let asked = Self::ask_destroy(self, reply, sandbox, now_ms).await;
        asked.map_err(|e| e.failure())
    }

    async fn archive(&self, thread: &ThreadKey) -> Result<(), Failure> {
        Self::archive(self, thread).await.map_err(|e| e.failure())
    }

    async fn show_diff(
        &self,
        _: &ThreadKey,
        _: &TurnId,
        reply: &Reply,
        patch: &str,
    ) -> Result<(), Failure> {
        self.tell_diff(reply, patch).await.map_err(|e| e.failure())
    }

    async fn place(&self, thread: &ThreadKey) -> Option<String> {
        let ThreadKey::Discord { guild, .. } = thread else {
            return None;
        };
        self.guild_name(guild).await.ok().flatten()
    }

    async fn open(&self, open: &Open, now_ms: Ms) -> Result<ThreadKey, Failure> {
        let opened = Self::open(self, open, now_ms).await;
        opened.map_err(|e| e.failure())
    }

    async fn tell_unopened(&self, open: &Open, text: &str) -> Result<(), Failure> {
        self.tell_or_post(open, text).await.map_err(|e| e.failure())
    }
}
