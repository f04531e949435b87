//! What the machine promises its driver, in every state of a delivery.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::base::ids::{PostRef, ThreadKey};
use crate::base::limits::Limits;
use crate::base::person::Person;
use crate::protocol::effect::{AgentEffect, ChatEffect, SandboxEffect};
use crate::records::changes::Changes;
use crate::records::message::{Message, Prompt, Work};
use crate::records::run::RunAnswer;
use crate::records::sandbox::SandboxState;
use crate::records::tool_sandbox::AgentSeen;
use crate::records::usage::Usage;
use crate::tenant::catalogue::AgentOptions;
use crate::tenant::runtime_mode::RuntimeMode;

const NOW: Now = Now { ms: 1_000_000, visible_until_ms: 1_060_000 };
const LAPSED: Now = Now { visible_until_ms: NOW.ms, ..NOW };
const RECEIVE: u32 = 3;

fn ann() -> Person {
    Person { id: "ann".to_owned(), name: "ann".to_owned() }
}

fn with<T>(check: impl FnOnce(&Delivery<'_>) -> T) -> T {
    let message = Message {
        id: "m1".into(),
        thread: ThreadKey::discord("1", "2").unwrap(),
        accepted_at_ms: NOW.ms - 600_000,
        work: Work::Prompt(Prompt { text: "do it".to_owned(), by: ann(), ..Prompt::default() }),
    };
    check(&Delivery {
        message: &message,
        id: "m1#3".to_owned(),
        receive: RECEIVE,
        follow_until_ms: NOW.visible_until_ms,
        model: "anthropic/m",
        providers: &[],
        runtime: RuntimeMode::OpenCode,
        forge: None,
        limits: &Limits::DEFAULT,
        split: |text| vec![text.to_owned()],
    })
}

fn finished(end: RunEnd) -> Event {
    Event::Finished(RunAnswer {
        end,
        text: "the answer".to_owned(),
        usage: Usage::default(),
        steps: Vec::new(),
        earlier: 0,
        plan: Vec::new(),
    })
}

/// The answers of a faultless world to the effects of a first message.
fn answer(effect: &Effect) -> Event {
    match effect {
        Effect::Sandbox(SandboxEffect::Count { .. }) => Event::Counted(0),
        Effect::Sandbox(SandboxEffect::Create { .. })
        | Effect::Sandbox(SandboxEffect::Observe { .. }) => Event::Observed(SandboxState::Running),
        Effect::Sandbox(SandboxEffect::EnsureServer { .. })
        | Effect::Agent(AgentEffect::CheckServer { .. }) => Event::Healthy,
        Effect::Agent(AgentEffect::FindAgentSession { .. }) => {
            Event::AgentSession { id: "ses_1".into() }
        }
        Effect::ListOptions { .. } => Event::OptionsListed(AgentOptions::default()),
        Effect::Agent(AgentEffect::SendPrompt { .. }) => Event::Prompted,
        Effect::Agent(AgentEffect::Follow(_)) => finished(RunEnd::Completed),
        Effect::Agent(AgentEffect::ReadChanges { .. }) => Event::Changed(Changes::default()),
        Effect::Agent(AgentEffect::ListArtifacts) => Event::Listed(Vec::new()),
        Effect::EndTools => Event::ToolsEnded,
        Effect::FindAgent { .. } => Event::AgentFound(AgentSeen::default()),
        Effect::Wake { .. } => Event::Woken,
        Effect::Chat(ChatEffect::Post { turn, kind, .. }) => {
            Event::Posted(PostRef { channel: "c".to_owned(), id: format!("{turn} {kind:?}") })
        }
        other => panic!("a first message does not need {other:?}"),
    }
}

fn outcome(step: &Step<'_>) -> Option<StepOutcome> {
    Some(match step {
        Step::Read => StepOutcome::Loaded(Ok(Loaded::default())),
        Step::Write { .. } => StepOutcome::Saved(Ok(Saved::Written(ControlFlags::default()))),
        Step::Park(_) => StepOutcome::Parked(Some(ControlFlags::default())),
        Step::Perform(asked) => StepOutcome::Done(answer(asked.effect).into()),
        Step::PerformBoth { work, card } => {
            let [work, card] = [work, card].map(|asked| answer(asked.effect).into());
            StepOutcome::BothDone { work, card }
        }
        Step::End(_) => return None,
    })
}

/// All states of the delivery of a first message, to its end.
fn places(delivery: &Delivery<'_>) -> Vec<Machine> {
    let mut places = vec![Machine::Start];
    while let Some(last) = places.last()
        && let Some(came) = outcome(&last.step(NOW, delivery))
    {
        places.push(last.clone().after(came, NOW, delivery));
    }
    places
}

const fn performs(step: &Step<'_>) -> bool {
    matches!(step, Step::Perform(_) | Step::PerformBoth { .. })
}

fn outage(after_ms: u64) -> Failure {
    Failure::Outage { after_ms, seen: "the table does not answer".to_owned() }
}

fn newer_shape() -> Failure {
    Failure::Newer { seen: "the record is of shape 2".to_owned() }
}

/// The verdict, if the delivery is over.
fn verdict(machine: &Machine, delivery: &Delivery<'_>) -> Option<Verdict> {
    match machine.step(NOW, delivery) {
        Step::End(verdict) => Some(verdict),
        _ => None,
    }
}

fn delay_ms(machine: &Machine, delivery: &Delivery<'_>) -> u64 {
    match verdict(machine, delivery) {
        Some(Verdict::Hold { delay_ms, .. }) => delay_ms,
        other => panic!("not held: {other:?}"),
    }
}

/// The state before the effect that `wanted` picks.
fn before(delivery: &Delivery<'_>, wanted: fn(&Step<'_>) -> bool) -> Machine {
    let mut places = places(delivery).into_iter();
    places.find(|machine| wanted(&machine.step(NOW, delivery))).unwrap()
}

