//! Resources of the template: their names first, then their settings.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::intrinsic::{Scope, text};
use super::properties::{Properties, Unhonoured, reason};
use super::{FunctionSettings, Plan, QueueSettings, TemplateError};
use crate::account::Account;
use crate::dynamodb::TableSettings;
use crate::limits;
use crate::secrets::{self, Generate, Source};
use crate::sqs::queue_arn;

pub(crate) const TABLE: &str = "AWS::DynamoDB::Table";
pub(crate) const QUEUE: &str = "AWS::SQS::Queue";
pub(crate) const SECRET: &str = "AWS::SecretsManager::Secret";
pub(crate) const FUNCTION: &str = "AWS::Serverless::Function";
pub(crate) const GROUP: &str = "AWS::Scheduler::ScheduleGroup";

/// Gives every resource its name and says what `Ref` and `GetAtt` of it are. Returns the names by logical id.
pub(crate) fn name(
    resources: &BTreeMap<&String, &Value>,
    stack: &str,
    account: &Account,
    urls: &BTreeMap<String, String>,
    scope: &mut Scope,
) -> Result<BTreeMap<String, String>, TemplateError> {
    let mut names = BTreeMap::new();
    for (id, resource) in resources {
        let kind = resource["Type"].as_str().unwrap_or_default();
        let own_name = match kind {
            TABLE => "TableName",
            QUEUE => "QueueName",
            FUNCTION => "FunctionName",
            SECRET | GROUP => "Name",
            _ => "",
        };
        let given = scope
            .resolve(&resource["Properties"][own_name])
            .map_err(|reason| TemplateError::Invalid(format!("resource {id}"), reason))?;
        let name = match given.as_str() {
            Some(name) => name.to_owned(),
            None if kind == QUEUE && resource["Properties"]["FifoQueue"] == json!(true) => {
                format!("{stack}-{id}.fifo")
            }
            None => format!("{stack}-{id}"),
        };
        let mut attribute = |attribute: &str, value: String| {
            scope.attributes.insert(format!("{id}.{attribute}"), value);
        };
        let reference = match kind {
            TABLE => {
                attribute("Arn", account.arn("dynamodb", &format!("table/{name}")));
                name.clone()
            }
            QUEUE => {
                attribute("Arn", queue_arn(&account.region, &account.id, &name));
                attribute("QueueName", name.clone());
                attribute("QueueUrl", account.queue_url(&name));
                account.queue_url(&name)
            }
            SECRET => {
                let arn = secrets::arn(account, &name);
                attribute("Id", arn.clone());
                arn
            }
            FUNCTION => {
                attribute("Arn", function_arn(account, &name));
                let role = format!("{id}Role");
                let role_arn = format!("arn:aws:iam::{}:role/{stack}-{role}", account.id);
                scope.attributes.insert(format!("{role}.Arn"), role_arn);
                scope
                    .references
                    .insert(role.clone(), format!("{stack}-{role}"));
                if let Some(url) = urls.get(*id) {
                    let path = format!("{id}Url.FunctionUrl");
                    scope.attributes.insert(path, url.clone());
                }
                name.clone()
            }
            GROUP => {
                let arn = account.arn("scheduler", &format!("schedule-group/{name}"));
                attribute("Arn", arn);
                name.clone()
            }
            // Not set up here, but others may name it: a role's ARN in an environment, say.
            _ => {
                let service = match kind.split("::").nth(1).unwrap_or("local") {
                    "IAM" => format!("arn:aws:iam::{}:role/{name}", account.id),
                    service => account.arn(&service.to_ascii_lowercase(), &name),
                };
                attribute("Arn", service);
                name.clone()
            }
        };
        scope.references.insert((*id).clone(), reference);
        names.insert((*id).clone(), name);
    }
    Ok(names)
}

/// The ARN of a function.
pub(crate) fn function_arn(account: &Account, name: &str) -> String {
    account.arn("lambda", &format!("function:{name}"))
}

/// What reading a resource needs to know.
pub(crate) struct Reading<'a> {
    pub(crate) stack: &'a str,
    pub(crate) account: &'a Account,
    pub(crate) scope: &'a Scope,
    pub(crate) names: &'a BTreeMap<String, String>,
    pub(crate) globals: &'a Value,
}

