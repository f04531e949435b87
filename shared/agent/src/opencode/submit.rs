//! Submitting a prompt to OpenCode.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::effect::Sending;
use tokio::time::{Instant, sleep, timeout_at};

use super::client::{NotAccepted, OpenCode, OpenCodeError, PromptText};
use super::request::RunWith;
use crate::runtime::{Missed, Submission};

/// Bound of one attempt at a server that is only assumed to run: dead ends, above all a connection that broke while
/// idle, are met by the next attempt.
const ATTEMPT_MS_MAX: u64 = 5_000;
/// Polls for an accepted prompt with images: OpenCode first decodes and shrinks them. A prompt without images is
/// checked by the delivery that follows the run.
const STORED_LOOKS_MAX: u32 = 60;
/// Pause between two polls.
const STORED_POLL_MS: u64 = 250;
/// Added to the prompt if its images could not be accepted.
const IMAGES_NOT_SEEN: &str = "(The images of this message could not be shown to you directly; they are among the files named above.)";

/// Makes sure that a prompt is accepted, and one with images is stored.
pub(super) async fn hand_over(
    client: &OpenCode,
    session: &str,
    prompt: Submission<'_>,
) -> Result<(), Missed> {
    let model = client.models.at_server(prompt.model).map_err(unfit)?;
    let with = RunWith { model, agent: prompt.agent.map(str::to_owned) };
    if client.has_tools {
        let there = client.ensure_tools().await;
        there.map_err(|error| Missed { error, certain: true })?;
    }
    accepted(client, session, &with, prompt).await?;
    if prompt.images.is_empty() {
        return Ok(());
    }
    let stored = stored_soon(client, session, &prompt.ids.message).await;
    if !stored.map_err(uncertain)? {
        // An image that cannot be decoded discards its whole prompt: send the text without it.
        let text = format!("{}\n\n{IMAGES_NOT_SEEN}", prompt.text);
        let bare = Submission { text: &text, images: &[], ..prompt };
        let sent = accepted(client, session, &with, bare).await;
        sent.map_err(|missed| Missed { certain: false, ..Missed::from(missed) })?;
    }
    // Accepted but never stored: the delivery that follows finds that nothing begins, and says why.
    Ok(())
}

/// Sends it until the server has accepted it. After an attempt that may have arrived, it is looked up.
async fn accepted(
    client: &OpenCode,
    session: &str,
    with: &RunWith,
    prompt: Submission<'_>,
) -> Result<(), NotAccepted> {
    let words = PromptText {
        turn: prompt.turn,
        system: prompt.system,
        text: prompt.text,
        images: prompt.images,
    };
    let attempt = || client.prompt(session, prompt.ids, with, &words);
    let again = async || match client.message(session, &prompt.ids.message).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => attempt().await,
        Err(error) => Err(NotAccepted { error, certain: false }),
    };
    let Sending::First { within_ms: Some(within_ms) } = prompt.sending else {
        return attempt().await;
    };
    let until = Instant::now() + Duration::from_millis(within_ms);
    let mut silent = false;
    loop {
        let attempt_until = Instant::now() + Duration::from_millis(ATTEMPT_MS_MAX);
        let sending = async { if silent { again().await } else { attempt().await } };
        match timeout_at(until.min(attempt_until), sending).await {
            Ok(sent) => {
                return sent.map_err(|missed| NotAccepted {
                    certain: missed.certain && !silent,
                    ..missed
                });
            }
            Err(_) if Instant::now() < until => silent = true,
            Err(_) => {
                let seen = "the prompt was not accepted in time".to_owned();
                return Err(NotAccepted {
                    error: OpenCodeError::Unreachable { seen },
                    certain: false,
                });
            }
        }
    }
}

/// Whether an accepted prompt is stored: it can take a moment.
async fn stored_soon(
    client: &OpenCode,
    session: &str,
    message: &str,
) -> Result<bool, OpenCodeError> {
    for _ in 0..STORED_LOOKS_MAX {
        if client.has(session, message).await? {
            return Ok(true);
        }
        sleep(Duration::from_millis(STORED_POLL_MS)).await;
    }
    Ok(false)
}

fn uncertain(error: OpenCodeError) -> Missed {
    Missed { error: error.into(), certain: false }
}

/// No agent can run with this model: that is the turn's failure, and no retry would fix it.
fn unfit(failure: Failure) -> Missed {
    Missed { error: failure.into(), certain: false }
}
