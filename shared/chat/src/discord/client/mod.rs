//! Discord's HTTP API as Bobbin uses it: posts that are never made twice, threads, answers by token, commands.
//!
//! Promised: a repeat of [`Discord::post`] with the same thread, turn and kind finds the first one; short rate limits
//! are waited for, long ones told; after a 401 the bot token is left alone for a while, a dead interaction
//! token for good. Deliberately absent: the gateway, and any decision about a session.

mod call;
mod error;
mod pace;
mod registration;
mod setting_up;
mod transport;

use std::time::Duration;

use bobbin_core::card::Post;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, PostRef, ThreadKey, digest, post_key};
use bobbin_core::message::{Open, Prompt, Reply};
use reqwest::Method;
use serde_json::{Value, json};

use crate::discord::flags::EPHEMERAL;
use crate::discord::render::{self, File, Rendered};

pub use self::error::DiscordError;
pub use self::registration::{Application, application};
pub use self::setting_up::Channel;
pub use self::transport::RATE_WAIT_MS_MAX;
use bobbin_http::Http;

use self::call::Call;
use self::transport::Client;

/// An edit can overtake Discord's processing of the first answer; its 404 is believed after this long.
pub const ORIGINAL_WAIT_MS_MAX: u64 = 3_000;
/// Between two tries of such an edit.
const ORIGINAL_POLL_MS: u64 = 300;
/// Messages of a channel among which a task's line is looked for: the most that Discord lists at once.
const ANSWERS_MAX: u32 = 100;
/// Flags of a first answer that is for one person, or that still shows "thinking": both are ours to fill in.
const EPHEMERAL_OR_LOADING: u64 = 64 | 128;

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

    /// Tells one person something: by editing the deferred answer that only they see, or, after a click, beside what
    /// was clicked. When the token is no longer valid nobody can be told, and that is no error.
    ///
    /// # Errors
    /// [`DiscordError`] of any other kind.
    pub async fn tell(&self, reply: &Reply, text: &str) -> Result<(), DiscordError> {
        let told = self.tell_rendered(reply, render::told(text), None).await;
        unless_over(told)
    }

    /// Tells who asked for a task something: by the deferred answer while that can be filled in, else by a message in the
    /// channel that calls them, once however often it is repeated within minutes.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn tell_or_post(&self, open: &Open, text: &str) -> Result<(), DiscordError> {
        let told = self.tell_rendered(&open.reply, render::told(text), None);
        match told.await {
            Err(DiscordError::TokenGone) => {
                let notice = Post::Calling {
                    people: vec![open.prompt.by.id.clone()],
                    post: Box::new(Post::Notice(text.to_owned())),
                };
                let nonce = &digest(&["refused", &open.guild, &open.channel, &open.id])[..24];
                let rendered = render::post(&notice);
                let made = self.create_message(&open.channel, &rendered, nonce);
                made.await.map(drop)
            }
            other => other,
        }
    }

    /// Shows one person what a turn changed: in words where it is short, else as a file beside its summary. The message
    /// is not made of components, with which files on these routes are disputed.
    ///
    /// # Errors
    /// As [`Discord::tell`].
    pub async fn tell_diff(&self, reply: &Reply, patch: &str) -> Result<(), DiscordError> {
        let Rendered { body, file } = render::diff(patch);
        let told = self.tell_rendered(reply, body.clone(), file.as_ref()).await;
        match told {
            Err(DiscordError::Api {
                code: 40_005 | 50_045 | 400_001,
                ..
            }) if file.is_some() => {
                let told = self.tell_rendered(reply, render::without_file(&body), None);
                unless_over(told.await)
            }
            other => unless_over(other),
        }
    }

    async fn tell_rendered(
        &self,
        reply: &Reply,
        body: Value,
        file: Option<&File>,
    ) -> Result<(), DiscordError> {
        let Reply::Discord { application, token } = reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        // After a click the first answer is the clicked message itself, and must not be overwritten.
        match self.get_original(application, token).await {
            Ok(original) if original["flags"].as_u64().unwrap_or(0) & EPHEMERAL_OR_LOADING != 0 => {
                let call = original_call(application, token);
                self.on_original(&call, token, Some(&body), file)
                    .await
                    .map(drop)
            }
            Ok(_) => self
                .follow_up(application, token, &render::for_one(body), file)
                .await
                .map(drop),
            Err(error) => Err(error),
        }
    }

    /// Makes a message under a name: within minutes a repeat finds the first one.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn create_message(
        &self,
        channel: &str,
        rendered: &Rendered,
        nonce: &str,
    ) -> Result<PostRef, DiscordError> {
        let call = in_channel("create message", Method::POST, channel, "/messages");
        let body = render::with_nonce(rendered.body.clone(), nonce);
        let made = self
            .client
            .call(&call, Some(&body), rendered.file.as_ref())
            .await?;
        post_ref(&call, channel, &made)
    }

    /// Edits a message; an archived thread is opened again for it.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn edit_message(
        &self,
        at: &PostRef,
        rendered: &Rendered,
    ) -> Result<PostRef, DiscordError> {
        let call = in_channel(
            "edit message",
            Method::PATCH,
            &at.channel,
            &format!("/messages/{}", at.id),
        );
        let edit = || {
            self.client
                .call(&call, Some(&rendered.body), rendered.file.as_ref())
        };
        let edited = match edit().await {
            Err(archived) if archived.code() == 50_083 => {
                self.unarchive(&at.channel).await?;
                edit().await?
            }
            other => other?,
        };
        post_ref(&call, &at.channel, &edited)
    }

    /// Opens an archived thread again; sending does so by itself, everything else does not.
    async fn unarchive(&self, thread: &str) -> Result<(), DiscordError> {
        let call = in_channel("unarchive thread", Method::PATCH, thread, "");
        let body = json!({"archived": false});
        match self.client.call(&call, Some(&body), None).await {
            // Opening a thread needs no permission, unless it is locked as well.
            Err(DiscordError::Api { code: 50_013, .. }) => Err(DiscordError::Locked),
            other => other.map(drop),
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`DiscordError`]; code 10008 when it was deleted.
    pub async fn get_message(&self, at: &PostRef) -> Result<Value, DiscordError> {
        self.client
            .call(
                &in_channel(
                    "get message",
                    Method::GET,
                    &at.channel,
                    &format!("/messages/{}", at.id),
                ),
                None,
                None,
            )
            .await
    }

    /// Deletes a message; one that is gone already is fine.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn delete_message(&self, at: &PostRef) -> Result<(), DiscordError> {
        let call = in_channel(
            "delete message",
            Method::DELETE,
            &at.channel,
            &format!("/messages/{}", at.id),
        );
        let delete = || self.client.call(&call, None, None);
        let deleted = match delete().await {
            Err(archived) if archived.code() == 50_083 => {
                self.unarchive(&at.channel).await?;
                delete().await
            }
            other => other,
        };
        match deleted {
            Err(gone) if gone.code() == 10_008 => Ok(()),
            other => other.map(drop),
        }
    }

    /// Starts the public thread of a message and answers its id; a message that has one keeps it.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn start_thread(
        &self,
        channel: &str,
        message: &str,
        prompt: &Prompt,
    ) -> Result<String, DiscordError> {
        let call = in_channel(
            "start thread",
            Method::POST,
            channel,
            &format!("/messages/{message}/threads"),
        );
        match self
            .client
            .call(&call, Some(&render::thread(prompt)), None)
            .await
        {
            Ok(thread) => {
                thread["id"]
                    .as_str()
                    .map(str::to_owned)
                    .ok_or(DiscordError::Unreadable {
                        route: call.name,
                        status: 200,
                    })
            }
            // A thread has the id of the message that it hangs on.
            Err(exists) if exists.code() == 160_004 => Ok(message.to_owned()),
            Err(other) => Err(other),
        }
    }

    /// Edits the first answer to an interaction; true: only the person sees it.
    ///
    /// # Errors
    /// [`DiscordError::TokenGone`] when it cannot be answered any more; others.
    pub async fn edit_original(
        &self,
        application: &str,
        token: &str,
        body: &Value,
    ) -> Result<(PostRef, bool), DiscordError> {
        let call = original_call(application, token);
        let edited = self.on_original(&call, token, Some(body), None).await?;
        let channel = edited["channel_id"].as_str().unwrap_or_default();
        let whispered = edited["flags"].as_u64().unwrap_or(0) & EPHEMERAL != 0;
        Ok((post_ref(&call, channel, &edited)?, whispered))
    }

    /// Adds a message to the answers to an interaction.
    ///
    /// # Errors
    /// [`DiscordError::TokenGone`] when it cannot be answered any more; others.
    pub async fn follow_up(
        &self,
        application: &str,
        token: &str,
        body: &Value,
        file: Option<&File>,
    ) -> Result<Value, DiscordError> {
        if self.client.is_dead(token) {
            return Err(DiscordError::TokenGone);
        }
        let call = by_token("follow up", Method::POST, application, token, "");
        let made = self.client.call(&call, Some(body), file).await;
        if made == Err(DiscordError::TokenGone) {
            self.client.mark_dead(token);
        }
        made
    }

    async fn get_original(&self, application: &str, token: &str) -> Result<Value, DiscordError> {
        self.on_original(
            &by_token(
                "get answer",
                Method::GET,
                application,
                token,
                "/messages/@original",
            ),
            token,
            None,
            None,
        )
        .await
    }

    /// The worker may be faster than Discord's processing of ingress' answer: a 404 is asked again for a while.
    async fn on_original(
        &self,
        call: &Call,
        token: &str,
        body: Option<&Value>,
        file: Option<&File>,
    ) -> Result<Value, DiscordError> {
        if self.client.is_dead(token) {
            return Err(DiscordError::TokenGone);
        }
        for _ in 0..ORIGINAL_WAIT_MS_MAX / ORIGINAL_POLL_MS {
            match self.client.call(call, body, file).await {
                Err(DiscordError::TokenGone | DiscordError::Api { status: 404, .. }) => {
                    tokio::time::sleep(Duration::from_millis(ORIGINAL_POLL_MS)).await
                }
                other => return other,
            }
        }
        self.client.mark_dead(token);
        Err(DiscordError::TokenGone)
    }

    async fn create_or_less(
        &self,
        channel: &str,
        rendered: &Rendered,
        nonce: &str,
    ) -> Result<PostRef, DiscordError> {
        match self.create_message(channel, rendered, nonce).await {
            Err(refused) => match less(rendered, &refused, false) {
                Some(less) => self.create_message(channel, &less, nonce).await,
                None => Err(refused),
            },
            made => made,
        }
    }

    async fn edit_or_less(
        &self,
        at: &PostRef,
        rendered: &Rendered,
    ) -> Result<PostRef, DiscordError> {
        match self.edit_message(at, rendered).await {
            Err(refused) => match less(rendered, &refused, true) {
                Some(less) => self.edit_message(at, &less).await,
                None => Err(refused),
            },
            edited => edited,
        }
    }
}

