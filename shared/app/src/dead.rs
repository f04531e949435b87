//! Dead letters: whoever waits for the message is told that nothing will come of it. The sweeper sees that there are some,
//! the worker tells.
//!
//! What belongs to a session is told through the thread's own group, so that the record keeps its one writer; the letter is
//! kept until the record or the ledger says so, and sends its notice again until then. What was a prompt can be run again.

use bobbin_core::base::ids::{ThreadKey, TurnId, digest};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::message::{Body, DeadPrompt, Message, Reply, Surface, Work};

use crate::arrival::Arrival;
use crate::control::Lane;
use crate::opening;

/// Tells about one dead letter.
pub async fn tell(lane: &Lane<'_>, body: &Body, arrival: Arrival) -> Verdict {
    match body {
        Body::Message(Message { id, thread, work: Work::Sweep, .. }) => {
            match lane.store.sweep_is_done(thread, id).await {
                Ok(()) => Verdict::Done,
                Err(error) => arrival.given_back(&error.failure(), &lane.limits.retry),
            }
        }
        // The letter of the message that it buries is still there, and sends it again. Who runs the stack reads the record.
        Body::Message(Message {
            work: Work::Reconcile | Work::DeadLetter { .. } | Work::Operate { by: None, .. },
            ..
        }) => Verdict::Done,
        Body::Message(Message {
            id, thread, work: Work::Operate { want, by: Some(by) }, ..
        }) => {
            let sandbox = thread.sandbox();
            // One that has a name and no thread of its own: where the person asked is not known here.
            if !sandbox.has_thread() {
                return Verdict::Done;
            }
            let words = words::not_carried_out(want.effect(), words::NOT_DONE);
            lane.call(sandbox.thread(), id, by, words, arrival).await
        }
        Body::Message(message) => {
            let prompt = message.prompt_of(&message.id).map(|prompt| DeadPrompt {
                accepted_at_ms: message.accepted_at_ms,
                prompt: prompt.clone(),
            });
            tell_in_thread(lane, message.thread.clone(), &message.id, prompt, arrival).await
        }
        Body::Open(open) => opening::tell(lane, open, words::NOT_DONE, arrival).await,
        Body::Control(control) => {
            let seen = words::NOT_DONE;
            lane.tell_in_thread(control, seen, arrival).await
        }
        Body::Overview(overview) => match &overview.place {
            Surface::Answer { reply, .. } => answer(lane, reply, arrival).await,
            // The Home still shows what it showed; opening it again asks again.
            Surface::Home => Verdict::Done,
        },
        // The prompt that it was about is in its own group; which copy counts is known before anybody is told.
        Body::Announce(_) | Body::Candidate(_) => Verdict::Done,
        // A sweep that finds those that are still there says so again.
        Body::DeadLetters(_) => Verdict::Done,
    }
}

/// Has a thread told, in its own group, that nothing will come of the message with this id; done once that is on record. A
/// sandbox's group has no record of what has ended and nobody who reads it: its letters are done as they are.
pub async fn tell_in_thread(
    lane: &Lane<'_>,
    thread: ThreadKey,
    turn: &TurnId,
    prompt: Option<DeadPrompt>,
    arrival: Arrival,
) -> Verdict {
    if !thread.is_conversation() {
        return Verdict::Done;
    }
    let hold = |why: String| Verdict::Hold {
        delay_ms: lane.limits.retry.outage_backoff(arrival.receive),
        why,
    };
    match lane.store.load(&thread, turn).await {
        Ok(found) => {
            let record = found.session.as_ref();
            let is_recorded =
                record.is_some_and(|session| session.ended.iter().any(|ended| ended.id == *turn));
            if found.in_ledger || is_recorded {
                return Verdict::Done;
            }
        }
        Err(error) => return arrival.given_back(&error.failure(), &lane.limits.retry),
    }
    let notice = Message {
        id: format!("bury-{}", &digest(&["bury", turn])[..24]).into(),
        thread,
        accepted_at_ms: arrival.now_ms,
        work: Work::DeadLetter { turn: turn.to_owned(), prompt: prompt.map(Box::new) },
    };
    match lane.queues.send(&Body::Message(notice)).await {
        Ok(()) => hold("its notice is under way".to_owned()),
        Err(error) => hold(error.to_string()),
    }
}

async fn answer(lane: &Lane<'_>, reply: &Reply, arrival: Arrival) -> Verdict {
    let Err(failure) = lane.chat.tell(reply, words::NOT_DONE).await else {
        return Verdict::Done;
    };
    let held = arrival.held(&failure, lane.limits.retry.owed_ms, &lane.limits.retry);
    held.unwrap_or_else(|| {
        tracing::error!(
            event = "message.bury.failed",
            ?failure,
            "a person could not be told of a dead letter"
        );
        Verdict::Done
    })
}
