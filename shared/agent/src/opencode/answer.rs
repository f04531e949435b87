//! How a run stands and what it left, from the message list alone.

use std::borrow::Cow;

use bobbin_core::credentials::redact;
use bobbin_core::run::{Answer, RunEnd};
use bobbin_core::usage::Usage;

use super::steps::{first_line, plan_of, steps_of};
use super::types::{Message, MessageError, PartKind, Role, Status};
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
            let (steps, earlier) = steps_of(turn);
            RunState::Done(Answer {
                end: end_of(last),
                text: text_of(turn),
                usage: usage_of(turn),
                steps,
                earlier,
                plan: plan_of(turn),
            })
        }
        // Sent once more since it was broken off, and not begun again yet.
        Some(last) if last.info.role == Role::Assistant && last.info.time.created < sent_at => {
            RunState::Pending
        }
        // Also OpenCode's own user message as the last one: the server died while it summarised.
        Some(_) => RunState::Stopped,
    }
}

fn is_ours(message: &Message) -> bool {
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

/// The last words of the turn, and before them what was answered in full to a prompt that another one followed into the
/// same run.
fn text_of(turn: &[Message]) -> String {
    let mut answered = turn.split(is_ours);
    let last = answered.next_back().unwrap_or_default();
    let finished = |part: &&[Message]| {
        let last = part.iter().rfind(|m| m.info.role == Role::Assistant);
        last.is_some_and(|m| m.info.finish.as_deref() == Some("stop"))
    };
    let mut texts: Vec<String> = answered.filter(finished).map(last_words).collect();
    texts.push(last_words(last));
    texts.retain(|text| !text.is_empty());
    texts.join("\n\n")
}

/// The last words of a run; before an automatic "continue" of a compaction, if the agent had finished there.
fn last_words(turn: &[Message]) -> String {
    let continued = turn.iter().position(is_compaction_continue);
    let finished_before = continued.and_then(|at| {
        turn[..at]
            .iter()
            .rev()
            .filter(|m| m.info.finish.as_deref() == Some("stop"))
            .find_map(message_text)
    });
    finished_before.or_else(|| turn.iter().rev().find_map(message_text)).unwrap_or_default()
}

fn is_compaction_continue(message: &Message) -> bool {
    message.info.role == Role::User
        && message.parts.iter().any(|part| {
            matches!(&part.kind, PartKind::Text { metadata, .. } if metadata.get("compaction_continue").is_some())
        })
}

/// The words of an assistant message: the text parts after its last `step-start` (earlier ones belong to a broken
/// connection), without OpenCode's own. `None` when there are none.
fn message_text(message: &Message) -> Option<String> {
    if message.info.role != Role::Assistant || message.info.is_summary() {
        return None;
    }
    let start = message
        .parts
        .iter()
        .rposition(|part| part.kind == PartKind::StepStart)
        .map_or(0, |at| at + 1);
    let texts: Vec<&str> = message.parts[start..]
        .iter()
        .filter_map(|part| match &part.kind {
            PartKind::Text { text, synthetic: false, ignored: false, .. }
                if !text.trim().is_empty() =>
            {
                Some(text.trim())
            }
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn usage_of(turn: &[Message]) -> Usage {
    let own = || turn.iter().filter(|m| m.info.role == Role::Assistant).map(|m| &m.info);
    let dollars: f64 = own().map(|info| info.cost.max(0.0)).sum();
    Usage {
        tokens: own().map(|info| info.tokens.all()).fold(0, u64::saturating_add),
        // A float beyond the range saturates.
        cost_micro_usd: (dollars * 1_000_000.0).round() as u64,
        ..Usage::default()
    }
}

/// An error in words for a person, with what to do.
#[must_use]
pub fn people_reason(error: &MessageError) -> String {
    reason_of(&error.name, error.data.status_code, &error.data.message)
}

/// The same of an error's name, the HTTP status of the model's provider, and what was said.
#[must_use]
pub fn reason_of(name: &str, status: Option<u16>, said: &str) -> String {
    let said = redact(&first_line(said, REASON_CHARS_MAX));
    let said = said.strip_prefix("ProviderModelNotFoundError: ").unwrap_or(&said);
    match (name, status) {
        ("MessageAbortedError", _) => "The run was stopped.".to_owned(),
        ("ContextOverflowError", _) => {
            "The conversation no longer fits into the model's context. A reset that keeps the files begins a new one.".to_owned()
        }
        ("MessageOutputLengthError", _) => "The answer grew longer than the model may write. Ask for a smaller piece.".to_owned(),
        ("ContentFilterError", _) => "The model's provider refused the content of this conversation. If it refuses the next task too, a reset that keeps the files begins a new one.".to_owned(),
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => {
            format!("The model's provider refused the key: {said} The operator has to check the model key.")
        }
        (_, Some(402)) => format!("The model's provider wants to be paid: {said} The operator has to add credit."),
        (_, Some(429)) => format!("The model's provider is limiting requests: {said} Try again later."),
        (_, Some(status @ 500..)) => format!("The model's provider failed ({status}): {said} Try again later."),
        _ if said.contains("Model not found") => {
            format!("{said} The operator has to set MODEL to one that its provider knows.")
        }
        (_, Some(status)) => format!("The model's provider refused the request ({status}): {said} If it refuses the next task too, a reset that keeps the files begins a new conversation."),
        _ if said.is_empty() => "The agent failed without saying why.".to_owned(),
        _ => format!("The agent failed: {said}"),
    }
}

/// Characters of an error that are passed on.
const REASON_CHARS_MAX: usize = 300;
