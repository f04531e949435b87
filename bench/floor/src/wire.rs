//! HTTP/1.1 as far as the two services of the measurement speak it: answers with a `content-length`.

use std::io::{Read, Write};

/// A kept connection.
pub struct Wire<S> {
    stream: S,
    buffer: Vec<u8>,
}

/// An answer.
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Body.
    pub body: Vec<u8>,
    head: String,
}

impl Answer {
    /// The value of a header, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = |line: &'_ str| -> Option<usize> {
            let (found, _) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(found.len() + 1)
        };
        let line = |line| value(line).map(|at| line[at..].trim());
        self.head.lines().find_map(line).unwrap_or_default()
    }
}

impl<S: Read + Write> Wire<S> {
    /// On this stream.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; 16 * 1024],
        }
    }

    /// Writes a request and reads its answer.
    pub fn exchange(&mut self, request: &[u8]) -> Answer {
        self.stream.write_all(request).expect("written");
        self.stream.flush().expect("flushed");
        let mut read = 0;
        let (head, start) = loop {
            if let Some(end) = find_end(&self.buffer[..read]) {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                break (head, end + 4);
            }
            if read == self.buffer.len() {
                self.buffer.resize(2 * read, 0);
            }
            let bytes = self.stream.read(&mut self.buffer[read..]).expect("read");
            assert!(bytes > 0, "closed");
            read += bytes;
        };
        let status = head[9..12].parse().expect("a status");
        let mut answer = Answer {
            status,
            body: self.buffer[start..read].to_vec(),
            head,
        };
        let length: usize = answer.header("content-length").parse().expect("a length");
        let before = answer.body.len();
        answer.body.resize(length, 0);
        self.stream
            .read_exact(&mut answer.body[before..])
            .expect("the body");
        answer
    }
}

fn find_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n")
}
