//! The OpenCode session of a thread, and the prompt.

use std::time::Duration;

use bobbin_core::artifacts::told_to_agent;
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PromptIds, ThreadKey};
use bobbin_core::wire::opencode::request::{InlineImage, RunWith, session_title};

use super::Sandboxes;
use crate::opencode::{OpenCodeError, PromptText};

/// Looks for a prompt that was accepted: it can take a moment to be stored.
const STORED_LOOKS_MAX: u32 = 20;
/// The same for one with images, which OpenCode decodes first and makes smaller.
const STORED_LOOKS_WITH_IMAGES_MAX: u32 = 60;
/// Said to the agent when its images could not be taken as such.
const IMAGES_NOT_SEEN: &str = "(The images of this message could not be shown to you directly; they are among the files named above.)";
/// Between two of them.
const STORED_POLL_MS: u64 = 250;

/// A prompt to be sent.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    /// Whose prompt it is.
    pub(super) turn: &'a str,
    /// Its ids, by which OpenCode knows it again.
    pub(super) ids: &'a PromptIds,
    /// Model and agent.
    pub(super) with: &'a RunWith,
    /// The words.
    pub(super) text: &'a str,
    /// What the model sees beside them.
    pub(super) images: &'a [InlineImage],
    /// It was sent before, and shall be even if it is there.
    pub(super) again: bool,
}

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
        prompt: Sent<'_>,
    ) -> Result<Event, Failure> {
        let Sent {
            turn,
            ids,
            with,
            text,
            images,
            again,
        } = prompt;
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
        let system = told_to_agent(&self.settings.limits);
        let stored = async |text: &str, images: &[InlineImage]| {
            let prompt = PromptText {
                turn,
                system: &system,
                text,
                images,
            };
            let sent = agent.prompt(session, ids, with, &prompt);
            sent.await.map_err(|e| e.failure())?;
            let looks = if images.is_empty() {
                STORED_LOOKS_MAX
            } else {
                STORED_LOOKS_WITH_IMAGES_MAX
            };
            for _ in 0..looks {
                if is_stored().await.map_err(|e| e.failure())? {
                    return Ok(true);
                }
                tokio::time::sleep(Duration::from_millis(STORED_POLL_MS)).await;
            }
            Ok::<_, Failure>(false)
        };
        if !stored(text, images).await? && !images.is_empty() {
            // An image that cannot be decoded swallows its whole prompt: the words go without it.
            let text = format!("{text}\n\n{IMAGES_NOT_SEEN}");
            stored(&text, &[]).await?;
        }
        // Accepted but not stored for good: whoever follows finds that nothing begins, and says why.
        Ok(Event::Prompted)
    }
}
