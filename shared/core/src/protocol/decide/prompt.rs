//! The next step of a prompt: from its first delivery to the end that the thread can see.

use super::words::for_agent;
use super::{
    Context, Next, budget, choose, extra_posts, finish, forge, provision, record, secrets, set_up,
    share, steer, stray_run, words,
};
use crate::base::ids::{Ms, PostRef, TurnId};
use crate::base::names::{PostKind, PromptIds, short_name};
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, Follow, KeptCard, Sending};
use crate::records::card::{Card, CardState, Post};
use crate::records::carried::Carried;
use crate::records::given_pull::GivenPull;
use crate::records::message::Prompt;
use crate::records::observations::{Aside, CheckoutKeptReason};
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::set_up::SetUp;
use crate::records::stage::{Prompted, Stage};
use crate::records::turn::{CardPlace, EndedTurn, Outages, Tries, Turn};
use crate::tenant::selection::Selection;

/// Next step of a prompt.
pub(super) fn next(session: &mut Session, prompt: &Prompt, context: &Context<'_>) -> Next {
    let id = &context.delivery.message.id;
    // One pass more than there can be changes of turn: the one left over, ours, and the end.
    for _ in 0..4 {
        match &session.turn {
            Some(turn) if turn.id == *id => match turn_step(session, prompt, context) {
                Some(next) => return next,
                None => continue,
            },
            Some(_) => match finish::leftover(session, context) {
                Some(next) => return next,
                None => continue,
            },
            None if record::has_ended(session, id) => {
                let next = super::teardown::finish_half_made(session, context);
                return record::at_rest(session, next, context);
            }
            None => {
                if !is_dropped(prompt, context)
                    && let Some(next) = share::arrive(session, prompt, context)
                {
                    return next;
                }
                // A sandbox on its way up is shown on the turn's card; one on its way down will soon be done.
                if matches!(session.sandbox.phase, Phase::Pausing | Phase::Destroying)
                    && let Some(wait) = record::wait_for_lease(session, context)
                {
                    return wait;
                }
                begin(session, prompt, context);
            }
        }
    }
    Next::Hold {
        delay_ms: context.delivery.limits.retry.backoff_ms,
        why: "no step was found".to_owned(),
    }
}

/// Whether the prompt is not to run, wherever its thread works: somebody has stopped or withdrawn it, the queue was
/// full, or its author may not ask here. Such a prompt changes nothing for its thread.
fn is_dropped(prompt: &Prompt, context: &Context<'_>) -> bool {
    let (message, flags) = (context.delivery.message, context.flags);
    flags.cancelled_by(&message.id, message.accepted_at_ms).is_some()
        || flags.queued.get(&message.id).is_some_and(|queued| queued.refused)
        || context.settings.admit(&prompt.membership, &prompt.by.id).is_err()
}

/// Records the turn, with the card that it may have had while it waited.
fn begin(session: &mut Session, prompt: &Prompt, context: &Context<'_>) {
    let is_dropped = is_dropped(prompt, context);
    let waited = context.flags.queued.get(&context.delivery.message.id);
    let card = waited.and_then(|queued| queued.card.clone());
    let (selection, refusal) = match choose::selection(session, prompt, context) {
        Ok(selection) => {
            if !is_dropped {
                choose::keep_agent(session, prompt, context);
            }
            (selection, None)
        }
        Err(words) => (choose::asked_for(prompt, context), Some(words)),
    };
    let message = context.delivery.message;
    let turn = new_turn((&message.id, message.accepted_at_ms), prompt, selection, card);
    // Before the workspace is claimed, since the claim is about this one.
    if prompt.wants.in_common && refusal.is_none() && !is_dropped {
        session.place.in_common = true;
    }
    let is_refused = waited.is_some_and(|queued| queued.refused) || refusal.is_some();
    let reserved = if is_refused { Ok(None) } else { budget::reserve(session, prompt, context) };
    let (reserved, over) = match reserved {
        Ok(reserved) => (reserved, None),
        Err(outcome) => (None, Some(outcome)),
    };
    record::begin(session, Turn { reserved, ..turn }, context);
    if let Some(outcome) = over {
        record::end_with(session, outcome);
    }
    if waited.is_some_and(|queued| queued.refused) {
        record::fail(session, words::QUEUE_FULL);
    } else if let Some(words) =
        refusal.or_else(|| share::missing(session, prompt).filter(|_| !is_dropped))
    {
        record::fail(session, &words);
    }
}

