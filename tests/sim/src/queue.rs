//! The queue's groups.

use std::collections::VecDeque;

use bobbin_core::base::ids::Ms;
use bobbin_core::records::message::Message;

/// Deliveries after which the queue gives a message up.
pub const DELIVERIES_MAX: u64 = bobbin_core::base::limits::DELIVERIES_MAX as u64;

/// A group of the queue: a thread's, or that of a thread's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub place: usize,
    pub of_sandbox: bool,
}

/// A message in its group.
#[derive(Debug, Clone)]
pub struct Entry {
    pub message: Message,
    pub(super) receives: u64,
    pub(super) visible_ms: Ms,
    pub(super) holder: Option<u64>,
    /// The worker that received it last.
    pub(super) last: u64,
}

impl Entry {
    /// When it can be received; `None` while a worker has it.
    pub(super) fn waits_until_ms(&self) -> Option<Ms> {
        self.holder.is_none().then_some(self.visible_ms)
    }
}

/// Makes a group's head visible again at this time.
pub(super) fn give_back(queue: &mut VecDeque<Entry>, visible_ms: Ms) {
    if let Some(entry) = queue.front_mut() {
        (entry.holder, entry.visible_ms) = (None, visible_ms);
    }
}
