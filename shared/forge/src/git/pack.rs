//! Reads a pack of whole objects that nobody vouches for, to learn what a push would bring.
//!
//! Promised: nothing in the bytes makes it panic, or hold more than the pack, some 60 bytes for each object, and one
//! commit or folder; every id is computed from the content; what git would call corrupt is refused. An object that
//! grows beyond the size it claims is refused at that piece. SHA-1 does not stop somebody who makes two contents of one
//! id on purpose: the forge's own check of a push does, and what is pushed is the pack that was read.

use std::collections::BTreeMap;
use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::object::{
    Commit, Naming, ObjectError, ObjectId, ObjectKind, TreeEntry, read_commit, read_tree,
};

const HEAD_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 20;
/// Bytes that are inflated at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// Bounds of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackBounds {
    /// Bytes of the pack.
    pub bytes: usize,
    /// Objects.
    pub objects: u32,
    /// Bytes of all objects together.
    pub inflated: u64,
    /// Bytes of one commit or one folder.
    pub read: u64,
    /// Bytes of one file.
    pub blob: u64,
}

impl PackBounds {
    /// Of what Bobbin pushes. No forge that is known takes larger files.
    pub const PUSH: Self = Self {
        bytes: 25 * 1024 * 1024,
        objects: 50_000,
        inflated: 512 * 1024 * 1024,
        read: 8 * 1024 * 1024,
        blob: 100 * 1024 * 1024,
    };
}

/// Why a pack is refused, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// It has no pack's beginning, or one of another version.
    #[error("it is not a git pack of version 2")]
    NotAPack,
    /// It ends early, has an end of its own before its bytes end, or does not unpack.
    #[error("the pack is damaged")]
    Damaged,
    /// An object is stored as the difference to another.
    #[error("the pack has deltas; it has to be made of whole objects")]
    Delta,
    /// An object is an annotated tag, or of no known kind.
    #[error("the pack has an object that is no commit, folder or file")]
    UnknownKind,
    /// More bytes than allowed.
    #[error("the pack has more than {bytes_max} bytes")]
    TooLarge {
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// More objects than allowed.
    #[error("the pack has more than {objects_max} objects")]
    TooMany {
        /// The bound.
        objects_max: u32,
    },
    /// Its objects have more bytes than allowed, one of them or all together.
    #[error("the pack unpacks to more than {bytes_max} bytes")]
    Inflates {
        /// The bound in bytes.
        bytes_max: u64,
    },
    /// An object is there twice.
    #[error("the pack has the object {0} twice")]
    Twice(ObjectId),
    /// A commit or folder is corrupt.
    #[error("{id}: {why}")]
    Corrupt {
        /// Its id.
        id: ObjectId,
        /// What is wrong with it.
        why: ObjectError,
    },
}

/// Where an object is in the pack.
#[derive(Debug, Clone, Copy)]
struct ObjectPlace {
    kind: ObjectKind,
    at: usize,
    size: u64,
}

/// A pack that was read: its bytes, and where each object is among them.
pub struct Pack {
    bytes: Vec<u8>,
    places: BTreeMap<ObjectId, ObjectPlace>,
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pack").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Pack {
    /// Reads a pack through to its end.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn read(bytes: Vec<u8>, bounds: &PackBounds) -> Result<Self, PackError> {
        let places = survey(&bytes, bounds)?;
        Ok(Self { bytes, places })
    }

    /// A commit of the pack.
    #[must_use]
    pub fn commit(&self, id: &ObjectId) -> Option<Commit> {
        read_commit(&self.content(id, ObjectKind::Commit)?).ok()
    }

    /// A folder of the pack.
    #[must_use]
    pub fn tree(&self, id: &ObjectId) -> Option<Vec<TreeEntry>> {
        read_tree(&self.content(id, ObjectKind::Tree)?).ok()
    }

    /// The size of a file of the pack, in bytes.
    #[must_use]
    pub fn blob_bytes(&self, id: &ObjectId) -> Option<u64> {
        let place = self.places.get(id)?;
        (place.kind == ObjectKind::Blob).then_some(place.size)
    }

    /// Every object, in the order of ids.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, ObjectKind)> {
        self.places.iter().map(|(id, place)| (*id, place.kind))
    }

    /// The pack's bytes, as they were given.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The content of an object that was read before: its size is within the bound.
    fn content(&self, id: &ObjectId, kind: ObjectKind) -> Option<Vec<u8>> {
        let place = self.places.get(id).filter(|place| place.kind == kind)?;
        let mut content = Vec::new();
        inflate(&self.bytes[place.at..], place.size, |piece| content.extend_from_slice(piece))
            .ok()?;
        Some(content)
    }
}

