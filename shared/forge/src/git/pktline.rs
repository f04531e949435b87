//! Git's packets: four hex digits of length, themselves included, before up to 65,516 bytes.

use std::ops::Range;

use super::error::GitError;

/// Longest packet with its length.
pub(super) const PACKET_BYTES_MAX: usize = 65_520;
const LENGTH_BYTES: usize = 4;

/// Marker between messages.
pub(super) const FLUSH: &[u8] = b"0000";
/// Marker between the parts of a message.
pub(super) const DELIMITER: &[u8] = b"0001";

/// Appends a packet.
pub(super) fn write(to: &mut Vec<u8>, data: &[u8]) {
    debug_assert!(data.len() + LENGTH_BYTES <= PACKET_BYTES_MAX, "a request's line is short");
    to.extend_from_slice(format!("{:04x}", data.len() + LENGTH_BYTES).as_bytes());
    to.extend_from_slice(data);
}

/// A packet that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Data(&'a [u8]),
    Flush,
    Delimiter,
    /// The end of an answer, where one connection carries several.
    End,
}

impl<'a> Packet<'a> {
    /// A line of text, without its end.
    pub(super) fn line(self) -> Option<&'a [u8]> {
        match self {
            Self::Data(data) => Some(data.strip_suffix(b"\n").unwrap_or(data)),
            Self::Flush | Self::Delimiter | Self::End => None,
        }
    }
}

/// A packet in the bytes that are held.
pub(super) enum Found {
    Data(Range<usize>),
    Flush,
    Delimiter,
    End,
}

/// Cuts a stream into packets. It holds what was fed last and less than one packet before it.
#[derive(Default)]
pub(super) struct Packets {
    held: Vec<u8>,
    at: usize,
}

impl Packets {
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.extend_from_slice(piece);
    }

    /// Nothing is left of the stream so far.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.held.len()
    }

    /// The next packet, if all of it is there.
    pub(super) fn find(&mut self) -> Result<Option<Found>, GitError> {
        let rest = &self.held[self.at..];
        let Some((digits, _)) = rest.split_at_checked(LENGTH_BYTES) else {
            return Ok(None);
        };
        let length = length(digits).ok_or(GitError::Protocol { seen: "a packet's length" })?;
        let found = match length {
            0 => Found::Flush,
            1 => Found::Delimiter,
            2 => Found::End,
            3 => return Err(GitError::Protocol { seen: "a packet of an unknown kind" }),
            length if rest.len() < length => return Ok(None),
            length => Found::Data(self.at + LENGTH_BYTES..self.at + length),
        };
        self.at += length.max(LENGTH_BYTES);
        Ok(Some(found))
    }

    pub(super) fn packet(&self, found: Found) -> Packet<'_> {
        match found {
            Found::Data(range) => Packet::Data(&self.held[range]),
            Found::Flush => Packet::Flush,
            Found::Delimiter => Packet::Delimiter,
            Found::End => Packet::End,
        }
    }
}

fn length(digits: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    usize::from_str_radix(text, 16).ok().filter(|length| *length <= PACKET_BYTES_MAX)
}
