//! A session's log file: append-only lines, each on disk before anybody is told of it.
//!
//! Promised: a line is complete or absent, wherever writing was interrupted; event ids keep their meaning after a
//! restart; reading needs memory for a page and an index with one entry per [`INDEX_EVERY`] events. Deliberately
//! absent: the meaning of lines (`state`).
//!
//! A line is `<crc32 of the JSON, 8 hex digits> <JSON>\n`.

mod read;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::{INDEX_EVERY, LINE_BYTES_MAX, LOG_ENDS_BYTES_MAX};
use crate::state::SessionChange;

pub(crate) use read::{LogPage, Reader};

/// An atomic entry: a change of the session, an event for its clients, or both.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<SessionChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<LoggedEvent>,
}

/// An event, as sent to clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoggedEvent {
    pub(crate) id: u64,
    /// Number among the session's events.
    pub(crate) seq: u64,
    pub(crate) body: Box<RawValue>,
}

/// Why a line is not on disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// The disk, the quota or the log's own bound is full. None of the lines is written.
    #[error("the disk has no room left")]
    Full,
    /// It is unknown which of the lines are written until the file is read again at the next start.
    #[error("the log cannot be written: {0}")]
    Broken(String),
}

/// How far into its bound a log may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogRoom {
    Ordinary,
    /// Ends of turns may exceed the bound.
    Ends,
}

/// Shared by readers and the writer.
#[derive(Debug, Default)]
struct SharedLog {
    /// Bytes safely on disk.
    end: AtomicU64,
    /// Some event ids and the offsets of their lines, in order.
    index: RwLock<Vec<(u64, u64)>>,
}

impl SharedLog {
    fn note(&self, id: u64, position: u64) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.last().is_none_or(|(last, _)| id >= last + INDEX_EVERY) {
            index.push((id, position));
        }
    }

    /// Offset from which to read to find the event after this one.
    fn before(&self, id: u64) -> u64 {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let place = index.partition_point(|(first, _)| *first <= id);
        match place.checked_sub(1) {
            Some(place) => index[place].1,
            None => 0,
        }
    }
}

/// Contents found in a log file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogDamage {
    /// Bytes of an incomplete line at the end, from an interrupted write. They are removed.
    pub(crate) torn_bytes: u64,
    /// Unreadable lines before the last complete one. They stay in the file and are skipped.
    pub(crate) damaged_lines: u64,
}

/// The only writer of a session's log.
#[derive(Debug)]
pub(crate) struct SessionLog {
    file: Arc<File>,
    shared: Arc<SharedLog>,
    bytes_max: u64,
    broken: Option<String>,
}

impl SessionLog {
    /// Opens or creates a log, and passes on its lines one by one.
    pub(crate) fn open(
        path: &Path,
        bytes_max: u64,
        mut each: impl FnMut(LogEntry),
    ) -> io::Result<(Self, LogDamage)> {
        let is_new = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if let (true, Some(folder)) = (is_new, path.parent()) {
            // Otherwise a power failure could remove the name of a file whose bytes are on disk.
            File::open(folder)?.sync_all()?;
        }
        let shared = Arc::new(SharedLog::default());
        let found = recover(&file, &shared, &mut each)?;
        let log = Self { file: Arc::new(file), shared, bytes_max, broken: None };
        Ok((log, found))
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.file.clone(), self.shared.clone())
    }

    /// Appends lines and returns when they are on disk.
    ///
    /// # Errors
    /// [`AppendError`]: none of the lines counts.
    pub(crate) fn append(&mut self, lines: &[LogEntry], room: LogRoom) -> Result<(), AppendError> {
        if let Some(why) = &self.broken {
            return Err(AppendError::Broken(why.clone()));
        }
        let start = self.shared.end.load(Ordering::Acquire);
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        for line in lines {
            if let Some(event) = &line.event {
                places.push((event.id, start + bytes.len() as u64));
            }
            encode(line, &mut bytes).map_err(|error| AppendError::Broken(error.to_string()))?;
        }
        let end = start + bytes.len() as u64;
        let beyond = match room {
            LogRoom::Ordinary => 0,
            LogRoom::Ends => LOG_ENDS_BYTES_MAX,
        };
        if end > self.bytes_max + beyond {
            return Err(AppendError::Full);
        }
        let written = self.file.write_all_at(&bytes, start).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            return Err(self.undo(start, &error));
        }
        for (id, position) in places {
            self.shared.note(id, position);
        }
        self.shared.end.store(end, Ordering::Release);
        Ok(())
    }

    /// Undoes a failed write, so that the next one follows the last complete line.
    fn undo(&mut self, start: u64, error: &io::Error) -> AppendError {
        let undone = self.file.set_len(start);
        let is_full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        if is_full && undone.is_ok() {
            return AppendError::Full;
        }
        // After a failed sync the disk's contents are unknown (Linux drops the pages and forgets the error).
        self.broken = Some(error.to_string());
        AppendError::Broken(error.to_string())
    }
}

fn encode(line: &LogEntry, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
    let json = serde_json::to_vec(line)?;
    bytes.extend_from_slice(format!("{:08x} ", crc32fast::hash(&json)).as_bytes());
    bytes.extend_from_slice(&json);
    bytes.push(b'\n');
    Ok(())
}

fn decode(bytes: &[u8]) -> Option<LogEntry> {
    let (sum, rest) = bytes.split_at_checked(8)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != crc32fast::hash(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Reads the whole file and truncates an incomplete write at its end.
fn recover(
    file: &File,
    shared: &SharedLog,
    each: &mut impl FnMut(LogEntry),
) -> io::Result<LogDamage> {
    let mut input = BufReader::new(file);
    let mut position = 0;
    let mut whole = 0;
    let mut damaged = 0;
    let mut damaged_before_whole = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        // A line is written in one piece below this bound; a longer one is damage and is read in pieces.
        let read =
            (&mut input).take(2 * LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            break;
        }
        match decode(&bytes) {
            Some(line) => {
                if let Some(event) = &line.event {
                    shared.note(event.id, position);
                }
                each(line);
                whole = position + read;
                damaged_before_whole = damaged;
            }
            None => damaged += 1,
        }
        position += read;
    }
    if position > whole {
        file.set_len(whole)?;
        file.sync_all()?;
    }
    shared.end.store(whole, Ordering::Release);
    Ok(LogDamage { torn_bytes: position - whole, damaged_lines: damaged_before_whole })
}
