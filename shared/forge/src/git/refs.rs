//! Names of a repository's refs, and what they point to.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::error::GitError;
use super::object::{NotAnId, ObjectId};
use super::pktline::{DELIMITER, FLUSH, Packet, write};
use super::remote::{AGENT, Incoming, Remote, Service};

/// Most refs that one call reads.
const REFS_MAX: usize = 20_000;
/// Maximum size of a list of refs, in bytes.
const REFS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Most bytes of the list of a server's abilities.
const OFFER_BYTES_MAX: u64 = 64 * 1024;
/// Longest name of a ref, in bytes; file systems end names at 255.
const NAME_BYTES_MAX: usize = 512;
pub(super) const SHA256: GitError =
    GitError::Unsupported { what: "The repository uses SHA-256, which Bobbin does not support." };

/// Full name of a ref, such as `refs/heads/main`, by the rules of `git check-ref-format`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

/// The text is not the full name of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the name of a branch or tag")]
pub struct NotARefName;

impl RefName {
    /// The branch with this short name.
    ///
    /// # Errors
    /// [`NotARefName`].
    pub fn branch(short: &str) -> Result<Self, NotARefName> {
        format!("refs/heads/{short}").parse()
    }

    /// The full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The short name of a branch; `None` for any other ref.
    #[must_use]
    pub fn short(&self) -> Option<&str> {
        self.0.strip_prefix("refs/heads/")
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RefName {
    type Err = NotARefName;

    fn from_str(name: &str) -> Result<Self, NotARefName> {
        let is_part = |part: &str| {
            !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none()
        };
        let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
        let is_ref = name.len() <= NAME_BYTES_MAX
            && name.starts_with("refs/")
            && name.split('/').count() > 2
            && name.split('/').all(is_part)
            && !name.ends_with('.')
            && !name.contains("..")
            && !name.contains("@{")
            && !name.contains(is_bad);
        is_ref.then(|| Self(name.to_owned())).ok_or(NotARefName)
    }
}

/// What a ref points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ref {
    /// The object, which for an annotated tag is the tag.
    pub id: ObjectId,
    /// What an annotated tag points to in the end.
    pub peeled: Option<ObjectId>,
}

impl Ref {
    /// The commit to which it leads (or whatever else somebody has tagged).
    #[must_use]
    pub fn commit(&self) -> ObjectId {
        self.peeled.unwrap_or(self.id)
    }
}

/// Refs of a repository, at one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refs {
    /// The default branch, by its full name, even if it has no commit yet; `None` if HEAD names no branch.
    pub default_branch: Option<String>,
    /// By full name, `HEAD` among them if it leads to a commit. Names that are not UTF-8 are left out: nobody can ask
    /// for them.
    pub refs: BTreeMap<String, Ref>,
}

/// What a server can do, beyond what every server of protocol version 2 can.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Abilities {
    /// Names the default branch of an empty repository.
    pub(super) unborn: bool,
    /// Sends a part of the history.
    pub(super) shallow: bool,
    /// Leaves out files.
    pub(super) filter: bool,
}

impl Remote<'_> {
    /// Default branch, and the refs whose names begin with one of these; without any, all of them.
    ///
    /// # Errors
    /// [`GitError`]; [`GitError::TooLarge`] if there are too many, so that a missing one is not there.
    pub async fn refs(&self, prefixes: &[String]) -> Result<Refs, GitError> {
        if prefixes.iter().any(|one| one.len() > NAME_BYTES_MAX || one.contains(char::is_control)) {
            return Err(GitError::Unsupported { what: "That is not the name of a branch or tag." });
        }
        let abilities = self.abilities().await?;
        let mut body = command("ls-refs");
        body.extend_from_slice(DELIMITER);
        write(&mut body, b"peel\n");
        write(&mut body, b"symrefs\n");
        if abilities.unborn {
            write(&mut body, b"unborn\n");
        }
        let head = (!prefixes.is_empty()).then_some("HEAD");
        for prefix in head.into_iter().chain(prefixes.iter().map(String::as_str)) {
            write(&mut body, format!("ref-prefix {prefix}\n").as_bytes());
        }
        body.extend_from_slice(FLUSH);
        let bytes = body.len();
        read(self.ask(Service::Upload, body, bytes, REFS_BYTES_MAX).await?).await
    }

    /// What the server can do when it sends.
    pub(super) async fn abilities(&self) -> Result<Abilities, GitError> {
        let mut offer = self.offer(Service::Upload, OFFER_BYTES_MAX).await?;
        let mut is_2 = false;
        let mut abilities = Abilities::default();
        while let Some(packet) = offer.next().await? {
            let Some(line) = packet.line() else {
                // Some servers put the service's name first, and end it so.
                if is_2 {
                    break;
                } else {
                    continue;
                };
            };
            if line == b"version 2" {
                is_2 = true;
            } else if let Some(words) = line.strip_prefix(b"ls-refs=") {
                abilities.unborn = has(words, b"unborn");
            } else if let Some(words) = line.strip_prefix(b"fetch=") {
                abilities.shallow = has(words, b"shallow");
                abilities.filter = has(words, b"filter");
            } else if line.starts_with(b"object-format=") && line != b"object-format=sha1" {
                return Err(SHA256);
            } else if !is_2 && !line.starts_with(b"# service=") {
                break;
            }
        }
        let old = "The server does not speak version 2 of git's protocol.";
        if is_2 { Ok(abilities) } else { Err(GitError::Unsupported { what: old }) }
    }
}

fn has(words: &[u8], word: &[u8]) -> bool {
    words.split(|byte| *byte == b' ').any(|one| one == word)
}

/// The beginning of a command of protocol version 2.
pub(super) fn command(name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    write(&mut body, format!("command={name}\n").as_bytes());
    write(&mut body, AGENT.as_bytes());
    write(&mut body, b"object-format=sha1");
    body
}

async fn read(mut answer: Incoming) -> Result<Refs, GitError> {
    let mut found = Refs::default();
    loop {
        let line = match answer.next().await? {
            Some(Packet::Flush) => return Ok(found),
            Some(packet) => packet.line(),
            None => None,
        };
        let line = line.ok_or(GitError::Protocol { seen: "a list of refs without its end" })?;
        let Ok(line) = std::str::from_utf8(line) else { continue };
        note(&mut found, line)?;
        if found.refs.len() > REFS_MAX {
            return Err(GitError::TooLarge { bytes_max: REFS_BYTES_MAX });
        }
    }
}

/// `<id> <name>[ symref-target:<name>][ peeled:<id>]`, where the id of an unborn HEAD is `unborn`.
fn note(found: &mut Refs, line: &str) -> Result<(), GitError> {
    let mut words = line.split(' ');
    let (Some(id), Some(name)) = (words.next(), words.next()) else {
        return Err(GitError::Protocol { seen: "a ref without a name" });
    };
    let mut peeled = None;
    for word in words {
        if let Some(target) = word.strip_prefix("symref-target:").filter(|_| name == "HEAD") {
            found.default_branch = Some(target.to_owned());
        }
        peeled = word.strip_prefix("peeled:").map(id_of).transpose()?.or(peeled);
    }
    if id != "unborn" {
        found.refs.insert(name.to_owned(), Ref { id: id_of(id)?, peeled });
    }
    Ok(())
}

/// An id in a remote's answer.
pub(super) fn id_of(text: &str) -> Result<ObjectId, GitError> {
    text.parse().map_err(|error| match error {
        NotAnId::Sha256 => SHA256,
        NotAnId::Other => GitError::Protocol { seen: "an id that is none" },
    })
}
