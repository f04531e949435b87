//! Parameter values, checked as `CloudFormation` does before it creates anything.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::error::TemplateError;
use super::intrinsic::text;

/// Every declared parameter with its given or default value.
pub(super) fn settle(
    document: &Value,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, TemplateError> {
    let none = Map::new();
    let declared = document["Parameters"].as_object().unwrap_or(&none);
    let refuse = |name: &str, reason: String| TemplateError::Parameter(name.to_owned(), reason);
    if let Some(unknown) = given.keys().find(|name| !declared.contains_key(*name)) {
        return Err(refuse(unknown, "the template does not declare it".to_owned()));
    }
    let mut settled = BTreeMap::new();
    for (name, parameter) in declared {
        let default = parameter.get("Default").map(text);
        let Some(value) = given.get(name).cloned().or(default) else {
            return Err(refuse(name, "it has no default, so give it a value".to_owned()));
        };
        check(parameter, &value).map_err(|reason| refuse(name, reason))?;
        settled.insert(name.clone(), value);
    }
    Ok(settled)
}

/// Checks a value; the error does not contain it.
fn check(parameter: &Value, value: &str) -> Result<(), String> {
    let wrong = |rule: &str| match parameter["ConstraintDescription"].as_str() {
        Some(words) => format!("it {words}"),
        None => format!("its value does not meet {rule}"),
    };
    let allowed = parameter["AllowedValues"].as_array();
    if allowed.is_some_and(|allowed| !allowed.iter().any(|one| text(one) == value)) {
        return Err("its value is not one of AllowedValues".to_owned());
    }
    if let Some(pattern) = parameter["AllowedPattern"].as_str() {
        let whole = Regex::new(&format!("^(?:{pattern})$"))
            .map_err(|_| format!("AllowedPattern {pattern} cannot be read"))?;
        if !whole.is_match(value) {
            return Err(wrong("AllowedPattern"));
        }
    }
    if parameter["Type"] == "Number" {
        let number: f64 = value.parse().map_err(|_| "its value is not a number".to_owned())?;
        let bound = |name: &str| text(&parameter[name]).parse::<f64>().ok();
        if bound("MinValue").is_some_and(|least| number < least) {
            return Err(wrong("MinValue"));
        }
        if bound("MaxValue").is_some_and(|most| number > most) {
            return Err(wrong("MaxValue"));
        }
    }
    Ok(())
}
