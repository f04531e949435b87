//! Folds what happened into the session.

use super::{
    Context, Next, absence, acts, budget, build, choose, extra_posts, failed, forge, operate,
    outage, outside, provision, publish, record, results, review, secrets, set_up, steer, unposted,
    watch, words,
};
use crate::base::ids::{Ms, PostRef};
use crate::base::names::PostKind;
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::protocol::event::{Cause, Event};
use crate::records::ask::Ask;
use crate::records::ledger;
use crate::records::observations::{AgentObserved, Observations};
use crate::records::outcome::Outcome;
use crate::records::parked::{Parked, Seen};
use crate::records::run::{PromptState, RunAnswer, RunEnd};
use crate::records::sandbox::Phase;
use crate::records::session::{OwnWorkspace, Session};
use crate::records::spending::Reservation;
use crate::records::turn::Turn;

/// Folds in what happened. Returns a step only if that itself ends the delivery.
pub(super) fn apply(session: &mut Session, cause: Cause, context: &Context<'_>) -> Option<Next> {
    match cause {
        Cause::Delivered => {
            delivered(session, context);
            None
        }
        Cause::Done(effect, event) => done(session, &effect, event, context),
        Cause::Both { work, card } => both(session, work, card, context),
    }
}

/// Folds in the outcome of an effect.
fn done(session: &mut Session, of: &Effect, event: Event, context: &Context<'_>) -> Option<Next> {
    match event {
        Event::Observed(state) => {
            outage::provider_answered(session);
            absence::seen(session, of, state, context);
        }
        Event::Counted(sandboxes) => {
            outage::provider_answered(session);
            session.observed.sandbox.of_tenant = Some(sandboxes);
        }
        Event::Cloned { left_out } => {
            outage::provider_answered(session);
            session.observed.sandbox.cloned = true;
            set_up::brought(session, &left_out);
            let left_out = forge::without_beside(session, left_out, context);
            session.sandbox.project.left_out = words::left_out(&left_out);
        }
        Event::RecipeRead(found) => {
            outage::provider_answered(session);
            set_up::recipe_read(session, found, context);
        }
        Event::SetUpSeen(seen) => {
            outage::provider_answered(session);
            set_up::seen(session, &seen, context);
        }
        Event::ProjectStarted { failed } => {
            outage::provider_answered(session);
            set_up::started(session, failed);
        }
        Event::RepositoryFound(found) => session.observed.sandbox.found_repository = Some(found),
        Event::Carried { carried, left_out } => {
            outage::provider_answered(session);
            forge::carried(session, of, carried, *left_out, context);
        }
        Event::OutgoingRead(outgoing) => {
            outage::provider_answered(session);
            session.observed.forge.outgoing = Some(outgoing);
        }
        Event::Pushed(ended) => publish::pushed(session, ended, context),
        Event::PullRequestSeen(seen) => session.observed.forge.pull_request = Some(seen),
        Event::GivenPullFound(found) => session.observed.forge.given_pull = Some(found),
        Event::ReviewRead(read) => session.observed.forge.review = Some(read),
        Event::ReviewPosted(ended) => review::ended(session, ended, context),
        Event::PresserSeen(seen) => session.observed.forge.presser = Some(seen),
        Event::Opened(ended) => publish::opened(session, of, ended, context),
        Event::Brought { branch, is_there } => {
            outage::provider_answered(session);
            session.observed.watch.brought.insert(branch, is_there);
        }
        Event::CheckoutMoved { base } => {
            outage::provider_answered(session);
            forge::moved(session, base);
        }
        Event::FailuresRead(said) => session.observed.watch.failures = Some(said),
        Event::PrebuildFound(found) => build::found(session, found),
        Event::Queued if build::requested(session, of) => {}
        Event::Queued => {
            if let Effect::Queue { messages } = of {
                let ids = messages.iter().map(|message| message.id.clone());
                session.observed.watch.queued.extend(ids);
            }
        }
        Event::PersonFound { account, found } => {
            session.observed.watch.people.insert(account, found);
        }
        Event::PullRequestActed(ended) => acts::ended(session, of, ended, context),
        Event::Responded => watch::responded(session, of, context),
        Event::PullRequestPolled(seen) => watch::polled(session, seen, context),
        Event::NotCloned { why } => {
            outage::provider_answered(session);
            if !forge::left_out(session, of, &why) {
                provision::not_cloned(session, &why, context);
            }
        }
        Event::OptionsListed(offer) => choose::options_listed(session, offer),
        Event::Recalled(entries) => {
            session.observed.agent.digest = Some(ledger::digest(&entries));
            session.observed.forge.recalled = Some(entries);
        }
        Event::Woken => {}
        Event::NameFound(whose) => session.observed.sandbox.name_found = Some(whose),
        Event::ToolsEnded => outside::ended(session, context),
        Event::AgentFound(seen) => session.observed.sandbox.agent_seen = Some(seen),
        Event::Told { thread } => {
            session.observed.chat.told.insert(thread);
        }
        Event::WorkspaceReady { directory, branch } => {
            outage::provider_answered(session);
            session.place.own =
                Some(OwnWorkspace { generation: session.sandbox.generation, directory, branch });
        }
        Event::NoWorkspace { why } => {
            outage::provider_answered(session);
            record::fail(session, &why);
        }
        Event::SnapshotSeen { name, seen } => {
            outage::provider_answered(session);
            operate::snapshot_seen(session, name, seen, context);
        }
        Event::SnapshotDeleted { name } => {
            outage::provider_answered(session);
            session.sandbox.snapshots.retain(|one| one.name != name);
        }
        Event::Healthy => {
            healthy(session);
            // Looking at a server does not tell which key it has.
            if let Effect::Sandbox(SandboxEffect::EnsureServer { restart, .. }) = of {
                session.sandbox.money.capped_until_ms = None;
                without_secrets(session, *restart);
            }
        }
        Event::Capped { until_ms } => {
            healthy(session);
            session.sandbox.money.capped_until_ms = Some(until_ms);
            if let Effect::Sandbox(SandboxEffect::EnsureServer { restart, .. }) = of {
                without_secrets(session, *restart);
            }
        }
        Event::Started { capped_until_ms, secrets } => {
            healthy(session);
            session.sandbox.money.capped_until_ms = capped_until_ms;
            secrets::given(session, Some(secrets));
        }
        Event::SecretsNotPutIn => {
            outage::provider_answered(session);
            provision::secrets_not_put_in(session, context);
        }
        Event::AgentSession { id } => {
            session.conversation.session = Some(id);
            session.conversation.generation = Some(session.sandbox.generation);
            session.observed.agent.session = true;
        }
        Event::Attached { note, missed, images } => {
            session.observed.agent.attached = Some(note);
            session.observed.chat.missed = missed;
            session.observed.agent.images = images;
        }
        Event::PromptFound(state) => prompt_found(session, state, context),
        Event::Prompted => {
            // An agent that takes a prompt is up and knows the session; an earlier doubt about its run is settled.
            session.observed.agent.seen.doubt = None;
            session.observed.agent.healthy = true;
            session.observed.agent.session = true;
            session.observed.agent.found = None;
            if let Some(turn) = &mut session.turn
                && turn.stage.is_with_agent()
            {
                turn.stage.taken();
                steer::sent(turn);
            }
        }
        Event::Finished(answer) => finished(session, answer, context),
        Event::StillRunning(seen) => return still_running(session, seen, context),
        Event::OthersWait(seen) => {
            let prompted = session.turn.as_mut().and_then(|turn| turn.stage.prompted_mut());
            if let Some(prompted) = prompted {
                prompted.let_go = true;
            }
            return still_running(session, seen, context);
        }
        Event::CancelSeen { by } => {
            if let Some(turn) = &mut session.turn {
                turn.cancelled_by.get_or_insert(by);
            }
        }
        Event::SteerSeen { turn, queued, by } => steer::take(session, &turn, queued, by, context),
        Event::CardMoved(at) => {
            if let Some(turn) = &mut session.turn {
                turn.card.at = Some(at);
                turn.card.since_ms = Some(context.now_ms);
            }
        }
        Event::Asked { id, about } => {
            let expires_at_ms = context.now_ms + context.delivery.limits.chat.ask_ms;
            if let Some(turn) = &mut session.turn
                && !turn.asks.iter().any(|ask| ask.id == id)
            {
                turn.asks.push(Ask { id, about, expires_at_ms, post: None, settled: false });
            }
        }
        Event::AskClosed { id, settlement } => {
            session.observed.agent.closed_asks.insert(id, settlement);
        }
        Event::Declined { id } => {
            session.observed.agent.closed_asks.insert(id, None);
        }
        Event::Aborted => session.observed.agent.abort_sent = true,
        Event::RunEnded => {
            session.stray = None;
            if session.turn.is_none() {
                record::leave_workspace(session);
            }
        }
        Event::Changed(changes) => results::changed(session, changes),
        Event::Listed(listed) => results::listed(session, listed, context),
        Event::Unshown { why } => {
            results::unshown(session, &why);
        }
        Event::Posted(at) => posted(session, of, at, context),
        Event::NotSent(failure) => {
            if failed::is_first_sending(of) {
                withdraw(session);
            }
            return failed::failed(session, of, failure, context);
        }
        Event::Failed(failure) => return failed::failed(session, of, failure, context),
    }
    None
}