/// A new turn; `card` is the post that shows it already.
pub(super) fn new_turn(
    (id, accepted_at_ms): (&TurnId, Ms),
    prompt: &Prompt,
    selection: Selection,
    card: Option<PostRef>,
) -> Turn {
    // Its card was posted soon after it was accepted, while it waited.
    let since_ms = card.is_some().then_some(accepted_at_ms);
    Turn {
        id: id.to_owned(),
        by: prompt.by.clone(),
        accepted_at_ms,
        selection,
        stage: Stage::Received { ids: None },
        card: CardPlace { at: card, since_ms, ..CardPlace::default() },
        asks: Vec::new(),
        tries: Tries::default(),
        outages: Outages::default(),
        in_hand: true,
        waits: false,
        cancelled_by: None,
        trouble: None,
        moved: None,
        reserved: None,
        steered: Vec::new(),
    }
}

/// The card that announced the prompt was posted, or noted, while the turn began: it points to the turn's own.
fn take_over_announced(session: &mut Session, context: &Context<'_>) {
    let Some(turn) = &mut session.turn else {
        return;
    };
    let noted = |id: &TurnId| {
        let queued = context.flags.queued.get(id);
        queued.and_then(|queued| queued.card.clone())
    };
    for steered in turn.steered.iter_mut().filter(|one| one.card.is_none()) {
        steered.card = noted(&steered.turn);
    }
    let Some(announced) = noted(&turn.id) else {
        return;
    };
    // An earlier delivery may have posted a card and died before that was recorded: it is found by its key.
    if turn.card.at.as_ref() != Some(&announced) && turn.card.old.is_none() {
        turn.card.old = Some(announced);
    }
}

/// The next step of the present turn; `None` when it was closed or its stage changed.
fn turn_step(session: &mut Session, prompt: &Prompt, context: &Context<'_>) -> Option<Next> {
    record::see_cancel(session, context);
    take_over_announced(session, context);
    let turn = session.turn.as_ref()?;
    if turn.stage.is_ending() {
        return finish::step(session, context);
    }
    if turn.stage.is_received()
        && let Some(by) = &turn.cancelled_by
    {
        let outcome = crate::records::outcome::Outcome::Cancelled { by: by.name.clone() };
        record::end_with(session, outcome);
        return finish::step(session, context);
    }
    roll(session, context);
    if card_to_show(session, context).is_none() {
        return onward(session, prompt, context);
    }
    // The prompt's work does not wait for the card, nor the card for the work, except for work that cannot go beside a
    // card.
    let mut ahead = session.clone();
    if let Some(Next::Do(work)) = onward(&mut ahead, prompt, context)
        && work.goes_beside_a_card()
    {
        *session = ahead;
        return Some(match progress_card(session, context) {
            Some(card) => Next::Together { work, card },
            None => Next::Do(work),
        });
    }
    progress_card(session, context).map(Next::Do)
}

