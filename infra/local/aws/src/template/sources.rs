//! What starts a function: queues and schedules.

use chrono::DateTime;
use serde_json::{Value, json};

use super::Plan;
use super::properties::Properties;
use super::resources::{Reading, function_arn};
use crate::lambda::Mapping;
use crate::limits;
use crate::scheduler::{DEFAULT_GROUP, Definition, TemplateSchedule};
use crate::sqs::name_of_arn;

impl Reading<'_> {
    /// Adds one entry of a function's `Events` to the plan.
    pub(super) fn event(
        &self,
        function: &str,
        name: &str,
        kind: &Value,
        properties: &mut Properties<'_>,
        plan: &mut Plan,
    ) -> Result<(), String> {
        match kind.as_str() {
            Some("SQS") => {
                let mapping = self.mapping(properties)?;
                plan.mappings.push((function.to_owned(), mapping));
            }
            Some("ScheduleV2") => {
                let schedule = self.schedule(function, name, properties)?;
                plan.schedules.push(schedule);
            }
            _ => {
                properties.rest();
                properties.name_unhonoured(
                    kind.as_str().unwrap_or("without a type"),
                    "only SQS and ScheduleV2 start functions here",
                );
            }
        }
        Ok(())
    }

    fn mapping(&self, properties: &mut Properties<'_>) -> Result<Mapping, String> {
        let queue_arn = properties.text("Queue").ok_or("an SQS event needs Queue")?;
        let queue = name_of_arn(&queue_arn)
            .ok_or("Queue of an SQS event is not the ARN of a queue")?
            .to_owned();
        let is_fifo = queue.ends_with(".fifo");
        let batch_size = properties.number("BatchSize")?.unwrap_or(10);
        let batch_max = limits::BATCH_ENTRIES_MAX;
        if batch_size == 0 || (is_fifo && batch_size > 10) {
            return Err("BatchSize of an SQS event must be 1 to 10 on a FIFO queue".to_owned());
        }
        if batch_size > 10 {
            properties.name_unhonoured("BatchSize", "batches have at most 10 messages here");
        }
        let mut concurrency_max = limits::MAPPING_CONCURRENCY_MAX;
        if let Some(mut scaling) = properties.part("ScalingConfig")? {
            if let Some(count) = scaling.number("MaximumConcurrency")? {
                if !(2..=1000).contains(&count) {
                    return Err("MaximumConcurrency must be between 2 and 1000".to_owned());
                }
                concurrency_max = usize::try_from(count).unwrap_or(concurrency_max);
            }
            scaling.end();
        }
        let types: Vec<String> = properties
            .read("FunctionResponseTypes")?
            .unwrap_or_default();
        if properties
            .text("Enabled")
            .is_some_and(|enabled| enabled != "true")
        {
            properties.name_unhonoured("Enabled", "the mapping runs all the same");
        }
        Ok(Mapping {
            queue,
            queue_arn,
            region: self.account.region.clone(),
            batch_size: usize::try_from(batch_size)
                .unwrap_or(batch_max)
                .min(batch_max),
            concurrency_max,
            reports_failures: types.iter().any(|kind| kind == "ReportBatchItemFailures"),
        })
    }

    fn schedule(
        &self,
        function: &str,
        name: &str,
        properties: &mut Properties<'_>,
    ) -> Result<TemplateSchedule, String> {
        properties.pass(&["Description", "PermissionsBoundary", "OmitName"]);
        let role = format!(
            "arn:aws:iam::{}:role/{}-{function}{name}",
            self.account.id, self.stack
        );
        let mut target = json!({
            "Arn": function_arn(self.account, &self.name_of(function)),
            "RoleArn": properties.text("RoleArn").unwrap_or(role),
        });
        for part in ["Input", "RetryPolicy", "DeadLetterConfig"] {
            if let Some(value) = properties.take(part) {
                target[part] = value;
            }
        }
        let mut definition = json!({
            "FlexibleTimeWindow": { "Mode": "OFF" },
            "Target": target,
        });
        for field in [
            "ScheduleExpression",
            "ScheduleExpressionTimezone",
            "State",
            "FlexibleTimeWindow",
        ] {
            if let Some(value) = properties.take(field) {
                definition[field] = value;
            }
        }
        for field in ["StartDate", "EndDate"] {
            if let Some(date) = properties.text(field) {
                let date = DateTime::parse_from_rfc3339(&date).map_err(|_| {
                    format!("{field} is not a date and time like 2026-01-31T08:00:00Z")
                })?;
                definition[field] = json!(date.timestamp());
            }
        }
        let definition: Definition = serde_json::from_value(definition)
            .map_err(|error| format!("the schedule {name}: {error}"))?;
        let own_name = properties.text("Name");
        Ok(TemplateSchedule {
            group: properties
                .text("GroupName")
                .unwrap_or_else(|| DEFAULT_GROUP.to_owned()),
            name: own_name.unwrap_or_else(|| format!("{}-{function}{name}", self.stack)),
            definition,
        })
    }
}