fn healthy(session: &mut Session) {
    outage::provider_answered(session);
    session.observed.agent.healthy = true;
    session.observed.agent.restart_server = false;
}

/// A server that was restarted and reports no secrets has none.
fn without_secrets(session: &mut Session, is_anew: bool) {
    if is_anew {
        secrets::given(session, None);
    }
}

/// The work first: what the chat's refusal of a card means depends on how far the turn has come.
fn both(
    session: &mut Session,
    work: (Effect, Event),
    card: (Effect, Event),
    context: &Context<'_>,
) -> Option<Next> {
    let of_work = done(session, &work.0, work.1, context);
    let of_card = done(session, &card.0, card.1, context);
    // The card showed the turn in progress, even if that has ended meanwhile.
    session.observed.chat.final_card = false;
    match (of_work, of_card) {
        (Some(Next::Hold { delay_ms, why }), Some(Next::Hold { delay_ms: other, .. })) => {
            let delay_ms = delay_ms.max(other);
            Some(Next::Hold { delay_ms, why })
        }
        (of_work, of_card) => of_work.or(of_card),
    }
}

/// A prompt that was sent, or may have been, was looked for.
fn prompt_found(session: &mut Session, state: PromptState, context: &Context<'_>) {
    let Some(turn) = &mut session.turn else {
        return;
    };
    let resends = turn.stage.prompted().map_or(0, |prompted| prompted.resends);
    let was_cut = turn.stage.is_prompting() && resends > 0;
    // A prompt sent into its run is not looked for here, and may be the one that is broken off for good.
    if was_cut && !turn.steered.is_empty() {
        session.observed.agent.downs += 1;
    }
    match state {
        PromptState::Taken
            if session.observed.agent.downs > context.delivery.limits.turn.server_restarts => {}
        // It was only out of sight: nothing is sent again, and nothing is counted.
        PromptState::Taken => {
            if let Some(prompted) = turn.stage.prompted_mut() {
                prompted.resends = resends.saturating_sub(u32::from(was_cut));
            }
        }
        // Accepted does not mean begun: following finds out whether it ever begins.
        PromptState::Idle if !was_cut => {}
        PromptState::Idle | PromptState::Absent => {
            session.observed.agent.found = Some(state);
            return;
        }
    }
    if turn.stage.is_with_agent() {
        turn.stage.taken();
        steer::sent(turn);
    }
}

