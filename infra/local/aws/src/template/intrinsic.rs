//! The template as plain JSON, and its functions: `Ref`, `Fn::Sub`, `Fn::GetAtt`, `Fn::If` and `Fn::FindInMap`. Others
//! are refused by name.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

/// Values of the names in a template.
#[derive(Clone, Debug, Default)]
pub(crate) struct TemplateScope {
    /// Parameters, pseudo parameters and resources.
    pub(crate) references: BTreeMap<String, String>,
    /// `Fn::GetAtt` values, by `Resource.Attribute`.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Values of the conditions.
    pub(crate) conditions: BTreeMap<String, bool>,
    /// The template's section `Mappings`, for `Fn::FindInMap`.
    pub(crate) mappings: Value,
}

/// Converts YAML with short tags (`!Ref`) to JSON with the long names (`{"Ref": …}`).
pub(crate) fn plain(yaml: Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => json!(value),
        Yaml::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => json!(whole),
            (None, fraction) => json!(fraction),
        },
        Yaml::String(text) => json!(text),
        Yaml::Sequence(items) => {
            Value::Array(items.into_iter().map(plain).collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(mapping) => {
            let mut object = Map::new();
            for (key, value) in mapping {
                let key = match key {
                    Yaml::String(text) => text,
                    Yaml::Number(number) => number.to_string(),
                    other => return Err(format!("a key is not a text: {other:?}")),
                };
                object.insert(key, plain(value)?);
            }
            Value::Object(object)
        }
        Yaml::Tagged(tagged) => {
            let tag = tagged.tag.to_string();
            let name = tag.trim_start_matches('!');
            let argument = plain(tagged.value)?;
            match (name, argument) {
                ("Ref" | "Condition", argument) => json!({ name: argument }),
                ("GetAtt", Value::String(text)) => {
                    let parts: Vec<&str> = text.splitn(2, '.').collect();
                    json!({ "Fn::GetAtt": parts })
                }
                (name, argument) => json!({ format!("Fn::{name}"): argument }),
            }
        }
    })
}

impl TemplateScope {
    /// Replaces every function in a value by its result.
    pub(crate) fn resolve(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::Array(items) => {
                let resolved: Result<_, _> = items.iter().map(|item| self.resolve(item)).collect();
                Ok(Value::Array(resolved?))
            }
            Value::Object(object) => match object.iter().next() {
                Some((name, argument))
                    if object.len() == 1 && (name == "Ref" || name.starts_with("Fn::")) =>
                {
                    self.call(name, argument)
                }
                _ => {
                    let mut resolved = Map::new();
                    for (key, value) in object {
                        let value = self.resolve(value)?;
                        // `!Ref AWS::NoValue` removes the property.
                        if value != json!(NO_VALUE) {
                            resolved.insert(key.clone(), value);
                        }
                    }
                    Ok(Value::Object(resolved))
                }
            },
            plain => Ok(plain.clone()),
        }
    }

    fn call(&self, name: &str, argument: &Value) -> Result<Value, String> {
        match (name, argument) {
            ("Ref", Value::String(to)) => self.reference(to).map(Value::String),
            ("Fn::GetAtt", Value::Array(parts)) => {
                let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
                self.attribute(&parts.join(".")).map(Value::String)
            }
            ("Fn::Sub", Value::String(text)) => self.substitute(text).map(Value::String),
            // Only the chosen branch is resolved: the other may name missing things.
            ("Fn::If", Value::Array(parts)) => match parts.as_slice() {
                [Value::String(condition), yes, no] => {
                    self.resolve(if self.holds(condition)? { yes } else { no })
                }
                _ => Err("Fn::If needs a condition and two values".to_owned()),
            },
            ("Fn::FindInMap", Value::Array(parts)) => match parts.as_slice() {
                [mapping, top, second] => {
                    let key = |part| Ok::<_, String>(text(&self.resolve(part)?));
                    self.find(&key(mapping)?, &key(top)?, &key(second)?)
                }
                _ => Err("Fn::FindInMap needs a mapping and two keys".to_owned()),
            },
            _ => Err(format!("this engine does not implement {name}, or not in this form")),
        }
    }

    fn find(&self, mapping: &str, top: &str, second: &str) -> Result<Value, String> {
        let found = &self.mappings[mapping][top][second];
        match found {
            Value::Null => {
                Err(format!("Fn::FindInMap: there is no {mapping}, {top}, {second} in Mappings"))
            }
            found => Ok(found.clone()),
        }
    }

    /// Whether a condition of the template holds.
    pub(crate) fn holds(&self, condition: &str) -> Result<bool, String> {
        let found = self.conditions.get(condition).copied();
        found.ok_or_else(|| format!("{condition} is not a condition of this template"))
    }

    fn substitute(&self, source: &str) -> Result<String, String> {
        let mut result = String::new();
        let mut rest = source;
        while let Some((before, after)) = rest.split_once("${") {
            result.push_str(before);
            let (name, after) =
                after.split_once('}').ok_or_else(|| "Fn::Sub: a ${ is not closed".to_owned())?;
            match name.strip_prefix('!') {
                Some(literal) => result.push_str(&format!("${{{literal}}}")),
                None if name.contains('.') => result.push_str(&self.attribute(name)?),
                None => result.push_str(&self.reference(name)?),
            }
            rest = after;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn reference(&self, name: &str) -> Result<String, String> {
        if name == "AWS::NoValue" {
            return Ok(NO_VALUE.to_owned());
        }
        let found = self.references.get(name).cloned();
        found.ok_or_else(|| format!("{name} is neither a parameter nor a resource"))
    }

    fn attribute(&self, path: &str) -> Result<String, String> {
        let found = self.attributes.get(path).cloned();
        found.ok_or_else(|| format!("this engine does not know the attribute {path}"))
    }
}

/// Cannot occur in a template: YAML has no such character.
const NO_VALUE: &str = "\u{0}NoValue";

/// A scalar as text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
