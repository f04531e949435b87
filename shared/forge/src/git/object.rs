//! Ids, commits and trees, read from bytes that nobody vouches for.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use serde::Deserialize;

const ID_BYTES: usize = 20;
/// Hex digits of an id of a repository with SHA-256.
const SHA256_DIGITS: usize = 64;
/// Parents of one commit; git's own octopus merges stay far below it.
const PARENTS_MAX: usize = 64;

/// Id of an object: SHA-1 over its kind, size and content. Shown as 40 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ObjectId([u8; ID_BYTES]);

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnId {
    /// It is an id of a repository that uses SHA-256.
    #[error("the repository uses SHA-256, which Bobbin does not support")]
    Sha256,
    /// It is something else.
    #[error("it is not the id of a git object: 40 lower-case hex digits")]
    Other,
}

impl ObjectId {
    /// The id that stands for nothing in git's protocol.
    pub(super) const ZERO: Self = Self([0; ID_BYTES]);

    /// The id of an object with this content.
    #[must_use]
    pub fn of(kind: ObjectKind, content: &[u8]) -> Self {
        let mut naming = Naming::begin(kind, content.len() as u64);
        naming.add(content);
        naming.end()
    }

    fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl FromStr for ObjectId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut bytes = [0; ID_BYTES];
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if is_hex => Ok(Self(bytes)),
            _ if is_hex && text.len() == SHA256_DIGITS => Err(NotAnId::Sha256),
            _ => Err(NotAnId::Other),
        }
    }
}

impl TryFrom<String> for ObjectId {
    type Error = NotAnId;

    fn try_from(text: String) -> Result<Self, NotAnId> {
        text.parse()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Kinds of object. Annotated tags are not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A commit.
    Commit,
    /// A folder.
    Tree,
    /// The content of a file.
    Blob,
}

impl ObjectKind {
    /// The word in an object's header.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }
}

/// Computes an id piece by piece.
pub(super) struct Naming(Context);

impl Naming {
    pub(super) fn begin(kind: ObjectKind, size: u64) -> Self {
        let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(format!("{} {size}\0", kind.word()).as_bytes());
        Self(hash)
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(super) fn end(self) -> ObjectId {
        let digest = self.0.finish();
        ObjectId::from_slice(digest.as_ref()).expect("SHA-1 has 20 bytes")
    }
}

/// What is wrong with an object, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectError(&'static str);

/// A commit, as far as Bobbin reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its root folder.
    pub tree: ObjectId,
    /// The commits that it follows.
    pub parents: Vec<ObjectId>,
    /// Who wrote it, by the commit's own word.
    pub author: Ident,
    /// Who made the commit, by the commit's own word.
    pub committer: Ident,
    /// Its message; bytes that are not UTF-8 are replaced.
    pub message: String,
}

/// A name in a commit, with a time. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// The name; may be empty.
    pub name: String,
    /// The mail address; may be empty.
    pub email: String,
    /// Seconds since 1970.
    pub at_s: u64,
}

/// Reads a commit. Further headers (a signature, an encoding, whatever other programs add) are skipped.
///
/// # Errors
/// [`ObjectError`]: git itself would call the commit corrupt, or read it in another way.
pub fn read_commit(content: &[u8]) -> Result<Commit, ObjectError> {
    let (headers, message) = match find(content, b"\n\n") {
        Some(at) => (&content[..at], &content[at + 2..]),
        None => (content.strip_suffix(b"\n").unwrap_or(content), &b""[..]),
    };
    if headers.contains(&0) {
        return Err(ObjectError("a commit has a zero byte in its headers"));
    }
    let mut lines = headers.split(|byte| *byte == b'\n').peekable();
    let tree = lines.next().and_then(|line| id_in(line, b"tree "));
    let tree = tree.ok_or(ObjectError("a commit does not begin with its tree"))?;
    let mut parents = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with(b"parent ")) {
        let parent = id_in(line, b"parent ");
        parents.push(parent.ok_or(ObjectError("a commit has an unreadable parent"))?);
        if parents.len() > PARENTS_MAX {
            return Err(ObjectError("a commit has more than 64 parents"));
        }
    }
    let author = lines.next().and_then(|line| signature_in(line, b"author "));
    let author = author.ok_or(ObjectError("a commit has no readable author"))?;
    let committer = lines.next().and_then(|line| signature_in(line, b"committer "));
    let committer = committer.ok_or(ObjectError("a commit has no readable committer"))?;
    for line in lines {
        let is_second = [&b"tree "[..], b"parent ", b"author ", b"committer "]
            .iter()
            .any(|word| line.starts_with(word));
        if is_second {
            return Err(ObjectError("a commit has a header twice"));
        }
    }
    let message = String::from_utf8_lossy(message).into_owned();
    Ok(Commit { tree, parents, author, committer, message })
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|window| window == what)
}

fn id_in(line: &[u8], word: &[u8]) -> Option<ObjectId> {
    std::str::from_utf8(line.strip_prefix(word)?).ok()?.parse().ok()
}

