//! EventBridge Scheduler: wakes a thread at a time, with a sweep through the thread's own group.
//!
//! Promised: a thread has one wake-up, and setting it again moves it; every wake-up sends a message of an id of its own,
//! because the queue drops a second body of the same content within five minutes and Scheduler gives no other id; a call
//! is over within [`SET_MS_MAX`]. Deliberately absent: taking a wake-up back (one that comes early finds nothing due and
//! sets the next), and any certainty that it comes: it is as precise as a minute, and the sweeper is the net.

use std::time::Duration;

use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, ThreadKey, wake_message_id, wake_name};
use bobbin_core::message::{Body, Message, Work};
use http::Method;
use serde_json::{Value, json};

use crate::calendar::Moment;
use crate::config::{Config, WakeTarget};
use crate::direct::{CallError, Direct, Service, token};
use crate::signing::escaped;

/// Setting a wake-up must be over within this time, repeats included.
pub const SET_MS_MAX: u64 = 5_000;
/// Creates and updates that one setting may take: a wake-up that fires between the two is missed by both once.
const ROUNDS_MAX: usize = 2;
/// The last year that a schedule can name.
const YEAR_MAX: u64 = 9_999;
/// How long Scheduler tries to deliver: after that the sweeper has long found the thread.
const DELIVERY_S_MAX: u32 = 3_600;

/// A wake-up could not be set.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The group, the role or the rights are not as the template makes them: repeating cannot help.
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
            Self::Later(_) => Failure::Wait {
                after_ms: 0,
                seen: self.to_string(),
            },
        }
    }
}

/// The stack's wake-ups.
#[derive(Debug, Clone)]
pub struct Wakes {
    aws: Direct,
    target: Option<WakeTarget>,
}

impl Wakes {
    /// Wake-ups in the group that the configuration names. Without one, nothing is set and nothing fails.
    #[must_use]
    pub fn new(aws: Direct, config: &Config) -> Self {
        Self::to(aws, config.wakes.clone())
    }

    /// The same with a target of one's own.
    #[must_use]
    pub fn to(aws: Direct, target: Option<WakeTarget>) -> Self {
        Self { aws, target }
    }

    /// Has the thread swept at this time (rounded up to seconds); takes the place of an earlier wake-up.
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
            Err(_) => Err(WakeError::Later(format!(
                "no answer within {SET_MS_MAX} ms"
            ))),
        }
    }

    async fn put(
        &self,
        target: &WakeTarget,
        thread: &ThreadKey,
        at_ms: Ms,
    ) -> Result<(), WakeError> {
        let wake = schedule(target, thread, at_ms).ok_or_else(|| {
            WakeError::Refused(format!("{at_ms} ms is no time that a date can name"))
        })?;
        let path = format!("/schedules/{}", escaped(&wake_name(thread)));
        let mut seen = String::new();
        for _ in 0..ROUNDS_MAX {
            match self.call(Method::POST, &path, &wake).await {
                Ok(()) => return Ok(()),
                Err(error) if error.code() == Some("ConflictException") => {}
                Err(error) => return Err(classify(&error)),
            }
            match self.call(Method::PUT, &path, &wake).await {
                Ok(()) => return Ok(()),
                // It fired in between and deleted itself.
                Err(error) if error.code() == Some("ResourceNotFoundException") => {
                    seen = error.to_string();
                }
                // Somebody else moves it at this moment.
                Err(error) if error.code() == Some("ConflictException") => seen = error.to_string(),
                Err(error) => return Err(classify(&error)),
            }
        }
        Err(WakeError::Later(seen))
    }

    /// Creates or replaces: an update says everything again. The token lets Scheduler take a repeat for what it is.
    async fn call(&self, method: Method, path: &str, wake: &Value) -> Result<(), CallError> {
        let mut request = wake.clone();
        request["ClientToken"] = token().into();
        let service = Service::Schedules;
        let calling = self.aws.rest(service, method, path, &request, SET_MS_MAX);
        calling.await.map(|_| ())
    }
}

/// One wake-up, as both calls take it; none, if no date can name its time.
fn schedule(target: &WakeTarget, thread: &ThreadKey, at_ms: Ms) -> Option<Value> {
    let body = Body::Message(Message {
        id: wake_message_id(thread, at_ms),
        thread: thread.clone(),
        accepted_at_ms: at_ms,
        work: Work::Sweep,
    });
    Some(json!({
        "GroupName": target.group,
        "ScheduleExpression": expression(at_ms)?,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": target.queue_arn,
            "RoleArn": target.role_arn,
            "Input": body.encode(),
            "SqsParameters": {"MessageGroupId": body.group()},
            "DeadLetterConfig": {"Arn": target.dead_queue_arn},
            "RetryPolicy": {"MaximumEventAgeInSeconds": DELIVERY_S_MAX},
        },
    }))
}

/// `at(yyyy-mm-ddThh:mm:ss)`, which without a time zone is UTC.
fn expression(at_ms: Ms) -> Option<String> {
    let Moment {
        year,
        month,
        day,
        hour,
        minute,
        second,
    } = Moment::of(at_ms.div_ceil(1000));
    (year <= YEAR_MAX)
        .then(|| format!("at({year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02})"))
}

fn classify(error: &CallError) -> WakeError {
    let seen = error.to_string();
    match error.code() {
        Some(
            "ResourceNotFoundException"
            | "AccessDeniedException"
            | "UnrecognizedClientException"
            | "ServiceQuotaExceededException"
            | "ValidationException",
        ) => WakeError::Refused(seen),
        _ => WakeError::Later(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_in_utc_and_never_before_it_is_due() {
        assert_eq!(
            expression(1_795_294_965_000).as_deref(),
            Some("at(2026-11-21T21:02:45)")
        );
        assert_eq!(expression(1_795_294_965_001), expression(1_795_294_966_000));
        assert_eq!(expression(0).as_deref(), Some("at(1970-01-01T00:00:00)"));
        assert_eq!(expression(u64::MAX), None);
    }

    #[test]
    fn a_refusal_is_reported_and_a_throttle_waited_for() {
        let refused = WakeError::Refused("no such group".to_owned()).failure();
        assert!(
            matches!(refused, Failure::NonRecoverable { advice } if advice.contains("template"))
        );
        let later = WakeError::Later("throttled".to_owned()).failure();
        assert!(matches!(later, Failure::Wait { after_ms: 0, .. }));
    }
}