#[test]
fn message_completes_without_failures() {
    with(|delivery| {
        let places = places(delivery);
        let last = places.last().unwrap();
        assert_eq!(verdict(last, delivery), Some(Verdict::Done));
        let steps = places.iter().map(|machine| machine.step(NOW, delivery));
        assert!(steps.filter(performs).count() > 5);
    });
}

#[test]
fn effects_require_saved_intent() {
    with(|delivery| {
        let mut stored = None;
        let (mut writes, mut effects) = (0, 0);
        for machine in places(delivery) {
            match machine.step(NOW, delivery) {
                Step::Write { write: RecordsWrite { session, expected, .. }, .. } => {
                    writes += 1;
                    assert_eq!(expected.thread, Some(session.version));
                    stored = Some(expected.followed_by(session.clone()));
                    for refused in [
                        Ok(Saved::Conflict),
                        Err(outage(0)),
                        Err(newer_shape()),
                        Err(Failure::SandboxGone),
                    ] {
                        let outcome = StepOutcome::Saved(refused);
                        let after = machine.clone().after(outcome, NOW, delivery);
                        let reads = matches!(after, Machine::Overtaken { .. });
                        assert!(reads || verdict(&after, delivery).is_some(), "{after:?}");
                    }
                }
                step if performs(&step) => {
                    effects += 1;
                    let Machine::Act { known, .. } = &machine else { panic!("{machine:?}") };
                    let stored = stored.as_ref().unwrap();
                    assert!(known.session.same_record(stored), "before {step:?}");
                }
                _ => {}
            }
        }
        assert!(writes > 5 && effects > 5, "{writes} {effects}");
    });
}

#[test]
fn prepared_effect_matches_performed_effect() {
    with(|delivery| {
        let places = places(delivery);
        let pairs = places.iter().zip(&places[1..]);
        let ready = pairs.filter_map(|(machine, next)| match machine.step(NOW, delivery) {
            Step::Write { prepare, .. } => Some((prepare, next.step(NOW, delivery))),
            _ => None,
        });
        let mut times = 0;
        for (prepared, next) in ready {
            let asked = match next {
                Step::Perform(effect) => Some(effect),
                Step::PerformBoth { work, .. } => Some(work),
                _ => None,
            };
            assert_eq!(prepared, asked);
            times += u32::from(prepared.is_some());
        }
        assert!(times > 5, "{times}");
    });
}

#[test]
fn write_updates_version_and_clears_entries() {
    with(|delivery| {
        let mut flags = ControlFlags::default();
        flags.cancelled.insert("m2".into(), ann());
        let mut written = 0;
        for machine in places(delivery) {
            let Step::Write { write: RecordsWrite { expected, entries, .. }, .. } =
                machine.step(NOW, delivery)
            else {
                continue;
            };
            written += entries.len();
            let saved = StepOutcome::Saved(Ok(Saved::Written(flags.clone())));
            let Machine::Act { known, .. } = machine.clone().after(saved, NOW, delivery) else {
                panic!("{machine:?}")
            };
            assert_eq!(Some(known.session.version), expected.thread.map(|at| at + 1));
            assert_eq!(known.flags, flags);
            assert!(known.session.observed.writes.entries.is_empty());
        }
        assert_eq!(written, 1, "the turn that ended");
    });
}

