//! Pushing one ref, as a compare-and-set.

use std::fmt;

use futures::stream;
use reqwest::Body;

use super::error::{GitError, clean};
use super::object::ObjectId;
use super::pktline::{FLUSH, Packet, Packets, write};
use super::refs::{RefName, SHA256, id_of};
use super::remote::{AGENT, Incoming, Remote, Service};

/// Most bytes of a server's list of refs, which is read through for one of them.
const REFS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most bytes of the answer to a push.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// Most bytes of the server's words that are kept.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of a report about one ref.
const REPORT_BYTES_MAX: usize = 64 * 1024;

/// One ref to move.
#[derive(Clone, PartialEq, Eq)]
pub struct Push {
    /// The ref.
    pub name: RefName,
    /// Where it has to be now; `None`: it must not exist.
    pub old: Option<ObjectId>,
    /// Where it has to be afterwards.
    pub new: ObjectId,
    /// The objects that the remote lacks, as a pack.
    pub pack: Vec<u8>,
}

impl fmt::Debug for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, old, new, pack } = self;
        write!(f, "Push({name} from {old:?} to {new}, {} bytes)", pack.len())
    }
}

/// The end of a push that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The ref is where it has to be, by this push or an earlier one.
    Done,
    /// Somebody else has moved the ref: nothing was pushed.
    Moved {
        /// Where it is; `None`: it does not exist.
        at: Option<ObjectId>,
    },
    /// The remote refused.
    Refused {
        /// The reason: the remote's report, and what it said beside it, each on lines of its own.
        why: String,
    },
}

/// What a remote says about its refs before a push.
struct Offer {
    at: Option<ObjectId>,
    abilities: String,
}

impl Remote<'_> {
    /// Looks where the ref is, and moves it if that is where it has to be. After an error, whether it was moved is
    /// unknown: a repeat finds out.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn push(&self, push: Push) -> Result<Pushed, GitError> {
        let offer = self.offered(&push.name).await?;
        if let Some(ended) = before(push.old, push.new, offer.at) {
            return Ok(ended);
        }
        let has = |ability: &str| offer.abilities.split(' ').any(|one| one == ability);
        if !has("report-status") || !has("side-band-64k") {
            return Err(GitError::Unsupported { what: "The server does not report on pushes." });
        }
        let Push { name, old, new, pack } = push;
        let seen = old.unwrap_or(ObjectId::ZERO);
        let wish = format!("{seen} {new} {name}\0report-status side-band-64k {AGENT}");
        let mut head = Vec::new();
        write(&mut head, wish.as_bytes());
        head.extend_from_slice(FLUSH);
        let bytes = head.len() + pack.len();
        let parts = stream::iter([Ok::<_, std::convert::Infallible>(head), Ok(pack)]);
        let body = Body::wrap_stream(parts);
        let answer = self.ask(Service::Receive, body, bytes, ANSWER_BYTES_MAX).await?;
        let Some(why) = refusal(answer, &name).await? else {
            return Ok(Pushed::Done);
        };
        // Whoever came in between is seen, and not guessed from the server's words.
        let at = self.offered(&name).await?.at;
        Ok(before(old, new, at).unwrap_or(Pushed::Refused { why }))
    }

    async fn offered(&self, name: &RefName) -> Result<Offer, GitError> {
        let mut incoming = self.offer(Service::Receive, REFS_BYTES_MAX).await?;
        let mut abilities = None;
        let mut at = None;
        while let Some(packet) = incoming.next().await? {
            let Some(line) = packet.line() else {
                // The service's name has an end of its own.
                if abilities.is_some() {
                    break;
                } else {
                    continue;
                };
            };
            if abilities.is_none() && line.starts_with(b"# service=") {
                continue;
            }
            let line = match line.iter().position(|byte| *byte == 0) {
                Some(zero) if abilities.is_none() => {
                    abilities = Some(String::from_utf8_lossy(&line[zero + 1..]).into_owned());
                    &line[..zero]
                }
                _ => line,
            };
            let is_it = line.strip_suffix(name.as_str().as_bytes());
            if let Some(id) = is_it.and_then(|rest| rest.strip_suffix(b" ")) {
                at = Some(id_of(std::str::from_utf8(id).unwrap_or_default())?);
            }
        }
        let abilities = abilities.ok_or(GitError::Protocol { seen: "no offer" })?;
        let mut formats = abilities.split(' ').filter_map(|one| one.strip_prefix("object-format="));
        if formats.any(|format| format != "sha1") {
            return Err(SHA256);
        }
        Ok(Offer { at, abilities })
    }
}

/// The end of a push that need not, or must not, be sent.
fn before(old: Option<ObjectId>, new: ObjectId, at: Option<ObjectId>) -> Option<Pushed> {
    match at {
        at if at == Some(new) => Some(Pushed::Done),
        at if at != old => Some(Pushed::Moved { at }),
        _ => None,
    }
}

/// The reason why the ref was not moved; `None` if it was.
async fn refusal(mut answer: Incoming, name: &RefName) -> Result<Option<String>, GitError> {
    let mut report = Vec::new();
    let mut said = Vec::new();
    while let Some(packet) = answer.next().await? {
        let Packet::Data(data) = packet else { break };
        match data.split_first() {
            Some((1, piece)) if report.len() + piece.len() <= REPORT_BYTES_MAX => {
                report.extend_from_slice(piece);
            }
            // A message is cut anywhere, also inside of a word: it is joined before anybody reads it.
            Some((2, piece)) => {
                let left = SAID_BYTES_MAX - said.len();
                said.extend_from_slice(&piece[..piece.len().min(left)]);
            }
            Some((3, said)) => return Err(GitError::told(said)),
            _ => return Err(GitError::Protocol { seen: "a report on an unknown band" }),
        }
    }
    let mut lines = Packets::default();
    lines.feed(&report);
    let mut why = None;
    let ok = format!("ok {name}");
    let ng = format!("ng {name} ");
    while let Some(found) = lines.find()? {
        let Some(line) = lines.packet(found).line() else { break };
        if line == ok.as_bytes() {
            return Ok(None);
        }
        let reason = line.strip_prefix(ng.as_bytes());
        let unpack = line.strip_prefix(b"unpack ").filter(|outcome| *outcome != b"ok");
        why = reason.or(unpack).map(clean).or(why);
    }
    let why = why.ok_or(GitError::Protocol { seen: "a push without a report" })?;
    let said = clean(&said);
    Ok(Some(if said.is_empty() { why } else { format!("{why}\n{said}") }))
}
