//! One pure, total function over (session, cause): what the session becomes, and the next step.
//!
//! It works in two halves. `apply` folds what happened into the session; `next` looks at the session alone and says
//! what is still missing. So the machine is level-triggered: a redelivery that has seen nothing yet looks again and
//! goes on from what it finds. Nothing outside this module branches on a phase.

mod absence;
mod answer;
mod apply;
mod aside;
mod choose;
mod dead_letter;
mod down;
mod failed;
mod lease;
mod notice;
pub mod operate;
mod operated;
pub mod orphan;
mod outage;
mod outside;
mod prompt;
mod provision;
pub mod queue;
mod record;
pub mod replay;
mod results;
mod share;
mod steer;
mod stray;
mod teardown;
mod tell;
mod untold;
mod wait;
pub mod words;

use crate::base::ids::Ms;
use crate::protocol::delivery::Delivery;
use crate::protocol::effect::Effect;
use crate::protocol::event::Cause;
use crate::records::flags::ControlFlags;
use crate::records::message::Work;
use crate::records::session::Session;
use crate::tenant::settings::Settings;

/// What a decision may look at besides session and cause.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The time at which it is decided.
    pub now_ms: Ms,
    /// Until when the message in hand stays invisible to others.
    pub visible_until_ms: Ms,
    /// The delivery in hand.
    pub delivery: &'a Delivery<'a>,
    /// What the control lane wrote beside the record.
    pub flags: &'a ControlFlags,
    /// What those who manage the thread's server or workspace have set.
    pub settings: &'a Settings,
}

/// The session as it shall be recorded, and what to do once it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The record as it shall be written.
    pub session: Session,
    /// What is done once it is written.
    pub next: Next,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, and only until the step is taken"
)]
pub enum Next {
    /// Perform this, then decide on its outcome.
    Do(Effect),
    /// Perform both at the same time, then decide on [`Cause::Both`].
    Together {
        /// What the thread waits for.
        work: Effect,
        /// The card that is posted or edited meanwhile.
        card: Effect,
    },
    /// The message has ended.
    Done,
    /// Give the message back; it comes again after the delay.
    Hold {
        /// Milliseconds from now until it comes again.
        delay_ms: u64,
        /// Why, for the log.
        why: String,
    },
}

impl Next {
    /// The effect that what comes next waits for, if there is one.
    #[must_use]
    pub const fn work(&self) -> Option<&Effect> {
        match self {
            Self::Do(effect) | Self::Together { work: effect, .. } => Some(effect),
            Self::Done | Self::Hold { .. } => None,
        }
    }
}

/// Decides. Total: every cause in every phase has an answer, and none panics.
#[must_use]
pub fn decide(mut session: Session, cause: Cause, context: &Context<'_>) -> Decision {
    let next =
        apply::apply(&mut session, cause, context).unwrap_or_else(|| next(&mut session, context));
    // Of a run that is only looked at the record need not say so: the word that is left for the next delivery does.
    if let (Next::Hold { .. }, Some(turn)) = (&next, &mut session.turn)
        && turn.id == context.delivery.message.id
        && (turn.stage.is_running() || turn.waits)
        && !turn.is_only_looked_at(&context.delivery.limits.poll, context.now_ms)
    {
        turn.in_hand = false;
    }
    Decision { session, next }
}

fn next(session: &mut Session, context: &Context<'_>) -> Next {
    if let Some(next) = outside::next(session) {
        return next;
    }
    if let Some(next) = absence::next(session, context) {
        return next;
    }
    if let Some(next) = untold::next(session) {
        return next;
    }
    match &context.delivery.message.work {
        Work::Prompt(prompt) => prompt::next(session, prompt, context),
        Work::Sweep => teardown::sweep(session, context),
        Work::Reconcile => teardown::reconcile(session, context),
        Work::Reset { by, membership, keeps_files: true } => {
            teardown::begin_anew(session, (by, membership), context)
        }
        Work::Reset { by, membership, .. } => teardown::reset(session, (by, membership), context),
        Work::DeadLetter { turn, prompt } => {
            dead_letter::next(session, turn, prompt.as_deref(), context)
        }
        Work::Operate { want, by } => operate::next(session, *want, by.as_ref(), context),
        Work::Name { name, by, membership } => {
            share::name(session, name, (by, membership), context)
        }
        Work::Connect { to, by, membership } => {
            share::connect(session, to.as_ref(), (by, membership), context)
        }
        Work::Create(new) => operate::create(session, new, context),
    }
}