/// The state before a write that `wanted` picks by the versions that it expects.
fn before_write(delivery: &Delivery<'_>, wanted: fn(ExpectedVersions) -> bool) -> Machine {
    let mut places = places(delivery).into_iter();
    let fits = |machine: &Machine| match machine.step(NOW, delivery) {
        Step::Write { write, .. } => wanted(write.expected),
        _ => false,
    };
    places.find(fits).unwrap()
}

#[test]
fn thread_conflict_ends_delivery_with_delay() {
    with(|delivery| {
        let write = before_write(delivery, |expected| expected.sandbox.is_none());
        let after = write.after(StepOutcome::Saved(Ok(Saved::Conflict)), NOW, delivery);
        assert_eq!(delay_ms(&after, delivery), Limits::DEFAULT.retry.backoff_ms);
    });
}

#[test]
fn sandbox_conflict_rereads_and_retries() {
    with(|delivery| {
        let write = before_write(delivery, |expected| expected.sandbox.is_some());
        let Machine::Write { known, .. } = &write else { panic!("{write:?}") };
        let mut stored = known.session.clone();
        stored.sandbox.version += 7;
        let loaded = |session: Session| {
            StepOutcome::Loaded(Ok(Loaded { session: Some(session), ..Loaded::default() }))
        };
        let overtaken = write.after(StepOutcome::Saved(Ok(Saved::Conflict)), NOW, delivery);
        assert_eq!(overtaken.step(NOW, delivery), Step::Read);
        let again = overtaken.clone().after(loaded(stored.clone()), NOW, delivery);
        let Step::Write { write, .. } = again.step(NOW, delivery) else { panic!("{again:?}") };
        assert_eq!(write.expected.sandbox, Some(stored.sandbox.version));

        // A delivery whose thread's record was written meanwhile has lost its place; another generation has not been
        // observed.
        let mut other = stored.clone();
        other.sandbox.generation += 1;
        stored.version += 1;
        for stored in [other, stored] {
            let lost = overtaken.clone().after(loaded(stored), NOW, delivery);
            assert_eq!(delay_ms(&lost, delivery), Limits::DEFAULT.retry.backoff_ms);
        }
    });
}

#[test]
fn conflict_retries_are_bounded() {
    with(|delivery| {
        let mut machine = before_write(delivery, |expected| expected.sandbox.is_some());
        for _ in 0..CONFLICTS_MAX {
            let Machine::Write { known, .. } = &machine else { panic!("{machine:?}") };
            let stored = known.session.clone();
            let found = Loaded { session: Some(stored), ..Loaded::default() };
            machine = machine.after(StepOutcome::Saved(Ok(Saved::Conflict)), NOW, delivery).after(
                StepOutcome::Loaded(Ok(found)),
                NOW,
                delivery,
            );
        }
        let lost = machine.after(StepOutcome::Saved(Ok(Saved::Conflict)), NOW, delivery);
        assert_eq!(delay_ms(&lost, delivery), Limits::DEFAULT.retry.backoff_ms);
    });
}

#[test]
fn nothing_runs_after_visibility_ends() {
    with(|delivery| {
        for machine in places(delivery) {
            let in_time = machine.step(NOW, delivery);
            let too_late = machine.step(LAPSED, delivery);
            if performs(&in_time) {
                let Step::End(Verdict::Hold { delay_ms, .. }) = too_late else {
                    panic!("{too_late:?}")
                };
                assert_eq!(delay_ms, Limits::DEFAULT.retry.backoff_ms);
            } else {
                assert_eq!(in_time, too_late);
            }
        }
    });
}

#[test]
fn table_outage_waits_at_least_asked() {
    with(|delivery| {
        let limits = &Limits::DEFAULT;
        let held = |failure| {
            let after = Machine::Start.after(StepOutcome::Loaded(Err(failure)), NOW, delivery);
            delay_ms(&after, delivery)
        };
        assert_eq!(held(outage(0)), limits.retry.outage_backoff(RECEIVE));
        assert_eq!(held(outage(86_400_000)), 86_400_000);
        assert_eq!(held(Failure::SandboxGone), limits.retry.backoff(RECEIVE));
    });
}

