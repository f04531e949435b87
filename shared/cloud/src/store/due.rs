//! The index of what is due: threads with a turn, and sandboxes that are to be paused or deleted.
//!
//! Of one group at most one sweep is out, however long nobody works on it. The sweeper marks the record's item before it sends
//! one: `sweep` is that message's id, and `due_at`, the place in the index, moves forward: for moments until the queue has it, and
//! as far as `swept` says from then on. A record that is written meanwhile keeps that place, and its own due time in `armed`, to
//! which whoever has done the sweep takes the place back. So a sweeper that dies in between says the same sweep again.

use bobbin_core::base::ids::{Ms, SandboxKey, ThreadKey, TurnId};

use super::layout::{ARMED, DUE_AT, ITEM, SANDBOX, SESSION, SWEEP, SWEPT, key, sandbox_key};
use super::{Store, StoreError};
use crate::aws::table::{Item, Write, n, number, s, text};

/// Shards of the index.
pub const DUE_SHARDS: u8 = 16;
/// Pages (of 1 MB) of one shard that are read to find threads whose sandbox has vanished; the rest is left to their due
/// times.
const ARMED_PAGES_MAX: usize = 20;
/// Threads that one look at a shard returns; the next tick sees the rest.
pub const DUE_PAGE: i32 = 500;
/// The sparse index of what is due.
const DUE: &str = "due";

impl Store {
    /// What of one shard is due, with its due time: a thread, or the group of a sandbox. A hint: the index lags behind the
    /// records.
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
        let read = |item: &Item| {
            let group = match sandbox(item) {
                Some(key) => key.group(),
                None => text(item, "thread")?.parse().ok()?,
            };
            Some((group, number(item, DUE_AT)?))
        };
        Ok(page.items.iter().filter_map(read).collect())
    }

    /// Marks that a sweep with this id is about to be sent to a group that was found due then; it is due again at
    /// `again_at_ms`. The id to send it with, which is the one of before where that may not have been sent; none: by now
    /// something else is due there, or nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn means_sweep(
        &self,
        (group, due_at_ms): (&ThreadKey, Ms),
        id: &TurnId,
        again_at_ms: Ms,
    ) -> Result<Option<TurnId>, StoreError> {
        let write = Write::update(
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

    /// Marks that the queue has this sweep: no other is sent before that time, unless it is done before. One that is done
    /// already leaves no mark.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sweep_is_out(
        &self,
        group: &ThreadKey,
        id: &TurnId,
        until_ms: Ms,
    ) -> Result<(), StoreError> {
        let write = Write::update(item_of(group), "SET #swept = :until, #due = :until")
            .condition("#sweep = :id")
            .name("#sweep", SWEEP)
            .name("#swept", SWEPT)
            .name("#due", DUE_AT)
            .value(":id", s(id.to_string()))
            .value(":until", n(until_ms));
        self.table.write(write).await?;
        Ok(())
    }

    /// Takes the mark of this sweep away: what is due by the record is due again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sweep_is_done(&self, group: &ThreadKey, id: &TurnId) -> Result<(), StoreError> {
        // Of a record of which nothing is due the number stands there without a shard, and is in no index.
        let write = Write::update(
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

    /// The sandboxes of one shard that are to be paused or deleted at some time: all that are there and in use by none. A hint
    /// too.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed_sandboxes(&self, shard: u8) -> Result<Vec<SandboxKey>, StoreError> {
        let items = self.armed_items(shard, "").await?;
        Ok(items.iter().filter_map(sandbox).collect())
    }

    /// Threads of one shard that have a sandbox by their records: everything in the due index, due or not. A hint too.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed(&self, shard: u8) -> Result<Vec<ThreadKey>, StoreError> {
        self.armed_of(shard, "").await
    }

    /// Those of them whose key begins so: with a tenant, or with a tenant and a channel.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed_of(&self, shard: u8, prefix: &str) -> Result<Vec<ThreadKey>, StoreError> {
        let items = self.armed_items(shard, prefix).await?;
        let read = |item: &Item| text(item, "thread")?.parse().ok();
        Ok(items.iter().filter_map(read).collect())
    }

    async fn armed_items(&self, shard: u8, prefix: &str) -> Result<Vec<Item>, StoreError> {
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

/// Where that stands of which a sweep of this group is.
fn item_of(group: &ThreadKey) -> Item {
    if group.is_conversation() { key(group, SESSION) } else { sandbox_key(&group.sandbox()) }
}

/// The sandbox whose record an item of the index stands for; none: it is a thread's.
fn sandbox(item: &Item) -> Option<SandboxKey> {
    if text(item, ITEM)? != SANDBOX {
        return None;
    }
    text(item, "thread")?.parse().ok()
}
