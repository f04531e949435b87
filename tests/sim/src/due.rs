//! An item's place in the due index, and the sweep that is under way, as the table keeps them.

use bobbin_core::base::ids::{Ms, TurnId};

/// When one item is due.
#[derive(Debug, Default)]
pub struct Due {
    /// What the index shows, and from when.
    index: Vec<(Ms, Option<Ms>)>,
    /// The item's place in it.
    at_ms: Option<Ms>,
    /// When the record says that it is due.
    armed_ms: Option<Ms>,
    sweep: Option<TurnId>,
    swept_ms: Option<Ms>,
    /// Sweeps that are done; their messages may still be queued.
    done: Vec<TurnId>,
}

impl Due {
    /// A record was written.
    pub fn keep(&mut self, due_ms: Option<Ms>, now_ms: Ms, lag_ms: u64) {
        self.armed_ms = due_ms;
        self.at_ms = due_ms.map(|due_ms| self.swept_ms.unwrap_or(due_ms));
        self.index.push((now_ms + lag_ms, self.at_ms));
    }

    /// What the index shows: the newest entry that has arrived.
    pub fn says(&mut self, now_ms: Ms) -> Option<Ms> {
        let arrived = self.index.iter().rposition(|(at, _)| *at <= now_ms)?;
        self.index.drain(..arrived);
        self.index[0].1
    }

    /// The sweeper wants to send a sweep for what was due at that time: its id, if that is still so.
    pub fn means(
        &mut self,
        seen_ms: Ms,
        id: TurnId,
        (now_ms, again_ms): (Ms, Ms),
    ) -> Option<TurnId> {
        if self.at_ms != Some(seen_ms) {
            return None;
        }
        self.armed_ms = self.at_ms;
        self.moves(Some(again_ms), now_ms);
        Some(self.sweep.get_or_insert(id).clone())
    }

    /// The queue has it.
    pub fn is_out(&mut self, id: &TurnId, until_ms: Ms, now_ms: Ms) {
        if self.sweep.as_ref() == Some(id) {
            self.swept_ms = Some(until_ms);
            self.moves(self.at_ms.and(Some(until_ms)), now_ms);
        }
    }

    /// The sweep is done.
    pub fn is_done(&mut self, id: &TurnId, now_ms: Ms) {
        if self.sweep.as_ref() == Some(id) {
            (self.sweep, self.swept_ms) = (None, None);
            self.done.push(id.clone());
            self.moves(self.at_ms.and(self.armed_ms), now_ms);
        }
    }

    pub fn has_done(&self, id: &TurnId) -> bool {
        self.done.contains(id)
    }

    fn moves(&mut self, at_ms: Option<Ms>, now_ms: Ms) {
        self.at_ms = at_ms;
        self.index.push((now_ms, at_ms));
    }
}
