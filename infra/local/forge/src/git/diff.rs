//! The differences between two commits, file by file.

use super::Git;
use crate::api_error::ApiError;
use crate::limits::{FILES_MAX, PATCH_CHARS_MAX};

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) former_path: Option<String>,
    /// `added`, `removed`, `modified`, `renamed` or `changed`.
    pub(crate) status: &'static str,
    pub(crate) sha: String,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// `None` of a binary file, or if it is too long.
    pub(crate) patch: Option<String>,
}

impl Git {
    /// The changed files, by path; at most [`FILES_MAX`].
    pub(crate) async fn changes(&self, base: &str, head: &str) -> Result<Vec<Change>, ApiError> {
        let with = |kind: &'static str| ["diff-tree", "-r", "-M", "-z", kind, base, head];
        let raw = self.bytes(&with("--raw")).await?;
        let counts = self.bytes(&with("--numstat")).await?;
        let patch = self.patch(base, head).await?;
        let mut changes = changes(&String::from_utf8_lossy(&raw));
        let counts = numbers(&String::from_utf8_lossy(&counts));
        let patches = split(&patch);
        for (index, change) in changes.iter_mut().enumerate() {
            (change.additions, change.deletions) = counts.get(index).copied().unwrap_or_default();
            change.patch = patches.get(index).and_then(|text| hunks(text));
        }
        changes.truncate(FILES_MAX);
        Ok(changes)
    }

    /// The whole difference as text.
    pub(crate) async fn patch(&self, base: &str, head: &str) -> Result<String, ApiError> {
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv"];
        let arguments = ["diff-tree", "-r", "-M", "-p"].into_iter().chain(plain);
        let arguments: Vec<&str> = arguments.chain([base, head]).collect();
        Ok(String::from_utf8_lossy(&self.bytes(&arguments).await?).into_owned())
    }
}

fn changes(raw: &str) -> Vec<Change> {
    let mut fields = raw.split('\0');
    let mut found = Vec::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let parts: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [_, _, old, new, word] = parts.as_slice() else { break };
        let status = match word.as_bytes().first() {
            Some(b'A') => "added",
            Some(b'D') => "removed",
            Some(b'R') => "renamed",
            Some(b'T') => "changed",
            _ => "modified",
        };
        let is_renamed = status == "renamed";
        let (former, path) = if is_renamed {
            (Some(path.to_owned()), fields.next().unwrap_or_default())
        } else {
            (None, path)
        };
        let sha = if status == "removed" { old } else { new };
        found.push(Change {
            path: path.to_owned(),
            former_path: former,
            status,
            sha: (*sha).to_owned(),
            additions: 0,
            deletions: 0,
            patch: None,
        });
    }
    found
}

/// Added and removed lines of each file; a binary one has none.
fn numbers(text: &str) -> Vec<(u64, u64)> {
    let mut fields = text.split('\0');
    let mut found = Vec::new();
    while let Some(line) = fields.next() {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let [added, removed, path] = parts.as_slice() else { break };
        found.push((added.parse().unwrap_or(0), removed.parse().unwrap_or(0)));
        // A renamed file's names come after it, each on its own.
        if path.is_empty() {
            fields.next();
            fields.next();
        }
    }
    found
}

/// The parts of a patch, one for each file. A line of a hunk never begins like a part.
fn split(patch: &str) -> Vec<&str> {
    const BEGIN: &str = "diff --git ";
    let mut starts: Vec<usize> =
        patch.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if patch.starts_with(BEGIN) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| &patch[start..end]).collect()
}

fn hunks(part: &str) -> Option<String> {
    let at = part.find("\n@@ ")?;
    let text = part[at + 1..].trim_end_matches('\n');
    (text.chars().count() <= PATCH_CHARS_MAX).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_own_numbers_and_hunks() {
        let raw = ":100644 100644 aa bb M\0a.txt\0:100644 100644 cc dd R090\0old\0new\0:000000 100644 00 ee A\0c.bin\0";
        let counted = "1\t2\ta.txt\x003\t0\t\0old\0new\0-\t-\tc.bin\0";
        let read = changes(raw);
        let told =
            read.iter().map(|one| (one.path.as_str(), one.status, one.former_path.as_deref()));
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                ("a.txt", "modified", None),
                ("new", "renamed", Some("old")),
                ("c.bin", "added", None)
            ]
        );
        assert_eq!(numbers(counted), [(1, 2), (3, 0), (0, 0)]);
    }

    #[test]
    fn text_that_looks_like_a_part_divides_nothing() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+diff --git a/y b/y\ndiff --git a/z b/z\nBinary files differ\n";
        let parts = split(patch);
        assert_eq!(parts.len(), 2);
        assert_eq!(hunks(parts[0]).as_deref(), Some("@@ -1 +1 @@\n-a\n+diff --git a/y b/y"));
        assert_eq!(hunks(parts[1]), None);
    }
}
