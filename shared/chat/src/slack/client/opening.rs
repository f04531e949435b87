//! The message that starts the thread of a task from a terminal: nobody in the workspace has written one.

use bobbin_core::base::ids::{Ms, ThreadKey, TurnId, digest};
use bobbin_core::records::message::Prompt;
use serde_json::Value;

use super::memory::next_cursor;
use super::{Slack, SlackError};
use crate::slack::render;

/// Maximum time by which a terminal's clock may be ahead of Slack's.
const CLOCKS_MS: u64 = 60_000;
/// Messages of the channel read per page; Slack takes up to 999.
const PAGE_MESSAGES: usize = 200;
/// Maximum number of pages read back.
const PAGES_MAX: usize = 5;

impl Slack {
    /// Posts the task, so that its thread can begin there. A repeat with the same id finds the existing message.
    ///
    /// # Errors
    /// [`SlackError`]; `NotInvited` if the app cannot see the channel.
    pub async fn open_thread(
        &self,
        id: &TurnId,
        channel: &str,
        accepted_at_ms: Ms,
        prompt: &Prompt,
    ) -> Result<ThreadKey, SlackError> {
        let me = self.auth_test().await?;
        let key = digest(&["open", &me.team, channel, id])[..24].to_owned();
        let stands = self.opened(channel, accepted_at_ms, &key).await?;
        let root = match stands {
            Some(ts) => ts,
            None => {
                let arguments = render::opening(channel, &key, id, prompt);
                let posted = self.call("chat.postMessage", &arguments).await?;
                posted["ts"].as_str().unwrap_or_default().to_owned()
            }
        };
        ThreadKey::slack(&me.team, channel, &root).map_err(|bad| SlackError::Unclear {
            method: "chat.postMessage",
            seen: bad.to_string(),
        })
    }

    /// The address of a thread for people; `None` if Slack does not name the workspace's site.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn thread_link(
        &self,
        channel: &str,
        root: &str,
    ) -> Result<Option<String>, SlackError> {
        let site = &self.auth_test().await?.site;
        Ok(site
            .ends_with('/')
            .then(|| format!("{site}archives/{channel}/p{}", root.replace('.', ""))))
    }

    /// The message that an earlier attempt posted with this key.
    async fn opened(
        &self,
        channel: &str,
        accepted_at_ms: Ms,
        key: &str,
    ) -> Result<Option<String>, SlackError> {
        let oldest_ms = accepted_at_ms.saturating_sub(CLOCKS_MS);
        let oldest = format!("{}.{:03}000", oldest_ms / 1_000, oldest_ms % 1_000);
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let mut fields = vec![
                ("channel", channel.to_owned()),
                ("oldest", oldest.clone()),
                ("include_all_metadata", "true".to_owned()),
                ("limit", PAGE_MESSAGES.to_string()),
            ];
            if !cursor.is_empty() {
                fields.push(("cursor", cursor));
            }
            let page = self.call_form("conversations.history", &fields).await?;
            let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
            let named = |one: &&Value| one["metadata"]["event_payload"]["op_id"] == key;
            if let Some(found) = messages.iter().find(named) {
                return Ok(found["ts"].as_str().map(str::to_owned));
            }
            cursor = next_cursor(&page);
            if cursor.is_empty() {
                break;
            }
        }
        Ok(None)
    }
}
