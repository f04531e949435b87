//! Discord's HTTP API as Bobbin uses it: idempotent posts, threads, answers by token, commands.
//!
//! Promised: a repeat of [`Chat::post`] with the same thread, turn and kind finds the first post; short rate limits are
//! waited for, long ones reported; after a 401 the bot token is not used for a while, a dead interaction token never
//! again. Deliberately absent: the gateway, and any decision about a session.

mod answers;
mod call;
mod doubt;
mod error;
mod members;
mod messages;
mod opening;
mod pace;
mod registration;
mod setting_up;
mod transport;

use std::sync::{Arc, Mutex};
#[cfg(test)]
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, ThreadKey, TurnId, digest};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::base::person::Membership;
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Open, Reply};
use bobbin_core::records::session::Session;
use bobbin_core::tenant::keys::Key;
use bobbin_http::{AllowedHosts, Http, host_of};
use reqwest::Method;

pub use self::answers::ORIGINAL_WAIT_MS_MAX;
use self::call::in_channel;
use self::doubt::Doubts;
pub use self::error::DiscordError;
use self::messages::channel_of;
pub use self::registration::{Application, application};
pub use self::setting_up::TestChannel;
use self::transport::Client;
pub use self::transport::RATE_WAIT_MS_MAX;
use super::render;
use crate::chat::{Chat, ChatSettings, FileSource, Say};

/// Advice if Discord is not set up.
pub(crate) fn off() -> Failure {
    Failure::NonRecoverable {
        advice: "Discord is not set up: the operator has to set DiscordApplicationId and DiscordPublicKey of the template.".to_owned(),
    }
}

/// Where its files are. Anybody with a link can read them.
pub(crate) fn files(settings: &ChatSettings<'_>) -> FileSource {
    FileSource {
        hosts: &["cdn.discordapp.com", "media.discordapp.net"],
        api: settings.overrides.discord_api.clone(),
        bearer: None,
    }
}

/// Discord's HTTP API, for one application.
#[derive(Debug, Clone)]
pub struct Discord {
    client: Client,
    application: String,
    doubts: Arc<Mutex<Doubts>>,
}

impl Discord {
    /// The client, if an application is configured.
    pub(crate) fn configured(settings: &ChatSettings<'_>) -> Result<Option<Self>, String> {
        let application = (settings.variable)("DISCORD_APPLICATION_ID");
        if application.is_empty() {
            return Ok(None);
        }
        let api = &settings.overrides.discord_api;
        let http = Http::new(api, AllowedHosts::Named(host_of(api).into_iter().collect()))
            .map_err(|e| format!("discord_api of the parameter Overrides: {e}"))?;
        let token = (settings.key)(Key::DiscordBotToken);
        Ok(Some(Self::new(http, api, &application, token.expose())))
    }

    /// `base` ends in the version (`https://discord.com/api/v10`); `http` must allow its host.
    #[must_use]
    pub fn new(http: Http, base: &str, application: &str, bot_token: &str) -> Self {
        Self {
            client: Client::new(http, base, application, bot_token),
            application: application.to_owned(),
            doubts: Arc::default(),
        }
    }

    /// Tries a refused bot token again after this long.
    #[cfg(test)]
    fn leaving_a_refused_token_for(mut self, refused_for: Duration) -> Self {
        self.client.refused_for = refused_for;
        self
    }
}

#[async_trait]
impl Chat for Discord {
    /// A message that was deleted or can no longer be edited is posted again.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let channel = channel_of(thread)?;
        let rendered = match (post, thread) {
            (Post::Moved { to, .. }, ThreadKey::Discord { guild, .. }) => {
                let link = Some(render::link(guild, &to.channel, &to.id));
                let to = to.clone();
                render::post(&Post::Moved { to, link })
            }
            _ => render::post(post),
        };
        let nonce = post_key(thread, turn, kind);
        let posted = match at {
            None => {
                let named = (turn, kind, nonce.as_str());
                match self.made_before((thread, channel), named, &rendered).await {
                    Some(made) => made,
                    None => self.create_or_less(channel, &rendered, &nonce).await?,
                }
            }
            Some(at) => match self.edit_or_less(at, &rendered).await {
                // The end of an old card is not posted again.
                Err(gone)
                    if matches!(gone.code(), 10_008 | 30_046)
                        && matches!(post, Post::Moved { .. }) =>
                {
                    at.clone()
                }
                // Deleted, or older than an hour and edited too often. Needs a new nonce: the first may still belong to
                // the old message.
                Err(gone) if matches!(gone.code(), 10_008 | 30_046) => {
                    let again = &digest(&["again", &nonce, &at.id])[..24];
                    self.create_or_less(channel, &rendered, again).await?
                }
                edited => edited?,
            },
        };
        if matches!(post.bare(), Post::Closing(_)) {
            self.archive(thread).await?;
        }
        Ok(posted)
    }

    fn learn(&self, session: &Session) {
        self.doubt(session);
    }

    /// Once the interaction's token is invalid, nobody can be shown what only they would have seen; that is no error.
    async fn answer(&self, reply: &Reply, say: Say<'_>) -> Result<(), Failure> {
        let told = match say {
            Say::Words(words) | Say::Answer { words, .. } | Say::Unopened { words, .. } => {
                self.answer_words(reply, words).await
            }
            Say::Sandboxes(page) => {
                self.answer_rendered(reply, render::sandboxes(page), None).await
            }
            Say::AskDestroy { sandbox, now_ms, .. } => {
                self.answer_rendered(reply, render::ask_destroy(sandbox, now_ms), None).await
            }
            Say::Diff { patch, .. } => self.answer_diff(reply, patch).await,
        };
        match (told, say) {
            (Err(DiscordError::TokenGone), Say::Unopened { open, words }) => {
                Ok(self.call_in_channel(open, words).await?)
            }
            (Err(DiscordError::TokenGone), _) => {
                tracing::info!(
                    event = "discord.notice.failed",
                    "discord: a person could not be notified, because their interaction is over"
                );
                Ok(())
            }
            (told, _) => Ok(told?),
        }
    }

    /// Discord says so with each request; who wrote elsewhere is looked up.
    async fn membership(
        &self,
        thread: &ThreadKey,
        user: &str,
        channel: Option<&str>,
    ) -> Result<Membership, Failure> {
        match (thread, channel) {
            (ThreadKey::Discord { guild, thread }, Some(channel)) => {
                Ok(self.seen_in((guild, thread), channel, user).await?)
            }
            _ => Ok(Membership::default()),
        }
    }

    /// Posted in the thread's channel, with a link to it.
    async fn notify_outside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        words: &str,
    ) -> Result<(), Failure> {
        let of = channel_of(thread)?;
        let call = in_channel("get channel", Method::GET, of, "");
        let found = self.client.call(&call, None, None).await?;
        let unreadable = || DiscordError::Unreadable { route: call.name, status: 200 };
        let parent = found["parent_id"].as_str().ok_or_else(unreadable)?;
        let post = Post::Calling {
            people: people.to_vec(),
            post: Box::new(Post::Notice(format!("<#{of}>: {words}"))),
        };
        let nonce = &digest(&["beside", &thread.to_string(), turn])[..24];
        self.create_message(parent, &render::post(&post), nonce).await?;
        Ok(())
    }

    async fn open(&self, open: &Open, now_ms: Ms) -> Result<ThreadKey, Failure> {
        Ok(self.open_thread(open, now_ms).await?)
    }

    async fn place(&self, thread: &ThreadKey) -> Option<String> {
        let ThreadKey::Discord { guild, .. } = thread else {
            return None;
        };
        self.guild_name(guild).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests;
