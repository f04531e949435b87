//! The thread of a task: the line in the channel from which it starts, and the thread itself.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, ThreadKey, digest};
use bobbin_core::records::message::{Open, Reply};
use reqwest::Method;
use serde_json::Value;

use super::answers::EPHEMERAL_OR_LOADING;
use super::call::in_channel;
use super::messages::post_ref;
use super::{Discord, DiscordError};
use crate::discord::render::{self, Rendered};

/// Maximum time by which a terminal's or a worker's clock may be ahead of Discord's.
const CLOCKS_MS: u64 = 60_000;
/// Epoch of Discord's ids, in Unix milliseconds; a message's id holds the time since then above 22 bits. Source:
/// Discord's API reference, "Snowflakes".
const IDS_SINCE_MS: u64 = 1_420_070_400_000;
/// Messages of a channel that are searched for a task's line: the most that Discord lists at once.
const ANSWERS_MAX: u32 = 100;

impl Discord {
    /// Creates the thread of a task: the deferred answer becomes the line from which it starts, or the bot posts one. A
    /// task without a token was not requested by an interaction.
    ///
    /// # Errors
    /// [`DiscordError`], after the line reports it if a repeat cannot help.
    pub async fn open_thread(&self, open: &Open, now_ms: Ms) -> Result<ThreadKey, DiscordError> {
        let Reply::Discord { application, token } = &open.reply else {
            return Err(DiscordError::NotDiscord("a reply".to_owned()));
        };
        let anchor = render::anchor(open);
        let young =
            now_ms.saturating_sub(open.accepted_at_ms) < bobbin_core::base::limits::REPLY_TOKEN_MS;
        let answered = if young && !token.is_empty() {
            self.edit_original(application, token, &anchor).await
        } else {
            Err(DiscordError::TokenGone)
        };
        let message = match answered {
            // An accepted task is answered for all to see; only ingress' refusal is for the person alone.
            Ok((_, true)) => return Err(DiscordError::Unheard),
            Ok((message, false)) => message,
            Err(DiscordError::TokenGone) => match self.anchor_of(open, &anchor).await {
                Some(stands) => stands,
                None => {
                    let nonce = &digest(&["open", &open.guild, &open.channel, &open.id])[..24];
                    let rendered = Rendered { body: anchor, file: None };
                    self.create_message(&open.channel, &rendered, nonce).await?
                }
            },
            Err(other) => return Err(other),
        };
        match self.start_thread(&open.channel, &message.id, &open.prompt).await {
            Ok(thread) => ThreadKey::discord(&open.guild, &thread)
                .map_err(|bad| DiscordError::NotDiscord(bad.to_string())),
            Err(refused) => {
                if let Failure::NonRecoverable { advice: why }
                | Failure::ThreadClosed { seen: why }
                | Failure::ThreadGone { seen: why } = Failure::from(refused.clone())
                {
                    let line = Rendered {
                        body: render::anchor_failed(
                            open,
                            &format!("No thread could be created: {why}"),
                        ),
                        file: None,
                    };
                    if let Err(error) = self.edit_message(&message, &line).await {
                        tracing::warn!(event = "discord.notice.failed", %error, "discord: the notice of a refused thread could not be posted");
                    }
                }
                Err(refused)
            }
        }
    }

    /// The anchor of an earlier attempt whose result was lost, or on which a thread could not be started then: the
    /// answer, from when its token was valid, or a message of the bot. Also `None` if the channel's messages cannot be
    /// read.
    async fn anchor_of(&self, open: &Open, line: &Value) -> Option<PostRef> {
        // The answer to an interaction is newer than this id, from which the list starts.
        let rest = format!("/messages?after={}&limit={ANSWERS_MAX}", since(open));
        let call = in_channel("list messages", Method::GET, &open.channel, &rest);
        let listed = match self.client.call(&call, None, None).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::info!(event = "discord.anchor.unread", %error, "discord: could not read whether a task already has its line");
                return None;
            }
        };
        let is_anchor = |message: &&Value| {
            let flags = message["flags"].as_u64().unwrap_or(0);
            let answers = message["interaction_metadata"]["id"] == open.id.as_str()
                && flags & EPHEMERAL_OR_LOADING == 0;
            // A message of the bot can only be recognised by its text; one that answers an interaction is that one's.
            let posted = message["author"]["bot"] == true
                && message["interaction_metadata"].is_null()
                && message["content"] == line["content"];
            answers || posted
        };
        let found = listed.as_array()?.iter().find(is_anchor)?;
        post_ref(&call, &open.channel, found).ok()
    }
}

/// An id older than every message about the task: the interaction's, or one made from the time of a task that has no
/// interaction.
fn since(open: &Open) -> String {
    let id: &str = &open.id;
    if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) {
        return id.to_owned();
    }
    earliest_id(open.accepted_at_ms).to_string()
}

/// The lowest id that Discord can have given at this time, which is from a clock that may be ahead of its own.
pub(super) const fn earliest_id(at_ms: Ms) -> u64 {
    at_ms.saturating_sub(CLOCKS_MS).saturating_sub(IDS_SINCE_MS) << 22
}
