//! Carries a repository of a forge into a new sandbox, before the server starts in it.
//!
//! Promised: the forge's credential never leaves this process; no more than one piece of the pack is in memory; an
//! interrupted carriage never counts as done, and is begun again from nothing; size and time are bounded. Its origin in
//! the sandbox is a copy beside the checkout: what the agent pushes goes nowhere.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_forge::git::{Fetch, Fetched, ObjectId, PackSink, RefName};
use bobbin_forge::{Forge, ForgeError, ForgeErrorKind, RepositoryAt, RepositoryId, RepositoryName};
use bobbin_sandbox::{ErrorKind, Provider, Sandbox};
use tokio::time::timeout;

use super::clone::{left_out, why};
use super::{Sandboxes, WorkTarget};

const CARRY_SCRIPT: &str = concat!(include_str!("left_out.sh"), include_str!("carry.sh"));
const BRANCH_SCRIPT: &str = include_str!("branch.sh");
/// Bytes of the files in which a pack comes. Each is held once here, and once more while it is sent.
const PIECE_BYTES: usize = 4 * 1024 * 1024;
/// Largest pack.
const PACK_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Folder of the pieces, in the sandbox's working directory.
const PIECES: &str = ".bobbin/carried";
/// Exit code of the script for "nothing stands there yet".
const NOTHING_THERE: i64 = 9;
/// Time for the script that takes a branch.
const BRANCH: Duration = Duration::from_secs(60);
/// Time for the script to look whether the repository is there.
const LOOK: Duration = Duration::from_secs(15);

/// Why it was not carried.
enum NotCarried {
    /// For people.
    Told(NotCloned),
    Failed(Failure),
}

impl From<Failure> for NotCarried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ForgeError> for NotCarried {
    fn from(error: ForgeError) -> Self {
        match error.kind {
            ForgeErrorKind::Other | ForgeErrorKind::RateLimited => Self::Failed(error.failure),
            ForgeErrorKind::TooLarge { bytes_max } => {
                let most = bytes_max / (1024 * 1024);
                let why =
                    format!("its history is larger than {most} MB, the most that is carried.");
                Self::Told(NotCloned::Forge { why })
            }
            _ => Self::Told(NotCloned::Forge { why: told(&error) }),
        }
    }
}

/// A forge's refusal, for people, with the page that mends it.
pub(crate) fn told(error: &ForgeError) -> String {
    let seen = error.seen.trim_end_matches('.');
    match &error.link {
        Some(link) => format!("{seen}: {link}"),
        None => format!("{seen}."),
    }
}

impl Sandboxes {
    /// Carries the repository to where the agent works, unless it is there.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn carry(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        repository: &ForgeRepository,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let sandbox = self.find_running(target.sandbox, target.generation).await?;
        let within = Duration::from_millis(within_ms);
        match timeout(within, self.carried(forge, &sandbox, repository, within)).await {
            Ok(Ok(event)) => Ok(event),
            Ok(Err(NotCarried::Told(why))) => Ok(Event::NotCloned { why }),
            Ok(Err(NotCarried::Failed(failure))) => Err(failure),
            Err(_) => Ok(Event::NotCloned { why: NotCloned::TooLong }),
        }
    }

    async fn carried(
        &self,
        forge: &dyn Forge,
        sandbox: &Sandbox,
        repository: &ForgeRepository,
        within: Duration,
    ) -> Result<Event, NotCarried> {
        let at = at(repository).ok_or_else(|| unusable("its name"))?;
        let branch = RefName::branch(&repository.branch)
            .map_err(|_| unusable("the name of its default branch"))?;
        let refs = forge.refs(&at, &[branch.as_str().to_owned()]).await?;
        let base = refs.refs.get(branch.as_str()).map(|found| found.commit());
        let mut script =
            Script { sandbox, provider: &*self.provider, repository, base: base.as_ref() };
        let there = script.run("look", LOOK).await?;
        let made = if there.exit_code == NOTHING_THERE {
            let pieces = match &base {
                None => 0,
                Some(commit) => self.pieces(forge, &at, (*commit, None), sandbox).await?,
            };
            script.run(&pieces.to_string(), within).await?
        } else {
            there
        };
        if made.exit_code != 0 {
            return Err(NotCarried::Told(why(&made.text)));
        }
        let base = base.as_ref().map(ToString::to_string);
        let carried = Carried { repository: repository.clone(), base };
        Ok(Event::Carried { carried, left_out: left_out(&made.text) })
    }

    /// Puts a branch that somebody else has moved beside the checkout. False: the sandbox cannot take it.
    ///
    /// # Errors
    /// The class of the failure.
    pub(super) async fn bring_branch(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        (branch, commit): (&RefName, ObjectId),
    ) -> Result<bool, Failure> {
        let sandbox = self.find_running(target.sandbox, target.generation).await?;
        let Some(at) = at(&carried.repository) else {
            return Ok(false);
        };
        let base = carried.base.as_deref().and_then(|base| base.parse().ok());
        let pieces = match self.pieces(forge, &at, (commit, base), &sandbox).await {
            Ok(pieces) => pieces,
            Err(NotCarried::Told(_)) => return Ok(false),
            Err(NotCarried::Failed(failure)) => return Err(failure),
        };
        let environment = BTreeMap::from([
            ("BOBBIN_REF".to_owned(), branch.as_str().to_owned()),
            ("BOBBIN_COMMIT".to_owned(), commit.to_string()),
            ("BOBBIN_PIECES".to_owned(), pieces.to_string()),
        ]);
        let ran = self.provider.exec(&sandbox, BRANCH_SCRIPT, &environment, BRANCH).await;
        Ok(ran.map_err(|error| error.failure)?.exit_code == 0)
    }

    /// Puts the pack of this commit, beyond another that is there, into the sandbox; returns the number of its files.
    async fn pieces(
        &self,
        forge: &dyn Forge,
        at: &RepositoryAt,
        (commit, there): (ObjectId, Option<ObjectId>),
        sandbox: &Sandbox,
    ) -> Result<usize, NotCarried> {
        let what = Fetch {
            wants: vec![commit],
            haves: there.into_iter().collect(),
            bytes_max: PACK_BYTES_MAX,
            ..Fetch::default()
        };
        let provider = &*self.provider;
        let mut pieces = Pieces { provider, sandbox, held: Vec::new(), put: 0 };
        let Fetched { .. } = forge.fetch(at, &what, &mut pieces).await?;
        pieces.put().await?;
        Ok(pieces.put)
    }
}

