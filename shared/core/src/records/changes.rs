//! File changes of a turn: the numbers for its card, and one patch that `git apply` takes.
//!
//! Promised: the patch is bounded, cut between files, and says what it leaves out. Deliberately absent: the contents of
//! binary files, which OpenCode does not report.

use crate::records::usage::Usage;
use crate::text::{one_line, shorten};

/// Files that a summary lists.
const SUMMARY_FILES_MAX: usize = 20;
/// Characters (UTF-16 units) of a file's path in a summary.
const PATH_UNITS_MAX: usize = 80;

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// The turn created the file.
    Added,
    /// The turn deleted the file.
    Deleted,
    /// The file existed before and still exists.
    Modified,
}

/// A turn's changes to one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangedFile {
    /// Path relative to the project.
    pub file: String,
    /// Whether it was created, changed or deleted.
    pub how: How,
    /// Lines that only the new version has.
    pub added: u64,
    /// Lines that only the old version has.
    pub removed: u64,
    /// A unified diff; empty if there is no text to compare.
    pub patch: String,
}

/// A turn's file changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Changes {
    /// The changed files, in the order in which the agent lists them.
    pub files: Vec<ChangedFile>,
    /// There may be more changes: not all could be read.
    pub unknown: bool,
}

impl Changes {
    /// The usage with the numbers of these changes.
    #[must_use]
    pub fn counted(&self, usage: Usage) -> Usage {
        let sum = |part: fn(&ChangedFile) -> u64| {
            self.files.iter().map(part).fold(0, u64::saturating_add)
        };
        Usage {
            files: u32::try_from(self.files.len()).unwrap_or(u32::MAX),
            added: sum(|change| change.added),
            removed: sum(|change| change.removed),
            files_unknown: self.unknown,
            ..usage
        }
    }

    /// Changes that could not be read at all.
    #[must_use]
    pub const fn unread() -> Self {
        Self { files: Vec::new(), unknown: true }
    }

    /// All changes as one patch of at most `bytes_max` bytes, below a summary that `git apply` skips. `None` if nothing
    /// was changed.
    #[must_use]
    pub fn patch(&self, bytes_max: usize) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        let mut out = format!("{}\n", self.summary());
        let mut body = String::new();
        let mut left_out = 0;
        for change in &self.files {
            let piece = change.as_git();
            // Leaves room for the line that counts what is left out.
            if out.len() + body.len() + piece.len() + 100 > bytes_max {
                left_out += 1;
            } else {
                body.push_str(&piece);
            }
        }
        if left_out > 0 {
            out.push_str(&format!(
                "(The changes in {left_out} of these files are too long to keep here.)\n"
            ));
        }
        out.push('\n');
        out.push_str(&body);
        (out.len() <= bytes_max).then_some(out)
    }

    /// One line for all files, then one line per file.
    #[must_use]
    pub fn summary(&self) -> String {
        let usage = self.counted(Usage::default());
        let mut lines = Vec::from_iter(in_short(&usage));
        lines.extend(self.files.iter().take(SUMMARY_FILES_MAX).map(ChangedFile::line));
        let more = self.files.len().saturating_sub(SUMMARY_FILES_MAX);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        lines.join("\n")
    }
}

impl ChangedFile {
    fn line(&self) -> String {
        let path = shorten(&one_line(&self.file), PATH_UNITS_MAX);
        let how = match (self.how, self.patch.is_empty()) {
            (How::Added, false) => "new, ",
            (How::Added, true) => "new, no text to show, ",
            (How::Deleted, _) => "deleted, ",
            (How::Modified, false) => "",
            (How::Modified, true) => "no text to show, ",
        };
        format!("  {path} ({how}+{} -{})", self.added, self.removed)
    }

    /// In git's format: OpenCode's own header does not mark new and deleted files.
    fn as_git(&self) -> String {
        let Some(hunks) = self.patch.find("\n@@ ").map(|at| &self.patch[at + 1..]) else {
            return String::new();
        };
        let file = one_line(&self.file);
        // Git ends a name that contains blanks with a tab.
        let tab = if file.contains(' ') { "\t" } else { "" };
        let (mode, old, new) = match self.how {
            How::Added => {
                ("new file mode 100644\n", "/dev/null".to_owned(), format!("b/{file}{tab}"))
            }
            How::Deleted => {
                ("deleted file mode 100644\n", format!("a/{file}{tab}"), "/dev/null".to_owned())
            }
            How::Modified => ("", format!("a/{file}{tab}"), format!("b/{file}{tab}")),
        };
        let end = if hunks.ends_with('\n') { "" } else { "\n" };
        format!("diff --git a/{file} b/{file}\n{mode}--- {old}\n+++ {new}\n{hunks}{end}")
    }
}

