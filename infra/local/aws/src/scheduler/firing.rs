//! The firing loop: due schedules are recorded as firings, then each firing is delivered until it succeeds or is
//! dropped.

use std::sync::Arc;

use axum::body::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use rusqlite::{Transaction, params};
use serde_json::json;

use super::Scheduler;
use super::definition::{Definition, Destination, ScheduleTarget};
use super::error::ScheduleError;
use crate::limits;
use crate::sqs::{MessageEntry, name_of_arn};

struct Firing {
    id: String,
    schedule_arn: String,
    target: ScheduleTarget,
    scheduled_ms: i64,
    first_ms: i64,
    attempt: i64,
}

impl Scheduler {
    /// Fires due schedules until the engine stops.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut changed = self.changed.subscribe();
        while !self.stopping.is_cancelled() {
            let fired = self.fire_due().and_then(|()| self.deliver_due());
            let now_ms = self.clock.now_ms();
            let check_ms = now_ms + limits::SCHEDULE_CHECK_INTERVAL_MS;
            let next_ms = match fired.and_then(|()| self.next_ms()) {
                Ok(next_ms) => next_ms.unwrap_or(check_ms).min(check_ms),
                Err(error) => {
                    tracing::error!(%error, "schedules could not be fired");
                    now_ms + limits::SCHEDULE_BACKOFF_MS_MIN
                }
            };
            tokio::select! {
                () = self.clock.sleep_until_ms(next_ms) => {}
                _ = changed.changed() => {}
                () = self.stopping.cancelled() => return,
            }
        }
    }

    fn next_ms(&self) -> Result<Option<i64>, ScheduleError> {
        self.store.transaction(|tx| {
            Ok(tx.query_row(
                "SELECT MIN(next_ms) FROM
                   (SELECT MIN(next_ms) AS next_ms FROM schedules UNION ALL SELECT MIN(next_ms) FROM firings)",
                [],
                |row| row.get(0),
            )?)
        })
    }

    /// Records a firing for every due schedule, and its next time, in one transaction.
    fn fire_due(&self) -> Result<(), ScheduleError> {
        let now_ms = self.clock.now_ms();
        self.store.transaction(|tx| {
            for (group, name, text, created_ms, due_ms) in due_schedules(tx, now_ms)? {
                // A definition from an older version that cannot be read must not block the others.
                let Ok(definition) = serde_json::from_str::<Definition>(&text) else {
                    tracing::error!(%group, %name, "a stored schedule cannot be read; create it again");
                    tx.execute(
                        "UPDATE schedules SET next_ms = NULL WHERE group_name = ?1 AND name = ?2",
                        [&group, &name],
                    )?;
                    continue;
                };
                tx.execute(
                    "INSERT INTO firings (id, schedule_arn, target, scheduled_ms, first_ms, next_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
                    params![
                        uuid::Uuid::new_v4().to_string(),
                        self.arn(&group, &name),
                        serde_json::to_string(&definition.target)
                            .expect("a target is always valid JSON"),
                        due_ms,
                        now_ms
                    ],
                )?;
                let next_ms = if definition.is_once() {
                    None
                } else {
                    definition.next_ms(now_ms + 1, created_ms)?
                };
                if next_ms.is_none() && definition.action_after_completion == "DELETE" {
                    tx.execute(
                        "DELETE FROM schedules WHERE group_name = ?1 AND name = ?2",
                        [&group, &name],
                    )?;
                } else {
                    tx.execute(
                        "UPDATE schedules SET next_ms = ?3 WHERE group_name = ?1 AND name = ?2",
                        params![group, name, next_ms],
                    )?;
                }
            }
            Ok(())
        })
    }

    fn deliver_due(&self) -> Result<(), ScheduleError> {
        let now_ms = self.clock.now_ms();
        let due = self.store.transaction(|tx| due_firings(tx, now_ms))?;
        for firing in due {
            let failure = self.deliver(&firing, now_ms).err();
            if let Some(reason) = &failure {
                tracing::warn!(schedule = firing.schedule_arn, attempt = firing.attempt, %reason, "a schedule could not reach its target");
            }
            let has_failed = failure.is_some();
            let next_ms = failure.and_then(|_| retry_at_ms(&firing, now_ms));
            self.store.transaction(|tx| {
                match next_ms {
                    Some(next_ms) => tx.execute(
                        "UPDATE firings SET attempt = attempt + 1, next_ms = ?2 WHERE id = ?1",
                        params![firing.id, next_ms],
                    )?,
                    None => tx.execute("DELETE FROM firings WHERE id = ?1", [&firing.id])?,
                };
                Ok::<_, ScheduleError>(())
            })?;
            if has_failed && next_ms.is_none() {
                self.send_to_dead_letters(&firing);
            }
        }
        Ok(())
    }

    fn deliver(&self, firing: &Firing, now_ms: i64) -> Result<(), String> {
        let payload = self.payload(firing, now_ms);
        match firing.target.destination() {
            Some(Destination::Queue(queue)) => {
                let group = firing.target.sqs_parameters.as_ref();
                let entry = MessageEntry {
                    message_body: Some(payload),
                    message_group_id: group.and_then(|group| group.message_group_id.clone()),
                    ..MessageEntry::default()
                };
                self.sqs.send(&queue, entry).map_err(|error| error.to_string())
            }
            Some(Destination::Function(arn)) => {
                let function = self
                    .functions
                    .by_name(&arn)
                    .ok_or_else(|| format!("function {arn} does not exist"))?;
                self.functions.invoke_event(
                    function,
                    crate::lambda::request_id(),
                    Bytes::from(payload),
                );
                Ok(())
            }
            None => Err("this engine does not implement the target".to_owned()),
        }
    }

    /// The target's input with placeholders filled in; AWS's default payload if it has none.
    fn payload(&self, firing: &Firing, now_ms: i64) -> String {
        let scheduled = iso(firing.scheduled_ms);
        match &firing.target.input {
            Some(input) => input
                .replace("<aws.scheduler.schedule-arn>", &firing.schedule_arn)
                .replace("<aws.scheduler.scheduled-time>", &scheduled)
                .replace("<aws.scheduler.execution-id>", &firing.id)
                .replace("<aws.scheduler.attempt-number>", &firing.attempt.to_string()),
            None => json!({
                "version": "0",
                "id": firing.id,
                "detail-type": "Scheduled Event",
                "source": "aws.scheduler",
                "account": self.account.id,
                "time": iso(now_ms),
                "region": self.account.region,
                "resources": [firing.schedule_arn],
                "detail": "{}",
            })
            .to_string(),
        }
    }

    /// Sends a dropped firing to the target's dead-letter queue, if it has one.
    fn send_to_dead_letters(&self, firing: &Firing) {
        let queue = firing
            .target
            .dead_letter_config
            .as_ref()
            .and_then(|config| name_of_arn(config.arn.as_deref()?));
        let Some(queue) = queue else {
            tracing::warn!(
                schedule = firing.schedule_arn,
                "a firing was given up and has no dead-letter queue"
            );
            return;
        };
        let entry = MessageEntry {
            message_body: Some(self.payload(firing, self.clock.now_ms())),
            ..MessageEntry::default()
        };
        if let Err(error) = self.sqs.send(queue, entry) {
            tracing::warn!(schedule = firing.schedule_arn, %error, "a firing was given up and its dead-letter queue did not accept it");
        }
    }
}