/// The next step of the turn besides its card.
fn onward(session: &mut Session, prompt: &Prompt, context: &Context<'_>) -> Option<Next> {
    if session.turn.as_ref().is_some_and(|turn| turn.stage.is_received())
        && !record::claim(session, context)
    {
        return share::wait_for_workspace(session, context);
    }
    let starts_anew =
        budget::key_ends_soon(session, context) || secrets::is_stale(session, context);
    if nothing_is_missing(session, prompt) && !starts_anew {
        return hand_over(session, prompt, context);
    }
    if let Some(prompted) = polled_at_once(session, context) {
        return watch(session, &prompted, context);
    }
    if let Some(next) = provision::step(session, context) {
        return Some(next);
    }
    let stage = session.turn.as_ref()?.stage.clone();
    match stage {
        Stage::Ending { .. } => finish::step(session, context),
        Stage::Received { .. } => stray_run::end(session)
            .or_else(|| forge::move_on(session, context))
            .or_else(|| hand_over(session, prompt, context)),
        Stage::Prompting(prompted) => hand_over_again(session, &prompted.ids, prompt, context)
            .or_else(|| finish::step(session, context)),
        Stage::Running(prompted) => watch(session, &prompted, context),
    }
}

/// Whether the prompt can be sent on the evidence of the record alone: the thread was fine when its last turn ended,
/// nothing has gone wrong with this turn, and nothing has to be gathered for the text. Sending then doubles as the
/// check of the server: if the agent certainly did not get the prompt, the intent is taken back, and the usual steps
/// begin.
fn nothing_is_missing(session: &Session, prompt: &Prompt) -> bool {
    let untroubled = session.turn.as_ref().is_some_and(|turn| {
        turn.stage.is_received()
            && turn.tries.attempts == 0
            && turn.outages.provider_since_ms.is_none()
    });
    untroubled
        && session.sandbox.phase == Phase::Active
        && session.observed.sandbox.state.is_none()
        && session.conversation.session.is_some()
        && session.workspace().is_some()
        && session.stray.is_none()
        && !session.published.all().any(|(_, publication)| publication.is_over())
        && choose::list_options(session).is_none()
        && choose::unavailable(session).is_none()
        && prompt.attachments.is_empty()
        && !needs_digest(session)
}

/// The run to poll on the evidence of the record alone. The poll doubles as the check of the server; problems that it
/// finds are handled by the usual steps.
fn polled_at_once(session: &Session, context: &Context<'_>) -> Option<Prompted> {
    let turn = session.turn.as_ref()?;
    let prompted = turn.stage.prompted()?;
    let is_there = session.sandbox.phase == Phase::Active
        && session.conversation.session.is_some()
        && prompted.generation == session.sandbox.generation;
    let is_untroubled = turn.tries.attempts == 0
        && turn.outages.provider_since_ms.is_none()
        && record::foreign_lease_ms(session, context).is_none();
    let limits = context.delivery.limits;
    let is_polled = turn.stage.is_running() && !turn.is_held(&limits.poll, context.now_ms);
    (is_there && is_untroubled && is_polled).then(|| prompted.clone())
}

/// Replaces a card that will soon be too old to be edited. Only while the agent works: before that the card is young,
/// and at the end it is edited once more.
fn roll(session: &mut Session, context: &Context<'_>) {
    let after_ms = context.delivery.limits.chat.card_roll_ms;
    if let Some(turn) = &mut session.turn
        && turn.stage.is_running()
        && turn.card.old.is_none()
        && turn.card.since_ms.is_some_and(|at| context.now_ms >= at + after_ms)
        && let Some(old) = turn.card.at.take()
    {
        turn.card.old = Some(old);
        turn.card.since_ms = None;
        turn.card.rolls += 1;
    }
}

