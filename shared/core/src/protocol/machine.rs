//! One delivery as a machine without input and output: it names its next step, takes the outcome, and names the next
//! one. It is a plain value: it can be stored, compared, and resumed from any state.
//!
//! Intent is on record before its effect: a decision is written first, and only the outcome of that write leads to the
//! effect.

use crate::base::failure::Failure;
use crate::base::ids::Ms;
use crate::protocol::decide::{Context, Decision, Next, decide};
use crate::protocol::delivery::{Delivery, Verdict};
use crate::protocol::effect::Effect;
use crate::protocol::event::{Cause, Event};
use crate::protocol::ports::{ExpectedVersions, Loaded, Performed, RecordsWrite, Saved};
use crate::protocol::target::{Addressed, EffectTarget};
use crate::records::flags::ControlFlags;
use crate::records::parked::Parked;
use crate::records::run::RunEnd;
use crate::records::session::Session;
use crate::tenant::settings::Settings;

/// More decisions than any message takes; beyond that the message is retried, so that no delivery spins.
pub const DECISIONS_MAX: u32 = 20_000;

/// Writes of a delivery that may lose to other users of its sandbox.
const CONFLICTS_MAX: u32 = 5;

/// A moment, as a delivery sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The time, by the shell's clock.
    pub ms: Ms,
    /// When the message in hand becomes visible to other workers.
    pub visible_until_ms: Ms,
}

/// The next thing to do; [`Machine::after`] takes its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, and only until the shell has taken it"
)]
pub enum Step<'a> {
    /// Read the thread. Answered with [`StepOutcome::Loaded`].
    Read,
    /// Write the changes in one transaction. Answered with [`StepOutcome::Saved`].
    Write {
        /// The write.
        write: RecordsWrite<'a>,
        /// The effect to prepare meanwhile; it is performed once the write has succeeded.
        prepare: Option<Addressed<'a>>,
    },
    /// Save this for the next delivery of the message. Answered with [`StepOutcome::Parked`].
    Park(Parked),
    /// Perform this. Answered with [`StepOutcome::Done`].
    Perform(Addressed<'a>),
    /// Perform both at the same time. Answered with [`StepOutcome::BothDone`].
    PerformBoth {
        /// The effect that the thread waits for.
        work: Addressed<'a>,
        /// The card that is posted or edited meanwhile.
        card: Addressed<'a>,
    },
    /// Nothing: the delivery is over.
    End(Verdict),
}

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, and only until the machine has it"
)]
pub enum StepOutcome {
    /// What was read, or the failure.
    Loaded(Result<Loaded, Failure>),
    /// Whether the write was made, lost its condition, or failed.
    Saved(Result<Saved, Failure>),
    /// The control flags since then; `None` if nothing was saved.
    Parked(Option<ControlFlags>),
    /// Result of the effect.
    Done(Performed),
    /// Results of the two effects.
    BothDone {
        /// The effect that the thread waited for.
        work: Performed,
        /// The card beside it.
        card: Performed,
    },
}

/// State of a thread, as a delivery knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Known {
    /// The record as read or last written, with later observations.
    pub session: Session,
    /// The control flags beside it, as last read.
    pub flags: ControlFlags,
    /// The tenant's settings.
    pub settings: Settings,
    /// Number of decisions so far.
    pub decisions: u32,
    /// How often another delivery wrote the sandbox's record first.
    pub conflicts: u32,
}

impl Known {
    /// The effect of this delivery with its target, by this record.
    fn address<'a>(
        &'a self,
        session: &Session,
        (delivery, effect): (&Delivery<'_>, &'a Effect),
    ) -> Addressed<'a> {
        let at = EffectTarget::of(session, &self.settings, (delivery, effect));
        Addressed { at, effect, flags: &self.flags, settings: &self.settings }
    }

    /// Replaces the control flags, if they were read since.
    fn with(mut self: Box<Self>, flags: Option<ControlFlags>) -> Box<Self> {
        self.flags = flags.unwrap_or(self.flags);
        self
    }
}

