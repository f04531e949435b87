//! Answers to an interaction, by its token: the first answer is edited, further ones follow it.

use std::time::Duration;

use bobbin_core::base::ids::{Ms, PostRef, ThreadKey, TurnId, digest};
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Open, Reply};
use bobbin_core::shown::sandboxes::{Listed, Page};
use reqwest::Method;
use serde_json::Value;

use super::call::{Call, by_token, in_channel};
use super::messages::{channel_of, post_ref};
use super::{Discord, DiscordError};
use crate::discord::flags::{COMPONENTS_V2, EPHEMERAL};
use crate::discord::render::{self, File, Rendered};

/// An edit can overtake Discord's processing of the first answer; its 404 is believed after this long.
pub const ORIGINAL_WAIT_MS_MAX: u64 = 3_000;
/// Between two tries of such an edit.
pub(super) const ORIGINAL_POLL_MS: u64 = 300;
/// Flags of a first answer that is for one person, or that still shows "thinking": both are ours to fill in.
pub(super) const EPHEMERAL_OR_LOADING: u64 = 64 | 128;

impl Discord {
    /// Tells one person something: by editing the deferred answer that only they see, or, after a click, beside what
    /// was clicked. When the token is no longer valid nobody can be told, and that is no error.
    ///
    /// # Errors
    /// [`DiscordError`] of any other kind.
    pub async fn tell(&self, reply: &Reply, text: &str) -> Result<(), DiscordError> {
        let told = self.tell_rendered(reply, render::told(text), None).await;
        unless_over(told)
    }

    /// Shows one person a page of the list of sandboxes: in place of the page that they turned.
    ///
    /// # Errors
    /// As [`Discord::tell`].
    pub async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), DiscordError> {
        let told = self.tell_rendered(reply, render::sandboxes(page), None);
        unless_over(told.await)
    }

    /// Asks one person whether a sandbox is to be deleted.
    ///
    /// # Errors
    /// As [`Discord::tell`].
    pub async fn ask_destroy(
        &self,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), DiscordError> {
        let body = render::ask_destroy(sandbox, now_ms);
        unless_over(self.tell_rendered(reply, body, None).await)
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

    /// Tells people something in the channel that a thread hangs in, with the way to it.
    ///
    /// # Errors
    /// [`DiscordError`]; also where the thread cannot be looked at, or is in no channel that takes messages.
    pub async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        word: &str,
    ) -> Result<(), DiscordError> {
        let of = channel_of(thread)?;
        let call = in_channel("get channel", Method::GET, of, "");
        let found = self.client.call(&call, None, None).await?;
        let unreadable = || DiscordError::Unreadable { route: call.name, status: 200 };
        let parent = found["parent_id"].as_str().ok_or_else(unreadable)?;
        let post = Post::Calling {
            people: people.to_vec(),
            post: Box::new(Post::Notice(format!("<#{of}>: {word}"))),
        };
        let nonce = &digest(&["beside", &thread.to_string(), turn])[..24];
        let rendered = render::post(&post);
        let made = self.create_message(parent, &rendered, nonce);
        made.await.map(drop)
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
            Err(DiscordError::Api { code: 40_005 | 50_045 | 400_001, .. }) if file.is_some() => {
                let told = self.tell_rendered(reply, render::without_file(&body), None);
                unless_over(told.await)
            }
            other => unless_over(other),
        }
    }

    pub(super) async fn tell_rendered(
        &self,
        reply: &Reply,
        body: Value,
        file: Option<&File>,
    ) -> Result<(), DiscordError> {
        let Reply::Discord { application, token } = reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        // After a click the first answer is the clicked message itself, and must not be overwritten, unless by what is of its
        // kind: a list by another page of it.
        let is_of_kind = |original: &Value| {
            let flags = |message: &Value| message["flags"].as_u64().unwrap_or(0);
            let listed = flags(original) & COMPONENTS_V2 != 0;
            !listed || flags(&body) & COMPONENTS_V2 != 0
        };
        match self.get_original(application, token).await {
            Ok(original)
                if original["flags"].as_u64().unwrap_or(0) & EPHEMERAL_OR_LOADING != 0
                    && is_of_kind(&original) =>
            {
                let call = original_call(application, token);
                self.on_original(&call, token, Some(&body), file).await.map(drop)
            }
            Ok(_) => {
                self.follow_up(application, token, &render::for_one(body), file).await.map(drop)
            }
            Err(error) => Err(error),
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

    pub(super) async fn get_original(
        &self,
        application: &str,
        token: &str,
    ) -> Result<Value, DiscordError> {
        self.on_original(
            &by_token("get answer", Method::GET, application, token, "/messages/@original"),
            token,
            None,
            None,
        )
        .await
    }

    /// The worker may be faster than Discord's processing of ingress' answer: a 404 is asked again for a while.
    pub(super) async fn on_original(
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

fn original_call(application: &str, token: &str) -> Call {
    by_token("edit answer", Method::PATCH, application, token, "/messages/@original")
}
