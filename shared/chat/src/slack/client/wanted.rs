//! A post that is to be made in a thread, whatever becomes of it.

use crate::slack::render::Rendered;

/// One post to be made.
pub(super) struct Wanted<'a> {
    pub(super) team: &'a str,
    pub(super) channel: &'a str,
    pub(super) root: &'a str,
    pub(super) turn: &'a str,
    pub(super) key: String,
    /// The same in older blocks, where it has newer ones.
    pub(super) simpler: Option<Rendered>,
    /// It may be shown as a stream: the only part of an answer.
    pub(super) streamable: bool,
}

impl Wanted<'_> {
    /// Names the turn in the memory; a turn's id alone could be that of another thread.
    pub(super) fn memory_key(&self) -> String {
        format!("{}/{}/{}", self.channel, self.root, self.turn)
    }
}
