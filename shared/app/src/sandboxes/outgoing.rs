//! Reads an agent's work out of its sandbox as git objects, and pushes them.
//!
//! Promised: the forge's credential never enters the sandbox; nothing that the sandbox says is believed: what is shown
//! and pushed was read from the objects themselves, whose ids are computed here; only the commit that a person was
//! shown is pushed; size and time are bounded. Deliberately absent: what is pushed where, which the core decides.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::publication::{Outgoing, PushEnd};
use bobbin_core::text::{one_line, shorten};
use bobbin_forge::git::{ObjectId, PackBounds, Push, Pushed, RefName};
use bobbin_forge::outgoing::{self, Compared, NotOutgoing, OutgoingWork};
use bobbin_forge::{Forge, ForgeError, ForgeErrorKind, RepositoryAt};
use bobbin_sandbox::{ErrorKind, Sandbox};

use super::carry::{at, checkout, told};
use super::workspace::WORKSPACE;
use super::{Sandboxes, WorkTarget};

const SCRIPT: &str = include_str!("outgoing.sh");
/// Removes the files that the script has made.
const END_SCRIPT: &str = r#"rm -rf "$BOBBIN_OUT""#;
/// The variable that passes the folder of those files, below the sandbox's working directory.
const OUT: &str = "BOBBIN_OUT";
/// Longest time for the script.
const WITHIN: Duration = Duration::from_secs(60);
/// Longest time for the removal.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Most bytes of the work.
const BYTES_MAX: usize = PackBounds::PUSH.bytes;
/// Bytes of each file that carries it: below every provider's limit for a file.
const PIECE_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a forge's refusal that are passed on.
const WHY_CHARS_MAX: usize = 1_500;
/// Characters (UTF-16 units) of git's output that are passed on.
const SEEN_UNITS_MAX: usize = 200;

/// Exit codes of the script.
const EXIT_NO_GIT: i64 = 3;
const EXIT_NO_CHECKOUT: i64 = 4;
const EXIT_NOTHING: i64 = 5;
const EXIT_CHANGED: i64 = 6;
const EXIT_TOO_LARGE: i64 = 7;
const EXIT_ELSEWHERE: i64 = 8;
const EXIT_HOLDS_BESIDE: i64 = 9;

const MOVING: &str = "The files in the sandbox changed while they were read. Try again.";
const UNCLEAR: &str = "What came out of the sandbox cannot be read. Try again.";

/// Why no work was read.
#[derive(Debug)]
enum NotRead {
    /// There is none.
    Unchanged,
    /// It is other work than was shown.
    Changed,
    /// For people.
    Refused(String),
    Failed(Failure),
}

impl From<Failure> for NotRead {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ForgeError> for NotRead {
    fn from(error: ForgeError) -> Self {
        match error.kind {
            ForgeErrorKind::Other | ForgeErrorKind::RateLimited => Self::Failed(error.failure),
            _ => Self::Refused(told(&error)),
        }
    }
}

impl From<NotOutgoing> for NotRead {
    fn from(not: NotOutgoing) -> Self {
        match not {
            NotOutgoing::Refused(why) => Self::Refused(why),
            NotOutgoing::Failed(error) => error.into(),
        }
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, NotRead> {
    Err(NotRead::Refused(why.into()))
}

/// A branch that is to move.
#[derive(Debug, Clone, Copy)]
pub struct Moving<'a> {
    /// Its short name.
    pub branch: &'a str,
    /// Where it has to be; `None`: it must not exist.
    pub old: Option<&'a str>,
    /// Where it has to go.
    pub new: &'a str,
    /// A commit that the new one has to follow.
    pub follows: Option<&'a str>,
}

/// Which commit is wanted.
#[derive(Debug, Clone, Copy)]
enum WorkWanted {
    /// The newest; made of uncommitted work, it has this time.
    Newest { at_ms: Ms },
    /// The one that a person was shown.
    Shown(ObjectId),
}

impl Sandboxes {
    /// Reads what the workspace holds beyond the commit that was brought, and which pushed changes that undoes.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn read_outgoing(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        (at_ms, pushed): (Ms, Option<&str>),
    ) -> Result<Event, Failure> {
        let wanted = WorkWanted::Newest { at_ms };
        let pushed = pushed.and_then(|commit| commit.parse().ok());
        let read = self.read_work(forge, target, carried, wanted, pushed).await;
        let outgoing = match read {
            Ok((commit, work)) => {
                let OutgoingWork { subject, files, since, workflows, has_others, .. } = work;
                let commit = commit.to_string();
                Outgoing::Ready { commit, subject, files, since, workflows, has_others }
            }
            Err(NotRead::Unchanged) => Outgoing::Unchanged,
            Err(NotRead::Changed) => Outgoing::Refused { why: MOVING.to_owned() },
            Err(NotRead::Refused(why)) => Outgoing::Refused { why },
            Err(NotRead::Failed(failure)) => return Err(failure),
        };
        Ok(Event::OutgoingRead(outgoing))
    }

