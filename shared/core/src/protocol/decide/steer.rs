//! Waiting prompts that were sent into the run of the turn before them, because somebody pressed "Send now".
//!
//! The intent is recorded first, with the text and the ids under which the agent gets it; the same write spends the
//! flag beside the record. A recorded prompt is sent even if the run has ended meanwhile: the agent then begins anew in
//! the same session, and the turn ends with that.

use super::{Context, Next};
use crate::base::ids::TurnId;
use crate::base::names::PromptIds;
use crate::base::person::Person;
use crate::protocol::effect::{AgentEffect, Effect, Sending};
use crate::records::flags::Queued;
use crate::records::session::Session;
use crate::records::turn::{Steered, Turn};

/// Somebody wants this waiting prompt sent now: records the intent, unless it is too late.
pub(super) fn take(
    session: &mut Session,
    id: &TurnId,
    queued: Queued,
    by: Person,
    context: &Context<'_>,
) {
    let limits = context.delivery.limits;
    let ended = session.ended.iter().any(|turn| turn.id == *id);
    let ids = PromptIds::mint(&session.thread, id, context.now_ms);
    let wanted = session
        .turn
        .as_mut()
        .filter(|turn| !ended && is_open(turn) && !turn.covers(id))
        .filter(|turn| turn.steered.len() < limits.record.steers && !queued.refused);
    // A person who may not ask here is told so when the message's turn comes. Where people have budgets, each pays for
    // their own.
    let is_others = |by: &Person| wanted.as_ref().is_some_and(|turn| turn.by.id != by.id);
    let prompt = queued.prompt.filter(|prompt| {
        let settings = context.settings;
        let pays = settings.budgets.person_day.is_none() || !is_others(&prompt.by);
        pays && settings.admit(&prompt.membership, &prompt.by.id).is_ok()
    });
    match (wanted, prompt) {
        (Some(turn), Some(prompt)) => turn.steered.push(Steered {
            turn: id.to_owned(),
            prompt: *prompt,
            accepted_at_ms: queued.accepted_at_ms,
            wanted_by: by,
            ids,
            card: queued.card,
            sent: false,
            shown: false,
        }),
        _ => session.observed.chat.not_steered.push(id.to_owned()),
    }
}

/// The turns whose "Send now" is known, for following; `None` if none is accepted now.
pub(super) fn known(session: &Session, turn: &Turn, context: &Context<'_>) -> Option<Vec<TurnId>> {
    let room = turn.steered.len() < context.delivery.limits.record.steers;
    let steered = turn.steered.iter().map(|one| &one.turn);
    let known = steered.chain(&session.observed.chat.not_steered).cloned();
    (is_open(turn) && room).then(|| known.collect())
}

/// Sends a recorded prompt that the agent does not have yet. This comes before the run is followed again, so that the
/// run cannot be taken for ended without it.
pub(super) fn step(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref().filter(|turn| is_open(turn))?;
    let steered = turn.steered.iter().find(|one| !one.sent)?;
    find_prompt(session).or_else(|| send(session, steered, context))
}

/// After the server went away: sending the newest prompt again under its own ids makes the whole run go on, with all
/// prompts before it. An older one would be moved behind it and run alone. `None`: there is only the turn's own prompt.
pub(super) fn again(session: &Session, context: &Context<'_>) -> Option<Next> {
    let newest = session.turn.as_ref()?.steered.last()?;
    send(session, newest, context)
}

/// The agent has the last prompt sent, and all before it.
pub(super) fn sent(turn: &mut Turn) {
    turn.steered.iter_mut().for_each(|one| one.sent = true);
}

fn is_open(turn: &Turn) -> bool {
    turn.stage.is_running() && turn.cancelled_by.is_none() && turn.aborting().is_none()
}

/// A prompt sent into a run gets the model and the agent of the run.
fn send(session: &Session, steered: &Steered, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    Some(Next::Do(Effect::Agent(AgentEffect::SendPrompt {
        turn: steered.turn.clone(),
        run_of: turn.id.clone(),
        agent_session: session.conversation.session.clone()?,
        ids: steered.ids.clone(),
        text: steered.prompt.text.clone(),
        images: Vec::new(),
        model: turn.model(context.delivery.model).to_owned(),
        agent: turn.selection.agent.clone(),
        sending: Sending::Again,
        limit: None,
    })))
}

/// A prompt that may have been sent is looked for before it is sent. An id sent again while newer prompts exist begins
/// a new run; an id that has been answered begins none, and hides its answer from readers that order by time. Of
/// several prompts, the newest one makes the run go on.
pub(super) fn find_prompt(session: &Session) -> Option<Next> {
    if session.observed.agent.found.is_some() {
        return None;
    }
    let message = session.turn.as_ref()?.messages().pop()?;
    Some(Next::Do(Effect::Agent(AgentEffect::FindPrompt {
        agent_session: session.conversation.session.clone()?,
        message,
    })))
}
