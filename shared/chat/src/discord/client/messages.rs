//! Messages and threads, created and edited by the bot. If Discord refuses a message, a reduced version is sent.

use bobbin_core::base::ids::{PostRef, ThreadKey};
use bobbin_core::records::message::Prompt;
use reqwest::Method;
use serde_json::{Value, json};

use super::call::{Call, in_channel};
use super::{Discord, DiscordError};
use crate::discord::render::{self, Rendered};

impl Discord {
    /// Creates a message with a nonce: for some minutes a repeat returns the first one.
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
        let made = self.client.call(&call, Some(&body), rendered.file.as_ref()).await?;
        post_ref(&call, channel, &made)
    }

    /// Edits a message; an archived thread is reopened for it.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn edit_message(
        &self,
        at: &PostRef,
        rendered: &Rendered,
    ) -> Result<PostRef, DiscordError> {
        let call =
            in_channel("edit message", Method::PATCH, &at.channel, &format!("/messages/{}", at.id));
        let edit = || self.client.call(&call, Some(&rendered.body), rendered.file.as_ref());
        let edited = match edit().await {
            Err(archived) if archived.code() == 50_083 => {
                self.unarchive(&at.channel).await?;
                edit().await?
            }
            other => other?,
        };
        post_ref(&call, &at.channel, &edited)
    }

    /// Archives a thread: it leaves its channel's list, and reopens with the next message. A missing permission is no
    /// error: the thread stays open.
    pub(super) async fn archive(&self, thread: &ThreadKey) -> Result<(), DiscordError> {
        let call = in_channel("archive thread", Method::PATCH, channel_of(thread)?, "");
        let body = json!({"archived": true});
        match self.client.call(&call, Some(&body), None).await {
            Err(DiscordError::Api { code: 50_013, .. }) => {
                tracing::info!(event = "discord.unarchived", %thread, "discord: the app may not archive a thread, so it stays open");
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Reopens an archived thread; sending does so by itself, everything else does not.
    async fn unarchive(&self, thread: &str) -> Result<(), DiscordError> {
        let call = in_channel("unarchive thread", Method::PATCH, thread, "");
        let body = json!({"archived": false});
        match self.client.call(&call, Some(&body), None).await {
            // Reopening a thread needs no permission, unless it is locked as well.
            Err(DiscordError::Api { code: 50_013, .. }) => Err(DiscordError::Locked),
            other => other.map(drop),
        }
    }

    /// Deletes a message; one that is already gone is fine.
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

    /// Starts the public thread of a message and returns its id; a message with a thread keeps it.
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
        match self.client.call(&call, Some(&render::thread(prompt)), None).await {
            Ok(thread) => thread["id"]
                .as_str()
                .map(str::to_owned)
                .ok_or(DiscordError::Unreadable { route: call.name, status: 200 }),
            // A thread has the id of the message that it starts from.
            Err(exists) if exists.code() == 160_004 => Ok(message.to_owned()),
            Err(other) => Err(other),
        }
    }

    /// Creates a message, or a reduced version if Discord refuses it.
    pub(super) async fn create_or_less(
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

    /// Edits a message, with a reduced version if Discord refuses the first.
    pub(super) async fn edit_or_less(
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

/// The reduced version of a post that Discord refused for its content; tried once.
fn less(rendered: &Rendered, refused: &DiscordError, edit: bool) -> Option<Rendered> {
    let DiscordError::Api { code, status, .. } = refused else {
        return None;
    };
    let body = match (code, status) {
        // Replying needs permission to read the history.
        (160_002, _) => render::without_reply(&rendered.body)?,
        (40_005 | 50_045 | 400_001, _) if rendered.file.is_some() => {
            render::without_file(&rendered.body)
        }
        (200_000 | 240_000, _) => render::blocked(&rendered.body),
        // More text than Discord processes; its actual limit is not documented.
        (_, 500) => render::smaller(&rendered.body)?,
        (50_035 | 50_006, _) => {
            tracing::error!(event = "discord.body.refused", error = %refused, "discord: a message body was refused; its text is sent instead");
            if edit {
                // A message created with components keeps them.
                render::as_one_text(&rendered.body)
            } else {
                render::as_text(&rendered.body)
            }
        }
        _ => return None,
    };
    let keeps_file = body.get("attachments").is_some();
    Some(Rendered { body, file: rendered.file.clone().filter(|_| keeps_file) })
}

pub(super) fn post_ref(
    call: &Call,
    channel: &str,
    message: &Value,
) -> Result<PostRef, DiscordError> {
    let id = message["id"]
        .as_str()
        .filter(|id| !id.is_empty())
        .ok_or(DiscordError::Unreadable { route: call.name, status: 200 })?;
    Ok(PostRef { channel: channel.to_owned(), id: id.to_owned() })
}

pub(super) fn channel_of(thread: &ThreadKey) -> Result<&str, DiscordError> {
    match thread {
        ThreadKey::Discord { thread, .. } => Ok(thread),
        _ => Err(DiscordError::NotDiscord(thread.to_string())),
    }
}
