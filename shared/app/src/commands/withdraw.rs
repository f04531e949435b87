//! Withdraws a waiting prompt: by *Withdraw* on its card, or because its message was deleted.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::{Card, CardState};
use bobbin_core::records::control::Control;
use bobbin_core::records::flags::{ControlFlags, Queued};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::usage::Usage;

use crate::arrival::Arrival;
use crate::control::Lane;

/// How long after the deletion of a message the announcement of its prompt may still be under way.
const ANNOUNCED_MS: u64 = 5_000;

impl Lane<'_> {
    /// The message of a prompt was deleted: the prompt is withdrawn if it still waits. Nothing is written for any other
    /// message. The announcement may arrive a moment later, so an unknown prompt is looked up a second time.
    pub(super) async fn take_back(
        &self,
        control: &Control,
        turn: &TurnId,
        flags: &ControlFlags,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        match flags.queued.get(turn) {
            Some(queued) if !queued.refused => {
                self.withdraw(control, turn, Some(queued), arrival).await
            }
            None if !arrival.is_older_than(ANNOUNCED_MS) => Err(Failure::Wait {
                after_ms: ANNOUNCED_MS,
                seen: "its announcement may be on its way".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// It still waits in the queue: the card is changed at once, and the flag ends it when its message comes.
    pub(super) async fn withdraw(
        &self,
        control: &Control,
        turn: &TurnId,
        queued: Option<&Queued>,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        self.mark(&control.thread, turn, control).await?;
        let Some(queued) = queued else { return Ok(()) };
        let shown = self.show_withdrawn(control, turn, queued, arrival.now_ms).await;
        self.after_done(control, arrival, shown)
    }

    pub(super) async fn show_withdrawn(
        &self,
        control: &Control,
        turn: &TurnId,
        queued: &Queued,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let Some(at) = &queued.card else {
            return Ok(());
        };
        let state = CardState::Ended {
            outcome: Outcome::Cancelled { by: control.by.name.clone() },
            usage: Usage::default(),
        };
        let card = Card::new(turn, state, queued.accepted_at_ms, now_ms, self.model);
        self.show(&control.thread, at, &PostKind::Card, card).await
    }
}
