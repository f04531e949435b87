//! EventBridge Scheduler: wakes a thread at a given time, with a sweep through the thread's own group.
//!
//! Promised: a thread has one wake-up, and setting it again moves it. Every wake-up sends a message with a new id,
//! because the queue drops a second body with the same content within five minutes and Scheduler gives no other id. A
//! call ends within 5 s. Deliberately absent: cancelling a wake-up (an early one finds nothing due and sets the next),
//! and any guarantee that it arrives: it is precise to a minute, and the sweeper is the safety net.

use std::time::Duration;

use aws_sdk_scheduler::Client;
use aws_sdk_scheduler::error::BuildError;
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode,
    RetryPolicy, SqsParameters, Target,
};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::names::{wake_message_id, wake_name};
use bobbin_core::records::message::{Body, Message, Work};

use crate::aws::{Aws, Bounded, CallError, FailureCause};
use crate::config::{Config, WakeTarget};

/// Bound of setting a wake-up, retries included.
const SET_MS_MAX: u64 = 5_000;
/// Rounds of create and update when setting one: a wake-up that fires between the two makes both miss it once.
const ROUNDS_MAX: usize = 2;
/// The last second of the year 9999, the last that a schedule can name.
const AT_S_MAX: u64 = 253_402_300_799;
/// How long Scheduler tries to deliver; after that the sweeper has long found the thread.
const DELIVERY_S_MAX: i32 = 3_600;

/// A wake-up could not be set.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The group, the role or the permissions are not as the template makes them: a retry cannot help.
    #[error("the wake-up was refused: {0}")]
    Refused(String),
    /// Throttled, or no answer; whether it was set is unknown, and setting it again is harmless.
    #[error("the wake-up could not be set now: {0}")]
    Later(String),
}

impl WakeError {
    /// What to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Refused(_) => Failure::NonRecoverable {
                advice: format!(
                    "{self}. The operator has to deploy template.yaml again, with its group of schedules and its role."
                ),
            },
            Self::Later(_) => Failure::Wait { after_ms: 0, seen: self.to_string() },
        }
    }
}

/// One-time schedules that send a sweep to a thread; without a target no wake-up is set.
#[derive(Debug, Clone)]
pub struct Wakes {
    aws: Bounded<Client>,
    target: Option<WakeTarget>,
}

impl Wakes {
    /// Wake-ups in the group that the configuration names. Without one, nothing is set and nothing fails.
    #[must_use]
    pub fn new(aws: &Aws, config: &Config) -> Self {
        Self::to(aws, config.wakes.clone())
    }

    /// Wake-ups with this target.
    #[must_use]
    pub fn to(aws: &Aws, target: Option<WakeTarget>) -> Self {
        let aws = aws.scheduler(SET_MS_MAX);
        Self { aws, target }
    }

    /// Sets the thread's wake-up to this time (rounded up to seconds); replaces an earlier wake-up.
    ///
    /// # Errors
    /// [`WakeError`].
    pub async fn set(&self, thread: &ThreadKey, at_ms: Ms) -> Result<(), WakeError> {
        let Some(target) = &self.target else {
            return Ok(());
        };
        let bound = Duration::from_millis(SET_MS_MAX);
        match tokio::time::timeout(bound, self.put(target, thread, at_ms)).await {
            Ok(done) => done,
            Err(_) => Err(WakeError::Later(format!("no answer within {SET_MS_MAX} ms"))),
        }
    }

    async fn put(
        &self,
        target: &WakeTarget,
        thread: &ThreadKey,
        at_ms: Ms,
    ) -> Result<(), WakeError> {
        let wake = Wake::of(target, thread, at_ms)?;
        let mut seen = String::new();
        for _ in 0..ROUNDS_MAX {
            match self.create(&wake).await {
                Ok(()) => return Ok(()),
                Err(error) if error.code() == Some("ConflictException") => {}
                Err(error) => return Err(error.into()),
            }
            match self.update(&wake).await {
                Ok(()) => return Ok(()),
                // It fired in between and deleted itself.
                Err(error) if error.code() == Some("ResourceNotFoundException") => {
                    seen = error.to_string();
                }
                // Another worker is moving it at this moment.
                Err(error) if error.code() == Some("ConflictException") => seen = error.to_string(),
                Err(error) => return Err(error.into()),
            }
        }
        Err(WakeError::Later(seen))
    }

