//! Event sources of a function: its URL, queues and schedules.

use serde_json::{Value, json};

use super::plan::TemplatePlan;
use super::properties::Properties;
use super::reading::{FUNCTION, ResourceReader, function_arn};
use crate::lambda::Mapping;
use crate::limits;
use crate::scheduler::{DEFAULT_GROUP, Definition, NamedSchedule};
use crate::sqs::name_of_arn;

/// Reads a function's URL and adds its `Events` to the plan.
pub(super) fn read(
    reading: &ResourceReader<'_>,
    function: &str,
    properties: &mut Properties<'_>,
    plan: &mut TemplatePlan,
) -> Result<(), String> {
    if let Some(mut url) = properties.part("FunctionUrlConfig")? {
        if url.text("AuthType").as_deref() != Some("NONE") {
            url.name_unhonoured("AuthType", "anyone who reaches the port may call");
        }
        url.end();
    }
    let events = properties.take("Events").unwrap_or_default();
    for (name, described) in events.as_object().into_iter().flatten() {
        let mut own = Properties::new(
            &format!("{FUNCTION} Events"),
            &format!("{function}.{name}"),
            described["Properties"].clone(),
            properties.unhonoured(),
        )?;
        event(reading, function, name, &described["Type"], &mut own, plan)?;
        own.end();
    }
    Ok(())
}

/// Adds one entry of a function's `Events` to the plan.
fn event(
    reading: &ResourceReader<'_>,
    function: &str,
    name: &str,
    kind: &Value,
    properties: &mut Properties<'_>,
    plan: &mut TemplatePlan,
) -> Result<(), String> {
    match kind.as_str() {
        Some("SQS") => {
            let mapping = mapping(reading, properties)?;
            plan.mappings.push((function.to_owned(), mapping));
        }
        Some("ScheduleV2") => {
            let schedule = schedule(reading, function, name, properties)?;
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

fn mapping(
    reading: &ResourceReader<'_>,
    properties: &mut Properties<'_>,
) -> Result<Mapping, String> {
    let queue_arn = properties.text("Queue").ok_or("an SQS event needs Queue")?;
    let queue = name_of_arn(&queue_arn)
        .ok_or("Queue of an SQS event is not the ARN of a queue")?
        .to_owned();
    let batch_size = properties.read("BatchSize")?.unwrap_or(limits::BATCH_ENTRIES_MAX);
    if !(1..=limits::BATCH_ENTRIES_MAX).contains(&batch_size) {
        return Err("BatchSize of an SQS event must be 1 to 10 here".to_owned());
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
    let types: Vec<String> = properties.read("FunctionResponseTypes")?.unwrap_or_default();
    Ok(Mapping {
        queue,
        queue_arn,
        region: reading.account.region.clone(),
        batch_size,
        concurrency_max,
        reports_failures: types.iter().any(|kind| kind == "ReportBatchItemFailures"),
    })
}

fn schedule(
    reading: &ResourceReader<'_>,
    function: &str,
    name: &str,
    properties: &mut Properties<'_>,
) -> Result<NamedSchedule, String> {
    properties.pass(&["OmitName"]);
    let full_name = format!("{}-{function}{name}", reading.stack);
    let role = format!("arn:aws:iam::{}:role/{full_name}", reading.account.id);
    let definition = json!({
        "ScheduleExpression": properties.text("ScheduleExpression"),
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "Target": {
            "Arn": function_arn(reading.account, &reading.name_of(function)),
            "RoleArn": role,
        },
    });
    let definition: Definition = serde_json::from_value(definition)
        .map_err(|error| format!("the schedule {name}: {error}"))?;
    Ok(NamedSchedule { group: DEFAULT_GROUP.to_owned(), name: full_name, definition })
}
