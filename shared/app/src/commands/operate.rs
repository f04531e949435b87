//! The buttons of the list, and the answer to `sandbox-destroy`: a sandbox is stopped, started, kept as a snapshot,
//! destroyed.
//!
//! Promised: the operation goes through the sandbox's own group under an id derived from the click, so a repeat does
//! nothing; turns that have to end are told so before it is sent; the requester hears what happens next.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::base::person::Person;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, Operation, WhichSandbox};
use bobbin_core::records::message::{Body, Message, Work};
use bobbin_core::records::sandbox::{InUse, SandboxRecord};
use bobbin_core::shown::sandboxes::{Listed, asked_for};

use crate::arrival::Arrival;
use crate::control::Lane;

impl Lane<'_> {
    /// Turns that have to end are told so first; then the operation goes through the sandbox's group.
    pub(super) async fn operate(
        &self,
        control: &Control,
        (which, want): (&WhichSandbox, Operation),
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let (key, record) = match self.find_sandbox(control, which, found).await? {
            Ok(meant) => meant,
            Err(words) => return self.chat.answer(&control.reply, &words).await,
        };
        let listed = self.listed(&key, &record);
        if is_requested(&record, (want, &control.id, &control.by), arrival) {
            let words = asked_for(&listed, want, &control.thread);
            return self.answer_done(control, arrival, &words).await;
        }
        if let Some(why) = pointless(&listed, want) {
            return self.chat.answer(&control.reply, &why).await;
        }
        for in_use in ended_by(want, &record, arrival) {
            self.mark(&in_use.thread, &in_use.turn, control).await?;
        }
        let work = Work::Operate { want, by: Some(control.by.clone()) };
        self.send(control, work, Some(&key), arrival.now_ms).await?;
        tracing::info!(event = "sandbox.operation", sandbox = %key, by = control.by.id, want = want.word(), "an operation on a shared sandbox was requested in the chat");
        let words = asked_for(&listed, want, &control.thread);
        self.answer_done(control, arrival, &words).await
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

/// The turns that an operation ends. One that began since the person asked is not meant, however often the message
/// comes.
fn ended_by(
    want: Operation,
    record: &SandboxRecord,
    arrival: Arrival,
) -> impl Iterator<Item = &InUse> {
    let ends = matches!(want, Operation::Pause | Operation::Destroy);
    let in_use = record.sharing.in_use.iter().filter(move |_| ends);
    in_use.filter(move |one| arrival.may_mean(one.since_ms))
}

/// Whether an earlier delivery of the control message with this id has requested the operation: only the answer is
/// missing.
fn is_requested(
    record: &SandboxRecord,
    (want, id, by): (Operation, &str, &Person),
    arrival: Arrival,
) -> bool {
    let is_done = record.history.operated.iter().any(|one| one.id.as_str() == id);
    let closing = record.sharing.closing.as_ref().filter(|_| want == Operation::Destroy);
    let is_closing = closing.is_some_and(|one| one.id == by.id);
    let holder = record.lease.as_ref().and_then(|lease| lease.holder.split('#').next());
    let is_under_way = holder == Some(id);
    is_done || (arrival.receive > 1 && (is_closing || is_under_way))
}

pub(super) fn pointless(sandbox: &Listed, want: Operation) -> Option<String> {
    let why = sandbox.pointless(want)?;
    Some(format!("Nothing was done with {}: {why}.", sandbox.called()))
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::records::sandbox::{Lease, Operated, Phase, Sharing};

    use super::*;

    #[test]
    fn repeated_stop_spares_later_turns() {
        let thread = ThreadKey::discord("1", "2").expect("a key");
        let in_use = |turn: &str, since_ms| InUse {
            thread: thread.clone(),
            turn: turn.into(),
            common: true,
            since_ms,
            reserved: None,
            left: false,
        };
        let record = SandboxRecord {
            sharing: Sharing {
                in_use: vec![in_use("t1", 1_000), in_use("t2", 90_000)],
                ..Sharing::default()
            },
            ..SandboxRecord::new(0)
        };
        let again = Arrival { receive: 6, sent_ms: 60_000, now_ms: 95_000 };
        let ended =
            |want| -> Vec<&str> { ended_by(want, &record, again).map(|one| &*one.turn).collect() };
        assert_eq!(ended(Operation::Pause), ["t1"]);
        assert_eq!(ended(Operation::Destroy), ["t1"]);
        assert!(ended(Operation::Snapshot).is_empty());
    }

    #[test]
    fn retry_denies_nothing_that_was_requested() {
        let person = |id: &str| Person { id: id.to_owned(), name: id.to_owned() };
        let (ann, bob) = (person("ann"), person("bob"));
        let arrival = |receive| Arrival { receive, sent_ms: 1_000, now_ms: 2_000 };
        let mut record = SandboxRecord::new(0);
        let asks = |record: &SandboxRecord, want, by: &Person, receive| {
            is_requested(record, (want, "k1", by), arrival(receive))
        };
        assert!(!asks(&record, Operation::Pause, &ann, 2));
        record.lease = Some(Lease { holder: "k1#1".to_owned(), until_ms: 9_000 });
        assert!(asks(&record, Operation::Pause, &ann, 2));
        record.lease = None;
        record.sharing.closing = Some(ann.clone());
        assert!(asks(&record, Operation::Destroy, &ann, 2));
        assert!(!asks(&record, Operation::Destroy, &ann, 1));
        assert!(!asks(&record, Operation::Destroy, &bob, 2));
        assert!(!asks(&record, Operation::Pause, &ann, 2));
        let done = Operated { id: "k1".into(), want: Operation::Pause, at_ms: 1, trouble: None };
        record.history.operated.push(done);
        assert!(asks(&record, Operation::Pause, &ann, 2));
    }

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
