//! What a turn's calls show: their number, their dependencies, and what was asked twice.

use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Queue, table, secrets, scheduler.
    Aws,
    Chat,
    /// The provider of sandboxes: its API and its toolbox.
    Provider,
    /// The agent's server in the sandbox.
    Agent,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aws, Self::Chat, Self::Provider, Self::Agent];

    /// Its name in figures.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Aws => "AWS",
            Self::Chat => "chat",
            Self::Provider => "provider",
            Self::Agent => "agent",
        }
    }
}

/// A call, as its receiver saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub peer: Peer,
    pub name: String,
    /// When the whole request had arrived.
    pub begun: Duration,
    /// Just before the answer went out.
    pub ended: Duration,
    /// Bytes of the request without TLS.
    pub sent: usize,
    /// Bytes of the answer; for a stream only those of its head.
    pub received: usize,
    pub status: u16,
    /// The same for the same request.
    pub digest: [u8; 32],
}

/// The longest chain of calls to `goal` in which each began after the one before had ended: the sequential round trips.
/// Of two equally long chains the one that ended last, because it was waited for.
#[must_use]
pub fn chain(calls: &[Call], goal: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|index| calls[*index].begun);
    let mut depth = vec![1_usize; calls.len()];
    let mut before: Vec<Option<usize>> = vec![None; calls.len()];
    for &index in &order {
        let earlier = order
            .iter()
            .copied()
            .filter(|other| *other != index && calls[*other].ended <= calls[index].begun);
        if let Some(last) = earlier.max_by_key(|other| (depth[*other], calls[*other].ended)) {
            depth[index] = depth[last] + 1;
            before[index] = Some(last);
        }
    }
    let mut row = vec![goal];
    while let Some(earlier) = before[row[row.len() - 1]] {
        row.push(earlier);
    }
    row.reverse();
    row
}

/// The first call of this name.
#[must_use]
pub fn first(calls: &[Call], name: &str) -> Option<usize> {
    let named = calls.iter().enumerate().filter(|(_, call)| call.name == name);
    named.min_by_key(|(_, call)| call.begun).map(|(index, _)| index)
}

/// How many calls had begun when this one ended, itself among them.
#[must_use]
pub fn begun_by(calls: &[Call], goal: usize) -> usize {
    let begun = calls.iter().filter(|call| call.begun < calls[goal].ended);
    begun.count()
}

/// Requests that repeat an earlier one word for word, in order.
#[must_use]
pub fn repeated(calls: &[Call]) -> Vec<&Call> {
    let mut known = BTreeSet::new();
    let mut order: Vec<&Call> = calls.iter().collect();
    order.sort_by_key(|call| call.begun);
    order.retain(|call| !known.insert((call.peer, call.digest)));
    order
}