/// Nobody can be told any more what only they would have seen, and that is no error.
fn unless_over(told: Result<(), DiscordError>) -> Result<(), DiscordError> {
    match told {
        Err(DiscordError::TokenGone) => {
            tracing::info!(
                event = "discord.untold",
                "discord: a person could not be told, their interaction is over"
            );
            Ok(())
        }
        other => other,
    }
}

/// What can be shown instead of a post that Discord refused for its content; tried once.
fn less(rendered: &Rendered, refused: &DiscordError, edit: bool) -> Option<Rendered> {
    let DiscordError::Api { code, status, .. } = refused else {
        return None;
    };
    let body = match (code, status) {
        (40_005 | 50_045 | 400_001, _) if rendered.file.is_some() => {
            render::without_file(&rendered.body)
        }
        (200_000 | 240_000, _) => render::blocked(&rendered.body),
        // More text than Discord processes; its own limit is not documented.
        (_, 500) => render::smaller(&rendered.body)?,
        (50_035 | 50_006, _) => {
            tracing::error!(event = "discord.body.refused", error = %refused, "discord: a body of ours was refused; its text is sent instead");
            if edit {
                // A message once made of components stays so.
                render::as_one_text(&rendered.body)
            } else {
                render::as_text(&rendered.body)
            }
        }
        _ => return None,
    };
    let keeps_file = body.get("attachments").is_some();
    Some(Rendered {
        body,
        file: rendered.file.clone().filter(|_| keeps_file),
    })
}

