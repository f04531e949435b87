//! Reads what a push would bring: a pack that nobody vouches for, compared with the commit at the forge.
//!
//! Promised: the newest commit and every other of the pack follow the commit that was brought, and no other of the
//! forge's but commits of the branch into which the work is to go; every changed file is listed, or the push is
//! refused; a workflow that changes is refused; calls, memory and time are bounded. What the commit that was brought
//! has and that branch does not (somebody's pull request) is published with the work, and so listed and refused as the
//! work's; a file that the branch has by now as the work has it is no change. Deliberately absent: what commits between
//! the first and the last had in them, which the forge shows beside the pull request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bobbin_core::records::publication::{FILES_MAX, OutgoingChange, OutgoingFile, subject};
use bobbin_core::text::{thousands, visible};
use futures::future::try_join_all;

use crate::error::{ForgeError, ForgeErrorKind};
use crate::forge::{Forge, RepositoryAt};
use crate::git::{EntryMode, ObjectId, ObjectKind, Pack, PackBounds, TreeEntry};

/// Most commits of one push.
const COMMITS_MAX: usize = 1_000;
/// Most folders that are read at the forge.
const CALLS_MAX: usize = 300;
/// How many of them are read at a time.
const CALLS_AT_ONCE: usize = 8;
/// Deepest folder.
const DEPTH_MAX: usize = 64;
/// Longest path, in bytes (Linux: `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4_096;
/// Most changed folders: in a pack of a few bytes, folders can hold each other a thousandfold.
const FOLDERS_MAX: usize = 5_000;
/// Most entries of all changed folders together.
const ENTRIES_MAX: usize = 500_000;
/// Where GitHub looks for workflows.
const WORKFLOWS: [&[u8]; 2] = [b".github", b"workflows"];
/// Author of the commit that Bobbin makes of uncommitted work.
const OWN_EMAIL: &str = "bobbin@localhost";

/// Commits of the branch into which the work goes, where it was merged into the work more than once.
const MERGES_MAX: usize = 8;

/// What work is compared with.
#[derive(Debug, Clone, Copy)]
pub struct Compared {
    /// The commit that was brought.
    pub base: ObjectId,
    /// The newest commit of the branch into which the work is to go that the work has: `base`, if none was merged.
    pub from: ObjectId,
    /// Where that branch is; `None`: `base` is on it, and nothing of it was merged into the work.
    pub into: Option<ObjectId>,
    /// The commit of the forge's since which changes are listed apart.
    pub since: Option<ObjectId>,
}

impl Compared {
    /// With the commit that was brought alone.
    #[must_use]
    pub const fn with(base: ObjectId) -> Self {
        Self { base, from: base, into: None, since: None }
    }
}

/// The work of an agent, read.
#[derive(Clone, PartialEq, Eq)]
pub struct OutgoingWork {
    /// Subject of the first commit; empty if Bobbin made it of uncommitted work.
    pub subject: String,
    /// The changed files, by path.
    pub files: Vec<OutgoingFile>,
    /// Those of them that have changed since the requested commit.
    pub since: Vec<OutgoingFile>,
    /// Number of workflows that the repository has.
    pub workflows: u32,
    /// The branch into which it is to go does not have all commits that were brought.
    pub has_others: bool,
    /// Its commits.
    pub commits: BTreeSet<ObjectId>,
    /// The pack that was read.
    pub pack: Vec<u8>,
}

impl fmt::Debug for OutgoingWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, files, workflows, commits, pack, .. } = self;
        let (commits, bytes) = (commits.len(), pack.len());
        write!(
            f,
            "Work({subject:?}, {files:?}, {workflows} workflows, {commits} commits, {bytes} bytes)"
        )
    }
}

/// Why work cannot be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotOutgoing {
    /// What is wrong with it, and what to do, for people.
    Refused(String),
    /// The forge could not be asked.
    Failed(ForgeError),
}

fn refused<T>(why: impl Into<String>) -> Result<T, NotOutgoing> {
    Err(NotOutgoing::Refused(why.into()))
}

