//! Results of an agent that works in a tool sandbox: they are read there, and the tool sandbox ends with the agent's.

use std::sync::Arc;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::effect::AgentEffect;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::changes::Changes;
use bobbin_core::records::message::Body;
use bobbin_core::records::outside;
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_core::records::workspace::Workspace;

use crate::performing::Performing;
use crate::sandboxes::{Sandboxes, WorkTarget};

/// The sandbox with the code, while it runs.
struct Code {
    sandboxes: Arc<Sandboxes>,
    key: SandboxKey,
    generation: u32,
}

impl Performing<'_> {
    /// Results left in the sandbox with the code; none if it does not run.
    pub(crate) async fn left_outside(&self, target: WorkTarget<'_>, effect: &AgentEffect) -> Event {
        let code = match self.code(target).await {
            Ok(code) => code,
            Err(failure) => return Event::Failed(failure),
        };
        let found = match (effect, code) {
            (AgentEffect::ListArtifacts, Some(code)) => {
                let there = code.target(target);
                code.sandboxes.list_artifacts(there).await
            }
            (AgentEffect::ListArtifacts, None) => Ok(Event::Listed(Vec::new())),
            (AgentEffect::ReadChanges { message, .. }, Some(code)) => {
                let (key, generation) = (&code.key, code.generation);
                code.sandboxes.find_changes(key, generation, message).await
            }
            (_, _) => Ok(Event::Changed(Changes::default())),
        };
        found.unwrap_or_else(Event::Failed)
    }

    /// The bytes of a file to be shown, from the sandbox with the code.
    pub(crate) async fn artifact_outside(
        &self,
        target: WorkTarget<'_>,
        file: &Artifact,
    ) -> Result<Vec<u8>, String> {
        let code = self.code(target).await.ok().flatten();
        let code = code.ok_or_else(|| "is in a sandbox that is not running".to_owned())?;
        let there = code.target(target);
        code.sandboxes.fetch_artifact(there, file).await
    }

    /// Asks the sandbox with the code, in its own group, to end with its agent's. The message id makes a repeat
    /// harmless.
    pub(crate) async fn end_tools(
        &self,
        agent: &SandboxKey,
        generation: u32,
    ) -> Result<(), Failure> {
        let record = self.record(&outside::tools_of(agent)).await?;
        let end = record.and_then(|record| outside::ended((agent, generation), &record, now_ms()));
        let Some(message) = end else {
            return Ok(());
        };
        let sent = self.parts.queues.send(&Body::Message(message)).await;
        sent.map_err(|error| Failure::Outage { after_ms: 0, seen: error.to_string() })
    }

    async fn code(&self, target: WorkTarget<'_>) -> Result<Option<Code>, Failure> {
        let Some(record) = self.record(&outside::tools_of(target.sandbox)).await? else {
            return Ok(None);
        };
        if record.phase != Phase::Active {
            return Ok(None);
        }
        Ok(Some(Code {
            sandboxes: self.sandboxes_of(target.thread, &record).await?,
            key: outside::tools_of(target.sandbox),
            generation: record.generation,
        }))
    }

    /// The record of a sandbox other than the delivery's.
    pub(crate) async fn record(&self, key: &SandboxKey) -> Result<Option<SandboxRecord>, Failure> {
        let read = self.parts.store.sandbox_record(key).await;
        read.map_err(|error| error.failure())
    }
}

impl Code {
    /// The same turn in the sandbox with the code.
    fn target<'a>(&'a self, target: WorkTarget<'a>) -> WorkTarget<'a> {
        WorkTarget {
            thread: target.thread,
            sandbox: &self.key,
            generation: self.generation,
            workspace: &Workspace::Common,
        }
    }
}
