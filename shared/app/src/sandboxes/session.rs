//! The OpenCode session of a thread, and the prompt.

use std::time::Duration;

use bobbin_agent::opencode::request::{InlineImage, RunWith, session_title};
use bobbin_agent::opencode::{Missed, OpenCode, OpenCodeError, PromptText, Verdict, conclude};
use bobbin_core::artifacts::told_to_agent;
use bobbin_core::effect::Sending;
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PromptIds, ThreadKey};
use bobbin_core::run::PromptState;
use tokio::time::{Instant, timeout_at};

use super::Sandboxes;

/// A server that is only taken to run is given this long for one attempt: what leads nowhere any more, a connection that
/// broke while nobody used it above all, is met by the next one.
const ATTEMPT_MS_MAX: u64 = 5_000;
/// Looks for a prompt with images that was accepted: OpenCode decodes them first and makes them smaller. One without is
/// looked for by whoever follows the run.
const STORED_LOOKS_MAX: u32 = 60;
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
    /// What is known of earlier sendings.
    pub(super) sending: Sending,
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
        let is_first = matches!(prompt.sending, Sending::First { .. });
        let agent = match self.agent(thread, generation).await {
            Ok(agent) => agent,
            Err(failure) if is_first => return Ok(Event::NotSent(failure)),
            Err(failure) => return Err(failure),
        };
        match self.accepted(&agent, session, prompt).await {
            Ok(()) => {}
            Err(missed) if is_first && missed.certain => {
                return Ok(Event::NotSent(missed.error.failure()));
            }
            Err(missed) => return Err(missed.error.failure()),
        }
        if !prompt.images.is_empty() && !stored_soon(&agent, session, &prompt.ids.message).await? {
            // An image that cannot be decoded swallows its whole prompt: the words go without it.
            let text = format!("{}\n\n{IMAGES_NOT_SEEN}", prompt.text);
            let bare = Sent {
                text: &text,
                images: &[],
                ..prompt
            };
            let sent = self.accepted(&agent, session, bare).await;
            sent.map_err(|missed| missed.error.failure())?;
        }
        // Accepted but not stored for good: whoever follows finds that nothing begins, and says why.
        Ok(Event::Prompted)
    }

    /// What the agent knows of a prompt that may have been sent.
    pub(super) async fn find_prompt(
        &self,
        thread: &ThreadKey,
        generation: u32,
        session: &str,
        message: &str,
    ) -> Result<Event, Failure> {
        let agent = self.agent(thread, generation).await?;
        if !is_stored(&agent, session, message).await? {
            return Ok(Event::PromptFound(PromptState::Absent));
        }
        // The status first: a run that begins or ends in between is then never taken for one that stands still.
        let mut statuses = agent.statuses().await.map_err(|e| e.failure())?;
        let messages = agent.messages_since(session, message).await;
        let messages = messages.map_err(|e| e.failure())?;
        let status = statuses.remove(session);
        let verdict = conclude(&messages, message, &[], status.as_ref());
        Ok(Event::PromptFound(match verdict {
            Verdict::Busy | Verdict::Done(_) => PromptState::Taken,
            Verdict::Stopped | Verdict::Pending => PromptState::Idle,
        }))
    }

    /// Sends it until the server has accepted it. After an attempt of which nobody knows whether it arrived it is looked for.
    async fn accepted(
        &self,
        agent: &OpenCode,
        session: &str,
        prompt: Sent<'_>,
    ) -> Result<(), Missed> {
        let system = told_to_agent(&self.settings.limits);
        let words = PromptText {
            turn: prompt.turn,
            system: &system,
            text: prompt.text,
            images: prompt.images,
        };
        let attempt = || agent.prompt(session, prompt.ids, prompt.with, &words);
        let again = async || match agent.message(session, &prompt.ids.message).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => attempt().await,
            Err(error) => Err(Missed {
                error,
                certain: false,
            }),
        };
        let Sending::First {
            within_ms: Some(within_ms),
        } = prompt.sending
        else {
            return attempt().await;
        };
        let until = Instant::now() + Duration::from_millis(within_ms);
        let mut silent = false;
        loop {
            let attempt_until = Instant::now() + Duration::from_millis(ATTEMPT_MS_MAX);
            let sending = async {
                if silent {
                    again().await
                } else {
                    attempt().await
                }
            };
            match timeout_at(until.min(attempt_until), sending).await {
                Ok(sent) => {
                    return sent.map_err(|missed| Missed {
                        certain: missed.certain && !silent,
                        ..missed
                    });
                }
                Err(_) if Instant::now() < until => silent = true,
                Err(_) => {
                    let seen = "the prompt was not accepted in time".to_owned();
                    return Err(Missed {
                        error: OpenCodeError::Unreachable { seen },
                        certain: false,
                    });
                }
            }
        }
    }
}

/// Whether OpenCode has this message.
pub(super) async fn is_stored(
    agent: &OpenCode,
    session: &str,
    message: &str,
) -> Result<bool, Failure> {
    let found = agent.message(session, message).await;
    found.map(|found| found.is_some()).map_err(|e| e.failure())
}

/// Whether a prompt that was accepted is stored: it can take a moment.
async fn stored_soon(agent: &OpenCode, session: &str, message: &str) -> Result<bool, Failure> {
    for _ in 0..STORED_LOOKS_MAX {
        if is_stored(agent, session, message).await? {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(STORED_POLL_MS)).await;
    }
    Ok(false)
}
