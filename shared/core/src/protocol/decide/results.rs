//! Results of a turn besides its answer: its file changes, and the files that it wants people to see.
//!
//! Promised: neither can prevent the end of the turn. Changes that cannot be read are left out; files that cannot be
//! shown are named. One write puts a file on the turn's list and among the shown files, before it is posted.

use super::{Context, Next, review, words};
use crate::base::failure::Failure;
use crate::base::names::PostKind;
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, ForgeEffect};
use crate::records::artifacts::{self, Artifact};
use crate::records::card::Post;
use crate::records::changes::Changes;
use crate::records::drafted_review::ReviewRead;
use crate::records::outcome::Outcome;
use crate::records::session::Session;
use crate::records::stage::{EndProgress, Stage};

/// The missing step until everything is read and shown; `None` once it is.
pub(super) fn step(
    session: &mut Session,
    outcome: &Outcome,
    context: &Context<'_>,
) -> Option<Next> {
    let generation = session.sandbox.generation;
    let turn = session.turn.as_ref()?;
    // Only an agent that has worked on the prompt, and is still there, has results.
    let prompted = turn.stage.prompted().filter(|prompted| prompted.generation == generation)?;
    let there = *outcome == Outcome::Answered
        || matches!(outcome, Outcome::Cancelled { .. } | Outcome::OverBudget { .. })
        || session.observed.agent.answer.is_some();
    if !there {
        return None;
    }
    if session.observed.agent.changes.is_none()
        && let Some(agent_session) = session.conversation.session.clone()
    {
        let message = prompted.ids.message.clone();
        return Some(Next::Do(Effect::Agent(AgentEffect::ReadChanges { agent_session, message })));
    }
    // Files of a stopped or failed turn are shown by the next turn that is answered.
    if *outcome == Outcome::Answered {
        return show(session, context).or_else(|| review::show(session, context));
    }
    None
}

fn show(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let told = turn.stage.told()?;
    let Some(files) = &told.artifacts else {
        if session.observed.chat.nothing_to_show || context.delivery.limits.files.artifacts == 0 {
            return None;
        }
        return Some(Next::Do(Effect::Agent(AgentEffect::ListArtifacts)));
    };
    let turn_id = turn.id.clone();
    if let Some(file) = files.get(told.artifacts_done) {
        let index = u32::try_from(told.artifacts_done).unwrap_or(u32::MAX);
        let file = file.clone();
        return Some(Next::Do(Effect::Chat(ChatEffect::PostArtifact {
            turn: turn_id,
            index,
            file,
        })));
    }
    if told.unshown.is_empty() {
        return None;
    }
    let word = words::unshown(&told.unshown);
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn: turn_id,
        kind: PostKind::Unshown,
        at: None,
        post: Post::Notice(word),
    })))
}

/// The changes are known: their numbers are recorded.
pub(super) fn changed(session: &mut Session, changes: Changes) {
    if let Some(turn) = &mut session.turn
        && let Stage::Ending { usage, .. } = &mut turn.stage
    {
        *usage = changes.counted(*usage);
    }
    session.observed.agent.changes = Some(changes);
}

/// The files are known: from here on this turn shows them, and no other.
pub(super) fn listed(session: &mut Session, listed: Vec<Artifact>, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let keys: Vec<String> = listed.iter().map(Artifact::key).collect();
    if session.turn.as_ref().is_none_or(|turn| turn.stage.told().is_none()) {
        return;
    }
    let (files, left_out) = artifacts::chosen(listed, &session.shown, &limits.files);
    if files.is_empty() && left_out.is_empty() {
        session.observed.chat.nothing_to_show = true;
        return;
    }
    if let Some(told) = told_mut(session) {
        (told.artifacts, told.unshown) = (Some(files), left_out);
    }
    // Files that are still in the folder become the newest; forgotten ones are gone from the folder, or have changed.
    session.shown.retain(|known| !keys.contains(known));
    session.shown.extend(keys);
    let surplus = session.shown.len().saturating_sub(limits.files.artifacts_known);
    session.shown.drain(..surplus);
}

/// The next file cannot be shown: it is named instead.
pub(super) fn unshown(session: &mut Session, why: &str) {
    if let Some(told) = told_mut(session)
        && let Some(file) = told.artifacts.iter().flatten().nth(told.artifacts_done)
    {
        let line = format!("{} {why}", file.words());
        told.unshown.push(line);
    }
    dealt_with(session);
}

/// The next file is posted, or never will be.
pub(super) fn dealt_with(session: &mut Session) {
    if let Some(told) = told_mut(session) {
        told.artifacts_done += 1;
    }
}

fn told_mut(session: &mut Session) -> Option<&mut EndProgress> {
    session.turn.as_mut()?.stage.told_mut()
}

/// A failed read costs only its own result. `false`: the effect was something else.
pub(super) fn could_not_be_read(session: &mut Session, of: &Effect) -> bool {
    match of {
        Effect::Agent(AgentEffect::ReadChanges { .. }) => {
            session.observed.agent.changes = Some(Changes::unread());
        }
        Effect::Agent(AgentEffect::ListArtifacts) => session.observed.chat.nothing_to_show = true,
        Effect::Forge(ForgeEffect::ReadReview { .. }) => {
            session.observed.forge.review = Some(ReviewRead::Absent);
        }
        _ => return false,
    }
    true
}

/// A failure to show a file, or to name those that were not shown. If a retry cannot help, or half of the refusals
/// allowed for an end are used up, the end is told without it. `false`: it was another failure, or is worth a retry.
pub(super) fn gives_up_showing(
    session: &mut Session,
    posting: Option<&PostKind>,
    failure: &Failure,
    context: &Context<'_>,
) -> bool {
    let Some(turn) = &mut session.turn else {
        return false;
    };
    let is_review = matches!(posting, Some(PostKind::PullReview | PostKind::PullReviewText));
    if !(is_review || matches!(posting, Some(PostKind::Artifact(_) | PostKind::Unshown)))
        || matches!(failure, Failure::ThreadClosed { .. } | Failure::ThreadGone { .. })
    {
        return false;
    }
    let worth_a_try = match failure {
        Failure::Wait { .. } => turn.tries.refusals < context.delivery.limits.retry.refusals / 2,
        // An outage of the chat: the end cannot be told without it either.
        Failure::Outage { .. } => true,
        _ => false,
    };
    if worth_a_try {
        return false;
    }
    if is_review {
        review::given_up(session);
    } else if posting == Some(&PostKind::Unshown) {
        turn.stage.told_mut().into_iter().for_each(|told| told.unshown.clear());
    } else {
        unshown(session, "could not be posted");
    }
    true
}
