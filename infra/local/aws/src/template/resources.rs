//! Resources of the template: their settings.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::intrinsic::text;
use super::plan::{FunctionSettings, QueueSettings, TemplatePlan};
use super::properties::{Properties, Unhonoured, reason};
use super::reading::{FUNCTION, GROUP, KEY, QUEUE, ResourceReader, SECRET, TABLE};
use super::sources;
use crate::dynamodb::TableSettings;
use crate::limits;
use crate::secrets::{self, Generate, SecretSource};

/// Adds a resource to the plan, or reports it as ignored.
pub(super) fn read(
    reading: &ResourceReader<'_>,
    id: &str,
    resource: &Value,
    plan: &mut TemplatePlan,
    unhonoured: &mut Unhonoured,
) -> Result<(), String> {
    let kind = resource["Type"].as_str().ok_or("it has no Type")?;
    policies(resource)?;
    let properties = match kind {
        TABLE | QUEUE | SECRET | GROUP | KEY => reading.scope.resolve(&resource["Properties"])?,
        FUNCTION => {
            let global = &reading.globals["Function"];
            let merged = merged(global.clone(), resource["Properties"].clone());
            reading.scope.resolve(&merged)?
        }
        _ => {
            let reason = if kind.starts_with("AWS::IAM::") {
                "roles are not enforced, every call is allowed"
            } else {
                "resources of this type are not set up here"
            };
            unhonoured.add(kind, "", id, reason);
            return Ok(());
        }
    };
    let mut properties = Properties::new(kind, id, properties, unhonoured)?;
    if kind == KEY {
        let description = properties.text("Description").unwrap_or_default();
        properties.pass(&["Tags"]);
        plan.keys.push((reading.name_of(id), description));
    }
    properties.pass(&["Description"]);
    match kind {
        KEY => {}
        TABLE => plan.tables.push(table(reading, id, &mut properties)?),
        QUEUE => plan.queues.push(queue(reading, id, &mut properties)?),
        SECRET => {
            let source = secret(&mut properties)?;
            plan.secrets.push((reading.name_of(id), source));
        }
        GROUP => {
            properties.pass(&["Name", "Tags"]);
            plan.groups.push(reading.name_of(id));
        }
        _ => {
            let function = function(reading, id, &mut properties)?;
            plan.functions.push(function);
            sources::read(reading, id, &mut properties, plan)?;
        }
    }
    properties.end();
    Ok(())
}

fn table(
    reading: &ResourceReader<'_>,
    id: &str,
    properties: &mut Properties<'_>,
) -> Result<TableSettings, String> {
    let mut create = Map::new();
    create.insert("TableName".to_owned(), json!(reading.name_of(id)));
    properties.pass(&["TableName"]);
    for name in [
        "AttributeDefinitions",
        "KeySchema",
        "GlobalSecondaryIndexes",
        "DeletionProtectionEnabled",
        "BillingMode",
    ] {
        if let Some(value) = properties.take(name) {
            if let Some(reason) = reason(TABLE, name) {
                properties.name_unhonoured(name, reason);
            }
            create.insert(name.to_owned(), value);
        }
    }
    let mut ttl_attribute = None;
    if let Some(mut ttl) = properties.part("TimeToLiveSpecification")? {
        let attribute = ttl.text("AttributeName");
        if ttl.text("Enabled").as_deref() == Some("true") {
            ttl_attribute = attribute;
        }
        ttl.end();
    }
    Ok(TableSettings { create: Value::Object(create), ttl_attribute })
}