/// The target of the forge's calls; `None` if the repository's name cannot be one.
pub(crate) fn at(repository: &ForgeRepository) -> Option<RepositoryAt> {
    let (owner, name) = repository.name.split_once('/')?;
    Some(RepositoryAt {
        installation: repository.installation,
        repository: RepositoryId(repository.id),
        name: RepositoryName::new(owner, name)?,
    })
}

fn unusable(what: &str) -> NotCarried {
    NotCarried::Told(NotCloned::Forge { why: format!("{what} cannot be used.") })
}

/// The script that makes the checkout.
struct Script<'a> {
    provider: &'a dyn Provider,
    sandbox: &'a Sandbox,
    repository: &'a ForgeRepository,
    base: Option<&'a ObjectId>,
}

impl Script<'_> {
    async fn run(
        &mut self,
        pieces: &str,
        within: Duration,
    ) -> Result<bobbin_sandbox::ScriptOutput, NotCarried> {
        let base = self.base.map(ToString::to_string).unwrap_or_default();
        let environment = BTreeMap::from([
            ("BOBBIN_ORIGIN".to_owned(), self.repository.address.clone()),
            ("BOBBIN_BRANCH".to_owned(), self.repository.branch.clone()),
            ("BOBBIN_COMMIT".to_owned(), base),
            ("BOBBIN_PIECES".to_owned(), pieces.to_owned()),
        ]);
        let ran = self.provider.exec(self.sandbox, CARRY_SCRIPT, &environment, within).await;
        ran.map_err(|error| match error.kind {
            ErrorKind::CommandTimeout => NotCarried::Told(NotCloned::TooLong),
            _ => NotCarried::Failed(error.failure),
        })
    }
}

/// Takes a pack, and puts it into the sandbox file by file.
struct Pieces<'a> {
    provider: &'a dyn Provider,
    sandbox: &'a Sandbox,
    held: Vec<u8>,
    put: usize,
}

impl Pieces<'_> {
    async fn put(&mut self) -> Result<(), Failure> {
        if self.held.is_empty() {
            return Ok(());
        }
        let file = (format!("{PIECES}/{}", self.put), std::mem::take(&mut self.held));
        self.provider.put_files(self.sandbox, vec![file]).await.map_err(|error| error.failure)?;
        self.put += 1;
        Ok(())
    }
}

#[async_trait]
impl PackSink for Pieces<'_> {
    async fn take(&mut self, piece: &[u8]) -> Result<(), Failure> {
        if self.held.len() + piece.len() > PIECE_BYTES {
            self.put().await?;
        }
        self.held.extend_from_slice(piece);
        Ok(())
    }
}