/// State of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Before the first read.
    Start,
    /// A run has ended; before the control flags are read once more.
    Reread {
        /// The state known so far.
        known: Box<Known>,
        /// How the run ended.
        cause: Box<Cause>,
    },
    /// Before the write of a decision.
    Write {
        /// The state known so far.
        known: Box<Known>,
        /// The cause that was decided on.
        cause: Box<Cause>,
        /// The record to write, and what to do then.
        decision: Box<Decision>,
    },
    /// Another thread may have written the sandbox's record; before both are read again and the same cause is decided
    /// on.
    Overtaken {
        /// The state known so far.
        known: Box<Known>,
        /// The cause to decide on.
        cause: Box<Cause>,
    },
    /// Nothing is left to write; before the next step.
    Act {
        /// The state known so far.
        known: Box<Known>,
        /// The next step.
        next: Box<Next>,
    },
    /// The delivery is over.
    End(Verdict),
}

impl Machine {
    /// The next thing to do, at this moment.
    #[must_use]
    pub fn step(&self, now: Now, delivery: &Delivery<'_>) -> Step<'_> {
        let (known, next) = match self {
            Self::Start | Self::Reread { .. } | Self::Overtaken { .. } => return Step::Read,
            Self::Write { known, decision, .. } => {
                let write = RecordsWrite {
                    session: &decision.session,
                    before: Some(&known.session).filter(|before| before.is_stored()),
                    expected: ExpectedVersions::to_change(&known.session, &decision.session),
                    entries: &decision.session.observed.writes.entries,
                    flags: &known.flags,
                };
                let to = |effect| known.address(&decision.session, (delivery, effect));
                return Step::Write { write, prepare: decision.next.work().map(to) };
            }
            Self::End(verdict) => return Step::End(verdict.clone()),
            Self::Act { known, next } => (known, &**next),
        };
        let to = |effect| known.address(&known.session, (delivery, effect));
        match next {
            // A delivery that has outlived its visibility does nothing more. Another worker may have the message, and
            // an effect now, above all an edit of the card, could undo what that worker did.
            Next::Do(_) | Next::Together { .. } if now.visible_until_ms <= now.ms => Step::End(
                hold(delivery.limits.retry.backoff_ms, "the message has become visible to others"),
            ),
            Next::Do(effect) => Step::Perform(to(effect)),
            Next::Together { work, card } => Step::PerformBoth { work: to(work), card: to(card) },
            Next::Done => Step::End(Verdict::Done),
            Next::Hold { delay_ms, why } => match self.parked(now, *delay_ms, delivery) {
                Some(parked) if now.ms < now.visible_until_ms => Step::Park(parked),
                _ => Step::End(hold(*delay_ms, why)),
            },
        }
    }

    /// The state to save for the next delivery, if the message in hand is that of the turn.
    fn parked(&self, now: Now, delay_ms: u64, delivery: &Delivery<'_>) -> Option<Parked> {
        let Self::Act { known, .. } = self else {
            return None;
        };
        let turn = known.session.turn.as_ref()?;
        (turn.id == delivery.message.id).then(|| Parked {
            turn: turn.id.clone(),
            receive: delivery.receive,
            at_ms: now.ms,
            until_ms: now.ms.saturating_add(delay_ms),
            seen: known.session.observed.agent.seen.clone(),
        })
    }

    /// The state after this outcome. Total: an outcome of a step that was not asked for changes nothing.
    #[must_use]
    pub fn after(self, outcome: StepOutcome, now: Now, delivery: &Delivery<'_>) -> Self {
        match (self, outcome) {
            (Self::Start, StepOutcome::Loaded(Ok(found))) => {
                let fresh = || Session::new(delivery.message.thread.clone(), now.ms);
                let mut session = found.session.unwrap_or_else(fresh);
                session.observed.in_ledger = found.in_ledger;
                session.observed.parked = found.parked;
                let known = Known {
                    session,
                    flags: found.flags,
                    settings: found.settings,
                    decisions: 0,
                    conflicts: 0,
                };
                Self::decided(Box::new(known), Cause::Delivered, now, delivery)
            }
            (Self::Start, StepOutcome::Loaded(Err(failure))) => {
                unrecorded(delivery, &failure, "read", now)
            }
            (Self::Reread { mut known, cause }, StepOutcome::Loaded(found)) => {
                if let Ok(found) = found {
                    known.flags = found.flags;
                }
                Self::decided(known, *cause, now, delivery)
            }
            (
                Self::Write { mut known, decision, .. },
                StepOutcome::Saved(Ok(Saved::Written(flags))),
            ) => {
                let Decision { mut session, next } = *decision;
                session =
                    ExpectedVersions::to_change(&known.session, &session).followed_by(session);
                session.observed.writes.entries.clear();
                session.observed.writes.names.clear();
                session.observed.writes.watches.clear();
                session.observed.writes.budgets.clear();
                (known.session, known.flags) = (session, flags);
                Self::Act { known, next: Box::new(next) }
            }
            (
                Self::Write { mut known, cause, decision },
                StepOutcome::Saved(Ok(Saved::Conflict)),
            ) => {
                let expected = ExpectedVersions::to_change(&known.session, &decision.session);
                known.conflicts += 1;
                if expected.sandbox.is_none() || known.conflicts > CONFLICTS_MAX {
                    return Self::End(conflict(delivery));
                }
                Self::Overtaken { known, cause }
            }
            (
                Self::Write { mut known, cause, .. },
                StepOutcome::Saved(Ok(Saved::OverBudget { scope, used })),
            ) => {
                known.session.observed.used.insert(scope, used);
                known.conflicts += 1;
                if known.conflicts > CONFLICTS_MAX {
                    return Self::End(conflict(delivery));
                }
                Self::decided(known, *cause, now, delivery)
            }
            (Self::Overtaken { mut known, cause }, StepOutcome::Loaded(Ok(found))) => {
                let fresh = || Session::new(delivery.message.thread.clone(), now.ms);
                let stored = found.session.unwrap_or_else(fresh);
                // A thread has one writer. If its record was written by another delivery, that one has the thread now.
                // And what was seen of one generation says nothing about the next.
                let before = &known.session;
                if stored.version != before.version
                    || stored.place.link != before.place.link
                    || stored.sandbox.generation != before.sandbox.generation
                {
                    return Self::End(conflict(delivery));
                }
                if stored.sandbox.phase != before.sandbox.phase {
                    known.session.observed.forget_sandbox();
                }
                known.session.sandbox = stored.sandbox;
                (known.flags, known.settings) = (found.flags, found.settings);
                // What was looked up in other records may be what has changed.
                known.session.observed.sandbox.name_found = None;
                known.session.observed.sandbox.agent_seen = None;
                let cause = match *cause {
                    Cause::Done(Effect::FindAgent { .. }, _) => Cause::Delivered,
                    cause => cause,
                };
                Self::decided(known, cause, now, delivery)
            }
            (Self::Overtaken { .. }, StepOutcome::Loaded(Err(failure))) => {
                unrecorded(delivery, &failure, "read", now)
            }
            (Self::Write { .. }, StepOutcome::Saved(Err(failure))) => {
                unrecorded(delivery, &failure, "written", now)
            }
            (Self::Act { known, next }, StepOutcome::Parked(flags)) => match *next {
                Next::Hold { delay_ms, why } => {
                    let is_wanted =
                        flags.is_some_and(|flags| flags.ask_for_more_than(&known.flags));
                    Self::End(hold(if is_wanted { 0 } else { delay_ms }, &why))
                }
                next => Self::Act { known, next: Box::new(next) },
            },
            (Self::Act { known, next }, came) => match (*next, came) {
                (Next::Do(effect), StepOutcome::Done(performed)) => {
                    let known = known.with(performed.flags);
                    Self::after_effect(known, Cause::Done(effect, performed.event), now, delivery)
                }
                (
                    Next::Together { work, card },
                    StepOutcome::BothDone { work: of_work, card: of_card },
                ) => {
                    let known = known.with(of_work.flags);
                    let (of_work, of_card) = (of_work.event, of_card.event);
                    let cause = Cause::Both { work: (work, of_work), card: (card, of_card) };
                    Self::after_effect(known, cause, now, delivery)
                }
                (next, _) => Self::Act { known, next: Box::new(next) },
            },
            (asked, _) => asked,
        }
    }

    /// One effect has ended, or two have.
    fn after_effect(known: Box<Known>, cause: Cause, now: Now, delivery: &Delivery<'_>) -> Self {
        // Decide nothing on what cannot be read.
        if let Some(seen) = too_new(&cause) {
            return newer(delivery, seen, now);
        }
        if known.decisions >= DECISIONS_MAX {
            return Self::End(hold(
                delivery.limits.retry.backoff_ms_max,
                "the delivery took too many steps",
            ));
        }
        match cause {
            // Whether a person stopped a run is judged by the control flags at its end: the abort can be quicker than
            // the next read of them. A run that completed by itself was not stopped.
            Cause::Done(_, Event::Finished(ref answer)) if answer.end != RunEnd::Completed => {
                Self::Reread { known, cause: Box::new(cause) }
            }
            cause => Self::decided(known, cause, now, delivery),
        }
    }

    fn decided(mut known: Box<Known>, cause: Cause, now: Now, delivery: &Delivery<'_>) -> Self {
        known.decisions += 1;
        let context = Context {
            now_ms: now.ms,
            visible_until_ms: now.visible_until_ms,
            delivery,
            flags: &known.flags,
            settings: &known.settings,
        };
        let decision = decide(known.session.clone(), cause.clone(), &context);
        let changed = &decision.session;
        if changed.same_record(&known.session)
            && changed.observed.writes.names.is_empty()
            && changed.observed.writes.watches.is_empty()
            && !changed.sandbox.differs_from(&known.session.sandbox)
        {
            known.session = decision.session;
            Self::Act { known, next: Box::new(decision.next) }
        } else {
            Self::Write { known, cause: Box::new(cause), decision: Box::new(decision) }
        }
    }
}

/// Never at once: two losers that retry immediately can undo each other for ever.
fn conflict(delivery: &Delivery<'_>) -> Verdict {
    hold(delivery.limits.retry.backoff_ms, "another worker wrote the record")
}

fn hold(delay_ms: u64, why: &str) -> Verdict {
    Verdict::Hold { delay_ms, why: why.to_owned() }
}

fn too_new(cause: &Cause) -> Option<String> {
    let seen = |event: &Event| match event {
        Event::Failed(Failure::Newer { seen }) => Some(seen.clone()),
        _ => None,
    };
    match cause {
        Cause::Delivered => None,
        Cause::Done(_, event) => seen(event),
        Cause::Both { work, card } => seen(&work.1).or_else(|| seen(&card.1)),
    }
}

/// Most deliveries of a turn may have been polls, so its age caps the delay.
fn newer(delivery: &Delivery<'_>, seen: String, now: Now) -> Machine {
    let most_ms = delivery.limits.retry.within_age(delivery.age_ms(now.ms));
    let verdict = Verdict::newer(seen, delivery.receive, &delivery.limits.retry);
    Machine::End(verdict.within(most_ms))
}

/// The record could not be read or written. An unavailable table is waited for, however long that takes; a refusal ends
/// by the queue's receive count, and is told then.
fn unrecorded(delivery: &Delivery<'_>, failure: &Failure, what: &str, now: Now) -> Machine {
    let why = format!("the record could not be {what}: {failure:?}");
    let Delivery { limits, receive, .. } = delivery;
    let asked_ms = match failure {
        Failure::Outage { after_ms, .. } | Failure::Wait { after_ms, .. } => *after_ms,
        _ => 0,
    };
    let most_ms = limits.retry.within_age(delivery.age_ms(now.ms)).max(asked_ms);
    Machine::End(Verdict::given_back(failure, why, *receive, &limits.retry).within(most_ms))
}

#[cfg(test)]
mod tests;
