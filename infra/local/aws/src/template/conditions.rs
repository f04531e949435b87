//! Conditions of the template: `Fn::Equals`, `Fn::Not` and `Fn::Or`. Others are refused by name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::TemplateError;
use super::intrinsic::{TemplateScope, text};

/// Evaluates each condition with these parameters.
pub(super) fn all(
    section: &Value,
    scope: &TemplateScope,
) -> Result<BTreeMap<String, bool>, TemplateError> {
    let declared = section.as_object().into_iter().flatten();
    declared
        .map(|(name, condition)| {
            let holds = holds(condition, scope)
                .map_err(|reason| TemplateError::Invalid(format!("condition {name}"), reason))?;
            Ok((name.clone(), holds))
        })
        .collect()
}

fn holds(condition: &Value, scope: &TemplateScope) -> Result<bool, String> {
    let (name, argument) = condition
        .as_object()
        .filter(|object| object.len() == 1)
        .and_then(|object| object.iter().next())
        .ok_or("it is not one function")?;
    let each = || {
        let parts = argument.as_array().map(Vec::as_slice).unwrap_or_default();
        parts.iter().map(|part| holds(part, scope)).collect::<Result<Vec<bool>, String>>()
    };
    match (name.as_str(), argument) {
        ("Fn::Equals", Value::Array(parts)) => match parts.as_slice() {
            [one, other] => Ok(text(&scope.resolve(one)?) == text(&scope.resolve(other)?)),
            _ => Err("Fn::Equals needs two values".to_owned()),
        },
        ("Fn::Not", _) => match each()?.as_slice() {
            [one] => Ok(!one),
            _ => Err("Fn::Not needs one condition".to_owned()),
        },
        ("Fn::Or", _) => Ok(each()?.into_iter().any(|one| one)),
        (other, _) => Err(format!("this engine does not implement {other} in a condition")),
    }
}