/// Why work is refused that follows another commit than the one that was brought.
#[must_use]
pub fn elsewhere(base: &ObjectId) -> String {
    let short = &base.to_string()[..7];
    format!(
        "The work does not follow {short}, the commit that was brought. Ask the agent to rebase it onto that commit."
    )
}

/// What a push of this pack to the newest commit would change. `None`: the files are those that it is compared with.
///
/// # Errors
/// [`NotOutgoing`].
pub async fn read(
    forge: &dyn Forge,
    at: &RepositoryAt,
    compared: &Compared,
    head: &ObjectId,
    pack: Vec<u8>,
) -> Result<Option<OutgoingWork>, NotOutgoing> {
    let pack = match Pack::read(pack, &PackBounds::PUSH) {
        Ok(pack) => pack,
        Err(error) => return refused(format!("The work cannot be read: {error}.")),
    };
    let (tree, subject, merged) = follow(&pack, compared, head)?;
    let Compared { base, from, into, since } = compared;
    // What the branch has of the commit that was brought.
    let mut common = *base;
    if base == from {
        if let Some(into) = into.as_ref().filter(|into| *into != base) {
            common = in_common(forge, at, base, into).await?;
        }
    } else {
        // What is compared with is a claim of the sandbox: it has to lie between the commit that was brought and the
        // branch, and everything of the branch that the work has has to come before it.
        let Some(into) = into else { return refused(elsewhere(base)) };
        comes_before(forge, at, (base, from), base).await?;
        comes_before(forge, at, (from, into), base).await?;
        for commit in &merged {
            comes_before(forge, at, (commit, from), base).await?;
        }
    }
    let trees = pack.objects().filter(|(_, kind)| *kind == ObjectKind::Tree);
    let inside = trees.map(|(id, _)| id).collect();
    let mut walk = Walk {
        forge,
        at,
        pack: &pack,
        inside,
        takes_workflows: false,
        only: None,
        calls: 0,
        entries: 0,
        files: Vec::new(),
    };
    let has_others = common != *base;
    // What was pushed may be undone: the files that were brought are then a change of the branch.
    if has_others
        && walk.is_same(*base, tree).await?
        && (since.is_none() || walk.is_same(since.unwrap_or(*base), tree).await?)
    {
        return Ok(None);
    }
    let was = match into.filter(|_| has_others) {
        Some(into) => walk.go_beside(common, into, tree).await?,
        None => walk.go(*from, tree).await?,
    };
    let workflows = walk.workflows(was).await?;
    let mut files = walk.sorted();
    let mut changed = Vec::new();
    if let Some(since) = since {
        walk.takes_workflows = true;
        changed = walk.listed_since(*since, tree).await?;
        // Files of the pushed branch that are again what they were before it: somebody's work may be undone.
        if changed.iter().any(|one| !files.iter().any(|file| file.path == one.path)) {
            let pushed = walk.listed_since(common, *since).await?;
            let is_undone = |one: &&OutgoingFile| {
                let is = |file: &OutgoingFile| file.path == one.path;
                !files.iter().any(is) && pushed.iter().any(is)
            };
            let undone: Vec<OutgoingFile> = changed.iter().filter(is_undone).cloned().collect();
            files.extend(undone);
            files.sort_by(|one, other| one.path.cmp(&other.path));
        }
        // What others changed in the branch that was merged is not the work's.
        changed.retain(|one| files.iter().any(|file| file.path == one.path));
    }
    if files.is_empty() {
        return Ok(None);
    }
    let commits = pack.objects().filter(|(_, kind)| *kind == ObjectKind::Commit);
    let commits = commits.map(|(id, _)| id).collect();
    Ok(Some(OutgoingWork {
        subject,
        files,
        since: changed,
        workflows,
        has_others,
        commits,
        pack: pack.into_bytes(),
    }))
}

/// Checks with the forge that the second commit has the first in its history.
async fn comes_before(
    forge: &dyn Forge,
    at: &RepositoryAt,
    (first, second): (&ObjectId, &ObjectId),
    base: &ObjectId,
) -> Result<(), NotOutgoing> {
    match forge.merge_base(at, first, second).await {
        Ok(found) if found == *first => Ok(()),
        Ok(_) => refused(elsewhere(base)),
        Err(error) if error.kind == ForgeErrorKind::NotFound => refused(elsewhere(base)),
        Err(error) => Err(NotOutgoing::Failed(error)),
    }
}

