//! A turn's changes in a sandbox without an agent that reports them.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::changes::{ChangedFile, Changes, How};

use super::workspace::WORKSPACE;
use super::{Sandboxes, WorkTarget};

const SCRIPT: &str = include_str!("changes.sh");
/// Succeeds if git lists a name that is not UTF-8: grep finds no characters in such a name.
const NAMES_SCRIPT: &str = r#"cd "$BOBBIN_WORKSPACE" && git ls-files -z --cached --others --exclude-standard | LC_ALL=C.UTF-8 grep -qzaxv '.*'"#;
/// Longest time for that script.
const NAMES_MS_MAX: u64 = 10_000;
/// Longest time for the script, which reads every changed file.
const MS_MAX: u64 = 60_000;
/// Maximum number of files reported.
const FILES_MAX: usize = 1_000;
/// Maximum bytes of the patch; files beyond that are only counted.
const BYTES_MAX: usize = 400_000;

impl Sandboxes {
    /// The changes of the turn with this prompt.
    pub(super) async fn find_changes(
        &self,
        target: WorkTarget<'_>,
        message: &str,
    ) -> Result<Event, Failure> {
        let sandbox = self.find(target.sandbox, target.generation).await?;
        let environment = [
            ("BOBBIN_TURN".to_owned(), message.to_owned()),
            ("BOBBIN_FILES".to_owned(), FILES_MAX.to_string()),
            ("BOBBIN_BYTES".to_owned(), BYTES_MAX.to_string()),
        ]
        .into();
        let timeout = Duration::from_millis(MS_MAX);
        let ran = self
            .provider
            .exec(&sandbox, SCRIPT, &environment, timeout)
            .await
            .map_err(|e| e.failure)?;
        Ok(Event::Changed(match ran.exit_code {
            0 => told(&ran.text),
            _ => Changes::unread(),
        }))
    }
}

impl Sandboxes {
    /// Whether a file of the workspace has a name that is not UTF-8. False if that cannot be determined.
    pub(super) async fn has_odd_name(&self, target: WorkTarget<'_>) -> bool {
        let Ok(sandbox) = self.find(target.sandbox, target.generation).await else {
            return false;
        };
        let environment = [(WORKSPACE.to_owned(), target.workspace.path().to_owned())].into();
        let within = Duration::from_millis(NAMES_MS_MAX);
        let ran = self.provider.exec(&sandbox, NAMES_SCRIPT, &environment, within).await;
        ran.is_ok_and(|ran| ran.exit_code == 0)
    }
}

/// Parses the script's output, which may have been cut in the middle.
fn told(text: &str) -> Changes {
    // There is no repository to compare with.
    if text.is_empty() {
        return Changes::default();
    }
    let part = |begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin)?;
        Some(if end.is_empty() { rest } else { rest.split_once(end)?.0 })
    };
    let (Some(counts), Some(files), Some(patch)) = (
        part("=== counts\n", "=== files\n"),
        part("=== files\n", "=== patch\n"),
        part("=== patch\n", ""),
    ) else {
        return Changes::unread();
    };
    let mut patches = pieces(patch);
    // The last one may have been cut.
    if patch.len() >= BYTES_MAX {
        patches.pop();
    }
    let mut patches = patches.into_iter();
    let changes = counts.lines().zip(files.lines());
    let files = changes
        .filter_map(|(counts, file)| {
            let mut patch = patches.next().unwrap_or_default();
            let mut counts = counts.split('\t').map(|count| count.parse().unwrap_or(0));
            let (status, path) = file.split_once('\t')?;
            if status == "T" {
                // A file replaced by a link, or the reverse, has two: a deletion and a creation.
                patches.next();
                patch = "";
            }
            Some(ChangedFile {
                file: path.to_owned(),
                how: match status {
                    "A" => How::Added,
                    "D" => How::Deleted,
                    _ => How::Modified,
                },
                added: counts.next()?,
                removed: counts.next()?,
                // A binary file has no patch.
                patch: if patch.contains("\n@@ ") { patch.to_owned() } else { String::new() },
            })
        })
        .collect();
    Changes { files, unknown: false }
}

