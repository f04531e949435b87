//! Shows a queued prompt as waiting, or refuses it if too many wait.
//!
//! Runs beside control messages, because the run that the prompt waits for holds the thread's own group. Writes one
//! flag, on condition that the record has not moved since it was read: so a prompt that has begun is never marked as
//! waiting.
//! The flag notes the card once it is posted; if the turn has begun meanwhile and posted its own card, this card links
//! to that one. Every step can be repeated.

use std::time::Duration;

use bobbin_cloud::forward::bring_forward;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef};
use bobbin_core::base::names::PostKind;
use bobbin_core::protocol::decide::queue::{
    Admission, Announced, Steering, admit, announced, kept, steer,
};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::card::{Card, CardState, Post};
use bobbin_core::records::flags::Queued;
use bobbin_core::records::message::{Announce, Prompt};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::usage::Usage;

use crate::arrival::Arrival;
use crate::control::Lane;

/// Attempts within one delivery if the record moves between the read and the mark.
const TRIES_MAX: u32 = 5;
/// Pause between two attempts when a service does not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Shows a prompt as waiting, or has it sent into the run that it waits for.
pub async fn announce(lane: &Lane<'_>, announce: &Announce, arrival: Arrival) -> Verdict {
    let failure = match step(lane, announce, arrival.now_ms).await {
        Ok(true) => return Verdict::Done,
        Ok(false) => Failure::Wait {
            after_ms: 0,
            seen: "the record changed on every try to mark it".to_owned(),
        },
        Err(failure) => failure,
    };
    // Only a few attempts for a card: a Stop in the same group may wait behind it.
    let is_newer = matches!(failure, Failure::Newer { .. });
    let tried = is_newer || arrival.receive <= lane.limits.retry.attempts;
    let held = arrival.held(&failure, lane.limits.retry.control_ms, &lane.limits.retry);
    match held.filter(|_| tried) {
        Some(held) => held,
        // The prompt itself is in its own group and is worked on all the same.
        None => {
            tracing::warn!(event = "prompt.unshown", thread = %announce.thread, turn = %announce.turn, ?failure, "a waiting prompt could not be shown");
            Verdict::Done
        }
    }
}

/// False: the record moved at every attempt.
async fn step(lane: &Lane<'_>, announce: &Announce, now_ms: Ms) -> Result<bool, Failure> {
    for _ in 0..TRIES_MAX {
        let found =
            lane.store.load(&announce.thread, &announce.turn).await.map_err(|e| e.failure())?;
        let version = found.session.as_ref().map_or(0, |session| session.version);
        // The card is posted and noted: check whether its turn has taken it over.
        if let Some(queued) = found.flags.queued.get(&announce.turn)
            && let Some(at) = &queued.card
        {
            let settled = settle(lane, announce, queued, at, now_ms).await?;
            if settled {
                hasten(lane, announce).await?;
            }
            return Ok(settled);
        }
        let judged = admit(
            found.session.as_ref(),
            &found.flags,
            found.in_ledger,
            announce,
            &lane.limits.record,
        );
        let (refused, ahead) = match judged {
            Admission::Over | Admission::Unshown => return Ok(true),
            // A redelivery: the flag is written, the card may not be posted.
            Admission::Known { queued, ahead } => (queued.refused, ahead),
            Admission::Waits { ahead } => (false, ahead),
            Admission::Full => (true, 0),
        };
        let queued = Queued {
            by: announce.by.clone(),
            accepted_at_ms: announce.accepted_at_ms,
            card: None,
            refused,
            prompt: kept(&found.flags, announce, &lane.limits.record).filter(|_| !refused),
        };
        if !mark(lane, announce, &queued, version).await? {
            continue;
        }
        // A prompt that waits behind nothing begins at once, and posts its own card.
        if ahead == 0 && !refused {
            return Ok(true);
        }
        let state = if refused {
            CardState::Ended {
                outcome: Outcome::Failed { reason: words::QUEUE_FULL.to_owned() },
                usage: Usage::default(),
            }
        } else {
            CardState::Queued { ahead, now: queued.prompt.is_some() }
        };
        let since_ms = announce.accepted_at_ms;
        let card = Card::new(&announce.turn, state, since_ms, now_ms, lane.model);
        let at = lane
            .chat
            .of(&announce.thread)?
            .post(&announce.thread, &announce.turn, &PostKind::Card, None, &Post::Card(card))
            .await?;
        let settled = settle(lane, announce, &queued, &at, now_ms).await?;
        if settled {
            hasten(lane, announce).await?;
        }
        return Ok(settled);
    }
    Ok(false)
}

