//! A thread's agent session, and the prompt.

use bobbin_agent::{ConversationKey, Submission};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, Ms};
use bobbin_core::protocol::effect::Sending;
use bobbin_core::protocol::event::Event;

use super::{Sandboxes, WorkTarget};

impl Sandboxes {
    pub(super) async fn find_session(
        &self,
        target: WorkTarget<'_>,
        (known, since_ms): (Option<&AgentSessionId>, Ms),
        chosen: Option<&str>,
    ) -> Result<Event, Failure> {
        let agent = self.agent_in(target).await?;
        let conversation = ConversationKey { thread: target.thread, since_ms };
        let found = agent.ensure_session(conversation, known, chosen).await;
        let id = found.map_err(|e| e.failure)?;
        Ok(Event::AgentSession { id })
    }

    pub(super) async fn send_prompt(
        &self,
        target: WorkTarget<'_>,
        session: &AgentSessionId,
        prompt: Submission<'_>,
    ) -> Result<Event, Failure> {
        let is_first = matches!(prompt.sending, Sending::First { .. });
        let agent = match self.agent_in(target).await {
            Ok(agent) => agent,
            Err(failure) if is_first => return Ok(Event::NotSent(failure)),
            Err(failure) => return Err(failure),
        };
        match agent.submit(session, prompt).await {
            Ok(()) => Ok(Event::Prompted),
            Err(missed) if is_first && missed.certain => Ok(Event::NotSent(missed.error.failure)),
            Err(missed) => Err(missed.error.failure),
        }
    }

    /// What the agent knows about a prompt that may have been sent.
    pub(super) async fn find_prompt(
        &self,
        target: WorkTarget<'_>,
        session: &AgentSessionId,
        message: &str,
    ) -> Result<Event, Failure> {
        let agent = self.agent_in(target).await?;
        let found = agent.prompt_state(session, message).await;
        found.map(Event::PromptFound).map_err(|e| e.failure)
    }
}
