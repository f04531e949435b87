//! This process's memory of the posts in a thread: those that it posted, and those that it read back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};

use bobbin_core::records::session::Session;
use serde_json::Value;

use super::wanted::WantedPost;
use super::{Slack, SlackError};
use crate::slack::direct::is_direct_channel;
use crate::slack::endpoint::message_ts;
use crate::slack::render::EVENT_TYPE;

/// Maximum number of turns whose posts are remembered; a forgotten one is only read again.
const TURNS_MAX: usize = 64;
/// Messages in one page of a thread.
const PAGE_MESSAGES: usize = 200;
/// Maximum pages read from one thread, starting at the turn's own message.
const PAGES_MAX: usize = 10;
/// Prefix under which a file's name is remembered, beside the keys of posts.
pub(super) const FILE: &str = "file:";
/// Key of a stream that was cut off before it got one.
pub(super) const CUT_OFF: &str = "";

/// Posts of recent turns known to this process, by key.
#[derive(Debug, Default)]
pub(super) struct Memory {
    turns: VecDeque<(String, BTreeMap<String, String>)>,
}

impl Memory {
    pub(super) fn posts(&mut self, turn: &str) -> Option<&mut BTreeMap<String, String>> {
        self.turns.iter_mut().find(|(known, _)| known == turn).map(|(_, posts)| posts)
    }

    pub(super) fn learn(&mut self, turn: &str, posts: BTreeMap<String, String>) {
        self.forget(turn);
        if self.turns.len() == TURNS_MAX {
            self.turns.pop_front();
        }
        self.turns.push_back((turn.to_owned(), posts));
    }

    /// The memory of the turn may be wrong: read it again before the next post.
    pub(super) fn forget(&mut self, turn: &str) {
        self.turns.retain(|(known, _)| known != turn);
    }
}

impl Slack {
    /// A record was read again: another process may have had the turn since this one learnt its posts.
    pub(super) fn forget_posts(&self, session: &Session) {
        if let Some(turn) = &session.turn {
            let end = format!("/{}", turn.id);
            self.memory().turns.retain(|(known, _)| !known.ends_with(&end));
        }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic elsewhere leaves plain maps behind: their content is still valid.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of the posts in a turn's thread.
    pub(super) async fn posts(
        &self,
        wanted: &WantedPost<'_>,
    ) -> Result<BTreeMap<String, String>, SlackError> {
        let key = wanted.memory_key();
        let known = self.memory().posts(&key).cloned();
        if let Some(posts) = known {
            return Ok(posts);
        }
        let posts = self.read_back(wanted).await?;
        self.memory().learn(&key, posts.clone());
        Ok(posts)
    }

    /// Forgets the turn's posts while a call that adds to them is in flight, and returns them.
    pub(super) fn forgotten(&self, wanted: &WantedPost<'_>) -> BTreeMap<String, String> {
        let key = wanted.memory_key();
        let mut memory = self.memory();
        let known = memory.posts(&key).cloned().unwrap_or_default();
        memory.forget(&key);
        known
    }

    /// Remembers the turn's posts again.
    pub(super) fn known_again(&self, wanted: &WantedPost<'_>, posts: BTreeMap<String, String>) {
        self.memory().learn(&wanted.memory_key(), posts);
    }

    /// The keys of our posts in the thread, with their `ts`, starting at the turn's own message.
    pub(super) async fn read_back(
        &self,
        wanted: &WantedPost<'_>,
    ) -> Result<BTreeMap<String, String>, SlackError> {
        let mut posts = BTreeMap::new();
        if wanted.root.is_none() && !is_direct_channel(&wanted.channel) {
            tracing::warn!(
                event = "slack.thread.unread",
                "direct messages cannot be read back: their channel is unknown"
            );
            return Ok(posts);
        }
        let me = self.auth_test().await?.clone();
        // Direct messages come newest first, so the latest posts are included however many there are.
        let method = match wanted.root {
            Some(_) => "conversations.replies",
            None => "conversations.history",
        };
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let mut fields = vec![
                ("channel", wanted.channel.clone()),
                ("include_all_metadata", "true".to_owned()),
                ("limit", PAGE_MESSAGES.to_string()),
            ];
            fields.extend(wanted.root.map(|root| ("ts", root.to_owned())));
            fields.extend(message_ts(wanted.turn).map(|ts| ("oldest", ts.to_owned())));
            if !cursor.is_empty() {
                fields.push(("cursor", cursor.clone()));
            }
            let page = match self.call_form(method, &fields).await {
                Ok(page) => page,
                Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => {
                    return Err(error);
                }
                Err(error) => {
                    // Better twice than never: without permission to read, a post after a crash may be repeated.
                    tracing::warn!(event = "slack.thread.unread", %error, "a Slack thread cannot be read back");
                    return Ok(posts);
                }
            };
            let messages = page["messages"].as_array().map_or(&[][..], Vec::as_slice);
            let ours = |message: &&Value| {
                message["user"] == me.user.as_str() || message["bot_id"] == me.bot.as_str()
            };
            for message in messages.iter().filter(ours) {
                posts.extend(names_of(message, wanted.root));
            }
            cursor = next_cursor(&page);
            if cursor.is_empty() {
                break;
            }
        }
        Ok(posts)
    }
}

/// Cursor of the next page of a listing; empty after the last one (Slack's documentation, "Pagination").
pub(super) fn next_cursor(page: &Value) -> String {
    let cursor = page["response_metadata"]["next_cursor"].as_str();
    cursor.unwrap_or_default().to_owned()
}

/// Whether a message of ours is a stream that was cut off before it got its key.
pub(super) fn is_cut_off(message: &Value) -> bool {
    let no_files = message["files"].as_array().is_none_or(Vec::is_empty);
    message["metadata"]["event_type"].is_null() && no_files && message["subtype"].is_null()
}

/// The keys of a message of ours, each with its `ts`: its own, and those of its files.
fn names_of(message: &Value, root: Option<&str>) -> Vec<(String, String)> {
    let ts = message["ts"].as_str().unwrap_or_default();
    let mut names = Vec::new();
    // No stream starts in direct messages that are all one thread.
    if is_cut_off(message) && root.is_some_and(|root| ts != root) {
        names.push(CUT_OFF.to_owned());
    }
    for file in message["files"].as_array().into_iter().flatten() {
        names.extend(file["name"].as_str().map(|name| format!("{FILE}{name}")));
    }
    let metadata = &message["metadata"];
    if metadata["event_type"] == EVENT_TYPE
        && !ts.is_empty()
        && let Some(key) = metadata["event_payload"]["op_id"].as_str()
    {
        names.push(key.to_owned());
    }
    let named = |name| (name, ts.to_owned());
    names.into_iter().map(named).collect()
}
