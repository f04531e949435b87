//! The button *Send now*: sends a waiting prompt into the current run.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::TurnId;
use bobbin_core::protocol::decide::queue::{Steering, steer};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;

use crate::control::Lane;

impl Lane<'_> {
    /// Sets only the flag: the worker that follows the run records the intent and sends the prompt.
    pub(super) async fn now(
        &self,
        control: &Control,
        found: &Loaded,
        turn: &TurnId,
    ) -> Result<(), Failure> {
        let words = match steer(found.session.as_ref(), &found.flags, turn) {
            Steering::Flag => {
                let marked = self
                    .store
                    .mark_now(&control.thread, turn, &control.by)
                    .await
                    .map_err(|e| e.failure())?;
                if marked {
                    if let Some(running) = found.session.as_ref().and_then(|it| it.turn.as_ref()) {
                        self.poll_now(control, running).await;
                    }
                    return Ok(());
                } else {
                    words::SENDS_ALREADY
                }
            }
            Steering::Sent => words::SENT_ALREADY,
            Steering::Over => words::NOT_WAITING,
            Steering::NothingRuns => words::NOTHING_RUNS,
            Steering::NotKept => words::NOT_KEPT,
        };
        self.chat.answer(&control.reply, words).await
    }
}
