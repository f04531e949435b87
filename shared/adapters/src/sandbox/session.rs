//! The OpenCode session of a thread, and the prompt.

use std::time::Duration;

use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PromptIds, ThreadKey};
use bobbin_core::wire::opencode::request::{RunWith, session_title};

use super::Sandboxes;
use crate::opencode::OpenCodeError;

/// Looks for a prompt that was accepted: it can take a moment to be stored.
const STORED_LOOKS_MAX: u32 = 20;
/// Between two of them.
const STORED_POLL_MS: u64 = 250;

impl Sandboxes {
    pub(super) async fn find_session(
        &self,
        thread: &ThreadKey,
        generation: u32,
        known: Option<&str>,
    ) -> Result<Event, Failure> {
        let agent = self.agent(thread, generation).await?;
        if let Some(id) = known {
            match agent.session(id).await {
                Ok(found) => return Ok(Event::AgentSession { id: found.id }),
                Err(OpenCodeError::SessionMissing) => {}
                Err(error) => return Err(error.failure()),
            }
        }
        let found = agent
            .find_session(&session_title(thread))
            .await
            .map_err(|e| e.failure())?;
        let session = match found {
            Some(found) => found,
            None => agent
                .create_session(thread)
                .await
                .map_err(|e| e.failure())?,
        };
        Ok(Event::AgentSession { id: session.id })
    }

    pub(super) async fn send_prompt(
        &self,
        thread: &ThreadKey,
        generation: u32,
        session: &str,
        (ids, with, text, again): (&PromptIds, &RunWith, &str, bool),
    ) -> Result<Event, Failure> {
        let agent = self.agent(thread, generation).await?;
        let is_stored = || async {
            agent
                .message(session, &ids.message)
                .await
                .map(|found| found.is_some())
        };
        // An id that is sent again while newer prompts exist starts a new run: never without looking.
        if !again && is_stored().await.map_err(|e| e.failure())? {
            return Ok(Event::Prompted);
        }
        agent
            .prompt(session, ids, with, text)
            .await
            .map_err(|e| e.failure())?;
        for _ in 0..STORED_LOOKS_MAX {
            if is_stored().await.map_err(|e| e.failure())? {
                break;
            }
            tokio::time::sleep(Duration::from_millis(STORED_POLL_MS)).await;
        }
        // Accepted but not stored for good: whoever follows finds that nothing begins, and says why.
        Ok(Event::Prompted)
    }
}
