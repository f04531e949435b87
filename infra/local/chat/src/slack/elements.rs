//! Interactive elements: finding one, and the payload for a person's value.

use crate::action::{ActionResult, refused};
use crate::ids::now_ms;
use crate::json::{JsonFields, fields};
use serde_json::{Value, json};

/// The element with this action id, and its block's id.
pub fn element(blocks: &Value, action_id: &str, block_id: &str) -> Option<(String, Value)> {
    for block in blocks.as_array()? {
        let found = find(block, action_id)
            .filter(|_| block_id.is_empty() || block.str("block_id") == block_id);
        if let Some(found) = found {
            return Some((block.str("block_id").to_owned(), found.clone()));
        }
    }
    None
}

fn find<'a>(node: &'a Value, action_id: &str) -> Option<&'a Value> {
    if let Some(list) = node.as_array() {
        return list.iter().find_map(|one| find(one, action_id));
    }
    if node.str("action_id") == action_id && !action_id.is_empty() {
        return Some(node);
    }
    ["elements", "accessory", "element"]
        .iter()
        .find_map(|field| node.get(field).and_then(|inner| find(inner, action_id)))
}

/// The values of a message's inputs, by block and action: the person's value, else nothing. Unlike a view's they are
/// sent with every click, and none is required.
pub fn input_values(blocks: &Value, values: &Value) -> ActionResult {
    let mut out = json!({});
    let inputs = blocks.as_array().into_iter().flatten();
    for block in inputs.filter(|block| block.str("type") == "input") {
        let (id, element) = (block.str("block_id"), &block["element"]);
        let action = element.str("action_id");
        let entered = match &values[id][action] {
            Value::String(text) if text.is_empty() => &Value::Null,
            entered => entered,
        };
        out[id] = json!({ (action): chosen(element, entered)? });
    }
    Ok(out)
}

/// An element's entry in `actions` for a press or choice.
pub fn acted(element: &Value, block_id: &str, act: &Value) -> ActionResult {
    let kind = element.str("type");
    let mut action = json!({"type": kind, "action_id": element["action_id"], "block_id": block_id,
        "action_ts": format!("{}.{:06}", now_ms() / 1_000, now_ms() % 1_000)});
    match kind {
        "button" => {
            for field in ["text", "value", "style", "url"] {
                if element.has(field) {
                    action[field] = element[field].clone();
                }
            }
        }
        _ => {
            for (field, value) in fields(&chosen(element, &act["value"])?) {
                action[field] = value;
            }
        }
    }
    Ok(action)
}

/// An element's value in the format of `view.state.values`.
fn chosen(element: &Value, value: &Value) -> ActionResult {
    let kind = element.str("type");
    let option = |wanted: &Value| {
        let options = element.list("options");
        options.iter().find(|one| one["value"] == *wanted).cloned()
    };
    let option = |wanted: &Value| match option(wanted) {
        None if !wanted.is_null() && element.has("options") => {
            refused(format!("there is no option {wanted}"))
        }
        found => Ok(found.unwrap_or_default()),
    };
    let all = || -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let named = match kind {
        "static_select" => json!({"selected_option": option(value)?}),
        // Its options came from the app; the page sends the chosen one.
        "external_select" => json!({"selected_option": value.as_str().map(|value| {
            json!({"text": {"type": "plain_text", "text": value, "emoji": false}, "value": value})
        })}),
        "multi_static_select" => {
            json!({"selected_options": all().iter().map(option).collect::<Result<Vec<_>, _>>()?})
        }
        _ => json!({"value": value}),
    };
    let mut out = json!({"type": kind});
    for (field, value) in fields(&named) {
        out[field] = value;
    }
    Ok(out)
}
