//! File changes of turns: the directory at a turn's start, compared with the one at its end.
//!
//! Promised: independent of the agent, and without touching anything visible in a person's repository. Bounded in
//! files, bytes and time; beyond a bound the turn's changes are unknown, with no other effect. A turn that was cut off
//! has none.

mod snapshot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::limits::{CHANGES_KEPT, CHANGES_WAIT_MS_MAX, LOOK_MS};
use crate::names::file_name;
use snapshot::{Snapshots, Unknown};

/// A turn's change to a file, in OpenCode's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileChange {
    /// Path in the repository, or in the session's directory if that is in none.
    pub(crate) file: String,
    pub(crate) status: ChangeStatus,
    /// Lines.
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// In git's format; empty if there is no text to compare, or too much.
    pub(crate) patch: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeStatus {
    Added,
    Deleted,
    Modified,
}

/// The changes of all sessions' turns.
#[derive(Debug)]
pub(crate) struct RecordedChanges {
    state_dir: PathBuf,
    /// By session; locked while its files are read.
    runs: Mutex<HashMap<String, Arc<Mutex<Option<ChangedTurns>>>>>,
}

/// Consecutive turns without a pause.
#[derive(Debug)]
struct ChangedTurns {
    snapshots: Snapshots,
    /// Each turn, with the tree at its start.
    turns: Vec<(String, String)>,
    /// The last one has not ended.
    is_open: bool,
}

impl ChangedTurns {
    async fn of(directory: &Path, folder: &Path, state_dir: &Path) -> Result<Self, Unknown> {
        remove(folder);
        Ok(Self {
            snapshots: Snapshots::of(directory, folder, state_dir).await?,
            turns: Vec::new(),
            is_open: false,
        })
    }

    async fn begin(mut self, turn: &str) -> Result<Self, Unknown> {
        let tree = self.snapshots.take().await?;
        self.turns.push((turn.to_owned(), tree));
        self.is_open = true;
        Ok(self)
    }
}

impl RecordedChanges {
    /// In the daemon's folder. Comparisons of an earlier start are forgotten.
    pub(crate) fn new(state_dir: &Path) -> Self {
        let changes = Self { state_dir: state_dir.to_owned(), runs: Mutex::default() };
        let sessions = std::fs::read_dir(state_dir.join("changes"));
        for session in sessions.into_iter().flatten().flatten() {
            remove(&session.path().join("run"));
        }
        changes
    }

    fn folder(&self, session: &str) -> PathBuf {
        self.state_dir.join("changes").join(file_name(session))
    }

    /// File of a turn's changes.
    fn kept(&self, session: &str, turn: &str) -> PathBuf {
        let digest = Sha256::digest(turn.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder(session).join(format!("{hex}.json"))
    }

    async fn run(&self, session: &str) -> Arc<Mutex<Option<ChangedTurns>>> {
        let mut runs = self.runs.lock().await;
        runs.entry(session.to_owned()).or_default().clone()
    }

    /// Takes a snapshot before a turn begins. `follows`: it directly follows another turn, whose changes extend to the
    /// end of this one, which was sent into it.
    pub(crate) async fn begin(&self, session: &str, turn: &str, directory: &str, follows: bool) {
        let run = self.run(session).await;
        let mut run = run.lock().await;
        let folder = self.folder(session).join("run");
        let before = run.take().filter(|_| follows);
        let begun = match before {
            Some(before) => before.begin(turn).await,
            None => match ChangedTurns::of(Path::new(directory), &folder, &self.state_dir).await {
                Ok(fresh) => fresh.begin(turn).await,
                Err(unknown) => Err(unknown),
            },
        };
        match begun {
            Ok(begun) => *run = Some(begun),
            Err(unknown) => self.give_up(session, turn, &unknown),
        }
    }

    /// Compares once the session's running turn has ended; does nothing if already done.
    pub(crate) async fn end(&self, session: &str) {
        let run = self.run(session).await;
        let mut run = run.lock().await;
        let Some(mut ended) = run.take() else {
            return;
        };
        if std::mem::take(&mut ended.is_open)
            && let Err(unknown) = self.compare(session, &mut ended).await
        {
            let turn = ended.turns.last().map_or("", |(turn, _)| turn);
            self.give_up(session, turn, &unknown);
            return;
        }
        *run = Some(ended);
    }

    async fn compare(&self, session: &str, run: &mut ChangedTurns) -> Result<(), Unknown> {
        let end = run.snapshots.take().await?;
        for (turn, start) in &run.turns {
            let changes = run.snapshots.compare(start, &end).await?;
            let json = serde_json::to_vec(&changes).map_err(std::io::Error::other)?;
            let kept = self.kept(session, turn);
            let written = kept.with_extension("new");
            tokio::fs::write(&written, json).await?;
            tokio::fs::rename(&written, &kept).await?;
        }
        let folder = self.folder(session);
        let forgotten = tokio::task::spawn_blocking(move || forget_oldest(&folder)).await;
        forgotten.map_err(std::io::Error::other)??;
        Ok(())
    }

    fn give_up(&self, session: &str, turn: &str, unknown: &Unknown) {
        tracing::warn!(session, turn, %unknown, "the changes of the turn are unknown");
        remove(&self.folder(session).join("run"));
    }

    /// Changes of an ended turn; `None` if unknown. Waits while they are computed.
    pub(crate) async fn of(&self, session: &str, turn: &str) -> Option<Vec<FileChange>> {
        let waits = Duration::from_millis(CHANGES_WAIT_MS_MAX);
        // Times out if the agent takes this long to be ended.
        let _ = tokio::time::timeout(waits, self.found_out(session, turn)).await;
        let json = tokio::fs::read(self.kept(session, turn)).await.ok()?;
        serde_json::from_slice(&json).ok()
    }

    async fn found_out(&self, session: &str, turn: &str) {
        let run = self.run(session).await;
        while run
            .lock()
            .await
            .as_ref()
            .is_some_and(|run| run.is_open && run.turns.iter().any(|(running, _)| running == turn))
        {
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }
}

fn remove(folder: &Path) {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "leftovers of file snapshots cannot be removed");
        }
        _ => {}
    }
}

/// Keeps the changes of a session's latest turns.
fn forget_oldest(folder: &Path) -> std::io::Result<()> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            kept.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    kept.sort();
    let over = kept.len().saturating_sub(CHANGES_KEPT);
    for (_, path) in kept.into_iter().take(over) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