impl Reading<'_> {
    /// Adds a resource to the plan, or names it as not honoured.
    pub(crate) fn resource(
        &self,
        id: &str,
        resource: &Value,
        plan: &mut Plan,
        unhonoured: &mut Unhonoured,
    ) -> Result<(), String> {
        let kind = resource["Type"].as_str().ok_or("it has no Type")?;
        policies(resource)?;
        let mut properties = match kind {
            TABLE | QUEUE | SECRET | GROUP => self.scope.resolve(&resource["Properties"])?,
            FUNCTION => {
                let global = &self.globals["Function"];
                let merged = merged(global.clone(), resource["Properties"].clone());
                self.scope.resolve(&merged)?
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
        if properties.is_null() {
            properties = Value::Object(Map::new());
        }
        let mut properties = Properties::new(kind, id, properties, unhonoured)?;
        properties.pass(&["Description"]);
        match kind {
            TABLE => plan.tables.push(self.table(id, &mut properties)?),
            QUEUE => plan.queues.push(self.queue(id, &mut properties)?),
            SECRET => plan
                .secrets
                .push((self.name_of(id), secret(&mut properties)?)),
            GROUP => {
                properties.pass(&["Name", "Tags"]);
                plan.groups.push(self.name_of(id));
            }
            _ => {
                let function = self.function(id, &mut properties)?;
                plan.functions.push(function);
                if let Some(mut url) = properties.part("FunctionUrlConfig")? {
                    if url.text("AuthType").as_deref() != Some("NONE") {
                        url.name_unhonoured("AuthType", "anyone who reaches the port may call");
                    }
                    url.end();
                }
                let events = properties.take("Events").unwrap_or_default();
                for (name, event) in events.as_object().into_iter().flatten() {
                    let mut at = Properties::new(
                        &format!("{kind} Events"),
                        &format!("{id}.{name}"),
                        event["Properties"].clone(),
                        properties.unhonoured(),
                    )?;
                    self.event(id, name, &event["Type"], &mut at, plan)?;
                    at.end();
                }
            }
        }
        properties.end();
        Ok(())
    }

    pub(super) fn name_of(&self, id: &str) -> String {
        self.names.get(id).cloned().unwrap_or_default()
    }

    fn table(&self, id: &str, properties: &mut Properties<'_>) -> Result<TableSettings, String> {
        let mut create = Map::new();
        create.insert("TableName".to_owned(), json!(self.name_of(id)));
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
        Ok(TableSettings {
            create: Value::Object(create),
            ttl_attribute,
        })
    }

    fn queue(&self, id: &str, properties: &mut Properties<'_>) -> Result<QueueSettings, String> {
        properties.pass(&["QueueName"]);
        let mut tags = BTreeMap::new();
        for tag in properties
            .take("Tags")
            .unwrap_or_default()
            .as_array()
            .into_iter()
            .flatten()
        {
            tags.insert(text(&tag["Key"]), text(&tag["Value"]));
        }
        let mut attributes = BTreeMap::new();
        for (name, value) in properties.rest() {
            if let Some(reason) = reason(QUEUE, &name) {
                properties.name_unhonoured(&name, reason);
            }
            // A standard queue has no such attribute; the property may say so all the same.
            if name == "FifoQueue" && value == json!(false) {
                continue;
            }
            attributes.insert(name, text(&value));
        }
        Ok(QueueSettings {
            name: self.name_of(id),
            attributes,
            tags,
        })
    }

    fn function(
        &self,
        id: &str,
        properties: &mut Properties<'_>,
    ) -> Result<FunctionSettings, String> {
        let runtime = properties.text("Runtime").unwrap_or_default();
        if !runtime.starts_with("provided.") {
            return Err(format!(
                "Runtime {runtime} cannot be run here, only executables of the runtimes provided.*"
            ));
        }
        // The executable comes from the settings, built for this machine.
        properties.pass(&["FunctionName", "Handler", "CodeUri", "Architectures"]);
        let timeout_seconds = properties
            .number("Timeout")?
            .unwrap_or(limits::FUNCTION_TIMEOUT_SECONDS_DEFAULT);
        if !(1..=limits::FUNCTION_TIMEOUT_SECONDS_MAX).contains(&timeout_seconds) {
            return Err("Timeout must be between 1 and 900 seconds".to_owned());
        }
        let memory_mb = properties.number("MemorySize")?.unwrap_or(128);
        let why = reason(FUNCTION, "MemorySize").unwrap_or_default();
        properties.name_unhonoured("MemorySize", why);
        let is_traced = properties.text("Tracing").as_deref() == Some("Active");
        let mut environment = BTreeMap::new();
        if let Some(mut part) = properties.part("Environment")? {
            for (name, value) in part
                .take("Variables")
                .unwrap_or_default()
                .as_object()
                .into_iter()
                .flatten()
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
            name: self.name_of(id),
            timeout_seconds,
            memory_mb,
            is_traced,
            concurrency_max,
            environment,
        })
    }
}

/// Nothing is deleted here with a stack, so what a policy says is only checked as `CloudFormation` does.
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

fn secret(properties: &mut Properties<'_>) -> Result<Source, String> {
    properties.pass(&["Name", "Tags"]);
    if let Some(text) = properties.text("SecretString") {
        return Ok(Source::Text(text));
    }
    let Some(mut part) = properties.part("GenerateSecretString")? else {
        return Err("it needs SecretString or GenerateSecretString".to_owned());
    };
    let generate = Generate {
        secret_string_template: part.text("SecretStringTemplate"),
        generate_string_key: part.text("GenerateStringKey"),
        password_length: part
            .read("PasswordLength")?
            .unwrap_or(secrets::PASSWORD_LENGTH_DEFAULT),
        exclude_punctuation: part.read("ExcludePunctuation")?.unwrap_or_default(),
    };
    part.end();
    Ok(Source::Generated(generate))
}

/// A function's properties over those of `Globals`: maps are merged, lists joined, other values replaced.
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
