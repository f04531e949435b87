//! The tasks under way in a function, and which of them can continue.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;

use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::drive::Verdict;

use super::queue::Group;

/// A worker's function is ended after this long.
pub(super) const FUNCTION_MS: u64 = 15 * 60_000;

/// A worker (or the orphan hunt) under way.
pub(super) struct Task {
    pub(super) work: Pin<Box<dyn Future<Output = Verdict> + Send>>,
    pub(super) token: u64,
    /// The group whose head it works on; `None` for the orphan hunt.
    pub(super) group: Option<Group>,
    pub(super) dies_at_ms: Ms,
}

/// All tasks, in a deterministic order.
#[derive(Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
    /// Their places, by token.
    places: HashMap<u64, usize>,
    /// The places of tasks that can continue.
    awake: BTreeSet<usize>,
    /// Those that work on a group.
    workers: usize,
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has(&self, token: u64) -> bool {
        self.places.contains_key(&token)
    }

    /// Occupied executions of the worker.
    pub(super) const fn workers(&self) -> usize {
        self.workers
    }

    /// Adds a task, which can continue at once.
    pub(super) fn begin(&mut self, task: Task) {
        self.workers += usize::from(task.group.is_some());
        self.places.insert(task.token, self.all.len());
        self.awake.insert(self.all.len());
        self.all.push(task);
    }

    pub(super) fn wake(&mut self, token: u64) {
        self.awake.extend(self.places.get(&token));
    }

    /// The next task that can continue, and its place.
    pub(super) fn next(&mut self) -> Option<(usize, &mut Task)> {
        let place = self.awake.pop_first()?;
        Some((place, self.all.get_mut(place)?))
    }

    /// Removes the task at this place; the last one takes the place.
    pub(super) fn end(&mut self, place: usize) {
        let ended = self.all.swap_remove(place);
        self.workers -= usize::from(ended.group.is_some());
        self.places.remove(&ended.token);
        if let Some(moved) = self.all.get(place) {
            self.places.insert(moved.token, place);
            if self.awake.remove(&self.all.len()) {
                self.awake.insert(place);
            }
        }
    }
}
