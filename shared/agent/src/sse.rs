//! An incremental parser of server-sent events: bytes in, data out, split anywhere.
//!
//! Promised: the same events however the bytes are split; no limit on a line below [`EVENT_BYTES_MAX`] (a tool's whole
//! output is one line); comments, names and ids are skipped. Deliberately absent: reconnecting, which needs a catch-up
//! that only the caller can do.

/// Most bytes of one event; a longer one ends the stream.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An event longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is longer than {EVENT_BYTES_MAX} bytes")]
pub struct EventTooLong;

/// Splits a stream of server-sent events into their data.
#[derive(Debug, Clone, Default)]
pub struct Sse {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl Sse {
    /// Processes the next bytes; returns the data of each event that they complete.
    ///
    /// # Errors
    /// [`EventTooLong`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.fits()?;
            if let Some(event) = self.end_of_line() {
                events.push(event);
            }
        }
        self.line.extend_from_slice(rest);
        self.fits()?;
        Ok(events)
    }

    fn fits(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() > EVENT_BYTES_MAX { Err(EventTooLong) } else { Ok(()) }
    }

    fn end_of_line(&mut self) -> Option<String> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.is_empty() {
            let event = self.has_data.then(|| String::from_utf8_lossy(&self.data).into_owned());
            self.data.clear();
            self.has_data = false;
            return event;
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STREAM: &str = ": comment\r\ndata: {\"a\":1}\r\n\r\nevent: x\nid: 7\ndata:one\ndata: two é\n\n\n\ndata\n\ndata: last";

    #[test]
    fn chunking_does_not_change_events() {
        let whole = Sse::default().push(STREAM.as_bytes()).unwrap();
        assert_eq!(whole, ["{\"a\":1}", "one\ntwo é"]);
        for size in 1..STREAM.len() {
            let mut sse = Sse::default();
            let cut: Vec<String> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| sse.push(piece).unwrap()).collect();
            assert_eq!(cut, whole, "pieces of {size}");
        }
    }

    #[test]
    fn only_overlong_lines_are_rejected() {
        let mut sse = Sse::default();
        let line = format!("data: {}\n\n", "x".repeat(2_000_000));
        assert_eq!(sse.push(line.as_bytes()).unwrap()[0].len(), 2_000_000);
        let piece = vec![b'x'; 1024 * 1024];
        assert!((0..17).any(|_| sse.push(&piece).is_err()));
    }
}
