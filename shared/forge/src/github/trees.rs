//! Shapes of folders and of comparisons.

use serde::Deserialize;

use crate::git::{EntryMode, ObjectId, TreeEntry};

/// A folder.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TreeBody {
    tree: Vec<EntryBody>,
    /// It has more entries than GitHub lists.
    #[serde(default)]
    pub(super) truncated: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct EntryBody {
    path: String,
    mode: String,
    sha: ObjectId,
}

impl TreeBody {
    /// Its entries; `None` if one is of an unknown kind.
    pub(super) fn entries(self) -> Option<Vec<TreeEntry>> {
        let entry = |body: EntryBody| {
            let mode = EntryMode::of(body.mode.as_bytes())?;
            Some(TreeEntry { mode, name: body.path.into_bytes(), id: body.sha })
        };
        self.tree.into_iter().map(entry).collect()
    }
}

/// A comparison of two commits.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ComparisonBody {
    pub(super) merge_base_commit: CommitBody,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct CommitBody {
    pub(super) sha: ObjectId,
}
