//! How a run stands and what it left, from the message list alone.

use std::borrow::Cow;

use bobbin_core::run::{Answer, RunEnd};

use super::reading::Reading;
use super::types::{Message, MessageError, Role, Status};
use crate::reason::reason_of;
use crate::runtime::RunState;

/// Whether Bobbin minted this message id (see `PromptIds::mint`: twelve hex digits of time, fourteen of a hash).
/// OpenCode's own tails are base 62, so that one of theirs looks like ours once in 10^8.
#[must_use]
pub fn is_minted(id: &str) -> bool {
    id.strip_prefix("msg_").is_some_and(|rest| {
        rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// The messages in the order in which they belong. OpenCode lists them by time, and the time of a prompt that is sent once
/// more is moved to then (measured on 1.18.33), behind what it was answered with: such a prompt goes before the first message
/// that names it as its parent.
#[must_use]
pub fn in_order(messages: &[Message]) -> Cow<'_, [Message]> {
    let mut ordered = Cow::Borrowed(messages);
    for at in 0..messages.len() {
        let first = match &ordered[at] {
            message if is_ours(message) => {
                let answers = |one: &Message| one.info.parent_id.as_ref() == Some(&message.info.id);
                ordered[..at].iter().position(answers)
            }
            _ => None,
        };
        if let Some(first) = first {
            ordered.to_mut()[first..=at].rotate_right(1);
        }
    }
    ordered
}

/// Whether the turn of this prompt stands in the list (as [`in_order`] has it) from its beginning on: what was read so far
/// may end in the middle of it.
#[must_use]
pub fn is_whole(messages: &[Message], prompt: &str) -> bool {
    let Some(at) = messages.iter().position(|one| one.info.id == prompt) else {
        return false;
    };
    // One that is the last may have been moved there, far behind what it was answered with.
    let is_last = at + 1 == messages.len();
    at > 0 && (!is_last || messages[..at].iter().any(is_ours))
}

/// The messages of the prompt's turn, of a list that is [`in_order`]: those after it, up to the next prompt of ours that is not one of `further`, which were
/// sent into the same run. OpenCode's own user messages (compaction) belong to the turn, so `parentID` says nothing. `None`
/// when the prompt is not in the list.
#[must_use]
pub fn turn_of<'a>(
    messages: &'a [Message],
    prompt: &str,
    further: &[String],
) -> Option<&'a [Message]> {
    let start = messages.iter().position(|m| m.info.id == prompt)? + 1;
    let rest = &messages[start..];
    let end =
        rest.iter().position(|m| is_ours(m) && !further.contains(&m.info.id)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// How the run of this prompt stands, and of those that were sent into it. Read the status first, then the messages.
#[must_use]
pub fn conclude(
    messages: &[Message],
    prompt: &str,
    further: &[String],
    status: Option<&Status>,
) -> RunState {
    if !matches!(status, None | Some(Status::Idle)) {
        return RunState::Busy;
    }
    let messages = in_order(messages);
    let Some(turn) = turn_of(&messages, prompt, further) else {
        return RunState::Pending;
    };
    let sent = messages.iter().filter(|one| {
        let id = &one.info.id;
        id == prompt || further.contains(id)
    });
    let sent_at = sent.map(|one| one.info.time.created).fold(0.0_f64, f64::max);
    // A prompt that is not listed yet is still to be answered, whatever stands there.
    let listed = |id: &String| turn.iter().any(|m| m.info.id == *id);
    match turn.last() {
        _ if !further.iter().all(listed) => RunState::Pending,
        None => RunState::Pending,
        Some(last) if is_ours(last) => RunState::Pending,
        Some(last) if last.info.role == Role::Assistant && last.info.time.completed.is_some() => {
            RunState::Done(read(&messages, prompt, further, end_of(last)))
        }
        // Sent once more since it was broken off, and not begun again yet.
        Some(last) if last.info.role == Role::Assistant && last.info.time.created < sent_at => {
            RunState::Pending
        }
        // Also OpenCode's own user message as the last one: the server died while it summarised.
        Some(_) => RunState::Stopped,
    }
}

/// What the list holds of a run that has ended so.
fn read(messages: &[Message], prompt: &str, further: &[String], end: RunEnd) -> Answer {
    let mut reading = Reading::new("", prompt, further);
    reading.read_messages(messages);
    let fold = reading.fold();
    let (steps, earlier) = fold.steps(true);
    Answer { end, text: fold.text(), usage: fold.usage(), steps, earlier, plan: fold.plan() }
}

pub(super) fn is_ours(message: &Message) -> bool {
    message.info.role == Role::User && is_minted(&message.info.id)
}

fn end_of(last: &Message) -> RunEnd {
    match (&last.info.error, last.info.finish.as_deref()) {
        (Some(error), _) if error.name == "MessageAbortedError" => RunEnd::Aborted,
        (Some(error), _) => RunEnd::Error { reason: people_reason(error) },
        (None, Some("tool-calls")) => RunEnd::Rejected,
        (None, Some("error")) => RunEnd::Error {
            reason: "The run ended in an error that OpenCode does not explain.".to_owned(),
        },
        (None, Some("content-filter")) => {
            RunEnd::Error { reason: reason_of("ContentFilterError", None, "") }
        }
        (None, Some("length")) => RunEnd::Cut,
        (None, Some("stop")) => RunEnd::Completed,
        // An abort while it waits to ask the model again leaves neither an error nor a finish (measured on 1.18.33).
        (None, _) => RunEnd::Unexplained,
    }
}

fn people_reason(error: &MessageError) -> String {
    reason_of(&error.name, error.data.status_code, &error.data.message)
}
