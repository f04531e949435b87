//! EventBridge Scheduler: schedules and groups through its REST-JSON API, fired on time.
//!
//! Promised: `at` in the schedule's time zone and `rate`, start and end dates, states, deletion after completion,
//! `<aws.scheduler.…>` placeholders; delivery to a FIFO queue with its group id and the queue's own deduplication;
//! bounded retries, then the dead-letter queue; a firing is recorded before it is delivered, so a restart fires nothing
//! twice. A one-time schedule created after its time fires at once; a schedule that missed several times while the
//! stack was down fires once.
//!
//! Deliberately absent: spreading over a flexible window (fires at its start), roles, encryption, and targets other
//! than SQS and Lambda; `cron` and universal targets are refused.

mod api;
mod definition;
mod error;
mod expression;
mod firing;

use std::sync::Arc;

use rusqlite::{OptionalExtension, Transaction, params};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::account::AwsAccount;
use crate::clock::Clock;
use crate::lambda::Functions;
use crate::sqs::Sqs;
use crate::store::Database;

pub(crate) use definition::Definition;
use error::ScheduleError;

/// The schedules of this stack.
pub(crate) struct Scheduler {
    store: Arc<Database>,
    clock: Clock,
    account: AwsAccount,
    sqs: Arc<Sqs>,
    functions: Arc<Functions>,
    changed: watch::Sender<()>,
    stopping: CancellationToken,
}

/// A schedule with its name and group.
#[derive(Clone, Debug)]
pub(crate) struct NamedSchedule {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) definition: Definition,
}

pub(crate) const DEFAULT_GROUP: &str = "default";

impl Scheduler {
    pub(crate) fn new(
        store: Arc<Database>,
        clock: Clock,
        account: AwsAccount,
        sqs: Arc<Sqs>,
        functions: Arc<Functions>,
        stopping: CancellationToken,
    ) -> Self {
        Self { store, clock, account, sqs, functions, changed: watch::Sender::new(()), stopping }
    }

    /// Deploys the template's groups and schedules; an unchanged schedule keeps its next time.
    pub(crate) fn deploy(
        &self,
        groups: &[String],
        schedules: &[NamedSchedule],
    ) -> Result<(), ScheduleError> {
        let now_ms = self.clock.now_ms();
        self.store.transaction(|tx| {
            for group in groups.iter().map(String::as_str).chain([DEFAULT_GROUP]) {
                tx.execute(
                    "INSERT OR IGNORE INTO schedule_groups (name, created_ms) VALUES (?1, ?2)",
                    params![group, now_ms],
                )?;
            }
            let present: Vec<(String, String)> = {
                let mut statement =
                    tx.prepare("SELECT group_name, name FROM schedules WHERE from_template = 1")?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect::<Result<_, _>>()?
            };
            for (group, name) in present {
                let is_declared = schedules
                    .iter()
                    .any(|schedule| schedule.group == group && schedule.name == name);
                if !is_declared {
                    tx.execute(
                        "DELETE FROM schedules WHERE group_name = ?1 AND name = ?2",
                        [group, name],
                    )?;
                }
            }
            for schedule in schedules {
                schedule.definition.check(&schedule.name)?;
                let text = schedule.definition.text();
                let stored: Option<String> = tx
                    .query_row(
                        "SELECT definition FROM schedules WHERE group_name = ?1 AND name = ?2",
                        [&schedule.group, &schedule.name],
                        |row| row.get(0),
                    )
                    .optional()?;
                if stored.as_ref() != Some(&text) {
                    save(tx, schedule, None, true, now_ms)?;
                }
            }
            Ok(())
        })
    }

    /// The ARN of a schedule.
    fn arn(&self, group: &str, name: &str) -> String {
        self.account.arn("scheduler", &format!("schedule/{group}/{name}"))
    }

    /// Wakes the firing loop.
    fn wake(&self) {
        self.changed.send_replace(());
    }
}

/// Stores a schedule with its next firing time.
fn save(
    tx: &Transaction<'_>,
    schedule: &NamedSchedule,
    client_token: Option<&str>,
    from_template: bool,
    now_ms: i64,
) -> Result<(), ScheduleError> {
    let next_ms = schedule.definition.next_ms(now_ms, now_ms)?;
    tx.execute(
        "INSERT INTO schedules (group_name, name, definition, client_token, from_template, created_ms, modified_ms, next_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)
         ON CONFLICT (group_name, name) DO UPDATE SET definition = excluded.definition,
           client_token = excluded.client_token, from_template = excluded.from_template,
           modified_ms = excluded.modified_ms, next_ms = excluded.next_ms",
        params![
            schedule.group,
            schedule.name,
            schedule.definition.text(),
            client_token,
            from_template,
            now_ms,
            next_ms
        ],
    )?;
    Ok(())
}
