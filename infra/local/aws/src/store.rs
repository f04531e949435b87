//! One SQLite file for queues, schedules, secrets and keys.
//!
//! Every change is one transaction, in the write-ahead log when the call returns: a killed process loses nothing that
//! was answered. A power failure may lose the last moments; no promise covers that.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS queues (
  name TEXT PRIMARY KEY,
  attributes TEXT NOT NULL,
  tags TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  modified_ms INTEGER NOT NULL,
  purged_ms INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS messages (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  body TEXT NOT NULL,
  attributes TEXT NOT NULL,
  group_id TEXT,
  deduplication_id TEXT,
  sent_ms INTEGER NOT NULL,
  visible_ms INTEGER NOT NULL,
  received_ms INTEGER,
  first_received_ms INTEGER,
  receives INTEGER NOT NULL DEFAULT 0,
  receipt TEXT,
  dead_from TEXT,
  in_function INTEGER NOT NULL DEFAULT 0,
  receives_before INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS deleted_queues (
  name TEXT PRIMARY KEY,
  deleted_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS messages_by_queue ON messages (queue, sequence);
CREATE INDEX IF NOT EXISTS messages_by_group ON messages (queue, group_id, visible_ms);
CREATE INDEX IF NOT EXISTS messages_by_age ON messages (queue, sent_ms);
CREATE INDEX IF NOT EXISTS messages_by_visibility ON messages (queue, visible_ms);
CREATE TABLE IF NOT EXISTS deduplication (
  queue TEXT NOT NULL,
  scope TEXT NOT NULL,
  deduplication_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, scope, deduplication_id)
) STRICT;
CREATE INDEX IF NOT EXISTS deduplication_by_expiry ON deduplication (queue, expires_ms);
CREATE TABLE IF NOT EXISTS schedule_groups (
  name TEXT PRIMARY KEY,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS schedules (
  group_name TEXT NOT NULL,
  name TEXT NOT NULL,
  definition TEXT NOT NULL,
  client_token TEXT,
  from_template INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  modified_ms INTEGER NOT NULL,
  next_ms INTEGER,
  PRIMARY KEY (group_name, name)
) STRICT;
CREATE INDEX IF NOT EXISTS schedules_by_due_time ON schedules (next_ms);
CREATE TABLE IF NOT EXISTS firings (
  id TEXT PRIMARY KEY,
  schedule_arn TEXT NOT NULL,
  target TEXT NOT NULL,
  scheduled_ms INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 1,
  next_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS firings_by_due_time ON firings (next_ms);
CREATE TABLE IF NOT EXISTS secrets (
  name TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  value TEXT NOT NULL,
  generated TEXT,
  template_value TEXT,
  changed_ms INTEGER NOT NULL,
  created_ms INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS kms_keys (
  id TEXT PRIMARY KEY,
  material BLOB NOT NULL,
  description TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
";

/// Columns added later, for files from an older version: table, column, type.
const LATER: [(&str, &str, &str); 2] = [
    ("messages", "receives_before", "INTEGER NOT NULL DEFAULT 0"),
    ("secrets", "created_ms", "INTEGER"),
];

/// The shared database connection.
pub(crate) struct Database(Mutex<Connection>);

impl Database {
    /// Opens the file and creates missing tables and columns.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.set_prepared_statement_cache_capacity(128);
        connection.execute_batch(SCHEMA)?;
        for (table, column, kind) in LATER {
            let is_there = connection
                .prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2")?
                .exists([table, column])?;
            if !is_there {
                connection
                    .execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))?;
            }
        }
        Ok(Self(Mutex::new(connection)))
    }

    /// Runs `change` in one transaction; commits only on `Ok`.
    pub(crate) fn transaction<T, E: From<rusqlite::Error>>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = change(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panicking holder rolled its transaction back, so the connection is sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
