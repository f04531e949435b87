//! One pure, total function from (session, cause) to the new session and the next step.
//!
//! It has two halves. `apply` folds what happened into the session; `next` looks only at the session and says what is
//! still missing. So the machine is level-triggered: a redelivery that has seen nothing yet observes again and
//! continues from there. No rule outside of this module decides by a phase what a delivery does next. Other code reads
//! phases to show them, to find sandboxes and their credentials, and to choose which message to send; this module then
//! decides on that message.

mod absence;
mod acts;
mod answer;
mod apply;
mod budget;
mod build;
mod choose;
mod comment_task;
mod dead_letter;
mod extra_posts;
mod failed;
mod finish;
mod fix;
mod forge;
mod lease;
mod notice;
pub mod operate;
mod operated;
pub mod orphan;
mod outage;
mod outside;
mod prompt;
mod provision;
mod publish;
pub mod queue;
mod record;
pub mod replay;
mod results;
mod review;
mod secrets;
mod server_down;
mod set_up;
mod share;
mod sibling_repositories;
mod steer;
mod stray_run;
mod teardown;
mod unposted;
mod wait;
mod watch;
pub mod words;

use crate::base::ids::Ms;
use crate::protocol::delivery::Delivery;
use crate::protocol::effect::Effect;
use crate::protocol::event::Cause;
use crate::records::flags::ControlFlags;
use crate::records::message::Work;
use crate::records::session::Session;
use crate::tenant::settings::Settings;

/// Input of a decision besides session and cause.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The current time.
    pub now_ms: Ms,
    /// When the message in hand becomes visible to other workers.
    pub visible_until_ms: Ms,
    /// The delivery in hand.
    pub delivery: &'a Delivery<'a>,
    /// Control flags, written beside the record by control messages.
    pub flags: &'a ControlFlags,
    /// The tenant's settings.
    pub settings: &'a Settings,
}

/// The session to record, and what to do once it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The record to write.
    pub session: Session,
    /// The step to take once the record is written.
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
        /// The effect that the thread waits for.
        work: Effect,
        /// The card that is posted or edited meanwhile.
        card: Effect,
    },
    /// Acknowledge: the message has ended.
    Done,
    /// Retry the message after the delay.
    Hold {
        /// Milliseconds from now until the next delivery.
        delay_ms: u64,
        /// The reason, for the log.
        why: String,
    },
}

impl Next {
    /// The effect that the thread waits for, if any.
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
    session.settle_published();
    let next =
        apply::apply(&mut session, cause, context).unwrap_or_else(|| next(&mut session, context));
    // A run that is only polled needs no write here: the parked state tells the next delivery.
    if let (Next::Hold { .. }, Some(turn)) = (&next, &mut session.turn)
        && turn.id == context.delivery.message.id
        && (turn.stage.is_running() || turn.waits)
        && !turn.is_only_polled(&context.delivery.limits.poll, context.now_ms)
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
    if let Some(next) = unposted::next(session) {
        return next;
    }
    match &context.delivery.message.work {
        Work::Prompt(prompt) => prompt::next(session, prompt, context),
        Work::Sweep => teardown::sweep(session, context),
        Work::Poll => watch::hinted(session, context),
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
        Work::Build(new) => build::next(session, new, context),
        Work::Publish { step, by, membership } => {
            publish::next(session, step, (by, membership), context)
        }
    }
}