/// The newest commit of the branch that the commit that was brought has in its history.
async fn in_common(
    forge: &dyn Forge,
    at: &RepositoryAt,
    base: &ObjectId,
    into: &ObjectId,
) -> Result<ObjectId, NotOutgoing> {
    match forge.merge_base(at, base, into).await {
        Ok(found) => Ok(found),
        Err(error) if error.kind == ForgeErrorKind::NotFound => {
            let short = &base.to_string()[..7];
            refused(format!(
                "The branch into which the work is to go has no commit in common with {short}, the commit that was brought."
            ))
        }
        Err(error) => Err(NotOutgoing::Failed(error)),
    }
}

/// Checks that the pack's commits lead to `head` from the commits that the work may begin at, and from nowhere else.
/// Returns the root folder of the newest, the subject of the first, and other commits at which the pack begins.
fn follow(
    pack: &Pack,
    compared: &Compared,
    head: &ObjectId,
) -> Result<(ObjectId, String, Vec<ObjectId>), NotOutgoing> {
    let Compared { base, from, .. } = compared;
    let has_merged = base != from;
    let commits = pack.objects().filter(|(_, kind)| *kind == ObjectKind::Commit).count();
    if commits > COMMITS_MAX {
        return refused(
            "The work has more than 1,000 commits. Ask the agent to squash them into fewer.",
        );
    }
    let Some(newest) = pack.commit(head) else {
        return refused("The sandbox did not send the newest commit. Try again.");
    };
    let mut found = 1;
    let mut seen = BTreeSet::from([*head]);
    let mut open = newest.parents.clone();
    let mut merged = Vec::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match pack.commit(&id) {
            Some(commit) => {
                found += 1;
                open.extend(commit.parents);
            }
            None if id == *base || id == *from => {}
            None if has_merged && merged.len() < MERGES_MAX => merged.push(id),
            None => return refused(elsewhere(base)),
        }
    }
    if !seen.contains(from) {
        return refused(elsewhere(base));
    }
    if found < commits {
        return refused(
            "What came out of the sandbox has commits that are not part of the work. Try again.",
        );
    }
    let tree = newest.tree;
    let mut first = newest;
    while let Some(parent) =
        first.parents.first().filter(|parent| *parent != base && *parent != from)
    {
        let Some(commit) = pack.commit(parent) else { break };
        first = commit;
    }
    let is_own = first.author.email == OWN_EMAIL;
    Ok((tree, if is_own { String::new() } else { subject(&first.message) }, merged))
}

fn too_many(what: &str, max: usize) -> String {
    let max = thousands(max as u64);
    format!("More than {max} {what} change. Ask the agent to publish the work in smaller parts.")
}

/// A path for people: nothing in it hides.
fn shown(path: &[u8]) -> String {
    visible(&String::from_utf8_lossy(path)).replace(['\n', '\t'], " ")
}

/// A folder that differs, or is on one side alone.
struct Folder {
    path: Vec<u8>,
    depth: usize,
    base: Option<ObjectId>,
    head: Option<ObjectId>,
}

/// A comparison of two trees; the forge has one of them.
struct Walk<'a> {
    forge: &'a dyn Forge,
    at: &'a RepositoryAt,
    pack: &'a Pack,
    /// The folders that the pack has.
    inside: BTreeSet<ObjectId>,
    /// Workflows may change: others have, in what was merged.
    takes_workflows: bool,
    /// The files and folders that are looked at; `None`: all.
    only: Option<BTreeSet<Vec<u8>>>,
    calls: usize,
    entries: usize,
    files: Vec<(Vec<u8>, OutgoingChange)>,
}

