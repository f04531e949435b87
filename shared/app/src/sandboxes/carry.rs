//! Carries a repository of a forge into a new sandbox, before the server starts in it.
//!
//! Promised: the forge's credential never leaves this process; no more than two pieces of a pack are in memory; an
//! interrupted carriage never counts as done, and is begun again from nothing; size and time are bounded; what is there
//! is complete, up to where the history ends. Its origin in the sandbox is a copy beside the checkout: what the agent
//! pushes goes nowhere.

mod pieces;

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{Carried, CarriedTo, ForgeRepository};
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::publication::PullRequestState;
use bobbin_forge::git::{Fetch, ObjectId, RefName};
use bobbin_forge::{Forge, ForgeError, ForgeErrorKind, RepositoryAt, RepositoryId, RepositoryName};
use bobbin_sandbox::{ErrorKind, Provider, Sandbox, ScriptOutput};
use tokio::time::timeout;

use self::pieces::Pieces;
use super::clone::{OF, left_out, why};
use super::{Sandboxes, WorkTarget};

const CARRY_SCRIPT: &str = concat!(
    include_str!("left_out.sh"),
    include_str!("unpack.sh"),
    include_str!("settle.sh"),
    include_str!("carry.sh")
);
const BRANCH_SCRIPT: &str = concat!(include_str!("unpack.sh"), include_str!("branch.sh"));
const MIB: u64 = 1024 * 1024;
/// Most bytes of a whole history.
const WHOLE_BYTES_MAX: u64 = 100 * MIB;
/// Most bytes of the newest commit with its files and the commits before it.
const PARTS_BYTES_MAX: u64 = 500 * MIB;
/// From this estimated size on, the whole history is not tried: estimates count more than a pack contains.
const SURELY_LARGE_KB: u64 = 2 * WHOLE_BYTES_MAX / 1024;
/// Commits of a history that is too large as a whole, in a straight line.
const DEPTH: u32 = 50;
/// Most ends of a history.
const ENDS_MAX: usize = 4_000;
/// Exit code of the script for "nothing stands there yet".
const NOTHING_THERE: i64 = 9;
/// Time for the script that takes a branch.
const BRANCH: Duration = Duration::from_secs(60);
/// Time for the script to look whether the repository is there.
const LOOK: Duration = Duration::from_secs(15);

/// What is to be carried.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The repository.
    pub repository: &'a ForgeRepository,
    /// The branch, tag or commit; `None`: its default branch.
    pub at: Option<&'a str>,
    /// The pull request whose head is wanted instead.
    pub pull: Option<&'a GivenPull>,
    /// Where it belongs.
    pub to: &'a CarriedTo,
    /// The forge's estimate of its size in kilobytes; 0 if unknown.
    pub size_kb: u64,
}

/// What a name stands for at the forge.
#[derive(Debug, Default)]
struct RemoteRef {
    /// The branch; `None` for a tag and a commit.
    branch: Option<String>,
    /// The commit; `None` in an empty repository.
    commit: Option<ObjectId>,
    /// The pull request whose head it is.
    pull: Option<RemotePull>,
}

/// What comes with the head of a pull request.
#[derive(Debug)]
struct RemotePull {
    number: u64,
    /// The branch into which it is to be merged.
    into: String,
    /// That branch, or where it was when the pull request ended.
    into_commit: ObjectId,
}

impl RemoteRef {
    fn at(branch: Option<String>, commit: Option<ObjectId>) -> Self {
        Self { branch, commit, pull: None }
    }

    /// All commits that have to be there.
    fn wants(&self) -> Vec<ObjectId> {
        let others = self.pull.iter().map(|pull| pull.into_commit);
        let mut wants: Vec<ObjectId> = self.commit.into_iter().chain(others).collect();
        wants.dedup();
        wants
    }
}

/// Why it was not carried.
enum NotCarried {
    /// For people.
    Told(NotCloned),
    TooLong,
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
            _ => Self::Told(NotCloned::Forge { why: told(&error) }),
        }
    }
}