    /// Moves the branch from one commit to the other, unless it is there.
    ///
    /// # Errors
    /// The class of the failure. Whether the branch was moved is unknown then: a repeat finds out.
    pub async fn push_outgoing(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        moving: Moving<'_>,
    ) -> Result<Event, Failure> {
        let ended = match self.push_work(forge, target, carried, moving).await {
            Ok(ended) => ended,
            Err(NotRead::Unchanged | NotRead::Changed) => PushEnd::Changed,
            Err(NotRead::Refused(why)) => PushEnd::Refused { why },
            Err(NotRead::Failed(failure)) => return Err(failure),
        };
        Ok(Event::Pushed(ended))
    }

    async fn push_work(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        Moving { branch, old, new, follows }: Moving<'_>,
    ) -> Result<PushEnd, NotRead> {
        let name = RefName::branch(branch)
            .map_err(|_| NotRead::Refused(format!("No branch can be named {branch:?}.")))?;
        let old = old.map(commit).transpose()?;
        let new = commit(new)?;
        let place = place(&carried.repository)?;
        let refs = forge.refs(&place, &[name.as_str().to_owned()]).await?;
        let there = refs.refs.get(name.as_str()).map(|found| found.id);
        if there == Some(new) {
            return Ok(PushEnd::Done { changed: Vec::new() });
        }
        if there != old {
            let Some(theirs) = there else {
                return Ok(PushEnd::Moved { at: None });
            };
            let brought = self.bring_branch(forge, target, carried, (&name, theirs)).await?;
            let at = theirs.to_string();
            return Ok(if brought {
                PushEnd::Theirs { at }
            } else {
                PushEnd::Moved { at: Some(at) }
            });
        }
        let wanted = WorkWanted::Shown(new);
        let (_, work) = self.read_work(forge, target, carried, wanted, old).await?;
        if let Some(theirs) = follows
            && !work.commits.contains(&commit(theirs)?)
        {
            // A sandbox that is new since has only what it was given.
            if let Some(there) = there {
                self.bring_branch(forge, target, carried, (&name, there)).await?;
            }
            return refused(format!(
                "The work does not have {}, which is on the branch. Ask the agent to fetch and merge `origin/{branch}`, then press again.",
                theirs.get(..12).unwrap_or(theirs)
            ));
        }
        let push = Push { name, old, new, pack: work.pack };
        Ok(match forge.push(&place, push).await? {
            Pushed::Done => PushEnd::Done { changed: work.since },
            Pushed::Moved { at } => moved(at),
            Pushed::Refused { why } => PushEnd::Refused { why: plain(&why) },
        })
    }

