//! Clones the repository of a new sandbox, before the server starts in it.
//!
//! Promised: only https without credentials, from an address that the core built; an interrupted clone never counts as
//! done; the time is bounded; submodules and large-file storage are left out, and listed. Deliberately absent: private
//! repositories.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{LeftOut, Submodule};
use bobbin_core::tenant::repositories::apart;
use bobbin_core::tenant::settings::clone_address;
use bobbin_core::text::{one_line, shorten};
use bobbin_forge::git::ObjectId;
use bobbin_sandbox::ErrorKind;

use super::Sandboxes;

const CLONE_SCRIPT: &str =
    concat!(include_str!("left_out.sh"), include_str!("settle.sh"), include_str!("clone.sh"));
/// The variable that passes the address to the script.
const REPO: &str = "BOBBIN_REPO";
/// The variable that passes the branch, tag or commit.
const AT: &str = "BOBBIN_AT";
/// The variable that passes the sandbox's name.
pub(super) const OF: &str = "BOBBIN_OF";
/// Maximum number of left-out paths per kind; the script lists no more.
const LEFT_OUT_MAX: usize = 10;
/// Bytes of a submodule's address, and of its path.
const NAMED_BYTES_MAX: usize = 300;
/// Characters (UTF-16 units) of git's output that are passed on.
const SEEN_UNITS_MAX: usize = 200;

impl Sandboxes {
    pub(super) async fn clone_repository(
        &self,
        key: &SandboxKey,
        generation: u32,
        repo: &str,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let sandbox = self.find_running(key, generation).await?;
        let at = apart(repo).1.unwrap_or_default().to_owned();
        let environment = BTreeMap::from([
            (REPO.to_owned(), clone_address(repo)),
            (AT.to_owned(), at),
            (OF.to_owned(), self.name(key, generation)),
        ]);
        let timeout = Duration::from_millis(within_ms);
        let ran = self.provider.exec(&sandbox, CLONE_SCRIPT, &environment, timeout).await;
        match ran {
            Ok(ran) if ran.exit_code == 0 => Ok(Event::Cloned { left_out: left_out(&ran.text) }),
            Ok(ran) => Ok(Event::NotCloned { why: why(&ran.text) }),
            Err(error) if error.kind == ErrorKind::CommandTimeout => {
                Ok(Event::NotCloned { why: NotCloned::TooLong { within_ms } })
            }
            Err(error) => Err(error.failure),
        }
    }
}

/// Parses the script's list of left-out paths.
pub(super) fn left_out(text: &str) -> LeftOut {
    let listed = |kind: &str| {
        let lines = text.lines();
        let paths = lines.filter_map(|line| line.strip_prefix(kind)?.strip_prefix('\t'));
        paths.take(LEFT_OUT_MAX).map(str::to_owned).collect::<Vec<_>>()
    };
    let history = listed("history").first().and_then(|commits| commits.parse().ok());
    let named = listed("named").iter().filter_map(|line| named(line)).collect();
    let says = |word: &str| text.lines().any(|line| line == word);
    let (is_new, is_prebuilt) = (says("new"), says("prebuilt"));
    let (submodules, large) = (listed("submodule"), listed("large"));
    LeftOut { submodules, named, large, beside: Vec::new(), history, is_new, is_prebuilt }
}

/// Reads the script's line about a submodule: commit, address and path. The repository's makers wrote the last two.
fn named(line: &str) -> Option<Submodule> {
    let mut parts = line.splitn(3, '\t');
    let (commit, address, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && !part.eq_ignore_ascii_case(".git")
    };
    let is_plain =
        |text: &str| text.len() <= NAMED_BYTES_MAX && !text.chars().any(char::is_control);
    let is_usable = is_plain(address)
        && is_plain(path)
        && path.split('/').all(is_part)
        && commit.parse::<ObjectId>().is_ok();
    let owned = str::to_owned;
    is_usable.then(|| Submodule {
        path: owned(path),
        address: owned(address),
        commit: owned(commit),
    })
}