/// A forge's refusal, for people, with the page where it can be fixed.
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
    pub async fn carry(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        what: Wanted<'_>,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let within = Duration::from_millis(within_ms);
        let carried = self.carried(forge, target, what, within);
        match timeout(within, carried).await {
            Ok(Ok(event)) => Ok(event),
            Ok(Err(NotCarried::Told(why))) => Ok(Event::NotCloned { why }),
            Ok(Err(NotCarried::Failed(failure))) => Err(failure),
            Ok(Err(NotCarried::TooLong)) | Err(_) => {
                Ok(Event::NotCloned { why: NotCloned::TooLong { within_ms } })
            }
        }
    }

    async fn carried(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        Wanted { repository, at: wanted, pull, to, size_kb }: Wanted<'_>,
        within: Duration,
    ) -> Result<Event, NotCarried> {
        let at = at(repository).ok_or_else(|| unusable("its name"))?;
        let store = match (to, wanted) {
            // Two submodules may be of one repository.
            (CarriedTo::Submodule(_), Some(commit)) => {
                format!("submodule-{}-{commit}.git", repository.id)
            }
            (CarriedTo::Beside(_), _) => store_of(Some(repository.id)),
            _ => store_of(None),
        };
        let address = &*repository.address;
        let of = self.name(target.sandbox, target.generation);
        let script = Script { provider: &*self.provider, address, store, to, of };
        let look = async {
            let sandbox = self.find_running(target.sandbox, target.generation).await?;
            let there = script.run(&sandbox, &RemoteRef::default(), "look", LOOK).await?;
            Ok::<_, NotCarried>((sandbox, there))
        };
        let tip = async {
            match (to, wanted) {
                _ if pull.is_some() => pull_tip(forge, &at, pull).await,
                // A branch of that name is not meant.
                (CarriedTo::Submodule(_), Some(commit)) => {
                    let commit = commit.parse().map_err(|_| unusable("its commit"))?;
                    Ok(RemoteRef::at(None, Some(commit)))
                }
                _ => tip(forge, &at, &repository.branch, wanted).await,
            }
        };
        let ((sandbox, there), tip) = tokio::try_join!(look, tip)?;
        let made = if there.exit_code == NOTHING_THERE {
            let pieces = match tip.wants() {
                none if none.is_empty() => String::new(),
                wants => self.packs(forge, &at, &wants, size_kb, &sandbox).await?,
            };
            script.run(&sandbox, &tip, &pieces, within).await?
        } else {
            there
        };
        if made.exit_code != 0 {
            return Err(NotCarried::Told(why(&made.text)));
        }
        if let Some(pull) = pull
            && !has_pull(&made.text, pull.number)
        {
            let why = "the sandbox comes from a snapshot, which has other work in it. Leave the snapshot out.";
            return Err(NotCarried::Told(NotCloned::Forge { why: why.to_owned() }));
        }
        let branch = match pull {
            Some(pull) => pull.takes_work().to_owned(),
            None => tip.branch.unwrap_or_else(|| repository.branch.clone()),
        };
        let repository = ForgeRepository { branch, ..repository.clone() };
        let base = brought(&made.text);
        let carried = Carried { repository, default: None, folder: None, base };
        Ok(Event::Carried { carried, left_out: Box::new(left_out(&made.text)) })
    }

    /// Puts the history of the commits into the sandbox: all of it, or as much as there is room for. Returns how many
    /// files each of its packs has.
    async fn packs(
        &self,
        forge: &dyn Forge,
        at: &RepositoryAt,
        commits: &[ObjectId],
        size_kb: u64,
        sandbox: &Sandbox,
    ) -> Result<String, NotCarried> {
        let mut pieces = Pieces::new(&self.provider, sandbox);
        let wants = || commits.to_vec();
        if size_kb < SURELY_LARGE_KB {
            let whole = Fetch { wants: wants(), bytes_max: WHOLE_BYTES_MAX, ..Fetch::default() };
            if within_bounds(pieces.fetch(forge, at, &whole).await)?.is_some() {
                return Ok(pieces.counts());
            }
        }
        // The newest commit first: it is what has to be there.
        let newest = Fetch {
            wants: wants(),
            depth: Some(1),
            bytes_max: PARTS_BYTES_MAX,
            ..Fetch::default()
        };
        let Some(newest) = within_bounds(pieces.fetch(forge, at, &newest).await)? else {
            let most = PARTS_BYTES_MAX / MIB;
            let why = format!(
                "its newest files alone are larger than {most} MB, the most that is carried."
            );
            return Err(NotCarried::Told(NotCloned::Forge { why }));
        };
        let mut ends = newest.shallow;
        let before = Fetch {
            wants: wants(),
            haves: wants(),
            shallow: ends.clone(),
            depth: Some(DEPTH),
            bytes_max: PARTS_BYTES_MAX.saturating_sub(newest.bytes),
            ..Fetch::default()
        };
        if let Some(before) = within_bounds(pieces.fetch(forge, at, &before).await)? {
            ends.retain(|end| !before.unshallow.contains(end));
            ends.extend(before.shallow);
        }
        pieces.end_at(&ends).await?;
        Ok(pieces.counts())
    }

    /// Puts the newest commit of a branch beside the checkout. `None`: it has none, or the sandbox cannot take it.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn bring_named(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        branch: &str,
    ) -> Result<Option<ObjectId>, Failure> {
        let (Some(place), Ok(name)) = (at(&carried.repository), RefName::branch(branch)) else {
            return Ok(None);
        };
        let found = forge.refs(&place, &[name.as_str().to_owned()]).await;
        let refs = match found {
            Ok(refs) => refs,
            Err(error) => match error.kind {
                ForgeErrorKind::Other | ForgeErrorKind::RateLimited => return Err(error.failure),
                _ => return Ok(None),
            },
        };
        let Some(commit) = refs.refs.get(name.as_str()).map(|found| found.commit()) else {
            return Ok(None);
        };
        let is_there = self.bring_branch(forge, target, carried, (&name, commit)).await?;
        Ok(is_there.then_some(commit))
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
        let store = store(carried);
        let (Some(at), Some(shallow)) =
            (at(&carried.repository), self.ends(&sandbox, &store).await?)
        else {
            return Ok(false);
        };
        let base = carried.base.as_deref().and_then(|base| base.parse().ok());
        let what = Fetch {
            wants: vec![commit],
            haves: base.into_iter().collect(),
            shallow,
            bytes_max: WHOLE_BYTES_MAX,
            ..Fetch::default()
        };
        let mut pieces = Pieces::new(&self.provider, &sandbox);
        match pieces.fetch(forge, &at, &what).await.map_err(NotCarried::from) {
            Ok(_) => {}
            Err(NotCarried::Failed(failure)) => return Err(failure),
            Err(_) => return Ok(false),
        }
        let environment = BTreeMap::from([
            ("BOBBIN_STORE".to_owned(), store),
            ("BOBBIN_REF".to_owned(), branch.as_str().to_owned()),
            ("BOBBIN_COMMIT".to_owned(), commit.to_string()),
            ("BOBBIN_PIECES".to_owned(), pieces.counts()),
        ]);
        let ran = self.provider.exec(&sandbox, BRANCH_SCRIPT, &environment, BRANCH).await;
        Ok(ran.map_err(|error| error.failure)?.exit_code == 0)
    }

    /// Where the history in the sandbox ends; `None` if that cannot be read.
    async fn ends(&self, sandbox: &Sandbox, store: &str) -> Result<Option<Vec<ObjectId>>, Failure> {
        let lines = match self.provider.get_file(sandbox, &format!(".bobbin/{store}/shallow")).await
        {
            Ok(lines) => lines,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Some(Vec::new())),
            Err(error) => return Err(error.failure),
        };
        let lines = String::from_utf8_lossy(&lines);
        let ends: Result<Vec<ObjectId>, _> = lines.lines().map(str::parse).collect();
        Ok(ends.ok().filter(|ends| ends.len() <= ENDS_MAX))
    }
}

