//! The index of due work: threads with a turn, and sandboxes to be paused or deleted.
//!
//! At most one sweep of a group is outstanding, however long it stays unprocessed. The sweeper marks the record's item
//! before it sends one: `sweep` is that message's id, and `due_at`, the position in the index, moves forward: by
//! moments until the queue has the message, then to the time in `swept`. A record that is written meanwhile keeps that
//! position, and stores its own due time in `armed`; when the sweep is done, the position returns to it. So if a
//! sweeper dies in between, the same sweep is sent again.

use bobbin_core::base::ids::{Ms, SandboxKey, ThreadKey, TurnId};

use super::layout::{ARMED, DUE_AT, ITEM, SANDBOX, SESSION, SWEEP, SWEPT, key, sandbox_key};
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

/// Shards of the index.
pub const DUE_SHARDS: u8 = 16;
/// Pages (of 1 MB) of one shard that are read to find threads whose sandbox has vanished; the rest is left to their due
/// times.
const ARMED_PAGES_MAX: usize = 20;
/// Most threads that one read of a shard returns; the next tick gets the rest.
pub const DUE_PAGE: i32 = 500;
/// The sparse index of what is due.
const DUE: &str = "due";

impl Store {
    /// Due threads or sandbox groups of one shard, with their due times. A hint: the index lags behind the records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, shard: u8, now_ms: Ms) -> Result<Vec<(ThreadKey, Ms)>, StoreError> {
        let query = self
            .table
            .query("#shard = :shard AND #due <= :now")
            .index_name(DUE)
            .expression_attribute_names("#shard", "due_shard")
            .expression_attribute_names("#due", DUE_AT)
            .expression_attribute_values(":shard", n(shard))
            .expression_attribute_values(":now", n(now_ms))
            .limit(DUE_PAGE);
        let page = self.table.queried(query).await?;
        let read = |item: &TableItem| {
            let group = match sandbox(item) {
                Some(key) => key.group(),
                None => text(item, "thread")?.parse().ok()?,
            };
            Some((group, number(item, DUE_AT)?))
        };
        Ok(page.items.iter().filter_map(read).collect())
    }

    /// Marks that a sweep with this id is about to be sent to a group that was due at the given time; it is due again
    /// at `again_at_ms`. Returns the id to send, which is the previous one if that may not have been sent. `None`: by
    /// now something else is due there, or nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn means_sweep(
        &self,
        (group, due_at_ms): (&ThreadKey, Ms),
        id: &TurnId,
        again_at_ms: Ms,
    ) -> Result<Option<TurnId>, StoreError> {
        let write = ItemWrite::update(
            item_of(group),
            "SET #sweep = if_not_exists(#sweep, :id), #armed = #due, #due = :again",
        );
        let write = write
            .condition("#due = :seen")
            .name("#sweep", SWEEP)
            .name("#armed", ARMED)
            .name("#due", DUE_AT)
            .value(":id", s(id.to_string()))
            .value(":again", n(again_at_ms))
            .value(":seen", n(due_at_ms));
        let Some(set) = self.table.change(write).await? else {
            return Ok(None);
        };
        let id =
            text(&set, SWEEP).ok_or_else(|| StoreError::Damaged("no id was set".to_owned()))?;
        Ok(Some(id.into()))
    }

    /// Marks that the queue has this sweep: no other is sent before that time, unless it is done earlier. If it is
    /// already done, no mark is left.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sweep_is_out(
        &self,
        group: &ThreadKey,
        id: &TurnId,
        until_ms: Ms,
    ) -> Result<(), StoreError> {
        let write = ItemWrite::update(item_of(group), "SET #swept = :until, #due = :until")
            .condition("#sweep = :id")
            .name("#sweep", SWEEP)
            .name("#swept", SWEPT)
            .name("#due", DUE_AT)
            .value(":id", s(id.to_string()))
            .value(":until", n(until_ms));
        self.table.write(write).await?;
        Ok(())
    }

    /// Removes the mark of this sweep: the record's own due time applies again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sweep_is_done(&self, group: &ThreadKey, id: &TurnId) -> Result<(), StoreError> {
        // If nothing is due for the record, the number remains without a shard, and is in no index.
        let write = ItemWrite::update(
            item_of(group),
            "SET #due = if_not_exists(#armed, :never) REMOVE #sweep, #swept",
        );
        let write = write
            .condition("#sweep = :id")
            .name("#sweep", SWEEP)
            .name("#swept", SWEPT)
            .name("#armed", ARMED)
            .name("#due", DUE_AT)
            .value(":id", s(id.to_string()))
            .value(":never", n(Ms::MAX));
        self.table.write(write).await?;
        Ok(())
    }

    /// Sandboxes of one shard that are to be paused or deleted at some time: all that exist and are not in use. Also a
    /// hint.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed_sandboxes(&self, shard: u8) -> Result<Vec<SandboxKey>, StoreError> {
        let items = self.armed_items(shard, "").await?;
        Ok(items.iter().filter_map(sandbox).collect())
    }

    /// Threads of one shard that have a sandbox by their records: everything in the due index, due or not. Also a hint.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed(&self, shard: u8) -> Result<Vec<ThreadKey>, StoreError> {
        self.armed_of(shard, "").await
    }

    /// Like [`Self::armed`], but only threads whose key begins with `prefix`: a tenant, or a tenant and a channel.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed_of(&self, shard: u8, prefix: &str) -> Result<Vec<ThreadKey>, StoreError> {
        let items = self.armed_items(shard, prefix).await?;
        let read = |item: &TableItem| text(item, "thread")?.parse().ok();
        Ok(items.iter().filter_map(read).collect())
    }

    async fn armed_items(&self, shard: u8, prefix: &str) -> Result<Vec<TableItem>, StoreError> {
        let (mut items, mut start) = (Vec::new(), None);
        for _ in 0..ARMED_PAGES_MAX {
            let query = self
                .table
                .query("#shard = :shard")
                .index_name(DUE)
                .expression_attribute_names("#shard", "due_shard")
                .expression_attribute_values(":shard", n(shard))
                .set_exclusive_start_key(start);
            let query = match prefix {
                "" => query,
                prefix => query
                    .filter_expression("begins_with(#thread, :prefix)")
                    .expression_attribute_names("#thread", "thread")
                    .expression_attribute_values(":prefix", s(prefix)),
            };
            let page = self.table.queried(query).await?;
            items.extend(page.items);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(items)
    }
}

/// Key of the item that a sweep of this group is about.
fn item_of(group: &ThreadKey) -> TableItem {
    if group.is_conversation() { key(group, SESSION) } else { sandbox_key(&group.sandbox()) }
}

/// The sandbox whose record an index item stands for; `None` if it is a thread's.
fn sandbox(item: &TableItem) -> Option<SandboxKey> {
    if text(item, ITEM)? != SANDBOX {
        return None;
    }
    text(item, "thread")?.parse().ok()
}