impl Walk<'_> {
    /// Compares two roots; the first may be named by a commit of the forge's. Returns the first one's entries.
    async fn go(&mut self, base: ObjectId, head: ObjectId) -> Result<Vec<TreeEntry>, NotOutgoing> {
        let top = Folder { path: Vec::new(), depth: 0, base: Some(base), head: Some(head) };
        let (was, is) = self.listed(&top).await?;
        let mut level = self.compare(&top, &was, &is)?;
        let mut folders = 0;
        while !level.is_empty() {
            folders += level.len();
            if folders > FOLDERS_MAX {
                return refused(too_many("folders", FOLDERS_MAX));
            }
            level = self.go_down(&level).await?;
        }
        Ok(was)
    }

    /// Compares two roots, and leaves out what the branch that moved on from the first has by now as the second has it:
    /// commits that were brought may have come into it as others. Returns the first one's entries.
    async fn go_beside(
        &mut self,
        base: ObjectId,
        into: ObjectId,
        head: ObjectId,
    ) -> Result<Vec<TreeEntry>, NotOutgoing> {
        self.takes_workflows = true;
        let was = self.go(base, head).await?;
        let mut found = std::mem::take(&mut self.files);
        let paths = found.iter().flat_map(|(path, _)| {
            let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            folders.map(move |(end, _)| path[..end].to_vec()).chain([path.clone()])
        });
        self.only = Some(paths.collect());
        self.go(into, head).await?;
        (self.only, self.takes_workflows) = (None, false);
        let differ: BTreeSet<Vec<u8>> =
            std::mem::take(&mut self.files).into_iter().map(|(path, _)| path).collect();
        found.retain(|(path, _)| differ.contains(path));
        if let Some((path, _)) = found.iter().find(|(path, _)| is_workflow(path)) {
            return refused(changed_workflow(path));
        }
        self.files = found;
        Ok(was)
    }

    /// Whether two roots are equal; the first may be named by a commit of the forge's.
    async fn is_same(&self, base: ObjectId, head: ObjectId) -> Result<bool, NotOutgoing> {
        let top = Folder { path: Vec::new(), depth: 0, base: Some(base), head: Some(head) };
        let (was, is) = self.listed(&top).await?;
        Ok(was == is)
    }

    /// The files in which two roots of the forge's or the pack's differ; empty if that is too much to be listed.
    async fn listed_since(
        &mut self,
        base: ObjectId,
        head: ObjectId,
    ) -> Result<Vec<OutgoingFile>, NotOutgoing> {
        match self.go(base, head).await {
            Ok(_) => Ok(self.sorted()),
            Err(NotOutgoing::Refused(_)) => {
                self.files.clear();
                Ok(Vec::new())
            }
            Err(failed) => Err(failed),
        }
    }

    /// The files that were found, by path.
    fn sorted(&mut self) -> Vec<OutgoingFile> {
        let mut files = std::mem::take(&mut self.files);
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let file =
            |(path, how): (Vec<u8>, OutgoingChange)| OutgoingFile { path: shown(&path), how };
        files.into_iter().map(file).collect()
    }

    /// Compares these folders, and returns those in them that differ.
    async fn go_down(&mut self, level: &[Folder]) -> Result<Vec<Folder>, NotOutgoing> {
        let mut next = Vec::new();
        for some in level.chunks(CALLS_AT_ONCE) {
            let sides = some.iter().flat_map(|folder| [folder.base, folder.head]).flatten();
            self.calls += sides.filter(|id| !self.inside.contains(id)).count();
            if self.calls > CALLS_MAX {
                return refused(too_many("folders of the repository", CALLS_MAX));
            }
            let listed = try_join_all(some.iter().map(|folder| self.listed(folder))).await?;
            for (folder, (was, is)) in some.iter().zip(listed) {
                next.extend(self.compare(folder, &was, &is)?);
            }
            if next.len() > FOLDERS_MAX {
                return refused(too_many("folders", FOLDERS_MAX));
            }
        }
        Ok(next)
    }

    async fn listed(
        &self,
        folder: &Folder,
    ) -> Result<(Vec<TreeEntry>, Vec<TreeEntry>), NotOutgoing> {
        let was = match &folder.base {
            Some(id) => self.tree(id).await.map_err(NotOutgoing::Failed)?,
            None => Vec::new(),
        };
        let is = match &folder.head {
            Some(id) => self.tree(id).await,
            None => Ok(Vec::new()),
        };
        match is {
            Ok(is) => Ok((was, is)),
            Err(error) if error.kind == ForgeErrorKind::NotFound => {
                refused("A folder is missing from what came out of the sandbox. Try again.")
            }
            Err(error) => Err(NotOutgoing::Failed(error)),
        }
    }

    async fn tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>, ForgeError> {
        match self.pack.tree(id) {
            Some(entries) => Ok(entries),
            None => self.forge.tree(self.at, id).await,
        }
    }

    /// Notes the files of a folder that change, and returns the folders in it that do.
    fn compare(
        &mut self,
        folder: &Folder,
        was: &[TreeEntry],
        is: &[TreeEntry],
    ) -> Result<Vec<Folder>, NotOutgoing> {
        self.entries += was.len() + is.len();
        if self.entries > ENTRIES_MAX {
            return refused("The changed folders have too many files to be compared.");
        }
        let mut names: BTreeMap<&[u8], [Option<&TreeEntry>; 2]> = BTreeMap::new();
        for (side, entries) in [was, is].into_iter().enumerate() {
            for entry in entries {
                names.entry(&entry.name).or_default()[side] = Some(entry);
            }
        }
        let mut folders = Vec::new();
        for (name, sides) in names {
            let [was, is] = sides;
            let content = |side: Option<&TreeEntry>| side.map(|entry| (entry.mode, entry.id));
            if content(was) == content(is) {
                continue;
            }
            let path = joined(&folder.path, name);
            if self.only.as_ref().is_some_and(|only| !only.contains(&path)) {
                continue;
            }
            let depth = folder.depth + 1;
            if path.len() > PATH_BYTES_MAX || depth > DEPTH_MAX {
                return refused(
                    "A folder lies more than 64 levels deep, or has too long a path. Ask the agent to remove it.",
                );
            }
            let inner = |side: Option<&TreeEntry>| {
                side.filter(|entry| entry.mode == EntryMode::Folder).map(|entry| entry.id)
            };
            let (base, head) = (inner(was), inner(is));
            let was_file = was.is_some() && base.is_none();
            let is_file = is.is_some() && head.is_none();
            let how = match (was_file, is_file) {
                (false, true) => Some(OutgoingChange::Added),
                (true, false) => Some(OutgoingChange::Deleted),
                (true, true) => Some(OutgoingChange::Modified),
                (false, false) => None,
            };
            if let Some(how) = how {
                self.note(path.clone(), how)?;
            }
            if base.is_some() || head.is_some() {
                folders.push(Folder { path, depth, base, head });
            }
        }
        Ok(folders)
    }

    fn note(&mut self, path: Vec<u8>, how: OutgoingChange) -> Result<(), NotOutgoing> {
        if is_workflow(&path) && !self.takes_workflows {
            return refused(changed_workflow(&path));
        }
        self.files.push((path, how));
        if self.files.len() > FILES_MAX { refused(too_many("files", FILES_MAX)) } else { Ok(()) }
    }

    /// Counts the workflows below this root folder of the forge's.
    async fn workflows(&self, mut entries: Vec<TreeEntry>) -> Result<u32, NotOutgoing> {
        for name in WORKFLOWS {
            let is_it = |entry: &&TreeEntry| entry.mode == EntryMode::Folder && entry.name == name;
            let Some(folder) = entries.iter().find(is_it) else {
                return Ok(0);
            };
            entries = self.tree(&folder.id).await.map_err(NotOutgoing::Failed)?;
        }
        let is_workflow = |entry: &&TreeEntry| {
            entry.mode != EntryMode::Folder
                && (entry.name.ends_with(b".yml") || entry.name.ends_with(b".yaml"))
        };
        Ok(u32::try_from(entries.iter().filter(is_workflow).count()).unwrap_or(u32::MAX))
    }
}

fn changed_workflow(path: &[u8]) -> String {
    format!(
        "{} is a workflow, which Bobbin does not change. Ask the agent to leave .github/workflows as it was.",
        shown(path)
    )
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Whether the path is a workflow's, or a file's in place of the workflows' folder.
fn is_workflow(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    let [github, workflows] = WORKFLOWS;
    parts.next() == Some(github) && parts.next().is_none_or(|part| part == workflows)
}