fn queue(
    reading: &ResourceReader<'_>,
    id: &str,
    properties: &mut Properties<'_>,
) -> Result<QueueSettings, String> {
    properties.pass(&["QueueName"]);
    let mut tags = BTreeMap::new();
    for tag in properties.take("Tags").unwrap_or_default().as_array().into_iter().flatten() {
        tags.insert(text(&tag["Key"]), text(&tag["Value"]));
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in properties.rest() {
        if let Some(reason) = reason(QUEUE, &name) {
            properties.name_unhonoured(&name, reason);
        }
        // A standard queue has no such attribute, but the property may be false.
        if name == "FifoQueue" && value == json!(false) {
            continue;
        }
        attributes.insert(name, text(&value));
    }
    Ok(QueueSettings { name: reading.name_of(id), attributes, tags })
}

fn function(
    reading: &ResourceReader<'_>,
    id: &str,
    properties: &mut Properties<'_>,
) -> Result<FunctionSettings, String> {
    let runtime = properties.text("Runtime").unwrap_or_default();
    if !runtime.starts_with("provided.") {
        return Err(format!(
            "Runtime {runtime} cannot run here; only executables for the runtimes provided.* can"
        ));
    }
    // The executable comes from the settings, built for this machine.
    properties.pass(&["FunctionName", "Handler", "CodeUri", "Architectures"]);
    let timeout_seconds =
        properties.number("Timeout")?.unwrap_or(limits::FUNCTION_TIMEOUT_SECONDS_DEFAULT);
    if !(1..=limits::FUNCTION_TIMEOUT_SECONDS_MAX).contains(&timeout_seconds) {
        return Err("Timeout must be between 1 and 900 seconds".to_owned());
    }
    let memory_mb = properties.number("MemorySize")?.unwrap_or(128);
    let why = reason(FUNCTION, "MemorySize").unwrap_or_default();
    properties.name_unhonoured("MemorySize", why);
    let is_traced = properties.text("Tracing").as_deref() == Some("Active");
    let mut environment = BTreeMap::new();
    if let Some(mut part) = properties.part("Environment")? {
        for (name, value) in
            part.take("Variables").unwrap_or_default().as_object().into_iter().flatten()
        {
            environment.insert(name.clone(), text(value));
        }
        part.end();
    }
    let concurrency_max = properties
        .number("ReservedConcurrentExecutions")?
        .and_then(|count| usize::try_from(count).ok());
    Ok(FunctionSettings {
        logical_id: id.to_owned(),
        name: reading.name_of(id),
        timeout_seconds,
        memory_mb,
        is_traced,
        concurrency_max,
        environment,
    })
}

/// Nothing is deleted here with a stack, so policies are only checked, as `CloudFormation` does.
fn policies(resource: &Value) -> Result<(), String> {
    const ON_DELETION: [&str; 4] = ["Delete", "Retain", "RetainExceptOnCreate", "Snapshot"];
    const ON_REPLACEMENT: [&str; 3] = ["Delete", "Retain", "Snapshot"];
    for (name, allowed) in [
        ("DeletionPolicy", ON_DELETION.as_slice()),
        ("UpdateReplacePolicy", ON_REPLACEMENT.as_slice()),
    ] {
        let policy = &resource[name];
        if !policy.is_null() && !policy.as_str().is_some_and(|said| allowed.contains(&said)) {
            return Err(format!("{name} must be one of {}", allowed.join(", ")));
        }
    }
    Ok(())
}

fn secret(properties: &mut Properties<'_>) -> Result<SecretSource, String> {
    properties.pass(&["Name", "Tags"]);
    if let Some(text) = properties.text("SecretString") {
        return Ok(SecretSource::Text(text));
    }
    let Some(mut part) = properties.part("GenerateSecretString")? else {
        return Err("it needs SecretString or GenerateSecretString".to_owned());
    };
    let generate = Generate {
        secret_string_template: part.text("SecretStringTemplate"),
        generate_string_key: part.text("GenerateStringKey"),
        password_length: part.read("PasswordLength")?.unwrap_or(secrets::PASSWORD_LENGTH_DEFAULT),
        exclude_punctuation: part.read("ExcludePunctuation")?.unwrap_or_default(),
    };
    part.end();
    Ok(SecretSource::Generated(generate))
}

/// A function's properties over `Globals`: maps are merged, lists joined, other values replaced.
fn merged(global: Value, own: Value) -> Value {
    match (global, own) {
        (Value::Object(mut global), Value::Object(own)) => {
            for (name, value) in own {
                let under = global.remove(&name).unwrap_or_default();
                global.insert(name, merged(under, value));
            }
            Value::Object(global)
        }
        (Value::Array(mut global), Value::Array(own)) => {
            global.extend(own);
            Value::Array(global)
        }
        (global, Value::Null) => global,
        (_, own) => own,
    }
}
