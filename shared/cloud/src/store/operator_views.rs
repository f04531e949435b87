//! Whole views of the table, for the operator: every thread, and everything of one thread. Bounded pages; nothing here
//! is on the path of a message.

use aws_sdk_dynamodb::types::AttributeValue;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::session::Session;
use serde_json::{Map, Value};

use super::layout::{DIFF, ITEM, SESSION, TURN, key};
use super::{DUE_SHARDS, RECORDS_MAX, Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, s, text};

/// Most pages (of 1 MB) of the table that one call reads.
const SCAN_PAGES_MAX: usize = 200;
/// Most pages (of 1 MB) of one thread: about a month of it.
const THREAD_PAGES_MAX: usize = 500;

/// A part of all threads.
#[derive(Debug, Default)]
pub struct ThreadsPage {
    /// Their records, with their control flags.
    pub threads: Vec<(Session, ControlFlags)>,
    /// Threads whose record cannot be read.
    pub unreadable: Vec<String>,
    /// Where the next page begins, if there is one.
    pub next: Option<ThreadKey>,
}

impl Store {
    /// Every thread that has a live sandbox or turn by its record, in the order of their keys; a hint, as the index
    /// lags.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_armed(&self) -> Result<Vec<ThreadKey>, StoreError> {
        let mut threads = Vec::new();
        for shard in 0..DUE_SHARDS {
            threads.extend(self.armed(shard).await?);
        }
        threads.sort_by_key(ToString::to_string);
        threads.dedup();
        Ok(threads)
    }

    /// Records of all threads, including those without a sandbox, in the table's own order, starting after a thread.
    /// Ends after `threads_max`, or when enough of the table was read that there should be a pause.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn page(
        &self,
        after: Option<&ThreadKey>,
        threads_max: usize,
    ) -> Result<ThreadsPage, StoreError> {
        let (mut page, mut start) =
            (ThreadsPage::default(), after.map(|thread| key(thread, SESSION)));
        for _ in 0..SCAN_PAGES_MAX {
            let scan = self
                .table
                .scan()
                .filter_expression("#item = :session")
                .projection_expression("#thread, #item")
                .expression_attribute_names("#thread", "thread")
                .expression_attribute_names("#item", ITEM)
                .expression_attribute_values(":session", s(SESSION))
                .set_exclusive_start_key(start);
            let answer = self.table.scanned(scan).await?;
            let named = |item: &TableItem| text(item, "thread").unwrap_or_default().to_owned();
            let threads: Vec<String> = answer.items.iter().map(named).collect();
            for some in threads.chunks(RECORDS_MAX) {
                let keys: Vec<ThreadKey> = some.iter().filter_map(|one| one.parse().ok()).collect();
                let mut read = self.stored(keys.iter()).await?;
                for named in some {
                    let Ok(thread) = named.parse() else {
                        page.unreadable.push(named.clone());
                        continue;
                    };
                    match read.remove(&thread) {
                        Some(Ok((Some(session), flags))) => page.threads.push((session, flags)),
                        Some(Ok((None, _))) | None => {}
                        Some(Err(_)) => page.unreadable.push(named.clone()),
                    }
                    if page.threads.len() == threads_max {
                        page.next = Some(thread);
                        return Ok(page);
                    }
                }
            }
            start = answer.next;
            let Some(key) = &start else {
                return Ok(page);
            };
            page.next = text(key, "thread").and_then(|thread| thread.parse().ok());
        }
        Ok(page)
    }

    /// Every item of a thread as stored, as JSON: texts and numbers by name, and JSON attributes parsed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn everything(&self, thread: &ThreadKey) -> Result<Vec<Value>, StoreError> {
        let items = self.partition(thread).await?;
        Ok(items.iter().map(plain).collect())
    }

    /// Deletes the ledger of a thread: its turns and their changes. Returns the number of deleted items.
    ///
    /// # Errors
    /// [`StoreError`]; a repeat deletes the rest.
    pub async fn forget_turns(&self, thread: &ThreadKey) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for item in self.partition(thread).await? {
            let name = text(&item, ITEM).unwrap_or_default();
            if !name.starts_with(TURN) && !name.starts_with(DIFF) {
                continue;
            }
            self.table.write(ItemWrite::delete(key(thread, name))).await?;
            deleted += 1;
        }
        Ok(deleted)
    }

    async fn partition(&self, thread: &ThreadKey) -> Result<Vec<TableItem>, StoreError> {
        let (mut items, mut start) = (Vec::new(), None);
        for _ in 0..THREAD_PAGES_MAX {
            let query = self
                .table
                .query("#thread = :thread")
                .consistent_read(true)
                .expression_attribute_names("#thread", "thread")
                .expression_attribute_values(":thread", s(thread.to_string()))
                .set_exclusive_start_key(start);
            let page = self.table.queried(query).await?;
            items.extend(page.items);
            start = page.next;
            if start.is_none() {
                return Ok(items);
            }
        }
        Err(StoreError::Damaged(format!(
            "{thread} has more than {THREAD_PAGES_MAX} MB of stored data, so it cannot be read whole"
        )))
    }
}

fn plain(item: &TableItem) -> Value {
    let mut map = Map::new();
    for (name, value) in item {
        let value = match value {
            AttributeValue::S(text) => match serde_json::from_str(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
                _ => text.clone().into(),
            },
            AttributeValue::N(number) => number.parse().unwrap_or_else(|_| number.clone().into()),
            _ => Value::Null,
        };
        map.insert(name.clone(), value);
    }
    Value::Object(map)
}