/// Name of the copy of a repository, in the sandbox beside the checkout.
pub(super) fn store(carried: &Carried) -> String {
    store_of(carried.folder.as_ref().map(|_| carried.repository.id))
}

/// Name of the copy of the repository with this id beside the thread's; `None`: of the thread's.
fn store_of(beside: Option<u64>) -> String {
    beside.map_or_else(|| "origin.git".to_owned(), |id| format!("beside-{id}.git"))
}

/// The checkout of a repository, by the workspace of the thread.
pub(super) fn checkout(workspace: &str, carried: &Carried) -> String {
    match &carried.folder {
        None => workspace.to_owned(),
        Some(folder) => format!("{workspace}/{folder}"),
    }
}

/// Looks up what is wanted of a repository with this default branch.
async fn tip(
    forge: &dyn Forge,
    at: &RepositoryAt,
    default: &str,
    wanted: Option<&str>,
) -> Result<RemoteRef, NotCarried> {
    let name = wanted.unwrap_or(default);
    let branch = RefName::branch(name).map_err(|_| unusable("the name of its branch"))?;
    let tag = format!("refs/tags/{name}");
    let refs = forge.refs(at, &[branch.as_str().to_owned(), tag.clone()]).await?;
    let found = |name: &str| refs.refs.get(name).map(|found| found.commit());
    let branch = (wanted.is_none() || refs.refs.contains_key(branch.as_str()))
        .then(|| (name.to_owned(), found(branch.as_str())));
    if let Some((branch, commit)) = branch {
        return Ok(RemoteRef::at(Some(branch), commit));
    }
    let commit = found(&tag).or_else(|| name.parse().ok());
    let told = NotCarried::Told(NotCloned::NoRef);
    commit.map(|commit| RemoteRef::at(None, Some(commit))).ok_or(told)
}

