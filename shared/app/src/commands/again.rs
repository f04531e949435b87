//! The button *Run again*: runs the prompt of a failed turn once more.

use bobbin_cloud::queue::QueueError;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, ThreadKey, TurnId, digest};
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Announce, Body, Control, Message, Prompt, Work};
use bobbin_core::text::{one_line, shorten};

use crate::control::Lane;

/// Characters of a task that are quoted when it runs again.
const AGAIN_CHARS_MAX: usize = 200;

impl Lane<'_> {
    /// The prompt of a failed turn goes into the thread's group once more, as a new turn whose id is derived from the
    /// first one's: it runs once, however often the button is clicked.
    pub(super) async fn again(
        &self,
        control: &Control,
        turn: &TurnId,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let found = self
            .entries(&control.thread, &[turn.to_owned()])
            .await?
            .pop()
            .and_then(|entry| entry.again);
        let Some(prompt) = found else {
            const GONE: &str =
                "The text of that task is no longer kept. Send it again as a new message.";
            return self.chat.answer(&control.reply, GONE).await;
        };
        let id: TurnId = again_id(&control.thread, turn).into();
        self.name_again(control, &id, &prompt.text).await;
        let message = Body::Message(Message {
            id,
            thread: control.thread.clone(),
            accepted_at_ms: now_ms,
            work: Work::Prompt(Prompt {
                by: control.by.clone(),
                membership: control.membership.clone(),
                ..prompt
            }),
        });
        let later = |e: QueueError| Failure::Wait { after_ms: 0, seen: e.to_string() };
        self.queues.send(&message).await.map_err(later)?;
        if let Some(announce) = Announce::of(&message) {
            self.queues.send(&Body::Announce(announce)).await.map_err(later)?;
        }
        self.chat.answer(&control.reply, "It runs again, below.").await
    }

    /// Says in the thread what runs again: the new card does not quote the task. A failure to say it stops nothing.
    async fn name_again(&self, control: &Control, id: &TurnId, task: &str) {
        let task = shorten(&one_line(task), AGAIN_CHARS_MAX);
        let words = format!("{} runs this again: {task}", one_line(&control.by.name));
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

/// The id of the turn that runs a turn's task again.
fn again_id(thread: &ThreadKey, turn: &TurnId) -> String {
    format!("again-{}", &digest(&["again", &thread.to_string(), turn])[..24])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_runs_again_once_however_often_it_is_pressed() {
        let id = |thread: &str, turn: &str| {
            again_id(&ThreadKey::discord("1", thread).expect("a key"), &turn.into())
        };
        assert_eq!(id("2", "m1"), id("2", "m1"));
        assert_ne!(id("2", "m1"), id("2", "m2"));
        assert_ne!(id("2", "m1"), id("3", "m1"));
    }
}
