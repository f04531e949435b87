//! The index lag: queries and scans of an index are answered from an older copy of the tables.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use dynoxide::Database;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::{DynamoError, engine};
use super::server::serve;
use crate::clock::Clock;
use crate::limits;

/// The indexes' lag; none by default.
pub(super) struct IndexLag {
    database: Database,
    folder: PathBuf,
    clock: Clock,
    tasks: TaskTracker,
    stopping: CancellationToken,
    lag: Mutex<Option<Lag>>,
}

/// An active lag with its copies of the tables.
struct Lag {
    lag_ms: i64,
    /// Oldest first; the first one also answers for earlier times.
    copies: VecDeque<Copy>,
    copied: u64,
    /// Which copy `stale` holds now.
    shown: Option<u64>,
    stale: Database,
    address: String,
}

struct Copy {
    number: u64,
    at_ms: i64,
    path: PathBuf,
}

impl IndexLag {
    /// A lag for these tables; its copies go into a folder of their own.
    pub(super) fn new(
        database: Database,
        folder: PathBuf,
        clock: Clock,
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> Self {
        Self {
            database,
            folder,
            clock,
            tasks: tasks.clone(),
            stopping: stopping.clone(),
            lag: Mutex::default(),
        }
    }

    /// Makes index queries answer as of `lag_ms` ago; 0 ends it.
    pub(super) async fn set(&self, lag_ms: i64) -> Result<(), DynamoError> {
        let lag_ms = lag_ms.clamp(0, limits::INDEX_LAG_MS_MAX);
        let lag = if lag_ms == 0 {
            None
        } else {
            let stale = Database::memory().map_err(engine)?;
            let address = serve(stale.clone(), &self.tasks, &self.stopping).await?;
            if self.folder.exists() {
                std::fs::remove_dir_all(&self.folder)?;
            }
            std::fs::create_dir_all(&self.folder)?;
            Some(Lag { lag_ms, copies: VecDeque::new(), copied: 0, shown: None, stale, address })
        };
        *self.lag() = lag;
        self.copy()
    }

    /// Address of the copy that answers this request; `None`: the tables themselves.
    pub(super) fn address_for(
        &self,
        action: &str,
        body: &Bytes,
    ) -> Result<Option<String>, DynamoError> {
        let mut lag = self.lag();
        let Some(lag) = lag.as_mut().filter(|_| reads_index(action, body)) else {
            return Ok(None);
        };
        let as_of_ms = self.clock.now_ms() - lag.lag_ms;
        while lag.copies.get(1).is_some_and(|copy| copy.at_ms <= as_of_ms) {
            if let Some(old) = lag.copies.pop_front() {
                std::fs::remove_file(old.path)?;
            }
        }
        if let Some(copy) = lag.copies.front()
            && lag.shown != Some(copy.number)
        {
            lag.stale.restore_from(&copy.path.display().to_string()).map_err(engine)?;
            lag.shown = Some(copy.number);
        }
        Ok(Some(lag.address.clone()))
    }

    /// Called after a request: while a lag is set, each write is followed by a copy of the tables.
    pub(super) fn after(&self, action: &str) {
        if writes(action)
            && let Err(error) = self.copy()
        {
            // A failed copy makes the index fresher than requested, which the next query reports.
            tracing::warn!(%error, "the tables could not be copied for the index lag");
        }
    }

    fn copy(&self) -> Result<(), DynamoError> {
        let mut lag = self.lag();
        let Some(lag) = lag.as_mut() else {
            return Ok(());
        };
        let number = lag.copied;
        lag.copied += 1;
        let path = self.folder.join(format!("{number}.sqlite"));
        self.database.vacuum_into(&path.display().to_string()).map_err(engine)?;
        lag.copies.push_back(Copy { number, at_ms: self.clock.now_ms(), path });
        // Beyond the bound the oldest go first: the index is then fresher than requested.
        while lag.copies.len() > limits::INDEX_COPIES_MAX {
            if let Some(old) = lag.copies.pop_front() {
                std::fs::remove_file(old.path)?;
            }
        }
        Ok(())
    }

    fn lag(&self) -> MutexGuard<'_, Option<Lag>> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn writes(action: &str) -> bool {
    matches!(
        action,
        "PutItem"
            | "UpdateItem"
            | "DeleteItem"
            | "BatchWriteItem"
            | "TransactWriteItems"
            | "ExecuteStatement"
            | "ExecuteTransaction"
            | "BatchExecuteStatement"
    )
}

fn reads_index(action: &str, body: &Bytes) -> bool {
    matches!(action, "Query" | "Scan")
        && serde_json::from_slice::<Value>(body)
            .is_ok_and(|request| request["IndexName"].is_string())
}
