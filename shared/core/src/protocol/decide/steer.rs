//! Prompts that waited and were sent into the run of the turn before them, because somebody did not want to wait.
//!
//! The intent goes on record first, with the words and the ids under which the agent gets them; the flag beside the
//! record is spent with that write. What is on record is sent, also when the run has ended meanwhile: the agent then
//! begins anew in the same session, and the turn ends with that.

use super::{Context, Next, record, words};
use crate::base::ids::{PromptIds, TurnId};
use crate::base::person::Person;
use crate::protocol::effect::{AgentEffect, Effect, Sending};
use crate::records::flags::Queued;
use crate::records::session::Session;
use crate::records::turn::{Steered, Turn};

/// Somebody wants this waiting prompt sent now: the intent, unless it is too late for it.
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
    // Who may not ask here is told so when the message comes to its turn.
    let prompt = queued.prompt.filter(|prompt| {
        let settings = context.settings;
        settings.admit(&prompt.membership, &prompt.by.id).is_ok()
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

/// What following is told: whose wish is known, or that none is heard now.
pub(super) fn known(session: &Session, turn: &Turn, context: &Context<'_>) -> Option<Vec<TurnId>> {
    let room = turn.steered.len() < context.delivery.limits.record.steers;
    let steered = turn.steered.iter().map(|one| &one.turn);
    let known = steered.chain(&session.observed.chat.not_steered).cloned();
    (is_open(turn) && room).then(|| known.collect())
}

/// The prompt that is on record and not with the agent. It is sent before the run is followed again, so that the run cannot
/// be taken for over without it.
pub(super) fn step(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref().filter(|turn| is_open(turn))?;
    let steered = turn.steered.iter().find(|one| !one.sent)?;
    look_for(session).or_else(|| send(session, steered, context))
}

/// After the server went away: the newest prompt under its own ids makes the whole run go on, all before it included. An
/// older one would be moved behind it and run alone. None: there is nothing but the turn's own prompt.
pub(super) fn again(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let newest = session.turn.as_ref()?.steered.last()?.clone();
    // Another agent session knows nothing of what this turn was about.
    if session.conversation.briefed != session.conversation.session {
        record::fail(session, words::SESSION_VANISHED);
        return None;
    }
    send(session, &newest, context)
}

/// The agent has what was sent last, and all before it.
pub(super) fn sent(turn: &mut Turn) {
    turn.steered.iter_mut().for_each(|one| one.sent = true);
}

fn is_open(turn: &Turn) -> bool {
    turn.stage.is_running() && turn.cancelled_by.is_none() && turn.aborting().is_none()
}

/// Within the run it goes to the model and the agent of the run.
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
    })))
}

/// Whatever may have been sent is looked for before it is sent: an id that is sent again while newer prompts exist begins a
/// new run, and one that has been answered begins none and hides its answer from who orders by time. Of several prompts
/// it is the newest one that makes the run go on.
pub(super) fn look_for(session: &Session) -> Option<Next> {
    if session.observed.agent.found.is_some() {
        return None;
    }
    let message = session.turn.as_ref()?.messages().pop()?;
    Some(Next::Do(Effect::Agent(AgentEffect::FindPrompt {
        agent_session: session.conversation.session.clone()?,
        message,
    })))
}