/// `3 files changed, +12 -4`. `None` if nothing was changed.
#[must_use]
pub fn in_short(usage: &Usage) -> Option<String> {
    let files = match (usage.files, usage.files_unknown) {
        (0, false) => return None,
        (0, true) => return Some("changed files unknown".to_owned()),
        (1, false) => "1 file".to_owned(),
        (1, true) => "at least 1 file".to_owned(),
        (n, false) => format!("{n} files"),
        (n, true) => format!("at least {n} files"),
    };
    Some(format!("{files} changed, +{} -{}", usage.added, usage.removed))
}

/// Splits a result of [`Changes::patch`] into the summary and the patch below it.
#[must_use]
pub fn parts(patch: &str) -> (&str, &str) {
    patch.split_once("\n\n").map_or((patch.trim_end(), ""), |(summary, body)| (summary, body))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn change(file: &str, how: How, body: &str) -> ChangedFile {
        let patch = format!("Index: {file}\n===\n--- {file}\t\n+++ {file}\t\n{body}");
        ChangedFile {
            file: file.to_owned(),
            how,
            added: 1,
            removed: u64::from(how != How::Added),
            patch: if body.is_empty() { String::new() } else { patch },
        }
    }

    fn three() -> Changes {
        Changes {
            files: vec![
                change("src/a b.rs", How::Added, "@@ -0,0 +1,1 @@\n+one\n"),
                change(
                    "old.txt",
                    How::Deleted,
                    "@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n",
                ),
                change("logo.png", How::Modified, ""),
            ],
            unknown: false,
        }
    }

    #[test]
    fn patch_is_git_format_with_summary() {
        assert_eq!(
            three().patch(10_000).expect("changes"),
            "3 files changed, +3 -2\n  src/a b.rs (new, +1 -0)\n  old.txt (deleted, +1 -1)\n  logo.png (no text to show, +1 -1)\n\n\
             diff --git a/src/a b.rs b/src/a b.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/a b.rs\t\n@@ -0,0 +1,1 @@\n+one\n\
             diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        );
        assert_eq!(Changes::default().patch(10_000), None);
    }

    #[test]
    fn long_patch_drops_whole_files() {
        let long = format!("@@ -0,0 +1,9 @@\n{}", "+line\n".repeat(200));
        let changes = Changes {
            files: vec![
                change("long.txt", How::Added, &long),
                change("short.txt", How::Added, "@@ -0,0 +1,1 @@\n+one\n"),
            ],
            unknown: false,
        };
        let patch = changes.patch(600).expect("changes");
        assert!(patch.len() <= 600);
        assert!(patch.contains("(The changes in 1 of these files are too long to keep here.)"));
        assert!(patch.contains("+++ b/short.txt") && !patch.contains("+++ b/long.txt"));
        let (summary, body) = parts(&patch);
        assert!(summary.starts_with("2 files changed, +2 -0\n") && body.starts_with("diff --git"));
    }

    #[test]
    fn usage_counts_the_changed_files() {
        let usage = three().counted(Usage { tokens: 7, ..Usage::default() });
        assert_eq!((usage.tokens, usage.files, usage.added, usage.removed), (7, 3, 3, 2));
        assert_eq!(in_short(&usage).unwrap(), "3 files changed, +3 -2");
    }

    #[test]
    fn unread_changes_are_reported_unknown() {
        let short = |changes: &Changes| in_short(&changes.counted(Usage::default()));
        assert_eq!(short(&Changes::default()), None);
        assert_eq!(short(&Changes::unread()).unwrap(), "changed files unknown");
        let some = Changes { unknown: true, ..three() };
        assert_eq!(short(&some).unwrap(), "at least 3 files changed, +3 -2");
        let patch = some.patch(10_000).unwrap();
        assert!(patch.starts_with("at least 3 files changed"), "{patch}");
    }
}