/// The card is posted: its turn takes it over, or has begun without it. False: check again.
async fn settle(
    lane: &Lane<'_>,
    announce: &Announce,
    queued: &Queued,
    at: &PostRef,
    now_ms: Ms,
) -> Result<bool, Failure> {
    let mut failed = None;
    for _ in 0..TRIES_MAX {
        // Only this delivery knows where the card is until it is noted, so transient failures are waited out here.
        if failed.is_some() {
            tokio::time::sleep(AGAIN).await;
        }
        match settle_once(lane, announce, queued, at, now_ms).await {
            Ok(Settled::Done) => return Ok(true),
            Ok(Settled::Noted) => return Ok(false),
            Ok(Settled::Overtaken) => {}
            Err(failure) => failed = Some(failure),
        }
    }
    failed.map_or(Ok(false), Err)
}

/// Result of one attempt.
enum Settled {
    /// The turn has the card, or the card shows the actual state.
    Done,
    /// Noted for a turn that has begun; it may be ending and not read its flags any more.
    Noted,
    /// The record moved.
    Overtaken,
}

async fn settle_once(
    lane: &Lane<'_>,
    announce: &Announce,
    queued: &Queued,
    at: &PostRef,
    now_ms: Ms,
) -> Result<Settled, Failure> {
    let (thread, turn) = (&announce.thread, &announce.turn);
    let found = lane.store.load(thread, turn).await;
    let found = found.map_err(|e| e.failure())?;
    let entries = if found.in_ledger {
        let entries = lane.store.entries(thread, std::slice::from_ref(turn)).await;
        entries.map_err(|e| e.failure())?
    } else {
        Vec::new()
    };
    let judged = announced(found.session.as_ref(), entries.first(), turn, at);
    let post = match judged {
        Announced::Right => return Ok(Settled::Done),
        Announced::Waits | Announced::Begins => {
            let version = found.session.as_ref().map_or(0, |session| session.version);
            let queued = Queued { card: Some(at.clone()), ..queued.clone() };
            let is_marked = mark(lane, announce, &queued, version).await?;
            return Ok(match judged {
                _ if !is_marked => Settled::Overtaken,
                Announced::Waits => Settled::Done,
                _ => Settled::Noted,
            });
        }
        Announced::Moved(to) => Post::Moved { to, link: None },
        Announced::Ended(outcome) => {
            let usage = Usage::default();
            let state = CardState::Ended { outcome, usage };
            let since_ms = announce.accepted_at_ms;
            Post::Card(Card::new(turn, state, since_ms, now_ms, lane.model))
        }
    };
    let kind = &PostKind::Card;
    lane.chat.of(thread)?.post(thread, turn, kind, Some(at), &post).await?;
    Ok(Settled::Done)
}

/// The requester did not want to wait: sets the flag of "Send now" if a run can take the prompt.
async fn hasten(lane: &Lane<'_>, announce: &Announce) -> Result<(), Failure> {
    let is_hasty = |prompt: &Prompt| prompt.now && prompt.membership.outside.is_none();
    if !announce.prompt.as_ref().is_some_and(is_hasty) {
        return Ok(());
    }
    let later = |e: bobbin_cloud::store::StoreError| e.failure();
    let (session, flags) = lane.store.record(&announce.thread).await.map_err(later)?;
    if steer(session.as_ref(), &flags, &announce.turn) == Steering::Flag {
        let (thread, turn, by) = (&announce.thread, &announce.turn, &announce.by);
        lane.store.mark_now(thread, turn, by).await.map_err(later)?;
        if let Some(running) = session.as_ref().and_then(|it| it.turn.as_ref()) {
            // If this fails, the poll comes at its own time.
            let _ = bring_forward(lane.store, lane.queues, thread, &running.id, None).await;
        }
    }
    Ok(())
}

async fn mark(
    lane: &Lane<'_>,
    announce: &Announce,
    queued: &Queued,
    version: u64,
) -> Result<bool, Failure> {
    lane.store
        .mark_queued(&announce.thread, &announce.turn, queued, version)
        .await
        .map_err(|e| e.failure())
}
