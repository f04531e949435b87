//! A post that is to be made in a thread, whatever becomes of it.

use bobbin_core::ids::{PostKind, ThreadKey, TurnId, post_key};

use super::SlackError;
use crate::slack::render::Rendered;

/// One post to be made.
pub(super) struct Wanted<'a> {
    pub(super) team: &'a str,
    pub(super) channel: &'a str,
    pub(super) root: &'a str,
    pub(super) turn: &'a TurnId,
    pub(super) key: String,
    /// The post in older blocks, where it is rendered in newer ones.
    pub(super) simpler: Option<Rendered>,
    /// It may be shown as a stream: the only part of an answer.
    pub(super) streamable: bool,
}

impl<'a> Wanted<'a> {
    /// A post of this kind, in the blocks that every workspace takes and not as a stream.
    pub(super) fn of(
        thread: &'a ThreadKey,
        turn: &'a TurnId,
        kind: &PostKind,
    ) -> Result<Self, SlackError> {
        let ThreadKey::Slack {
            team,
            channel,
            root_ts,
        } = thread
        else {
            return Err(SlackError::NotSlack);
        };
        Ok(Self {
            team,
            channel,
            root: root_ts,
            turn,
            key: post_key(thread, turn, kind),
            simpler: None,
            streamable: false,
        })
    }

    /// Names the turn in the memory; a turn's id alone could be that of another thread.
    pub(super) fn memory_key(&self) -> String {
        format!("{}/{}/{}", self.channel, self.root, self.turn)
    }
}