/// Classifies git's output (git 2.39; for a repository that does not exist, a host that wants a login asks for a user
/// name).
pub(super) fn why(words: &str) -> NotCloned {
    let says = |any: &[&str]| any.iter().any(|one| words.contains(one));
    if says(&["No space left on device", "Disk quota exceeded"]) {
        NotCloned::NoRoom
    } else if says(&["not found in upstream", "find remote ref", "not our ref", "unadvertised"]) {
        NotCloned::NoRef
    } else if says(&[
        "could not read Username",
        "Authentication failed",
        "not found",
        "does not appear to be a git repository",
        "does not exist",
        "returned error: 403",
        "returned error: 404",
    ]) {
        NotCloned::NotFound
    } else if says(&[
        "Could not resolve host",
        // Behind a proxy, the proxy could not connect.
        "CONNECT tunnel failed",
        "Failed to connect",
        "Couldn't connect",
        "Connection timed out",
        "Connection refused",
        "Network is unreachable",
        "Could not resolve proxy",
    ]) {
        NotCloned::Unreachable
    } else {
        // Git may print several lines of advice after the reason.
        let reason = words.lines().find(|line| line.starts_with("fatal:"));
        let last = || words.lines().rev().find(|line| !line.trim().is_empty());
        let seen = redact(&one_line(reason.or_else(last).unwrap_or("nothing")));
        NotCloned::Other { seen: shorten(&seen, SEEN_UNITS_MAX) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn empty_server_repository_is_no_clone() {
        let kept = tempfile::tempdir().unwrap();
        let project = kept.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let git = |arguments: &[&str]| {
            let person = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
            let mut command = Command::new("git");
            command.arg("-C").arg(&project).args(person).args(arguments);
            assert!(command.status().unwrap().success(), "{arguments:?}");
        };
        let cloned = || {
            let mut command = Command::new("sh");
            command.args(["-c", CLONE_SCRIPT]).current_dir(kept.path());
            command.env(REPO, "https://nowhere.invalid/a/b");
            let ran = command.stdin(Stdio::null()).output().unwrap();
            let refused = !ran.status.success();
            refused.then(|| why(&String::from_utf8_lossy(&ran.stdout)))
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "Start"]);
        assert_eq!(
            cloned(),
            Some(NotCloned::Other { seen: "an empty repository stands in its place".to_owned() })
        );
        // A repository that is empty at its origin counts as cloned, and so does one with files.
        git(&["remote", "add", "origin", "https://nowhere.invalid/a/b"]);
        assert_eq!(cloned(), None);
        git(&["remote", "remove", "origin"]);
        std::fs::write(project.join("a.txt"), "a").unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "files"]);
        assert_eq!(cloned(), None);
    }

    #[test]
    fn wanted_ref_is_checked_out() {
        let kept = tempfile::tempdir().unwrap();
        let origin = format!("file://{}/origin", kept.path().display());
        let sh = |script: &str, at: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(kept.path());
            for who in ["AUTHOR", "COMMITTER"] {
                command
                    .env(format!("GIT_{who}_NAME"), "A")
                    .env(format!("GIT_{who}_EMAIL"), "a@b.c");
            }
            command.env(REPO, &origin).env(AT, at).stdin(Stdio::null()).output().unwrap()
        };
        let made = "git init -q -b main origin && cd origin && git commit -q --allow-empty -m One && git tag v1 && git branch feature/x && git commit -q --allow-empty -m Two && git rev-parse v1";
        let made = sh(made, "");
        assert!(made.status.success(), "{made:?}");
        let commit = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        for (at, subject) in [("", "Two"), ("v1", "One"), ("feature/x", "One"), (&*commit, "One")] {
            let cloned = sh(CLONE_SCRIPT, at);
            assert!(cloned.status.success(), "{at}: {cloned:?}");
            let shown = sh("git -C project log -1 --format=%s && rm -r project", "");
            assert_eq!(String::from_utf8(shown.stdout).unwrap().trim(), subject, "{at}");
        }
        for at in ["v9", &"1".repeat(40)] {
            let missing = sh(CLONE_SCRIPT, at);
            assert_eq!(why(&String::from_utf8(missing.stdout).unwrap()), NotCloned::NoRef, "{at}");
        }
    }

    /// A builder's folder with a project that was set up, marked as a prebuild, and its origin.
    fn prebuild() -> tempfile::TempDir {
        let kept = tempfile::tempdir().unwrap();
        let made = "
            git init -q -b main origin && cd origin
            printf 'node_modules/\\n' >.gitignore && echo 1 >kept.txt && echo 1 >changed.txt && echo 1 >removed.txt
            git add . && git commit -q -m One";
        assert!(sh(kept.path(), made, "").status.success());
        let builder = kept.path().join("builder");
        std::fs::create_dir(&builder).unwrap();
        assert!(sh(&builder, CLONE_SCRIPT, "builder").status.success());
        // What a set-up leaves, and what it plants.
        let set_up = "
            mkdir -p project/node_modules && echo dep >project/node_modules/dep && echo mine >project/changed.txt
            printf '#!/bin/sh\\ntouch hooked\\n' | tee project/.git/hooks/post-checkout >project/.git/hooks/post-index-change
            chmod +x project/.git/hooks/* && git -C project config core.fsmonitor \"touch $PWD/watched\"
            touch -d 2001-01-01 project/kept.txt && git -C project -c core.fsmonitor=false -c core.hooksPath=/dev/null update-index -q --refresh";
        sh(&builder, set_up, "");
        assert!(sh(&builder, super::super::snapshots::MARK, "builder").status.success());
        let next = "
            cd origin && git rm -q removed.txt && echo 2 >changed.txt && echo 2 >new.txt
            git add . && git commit -q -m Two";
        assert!(sh(kept.path(), next, "").status.success());
        kept
    }

    /// Runs a script in a folder of a sandbox with this name.
    fn sh(folder: &std::path::Path, script: &str, of: &str) -> std::process::Output {
        let origin = folder.parent().unwrap().join("origin");
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder).stdin(Stdio::null());
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@b.c");
        }
        command.env(REPO, format!("file://{}", origin.display())).env(AT, "").env(OF, of);
        command.output().unwrap()
    }

    fn said(output: &std::process::Output) -> LeftOut {
        assert!(output.status.success(), "{output:?}");
        left_out(&String::from_utf8_lossy(&output.stdout))
    }

    #[test]
    fn checkout_comes_into_the_files_of_a_prebuild() {
        let kept = prebuild();
        assert!(sh(kept.path(), "cp -a builder thread", "").status.success());
        let thread = kept.path().join("thread");
        let brought = said(&sh(&thread, CLONE_SCRIPT, "thread"));
        assert!(brought.is_new && brought.is_prebuilt);
        let looked = sh(
            &thread,
            "cd project && ls -A | tr '\\n' ' ' && cat changed.txt node_modules/dep && date -r kept.txt +%Y && git log -1 --format=%s && git status --short && ls .git/hooks | grep -v sample; git config core.fsmonitor; ls ..",
            "",
        );
        assert_eq!(
            String::from_utf8(looked.stdout).unwrap(),
            ".git .gitignore changed.txt kept.txt new.txt node_modules 2\ndep\n2001\nTwo\nproject\n"
        );
        // A repeat finds it there, and tells whether its set-up has begun.
        let again = said(&sh(&thread, CLONE_SCRIPT, "thread"));
        assert!(again.is_new && again.is_prebuilt);
        sh(&thread, "mkdir -p .bobbin/set-up && echo thread >.bobbin/set-up/of", "");
        let again = said(&sh(&thread, CLONE_SCRIPT, "thread"));
        assert!(!again.is_new && again.is_prebuilt);
    }

    #[test]
    fn persons_snapshot_is_no_prebuild() {
        let kept = prebuild();
        assert!(sh(kept.path(), "cp -a builder thread", "").status.success());
        let thread = kept.path().join("thread");
        said(&sh(&thread, CLONE_SCRIPT, "thread"));
        let work = "echo work >thread/project/changed.txt && cp -a thread other";
        assert!(sh(kept.path(), work, "").status.success());
        let other = kept.path().join("other");
        let found = said(&sh(&other, CLONE_SCRIPT, "other"));
        assert!(found.is_new && !found.is_prebuilt);
        assert_eq!(std::fs::read_to_string(other.join("project/changed.txt")).unwrap(), "work\n");
    }

    #[test]
    fn link_replacing_a_prebuild_is_not_followed() {
        let kept = prebuild();
        let planted = "mkdir outside && echo theirs >outside/changed.txt && cp -a builder thread && rm -rf thread/project && ln -s ../outside thread/project";
        assert!(sh(kept.path(), planted, "").status.success());
        let thread = kept.path().join("thread");
        let brought = said(&sh(&thread, CLONE_SCRIPT, "thread"));
        assert!(brought.is_new && !brought.is_prebuilt);
        let project = thread.join("project");
        assert!(!project.is_symlink() && project.join("new.txt").exists());
        let outside = kept.path().join("outside/changed.txt");
        assert_eq!(std::fs::read_to_string(outside).unwrap(), "theirs\n");
    }

    #[test]
    fn only_unfetched_content_is_listed() {
        let kept = tempfile::tempdir().unwrap();
        let project = kept.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";
        std::fs::write(project.join(".gitattributes"), "*.bin filter=lfs\n").unwrap();
        std::fs::write(project.join("model one.bin"), pointer).unwrap();
        std::fs::write(project.join("fetched.bin"), b"\0\x01whole").unwrap();
        std::fs::write(project.join("a.txt"), pointer).unwrap();
        let script = format!(
            "git init -q && git -c filter.lfs.clean=cat -c filter.lfs.required=false add . && git update-index --add --cacheinfo 160000,{},lib/one && git remote add origin https://nowhere.invalid/a/b",
            "1".repeat(40)
        );
        let mut made = Command::new("sh");
        made.args(["-c", &script]).current_dir(&project);
        assert!(made.status().unwrap().success());
        let mut command = Command::new("sh");
        command.args(["-c", CLONE_SCRIPT]).current_dir(kept.path());
        command.env(REPO, "https://nowhere.invalid/a/b");
        let ran = command.stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        assert_eq!(
            left_out(&String::from_utf8_lossy(&ran.stdout)),
            LeftOut {
                submodules: vec!["lib/one".to_owned()],
                named: Vec::new(),
                large: vec!["model one.bin".to_owned()],
                beside: Vec::new(),
                history: None,
                is_new: false,
                is_prebuilt: false,
            }
        );
    }

    #[test]
    fn git_errors_are_classified() {
        for (words, expected) in [
            (
                "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
                NotCloned::NotFound,
            ),
            ("fatal: repository 'https://x/y/' not found", NotCloned::NotFound),
            ("fatal: Remote branch v9 not found in upstream origin", NotCloned::NoRef),
            ("fatal: remote error: upload-pack: not our ref 1111111", NotCloned::NoRef),
            (
                "fatal: unable to access 'https://nowhere.invalid/a/b/': Could not resolve host: nowhere.invalid",
                NotCloned::Unreachable,
            ),
            (
                "error: file write error: No space left on device\nfatal: unable to write",
                NotCloned::NoRoom,
            ),
            (
                "Cloning\nfatal: the remote end hung up\n\nPlease make sure you have the correct access rights\n",
                NotCloned::Other { seen: "fatal: the remote end hung up".to_owned() },
            ),
        ] {
            assert_eq!(why(words), expected, "{words}");
        }
    }
}
