//! Answers to an interaction, by its token: the first answer is edited, further ones follow it.

use std::time::Duration;

use bobbin_core::base::ids::{PostRef, digest};
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Open, Reply};
use reqwest::Method;
use serde_json::Value;

use super::call::{Call, by_token};
use super::messages::post_ref;
use super::{Discord, DiscordError};
use crate::discord::flags::{COMPONENTS_V2, EPHEMERAL};
use crate::discord::render::{self, AttachedFile, Rendered};

/// An edit can overtake Discord's processing of the first answer; a 404 is trusted after this long.
pub const ORIGINAL_WAIT_MS_MAX: u64 = 3_000;
/// Pause between two attempts of such an edit.
pub(super) const ORIGINAL_POLL_MS: u64 = 300;
/// Flags of a first answer that is for one person, or that still shows "thinking": we fill in both.
pub(super) const EPHEMERAL_OR_LOADING: u64 = 64 | 128;

/// Maximum messages in which one person is told something.
const MESSAGES_MAX: usize = 10;

impl Discord {
    /// Tells one person something; what does not fit into one message follows in further ones. Those have no nonce: if
    /// one fails, the rest is left out, because a repeat would show all of it again.
    pub(super) async fn answer_words(
        &self,
        reply: &Reply,
        words: &str,
    ) -> Result<(), DiscordError> {
        let Reply::Discord { application, token } = reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        let mut parts = render::words(words);
        let left_out = parts.len().saturating_sub(MESSAGES_MAX);
        if left_out > 0 {
            parts.truncate(MESSAGES_MAX - 1);
            parts.push(format!("{} more parts of this cannot be shown.", left_out + 1));
        }
        for (nth, part) in parts.iter().enumerate() {
            let body = render::private_text(part);
            if nth == 0 {
                self.answer_rendered(reply, body, None).await?;
            } else if let Err(error) =
                self.follow_up(application, token, &render::for_one(body), None).await
            {
                tracing::warn!(event = "discord.answer.cut", %error, "discord: the rest of an answer could not be shown");
                break;
            }
        }
        Ok(())
    }

    /// Mentions the author of a task in the channel where they asked. Idempotent for some minutes.
    pub(super) async fn call_in_channel(
        &self,
        open: &Open,
        words: &str,
    ) -> Result<(), DiscordError> {
        let notice = Post::Calling {
            people: vec![open.prompt.by.id.clone()],
            post: Box::new(Post::Notice(words.to_owned())),
        };
        let nonce = &digest(&["refused", &open.guild, &open.channel, &open.id])[..24];
        self.create_message(&open.channel, &render::post(&notice), nonce).await.map(drop)
    }

    /// Shows one person a turn's changes: as text if short, otherwise as a file beside its summary. The message does
    /// not use components: whether files work with them on these routes is disputed.
    pub(super) async fn answer_diff(&self, reply: &Reply, patch: &str) -> Result<(), DiscordError> {
        let Rendered { body, file } = render::diff(patch);
        match self.answer_rendered(reply, body.clone(), file.as_ref()).await {
            Err(DiscordError::Api { code: 40_005 | 50_045 | 400_001, .. }) if file.is_some() => {
                self.answer_rendered(reply, render::without_file(&body), None).await
            }
            other => other,
        }
    }

    /// Tells one person something: by editing the deferred answer that only they see, or, after a click, in a message
    /// beside the clicked one.
    pub(super) async fn answer_rendered(
        &self,
        reply: &Reply,
        body: Value,
        file: Option<&AttachedFile>,
    ) -> Result<(), DiscordError> {
        let Reply::Discord { application, token } = reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        // After a click the first answer is the clicked message itself. It must only be overwritten by a message of its
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
    /// [`DiscordError::TokenGone`] if it cannot be answered any more; others.
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
    /// [`DiscordError::TokenGone`] if it cannot be answered any more; others.
    pub async fn follow_up(
        &self,
        application: &str,
        token: &str,
        body: &Value,
        file: Option<&AttachedFile>,
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

    /// The worker may be faster than Discord's processing of ingress' answer: after a 404 the request is repeated for a
    /// while.
    pub(super) async fn on_original(
        &self,
        call: &Call,
        token: &str,
        body: Option<&Value>,
        file: Option<&AttachedFile>,
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

fn original_call(application: &str, token: &str) -> Call {
    by_token("edit answer", Method::PATCH, application, token, "/messages/@original")
}
