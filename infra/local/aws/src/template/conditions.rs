//! Conditions of the template: `Fn::Equals`, `Fn::Not`, `Fn::And`, `Fn::Or`, and the names of others.

use std::collections::BTreeMap;

use serde_json::Value;

use super::TemplateError;
use super::intrinsic::{Scope, text};

/// Conditions within conditions that are followed.
const DEPTH_MAX: usize = 20;

/// What comes of each condition, with these parameters.
pub(super) fn all(section: &Value, scope: &Scope) -> Result<BTreeMap<String, bool>, TemplateError> {
    let declared = section.as_object().into_iter().flatten();
    declared
        .map(|(name, condition)| {
            let holds = holds(condition, section, scope, DEPTH_MAX)
                .map_err(|reason| TemplateError::Place(format!("condition {name}"), reason))?;
            Ok((name.clone(), holds))
        })
        .collect()
}

fn holds(condition: &Value, section: &Value, scope: &Scope, depth: usize) -> Result<bool, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err("conditions lie too deep, or in a circle".to_owned());
    };
    let (name, argument) = condition
        .as_object()
        .filter(|object| object.len() == 1)
        .and_then(|object| object.iter().next())
        .ok_or("it is not one function")?;
    let each = || {
        let parts = argument.as_array().map(Vec::as_slice).unwrap_or_default();
        parts
            .iter()
            .map(|part| holds(part, section, scope, depth))
            .collect::<Result<Vec<bool>, String>>()
    };
    match (name.as_str(), argument) {
        ("Condition", Value::String(other)) => match section.get(other) {
            Some(other) => holds(other, section, scope, depth),
            None => Err(format!("{other} is not a condition of this template")),
        },
        ("Fn::Equals", Value::Array(parts)) => match parts.as_slice() {
            [one, other] => Ok(text(&scope.resolve(one)?) == text(&scope.resolve(other)?)),
            _ => Err("Fn::Equals needs two values".to_owned()),
        },
        ("Fn::Not", _) => match each()?.as_slice() {
            [one] => Ok(!one),
            _ => Err("Fn::Not needs one condition".to_owned()),
        },
        ("Fn::And", _) => Ok(each()?.into_iter().all(|one| one)),
        ("Fn::Or", _) => Ok(each()?.into_iter().any(|one| one)),
        (other, _) => Err(format!("this engine does not have {other} in a condition")),
    }
}
