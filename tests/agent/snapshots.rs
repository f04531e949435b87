//! A run's changes of files: the project's tree after each of its steps, in a repository beside the project's own, and
//! the difference of two of them, as the real one computes it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

/// The project's files at different times.
pub struct Snapshots {
    /// The repository that holds them.
    repository: PathBuf,
    project: PathBuf,
}

impl Snapshots {
    /// The snapshots of a project that is a git repository; `None` for another one.
    pub fn of(project: &Path, data: Option<&Path>) -> Option<Self> {
        let name = project.to_string_lossy().replace('/', "-");
        let repository = data?.join("snapshot").join(name);
        let is_there = project.join(".git").exists();
        is_there.then(|| Self { repository, project: project.to_owned() })
    }

    /// The tree of all files as they are now.
    pub async fn now(&self) -> Option<String> {
        if !self.repository.exists() {
            std::fs::create_dir_all(&self.repository).ok()?;
            self.git(&["init", "-q"]).await?;
            // Files that the project ignores are not changes.
            let left_out = self.project.join(".git/info/exclude");
            let _ = std::fs::copy(left_out, self.repository.join("info/exclude"));
        }
        self.git(&["add", "--all", "."]).await?;
        let tree = self.git(&["write-tree"]).await?;
        Some(tree.trim().to_owned())
    }

    /// Names of the files that differ between two trees, each with its change: `A`, `D` or `M`.
    async fn between(&self, before: &str, after: &str) -> Option<Vec<(String, String)>> {
        let told =
            self.git(&["diff", "--no-renames", "--name-status", "-z", before, after]).await?;
        let mut words = told.split('\0').map(str::to_owned);
        Some(std::iter::from_fn(|| words.next().zip(words.next())).collect())
    }

    /// Absolute paths of the files that differ between two trees.
    pub async fn paths(&self, before: &str, after: &str) -> Vec<String> {
        let files = self.between(before, after).await.unwrap_or_default();
        let path = |(_, file): &(String, String)| self.project.join(file);
        files.iter().map(|file| path(file).to_string_lossy().into_owned()).collect()
    }

    /// The files that differ between two trees, as `GET /session/{id}/diff` tells of them.
    pub async fn sum(&self, before: &str, after: &str) -> Value {
        let mut sum = Vec::new();
        for (how, file) in self.between(before, after).await.unwrap_or_default() {
            let words = ["diff", "--no-renames", before, after, "--", &file];
            let patch = self.git(&words).await.unwrap_or_default();
            let lines = |mark: char| {
                let head = if mark == '+' { "+++ " } else { "--- " };
                patch
                    .lines()
                    .filter(|line| line.starts_with(mark) && !line.starts_with(head))
                    .count()
            };
            let status = match how.as_str() {
                "A" => "added",
                "D" => "deleted",
                _ => "modified",
            };
            sum.push(json!({"file": file, "patch": patch, "additions": lines('+'), "deletions": lines('-'), "status": status}));
        }
        sum.into()
    }

    async fn git(&self, words: &[&str]) -> Option<String> {
        let ran = Command::new("git")
            .arg("--git-dir")
            .arg(&self.repository)
            .arg("--work-tree")
            .arg(&self.project)
            .args(["-c", "core.quotepath=false", "-c", "gc.auto=0"])
            .args(words)
            .current_dir(&self.project)
            .kill_on_drop(true)
            .output()
            .await
            .ok()?;
        ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
    }
}