#[test]
fn newer_shape_stops_the_delivery() {
    with(|delivery| {
        let is_newer = |machine: Machine, outcome| {
            let verdict = verdict(&machine.after(outcome, NOW, delivery), delivery);
            matches!(verdict, Some(Verdict::Newer { .. }))
        };
        assert!(is_newer(Machine::Start, StepOutcome::Loaded(Err(newer_shape()))));
        let write = before(delivery, |step| matches!(step, Step::Write { .. }));
        assert!(is_newer(write, StepOutcome::Saved(Err(newer_shape()))));
        let act = before(delivery, |step| matches!(step, Step::Perform(_)));
        let together = before(delivery, |step| matches!(step, Step::PerformBoth { .. }));
        let newer = || Event::Failed(newer_shape());
        assert!(is_newer(act.clone(), StepOutcome::Done(newer().into())));
        for (work, card) in [(newer(), Event::Woken), (Event::Woken, newer())] {
            let both = StepOutcome::BothDone { work: work.into(), card: card.into() };
            assert!(is_newer(together.clone(), both));
        }
    });
}

#[test]
fn aborted_run_rereads_stop_marks() {
    with(|delivery| {
        let follow = before(delivery, |step| {
            matches!(
                step,
                Step::Perform(Addressed { effect: Effect::Agent(AgentEffect::Follow(_)), .. })
            )
        });
        let look = follow.clone().after(
            StepOutcome::Done(finished(RunEnd::Aborted).into()),
            NOW,
            delivery,
        );
        assert_eq!(look.step(LAPSED, delivery), Step::Read);
        let mut found = Loaded::default();
        found.flags.cancelled.insert("m1".into(), ann());
        // Only the control flags count: the delivery does not depend on the rest of that read.
        let stopped = look.clone().after(StepOutcome::Loaded(Ok(found)), NOW, delivery);
        let unread = look.after(StepOutcome::Loaded(Err(outage(0))), NOW, delivery);
        let written = |machine: &Machine| match machine {
            Machine::Write { known, decision, .. } => {
                (known.session.version, decision.session.turn.clone())
            }
            other => panic!("{other:?}"),
        };
        let ((version, stopped), (same, unread)) = (written(&stopped), written(&unread));
        assert!(version == same && version > 0);
        assert_ne!(stopped, unread);
        assert!(format!("{stopped:?}").contains("Cancelled"), "{stopped:?}");

        let came_to_its_own_end = StepOutcome::Done(finished(RunEnd::Completed).into());
        let after = follow.after(came_to_its_own_end, NOW, delivery);
        assert_ne!(after.step(NOW, delivery), Step::Read);
    });
}

#[test]
fn no_delivery_spins() {
    with(|delivery| {
        let performs_one = |step: &Step<'_>| matches!(step, Step::Perform(_));
        let Machine::Act { mut known, next } = before(delivery, performs_one) else {
            panic!("nothing to perform")
        };
        let mut after = |decisions| {
            known.decisions = decisions;
            let known = known.clone();
            let next = next.clone();
            let failed = StepOutcome::Done(Event::Failed(outage(0)).into());
            Machine::Act { known, next }.after(failed, NOW, delivery)
        };
        assert!(!matches!(after(DECISIONS_MAX - 1), Machine::End(_)));
        let spun = after(DECISIONS_MAX);
        assert_eq!(delay_ms(&spun, delivery), Limits::DEFAULT.retry.backoff_ms_max);
    });
}

#[test]
fn unrequested_outcome_changes_nothing() {
    with(|delivery| {
        let all = || {
            [
                StepOutcome::Loaded(Ok(Loaded::default())),
                StepOutcome::Saved(Ok(Saved::Written(ControlFlags::default()))),
                StepOutcome::Done(Event::Woken.into()),
                StepOutcome::BothDone { work: Event::Woken.into(), card: Event::Woken.into() },
            ]
        };
        for machine in places(delivery) {
            let asked = outcome(&machine.step(NOW, delivery));
            let kind = |outcome: &StepOutcome| std::mem::discriminant(outcome);
            let others =
                all().into_iter().filter(|other| asked.as_ref().map(kind) != Some(kind(other)));
            for other in others {
                let after = machine.clone().after(other, NOW, delivery);
                assert_eq!(after, machine);
            }
        }
    });
}
