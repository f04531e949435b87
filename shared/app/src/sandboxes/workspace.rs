//! A thread's own workspace in a sandbox that several threads share.
//!
//! If the common checkout is a repository, the workspace is a git worktree of it on the branch `bobbin/<name>`;
//! otherwise a folder with its own repository, because an agent's diffs and reverts need one. Promised: a repeat finds
//! what exists, and redoes what a crash left incomplete; nobody's work is deleted; the time is bounded. Deliberately
//! absent: when a thread gets a workspace, the merge of its branch, and its end.

use std::fmt;
use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::text::{one_line, shorten};
use bobbin_sandbox::ErrorKind;

use super::Sandboxes;

const WORKSPACE_SCRIPT: &str = include_str!("workspace.sh");
/// The variable that passes the workspace to a script: its name to the script that creates it, its path to others.
pub(super) const WORKSPACE: &str = "BOBBIN_WORKSPACE";
/// Exit status of the script if the image has no git.
const EXIT_NO_GIT: i64 = 3;
/// Exit status of the script if another one holds the lock for too long.
const EXIT_HELD: i64 = 4;
/// Characters (UTF-16 units) of git's output that are passed on.
const SEEN_UNITS_MAX: usize = 200;

/// A workspace prepared for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workplace {
    /// A git worktree of the common checkout.
    Worktree {
        /// Path of the worktree.
        workspace: Workspace,
        /// Its branch, for people who want to see or merge it.
        branch: String,
    },
    /// A separate folder: there is no repository to create a worktree from.
    Folder {
        /// Path of the folder.
        workspace: Workspace,
    },
}

impl Workplace {
    /// Where the thread's turns work.
    #[must_use]
    pub const fn workspace(&self) -> &Workspace {
        match self {
            Self::Worktree { workspace, .. } | Self::Folder { workspace } => workspace,
        }
    }
}

/// Why a thread has no workspace of its own, classified by remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWorkspace {
    /// Git exceeded its time limit.
    TooLong,
    /// The sandbox's disk is full.
    NoRoom,
    /// The image has no git.
    NoGit,
    /// The repository has a branch `bobbin`, so `bobbin/…` cannot be created.
    BranchInTheWay,
    /// Any other reason.
    Other {
        /// Last line of git's output.
        seen: String,
    },
}

impl fmt::Display for NoWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("This thread could not get a workspace of its own: ")?;
        match self {
            Self::TooLong => f.write_str("git took too long. Send the message again, or work in the common checkout."),
            Self::NoRoom => f.write_str("the sandbox's disk is full. Remove files that nobody needs, then send the message again."),
            Self::NoGit => f.write_str("the sandbox's image has no git. The operator has to add it; until then work in the common checkout."),
            Self::BranchInTheWay => f.write_str("the repository has a branch named bobbin. Rename it (git branch -m bobbin another-name) in the common checkout, then send the message again."),
            Self::Other { seen } => write!(f, "git said: {seen}. Fix that in the common checkout, or work there."),
        }
    }
}

impl Sandboxes {
    /// Prepares the thread's own workspace in a running sandbox whose repository is in place; a repeat is harmless.
    /// `Ok(Err(…))` says why there is none, for people.
    ///
    /// # Errors
    /// The class of the failure, if the sandbox could not be asked.
    pub async fn make_workspace(
        &self,
        key: &SandboxKey,
        generation: u32,
        thread: &ThreadKey,
        within_ms: u64,
    ) -> Result<Result<Workplace, NoWorkspace>, Failure> {
        let sandbox = self.find_running(key, generation).await?;
        let name = thread.short_hash();
        let environment = [(WORKSPACE.to_owned(), name.clone())].into();
        let fit = self.runtime.facts().fit_workspace;
        let script = format!("fit() {{\n{fit}\n}}\n{WORKSPACE_SCRIPT}");
        let timeout = Duration::from_millis(within_ms);
        let ran = self.provider.exec(&sandbox, &script, &environment, timeout).await;
        match ran {
            Ok(ran) if ran.exit_code == 0 => Ok(workplace(&ran.text, &name)),
            Ok(ran) if ran.exit_code == EXIT_HELD => Err(Failure::Wait {
                after_ms: 0,
                seen: "another workspace of the sandbox is being prepared".to_owned(),
            }),
            Ok(ran) if ran.exit_code == EXIT_NO_GIT => Ok(Err(NoWorkspace::NoGit)),
            Ok(ran) => Ok(Err(why(&ran.text))),
            Err(error) if error.kind == ErrorKind::CommandTimeout => Ok(Err(NoWorkspace::TooLong)),
            Err(error) => Err(error.failure),
        }
    }
}

/// The result as an event for `decide`.
pub(super) fn event(made: Result<Workplace, NoWorkspace>) -> Event {
    let (workspace, branch) = match made {
        Ok(Workplace::Worktree { workspace, branch }) => (workspace, Some(branch)),
        Ok(Workplace::Folder { workspace }) => (workspace, None),
        Err(none) => {
            let why = none.to_string();
            return Event::NoWorkspace { why };
        }
    };
    Event::WorkspaceReady { directory: workspace.path().to_owned(), branch }
}