    async fn read_work(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        wanted: WorkWanted,
        since: Option<ObjectId>,
    ) -> Result<(ObjectId, OutgoingWork), NotRead> {
        let place = place(&carried.repository)?;
        let Some(base) = &carried.base else {
            return refused("The repository had no commits when it was fetched.");
        };
        let base = commit(base)?;
        let sandbox = self.find_running(target.sandbox, target.generation).await?;
        let out = format!(".bobbin/outgoing/{}", target.thread.short_hash());
        let checkout = checkout(target.workspace.path(), carried);
        let environment =
            environment((&checkout, &out), (&base, &carried.repository.branch), wanted);
        let ran = self.provider.exec(&sandbox, SCRIPT, &environment, WITHIN).await;
        let ran = ran.map_err(|error| match error.kind {
            ErrorKind::CommandTimeout => NotRead::Refused(
                "Collecting the work took longer than a minute. Is there a large folder that git should ignore?"
                    .to_owned(),
            ),
            _ => NotRead::Failed(error.failure),
        })?;
        let (head, bytes, from) = collected(ran.exit_code, &ran.text, &base)?;
        if let WorkWanted::Shown(commit) = wanted
            && commit != head
        {
            return Err(NotRead::Changed);
        }
        let pack = self.pack(&sandbox, &out, bytes).await?;
        // They are replaced the next time, if this fails.
        let folder = BTreeMap::from([(OUT.to_owned(), out)]);
        let _ = self.provider.exec(&sandbox, END_SCRIPT, &folder, END_WITHIN).await;
        let into = newest_of(forge, &place, &carried.repository.branch).await?;
        let compared = Compared { base, from, into: Some(into), since };
        let work = outgoing::read(forge, &place, &compared, &head, pack).await?;
        Ok((head, work.ok_or(NotRead::Unchanged)?))
    }