/// The state that the card should show, if there is no card yet or it shows another state. While the agent works,
/// following keeps it up to date.
fn card_to_show(session: &Session, context: &Context<'_>) -> Option<CardState> {
    let turn = session.turn.as_ref()?;
    if session.observed.chat.card_retry_ms.is_some_and(|at| context.now_ms < at) {
        return None;
    }
    let state = match (turn.stage.is_running(), session.sandbox.phase) {
        (true, _) => CardState::Working,
        (false, _) if turn.stage.is_received() && share::holder(session).is_some() => {
            CardState::Shared { holder: share::holder(session) }
        }
        (false, Phase::Active) => CardState::Received,
        (false, Phase::Creating) => set_up::shown(session).unwrap_or(CardState::Creating),
        (false, Phase::Destroyed | Phase::Error | Phase::Destroying) => CardState::Creating,
        (false, Phase::Pausing | Phase::Paused | Phase::Resuming) => CardState::Resuming,
    };
    let shown =
        turn.stage.is_running() || session.observed.chat.card_state.as_ref() == Some(&state);
    (turn.card.at.is_none() || !shown).then_some(state)
}

fn progress_card(session: &mut Session, context: &Context<'_>) -> Option<Effect> {
    let state = card_to_show(session, context)?;
    session.observed.chat.card_state = Some(state.clone());
    let turn = session.turn.as_ref()?;
    let (since_ms, model) = (turn.accepted_at_ms, turn.model(context.delivery.model));
    let card = Card {
        trouble: turn.trouble.clone(),
        spending: budget::shown(session),
        steps: set_up::steps(session),
        set_up: set_up::fact(session, context),
        ..Card::new(&turn.id, state, since_ms, context.now_ms, model)
    };
    let (turn_id, at, kind) = (turn.id.clone(), turn.card.at.clone(), turn.card_kind());
    Some(Effect::Chat(ChatEffect::Post { turn: turn_id, kind, at, post: Post::Card(card) }))
}

/// What the prompt's text needs besides the person's words: the files in the sandbox, and a digest of the thread for an
/// agent session that does not know it.
fn gather(
    session: &mut Session,
    prompt: &Prompt,
    digest: bool,
    context: &Context<'_>,
) -> Option<Next> {
    if !prompt.attachments.is_empty() && session.observed.agent.attached.is_none() {
        return Some(Next::Do(Effect::Agent(AgentEffect::Attach {
            turn: context.delivery.message.id.clone(),
            files: prompt.attachments.clone(),
        })));
    }
    if digest && session.observed.agent.digest.is_none() {
        return Some(Next::Do(Effect::Recall { turns: past(session) }));
    }
    None
}

/// The ended turns that a new agent session is told about.
fn past(session: &Session) -> Vec<TurnId> {
    let told = |ended: &&EndedTurn| ended.at_ms > session.conversation.fresh_since_ms;
    let turns = session.ended.iter().filter(told);
    turns.map(|ended| ended.id.clone()).collect()
}

/// Whether the present agent session knows nothing of the thread so far.
fn needs_digest(session: &Session) -> bool {
    session.conversation.briefed != session.conversation.session && !past(session).is_empty()
}

fn begins_with_digest(turn: &Turn) -> bool {
    turn.stage.prompted().is_some_and(|prompted| prompted.with_digest)
}

/// The intent was recorded before: a prompt that the agent does not have, or no longer works on, is sent under the same
/// ids, unless the turn is wanted over.
fn hand_over_again(
    session: &mut Session,
    ids: &PromptIds,
    prompt: &Prompt,
    context: &Context<'_>,
) -> Option<Next> {
    // Another agent session knows nothing of this turn; the one that may have begun it is gone.
    if session.conversation.briefed != session.conversation.session {
        record::fail(session, words::SESSION_VANISHED);
        return None;
    }
    if let Some(look) = steer::find_prompt(session) {
        return Some(look);
    }
    if let Some(turn) = session.turn.as_ref().filter(|turn| turn.is_wanted_over()) {
        let outcome = budget::of_wanted_over(turn, context);
        record::end_with(session, outcome);
        return None;
    }
    if session.turn.as_ref().is_some_and(|turn| !turn.steered.is_empty()) {
        return steer::again(session, context);
    }
    let digest = session.turn.as_ref().is_some_and(begins_with_digest);
    if let Some(next) = gather(session, prompt, digest, context) {
        return Some(next);
    }
    // A server that was started since may have other secrets.
    if let Some(before) = secrets::news(session, false) {
        secrets::tell(session);
        let turn = session.turn.as_mut()?;
        turn.stage.tells(before);
    }
    Some(send(session, (ids, Sending::Again), prompt, context))
}

