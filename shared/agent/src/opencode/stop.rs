//! Ending a run of OpenCode's.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::client::{OpenCode, OpenCodeError};
use super::order::is_minted;
use super::types::{Message, Role, Status};

/// An abort waits this long for the run to begin, looking this often.
const BEGIN_MS_MAX: u64 = 20_000;
const BEGIN_LOOK_MS: u64 = 250;

/// Ends the run of this prompt, once it has begun: an abort before that is lost, or interrupts what OpenCode prepares
/// once for all sessions, and then nothing begins in that server any more (measured on 1.18.33).
pub(super) async fn once_begun(
    client: &OpenCode,
    session: &str,
    prompt: &str,
    turn: &[String],
) -> Result<(), OpenCodeError> {
    let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
    loop {
        let newest = client.newest(session).await?;
        // Our own prompt is the newest for as long as nothing has come of it, unless it was sent into a run.
        let begun = newest
            .last()
            .is_some_and(|message| message.info.role != Role::User || !is_minted(&message.info.id));
        let is_late = Instant::now() >= until;
        // Of another turn: that one has the agent by now, or what was to end has never come to it.
        if !is_of(&newest, turn) && (is_answering(&newest) || is_late) {
            return Ok(());
        }
        if is_answering(&newest) || is_late {
            break;
        }
        // Accepted is not yet stored: until then the newest is of the turn before.
        let listed = newest.iter().any(|message| message.info.id == prompt);
        if begun && (listed || client.has(session, prompt).await?) {
            break;
        }
        sleep(Duration::from_millis(BEGIN_LOOK_MS)).await;
    }
    client.abort(session).await
}

/// Ends a run only if the agent is answering a prompt of this turn at this moment.
pub(super) async fn if_answering(
    client: &OpenCode,
    session: &str,
    turn: &[String],
) -> Result<(), OpenCodeError> {
    let newest = client.newest(session).await?;
    if is_of(&newest, turn) && is_answering(&newest) { client.abort(session).await } else { Ok(()) }
}

/// Ends a run and waits until the agent has nothing to do. False: it goes on in spite of each abort.
pub(super) async fn until_idle(
    client: &OpenCode,
    session: &str,
    messages: &[String],
) -> Result<bool, OpenCodeError> {
    let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
    loop {
        let mut statuses = client.statuses().await?;
        let is_busy = !matches!(statuses.remove(session), None | Some(Status::Idle));
        let newest = client.newest(session).await?;
        if !is_of(&newest, messages) {
            return Ok(true);
        }
        // Accepted is not yet begun: a prompt of which nothing has come yet is waited for.
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

/// Whether the newest of our prompts is one of these; so it is, too, where that lies further back than was read.
fn is_of(newest: &[Message], turn: &[String]) -> bool {
    let ours = newest
        .iter()
        .rfind(|message| message.info.role == Role::User && is_minted(&message.info.id));
    ours.is_none_or(|message| turn.contains(&message.info.id))
}

/// Whether the agent is writing an answer: the newest one is not complete. One that a dead server left behind is older than
/// what came after it.
fn is_answering(newest: &[Message]) -> bool {
    let last = newest.iter().rfind(|message| message.info.role == Role::Assistant);
    last.is_some_and(|message| message.info.time.completed.is_none())
}
