//! The buttons of the list, and the answer to `sandbox-destroy`: a sandbox is stopped, started, kept as a snapshot,
//! destroyed.
//!
//! Promised: the operation goes through the sandbox's own group under an id derived from the click, so a repeat does
//! nothing; turns that have to end are told so before it is sent; the requester hears what happens next.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::message::{Body, Control, Message, Operation, WhichSandbox, Work};
use bobbin_core::shown::sandboxes::{Listed, asked_for};

use crate::control::Lane;

impl Lane<'_> {
    /// Turns that have to end are told so first; then the operation goes through the sandbox's group.
    pub(super) async fn operate(
        &self,
        control: &Control,
        (which, want): (&WhichSandbox, Operation),
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let (key, record) = match self.meant(control, which, found).await? {
            Ok(meant) => meant,
            Err(words) => return self.chat.answer(&control.reply, &words).await,
        };
        let listed = self.listed(&key, &record);
        if let Some(why) = pointless(&listed, want) {
            return self.chat.answer(&control.reply, &why).await;
        }
        if matches!(want, Operation::Pause | Operation::Destroy) {
            for in_use in &record.sharing.in_use {
                self.mark(&in_use.thread, &in_use.turn, control).await?;
            }
        }
        let work = Work::Operate { want, by: Some(control.by.clone()) };
        self.send(control, work, Some(&key), now_ms).await?;
        tracing::info!(event = "sandbox.operation", sandbox = %key, by = control.by.id, want = want.word(), "an operation on a shared sandbox was requested in the chat");
        self.chat.answer(&control.reply, &asked_for(&listed, want, &control.thread)).await
    }

    pub(super) async fn send(
        &self,
        control: &Control,
        work: Work,
        sandbox: Option<&SandboxKey>,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let message = Body::Message(Message {
            id: control.id.as_str().into(),
            thread: sandbox.map_or_else(|| control.thread.clone(), SandboxKey::group),
            accepted_at_ms: now_ms,
            work,
        });
        let sent = self.queues.send(&message).await;
        sent.map(drop).map_err(|e| Failure::Wait { after_ms: 0, seen: e.to_string() })
    }
}

pub(super) fn pointless(sandbox: &Listed, want: Operation) -> Option<String> {
    let why = sandbox.pointless(want)?;
    Some(format!("Nothing was done with {}: {why}.", sandbox.called()))
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::records::sandbox::{Phase, SandboxRecord, Sharing};

    use super::*;

    #[test]
    fn what_comes_to_nothing_is_said_and_not_queued() {
        let key = ThreadKey::discord("1", "2").expect("a key").sandbox();
        let listed = |phase| {
            let name = Some("front".parse().expect("a name"));
            Listed::of(
                &key,
                &SandboxRecord {
                    phase,
                    generation: 1,
                    sharing: Sharing { name, ..Sharing::default() },
                    ..SandboxRecord::new(0)
                },
            )
        };
        let paused = pointless(&listed(Phase::Paused), Operation::Pause).expect("it is pointless");
        assert!(paused.starts_with("Nothing was done with "), "{paused}");
        assert_eq!(pointless(&listed(Phase::Active), Operation::Pause), None);
        assert_eq!(pointless(&listed(Phase::Paused), Operation::Resume), None);
    }
}
