//! `template.yaml`, the single source of queue, table, function and schedule settings.
//!
//! Promised: every ignored property is reported ([`TemplatePlan::unhonoured`]); an invalid template is refused with
//! location and reason. No message contains a parameter's value.
//!
//! Deliberately absent: rules, and macros other than serverless functions.

mod conditions;
mod error;
mod intrinsic;
mod names;
mod parameters;
mod plan;
mod properties;
mod reading;
mod resources;
mod sources;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::account::AwsAccount;
use crate::cloudformation::HIDDEN;

pub use error::TemplateError;
pub(crate) use plan::{FunctionSettings, TemplatePlan};

use intrinsic::TemplateScope;
use properties::Unhonoured;
use reading::ResourceReader;

/// A parsed template, before addresses are known.
pub(crate) struct Template {
    document: Value,
    parameters: BTreeMap<String, String>,
}

impl Template {
    /// Reads a template and determines its parameters.
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
        Ok(Self { document, parameters })
    }

    /// The parameters for display; hidden ones are masked.
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

    /// Logical ids of functions with a URL.
    pub(crate) fn functions_with_url(&self) -> Vec<String> {
        let resources = self.resources();
        let with_url = resources
            .into_iter()
            .filter(|(_, resource)| resource["Properties"]["FunctionUrlConfig"].is_object());
        with_url.map(|(id, _)| id.clone()).collect()
    }

    /// The plan, once addresses are known; `urls` are those of the functions.
    pub(crate) fn plan(
        &self,
        (stack, stack_id): (&str, &str),
        account: &AwsAccount,
        urls: &BTreeMap<String, String>,
    ) -> Result<TemplatePlan, TemplateError> {
        let mut scope = self.scope((stack, stack_id), account)?;
        let names = names::assign(&self.resources(), stack, account, urls, &mut scope)?;
        let reading = ResourceReader {
            stack,
            account,
            scope: &scope,
            names: &names,
            globals: &self.document["Globals"],
        };

        let mut plan = TemplatePlan::default();
        let mut unhonoured = Unhonoured::default();
        for (id, resource) in self.resources() {
            let invalid = |reason| TemplateError::Invalid(format!("resource {id}"), reason);
            if let Some(condition) = resource["Condition"].as_str()
                && !scope.holds(condition).map_err(invalid)?
            {
                continue;
            }
            resources::read(&reading, id, resource, &mut plan, &mut unhonoured).map_err(invalid)?;
            let reference = scope.references.get(id).cloned().unwrap_or_default();
            plan.references.insert(id.clone(), reference);
        }
        self.unread_sections(&mut unhonoured);
        plan.outputs = self.outputs(&scope)?;
        plan.unhonoured = unhonoured.lines();
        // Dead-letter queues first: a redrive policy may only name an existing queue.
        plan.queues.sort_by_key(|queue| queue.attributes.contains_key("RedrivePolicy"));
        Ok(plan)
    }

    /// Values of parameters, pseudo parameters, mappings and conditions.
    fn scope(
        &self,
        (stack, stack_id): (&str, &str),
        account: &AwsAccount,
    ) -> Result<TemplateScope, TemplateError> {
        let mut scope = TemplateScope {
            references: self.parameters.clone(),
            mappings: self.document["Mappings"].clone(),
            ..TemplateScope::default()
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
        Ok(scope)
    }

    fn unread_sections(&self, unhonoured: &mut Unhonoured) {
        for section in ["Rules", "Hooks"] {
            if !self.document[section].is_null() {
                unhonoured.add(section, "", "", "not read by this engine");
            }
        }
        let globals = self.document["Globals"].as_object().into_iter();
        for name in globals.flat_map(Map::keys) {
            if name != "Function" {
                unhonoured.add("Globals", name, "", "only Function is read");
            }
        }
    }

    fn resources(&self) -> BTreeMap<&String, &Value> {
        self.document["Resources"].as_object().into_iter().flatten().collect()
    }

    fn outputs(&self, scope: &TemplateScope) -> Result<BTreeMap<String, String>, TemplateError> {
        let outputs = self.document["Outputs"].as_object().into_iter().flatten();
        let wanted = |output: &Value| {
            output["Condition"].as_str().map_or(Ok(true), |condition| scope.holds(condition))
        };
        outputs
            .filter(|(_, output)| wanted(output) != Ok(false))
            .map(|(name, output)| {
                let value = scope
                    .resolve(&output["Value"])
                    .map_err(|reason| TemplateError::Invalid(format!("output {name}"), reason))?;
                Ok((name.clone(), intrinsic::text(&value)))
            })
            .collect()
    }
}
