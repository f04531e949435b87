//! A directory's files at one moment, as a git tree: in our own repository, with its own index, which only reads
//! objects of the directory's repository.
//!
//! No configuration is used, so that nothing from an untrusted repository runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{ChangeStatus, FileChange};
use crate::limits::{
    CHANGES_BYTES_MAX, CHANGES_FILES_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOT_EXCLUDES_BYTES_MAX,
    SNAPSHOT_FILE_BYTES_MAX, SNAPSHOT_FILES_MAX, SNAPSHOT_INDEX_BYTES_MAX, SNAPSHOT_LIST_BYTES_MAX,
    SNAPSHOT_MS_MAX,
};
use crate::plain;

/// Why a turn's changes are unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error("git cannot run, or the disk cannot be used: {0}")]
    Io(#[from] std::io::Error),
    #[error("git failed: {0}")]
    Git(String),
    #[error("there are too many files to read, or they are too large")]
    TooMuch,
    #[error("it took too long")]
    TooLong,
}

/// Snapshots of one directory.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// Root of the files: a repository's work tree, or the directory itself.
    root: PathBuf,
    /// Our repository.
    folder: PathBuf,
    /// The daemon's own folder, which is not part of a project.
    state_dir: PathBuf,
    /// Its index was written by another git: anything unusual in it must not cost us the snapshot.
    is_seeded: bool,
}

/// A directory's repository.
struct RepositoryPaths {
    root: PathBuf,
    format: String,
    index: PathBuf,
    objects: PathBuf,
    excludes: PathBuf,
}

impl Snapshots {
    /// Creates the repository for snapshots in this new folder.
    pub(super) async fn of(
        directory: &Path,
        folder: &Path,
        state_dir: &Path,
    ) -> Result<Self, Unknown> {
        let found = find(directory).await?;
        for name in ["objects/info", "refs", "info"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        std::fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
        let format = found.as_ref().map_or("sha1", |found| &found.format);
        let config = format!(
            "[core]\nrepositoryformatversion = 1\nbare = false\nuntrackedCache = false\n[extensions]\nobjectFormat = {format}\n"
        );
        let mut snapshots = Self {
            root: directory.to_owned(),
            folder: folder.to_owned(),
            state_dir: state_dir.to_owned(),
            is_seeded: false,
        };
        if let Some(found) = found {
            let objects = format!("{}\n", found.objects.display());
            std::fs::write(folder.join("objects/info/alternates"), objects)?;
            let (index, excludes) = (snapshots.index(), folder.join("info/exclude"));
            let root = found.root.clone();
            let copied = tokio::task::spawn_blocking(move || {
                // Files ignored only in this checkout.
                seed(&found.excludes, &excludes, SNAPSHOT_EXCLUDES_BYTES_MAX);
                seed(&found.index, &index, SNAPSHOT_INDEX_BYTES_MAX)
            });
            let bound = Duration::from_millis(SNAPSHOT_MS_MAX);
            let copied = tokio::time::timeout(bound, copied).await;
            let is_seeded = copied.map_err(|_| Unknown::TooLong)?;
            snapshots.is_seeded = is_seeded.map_err(std::io::Error::other)?;
            snapshots.root = root;
        }
        std::fs::write(folder.join("config"), config)?;
        Ok(snapshots)
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// The tree of the current files.
    pub(super) async fn take(&mut self) -> Result<String, Unknown> {
        let bound = Duration::from_millis(SNAPSHOT_MS_MAX);
        let taken = tokio::time::timeout(bound, self.tree()).await;
        match taken.map_err(|_| Unknown::TooLong)? {
            Err(Unknown::Git(_)) if std::mem::take(&mut self.is_seeded) => {
                std::fs::remove_file(self.index())?;
                let taken = tokio::time::timeout(bound, self.tree()).await;
                taken.map_err(|_| Unknown::TooLong)?
            }
            taken => taken,
        }
    }

    async fn tree(&self) -> Result<String, Unknown> {
        let list = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"];
        let (listed, is_whole) = self.git(&list, Vec::new(), SNAPSHOT_LIST_BYTES_MAX).await?;
        if !is_whole {
            return Err(Unknown::TooMuch);
        }
        let (root, state_dir) = (self.root.clone(), self.state_dir.clone());
        let chosen = tokio::task::spawn_blocking(move || choose(&listed, &root, &state_dir)).await;
        let chosen = chosen.map_err(std::io::Error::other)??;
        if !chosen.is_empty() {
            let update = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
            self.git(&update, chosen, 0).await?;
        }
        // Objects that a partial clone has not fetched do not belong to changed files.
        let (tree, _) = self.git(&["write-tree", "--missing-ok"], Vec::new(), 1024).await?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Differences in the second tree, in path order.
    pub(super) async fn compare(&self, from: &str, to: &str) -> Result<Vec<FileChange>, Unknown> {
        if from == to {
            return Ok(Vec::new());
        }
        let bound = Duration::from_millis(SNAPSHOT_MS_MAX);
        let compared = tokio::time::timeout(bound, self.diff(from, to)).await;
        compared.map_err(|_| Unknown::TooLong)?
    }

    async fn diff(&self, from: &str, to: &str) -> Result<Vec<FileChange>, Unknown> {
        const DIFF: [&str; 6] =
            ["diff-tree", "-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"];
        let with = |more: &[&'static str]| -> Vec<&str> {
            DIFF.into_iter().chain(more.iter().copied()).chain([from, to]).collect()
        };
        let numbers = with(&["-z", "--raw", "--numstat"]);
        let (numbers, is_whole) = self.git(&numbers, Vec::new(), SNAPSHOT_LIST_BYTES_MAX).await?;
        let mut entries = read_numbers(&numbers);
        if !is_whole || entries.len() > CHANGES_FILES_MAX {
            return Err(Unknown::TooMuch);
        }
        let (patch, is_whole) = self.git(&with(&["-p"]), Vec::new(), CHANGES_BYTES_MAX).await?;
        let mut sections = sections(&patch);
        if !is_whole {
            sections.pop();
        }
        let mut sections = sections.into_iter();
        for entry in &mut entries {
            // A file replaced by a link, or the reverse, appears as a deletion and a creation.
            for _ in 0..entry.sections {
                let Some(section) = sections.next() else {
                    break;
                };
                let text = String::from_utf8_lossy(section);
                if text.contains("\n@@ ") && entry.sections == 1 {
                    entry.change.patch = text.into_owned();
                }
            }
        }
        Ok(entries.into_iter().map(|entry| entry.change).collect())
    }

    /// Runs git on our repository. Returns its output, up to a bound, and whether that is complete.
    async fn git(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        bytes_max: usize,
    ) -> Result<(Vec<u8>, bool), Unknown> {
        let mut command = git();
        command
            .args(arguments)
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", &self.root)
            .current_dir(&self.root);
        run(command, input, bytes_max).await
    }
}

/// Git without any configuration.
fn git() -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("LC_ALL", "C"),
        ])
        .kill_on_drop(true);
    command
}