/// First what belongs to the prompt; then the intent to prompt is recorded, and then the prompt is sent.
fn hand_over(session: &mut Session, prompt: &Prompt, context: &Context<'_>) -> Option<Next> {
    let message = context.delivery.message;
    if let Some(list) = choose::list_options(session) {
        return Some(Next::Do(list));
    }
    if let Some(words) = choose::refusal(session, context) {
        record::fail(session, &words);
        return finish::step(session, context);
    }
    let with_digest = needs_digest(session);
    if let Some(next) = gather(session, prompt, with_digest, context) {
        return Some(next);
    }
    if let Some(word) = pending_notice(session, with_digest, context) {
        return Some(Next::Do(Effect::Chat(ChatEffect::Post {
            turn: message.id.clone(),
            kind: PostKind::Told(short_name(&[&word])),
            at: None,
            post: Post::Notice(word),
        })));
    }
    let told_before = secret_news(session, with_digest);
    secrets::tell(session);
    let turn = session.turn.as_mut()?;
    let minted = || PromptIds::mint(&session.thread, &message.id, context.now_ms);
    let ids = turn.stage.ids().cloned().unwrap_or_else(minted);
    let prompted = Prompted::new(ids.clone(), session.sandbox.generation, context.now_ms);
    turn.stage = Stage::Prompting(Prompted { with_digest, told_before, ..prompted });
    session.conversation.briefed.clone_from(&session.conversation.session);
    let sending = Sending::First {
        within_ms: (!session.observed.agent.healthy)
            .then_some(context.delivery.limits.turn.health_active_ms),
    };
    Some(send(session, (&ids, sending), prompt, context))
}

