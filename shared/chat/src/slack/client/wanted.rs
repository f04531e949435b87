//! A post to be made in a thread, including retries; and the channel of direct messages.
//!
//! The key for a person's direct messages names the person, not the channel, and our scopes do not allow us to look the
//! channel up. So the channel is taken from the turn, whose id contains the message that somebody wrote there, or from
//! the record's turns. If neither names it, Slack accepts the person's id instead and answers with the channel; only
//! earlier posts cannot be found then.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::session::Session;

use super::{Slack, SlackError};
use crate::slack::direct::is_direct_channel;
use crate::slack::endpoint::message_place;
use crate::slack::render::RenderedBlocks;

/// Maximum number of people whose channel is remembered.
const PEOPLE_MAX: usize = 1_024;

/// The channels of people's direct messages, by thread.
pub(super) type DirectChannels = BTreeMap<ThreadKey, String>;

/// One post to be made.
pub(super) struct WantedPost<'a> {
    pub(super) team: &'a str,
    /// A person's id if the channel of their direct messages is not known.
    pub(super) channel: String,
    /// The message under which it is posted; `None` in direct messages that are all one thread.
    pub(super) root: Option<&'a str>,
    pub(super) turn: &'a TurnId,
    pub(super) key: String,
    /// The post in older blocks, if it is rendered in newer ones.
    pub(super) simpler: Option<RenderedBlocks>,
    /// All of a part of an answer: a message without blocks shows its text alone.
    pub(super) whole: Option<String>,
    /// It may be shown as a stream: the only part of an answer.
    pub(super) streamable: bool,
    /// An existing post with its key stays unchanged.
    pub(super) never_replaces: bool,
}

impl WantedPost<'_> {
    /// Identifies the turn in the memory; a turn's id alone could belong to another thread.
    pub(super) fn memory_key(&self) -> String {
        let root = self.root.unwrap_or_default();
        format!("{}/{root}/{}", self.channel, self.turn)
    }
}

impl Slack {
    /// A post of this kind, in blocks that every workspace takes, and not as a stream.
    pub(super) fn wanted<'a>(
        &self,
        thread: &'a ThreadKey,
        turn: &'a TurnId,
        kind: &PostKind,
    ) -> Result<WantedPost<'a>, SlackError> {
        let (team, channel, root) = match thread {
            ThreadKey::Slack { team, channel, root_ts } => {
                (team, channel.clone(), Some(root_ts.as_str()))
            }
            ThreadKey::SlackDirect { team, user } => {
                let channel = self.direct_channel(thread, turn);
                (team, channel.unwrap_or_else(|| user.clone()), None)
            }
            _ => return Err(SlackError::NotSlack),
        };
        Ok(WantedPost {
            team,
            channel,
            root,
            turn,
            key: post_key(thread, turn, kind),
            simpler: None,
            whole: None,
            streamable: false,
            never_replaces: false,
        })
    }

    /// The channel of a person's direct messages, from the turn or from what is known of the thread.
    fn direct_channel(&self, thread: &ThreadKey, turn: &TurnId) -> Option<String> {
        if let Some((channel, _)) = direct_place(turn) {
            self.remember_channel(thread, channel);
            return Some(channel.to_owned());
        }
        let known = self.directs.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(thread).cloned()
    }

    /// Learns the channel of direct messages from a record.
    pub(super) fn learn_channel(&self, session: &Session) {
        if !matches!(session.thread, ThreadKey::SlackDirect { .. }) {
            return;
        }
        let running = session.turn.iter().map(|turn| &turn.id);
        let mut turns = running.chain(session.ended.iter().rev().map(|ended| &ended.id));
        if let Some((channel, _)) = turns.find_map(|turn| direct_place(turn)) {
            self.remember_channel(&session.thread, channel);
        }
    }

    /// Remembers a channel named by Slack or a turn.
    pub(super) fn remember_channel(&self, thread: &ThreadKey, channel: &str) {
        let mut known = self.directs.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(thread).is_some_and(|known| known == channel) {
            return;
        }
        if known.len() >= PEOPLE_MAX {
            known.clear();
        }
        known.insert(thread.clone(), channel.to_owned());
    }
}

/// Channel and `ts` of the turn's direct message.
pub(super) fn direct_place(turn: &str) -> Option<(&str, &str)> {
    message_place(turn).filter(|(channel, _)| is_direct_channel(channel))
}
