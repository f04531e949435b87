//! Where a turn's files are: in its sandbox, or in the tool sandbox of an agent that works outside, which ends with the
//! agent's.

use std::sync::Arc;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::protocol::effect::AgentEffect;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::changes::Changes;
use bobbin_core::records::message::Body;
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_core::records::tool_sandbox;
use bobbin_core::records::workspace::Workspace;

use crate::performing::Performing;
use crate::sandboxes::{Sandboxes, WorkTarget};

/// The sandbox with a turn's files, while it runs.
pub(crate) struct WithFiles {
    pub(crate) sandboxes: Arc<Sandboxes>,
    sandbox: SandboxKey,
    generation: u32,
    workspace: Workspace,
}

impl WithFiles {
    /// The thread's turn in that sandbox.
    pub(crate) fn target<'a>(&'a self, thread: &'a ThreadKey) -> WorkTarget<'a> {
        let Self { sandbox, generation, workspace, .. } = self;
        WorkTarget { thread, sandbox, generation: *generation, workspace }
    }
}

impl Performing<'_> {
    /// What a turn left in the sandbox with its files; nothing if that does not run.
    pub(crate) async fn left(&self, target: WorkTarget<'_>, effect: &AgentEffect) -> Event {
        match (self.with_files(target).await, effect) {
            (Ok(Some(there)), effect) => {
                let target = there.target(target.thread);
                there.sandboxes.perform_agent(self, target, effect).await
            }
            (Ok(None), AgentEffect::ListArtifacts) => Event::Listed(Vec::new()),
            (Ok(None), _) => Event::Changed(Changes::default()),
            (Err(failure), _) => Event::Failed(failure),
        }
    }

    /// The sandbox with a turn's files: its own, or the tool sandbox of an agent that works outside. `None` if that
    /// does not run.
    pub(crate) async fn with_files(
        &self,
        target: WorkTarget<'_>,
    ) -> Result<Option<WithFiles>, Failure> {
        if !self.asked.at.works_elsewhere() {
            return Ok(Some(WithFiles {
                sandboxes: self.sandboxes().await?,
                sandbox: target.sandbox.clone(),
                generation: target.generation,
                workspace: target.workspace.clone(),
            }));
        }
        let tools = tool_sandbox::tools_of(target.sandbox);
        let record = self.record(&tools).await?;
        let Some(record) = record.filter(|record| record.phase == Phase::Active) else {
            return Ok(None);
        };
        Ok(Some(WithFiles {
            sandboxes: self.sandboxes_of(target.thread, &record).await?,
            sandbox: tools,
            generation: record.generation,
            workspace: Workspace::Common,
        }))
    }

    /// Asks the sandbox with the code, in its own group, to end with its agent's. The message id makes a repeat
    /// harmless.
    pub(crate) async fn end_tools(
        &self,
        agent: &SandboxKey,
        generation: u32,
    ) -> Result<(), Failure> {
        let record = self.record(&tool_sandbox::tools_of(agent)).await?;
        let end =
            record.and_then(|record| tool_sandbox::ended((agent, generation), &record, now_ms()));
        let Some(message) = end else {
            return Ok(());
        };
        let sent = self.parts.queues.send(&Body::Message(message)).await;
        sent.map_err(|error| Failure::Outage { after_ms: 0, seen: error.to_string() })
    }

    /// The record of a sandbox other than the delivery's.
    pub(crate) async fn record(&self, key: &SandboxKey) -> Result<Option<SandboxRecord>, Failure> {
        let read = self.parts.store.sandbox_record(key).await;
        read.map_err(|error| error.failure())
    }
}