fn last_line(words: &str) -> &str {
    let lines = words.lines().rev();
    lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing")
}

/// Parses the script's output.
fn workplace(words: &str, name: &str) -> Result<Workplace, NoWorkspace> {
    let (kind, directory) = last_line(words).split_once(' ').unwrap_or_default();
    match (kind, Workspace::own(directory)) {
        ("worktree", Some(workspace)) => {
            Ok(Workplace::Worktree { workspace, branch: format!("bobbin/{name}") })
        }
        ("plain", Some(workspace)) => Ok(Workplace::Folder { workspace }),
        _ => Err(why(words)),
    }
}

/// Classifies git's output (git 2.39 to 2.47).
fn why(words: &str) -> NoWorkspace {
    let says = |any: &[&str]| any.iter().any(|one| words.contains(one));
    if says(&["No space left on device", "Disk quota exceeded"]) {
        NoWorkspace::NoRoom
    } else if says(&["'refs/heads/bobbin' exists"]) {
        NoWorkspace::BranchInTheWay
    } else {
        NoWorkspace::Other { seen: shorten(&redact(&one_line(last_line(words))), SEEN_UNITS_MAX) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::process::CommandExt as _;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output, Stdio};
    use std::time::Duration;

    use super::*;

    const NAME: &str = "0a1b2c";

    /// The script as a sandbox runs it, in this working directory.
    fn script(root: &Path) -> Command {
        let mut command = Command::new("sh");
        let text = format!("fit() {{\n:\n}}\n{WORKSPACE_SCRIPT}");
        command.args(["-c", &text]).current_dir(root).env(WORKSPACE, NAME).stdin(Stdio::null());
        command
    }

    fn said(output: &Output) -> String {
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn made(root: &Path) -> Result<Workplace, NoWorkspace> {
        let ran = script(root).output().unwrap();
        match ran.status.code() {
            Some(0) => workplace(&said(&ran), NAME),
            _ => Err(why(&said(&ran))),
        }
    }

    fn git(folder: &Path, arguments: &[&str]) -> String {
        let person = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
        let ran = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(person)
            .args(arguments)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        said(&ran).trim().to_owned()
    }

    /// A working directory with a repository of some files in `project`.
    fn with_repository() -> (tempfile::TempDir, PathBuf) {
        let kept = tempfile::tempdir().unwrap();
        let root = kept.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir(&project).unwrap();
        git(&project, &["init", "-q"]);
        for number in 0..200 {
            std::fs::write(project.join(format!("{number}.txt")), "text").unwrap();
        }
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", "files"]);
        (kept, root)
    }

    fn worktree(root: &Path) -> Result<Workplace, NoWorkspace> {
        let directory = root.join("workspaces").join(NAME);
        Ok(Workplace::Worktree {
            workspace: Workspace::own(directory.to_str().unwrap()).unwrap(),
            branch: format!("bobbin/{NAME}"),
        })
    }

    #[test]
    fn worktree_is_created_once_keeping_work() {
        let (_kept, root) = with_repository();
        let own = root.join("workspaces").join(NAME);
        assert_eq!(made(&root), worktree(&root));
        assert_eq!(git(&own, &["branch", "--show-current"]), format!("bobbin/{NAME}"));
        std::fs::write(own.join("0.txt"), "mine").unwrap();
        assert_eq!(made(&root), worktree(&root));
        assert_eq!(git(&own, &["status", "--short"]), "M 0.txt");
        assert_eq!(git(&root.join("project"), &["status", "--short"]), "");
        // Files that we add are no changes, in either.
        std::fs::create_dir_all(own.join(".bobbin/attachments")).unwrap();
        std::fs::write(own.join(".bobbin/attachments/a"), "a").unwrap();
        assert_eq!(git(&own, &["status", "--short"]), "M 0.txt");
    }

    #[test]
    fn workspace_creation_runs_no_hooks() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_kept, root) = with_repository();
        let hooks = root.join("project/.git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        let hook = hooks.join("post-checkout");
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", root.join("ran").display()))
            .unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(made(&root), worktree(&root));
        assert!(!root.join("ran").exists());
        git(&root.join("project"), &["checkout", "-q", "-b", "other"]);
        assert!(root.join("ran").exists(), "the hook is one");
    }

    #[test]
    fn workspace_creation_survives_any_crash() {
        let (_kept, root) = with_repository();
        let own = root.join("workspaces").join(NAME);
        let (mut cut_off, mut whole_before) = (0, 0);
        for ms in (0..120).step_by(3) {
            let mut tried = script(&root)
                .process_group(0)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(ms));
            // Its children too: git itself must not finish.
            let kill = format!("kill -KILL -{}", tried.id());
            Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap();
            if tried.wait().unwrap().success() {
                whole_before += 1;
            } else {
                cut_off += 1;
            }
            assert_eq!(made(&root), worktree(&root), "after {ms} ms");
            assert_eq!(git(&own, &["status", "--short"]), "", "after {ms} ms");
            assert_eq!(std::fs::read_dir(&own).unwrap().count(), 201, "after {ms} ms");
            git(&root.join("project"), &["worktree", "remove", "--force", own.to_str().unwrap()]);
            if ms % 2 == 0 {
                // Left by a killed git. In a sandbox it may belong to somebody's running git, so the script does not
                // remove it.
                let lock = root.join("project/.git/packed-refs.lock");
                let _ = std::fs::remove_file(lock);
                git(&root.join("project"), &["branch", "-qD", &format!("bobbin/{NAME}")]);
            }
        }
        assert!(cut_off > 0, "{whole_before} tries were never cut off");
    }

    #[test]
    fn half_made_worktree_is_repaired() {
        let (_kept, root) = with_repository();
        let own = root.join("workspaces").join(NAME);
        made(&root).unwrap();
        let administration = root.join("project/.git/worktrees").join(NAME);
        std::fs::write(administration.join("locked"), "initializing\n").unwrap();
        std::fs::remove_file(own.join("7.txt")).unwrap();
        let lock = root.join(format!("project/.git/refs/heads/bobbin/{NAME}.lock"));
        std::fs::write(&lock, "").unwrap();
        assert_eq!(made(&root), worktree(&root));
        assert!(own.join("7.txt").exists() && !lock.exists());
    }

    #[test]
    fn lost_folder_is_restored_from_branch() {
        let (_kept, root) = with_repository();
        let own = root.join("workspaces").join(NAME);
        made(&root).unwrap();
        std::fs::write(own.join("new.txt"), "work").unwrap();
        git(&own, &["add", "."]);
        git(&own, &["commit", "-qm", "work"]);
        std::fs::remove_dir_all(&own).unwrap();
        assert_eq!(made(&root), worktree(&root));
        assert!(own.join("new.txt").exists());
    }

    #[test]
    fn unrepairable_folder_is_set_aside() {
        let (_kept, root) = with_repository();
        let own = root.join("workspaces").join(NAME);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("work.txt"), "first").unwrap();
        assert_eq!(made(&root), worktree(&root));
        std::fs::write(own.join("work.txt"), "second").unwrap();
        std::fs::remove_dir_all(root.join("project/.git/worktrees")).unwrap();
        assert_eq!(made(&root), worktree(&root));
        let left = |number: u32| {
            let folder = root.join(format!("workspaces/{NAME}.left-{number}"));
            std::fs::read_to_string(folder.join("work.txt")).unwrap()
        };
        assert_eq!((left(1).as_str(), left(2).as_str()), ("first", "second"));
    }

    #[test]
    fn moved_worktree_keeps_its_work() {
        let (kept, root) = with_repository();
        made(&root).unwrap();
        std::fs::write(root.join("workspaces").join(NAME).join("0.txt"), "mine").unwrap();
        let moved = root.with_extension("moved");
        std::fs::rename(&root, &moved).unwrap();
        assert_eq!(made(&moved), worktree(&moved));
        let own = moved.join("workspaces").join(NAME);
        assert_eq!(git(&own, &["status", "--short"]), "M 0.txt");
        std::fs::rename(&moved, kept.path()).unwrap();
    }

    #[test]
    fn workspace_without_repository_gets_own() {
        let kept = tempfile::tempdir().unwrap();
        let root = kept.path().canonicalize().unwrap();
        let own = root.join("workspaces").join(NAME);
        let folder =
            Ok(Workplace::Folder { workspace: Workspace::own(own.to_str().unwrap()).unwrap() });
        assert_eq!(made(&root), folder);
        // The empty repository in which a server is started does not count.
        std::fs::create_dir(root.join("project")).unwrap();
        git(&root.join("project"), &["init", "-q"]);
        git(&root.join("project"), &["commit", "-q", "--allow-empty", "-m", "Start"]);
        std::fs::remove_dir_all(&own).unwrap();
        assert_eq!(made(&root), folder);
        assert_eq!(git(&own, &["log", "--format=%s"]), "Start");
        std::fs::write(own.join("a.txt"), "a").unwrap();
        assert_eq!(made(&root), folder);
        assert_eq!(git(&own, &["status", "--short"]), "?? a.txt");
        // It stays a folder when a repository appears later: there is work in it.
        std::fs::write(root.join("project/b.txt"), "b").unwrap();
        git(&root.join("project"), &["add", "."]);
        git(&root.join("project"), &["commit", "-qm", "files"]);
        assert_eq!(made(&root), folder);
    }

    #[test]
    fn workspace_obstacle_comes_with_advice() {
        let (_kept, root) = with_repository();
        git(&root.join("project"), &["branch", "bobbin"]);
        let none = made(&root).expect_err("the name is taken");
        assert_eq!(none, NoWorkspace::BranchInTheWay);
        assert_eq!(
            none.to_string(),
            "This thread could not get a workspace of its own: the repository has a branch named bobbin. Rename it (git branch -m bobbin another-name) in the common checkout, then send the message again."
        );
        git(&root.join("project"), &["branch", "-m", "bobbin", "other"]);
        assert_eq!(made(&root), worktree(&root));
        assert_eq!(
            why("error: unable to write file: No space left on device"),
            NoWorkspace::NoRoom
        );
    }
}
