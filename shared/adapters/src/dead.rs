//! Dead letters: whoever waits for the message is told that nothing will come of it.
//!
//! What belongs to a session is told through the thread's own group, so that the record keeps its one writer.

use bobbin_core::decide::words;
use bobbin_core::drive::Verdict;
use bobbin_core::ids::{Ms, ThreadKey, digest};
use bobbin_core::limits::Limits;
use bobbin_core::message::{Body, Message, Place, Reply, Work};

use crate::chat::Chat;
use crate::queue::{QueueError, Queues};

/// Tells about one dead letter. `receive` counts its deliveries, from 1.
pub async fn bury(
    chat: &Chat,
    queues: &Queues,
    limits: &Limits,
    body: &Body,
    receive: u32,
    now_ms: Ms,
) -> Verdict {
    tracing::error!(
        event = "message.buried",
        message.id = body.id(),
        group = body.group(),
        "a message ended among the dead letters"
    );
    match body {
        Body::Message(Message {
            work: Work::Sweep | Work::Look | Work::Bury { .. } | Work::Operate { .. },
            ..
        }) => Verdict::Done,
        Body::Message(message) => {
            match tell_thread(queues, message.thread.clone(), &message.id, now_ms).await {
                Ok(()) => Verdict::Done,
                Err(error) => Verdict::Hold {
                    delay_ms: limits.backoff(receive),
                    why: error.to_string(),
                },
            }
        }
        Body::Open(open) => tell(chat, &open.reply).await,
        Body::Control(control) => tell(chat, &control.reply).await,
        Body::Overview(overview) => match &overview.place {
            Place::Answer { reply, .. } => tell(chat, reply).await,
            // The Home still shows what it showed; opening it again asks again.
            Place::Home => Verdict::Done,
        },
        // The prompt that it was about is in its own group.
        Body::Announce(_) => Verdict::Done,
    }
}

/// Has a thread told, in its own group, that nothing will come of the message with this id.
///
/// # Errors
/// When the queue does not take it; a repeat is harmless.
pub async fn tell_thread(
    queues: &Queues,
    thread: ThreadKey,
    turn: &str,
    now_ms: Ms,
) -> Result<(), QueueError> {
    let burial = Message {
        id: format!("bury-{}", &digest(&["bury", turn])[..24]),
        thread,
        accepted_at_ms: now_ms,
        work: Work::Bury {
            turn: turn.to_owned(),
        },
    };
    queues.send(&Body::Message(burial)).await
}

async fn tell(chat: &Chat, reply: &Reply) -> Verdict {
    if let Err(failure) = chat.tell(reply, words::NOT_DONE).await {
        tracing::error!(
            event = "message.bury.failed",
            ?failure,
            "a person could not be told of a dead letter"
        );
    }
    Verdict::Done
}
