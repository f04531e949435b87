//! What a connection with unreadable bytes shows: who had to send next, and when they did.
//!
//! A pause that ends with a word of the far end is the far end's: it was waited for. One that ends with a word of the
//! program's is the program's. So an exchange lasts from the program's last word before the answer to the last word of
//! the answer. Where a connection carries two questions at once, the second cuts the exchange of the first short, and
//! what is missing of it is the program's: this errs against us.

use std::time::Duration;

/// One question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    pub begun: Duration,
    pub ended: Duration,
    /// Bytes that the program sent.
    pub sent: usize,
    /// Bytes that the far end sent.
    pub received: usize,
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
pub struct Wire {
    done: Vec<Exchange>,
    open: Option<Exchange>,
}

impl Wire {
    /// A connection that the program opened at this time: the far end must identify itself.
    #[must_use]
    pub fn opened(at: Duration) -> Self {
        let mut wire = Self::default();
        wire.said(at, 0);
        wire
    }

    /// The program sent this many bytes.
    pub fn said(&mut self, at: Duration, bytes: usize) {
        match &mut self.open {
            Some(open) if open.received == 0 => {
                (open.begun, open.ended) = (at, at);
                open.sent += bytes;
            }
            _ => {
                self.done.extend(self.open.take());
                self.open = Some(Exchange { begun: at, ended: at, sent: bytes, received: 0 });
            }
        }
    }

    /// The far end sent this many bytes. Bytes after the last question answer nothing.
    pub fn answered(&mut self, at: Duration, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.ended = at;
            open.received += bytes;
        }
    }

    /// The exchanges since the last call.
    pub fn taken(&mut self) -> Vec<Exchange> {
        self.done.extend(self.open.take());
        std::mem::take(&mut self.done)
    }
}
