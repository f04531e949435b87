//! From a pull request at the forge to the thread that opened it: an item for its branch and one for its number, each
//! in a partition of its own (`thread = "pull:<repository id>:<branch>"` or `"pull:<repository id>:#<number>"`,
//! `item = "watched"`), with `of`, the thread, and `tenant`. Written with the thread's record, on condition that it
//! leads to no other thread. A webhook costs one read of it.

use std::collections::HashMap;

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::observations::WatchWrite;

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, s, text};

const WATCHED: &str = "watched";

/// What a webhook says of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedBy<'a> {
    /// Short name of its branch.
    Branch(&'a str),
    /// Its number.
    Number(u64),
}

impl Store {
    /// The thread that watches a pull request; `None` if none of ours does.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn watched(
        &self,
        repository: u64,
        by: WatchedBy<'_>,
    ) -> Result<Option<ThreadKey>, StoreError> {
        let item = self.table.get(key(repository, by)).await?;
        let thread = item.as_ref().and_then(|item| text(item, "of"));
        let damaged = |_| StoreError::Damaged("a pull request leads to no thread".to_owned());
        thread.map(|thread| thread.parse().map_err(damaged)).transpose()
    }
}

/// The writes of a watch that begins or ends.
pub(super) fn watch_writes(
    thread: &ThreadKey,
    write: &WatchWrite,
    expires_at_ms: Ms,
) -> [ItemWrite; 2] {
    let WatchWrite { repository, branch, number, has_ended } = write;
    [WatchedBy::Branch(branch), WatchedBy::Number(*number)].map(|by| {
        let change = if *has_ended {
            "SET #expires = :expires REMOVE #of"
        } else {
            "SET #of = :thread, #tenant = :tenant REMOVE #expires"
        };
        let update = ItemWrite::update(key(*repository, by), change)
            .condition("attribute_not_exists(#of) OR #of = :thread")
            .name("#of", "of")
            .name("#expires", "expires_at")
            .value(":thread", s(thread.to_string()));
        if *has_ended {
            update.value(":expires", n(expires_at_ms / 1_000))
        } else {
            update.name("#tenant", "tenant").value(":tenant", s(thread.tenant()))
        }
    })
}

fn key(repository: u64, by: WatchedBy<'_>) -> TableItem {
    let by = match by {
        WatchedBy::Branch(branch) => branch.to_owned(),
        // No branch of ours has such a name.
        WatchedBy::Number(number) => format!("#{number}"),
    };
    HashMap::from([
        ("thread".to_owned(), s(format!("pull:{repository}:{by}"))),
        (ITEM.to_owned(), s(WATCHED)),
    ])
}