/// What the people in the thread are told before the agent has the prompt; `None` once it is posted.
fn pending_notice(
    session: &mut Session,
    with_digest: bool,
    context: &Context<'_>,
) -> Option<String> {
    let missed = std::mem::take(&mut session.observed.chat.missed);
    let of_files = (!missed.is_empty()).then(|| words::missed(&missed));
    let is_told = std::mem::replace(&mut session.observed.chat.left_out_told, true);
    let of_clone = left_out(session, with_digest).filter(|_| !is_told);
    let of_pull = given(session, with_digest).and_then(words::given_is_over).filter(|_| !is_told);
    let has_work = session.observed.stays.values().any(|one| *one == CheckoutKeptReason::HasWork);
    let stays = has_work.then(|| words::STAYS_ON_OLD_BASE.to_owned()).filter(|_| !is_told);
    let of_project = set_up(session, with_digest).and_then(set_up::for_people).filter(|_| !is_told);
    // A stranger's checkout has no secrets that could change, but its people are told why.
    let of_secrets = (is_untold(session, with_digest)
        || secret_news(session, with_digest).is_some())
    .then(|| secrets::for_people(session, context))
    .flatten();
    let of_secrets = of_secrets.filter(|_| !is_told);
    let said = [stays, of_pull, of_clone.map(words::not_there), of_project, of_secrets, of_files];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// Whether the agent session was told nothing of its sandbox yet: one without earlier turns, or with a digest of them.
fn is_untold(session: &Session, with_digest: bool) -> bool {
    with_digest || past(session).is_empty()
}

/// What the clone left out, for an agent session that was not told yet.
fn left_out(session: &Session, with_digest: bool) -> Option<&str> {
    let left_out = session.sandbox.project.left_out.as_deref();
    left_out.filter(|_| is_untold(session, with_digest))
}

/// The repositories beside the thread's, for an agent session that was not told yet.
fn beside(session: &Session, with_digest: bool) -> Option<&[Carried]> {
    is_untold(session, with_digest).then_some(session.beside())
}

/// How the project was made ready, for an agent session that was not told yet.
fn set_up(session: &Session, with_digest: bool) -> Option<&SetUp> {
    let is_told = is_untold(session, with_digest) || session.observed.sandbox.project.has_news;
    session.sandbox.project.set_up.as_ref().filter(|_| is_told)
}

/// What the agent session was told before of the project's secrets, if it was not told of the present ones yet.
fn secret_news(session: &Session, with_digest: bool) -> Option<String> {
    secrets::news(session, is_untold(session, with_digest))
}

/// The pull request that the sandbox works from, for an agent session that was not told yet.
fn given(session: &Session, with_digest: bool) -> Option<&GivenPull> {
    session.sandbox.project.pull.as_ref().filter(|_| is_untold(session, with_digest))
}

fn send(
    session: &Session,
    (ids, sending): (&PromptIds, Sending),
    prompt: &Prompt,
    context: &Context<'_>,
) -> Next {
    let (Some(turn), Some(agent_session)) = (&session.turn, &session.conversation.session) else {
        return Next::Hold { delay_ms: 0, why: "the agent session is unknown".to_owned() };
    };
    let quoted = for_agent::quoted(&prompt.quotes);
    let left_out = left_out(session, begins_with_digest(turn)).map(for_agent::not_there);
    let beside = beside(session, begins_with_digest(turn)).and_then(for_agent::beside);
    let given = given(session, begins_with_digest(turn)).map(for_agent::given);
    let set_up = set_up(session, begins_with_digest(turn)).and_then(set_up::for_agent);
    let told_before = turn.stage.prompted().and_then(|prompted| prompted.told_before.as_deref());
    let secrets = told_before.and_then(|before| secrets::for_agent(session, before));
    let parts = [
        given.as_deref(),
        beside.as_deref(),
        left_out.as_deref(),
        set_up.as_deref(),
        secrets.as_deref(),
        turn.moved.as_deref(),
        session.observed.agent.digest.as_deref(),
        Some(&quoted),
        Some(&prompt.text),
        session.observed.agent.attached.as_deref(),
    ];
    let text = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    Next::Do(Effect::Agent(AgentEffect::SendPrompt {
        turn: turn.id.clone(),
        run_of: turn.id.clone(),
        agent_session: agent_session.clone(),
        ids: ids.clone(),
        text,
        model: turn.model(context.delivery.model).to_owned(),
        agent: turn.selection.agent.clone(),
        images: session.observed.agent.images.clone(),
        sending,
        limit: budget::key_limit(session, context),
    }))
}

/// While the agent works: abort if that is wanted, keep asks in the thread, follow.
fn watch(session: &mut Session, prompted: &Prompted, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    let Some(agent_session) = session.conversation.session.clone() else {
        record::fail(session, words::SESSION_VANISHED);
        return finish::step(session, context);
    };
    if let Some(turn) = &session.turn
        && turn.is_wanted_over()
        && !session.observed.agent.abort_sent
    {
        let newest = turn.steered.iter().rfind(|one| one.sent);
        let ids = newest.map_or(&prompted.ids, |one| &one.ids);
        return Some(Next::Do(Effect::Agent(AgentEffect::Abort {
            agent_session,
            message: ids.message.clone(),
            messages: turn.messages(),
        })));
    }
    let more = steer::step(session, context)
        .or_else(|| extra_posts::under_way(session, context))
        .or_else(|| ask_step(session, context));
    if more.is_some() {
        return more;
    }
    let turn = session.turn.as_ref()?;
    let open = || turn.asks.iter().filter(|ask| !ask.settled);
    let deadline = prompted.at_ms + limits.turn.turn_ms;
    let expiry = open().map(|ask| ask.expires_at_ms).min().unwrap_or(u64::MAX);
    let aborted = if session.observed.agent.abort_sent {
        context.now_ms + limits.sandbox.stop_ms
    } else {
        u64::MAX
    };
    // A card does not cut short the wait for an abort.
    let card = match (turn.card.since_ms, session.observed.chat.card_retry_ms) {
        _ if session.observed.agent.abort_sent => u64::MAX,
        (Some(at), _) if turn.card.old.is_none() => at + limits.chat.card_roll_ms,
        (None, Some(retry)) => retry,
        _ => u64::MAX,
    };
    let card_state = match (turn.is_wanted_over(), open().next().is_some()) {
        (true, _) => CardState::Stopping,
        (false, true) => CardState::Waiting,
        (false, false) => CardState::Working,
    };
    // Nor does the end of the time for which a run is held.
    let held =
        if turn.is_wanted_over() { u64::MAX } else { limits.poll.held_until(prompted.at_ms) };
    let parked = session.observed.parked.as_ref();
    let follow = Follow {
        agent_session,
        message: prompted.ids.message.clone(),
        further: turn.further(),
        turn: turn.id.clone(),
        card: KeptCard {
            at: turn.card.at.clone(),
            kind: turn.card_kind(),
            state: card_state,
            model: turn.model(context.delivery.model).to_owned(),
            budget: turn.reserved.as_ref().map(|reserved| reserved.amount),
            shows_budget: budget::shown(session).is_some(),
            set_up: set_up::fact(session, context),
        },
        since_ms: turn.accepted_at_ms,
        asks: turn.asks.clone(),
        cancel_known: turn.is_wanted_over(),
        steers: steer::known(session, turn, context),
        until_ms: context
            .delivery
            .follow_until_ms
            .min(held)
            .min(deadline)
            .min(expiry)
            .min(aborted)
            .min(card),
        ends_ms: deadline,
        gives_way: limits.poll.gives_way() && !turn.is_wanted_over(),
        seen: session.observed.agent.seen.clone(),
        seen_at_ms: parked.map(|parked| parked.at_ms),
        messages_max: limits.turn.turn_messages,
    };
    Some(Next::Do(Effect::Agent(if turn.is_only_polled(&limits.poll, context.now_ms) {
        AgentEffect::Look(follow)
    } else {
        AgentEffect::Follow(follow)
    })))
}

/// The next step of an ask: post it, decline it because nobody answered in time, or show it as settled.
fn ask_step(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    for ask in turn.asks.iter().filter(|ask| !ask.settled) {
        let decision = session.observed.agent.closed_asks.get(&ask.id);
        let closed = decision.is_some();
        let stands =
            ask.post.is_some() || extra_posts::is_over(session, &Aside::Ask(ask.id.clone()));
        if !closed && stands && context.now_ms < ask.expires_at_ms {
            continue;
        }
        if !closed && context.now_ms >= ask.expires_at_ms {
            return Some(Next::Do(Effect::Agent(AgentEffect::Decline {
                ask: ask.id.clone(),
                about: ask.about.clone(),
            })));
        }
        let settled = decision.map(|decision| match decision {
            Some(settlement) => crate::shown::asks::settled(ask, settlement),
            None if context.now_ms >= ask.expires_at_ms => words::unanswered(&ask.about).to_owned(),
            None => "No longer open.".to_owned(),
        });
        let kind = PostKind::Ask(ask.id.clone());
        let (turn_id, at, ask) = (turn.id.clone(), ask.post.clone(), ask.clone());
        // The requester is mentioned when the agent waits for a person, not when it no longer does.
        let waits = at.is_none() && settled.is_none() && !turn.by.id.is_empty();
        let people = waits.then(|| turn.by.id.clone()).into_iter().collect();
        return Some(Next::Do(Effect::Chat(ChatEffect::Post {
            turn: turn_id,
            kind,
            at,
            post: extra_posts::calling(people, Post::Ask { ask, settled }),
        })));
    }
    None
}
