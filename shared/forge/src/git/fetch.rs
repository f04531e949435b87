//! Fetching: a pack as a stream that is never held.

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;

use super::error::GitError;
use super::object::ObjectId;
use super::pktline::{DELIMITER, FLUSH, Packet, write};
use super::refs::{command, id_of};
use super::remote::{Incoming, Remote, Service};

/// Most objects that one request names; each is a line of the request.
const NAMED_MAX: usize = 4_096;
/// Most bytes of an answer beyond twice its pack: the marks of its packets, and the ends of a shallow history.
const AROUND_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// Nothing.
    #[default]
    None,
    /// The content of files.
    Blobs,
}

/// What to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetch {
    /// The objects wanted, with everything to which they lead.
    pub wants: Vec<ObjectId>,
    /// Commits that are there already, with everything to which they lead: the pack may rest on them.
    pub haves: Vec<ObjectId>,
    /// Commits that are there already without those that they follow.
    pub shallow: Vec<ObjectId>,
    /// Length of the history; `None`: all of it.
    pub depth: Option<u32>,
    /// What to leave out.
    pub filter: Filter,
    /// Most bytes of the pack.
    pub bytes_max: u64,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Bytes of the pack, all of which the sink has taken.
    pub bytes: u64,
    /// Commits that came without those that they follow: lines of `.git/shallow`.
    pub shallow: Vec<ObjectId>,
    /// Commits of [`Fetch::shallow`] whose history is there now.
    pub unshallow: Vec<ObjectId>,
}

/// Takes a pack, piece by piece. The next piece is read when the last is taken.
#[async_trait]
pub trait PackSink: Send {
    /// Takes the next bytes: at least one, at most 65,515.
    async fn take(&mut self, piece: &[u8]) -> Result<(), Failure>;
}

impl Remote<'_> {
    /// Streams a pack to the sink. After an error, what the sink has taken is worthless.
    ///
    /// # Errors
    /// [`GitError`]; [`GitError::TooLarge`] as soon as the pack exceeds its bound.
    pub async fn fetch(&self, what: &Fetch, sink: &mut dyn PackSink) -> Result<Fetched, GitError> {
        if what.wants.len() + what.haves.len() + what.shallow.len() > NAMED_MAX {
            return Err(GitError::Unsupported {
                what: "More commits are named than one fetch can name.",
            });
        }
        let abilities = self.abilities().await?;
        if what.depth.is_some() && !abilities.shallow {
            return Err(GitError::Unsupported { what: "The server sends no part of a history." });
        }
        if what.filter == Filter::Blobs && !abilities.filter {
            return Err(GitError::Unsupported {
                what: "The server sends no history without files.",
            });
        }
        let body = request(what);
        let bytes = body.len();
        let bytes_max = what.bytes_max.saturating_mul(2).saturating_add(AROUND_BYTES_MAX);
        let answer = self.ask(Service::Upload, body, bytes, bytes_max).await;
        receive(answer?, what.bytes_max, sink).await.map_err(|error| match error {
            GitError::TooLarge { .. } => GitError::TooLarge { bytes_max: what.bytes_max },
            other => other,
        })
    }
}

fn request(what: &Fetch) -> Vec<u8> {
    let mut body = command("fetch");
    body.extend_from_slice(DELIMITER);
    let mut line = |text: String| write(&mut body, text.as_bytes());
    if !what.haves.is_empty() {
        line("thin-pack\n".to_owned());
    }
    line("ofs-delta\n".to_owned());
    line("no-progress\n".to_owned());
    for id in &what.shallow {
        line(format!("shallow {id}\n"));
    }
    if let Some(depth) = what.depth {
        line(format!("deepen {depth}\n"));
    }
    match what.filter {
        Filter::None => {}
        Filter::Blobs => line("filter blob:none\n".to_owned()),
    }
    for id in &what.wants {
        line(format!("want {id}\n"));
    }
    for id in &what.haves {
        line(format!("have {id}\n"));
    }
    line("done\n".to_owned());
    body.extend_from_slice(FLUSH);
    body
}

async fn receive(
    mut answer: Incoming,
    bytes_max: u64,
    sink: &mut dyn PackSink,
) -> Result<Fetched, GitError> {
    let mut fetched = Fetched::default();
    until_pack(&mut answer, &mut fetched).await?;
    loop {
        let data = match answer.next().await? {
            Some(Packet::Data(data)) => data,
            Some(Packet::Flush) if fetched.bytes > 0 => return Ok(fetched),
            _ => return Err(GitError::Protocol { seen: "a pack that is cut off" }),
        };
        match data.split_first() {
            // Servers send empty pieces so that the connection is not taken for dead.
            Some((1, [])) | Some((2, _)) => {}
            Some((1, piece)) => {
                fetched.bytes += piece.len() as u64;
                if fetched.bytes > bytes_max {
                    return Err(GitError::TooLarge { bytes_max });
                }
                sink.take(piece).await.map_err(GitError::Sink)?;
            }
            Some((3, said)) => return Err(GitError::told(said)),
            _ => return Err(GitError::Protocol { seen: "a pack on an unknown band" }),
        }
    }
}

/// Reads the sections before the pack.
async fn until_pack(answer: &mut Incoming, fetched: &mut Fetched) -> Result<(), GitError> {
    const NO_PACK: GitError = GitError::Protocol { seen: "an answer without a pack" };
    loop {
        let packet = answer.next().await?.ok_or(NO_PACK)?;
        let Some(line) = packet.line() else {
            match packet {
                Packet::Delimiter => continue,
                _ => return Err(NO_PACK),
            }
        };
        if line == b"packfile" {
            return Ok(());
        }
        // Titles of sections, and whatever a server adds, need no answer.
        let words = std::str::from_utf8(line).unwrap_or_default();
        if let Some(id) = words.strip_prefix("shallow ") {
            fetched.shallow.push(id_of(id)?);
        } else if let Some(id) = words.strip_prefix("unshallow ") {
            fetched.unshallow.push(id_of(id)?);
        }
    }
}