/// `Name <mail> seconds ±hhmm`.
fn signature_in(line: &[u8], word: &[u8]) -> Option<Ident> {
    let line = String::from_utf8_lossy(line.strip_prefix(word)?);
    let (name, rest) = line.split_once('<')?;
    let (email, rest) = rest.split_once('>')?;
    let (seconds, zone) = rest.strip_prefix(' ')?.split_once(' ')?;
    let is_zone = zone.len() == 5
        && zone.starts_with(['+', '-'])
        && zone[1..].bytes().all(|byte| byte.is_ascii_digit());
    let is_time = seconds.bytes().all(|byte| byte.is_ascii_digit());
    let at_s = seconds.parse().ok().filter(|_| is_zone && is_time)?;
    Some(Ident { name: name.trim().to_owned(), email: email.to_owned(), at_s })
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryMode {
    /// A file.
    File,
    /// A file that may be run.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A folder.
    Folder,
    /// A commit of another repository.
    Submodule,
}

impl EntryMode {
    /// By git's octal mode, as a tree has it (`40000`) and as APIs write it (`040000`).
    pub(crate) fn of(octal: &[u8]) -> Option<Self> {
        match octal {
            // The second is what git wrote in its first year.
            b"100644" | b"100664" => Some(Self::File),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Symlink),
            b"40000" | b"040000" => Some(Self::Folder),
            b"160000" => Some(Self::Submodule),
            _ => None,
        }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// What it is.
    pub mode: EntryMode,
    /// Its name; not necessarily UTF-8.
    pub name: Vec<u8>,
    /// Its content; for a submodule a commit of the other repository.
    pub id: ObjectId,
}

/// Reads a folder: entries in git's order, no name twice, empty, with a slash, `.`, `..` or a spelling of `.git`.
///
/// # Errors
/// [`ObjectError`]: git itself would call the folder corrupt or dangerous.
pub fn read_tree(content: &[u8]) -> Result<Vec<TreeEntry>, ObjectError> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let (entry, further) = first_entry(rest)?;
        if let Some(last) = entries.last()
            && sorting(last) >= sorting(&entry)
        {
            return Err(ObjectError("a folder is not sorted, or has a name twice"));
        }
        entries.push(entry);
        rest = further;
    }
    // A file and a folder of one name have other names between them.
    let names: HashSet<&[u8]> = entries.iter().map(|entry| entry.name.as_slice()).collect();
    if names.len() < entries.len() {
        return Err(ObjectError("a folder has a name twice"));
    }
    Ok(entries)
}

fn first_entry(bytes: &[u8]) -> Result<(TreeEntry, &[u8]), ObjectError> {
    const CUT: ObjectError = ObjectError("a folder is cut off");
    let space = bytes.iter().position(|byte| *byte == b' ').ok_or(CUT)?;
    let (octal, rest) = (&bytes[..space], &bytes[space + 1..]);
    let zero = rest.iter().position(|byte| *byte == 0).ok_or(CUT)?;
    let (name, rest) = (&rest[..zero], &rest[zero + 1..]);
    let id = rest.get(..ID_BYTES).and_then(ObjectId::from_slice).ok_or(CUT)?;
    let mode = EntryMode::of(octal).filter(|_| !octal.starts_with(b"0"));
    let mode = mode.ok_or(ObjectError("a folder has an entry of an unknown kind"))?;
    if id == ObjectId::ZERO {
        return Err(ObjectError("a folder has an entry without content"));
    }
    check_name(name)?;
    Ok((TreeEntry { mode, name: name.to_vec(), id }, &rest[ID_BYTES..]))
}

/// Git sorts folders as if their names ended in a slash.
fn sorting(entry: &TreeEntry) -> Joined<'_> {
    let end: &[u8] = if entry.mode == EntryMode::Folder { b"/" } else { b"" };
    Joined(&entry.name, end)
}

#[derive(PartialEq, Eq)]
struct Joined<'a>(&'a [u8], &'a [u8]);

impl Ord for Joined<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().chain(self.1).cmp(other.0.iter().chain(other.1))
    }
}

impl PartialOrd for Joined<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Refuses names that lead out of their folder or into a repository's own data.
fn check_name(name: &[u8]) -> Result<(), ObjectError> {
    if name.is_empty() || name.contains(&b'/') || name.contains(&0) {
        return Err(ObjectError("a folder has an entry with an impossible name"));
    }
    if name == b"." || name == b".." {
        return Err(ObjectError("a folder has an entry that leads out of it"));
    }
    if is_dot_git(name) {
        return Err(ObjectError("a folder has an entry named .git"));
    }
    Ok(())
}

/// Whether some file system takes the name for `.git`: without regard to case, with characters that HFS+ ignores, or in
/// one of NTFS's spellings (git's `is_hfs_dotgit` and `is_ntfs_dotgit`).
fn is_dot_git(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let is_ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let on_hfs: String = text.chars().filter(|c| !is_ignored(*c)).collect();
    let on_ntfs = |part: &str| {
        let part = part.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
        part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case("git~1")
    };
    on_hfs.eq_ignore_ascii_case(".git") || text.split('\\').any(on_ntfs)
}
