//! State and result of a run, from the message list alone.

use bobbin_core::records::run::{RunAnswer, RunEnd};

use bobbin_core::tenant::budgets::MicroUsd;

use super::order::{in_order, is_ours, turn_of};
use super::reading::Reading;
use super::types::{MessageError, OpenCodeMessage, OpenCodeStatus, Role};
use crate::observe::RunState;
use crate::reason::reason_of;

/// State of the run of this prompt and of the prompts that were sent into it. Read the status first, then the messages.
#[must_use]
pub fn conclude(
    messages: &[OpenCodeMessage],
    prompt: &str,
    further: &[String],
    status: Option<&OpenCodeStatus>,
) -> RunState {
    if !matches!(status, None | Some(OpenCodeStatus::Idle)) {
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
    // A prompt that is not listed yet is still unanswered, whatever else is listed.
    let listed = |id: &String| turn.iter().any(|m| m.info.id == *id);
    match turn.last() {
        _ if !further.iter().all(listed) => RunState::Pending,
        None => RunState::Pending,
        Some(last) if is_ours(last) => RunState::Pending,
        Some(last) if last.info.role == Role::Assistant && last.info.time.completed.is_some() => {
            RunState::Done(read(&messages, prompt, further, end_of(last)))
        }
        // Sent again after it broke off, and not begun again yet.
        Some(last) if last.info.role == Role::Assistant && last.info.time.created < sent_at => {
            RunState::Pending
        }
        // Also if OpenCode's own user message is the last: the server died while it summarised.
        Some(_) => RunState::Stopped,
    }
}

/// The answer in the list, of a run with this end.
fn read(messages: &[OpenCodeMessage], prompt: &str, further: &[String], end: RunEnd) -> RunAnswer {
    let mut reading = Reading::new("", prompt, further);
    reading.read_messages(messages);
    let fold = reading.fold();
    let (steps, earlier) = fold.steps(true);
    let mut usage = fold.usage();
    usage.cost_micro_usd += cut_off(messages);
    RunAnswer { end, text: fold.text(), usage, steps, earlier, plan: fold.plan() }
}

/// What steps that were cut off have cost, which OpenCode counts as nothing although the vendor bills them: each as
/// much as the step before it, which had nearly the same context.
fn cut_off(messages: &[OpenCodeMessage]) -> MicroUsd {
    let (mut before, mut sum) = (0.0, 0.0);
    for message in messages.iter().filter(|message| message.info.role == Role::Assistant) {
        let cost = message.info.cost;
        if cost > 0.0 {
            before = cost;
        } else if message.info.error.is_some() {
            sum += before;
        }
    }
    // A float beyond the range saturates.
    (sum * 1_000_000.0_f64).round() as MicroUsd
}

fn end_of(last: &OpenCodeMessage) -> RunEnd {
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
        // An abort while it waits to retry the model leaves neither an error nor a finish (measured on 1.18.33).
        (None, _) => RunEnd::Unexplained,
    }
}

fn people_reason(error: &MessageError) -> String {
    reason_of(&error.name, error.data.status_code, &error.data.message)
}