/// The patch of each file. Every line of a file's content starts with a sign.
fn pieces(patch: &str) -> Vec<&str> {
    const HEAD: &str = "diff --git ";
    let begins = |at: &(usize, &str)| {
        (at.0 == 0 || patch.as_bytes().get(at.0 - 1) == Some(&b'\n')).then_some(at.0)
    };
    let starts: Vec<usize> = patch.match_indices(HEAD).filter_map(|at| begins(&at)).collect();
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(from, to)| &patch[*from..to]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn shell(root: &Path, script: &str, turn: &str) -> String {
        let ran = Command::new("sh")
            .args(["-c", script])
            .current_dir(root)
            .env("BOBBIN_TURN", turn)
            .env("BOBBIN_FILES", FILES_MAX.to_string())
            .env("BOBBIN_BYTES", BYTES_MAX.to_string())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }

    fn changed(root: &Path, turn: &str) -> Vec<String> {
        let line = |change: ChangedFile| {
            let ChangedFile { file, how, added, removed, patch } = change;
            format!("{file} {how:?} +{added} -{removed} {}", patch.contains("\n@@ "))
        };
        let told = told(&shell(root, SCRIPT, turn));
        assert!(!told.unknown);
        told.files.into_iter().map(line).collect()
    }

    fn project(root: &Path) {
        let made = "mkdir project && cd project && git init -q . && printf 'one\ntwo\n' >a.txt && printf x >gone.txt && git add . && git -c user.name=A -c user.email=a@b commit -qm Start";
        shell(root, made, "");
    }

    #[test]
    fn turn_has_changes_since_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        project(root);
        assert_eq!(changed(root, "t0"), Vec::<String>::new());
        let work = "cd project && printf 'one\nthree\n' >a.txt && rm gone.txt && mkdir 'a b' && printf 'n\n' >'a b/é.txt' && git add . && git -c user.name=A -c user.email=a@b commit -qm Work && printf '\\000\\001' >image.bin";
        shell(root, work, "");
        let first = [
            "a b/é.txt Added +1 -0 true",
            "a.txt Modified +1 -1 true",
            "gone.txt Deleted +0 -1 true",
            "image.bin Added +0 -0 false",
        ];
        assert_eq!(changed(root, "t1"), first);
        // A delivery that died before its event was recorded asks again.
        assert_eq!(changed(root, "t1"), first);
        shell(root, "cd project && printf 'four\n' >>a.txt", "");
        assert_eq!(changed(root, "t2"), ["a.txt Modified +1 -0 true"]);
        assert_eq!(shell(root, "cd project && git status --short", ""), " M a.txt\n?? image.bin\n");
    }

    #[test]
    fn repository_without_a_commit_hides_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        project(root);
        shell(root, "cd project && git init -q emb && touch emb/x", "");
        shell(root, "cd project && printf 'one\nthree\n' >a.txt && rm gone.txt", "");
        let expected = ["a.txt Modified +1 -1 true", "gone.txt Deleted +0 -1 true"];
        assert_eq!(changed(root, "t1"), expected);
    }

    #[test]
    fn failed_look_keeps_what_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        project(root);
        // Git adds no file whose line ends it would change.
        let config = "git config core.autocrlf input && git config core.safecrlf true";
        shell(root, &format!("cd project && {config} && printf 'three\r\n' >a.txt"), "");
        let ran = Command::new("sh").args(["-c", SCRIPT]).current_dir(root).output().unwrap();
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        shell(root, "cd project && ! git rev-parse -q --verify refs/bobbin/last", "");
    }

    #[test]
    fn replaced_file_keeps_others_patches() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        project(root);
        assert_eq!(changed(root, "t0"), Vec::<String>::new());
        for (turn, work) in [
            ("t1", "cd project && ln -sf gone.txt a.txt && printf xy >gone.txt"),
            ("t2", "cd project && rm a.txt && printf 'one\n' >a.txt && printf xyz >gone.txt"),
        ] {
            shell(root, work, "");
            let files = told(&shell(root, SCRIPT, turn)).files;
            let heads: Vec<_> =
                files.iter().map(|one| (one.file.as_str(), one.patch.lines().next())).collect();
            let expected =
                [("a.txt", None), ("gone.txt", Some("diff --git a/gone.txt b/gone.txt"))];
            assert_eq!(heads, expected, "{turn}");
        }
    }

    #[test]
    fn folder_without_repository_has_no_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        shell(root, "git init -q . && mkdir project && touch project/a", "");
        assert_eq!(changed(root, "t1"), Vec::<String>::new());
    }

    #[test]
    fn head_like_line_begins_no_file() {
        let patch = "diff --git a/x b/x\n@@ -0,0 +1 @@\n+diff --git a/y b/y\ndiff --git a/z b/z\n@@ -1 +1 @@\n";
        assert_eq!(pieces(patch).len(), 2);
    }
}
