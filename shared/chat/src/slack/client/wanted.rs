//! A post that is to be made in a thread, whatever becomes of it; and where direct messages stand.
//!
//! The key of all direct messages of a person names the person, not the channel, and what our scopes let us ask does not
//! tell it. So the channel is taken from the turn, which is named by the message that somebody wrote there, or from the
//! record's turns. Where neither says it Slack takes the person's id in its place and answers with the channel; only what
//! was posted before cannot be looked for then.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bobbin_core::base::ids::{PostKind, ThreadKey, TurnId, post_key};
use bobbin_core::records::session::Session;

use super::{Slack, SlackError};
use crate::slack::direct::is_direct_channel;
use crate::slack::endpoint::message_place;
use crate::slack::render::Rendered;

/// People whose channel is remembered.
const PEOPLE_MAX: usize = 1_024;

/// The channels of people's direct messages, by the thread.
pub(super) type DirectChannels = BTreeMap<ThreadKey, String>;

/// One post to be made.
pub(super) struct Wanted<'a> {
    pub(super) team: &'a str,
    /// A person's id where the channel of their direct messages is not known.
    pub(super) channel: String,
    /// The message that it stands under; none in direct messages that are all one thread.
    pub(super) root: Option<&'a str>,
    pub(super) turn: &'a TurnId,
    pub(super) key: String,
    /// The post in older blocks, where it is rendered in newer ones.
    pub(super) simpler: Option<Rendered>,
    /// It may be shown as a stream: the only part of an answer.
    pub(super) streamable: bool,
    /// What stands under its name stays as it is.
    pub(super) never_replaces: bool,
}

impl Wanted<'_> {
    /// Names the turn in the memory; a turn's id alone could be that of another thread.
    pub(super) fn memory_key(&self) -> String {
        let root = self.root.unwrap_or_default();
        format!("{}/{root}/{}", self.channel, self.turn)
    }
}

impl Slack {
    /// A post of this kind, in the blocks that every workspace takes and not as a stream.
    pub(super) fn wanted<'a>(
        &self,
        thread: &'a ThreadKey,
        turn: &'a TurnId,
        kind: &PostKind,
    ) -> Result<Wanted<'a>, SlackError> {
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
        Ok(Wanted {
            team,
            channel,
            root,
            turn,
            key: post_key(thread, turn, kind),
            simpler: None,
            streamable: false,
            never_replaces: false,
        })
    }

    /// The channel of a person's direct messages, as the turn or what is known of the thread says it.
    fn direct_channel(&self, thread: &ThreadKey, turn: &TurnId) -> Option<String> {
        if let Some((channel, _)) = direct_place(turn) {
            self.remember_channel(thread, channel);
            return Some(channel.to_owned());
        }
        let known = self.directs.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(thread).cloned()
    }

    /// Learns from a record in which channel its direct messages are.
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

    /// Remembers what Slack or a turn has said.
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

/// Channel and `ts` of the direct message that a turn stands for.
pub(super) fn direct_place(turn: &str) -> Option<(&str, &str)> {
    message_place(turn).filter(|(channel, _)| is_direct_channel(channel))
}
