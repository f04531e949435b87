//! Discord's HTTP API as Bobbin uses it: posts that are never made twice, threads, answers by token, commands.
//!
//! Promised: a repeat of [`Discord::post`] with the same thread, turn and kind finds the first one; short rate limits
//! are waited for, long ones told; after a 401 the bot token is left alone for a while, a dead interaction
//! token for good. Deliberately absent: the gateway, and any decision about a session.

mod answers;
mod call;
mod error;
mod messages;
mod pace;
mod registration;
mod setting_up;
mod transport;

#[cfg(test)]
use std::time::Duration;

use bobbin_core::card::Post;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, PostRef, ThreadKey, digest, post_key};
use bobbin_core::message::{Open, Reply};
use reqwest::Method;
use serde_json::Value;

use crate::discord::render::{self, Rendered};

pub use self::answers::ORIGINAL_WAIT_MS_MAX;
pub use self::error::DiscordError;
pub use self::registration::{Application, application};
pub use self::setting_up::Channel;
pub use self::transport::RATE_WAIT_MS_MAX;
use bobbin_http::Http;

use self::answers::EPHEMERAL_OR_LOADING;
use self::call::in_channel;
use self::messages::post_ref;
use self::transport::Client;

/// Messages of a channel among which a task's line is looked for: the most that Discord lists at once.
const ANSWERS_MAX: u32 = 100;

/// Discord's HTTP API, for one application.
#[derive(Debug, Clone)]
pub struct Discord {
    client: Client,
    application: String,
}

impl Discord {
    /// `base` ends in the version (`https://discord.com/api/v10`); `http` must allow its host.
    #[must_use]
    pub fn new(http: Http, base: &str, application: &str, bot_token: &str) -> Self {
        Self {
            client: Client::new(http, base, application, bot_token),
            application: application.to_owned(),
        }
    }

    /// Tries a bot token that was refused again after so long.
    #[cfg(test)]
    fn leaving_a_refused_token_for(mut self, refused_for: Duration) -> Self {
        self.client.refused_for = refused_for;
        self
    }

    /// Makes a post, or edits the one that stands at `at`. A deleted or no longer editable one is made anew.
    ///
    /// # Errors
    /// [`DiscordError`]; a repeat after any of them is safe.
    pub async fn post(
        &self,
        thread: &ThreadKey,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, DiscordError> {
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
        let Some(at) = at else {
            return self.create_or_less(channel, &rendered, &nonce).await;
        };
        match self.edit_or_less(at, &rendered).await {
            // What is only the end of an old card is not made anew.
            Err(gone)
                if matches!(gone.code(), 10_008 | 30_046) && matches!(post, Post::Moved { .. }) =>
            {
                Ok(at.clone())
            }
            // Deleted, or older than an hour and edited too often. Not the first name: that one may still stand for the old message.
            Err(gone) if matches!(gone.code(), 10_008 | 30_046) => {
                let again = &digest(&["again", &nonce, &at.id])[..24];
                self.create_or_less(channel, &rendered, again).await
            }
            other => other,
        }
    }

    /// Makes the thread of a task: the deferred answer becomes the line that it hangs on, or the bot posts one.
    ///
    /// # Errors
    /// [`DiscordError`], after the line says so where a repeat cannot help.
    pub async fn open(&self, open: &Open, now_ms: Ms) -> Result<ThreadKey, DiscordError> {
        let Reply::Discord { application, token } = &open.reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        let anchor = render::anchor(open);
        let young =
            now_ms.saturating_sub(open.accepted_at_ms) < bobbin_core::limits::DISCORD_TOKEN_MS;
        let answered = if young {
            self.edit_original(application, token, &anchor).await
        } else {
            Err(DiscordError::TokenGone)
        };
        let message = match answered {
            // An accepted task is answered for all to see; what only the person sees is the refusal of ingress.
            Ok((_, true)) => return Err(DiscordError::Unheard),
            Ok((message, false)) => message,
            Err(DiscordError::TokenGone) => match self.anchor_of(open, &anchor).await {
                Some(stands) => stands,
                None => {
                    let nonce = &digest(&["open", &open.guild, &open.channel, &open.id])[..24];
                    let rendered = Rendered {
                        body: anchor,
                        file: None,
                    };
                    self.create_message(&open.channel, &rendered, nonce).await?
                }
            },
            Err(other) => return Err(other),
        };
        match self
            .start_thread(&open.channel, &message.id, &open.prompt)
            .await
        {
            Ok(thread) => ThreadKey::discord(&open.guild, &thread)
                .map_err(|bad| DiscordError::NotDiscord(bad.to_string())),
            Err(refused) => {
                if let Failure::NonRecoverable { advice: why } | Failure::ThreadGone { seen: why } =
                    refused.failure()
                {
                    let line = Rendered {
                        body: render::anchor_failed(
                            open,
                            &format!("No thread could be made: {why}"),
                        ),
                        file: None,
                    };
                    if let Err(error) = self.edit_message(&message, &line).await {
                        tracing::warn!(event = "discord.untold", %error, "discord: the refused thread could not be told");
                    }
                }
                Err(refused)
            }
        }
    }

    /// What an earlier try has already made the anchor, and nobody heard of it or a thread could not be started on it then:
    /// the answer, from a time when its token was valid, or a message of the bot. None also where the channel's messages cannot be read.
    async fn anchor_of(&self, open: &Open, line: &Value) -> Option<PostRef> {
        // The answer to an interaction is newer than that, and what is asked for comes from there on.
        let rest = format!("/messages?after={}&limit={ANSWERS_MAX}", open.id);
        let call = in_channel("list messages", Method::GET, &open.channel, &rest);
        let listed = match self.client.call(&call, None, None).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::info!(event = "discord.anchor.unread", %error, "discord: whether a task has its line already could not be read");
                return None;
            }
        };
        let is_anchor = |message: &&Value| {
            let flags = message["flags"].as_u64().unwrap_or(0);
            let answers = message["interaction_metadata"]["id"] == open.id.as_str()
                && flags & EPHEMERAL_OR_LOADING == 0;
            // A message of the bot's own bears nothing but its words.
            let posted = message["author"]["bot"] == true && message["content"] == line["content"];
            answers || posted
        };
        let found = listed.as_array()?.iter().find(is_anchor)?;
        post_ref(&call, &open.channel, found).ok()
    }
}

fn channel_of(thread: &ThreadKey) -> Result<&str, DiscordError> {
    match thread {
        ThreadKey::Discord { thread, .. } => Ok(thread),
        ThreadKey::Slack { .. } => Err(DiscordError::NotDiscord(thread.to_string())),
    }
}

#[cfg(test)]
mod tests;
