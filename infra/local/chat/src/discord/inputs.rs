//! The data of a pressed component or a submitted form, checked like Discord's client does.

use super::options::{ActionContext, resolve, visible_message};
use super::stored_message;
use crate::action::{ActionError, refused};
use crate::json::{JsonFields, units};
use serde_json::{Map, Value, json};

pub fn component(context: &ActionContext<'_>) -> Result<(u64, Value, Option<Value>), ActionError> {
    let message = visible_message(context)?;
    let custom_id = context.act.str("custom_id");
    let Some(component) = named(&message["components"], custom_id) else {
        return refused(format!("the message has no component {custom_id:?}"));
    };
    if component.flag("disabled") {
        return refused("this component is disabled");
    }
    let kind = component.int("type");
    let mut data = json!({"custom_id": custom_id, "component_type": kind, "id": component["id"]});
    if kind != 2 {
        let values = context.act.list("values");
        check_selection(component, values)?;
        data["values"] = json!(values);
    }
    Ok((3, data, Some(message)))
}

pub fn modal(context: &ActionContext<'_>) -> Result<(u64, Value, Option<Value>), ActionError> {
    let custom_id = context.act.str("custom_id");
    let Some(shown) = context.store.get("d.modal", context.user_id, custom_id)? else {
        return refused(format!("no form {custom_id:?} is open for this person"));
    };
    let mut resolved = Map::new();
    let mut components = Vec::new();
    for (at, part) in shown["data"].list("components").iter().enumerate() {
        let id = part["id"].as_u64().unwrap_or(at as u64 * 2 + 1);
        components.push(match part.int("type") {
            18 => json!({"type": 18, "id": id, "component": filled(context, &part["component"], id + 1, &mut resolved)?}),
            _ => json!({"type": 10, "id": id}),
        });
    }
    let mut data = json!({"custom_id": custom_id, "components": components});
    if !resolved.is_empty() {
        data["resolved"] = Value::Object(resolved);
    }
    let source = stored_message::find(context.store, context.channel_id, shown.str("message_id"))?
        .map(|kept| kept["message"].clone());
    Ok((5, data, source))
}

/// One input with the person's value, checked like the client does.
fn filled(
    context: &ActionContext<'_>,
    input: &Value,
    number: u64,
    resolved: &mut Map<String, Value>,
) -> Result<Value, ActionError> {
    let custom_id = input.str("custom_id");
    let kind = input.int("type");
    let entered = &context.act["fields"][custom_id];
    let mut out = json!({"type": kind, "id": number, "custom_id": custom_id});
    let required = input["required"].as_bool().unwrap_or(true);
    let values: Vec<Value> = match entered {
        Value::Array(list) => list.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    match kind {
        4 => {
            let text = entered.as_str().unwrap_or_else(|| input.str("value"));
            let max = input["max_length"].as_u64().unwrap_or(4000);
            if (required && text.is_empty())
                || units(text) as u64 > max
                || (!text.is_empty() && (units(text) as u64) < input.int("min_length"))
            {
                return refused(format!(
                    "{custom_id:?} needs between {} and {max} characters",
                    input.int("min_length").max(u64::from(required))
                ));
            }
            out["value"] = text.into();
        }
        21 => out["value"] = values.first().cloned().unwrap_or_default(),
        _ => {
            let least = input["min_values"].as_u64().unwrap_or(u64::from(required));
            if (values.len() as u64) < least && required {
                return refused(format!("{custom_id:?} needs at least {least}"));
            }
            if !values.is_empty() {
                check_selection(input, &values)?;
            }
            for value in values.iter().filter(|_| kind == 19) {
                resolve(context, 11, value.as_str().unwrap_or_default(), resolved)?;
            }
            out["values"] = Value::Array(values);
        }
    }
    if kind == 21 && required && out["value"].is_null() {
        return refused(format!("{custom_id:?} needs a choice"));
    }
    Ok(out)
}

/// A string select allows only its own options, within its limits.
fn check_selection(select: &Value, values: &[Value]) -> Result<(), ActionError> {
    if select.int("type") != 3 {
        return Ok(());
    }
    let known = |value: &Value| select.list("options").iter().any(|one| one["value"] == *value);
    let least = select["min_values"].as_u64().unwrap_or(1);
    let most = select["max_values"].as_u64().unwrap_or(1);
    match values.iter().find(|value| !known(value)) {
        Some(stranger) => refused(format!("the select does not offer {stranger}")),
        None if !(least..=most).contains(&(values.len() as u64)) => {
            refused(format!("the select takes {least} to {most} values"))
        }
        None => Ok(()),
    }
}

/// The component with this custom id, at any depth.
fn named<'a>(node: &'a Value, custom_id: &str) -> Option<&'a Value> {
    if let Some(list) = node.as_array() {
        return list.iter().find_map(|one| named(one, custom_id));
    }
    if node.str("custom_id") == custom_id && !custom_id.is_empty() {
        return Some(node);
    }
    ["components", "accessory"]
        .iter()
        .find_map(|field| node.get(field).and_then(|inner| named(inner, custom_id)))
}