async fn run(
    mut command: Command,
    input: Vec<u8>,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), Unknown> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A git that has exited stops reading; its status says why.
            let _ = stdin.write_all(&input).await;
        }
    };
    let read = async {
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            let over = bytes_max as u64 + 1;
            stdout.take(over).read_to_end(&mut answer).await?;
        }
        Ok::<_, std::io::Error>(answer)
    };
    let complain = async {
        let mut said = Vec::new();
        if let Some(stderr) = stderr {
            const SAID_BYTES_MAX: u64 = 1024;
            let mut stderr = stderr.take(SAID_BYTES_MAX);
            stderr.read_to_end(&mut said).await?;
            let mut rest = stderr.into_inner();
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        }
        Ok::<_, std::io::Error>(said)
    };
    let ((), answer, said) = tokio::join!(write, read, complain);
    let (mut answer, said) = (answer?, said?);
    if answer.len() > bytes_max {
        answer.truncate(bytes_max);
        child.kill().await?;
        return Ok((answer, false));
    }
    if child.wait().await?.success() {
        return Ok((answer, true));
    }
    Err(Unknown::Git(String::from_utf8_lossy(&said).trim().to_owned()))
}

async fn find(directory: &Path) -> Result<Option<RepositoryPaths>, Unknown> {
    let mut command = git();
    command.current_dir(directory).args([
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--show-object-format",
        "--git-path",
        "index",
        "--git-path",
        "objects",
        "--git-path",
        "info/exclude",
    ]);
    const ANSWER_BYTES_MAX: usize = 64 * 1024;
    let bound = Duration::from_millis(SNAPSHOT_MS_MAX);
    let answer = tokio::time::timeout(bound, run(command, Vec::new(), ANSWER_BYTES_MAX)).await;
    let answer = match answer.map_err(|_| Unknown::TooLong)? {
        Ok((answer, _)) => answer,
        // The directory is in no repository, or in one that git does not trust.
        Err(Unknown::Git(_)) => return Ok(None),
        Err(unknown) => return Err(unknown),
    };
    let Ok(answer) = String::from_utf8(answer) else {
        return Ok(None);
    };
    let mut lines = answer.lines();
    let mut next = || lines.next().map(str::to_owned);
    let found = (next(), next(), next(), next(), next());
    let (Some(root), Some(format), Some(index), Some(objects), Some(excludes)) = found else {
        return Ok(None);
    };
    Ok(Some(RepositoryPaths {
        root: root.into(),
        format,
        index: index.into(),
        objects: objects.into(),
        excludes: excludes.into(),
    }))
}