    /// The files of the script, one after the other.
    async fn pack(&self, sandbox: &Sandbox, out: &str, bytes: usize) -> Result<Vec<u8>, NotRead> {
        let mut pack = Vec::with_capacity(bytes);
        for piece in 0..bytes.div_ceil(PIECE_BYTES) {
            let read = self.provider.get_file(sandbox, &format!("{out}/{piece}")).await;
            let read = read.map_err(|error| match error.kind {
                ErrorKind::NotFound => NotRead::Refused(UNCLEAR.to_owned()),
                _ => NotRead::Failed(error.failure),
            })?;
            if pack.len() + read.len() > bytes {
                return refused(UNCLEAR);
            }
            pack.extend_from_slice(&read);
        }
        Ok(pack)
    }
}

/// Where the branch is into which the work is to go; if it is gone, where the default branch is.
async fn newest_of(
    forge: &dyn Forge,
    place: &RepositoryAt,
    branch: &str,
) -> Result<ObjectId, NotRead> {
    let gone = || {
        NotRead::Refused(format!("The branch {branch:?}, into which the work is to go, is gone."))
    };
    let name = RefName::branch(branch).map_err(|_| gone())?;
    let refs = forge.refs(place, &[name.as_str().to_owned()]).await?;
    let found = refs.refs.get(name.as_str()).or_else(|| refs.refs.get("HEAD"));
    found.map(|found| found.commit()).ok_or_else(gone)
}

fn place(repository: &ForgeRepository) -> Result<RepositoryAt, NotRead> {
    let unusable = || NotRead::Refused("The repository's name cannot be used.".to_owned());
    at(repository).ok_or_else(unusable)
}

fn commit(id: &str) -> Result<ObjectId, NotRead> {
    id.parse().map_err(|error| NotRead::Refused(format!("A commit is unreadable: {error}.")))
}

fn moved(at: Option<ObjectId>) -> PushEnd {
    PushEnd::Moved { at: at.map(|at| at.to_string()) }
}

/// A forge's words, for people.
fn plain(why: &str) -> String {
    let is_plain = |c: &char| *c == '\n' || !c.is_control();
    redact(why).chars().filter(is_plain).take(WHY_CHARS_MAX).collect()
}

fn environment(
    (workspace, out): (&str, &str),
    (base, into): (&ObjectId, &str),
    wanted: WorkWanted,
) -> BTreeMap<String, String> {
    let (at, commit) = match wanted {
        WorkWanted::Newest { at_ms } => ((at_ms / 1_000).to_string(), String::new()),
        WorkWanted::Shown(commit) => (String::new(), commit.to_string()),
    };
    BTreeMap::from([
        (WORKSPACE.to_owned(), workspace.to_owned()),
        (OUT.to_owned(), out.to_owned()),
        ("BOBBIN_BASE".to_owned(), base.to_string()),
        ("BOBBIN_INTO".to_owned(), into.to_owned()),
        ("BOBBIN_AT".to_owned(), at),
        ("BOBBIN_COMMIT".to_owned(), commit),
        ("BOBBIN_BYTES".to_owned(), BYTES_MAX.to_string()),
        ("BOBBIN_PIECE".to_owned(), PIECE_BYTES.to_string()),
    ])
}

/// The commit and the number of bytes that the script claims to have put into files, and what it left out with all
/// before it.
fn collected(
    exit: i64,
    text: &str,
    base: &ObjectId,
) -> Result<(ObjectId, usize, ObjectId), NotRead> {
    match exit {
        0 => {}
        EXIT_NO_GIT => return refused("Git is not installed in the sandbox's image."),
        EXIT_NO_CHECKOUT => return refused("The repository's folder is gone."),
        EXIT_NOTHING => return Err(NotRead::Unchanged),
        EXIT_CHANGED => return Err(NotRead::Changed),
        EXIT_TOO_LARGE => {
            let most = BYTES_MAX / (1024 * 1024);
            return refused(format!(
                "The work is larger than {most} MB, the most that is pushed. Ask the agent to leave large files out of it."
            ));
        }
        EXIT_ELSEWHERE => return refused(outgoing::elsewhere(base)),
        EXIT_HOLDS_BESIDE => {
            return refused(
                "A repository beside this one is in its commits, as a submodule. Ask the agent to take `.bobbin/repositories` out of them.",
            );
        }
        _ => {
            let lines = text.lines().rev();
            let last = lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing");
            let seen = shorten(&redact(&one_line(last)), SEEN_UNITS_MAX);
            return refused(format!("The work could not be collected. Git said: {seen}"));
        }
    }
    let claim = text.trim_end().lines().last().and_then(|line| {
        let mut words = line.strip_prefix("outgoing ")?.split(' ');
        let claim = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((claim.0, claim.1, words.next()?.parse().ok()?))
    });
    match claim {
        Some(claim) if claim.1 <= BYTES_MAX => Ok(claim),
        _ => refused(UNCLEAR),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::process::{Command, Stdio};

    use bobbin_forge::git::{Commit, Pack};

    use super::*;

    const AT_MS: Ms = 1_700_000_000_000;
    const OUT_FOLDER: &str = ".bobbin/outgoing/a";

    /// A sandbox with a checkout of one commit.
    struct Place {
        folder: tempfile::TempDir,
        base: ObjectId,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let none = ObjectId::of(bobbin_forge::git::ObjectKind::Blob, b"");
            let mut place = Self { folder, base: none };
            place.sh("git init -q project && cd project && printf 'one\\n' >a.txt && printf '*.log\\n' >.gitignore");
            place.sh("cd project && seq 2000 >long.txt && git add . && git commit -qm Start");
            place.base = place.at("HEAD");
            place
        }

        fn root(&self) -> &Path {
            self.folder.path()
        }

        fn sh(&self, script: &str) -> String {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(self.root()).stdin(Stdio::null());
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), "Ada");
                command.env(format!("GIT_{role}_EMAIL"), "ada@example.org");
            }
            let ran = command.output().unwrap();
            assert!(ran.status.success(), "{script}: {ran:?}");
            String::from_utf8(ran.stdout).unwrap()
        }

        fn at(&self, name: &str) -> ObjectId {
            self.sh(&format!("git -C project rev-parse '{name}'")).trim().parse().unwrap()
        }

        fn run(
            &self,
            wanted: WorkWanted,
            changed: &[(&str, &str)],
        ) -> Result<(ObjectId, usize), NotRead> {
            let mut environment =
                environment(("project", OUT_FOLDER), (&self.base, "main"), wanted);
            for (name, value) in changed {
                environment.insert((*name).to_owned(), (*value).to_owned());
            }
            let mut command = Command::new("sh");
            command.args(["-c", SCRIPT]).current_dir(self.root()).envs(environment);
            let ran = command.stdin(Stdio::null()).output().unwrap();
            let text = [ran.stdout, ran.stderr].concat();
            let exit = ran.status.code().unwrap();
            collected(exit.into(), &String::from_utf8_lossy(&text), &self.base)
                .map(|(head, bytes, _)| (head, bytes))
        }

        fn newest(&self) -> Result<(ObjectId, usize), NotRead> {
            self.run(WorkWanted::Newest { at_ms: AT_MS }, &[])
        }

        /// What the worker reads after a run.
        fn pack(&self, bytes: usize) -> Pack {
            let pieces = (0..bytes.div_ceil(PIECE_BYTES)).map(|piece| piece.to_string());
            let folder = self.root().join(OUT_FOLDER);
            let pack: Vec<u8> = pieces
                .clone()
                .flat_map(|piece| std::fs::read(folder.join(piece)).unwrap())
                .collect();
            assert_eq!(pack.len(), bytes);
            let left = std::fs::read_dir(folder).unwrap().count();
            assert_eq!(left, pieces.count(), "nothing else stays there");
            Pack::read(pack, &PackBounds::PUSH).unwrap()
        }

        /// The newest commit, with the files of its root folder.
        fn collect(&self) -> (ObjectId, Commit, Vec<String>) {
            let (head, bytes) = self.newest().unwrap();
            let commit = self.pack(bytes).commit(&head).unwrap();
            let names = self.sh(&format!("git -C project ls-tree -r --name-only {head}"));
            (head, commit, names.lines().map(str::to_owned).collect())
        }
    }

    fn why(read: Result<(ObjectId, usize), NotRead>) -> String {
        match read {
            Err(NotRead::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_work_leaves_in_one_commit() {
        let place = Place::new();
        place.sh("cd project && printf 'two\\n' >a.txt && git commit -qam Work && printf 'three\\n' >a.txt");
        place.sh("cd project && mkdir deep && printf n >'deep/é x' && printf s >staged && git add staged && printf i >i.log");
        place.sh("cd project && printf f >forced.log && git add -f forced.log && git rm -q --cached long.txt && rm long.txt");
        let seen = "cd project && git status --porcelain -uall && cat a.txt .git/HEAD && git rev-parse HEAD && git ls-files --stage && sha1sum .git/index";
        let before = place.sh(seen);
        let (head, commit, names) = place.collect();
        assert_eq!(names, [".gitignore", "a.txt", "\"deep/\\303\\251 x\"", "forced.log", "staged"]);
        assert_eq!(place.sh(&format!("git -C project show {head}:a.txt")), "three\n");
        assert_eq!(commit.parents, [place.at("HEAD")]);
        assert_eq!(commit.message, "Work in progress\n");
        for who in [&commit.author, &commit.committer] {
            let shown = (who.name.as_str(), who.email.as_str(), who.at_s * 1_000);
            assert_eq!(shown, ("Bobbin", "bobbin@localhost", AT_MS));
        }
        assert_eq!(place.sh(seen), before, "the agent's own state stays");
    }

    #[test]
    fn edit_in_the_same_instant_leaves_too() {
        let place = Place::new();
        let then = "touch -d '2024-01-01 00:00:00'";
        place.sh(&format!("cd project && git config core.trustctime false && {then} a.txt && git add a.txt && {then} .git/index"));
        place.sh(&format!("cd project && printf 'two\\n' >a.txt && {then} a.txt"));
        let (head, _, _) = place.collect();
        assert_eq!(place.sh(&format!("git -C project show {head}:a.txt")), "two\n");
    }

    #[test]
    fn same_work_is_the_same_commit() {
        let place = Place::new();
        place.sh("cd project && printf 'two\\n' >a.txt");
        let (first, _, _) = place.collect();
        assert_eq!(place.collect().0, first);
        let later = WorkWanted::Newest { at_ms: AT_MS + 60_000 };
        assert_eq!(place.run(later, &[]).unwrap().0, first, "also at another time");
        place.sh("cd project && git update-ref -d refs/worktree/bobbin/outgoing");
        assert_eq!(place.collect().0, first, "also where nothing was kept");
        place.sh("cd project && git commit -qam Work");
        let (head, bytes) = place.run(later, &[]).unwrap();
        assert_eq!(head, place.at("HEAD"), "the agent's own commit holds everything");
        assert_eq!(place.pack(bytes).objects().count(), 3);
    }

    #[test]
    fn only_shown_work_is_collected_again() {
        let place = Place::new();
        place.sh("cd project && printf 'two\\n' >a.txt");
        let (shown, bytes) = place.newest().unwrap();
        let again = |commit| place.run(WorkWanted::Shown(commit), &[]);
        assert_eq!(again(shown).unwrap(), (shown, bytes));
        assert!(matches!(again(place.base), Err(NotRead::Changed)), "another one was shown");
        place.sh("cd project && printf new >new.txt");
        assert!(matches!(again(shown), Err(NotRead::Changed)), "a file came");
        place.sh("cd project && rm new.txt");
        assert_eq!(again(shown).unwrap().0, shown);
        place.sh("cd project && git commit -qam Work");
        assert!(matches!(again(shown), Err(NotRead::Changed)), "the agent made a commit");
        let own = place.newest().unwrap().0;
        assert_eq!(again(own).unwrap().0, place.at("HEAD"));
    }

    #[test]
    fn nothing_to_publish_is_told() {
        let place = Place::new();
        assert!(matches!(place.newest(), Err(NotRead::Unchanged)));
        place.sh("cd project && printf i >i.log");
        assert!(matches!(place.newest(), Err(NotRead::Unchanged)), "an ignored file is no work");
    }

    #[test]
    fn obstacles_are_told_in_words() {
        let place = Place::new();
        place.sh("cd project && printf 'two\\n' >a.txt");
        let newest = WorkWanted::Newest { at_ms: AT_MS };
        let words = why(place.run(newest, &[("BOBBIN_BYTES", "100")]));
        assert!(words.starts_with("The work is larger than 25 MB"), "{words}");
        let words = why(place.run(newest, &[(WORKSPACE, "elsewhere")]));
        assert_eq!(words, "The repository's folder is gone.");
        std::fs::create_dir(place.root().join("project/sub")).unwrap();
        let words = why(place.run(newest, &[(WORKSPACE, "project/sub")]));
        assert_eq!(words, "The repository's folder is gone.");
        let elsewhere = outgoing::elsewhere(&place.base);
        let unknown = "1".repeat(40);
        assert_eq!(why(place.run(newest, &[("BOBBIN_BASE", &unknown)])), elsewhere);
        place.sh("cd project && git checkout -q --orphan alone && git commit -qm Alone");
        assert_eq!(why(place.newest()), elsewhere);
        place.sh("cd project && git checkout -q --orphan empty");
        assert_eq!(why(place.newest()), elsewhere, "a branch without a commit");
    }

    #[test]
    fn project_cannot_stop_the_collection() {
        let place = Place::new();
        let hostile = [
            "cd project && printf '#!/bin/sh\\nexit 1\\n' >.git/hooks/pre-commit && cp .git/hooks/pre-commit .git/hooks/reference-transaction",
            "cd project && cp .git/hooks/pre-commit .git/hooks/post-index-change && chmod +x .git/hooks/*",
            "cd project && git config core.hooksPath .git/hooks && git config core.fsmonitor 'touch ../watched; false'",
            "cd project && git config filter.bad.clean 'touch ../filtered; false' && printf '*.bad filter=bad\\n' >.gitattributes",
            "cd project && git config commit.gpgsign true && git config gpg.program false && git config core.splitIndex true",
            "cd project && git config pack.window 50 && git config log.showSignature true",
            "cd project && printf x >x.bad && printf y >y.txt && git init -q empty && printf z >empty/z",
            "cd project && git init -q inner && printf i >inner/i && git -C inner add . && git -C inner commit -qm Inner",
            "cd project && touch .git/index.lock .git/HEAD.lock && mkdir -p .git/refs/worktree/bobbin && touch .git/refs/worktree/bobbin/outgoing.lock",
            "cd project && git tag other HEAD && git replace --graft HEAD 2>/dev/null || true",
        ];
        for script in hostile {
            place.sh(script);
        }
        let (head, commit, names) = place.collect();
        let expected =
            [".gitattributes", ".gitignore", "a.txt", "inner", "long.txt", "x.bad", "y.txt"];
        assert_eq!(names, expected);
        assert_eq!(commit.parents, [place.base]);
        assert_eq!(place.sh(&format!("git -C project show {head}:y.txt {head}:x.bad")), "yx");
        assert!(!place.root().join("watched").exists());
        assert_eq!(place.newest().unwrap().0, head);
        place.sh("cd project && git config filter.bad.required true && printf 2 >x.bad");
        let words = why(place.newest());
        assert!(words.ends_with("Git said: fatal: x.bad: clean filter 'bad' failed"), "{words}");
    }

    #[test]
    fn pack_has_whole_objects_and_nothing_before() {
        let place = Place::new();
        for number in 0..20 {
            place
                .sh(&format!("cd project && echo {number} >>long.txt && git commit -qam {number}"));
        }
        place.sh("cd project && git repack -adq --write-bitmap-index -f --window=50 && echo end >>long.txt");
        let deltas = place.sh(
            "cd project && git verify-pack -v .git/objects/pack/*.idx | grep -c '^chain length'",
        );
        assert_ne!(deltas.trim(), "0", "there are deltas that could be taken over");
        let (head, bytes) = place.newest().unwrap();
        let pack = place.pack(bytes);
        let listed = place.sh(&format!(
            "git -C project rev-list --objects --no-object-names {head} ^{}",
            place.base
        ));
        assert_eq!(pack.objects().count(), listed.lines().count());
        assert_eq!(pack.commit(&place.base), None);
    }

    #[test]
    fn large_work_comes_in_pieces() {
        let place = Place::new();
        place.sh("cd project && head -c 9000000 /dev/urandom >image.bin");
        let (head, bytes) = place.newest().unwrap();
        assert!(bytes > 2 * PIECE_BYTES && bytes < 3 * PIECE_BYTES);
        assert!(place.pack(bytes).commit(&head).is_some());
    }

    #[test]
    fn worktrees_keep_commits_apart() {
        let place = Place::new();
        place.sh("cd project && git worktree add -q ../own && printf own >../own/own.txt && printf common >c.txt");
        let newest = WorkWanted::Newest { at_ms: AT_MS };
        let (common, _) = place.newest().unwrap();
        let (own, _) = place.run(newest, &[(WORKSPACE, "own")]).unwrap();
        assert_ne!(own, common);
        assert_eq!(place.run(WorkWanted::Shown(common), &[]).unwrap().0, common);
        assert_eq!(place.run(WorkWanted::Shown(own), &[(WORKSPACE, "own")]).unwrap().0, own);
    }

    #[test]
    fn claims_of_the_sandbox_are_bounded() {
        let base = ObjectId::of(bobbin_forge::git::ObjectKind::Blob, b"");
        let read = |text: &str| collected(0, text, &base).map(|(head, bytes, _)| (head, bytes));
        assert_eq!(read(&format!("warning\noutgoing {base} 12 {base}\n")).unwrap(), (base, 12));
        for text in [
            "",
            "outgoing",
            &format!("outgoing {base} 12"),
            &format!("outgoing x 12 {base}"),
            &format!("outgoing {base} -1 {base}"),
        ] {
            assert_eq!(why(read(text)), UNCLEAR);
        }
        assert_eq!(why(read(&format!("outgoing {base} {} {base}", BYTES_MAX + 1))), UNCLEAR);
        let collected = |exit, text: &str, base: &ObjectId| {
            collected(exit, text, base).map(|(head, bytes, _)| (head, bytes))
        };
        let words = why(collected(1, "warning\nfatal: no\tspace\u{1b} left\n", &base));
        assert!(
            words.starts_with("The work could not be collected. Git said: fatal: no"),
            "{words}"
        );
    }

    #[test]
    fn refusal_of_the_forge_is_plain() {
        let said = format!("GH006\u{1b}[2K: ghs_abcdefghijklmnopqrstuvwxyz\n{}", "x".repeat(2_000));
        let words = plain(&said);
        assert!(words.starts_with("GH006[2K: ***\nxxx"), "{words}");
        assert_eq!(words.chars().count(), WHY_CHARS_MAX);
    }
}