/// Takes the intent to prompt back: the agent has nothing of it, so the turn is where it was before.
fn withdraw(session: &mut Session) {
    let Some(turn) = &mut session.turn else {
        return;
    };
    let prompted = turn.stage.prompted();
    let with_digest = prompted.is_some_and(|prompted| prompted.with_digest);
    let told_before = prompted.and_then(|prompted| prompted.told_before.clone());
    if !turn.stage.withdrawn() {
        return;
    }
    if with_digest {
        session.conversation.briefed = None;
    }
    if let Some(before) = told_before {
        session.conversation.told = Some(before).filter(|before| !before.is_empty());
    }
    // Another sandbox may have to be given the files again.
    (session.observed.agent.attached, session.observed.agent.images) = (None, Vec::new());
}

fn delivered(session: &mut Session, context: &Context<'_>) {
    let parked = session.observed.parked.take();
    let of_turn = |parked: &&Parked| session.turn.as_ref().is_some_and(|it| it.id == parked.turn);
    let spent_before = parked.as_ref().filter(of_turn).and_then(|parked| parked.seen.spent);
    let parked = parked.filter(|parked| parked.turn == context.delivery.message.id);
    let seen = parked.as_ref().map(|parked| parked.seen.clone()).unwrap_or_default();
    session.observed = Observations {
        in_ledger: session.observed.in_ledger,
        // The write that begins the turn may have been refused over these.
        used: std::mem::take(&mut session.observed.used),
        spent_before,
        agent: AgentObserved { seen, ..AgentObserved::default() },
        parked,
        ..Observations::default()
    };
    record::catch_up(session);
    if matches!(session.sandbox.phase, Phase::Creating | Phase::Resuming)
        && record::foreign_lease_ms(session, context).is_none()
    {
        session.sandbox.phase_since_ms = context.now_ms;
    }
    // A turn that is found outside its run has cost a delivery: a worker crashed, or something kept failing.
    let ours = session.turn.as_ref().is_some_and(|turn| turn.id == context.delivery.message.id);
    // A sign of life: the sweeper finds a turn without one for longer than a delivery and a poll take. Not every poll
    // writes one.
    let is_armed = |due: Ms| due >= context.now_ms + context.delivery.limits.poll.out_of_sight_ms();
    if ours && !session.due_at_ms.is_some_and(is_armed) {
        record::arm(session, context);
    }
    let (id, receive) = (&context.delivery.message.id, context.delivery.receive);
    let parked = session.observed.parked.as_ref();
    let came_back = parked.is_some_and(|parked| parked.is_of_the_delivery_before(id, receive));
    if let Some(turn) = &mut session.turn
        && ours
        && let crashed = (std::mem::replace(&mut turn.in_hand, true) && !came_back)
        && let waited = std::mem::take(&mut turn.waits)
        && (crashed || !(turn.stage.is_running() || waited))
        && turn.outages.provider_since_ms.is_none()
        && turn.outages.chat_since_ms.is_none()
    {
        turn.tries.attempts += 1;
        if turn.tries.attempts > context.delivery.limits.retry.attempts && !turn.stage.is_ending() {
            let reason = words::kept_failing(turn.trouble.as_deref());
            record::fail(session, &reason);
        }
    }
}

