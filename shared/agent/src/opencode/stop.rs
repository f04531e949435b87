//! Stopping an OpenCode run.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::client::{OpenCode, OpenCodeError};
use super::order::is_minted;
use super::types::{OpenCodeMessage, OpenCodeStatus, Role};

/// How long an abort waits for the run to begin, and the poll interval.
const BEGIN_MS_MAX: u64 = 20_000;
const BEGIN_LOOK_MS: u64 = 250;

/// Stops the run of this prompt once it has begun. An earlier abort is lost, or interrupts OpenCode's one-time set-up
/// for all sessions, after which nothing ever begins in that server (measured on 1.18.33).
pub(super) async fn once_begun(
    client: &OpenCode,
    session: &str,
    prompt: &str,
    turn: &[String],
) -> Result<(), OpenCodeError> {
    let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
    loop {
        let newest = client.newest(session).await?;
        // Our own prompt is the newest message until the run begins, unless it was sent into a run.
        let begun = newest
            .last()
            .is_some_and(|message| message.info.role != Role::User || !is_minted(&message.info.id));
        let is_late = Instant::now() >= until;
        // Another turn's: the agent has moved on to it, or the prompt to be stopped never arrived.
        if !is_of(&newest, turn) && (is_answering(&newest) || is_late) {
            return Ok(());
        }
        if is_answering(&newest) || is_late {
            break;
        }
        // Accepted does not mean stored: until then the newest message is of the previous turn.
        let listed = newest.iter().any(|message| message.info.id == prompt);
        if begun && (listed || client.has(session, prompt).await?) {
            break;
        }
        sleep(Duration::from_millis(BEGIN_LOOK_MS)).await;
    }
    client.abort(session).await
}

/// Stops a run only if the agent is answering a prompt of this turn at this moment.
pub(super) async fn if_answering(
    client: &OpenCode,
    session: &str,
    turn: &[String],
) -> Result<(), OpenCodeError> {
    let newest = client.newest(session).await?;
    if is_of(&newest, turn) && is_answering(&newest) { client.abort(session).await } else { Ok(()) }
}

/// Stops a run and waits until the agent is idle. False: it continues despite each abort.
pub(super) async fn until_idle(
    client: &OpenCode,
    session: &str,
    messages: &[String],
) -> Result<bool, OpenCodeError> {
    let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
    loop {
        let mut statuses = client.statuses().await?;
        let is_busy = !matches!(statuses.remove(session), None | Some(OpenCodeStatus::Idle));
        let newest = client.newest(session).await?;
        if !is_of(&newest, messages) {
            return Ok(true);
        }
        // Accepted does not mean begun: a prompt without any message after it is waited for.
        let waits = newest.last().is_some_and(|last| messages.contains(&last.info.id));
        let is_over = Instant::now() >= until;
        match (is_busy, is_answering(&newest)) {
            (false, _) if !waits || is_over => return Ok(true),
            (true, _) if is_over => return Ok(false),
            (true, true) => client.abort(session).await?,
            (true, false) | (false, _) => {}
        }
        sleep(Duration::from_millis(BEGIN_LOOK_MS)).await;
    }
}

/// Whether the newest of our prompts is one of these; also true if it is further back than what was read.
fn is_of(newest: &[OpenCodeMessage], turn: &[String]) -> bool {
    let ours = newest
        .iter()
        .rfind(|message| message.info.role == Role::User && is_minted(&message.info.id));
    ours.is_none_or(|message| turn.contains(&message.info.id))
}

/// Whether the agent is writing an answer: the newest one is not complete. One that a dead server left behind is older
/// than the messages after it.
fn is_answering(newest: &[OpenCodeMessage]) -> bool {
    let last = newest.iter().rfind(|message| message.info.role == Role::Assistant);
    last.is_some_and(|message| message.info.time.completed.is_none())
}
