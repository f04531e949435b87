//! Dead letters: people who wait for the message are told that it will not be carried out. The sweeper detects letters,
//! the worker tells.
//!
//! A session's letter is told through the thread's own group, so that the record keeps its one writer. The letter is
//! kept, and sends its notice again, until the record or the ledger shows it. A prompt can be run again.

use bobbin_core::base::ids::{ThreadKey, TurnId, digest};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::message::{Body, DeadPrompt, Message, Reply, Surface, Work};

use crate::arrival::Arrival;
use crate::control::Lane;
use crate::opening;

/// Tells about one dead letter.
pub async fn notify(lane: &Lane<'_>, body: &Body, arrival: Arrival) -> Verdict {
    match body {
        Body::Message(Message { id, thread, work: Work::Sweep, .. }) => {
            match lane.store.sweep_is_done(thread, id).await {
                Ok(()) => Verdict::Done,
                Err(error) => arrival.given_back(&error.failure(), &lane.limits.retry),
            }
        }
        // A notice that died: the letter that it is about is still there, and sends it again. For an operation of
        // theirs the operator reads the record.
        Body::Message(Message {
            work:
                Work::Poll | Work::Reconcile | Work::DeadLetter { .. } | Work::Operate { by: None, .. },
            ..
        }) => Verdict::Done,
        Body::Message(Message {
            id, thread, work: Work::Operate { want, by: Some(by) }, ..
        }) => {
            let sandbox = thread.sandbox();
            // A named sandbox has no thread of its own: the place where the person asked is not known here.
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
            notify_thread(lane, message.thread.clone(), &message.id, prompt, arrival).await
        }
        Body::Open(open) => opening::notify(lane, open, words::NOT_DONE, arrival).await,
        Body::Control(control) => {
            let seen = words::NOT_DONE;
            lane.notify_thread(control, seen, arrival).await
        }
        Body::Overview(overview) => match &overview.place {
            Surface::Answer { reply, .. } => answer(lane, reply, arrival).await,
            // The Home keeps its last view; opening it again asks again.
            Surface::Home => Verdict::Done,
        },
        // The prompt behind an announcement is in its own group.
        Body::Announce(_) => Verdict::Done,
        // The next tick that still finds letters sends another.
        Body::DeadLetters(_) => Verdict::Done,
        // Nobody waits for it, and each use of the forge finds out by itself.
        Body::Forge(_) => Verdict::Done,
    }
}

/// Has a thread told, in its own group, that the message with this id will not be carried out; done once that is
/// recorded. A sandbox's group has no record of ended turns and no readers: its letters are done at once.
pub async fn notify_thread(
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
        Ok(()) => hold("its notice is being posted".to_owned()),
        Err(error) => hold(error.to_string()),
    }
}

async fn answer(lane: &Lane<'_>, reply: &Reply, arrival: Arrival) -> Verdict {
    let Err(failure) = lane.chat.answer(reply, words::NOT_DONE).await else {
        return Verdict::Done;
    };
    let held = arrival.held(&failure, lane.limits.retry.owed_ms, &lane.limits.retry);
    held.unwrap_or_else(|| {
        tracing::error!(
            event = "message.give_up.failed",
            ?failure,
            "a person could not be notified of a dead letter"
        );
        Verdict::Done
    })
}
