//! The buttons *Run again* and *Continue*: run the prompt of a failed turn once more, or let one go on that a budget
//! has ended.

use bobbin_cloud::queue::QueueError;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{ThreadKey, TurnId, digest};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::Post;
use bobbin_core::records::control::Control;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Announce, Body, Message, Prompt, Work};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::text::{dollars, one_line, shorten};

use crate::arrival::Arrival;
use crate::control::Lane;

/// Characters of a task that are quoted when it runs again.
const AGAIN_CHARS_MAX: usize = 200;

impl Lane<'_> {
    /// Queues the prompt of such a turn as a new turn of its thread. Its id follows from the first one's, so it runs
    /// once, however often somebody presses.
    pub(super) async fn again(
        &self,
        control: &Control,
        turn: &TurnId,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let id: TurnId = again_id(&control.thread, turn).into();
        let mut entries = self.entries(&control.thread, &[turn.to_owned(), id.clone()]).await?;
        let is_over = entries.iter().any(|entry| entry.turn == id);
        entries.retain(|entry| entry.turn == *turn);
        let Some(LedgerEntry { again: Some(prompt), outcome, .. }) = entries.pop() else {
            const GONE: &str =
                "The text of that task is no longer kept. Send it again as a new message.";
            return self.chat.answer(&control.reply, GONE).await;
        };
        // A turn runs again once. Somebody whose budget that did not raise may have pressed before.
        if is_over {
            const PRESSED: &str =
                "Somebody has already pressed this. The newest card below is the one that counts.";
            return self.chat.answer(&control.reply, PRESSED).await;
        }
        let said = AgainWords::of(&outcome, prompt.task());
        self.name_again(control, &id, &said).await;
        let membership = if prompt.extends.is_some() {
            self.membership_if_said(control).await?
        } else {
            control.membership.clone()
        };
        let message = Body::Message(Message {
            id,
            thread: control.thread.clone(),
            accepted_at_ms: arrival.now_ms,
            work: Work::Prompt(Prompt { by: control.by.clone(), membership, ..prompt }),
        });
        let later = |e: QueueError| Failure::Wait { after_ms: 0, seen: e.to_string() };
        self.queues.send(&message).await.map_err(later)?;
        if let Some(announce) = Announce::of(&message) {
            self.queues.send(&Body::Announce(announce)).await.map_err(later)?;
        }
        self.answer_done(control, arrival, &said.answer).await
    }

    /// Says in the thread what runs again: the new card does not quote the task. A failure to say it stops nothing.
    async fn name_again(&self, control: &Control, id: &TurnId, said: &AgainWords) {
        let words = format!("{} {}", one_line(&control.by.name), said.notice);
        let notice = Post::Notice(words);
        // Not the turn's own id: the posts of its run use that.
        let name = TurnId::from(format!("{id}-task"));
        let thread = &control.thread;
        let said = async {
            self.chat.of(thread)?.post(thread, &name, &PostKind::Notice, None, &notice).await
        };
        if let Err(failure) = said.await {
            tracing::info!(event = "again.notice.failed", thread = %control.thread, ?failure, "the notice of a repeated task could not be posted");
        }
    }
}

/// The replies to a press.
struct AgainWords {
    /// To the thread, after the person's name.
    notice: String,
    /// To the person.
    answer: String,
}

impl AgainWords {
    fn of(outcome: &Outcome, task: &str) -> Self {
        let task = shorten(&one_line(task), AGAIN_CHARS_MAX);
        match outcome {
            Outcome::OverBudget { more, by: Some(_), .. } => {
                let more = dollars(*more);
                Self {
                    notice: format!("lets this go on with {more} more: {task}"),
                    answer: format!("Continuing with {more} more below."),
                }
            }
            _ => Self {
                notice: format!("runs this again: {task}"),
                answer: "Running it again below.".to_owned(),
            },
        }
    }
}

/// The id of the turn that runs a turn's task again.
fn again_id(thread: &ThreadKey, turn: &TurnId) -> String {
    format!("again-{}", &digest(&["again", &thread.to_string(), turn])[..24])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_presses_run_a_turn_once() {
        let id = |thread: &str, turn: &str| {
            again_id(&ThreadKey::discord("1", thread).expect("a key"), &turn.into())
        };
        assert_eq!(id("2", "m1"), id("2", "m1"));
        assert_ne!(id("2", "m1"), id("2", "m2"));
        assert_ne!(id("2", "m1"), id("3", "m1"));
    }
}