/// Time of the next retry; `None`: no more.
fn retry_at_ms(firing: &Firing, now_ms: i64) -> Option<i64> {
    let policy = firing.target.retry_policy.as_ref();
    let retries_max = policy
        .and_then(|policy| policy.maximum_retry_attempts)
        .unwrap_or(limits::SCHEDULE_RETRIES_MAX);
    let age_max_ms = policy
        .and_then(|policy| policy.maximum_event_age_in_seconds)
        .unwrap_or(limits::SCHEDULE_AGE_SECONDS_MAX)
        * 1000;
    let doublings = u32::try_from(firing.attempt - 1).unwrap_or(0).min(16);
    let pause_ms =
        (limits::SCHEDULE_BACKOFF_MS_MIN << doublings).min(limits::SCHEDULE_BACKOFF_MS_MAX);
    let next_ms = now_ms + pause_ms;
    let is_worth_it = firing.attempt <= retries_max && next_ms - firing.first_ms <= age_max_ms;
    is_worth_it.then_some(next_ms)
}

type DueSchedule = (String, String, String, i64, i64);

fn due_schedules(tx: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<Vec<DueSchedule>> {
    let mut statement = tx.prepare_cached(
        "SELECT group_name, name, definition, created_ms, next_ms FROM schedules
         WHERE next_ms <= ?1 ORDER BY next_ms LIMIT ?2",
    )?;
    let rows = statement.query_map(
        params![now_ms, i64::try_from(limits::FIRINGS_PER_ROUND_MAX).unwrap_or(1)],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
    )?;
    rows.collect()
}

fn due_firings(tx: &Transaction<'_>, now_ms: i64) -> Result<Vec<Firing>, ScheduleError> {
    let mut statement = tx.prepare_cached(
        "SELECT id, schedule_arn, target, scheduled_ms, first_ms, attempt FROM firings
         WHERE next_ms <= ?1 ORDER BY next_ms LIMIT ?2",
    )?;
    let mut rows = statement
        .query(params![now_ms, i64::try_from(limits::FIRINGS_PER_ROUND_MAX).unwrap_or(1)])?;
    let mut firings = Vec::new();
    while let Some(row) = rows.next()? {
        let target: String = row.get(2)?;
        firings.push(Firing {
            id: row.get(0)?,
            schedule_arn: row.get(1)?,
            target: serde_json::from_str(&target)
                .map_err(|error| ScheduleError::Validation(format!("a stored target: {error}")))?,
            scheduled_ms: row.get(3)?,
            first_ms: row.get(4)?,
            attempt: row.get(5)?,
        });
    }
    Ok(firings)
}

fn iso(ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(ms)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}
