//! Results of a run in its sandbox: changed files, and files to be shown to people.
//!
//! Promised: only regular files below the folder are listed, links are neither followed nor listed; no file is read
//! beyond its bound. Deliberately absent: which of them are shown, and where.

use std::time::Duration;

use bobbin_agent::Reported;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::AgentSessionId;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::artifacts::{Artifact, listed};
use bobbin_core::records::changes::Changes;
use bobbin_sandbox::{ErrorKind, ProviderError};

use super::workspace::WORKSPACE;
use super::{Sandboxes, WorkTarget};

/// The script that lists the folder; its first line is prepended.
const LIST_SCRIPT: &str = include_str!("artifacts.sh");
/// Longest time for the script, which reads every file once for its checksum.
const LIST_MS_MAX: u64 = 30_000;

impl Sandboxes {
    /// The changes of the turn with this prompt: the agent reports them, if there is one.
    pub(super) async fn read_changes(
        &self,
        target: WorkTarget<'_>,
        session: &AgentSessionId,
        message: &str,
    ) -> Result<Event, Failure> {
        if !self.runtime.facts().has_server {
            return self.find_changes(target, message).await;
        }
        let agent = self.agent_in(target).await?;
        let reported = agent.changes(session, message).await;
        let Reported { changes, may_lack } = reported.map_err(|e| e.failure)?;
        Ok(Event::Changed(if may_lack && self.has_odd_name(target).await {
            Changes::unread()
        } else {
            changes
        }))
    }

    pub(super) async fn list_artifacts(&self, target: WorkTarget<'_>) -> Result<Event, Failure> {
        let sandbox = self.find(target.sandbox, target.generation).await?;
        let script = format!("bytes={}\n{LIST_SCRIPT}", self.settings.limits.files.artifact_bytes);
        let timeout = Duration::from_millis(LIST_MS_MAX);
        let environment = [(WORKSPACE.to_owned(), target.workspace.path().to_owned())].into();
        let ran = self
            .provider
            .exec(&sandbox, &script, &environment, timeout)
            .await
            .map_err(|e| e.failure)?;
        Ok(Event::Listed(listed(&ran.text)))
    }

    /// The bytes of a file to be shown, or why it cannot be, in words that finish the sentence "it …".
    ///
    /// # Errors
    /// Those words.
    pub async fn fetch_artifact(
        &self,
        target: WorkTarget<'_>,
        file: &Artifact,
    ) -> Result<Vec<u8>, String> {
        let unread = |error: ProviderError| match error.kind {
            ErrorKind::NotFound => "no longer exists".to_owned(),
            _ => {
                tracing::warn!(event = "artifact.unread", %error, "a file to be shown could not be read");
                "could not be read from the sandbox".to_owned()
            }
        };
        let name = self.name(target.sandbox, target.generation);
        let sandbox = self.provider.observe(&name).await.map_err(unread)?;
        let (at, folder) = (target.workspace.path(), bobbin_core::records::artifacts::FOLDER);
        let path = format!("{at}/{folder}/{}", file.path);
        let bytes = self.provider.get_file(&sandbox, &path).await.map_err(unread)?;
        // It may have grown since it was listed.
        if bytes.len() as u64 > self.settings.limits.files.artifact_bytes {
            return Err("has become too large".to_owned());
        }
        if bytes.is_empty() {
            return Err("has become empty".to_owned());
        }
        Ok(bytes)
    }
}