fn channel_of(thread: &ThreadKey) -> Result<&str, DiscordError> {
    match thread {
        ThreadKey::Discord { thread, .. } => Ok(thread),
        ThreadKey::Slack { .. } => Err(DiscordError::NotDiscord(thread.to_string())),
    }
}

fn in_channel(name: &'static str, method: Method, channel: &str, rest: &str) -> Call {
    Call {
        name,
        method,
        path: format!("/channels/{channel}{rest}"),
        major: channel.to_owned(),
        by_token: false,
    }
}

fn original_call(application: &str, token: &str) -> Call {
    by_token(
        "edit answer",
        Method::PATCH,
        application,
        token,
        "/messages/@original",
    )
}

fn by_token(
    name: &'static str,
    method: Method,
    application: &str,
    token: &str,
    rest: &str,
) -> Call {
    Call {
        name,
        method,
        path: format!("/webhooks/{application}/{token}{rest}"),
        major: digest(&[token]),
        by_token: true,
    }
}

fn post_ref(call: &Call, channel: &str, message: &Value) -> Result<PostRef, DiscordError> {
    let id =
        message["id"]
            .as_str()
            .filter(|id| !id.is_empty())
            .ok_or(DiscordError::Unreadable {
                route: call.name,
                status: 200,
            })?;
    Ok(PostRef {
        channel: channel.to_owned(),
        id: id.to_owned(),
    })
}

#[cfg(test)]
mod tests;
