//! A decision on the agent's ask.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::ask::{Ask, Choice};
use bobbin_core::records::control::Control;
use bobbin_core::shown::asks::{self, DecisionEffect};

use crate::control::{Lane, place};
use crate::sandboxes::WorkTarget;

impl Lane<'_> {
    /// The first decision settles the ask; later or unfitting decisions are answered with that.
    pub(super) async fn settle(
        &self,
        control: &Control,
        found: &Loaded,
        (ask, choice): (&str, &Choice),
        receive: u32,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let Loaded { session, flags, .. } = found;
        let record = session.as_ref().map(|session| (session, flags));
        let ruling = asks::rule(record, (ask, choice), &control.by, receive, now_ms);
        let (generation, ask, settlement) = match ruling {
            DecisionEffect::Mark { generation, ask, settlement } => (generation, ask, settlement),
            DecisionEffect::TellAgent { generation, ask, choice } => {
                return self.carry_out(control, found, generation, (ask, &choice)).await;
            }
            DecisionEffect::TellPerson(words) => {
                return self.chat.answer(&control.reply, &words).await;
            }
        };
        let first = self
            .store
            .mark_settled(&control.thread, &ask.id, &settlement)
            .await
            .map_err(|e| e.failure())?;
        if first {
            return self.carry_out(control, found, generation, (ask, &settlement.choice)).await;
        }
        let (_, flags) = self.record(&control.thread).await?;
        let words = flags
            .settled
            .get(&ask.id)
            .map_or_else(|| asks::OVER.to_owned(), |first| asks::too_late(ask, first));
        self.chat.answer(&control.reply, &words).await
    }

    async fn carry_out(
        &self,
        control: &Control,
        found: &Loaded,
        generation: u32,
        (ask, decision): (&Ask, &Choice),
    ) -> Result<(), Failure> {
        let sandboxes = self.sandboxes(&control.thread, found).await?;
        let (sandbox, workspace) = place(&control.thread, found);
        let target = WorkTarget {
            thread: &control.thread,
            sandbox: &sandbox,
            generation,
            workspace: &workspace,
        };
        let told = sandboxes.settle(target, (&ask.id, &ask.about), decision).await;
        // The decision is on record, and nobody can make another one: it is told again, here and by each look.
        told.map_err(|failure| match failure {
            Failure::SandboxDown { seen } | Failure::ResumeFailed { seen } => {
                Failure::Wait { after_ms: 0, seen }
            }
            other => other,
        })?;
        if let Some(turn) = found.session.as_ref().and_then(|it| it.turn.as_ref()) {
            self.poll_now(control, turn).await;
        }
        Ok(())
    }
}