/// Copies a file of the repository. For an index the time is kept too: it records each file's content and time, so that
/// unchanged files are not read again, and git uses the index's time to tell which of them to trust. Returns whether a
/// usable one exists.
fn seed(theirs: &Path, own: &Path, bytes_max: u64) -> bool {
    if plain::copy(theirs, own, bytes_max).is_ok() {
        return true;
    }
    // It may not exist.
    let _ = std::fs::remove_file(own);
    false
}

/// Selects, from the files that may differ from the index, those to read, in the same format. Missing ones are removed
/// from the tree; too large or unreadable ones stay as they were.
fn choose(listed: &[u8], root: &Path, state_dir: &Path) -> Result<Vec<u8>, Unknown> {
    use std::os::unix::ffi::OsStrExt;
    let mut chosen = Vec::new();
    let (mut files, mut bytes) = (0, 0_u64);
    let names = listed.split(|byte| *byte == 0);
    for name in names.filter(|name| !name.is_empty()) {
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        if path.starts_with(state_dir) {
            continue;
        }
        if let Ok(found) = path.symlink_metadata() {
            let is_link = found.is_symlink();
            let is_file = found.is_file() && found.len() <= SNAPSHOT_FILE_BYTES_MAX;
            let is_readable = is_file && plain::open(&path, SNAPSHOT_FILE_BYTES_MAX).is_ok();
            // A listed directory is a nested repository.
            if !is_link && !is_readable {
                continue;
            }
            bytes = bytes.saturating_add(found.len());
        }
        files += 1;
        if files > SNAPSHOT_FILES_MAX || bytes > SNAPSHOT_BYTES_MAX {
            return Err(Unknown::TooMuch);
        }
        chosen.extend_from_slice(name);
        chosen.push(0);
    }
    Ok(chosen)
}

struct ChangeEntry {
    change: FileChange,
    /// Number of its sections in the patch.
    sections: usize,
}

/// Parses `--raw --numstat -z`: `:MODE MODE ID ID STATUS`, path, for all; then `ADDED TAB REMOVED TAB PATH` for all.
fn read_numbers(answer: &[u8]) -> Vec<ChangeEntry> {
    let mut entries: Vec<ChangeEntry> = Vec::new();
    let mut at = 0;
    let mut fields = answer.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let Some(field) = fields.next() {
        if field.starts_with(':') {
            let status = field.rsplit(' ').next().unwrap_or_default();
            let (status, sections) = match status {
                "A" => (ChangeStatus::Added, 1),
                "D" => (ChangeStatus::Deleted, 1),
                "T" => (ChangeStatus::Modified, 2),
                _ => (ChangeStatus::Modified, 1),
            };
            let file = fields.next().unwrap_or_default().into_owned();
            let change =
                FileChange { file, status, additions: 0, deletions: 0, patch: String::new() };
            entries.push(ChangeEntry { change, sections });
        } else if let Some(entry) = entries.get_mut(at) {
            let mut numbers = field.split('\t');
            // A binary file has no line counts: `-`.
            let mut number = || numbers.next().and_then(|text| text.parse().ok()).unwrap_or(0);
            entry.change.additions = number();
            entry.change.deletions = number();
            at += 1;
        }
    }
    entries
}

/// Splits a patch by file: lines of a file's text start with other characters.
fn sections(patch: &[u8]) -> Vec<&[u8]> {
    const HEAD: &[u8] = b"diff --git ";
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(HEAD) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(start, end)| &patch[*start..end]).collect()
}