    /// The SDK gives each call a token, by which Scheduler recognises a repeat.
    async fn create(&self, wake: &Wake) -> Result<(), CallError> {
        let create = self.aws.client.create_schedule();
        let create = create
            .name(&wake.name)
            .group_name(&wake.group)
            .schedule_expression(&wake.expression)
            .flexible_time_window(wake.window.clone())
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(wake.target.clone());
        match create.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.aws.failed(error)),
        }
    }

    /// Passes every field again: an update resets omitted ones.
    async fn update(&self, wake: &Wake) -> Result<(), CallError> {
        let update = self.aws.client.update_schedule();
        let update = update
            .name(&wake.name)
            .group_name(&wake.group)
            .schedule_expression(&wake.expression)
            .flexible_time_window(wake.window.clone())
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(wake.target.clone());
        match update.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.aws.failed(error)),
        }
    }
}

/// One wake-up, as both calls need it.
struct Wake {
    name: String,
    group: String,
    expression: String,
    window: FlexibleTimeWindow,
    target: Target,
}

impl Wake {
    /// Refused, if no date can express its time.
    fn of(to: &WakeTarget, thread: &ThreadKey, at_ms: Ms) -> Result<Self, WakeError> {
        let body = Body::Message(Message {
            id: wake_message_id(thread, at_ms).into(),
            thread: thread.clone(),
            accepted_at_ms: at_ms,
            work: Work::Sweep,
        });
        let expression = expression(at_ms)
            .ok_or_else(|| WakeError::Refused(format!("{at_ms} ms is not a valid date")))?;
        let group = SqsParameters::builder().message_group_id(body.group());
        let dead = DeadLetterConfig::builder().arn(&to.dead_queue_arn);
        let tries = RetryPolicy::builder().maximum_event_age_in_seconds(DELIVERY_S_MAX);
        let target = Target::builder()
            .arn(&to.queue_arn)
            .role_arn(&to.role_arn)
            .input(body.encode())
            .sqs_parameters(group.build())
            .dead_letter_config(dead.build())
            .retry_policy(tries.build());
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off);
        let unwritten = |e: BuildError| WakeError::Refused(e.to_string());
        Ok(Self {
            name: wake_name(thread),
            group: to.group.clone(),
            expression,
            window: window.build().map_err(unwritten)?,
            target: target.build().map_err(unwritten)?,
        })
    }
}

/// `at(yyyy-mm-ddThh:mm:ss)`; without a time zone it is UTC.
fn expression(at_ms: Ms) -> Option<String> {
    let at_s = at_ms.div_ceil(1000);
    let at_s = (at_s <= AT_S_MAX).then_some(at_s)?;
    let date = DateTime::from_secs(i64::try_from(at_s).ok()?);
    let date = date.fmt(Format::DateTime).ok()?;
    Some(format!("at({})", date.trim_end_matches('Z')))
}

impl From<CallError> for WakeError {
    fn from(error: CallError) -> Self {
        match error.cause() {
            // A stack has as many schedules as sleeping threads: waiting does not reduce them.
            _ if error.code() == Some("ServiceQuotaExceededException") => {
                Self::Refused(error.to_string())
            }
            FailureCause::Passing => Self::Later(error.to_string()),
            _ => Self::Refused(error.with_remedy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_time_is_rounded_up() {
        assert_eq!(expression(1_795_294_965_000).as_deref(), Some("at(2026-11-21T21:02:45)"));
        assert_eq!(expression(1_795_294_965_001), expression(1_795_294_966_000));
        assert_eq!(expression(0).as_deref(), Some("at(1970-01-01T00:00:00)"));
        assert_eq!(expression(u64::MAX), None);
    }

    #[test]
    fn only_refused_wakes_advise_the_operator() {
        let refused = WakeError::Refused("no such group".to_owned()).failure();
        assert!(
            matches!(refused, Failure::NonRecoverable { advice } if advice.contains("template"))
        );
        let later = WakeError::Later("throttled".to_owned()).failure();
        assert!(matches!(later, Failure::Wait { after_ms: 0, .. }));
    }
}