fn finished(session: &mut Session, answer: RunAnswer, context: &Context<'_>) {
    record::see_cancel(session, context);
    let Some(turn) = session.turn.clone() else { return };
    let outcome = match (turn.aborting(), &turn.cancelled_by, &answer.end) {
        (Some(reason), _, _) => budget::of_abort(&turn, reason, context),
        (
            None,
            Some(by),
            RunEnd::Aborted
            | RunEnd::Rejected
            | RunEnd::Unexplained
            | RunEnd::Error { .. }
            | RunEnd::OverBudget { .. },
        ) => Outcome::Cancelled { by: by.name.clone() },
        (None, None, RunEnd::Aborted) => {
            Outcome::Failed { reason: words::ABORTED_ELSEWHERE.to_owned() }
        }
        (None, _, RunEnd::Error { reason }) => {
            Outcome::Failed { reason: words::model_failed(reason) }
        }
        (None, _, RunEnd::OverBudget { reason, of_key }) => {
            budget::of_vendor(session, (reason, *of_key), context)
        }
        (None, None, RunEnd::Unexplained) if answer.text.trim().is_empty() => {
            Outcome::Failed { reason: words::UNEXPLAINED.to_owned() }
        }
        (None, _, RunEnd::Completed | RunEnd::Cut | RunEnd::Unexplained | RunEnd::Rejected) => {
            Outcome::Answered
        }
    };
    session.observed.agent.answer = Some(answer);
    record::end_with(session, outcome);
}

