//! One SQLite file with the state of both platforms.
//!
//! Items are JSON documents under (kind, scope, id); message ids have a fixed width on both platforms, so that key
//! order is time order. Promised: a call through [`ChatStore::atomically`] is atomic and survives a restart. Absent: a
//! schema per object, because the documents are the platforms' own.

use crate::ids::now_ms;
use crate::limits::{FILES_MAX, MESSAGES_PER_CHANNEL_MAX, REQUEST_LOG_ROWS_MAX};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use serde_json::Value;
use std::path::Path;

/// Sorts before every other id.
const FIRST: &str = "";
/// Sorts after every other id.
pub const LAST: &str = "~";

/// The file cannot be read or written: check the disk and the state folder's permissions.
#[derive(Debug, thiserror::Error)]
#[error("the chat's SQLite file failed ({0}); check the state folder's disk space and permissions")]
pub struct ChatStoreError(#[from] rusqlite::Error);

type Result<T> = std::result::Result<T, ChatStoreError>;

pub struct ChatStore {
    conn: Connection,
}

/// A file with its name and content type.
pub struct Blob {
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

impl ChatStore {
    pub fn open(path: &Path) -> Result<ChatStore> {
        let conn = Connection::open(path)?;
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS item (kind TEXT, scope TEXT, id TEXT, body TEXT NOT NULL, at_ms INTEGER NOT NULL,
                PRIMARY KEY (kind, scope, id)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS blob (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, name TEXT, content_type TEXT, bytes BLOB);
             CREATE TABLE IF NOT EXISTS request (seq INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT, body TEXT NOT NULL);
             CREATE INDEX IF NOT EXISTS request_by_platform ON request (platform, seq);",
        )?;
        Ok(ChatStore { conn })
    }

    /// Runs `work` in one transaction; an `Err` rolls back.
    pub fn atomically<T, E: From<ChatStoreError>>(
        &self,
        work: impl FnOnce(&ChatStore) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let begin = |sql| self.conn.execute_batch(sql).map_err(ChatStoreError);
        begin("BEGIN IMMEDIATE")?;
        let done = work(self);
        begin(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        done
    }

    pub fn get(&self, kind: &str, scope: &str, id: &str) -> Result<Option<Value>> {
        let body: Option<String> = self
            .conn
            .prepare_cached("SELECT body FROM item WHERE kind = ? AND scope = ? AND id = ?")?
            .query_row(params![kind, scope, id], |row| row.get(0))
            .optional()?;
        Ok(body.map(|text| parse(&text)))
    }

    pub fn put(&self, kind: &str, scope: &str, id: &str, body: &Value) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO item (kind, scope, id, body, at_ms) VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![kind, scope, id, body.to_string(), now_ms()])?;
        Ok(())
    }

    /// Deletes a kind's items not written for `age_ms`.
    pub fn forget_older(&self, kind: &str, age_ms: u64) -> Result<()> {
        self.conn
            .prepare_cached("DELETE FROM item WHERE kind = ? AND at_ms < ?")?
            .execute(params![kind, now_ms().saturating_sub(age_ms)])?;
        Ok(())
    }

    /// Adds a message and deletes the oldest ones beyond the bound.
    pub fn put_message(&self, kind: &str, scope: &str, id: &str, body: &Value) -> Result<()> {
        self.put(kind, scope, id, body)?;
        self.conn
            .prepare_cached(
                "DELETE FROM item WHERE kind = ?1 AND scope = ?2 AND id <=
                 (SELECT id FROM item WHERE kind = ?1 AND scope = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute(params![kind, scope, MESSAGES_PER_CHANNEL_MAX])?;
        Ok(())
    }

    pub fn delete(&self, kind: &str, scope: &str, id: &str) -> Result<()> {
        self.conn
            .prepare_cached("DELETE FROM item WHERE kind = ? AND scope = ? AND id = ?")?
            .execute(params![kind, scope, id])?;
        Ok(())
    }

    pub fn delete_scope(&self, kind: &str, scope: &str) -> Result<()> {
        self.conn
            .prepare_cached("DELETE FROM item WHERE kind = ? AND scope = ?")?
            .execute(params![kind, scope])?;
        Ok(())
    }

    /// All items of a scope, oldest first.
    pub fn all(&self, kind: &str, scope: &str) -> Result<Vec<Value>> {
        self.after(kind, scope, FIRST, u64::from(u32::MAX))
    }

    /// Items after an id, oldest first.
    pub fn after(&self, kind: &str, scope: &str, id: &str, limit: u64) -> Result<Vec<Value>> {
        let condition = "id > ? ORDER BY id ASC";
        self.select(condition, params![kind, scope, id, limit])
    }

    /// Items before an id, newest first.
    pub fn before(&self, kind: &str, scope: &str, id: &str, limit: u64) -> Result<Vec<Value>> {
        let condition = "id < ? ORDER BY id DESC";
        self.select(condition, params![kind, scope, id, limit])
    }

    fn select(&self, condition: &str, params: &[&dyn ToSql]) -> Result<Vec<Value>> {
        let sql =
            format!("SELECT body FROM item WHERE kind = ? AND scope = ? AND {condition} LIMIT ?");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map(params, |row| row.get::<_, String>(0))?;
        rows.map(|row| Ok(parse(&row?))).collect()
    }

    /// The greatest id of a kind over all scopes, so that new ids keep increasing after a restart.
    pub fn greatest_id(&self, kind: &str) -> Result<Option<String>> {
        Ok(self
            .conn
            .query_row("SELECT max(id) FROM item WHERE kind = ?", [kind], |row| row.get(0))?)
    }

    pub fn put_blob(&self, id: &str, blob: &Blob) -> Result<()> {
        self.conn.execute(
            "INSERT OR REPLACE INTO blob (id, name, content_type, bytes) VALUES (?, ?, ?, ?)",
            params![id, blob.name, blob.content_type, blob.bytes],
        )?;
        self.conn.execute(
            "DELETE FROM blob WHERE seq <= (SELECT max(seq) FROM blob) - ?",
            [FILES_MAX],
        )?;
        Ok(())
    }

    pub fn blob(&self, id: &str) -> Result<Option<Blob>> {
        Ok(self
            .conn
            .query_row("SELECT name, content_type, bytes FROM blob WHERE id = ?", [id], |row| {
                Ok(Blob { name: row.get(0)?, content_type: row.get(1)?, bytes: row.get(2)? })
            })
            .optional()?)
    }

    /// Logs a bot request for inspection, bounded.
    pub fn log_request(&self, platform: &str, body: &Value) -> Result<()> {
        self.conn
            .prepare_cached("INSERT INTO request (platform, body) VALUES (?, ?)")?
            .execute(params![platform, body.to_string()])?;
        self.conn
            .prepare_cached(
                "DELETE FROM request WHERE platform = ?1 AND seq <=
                 (SELECT seq FROM request WHERE platform = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute(params![platform, REQUEST_LOG_ROWS_MAX])?;
        Ok(())
    }

    /// Logged requests after a sequence number, oldest first, each with its `seq`.
    pub fn requests(&self, platform: &str, after: i64) -> Result<Vec<Value>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT seq, body FROM request WHERE platform = ? AND seq > ? ORDER BY seq",
        )?;
        let rows = statement.query_map(params![platform, after], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })?;
        rows.map(|row| {
            let (seq, text) = row?;
            let mut body = parse(&text);
            body["seq"] = seq.into();
            Ok(body)
        })
        .collect()
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("only serialised JSON is ever written to this column")
}
