//! A schedule's definition, as in the API, and its firing times.

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::error::ScheduleError;
use super::expression::Expression;
use crate::limits;
use crate::sqs::name_of_arn;

/// The fields of a schedule. Dates are seconds since the Unix epoch.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Definition {
    pub(crate) schedule_expression: String,
    #[serde(default = "utc")]
    pub(crate) schedule_expression_timezone: String,
    #[serde(default = "enabled")]
    pub(crate) state: String,
    #[serde(default = "none")]
    pub(crate) action_after_completion: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start_date: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_date: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kms_key_arn: Option<String>,
    pub(crate) flexible_time_window: FlexibleTimeWindow,
    pub(crate) target: ScheduleTarget,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FlexibleTimeWindow {
    pub(crate) mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) maximum_window_in_minutes: Option<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ScheduleTarget {
    pub(crate) arn: String,
    pub(crate) role_arn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sqs_parameters: Option<SqsParameters>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_policy: Option<RetryPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead_letter_config: Option<DeadLetterConfig>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SqsParameters {
    pub(crate) message_group_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RetryPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) maximum_event_age_in_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) maximum_retry_attempts: Option<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeadLetterConfig {
    pub(crate) arn: Option<String>,
}

/// Target of a firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A queue, by name.
    Queue(String),
    /// A function, by ARN.
    Function(String),
}

fn utc() -> String {
    "UTC".to_owned()
}

fn enabled() -> String {
    "ENABLED".to_owned()
}

fn none() -> String {
    "NONE".to_owned()
}

impl ScheduleTarget {
    pub(crate) fn destination(&self) -> Option<Destination> {
        if let Some(queue) = name_of_arn(&self.arn) {
            return Some(Destination::Queue(queue.to_owned()));
        }
        let parts: Vec<&str> = self.arn.splitn(6, ':').collect();
        match parts.as_slice() {
            ["arn", _, "lambda", _, _, _] => Some(Destination::Function(self.arn.clone())),
            _ => None,
        }
    }
}

impl Definition {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("a definition is always valid JSON")
    }

    /// Next firing at or after `from_ms`; `None` if disabled or over.
    pub(crate) fn next_ms(
        &self,
        from_ms: i64,
        created_ms: i64,
    ) -> Result<Option<i64>, ScheduleError> {
        if self.state == "DISABLED" {
            return Ok(None);
        }
        let expression = self.expression()?;
        let zone = self.zone()?;
        if expression.is_once() {
            return Ok(expression.next_ms(from_ms, created_ms, zone));
        }
        let start_ms = self.start_date.map(milliseconds);
        let end_ms = self.end_date.map(milliseconds);
        let from_ms = start_ms.map_or(from_ms, |start_ms| start_ms.max(from_ms));
        let anchor_ms = start_ms.unwrap_or(created_ms);
        Ok(expression
            .next_ms(from_ms, anchor_ms, zone)
            .filter(|next_ms| end_ms.is_none_or(|end_ms| *next_ms <= end_ms)))
    }

    /// Whether it fires only once.
    pub(crate) fn is_once(&self) -> bool {
        self.expression().is_ok_and(|expression| expression.is_once())
    }

    /// Refuses what AWS refuses.
    pub(crate) fn check(&self, name: &str) -> Result<(), ScheduleError> {
        check_name(name)?;
        self.expression()?;
        self.zone()?;
        one_of("state", &self.state, &["ENABLED", "DISABLED"])?;
        one_of("actionAfterCompletion", &self.action_after_completion, &["NONE", "DELETE"])?;
        let window = &self.flexible_time_window;
        one_of("mode", &window.mode, &["OFF", "FLEXIBLE"])?;
        match (window.mode.as_str(), window.maximum_window_in_minutes) {
            ("OFF", Some(_)) => {
                return refuse("A maximum window is only allowed in the mode FLEXIBLE.");
            }
            ("FLEXIBLE", minutes) if !minutes.is_some_and(|m| (1..=1440).contains(&m)) => {
                return refuse("MaximumWindowInMinutes must be between 1 and 1440.");
            }
            _ => {}
        }
        self.check_target()
    }

    fn check_target(&self) -> Result<(), ScheduleError> {
        let target = &self.target;
        let input = target.input.as_deref().unwrap_or_default();
        if input.chars().count() > limits::SCHEDULE_INPUT_CHARACTERS_MAX {
            return refuse("The input of the target is too long.");
        }
        let role: Vec<&str> = target.role_arn.splitn(6, ':').collect();
        if !matches!(role[..], ["arn", _, "iam", "", _, name] if name.starts_with("role/")) {
            return refuse(&format!("RoleArn is not the ARN of a role: {}", target.role_arn));
        }
        let group = target
            .sqs_parameters
            .as_ref()
            .and_then(|parameters| parameters.message_group_id.as_ref());
        match target.destination() {
            None => {
                return refuse(&format!(
                    "Provided Arn is not in correct format or not a target of this engine (SQS and Lambda are): {}",
                    target.arn
                ));
            }
            Some(Destination::Queue(queue)) if queue.ends_with(".fifo") && group.is_none() => {
                return refuse("SqsParameters.MessageGroupId is required for a FIFO queue.");
            }
            Some(_) => {}
        }
        let dead_letters =
            target.dead_letter_config.as_ref().and_then(|config| config.arn.as_ref());
        if let Some(arn) = dead_letters
            && name_of_arn(arn).is_none_or(|name| name.ends_with(".fifo"))
        {
            return refuse("The dead-letter queue must be a standard queue.");
        }
        let policy = target.retry_policy.as_ref();
        let retries = policy.and_then(|policy| policy.maximum_retry_attempts);
        if retries.is_some_and(|retries| !(0..=limits::SCHEDULE_RETRIES_MAX).contains(&retries)) {
            return refuse("MaximumRetryAttempts must be between 0 and 185.");
        }
        let age = policy.and_then(|policy| policy.maximum_event_age_in_seconds);
        if age.is_some_and(|age| !(60..=limits::SCHEDULE_AGE_SECONDS_MAX).contains(&age)) {
            return refuse("MaximumEventAgeInSeconds must be between 60 and 86400.");
        }
        Ok(())
    }

    fn expression(&self) -> Result<Expression, ScheduleError> {
        Expression::parse(&self.schedule_expression).map_err(ScheduleError::Validation)
    }

    fn zone(&self) -> Result<Tz, ScheduleError> {
        self.schedule_expression_timezone.parse().map_err(|_| {
            ScheduleError::Validation(format!(
                "Invalid timezone: {}",
                self.schedule_expression_timezone
            ))
        })
    }
}

/// Checks names of schedules and groups.
pub(crate) fn check_name(name: &str) -> Result<(), ScheduleError> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if fits {
        Ok(())
    } else {
        refuse(&format!(
            "Value '{name}' at 'name' failed to satisfy constraint: [0-9a-zA-Z-_.]+, 1 to 64 in length."
        ))
    }
}

fn one_of(field: &str, value: &str, allowed: &[&str]) -> Result<(), ScheduleError> {
    if allowed.contains(&value) {
        Ok(())
    } else {
        refuse(&format!("Value '{value}' at '{field}' must be one of {}.", allowed.join(", ")))
    }
}

fn refuse(message: &str) -> Result<(), ScheduleError> {
    Err(ScheduleError::Validation(message.to_owned()))
}

fn milliseconds(seconds: f64) -> i64 {
    // Schedule dates are whole seconds in a range that both types hold exactly.
    #[allow(clippy::cast_possible_truncation)]
    let ms = (seconds * 1000.0) as i64;
    ms
}
