//! Submitting a prompt to OpenCode.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::effect::Sending;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::client::{NotAccepted, OpenCode, OpenCodeError};
use crate::models::ModelName;
use crate::runtime::{Missed, Submission};

/// Name of the metadata field with the turn id on a prompt's text; the logs use the same name.
pub const CORRELATION: &str = "correlation_id";

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
pub(in crate::opencode) async fn hand_over(
    client: &OpenCode,
    session: &str,
    prompt: Submission<'_>,
) -> Result<(), Missed> {
    let model = client.models.at_server(prompt.model).map_err(unfit)?;
    if client.has_tools {
        let there = client.ensure_tools().await;
        there.map_err(|error| Missed { error, certain: true })?;
    }
    accepted(client, session, &model, prompt).await?;
    if prompt.images.is_empty() {
        return Ok(());
    }
    let stored = stored_soon(client, session, &prompt.ids.message).await;
    if !stored.map_err(uncertain)? {
        // An image that cannot be decoded discards its whole prompt: send the text without it.
        let text = format!("{}\n\n{IMAGES_NOT_SEEN}", prompt.text);
        let bare = Submission { text: &text, images: &[], ..prompt };
        let sent = accepted(client, session, &model, bare).await;
        sent.map_err(|missed| Missed { certain: false, ..Missed::from(missed) })?;
    }
    // Accepted but never stored: the delivery that follows finds that nothing begins, and says why.
    Ok(())
}

/// Sends it until the server has accepted it. After an attempt that may have arrived, it is looked up.
async fn accepted(
    client: &OpenCode,
    session: &str,
    model: &ModelName,
    prompt: Submission<'_>,
) -> Result<(), NotAccepted> {
    let body = body(model, prompt);
    let attempt = || client.send(session, &body);
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

/// Body of `POST /session/{id}/prompt_async`. Our own ids make a repeat harmless. The model is always explicit, because
/// an unknown one would become the session's default. `system` is added to the agent's own instructions; `turn` is
/// stored with the text and never shown to the model.
///
/// Images are separate parts with data URLs: each repeat would read and announce a `file:` URL again. If the model
/// takes no images, OpenCode tells it so and continues; a prompt with an image that cannot be decoded is accepted and
/// then never stored (all measured on 1.18.33).
fn body(model: &ModelName, prompt: Submission<'_>) -> Value {
    let Submission { turn, ids, agent, system, text, images, .. } = prompt;
    let mut parts = vec![json!({
        "id": ids.part(0), "type": "text", "text": text, "metadata": { CORRELATION: turn },
    })];
    parts.extend(images.iter().enumerate().map(|(at, image)| {
        json!({ "id": ids.part(at + 1), "type": "file", "mime": image.media_type, "filename": image.name,
            "url": format!("data:{};base64,{}", image.media_type, image.base64) })
    }));
    let mut body = json!({
        "messageID": ids.message,
        "model": { "providerID": model.provider, "modelID": model.model },
        "system": system,
        "parts": parts,
    });
    if let Some(agent) = agent {
        body["agent"] = agent.into();
    }
    body
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
