//! The index of what is due: threads with a turn, and sandboxes that are to be paused or deleted.

use bobbin_core::ids::{Ms, SandboxKey, ThreadKey};

use super::layout::{ITEM, SANDBOX};
use super::{Store, StoreError};
use crate::aws::table::{Item, n, number, s, text};

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
            .expression_attribute_names("#due", "due_at")
            .expression_attribute_values(":shard", n(shard))
            .expression_attribute_values(":now", n(now_ms))
            .limit(DUE_PAGE);
        let page = self.table.queried(query).await?;
        let read = |item: &Item| {
            let group = match sandbox(item) {
                Some(key) => key.group(),
                None => text(item, "thread")?.parse().ok()?,
            };
            Some((group, number(item, "due_at")?))
        };
        Ok(page.items.iter().filter_map(read).collect())
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

/// The sandbox whose record an item of the index stands for; none: it is a thread's.
fn sandbox(item: &Item) -> Option<SandboxKey> {
    if text(item, ITEM)? != SANDBOX {
        return None;
    }
    text(item, "thread")?.parse().ok()
}