fn survey(bytes: &[u8], bounds: &PackBounds) -> Result<BTreeMap<ObjectId, ObjectPlace>, PackError> {
    if bytes.len() > bounds.bytes {
        return Err(PackError::TooLarge { bytes_max: bounds.bytes });
    }
    let head = bytes.get(..HEAD_BYTES).and_then(|head| head.strip_prefix(b"PACK\0\0\0\x02"));
    let count = head.and_then(|count| count.try_into().ok()).map(u32::from_be_bytes);
    let count = count.ok_or(PackError::NotAPack)?;
    if count > bounds.objects {
        return Err(PackError::TooMany { objects_max: bounds.objects });
    }
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).filter(|end| *end >= HEAD_BYTES);
    let (body, checksum) = bytes.split_at(end.ok_or(PackError::Damaged)?);
    if digest(&SHA1_FOR_LEGACY_USE_ONLY, body).as_ref() != checksum {
        return Err(PackError::Damaged);
    }
    let mut places = BTreeMap::new();
    let mut at = HEAD_BYTES;
    let mut left = bounds.inflated;
    for _ in 0..count {
        let (kind, size, head) = object_head(&body[at..])?;
        let bytes_max = match kind {
            ObjectKind::Blob => bounds.blob,
            ObjectKind::Commit | ObjectKind::Tree => bounds.read,
        };
        if size > bytes_max {
            return Err(PackError::Inflates { bytes_max });
        }
        left = left.checked_sub(size).ok_or(PackError::Inflates { bytes_max: bounds.inflated })?;
        let place = ObjectPlace { kind, at: at + head, size };
        let (id, used) = read_object(&body[place.at..], place)?;
        if places.insert(id, place).is_some() {
            return Err(PackError::Twice(id));
        }
        at = place.at + used;
    }
    if at == body.len() { Ok(places) } else { Err(PackError::Damaged) }
}

/// Kind and size before an object's content, and how many bytes say so.
fn object_head(bytes: &[u8]) -> Result<(ObjectKind, u64, usize), PackError> {
    let first = *bytes.first().ok_or(PackError::Damaged)?;
    let kind = match first >> 4 & 7 {
        1 => ObjectKind::Commit,
        2 => ObjectKind::Tree,
        3 => ObjectKind::Blob,
        6 | 7 => return Err(PackError::Delta),
        _ => return Err(PackError::UnknownKind),
    };
    let mut size = u64::from(first & 15);
    let mut used = 1;
    let mut shift = 4;
    let mut goes_on = first & 128 != 0;
    while goes_on {
        let byte = *bytes.get(used).ok_or(PackError::Damaged)?;
        let bits = u64::from(byte & 127);
        // No size has more bits than these.
        if shift > 56 {
            return Err(PackError::Damaged);
        }
        size |= bits << shift;
        shift += 7;
        used += 1;
        goes_on = byte & 128 != 0;
    }
    Ok((kind, size, used))
}

/// Id of the object, and how many bytes it has in the pack.
fn read_object(bytes: &[u8], place: ObjectPlace) -> Result<(ObjectId, usize), PackError> {
    let ObjectPlace { kind, size, .. } = place;
    let mut naming = Naming::begin(kind, size);
    let mut content = Vec::new();
    let used = inflate(bytes, size, |piece| {
        naming.add(piece);
        if kind != ObjectKind::Blob {
            content.extend_from_slice(piece);
        }
    })?;
    let id = naming.end();
    let corrupt = |why| PackError::Corrupt { id, why };
    match kind {
        ObjectKind::Commit => drop(read_commit(&content).map_err(corrupt)?),
        ObjectKind::Tree => drop(read_tree(&content).map_err(corrupt)?),
        ObjectKind::Blob => {}
    }
    Ok((id, used))
}

/// Unpacks what has exactly this size, piece by piece, and says how many bytes it had.
fn inflate(bytes: &[u8], size: u64, mut take: impl FnMut(&[u8])) -> Result<usize, PackError> {
    let mut unpacking = Decompress::new(true);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let (before_in, before_out) = (unpacking.total_in(), unpacking.total_out());
        let used = usize::try_from(before_in).map_err(|_| PackError::Damaged)?;
        let status = unpacking
            .decompress(&bytes[used..], &mut piece, FlushDecompress::None)
            .map_err(|_| PackError::Damaged)?;
        let (total_in, total_out) = (unpacking.total_in(), unpacking.total_out());
        if total_out > size {
            return Err(PackError::Damaged);
        }
        take(&piece[..usize::try_from(total_out - before_out).map_err(|_| PackError::Damaged)?]);
        if status == Status::StreamEnd {
            return match usize::try_from(total_in) {
                Ok(used) if total_out == size => Ok(used),
                _ => Err(PackError::Damaged),
            };
        }
        if total_in == before_in && total_out == before_out {
            return Err(PackError::Damaged);
        }
    }
}
