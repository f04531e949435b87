//! `template.yaml`, the single source of the settings of queues, tables, functions and schedules.
//!
//! Promised: what this engine does not honour is named ([`Plan::unhonoured`]), never passed over in silence; a template
//! that cannot be understood is refused with its location and the reason. Values of parameters are in no message.
//!
//! Deliberately absent: rules, macros beyond the shape of serverless functions.

mod conditions;
mod intrinsic;
mod parameters;
mod properties;
mod resources;
mod sources;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::account::Account;
use crate::cloudformation::HIDDEN;
use crate::dynamodb::TableSettings;
use crate::lambda::Mapping;
use crate::scheduler::NamedSchedule;
use crate::secrets::Source;

use intrinsic::Scope;
use properties::Unhonoured;

/// Why a template could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file is not there or not readable.
    #[error("template {0} could not be read: {1}")]
    Read(String, std::io::Error),
    /// Not YAML, or not a template.
    #[error("template {0} could not be understood: {1}")]
    Syntax(String, String),
    /// A parameter is missing, unknown or has a value that is not allowed.
    #[error("parameter {0}: {1}")]
    Parameter(String, String),
    /// A resource or an output says something that cannot be followed.
    #[error("{0} in the template: {1}")]
    Invalid(String, String),
}

/// A queue to create.
#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
}

/// A function to run.
#[derive(Clone, Debug)]
pub(crate) struct FunctionSettings {
    pub(crate) logical_id: String,
    pub(crate) name: String,
    pub(crate) timeout_seconds: u64,
    pub(crate) memory_mb: u64,
    pub(crate) is_traced: bool,
    pub(crate) concurrency_max: Option<usize>,
    pub(crate) environment: BTreeMap<String, String>,
}

/// Everything that the engine sets up.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<TableSettings>,
    pub(crate) queues: Vec<QueueSettings>,
    pub(crate) secrets: Vec<(String, Source)>,
    pub(crate) functions: Vec<FunctionSettings>,
    /// Logical id of the function, and its mapping.
    pub(crate) mappings: Vec<(String, Mapping)>,
    pub(crate) groups: Vec<String>,
    pub(crate) schedules: Vec<NamedSchedule>,
    pub(crate) outputs: BTreeMap<String, String>,
    /// What `Ref` of each resource gives.
    pub(crate) references: BTreeMap<String, String>,
    pub(crate) unhonoured: Vec<String>,
}

/// A template that was read, before addresses are known.
pub(crate) struct Template {
    document: Value,
    parameters: BTreeMap<String, String>,
}

impl Template {
    /// Reads a template and settles its parameters.
    pub(crate) fn read(
        path: &Path,
        given: &BTreeMap<String, String>,
    ) -> Result<Self, TemplateError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| TemplateError::Read(file.clone(), error))?;
        let yaml = serde_yaml_ng::from_str(&text)
            .map_err(|error| TemplateError::Syntax(file.clone(), error.to_string()))?;
        let document =
            intrinsic::plain(yaml).map_err(|reason| TemplateError::Syntax(file.clone(), reason))?;
        if !document["Resources"].is_object() {
            let reason = "it has no Resources".to_owned();
            return Err(TemplateError::Syntax(file, reason));
        }
        let parameters = parameters::settle(&document, given)?;
        Ok(Self {
            document,
            parameters,
        })
    }

    /// The settled parameters as they may be shown: those that the template hides as asterisks.
    pub(crate) fn reported_parameters(&self) -> BTreeMap<String, String> {
        let hidden = |name: &str| {
            let declared = &self.document["Parameters"][name]["NoEcho"];
            *declared == true || *declared == "true"
        };
        let shown = |(name, value): (&String, &String)| {
            let value = if hidden(name) { HIDDEN } else { value };
            (name.clone(), value.to_owned())
        };
        self.parameters.iter().map(shown).collect()
    }

    /// Logical ids of the functions that have a URL.
    pub(crate) fn functions_with_url(&self) -> Vec<String> {
        let resources = self.resources();
        let with_url = resources
            .into_iter()
            .filter(|(_, resource)| resource["Properties"]["FunctionUrlConfig"].is_object());
        with_url.map(|(id, _)| id.clone()).collect()
    }

    /// What to set up, now that the addresses are known: `urls` are those of the functions that have one.
    pub(crate) fn plan(
        &self,
        (stack, stack_id): (&str, &str),
        account: &Account,
        urls: &BTreeMap<String, String>,
    ) -> Result<Plan, TemplateError> {
        let mut scope = Scope {
            references: self.parameters.clone(),
            mappings: self.document["Mappings"].clone(),
            ..Scope::default()
        };
        for (name, value) in [
            ("AWS::StackName", stack),
            ("AWS::StackId", stack_id),
            ("AWS::Region", &account.region),
            ("AWS::AccountId", &account.id),
            ("AWS::Partition", "aws"),
            ("AWS::URLSuffix", "amazonaws.com"),
        ] {
            scope.references.insert(name.to_owned(), value.to_owned());
        }
        scope.conditions = conditions::all(&self.document["Conditions"], &scope)?;
        let names = resources::name(&self.resources(), stack, account, urls, &mut scope)?;

        let mut plan = Plan::default();
        let mut unhonoured = Unhonoured::default();
        for section in ["Rules", "Hooks"] {
            if !self.document[section].is_null() {
                unhonoured.add(section, "", "", "not read by this engine");
            }
        }
        for (id, resource) in self.resources() {
            let invalid = |reason| TemplateError::Invalid(format!("resource {id}"), reason);
            if let Some(condition) = resource["Condition"].as_str()
                && !scope.holds(condition).map_err(invalid)?
            {
                continue;
            }
            let reading = resources::Reading {
                stack,
                account,
                scope: &scope,
                names: &names,
                globals: &self.document["Globals"],
            };
            reading
                .resource(id, resource, &mut plan, &mut unhonoured)
                .map_err(invalid)?;
            let reference = scope.references.get(id).cloned().unwrap_or_default();
            plan.references.insert(id.clone(), reference);
        }
        for name in self.document["Globals"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
        {
            if name != "Function" {
                unhonoured.add("Globals", name, "", "only Function is read");
            }
        }
        plan.outputs = self.outputs(&scope)?;
        plan.unhonoured = unhonoured.lines();
        // Dead-letter queues first: a redrive policy may only name a queue that is there.
        plan.queues
            .sort_by_key(|queue| queue.attributes.contains_key("RedrivePolicy"));
        Ok(plan)
    }

    fn resources(&self) -> BTreeMap<&String, &Value> {
        self.document["Resources"]
            .as_object()
            .into_iter()
            .flatten()
            .collect()
    }

    fn outputs(&self, scope: &Scope) -> Result<BTreeMap<String, String>, TemplateError> {
        let outputs = self.document["Outputs"].as_object().into_iter().flatten();
        outputs
            .map(|(name, output)| {
                let value = scope
                    .resolve(&output["Value"])
                    .map_err(|reason| TemplateError::Invalid(format!("output {name}"), reason))?;
                Ok((name.clone(), intrinsic::text(&value)))
            })
            .collect()
    }
}