/// Looks up the head of a pull request, which is in its base's repository wherever its branch is.
async fn pull_tip(
    forge: &dyn Forge,
    at: &RepositoryAt,
    pull: Option<&GivenPull>,
) -> Result<RemoteRef, NotCarried> {
    let told = || NotCarried::Told(NotCloned::NoRef);
    let pull = pull.ok_or_else(told)?;
    let head = format!("refs/pull/{}/head", pull.number);
    let into = RefName::branch(&pull.into).map_err(|_| unusable("the name of its branch"))?;
    let refs = forge.refs(at, &[head.clone(), into.as_str().to_owned()]).await?;
    let found = |name: &str| refs.refs.get(name).map(|found| found.commit());
    // What has been merged is in the branch, and there would be no difference.
    let newest = found(into.as_str()).filter(|_| pull.state == PullRequestState::Open);
    let into_commit = newest.or_else(|| pull.into_commit.parse().ok()).ok_or_else(told)?;
    let commit = found(&head).ok_or_else(told)?;
    let pull = RemotePull { number: pull.number, into: pull.into.clone(), into_commit };
    Ok(RemoteRef { branch: None, commit: Some(commit), pull: Some(pull) })
}

/// Whether the script says that the head of this pull request is what was brought.
fn has_pull(text: &str, number: u64) -> bool {
    let said = text.lines().find_map(|line| line.strip_prefix("pull\t"));
    said.is_some_and(|said| said == number.to_string())
}

/// What was fetched; `None` if it is larger than it may be.
fn within_bounds<T>(fetched: Result<T, ForgeError>) -> Result<Option<T>, NotCarried> {
    match fetched {
        Ok(fetched) => Ok(Some(fetched)),
        Err(error) => match error.kind {
            ForgeErrorKind::TooLarge { .. } => Ok(None),
            // The repository is there: its refs were read.
            ForgeErrorKind::NotFound => Err(NotCarried::Told(NotCloned::NoRef)),
            _ => Err(error.into()),
        },
    }
}

/// The commit that the script says it has brought.
fn brought(text: &str) -> Option<String> {
    let said = text.lines().find_map(|line| line.strip_prefix("commit\t"))?;
    said.parse::<ObjectId>().ok().map(|commit| commit.to_string())
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
    address: &'a str,
    store: String,
    to: &'a CarriedTo,
    /// Name of the sandbox.
    of: String,
}

impl Script<'_> {
    async fn run(
        &self,
        sandbox: &Sandbox,
        RemoteRef { branch, commit, pull }: &RemoteRef,
        pieces: &str,
        within: Duration,
    ) -> Result<ScriptOutput, NotCarried> {
        let commit = commit.map(|commit| commit.to_string()).unwrap_or_default();
        let nothing = String::new();
        let (submodule, beside) = match self.to {
            CarriedTo::Project => (&nothing, &nothing),
            CarriedTo::Submodule(folder) => (folder, &nothing),
            CarriedTo::Beside(folder) => (&nothing, folder),
        };
        let of_pull = |part: fn(&RemotePull) -> String| pull.as_ref().map(part).unwrap_or_default();
        let environment = BTreeMap::from([
            ("BOBBIN_ORIGIN".to_owned(), self.address.to_owned()),
            ("BOBBIN_STORE".to_owned(), self.store.clone()),
            ("BOBBIN_SUBMODULE".to_owned(), submodule.clone()),
            ("BOBBIN_BESIDE".to_owned(), beside.clone()),
            ("BOBBIN_BRANCH".to_owned(), branch.clone().unwrap_or_default()),
            ("BOBBIN_COMMIT".to_owned(), commit),
            ("BOBBIN_PULL".to_owned(), of_pull(|pull| pull.number.to_string())),
            ("BOBBIN_INTO".to_owned(), of_pull(|pull| pull.into.clone())),
            ("BOBBIN_INTO_COMMIT".to_owned(), of_pull(|pull| pull.into_commit.to_string())),
            ("BOBBIN_PIECES".to_owned(), pieces.to_owned()),
            (OF.to_owned(), self.of.clone()),
        ]);
        let ran = self.provider.exec(sandbox, CARRY_SCRIPT, &environment, within).await;
        ran.map_err(|error| match error.kind {
            ErrorKind::CommandTimeout => NotCarried::TooLong,
            _ => NotCarried::Failed(error.failure),
        })
    }
}