fn still_running(session: &mut Session, seen: Seen, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    let aborted = session.observed.agent.abort_sent;
    session.observed.agent.seen = seen;
    if !aborted {
        budget::watch(session);
    }
    let turn = session.turn.as_mut()?;
    if aborted {
        // Told to end, and still busy after its bound: the thread does not wait for it.
        let outcome = budget::of_wanted_over(turn, context);
        record::end_with(session, outcome);
        return None;
    }
    if turn.aborting().is_some() {
        return None;
    }
    let prompted = turn.stage.prompted();
    if prompted.is_some_and(|prompted| context.now_ms >= prompted.at_ms + limits.turn.turn_ms) {
        turn.abort(words::ran_too_long(limits.turn.turn_ms));
        return None;
    }
    if turn.is_only_polled(&limits.poll, context.now_ms) {
        // The poll succeeded: only failures in a row count.
        turn.tries.attempts = 0;
        return Some(Next::Hold {
            delay_ms: next_poll_ms(turn, &session.observed.agent.seen, context),
            why: "the run goes on without a delivery".to_owned(),
        });
    }
    if context.now_ms >= context.delivery.follow_until_ms {
        let windows = turn.stage.prompted_mut().map_or(0, |prompted| {
            prompted.windows += 1;
            prompted.windows
        });
        // A whole follow window succeeded: only failures in a row count.
        turn.tries.attempts = 0;
        return Some(Next::Hold {
            delay_ms: 0,
            why: format!("follow window {windows} of the run is over"),
        });
    }
    None
}

/// Milliseconds until the next poll of a run. The delay grows with the age of the run, or of the newest open ask; a run
/// in doubt is polled soon.
fn next_poll_ms(turn: &Turn, seen: &Seen, context: &Context<'_>) -> u64 {
    let limits = context.delivery.limits;
    let sent_at_ms = turn.stage.prompted().map_or(turn.accepted_at_ms, |sent| sent.at_ms);
    let open = turn.asks.iter().filter(|ask| !ask.settled);
    let asked_at_ms = open.map(|ask| ask.expires_at_ms.saturating_sub(limits.chat.ask_ms)).max();
    // A long time between two looks would be many steps.
    let is_near = |reserved: &Reservation| seen.spent >= Some(reserved.amount / 2);
    let since_ms = match seen.doubt {
        Some(_) => context.now_ms,
        None if turn.reserved.as_ref().is_some_and(is_near) => context.now_ms,
        None => sent_at_ms.max(asked_at_ms.unwrap_or(0)),
    };
    let age_ms = context.now_ms.saturating_sub(since_ms);
    limits.poll.next_poll_after(age_ms, context.delivery.receive)
}

fn posted(session: &mut Session, of: &Effect, at: PostRef, context: &Context<'_>) {
    outage::chat_answered(session);
    if unposted::is_about(session, of) {
        return unposted::told(session, at, context);
    }
    if let Some(aside) = extra_posts::kind(session, of) {
        return extra_posts::posted(session, aside, at);
    }
    if watch::is_about(of) {
        return watch::posted(session, of, at, context);
    }
    let ending = session.turn.as_ref().is_some_and(|turn| turn.stage.is_ending());
    match (of.posts(), &mut session.turn) {
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn)) => {
            // A first post may already have existed, with the text of a worker that died before it was recorded: only
            // an edit is sure to show the end.
            let edited = turn.card.stands_at(at, context.now_ms);
            session.observed.chat.final_card = ending && edited;
        }
        (Some(PostKind::Chunk(_)), Some(turn)) => {
            turn.stage.told_mut().into_iter().for_each(|told| told.posted.push(at.clone()));
        }
        (Some(PostKind::Artifact(_)), _) => results::dealt_with(session),
        (Some(PostKind::Unshown), Some(turn)) => {
            turn.stage.told_mut().into_iter().for_each(|told| told.unshown.clear());
        }
        (Some(PostKind::Ask(id)), Some(turn)) => {
            let closed = session.observed.agent.closed_asks.contains_key(&id);
            if let Some(ask) = turn.asks.iter_mut().find(|ask| ask.id == id) {
                let edited = ask.post.replace(at).is_some();
                ask.settled = closed && edited;
                if ask.settled {
                    ask.about.shrink();
                }
            }
        }
        (Some(PostKind::Notice), _) => session.observed.chat.noticed = true,
        (Some(PostKind::Review), _) => session.observed.forge.is_shown = true,
        (Some(PostKind::PullReview | PostKind::PullReviewText), _) => review::posted(session, of),
        _ => {}
    }
}
