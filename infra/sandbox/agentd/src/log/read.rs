//! Reads a log while it is written: never past what is on disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{LoggedEvent, SharedLog, decode};

/// Reads a session's events. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    file: Arc<File>,
    shared: Arc<SharedLog>,
}

/// Some of a session's events, in order.
#[derive(Debug, Default)]
pub(crate) struct LogPage {
    pub(crate) events: Vec<LoggedEvent>,
    /// There were more events at the time of reading.
    pub(crate) has_more: bool,
}

impl Reader {
    pub(super) fn new(file: Arc<File>, shared: Arc<SharedLog>) -> Self {
        Self { file, shared }
    }

    /// The events after this id, up to a number and a size; at least one if there is one.
    pub(crate) fn page(
        &self,
        after: u64,
        events_max: u64,
        bytes_max: usize,
    ) -> io::Result<LogPage> {
        let section = Section {
            file: &self.file,
            position: self.shared.before(after + 1),
            end: self.shared.end.load(Ordering::Acquire),
        };
        let mut input = BufReader::with_capacity(64 * 1024, section);
        let mut page = LogPage::default();
        let mut size = 0;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            if input.read_until(b'\n', &mut bytes)? == 0 {
                return Ok(page);
            }
            let Some(event) = decode(&bytes).and_then(|line| line.event) else {
                continue;
            };
            if event.id <= after {
                continue;
            }
            let is_full = page.events.len() as u64 >= events_max;
            let is_large = !page.events.is_empty() && size + event.body.get().len() > bytes_max;
            if is_full || is_large {
                page.has_more = true;
                return Ok(page);
            }
            size += event.body.get().len();
            page.events.push(event);
        }
    }
}

/// A range of a file, read without moving a shared file position.
struct Section<'a> {
    file: &'a File,
    position: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..wanted], self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
