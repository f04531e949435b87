//! Lines of a program's output.
//!
//! Promised: no line stops the reading. Invalid UTF-8 is replaced, and an overlong line is skipped and reported with
//! its length; memory is bounded by one line.

use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

/// A line without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputLine {
    Text(String),
    /// Skipped, with its length in bytes.
    TooLong(usize),
}

#[derive(Debug)]
pub(super) struct Lines {
    /// Bound of one line.
    bytes_max: usize,
    /// Bytes of the buffer known to contain no line break.
    searched: usize,
    /// Bytes dropped of an overlong line so far.
    dropped: usize,
}

impl Lines {
    pub(super) const fn of(bytes_max: usize) -> Self {
        Self { bytes_max, searched: 0, dropped: 0 }
    }

    fn line(&mut self, bytes: &[u8]) -> OutputLine {
        self.searched = 0;
        let length = std::mem::take(&mut self.dropped) + bytes.len();
        if length > self.bytes_max {
            return OutputLine::TooLong(length);
        }
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        OutputLine::Text(String::from_utf8_lossy(bytes).into_owned())
    }
}

impl Decoder for Lines {
    type Item = OutputLine;
    type Error = std::io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<OutputLine>, Self::Error> {
        let end = buffer[self.searched..].iter().position(|&it| it == b'\n');
        if let Some(end) = end {
            let bytes = buffer.split_to(self.searched + end + 1);
            return Ok(Some(self.line(&bytes[..bytes.len() - 1])));
        }
        self.searched = buffer.len();
        if self.dropped + buffer.len() > self.bytes_max {
            self.dropped += buffer.len();
            self.searched = 0;
            buffer.clear();
        }
        Ok(None)
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<OutputLine>, Self::Error> {
        if let Some(line) = self.decode(buffer)? {
            return Ok(Some(line));
        }
        let rest = buffer.split();
        let is_over = rest.is_empty() && self.dropped == 0;
        Ok((!is_over).then(|| self.line(&rest)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MAX: usize = 20;

    /// Lines read from these bytes, arriving in pieces of this size.
    fn read(bytes: &[u8], piece: usize) -> Vec<OutputLine> {
        let (mut lines, mut buffer) = (Lines::of(MAX), BytesMut::new());
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(line) = lines.decode(&mut buffer).unwrap() {
                all.push(line);
            }
        }
        while let Some(line) = lines.decode_eof(&mut buffer).unwrap() {
            all.push(line);
        }
        all
    }

    #[test]
    fn odd_lines_do_not_end_reading() {
        let text = |text: &str| OutputLine::Text(text.to_owned());
        let odd = b"one\r\ncaf\xe9 \xff\n\n\xc3\xa9\nlast";
        let expected = ["one", "caf\u{fffd} \u{fffd}", "", "é", "last"].map(text);
        for piece in 1..=odd.len() {
            assert_eq!(read(odd, piece), expected, "in pieces of {piece}");
        }
        let (fits, over) = (MAX, 2 * MAX + 7);
        let mut long = vec![b'x'; fits];
        long.push(b'\n');
        long.resize(long.len() + over, b'y');
        long.extend_from_slice(b"\nafter\n");
        long.resize(long.len() + over, b'z');
        let expected = [
            OutputLine::Text("x".repeat(fits)),
            OutputLine::TooLong(over),
            text("after"),
            OutputLine::TooLong(over),
        ];
        for piece in 1..=long.len() {
            assert_eq!(read(&long, piece), expected, "in pieces of {piece}");
        }
    }
}
