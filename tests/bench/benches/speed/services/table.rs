//! A table as DynamoDB keeps it, with conditions that hold: the operations and expressions that the functions use. An
//! expression that it does not know is refused.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

type Item = Map<String, Value>;

/// What is wrong with a request: the name of DynamoDB's exception, and words.
pub(super) type Refused = (&'static str, String);

/// The items, by partition and sort key.
#[derive(Debug, Default)]
pub(super) struct Table {
    items: HashMap<(String, String), Item>,
}

impl Table {
    /// Does what the operation of this name says.
    pub(super) fn perform(&mut self, operation: &str, request: &Value) -> Result<Value, Refused> {
        match operation {
            "GetItem" => {
                let found = self.items.get(&key(&request["Key"]));
                Ok(found.map_or_else(|| json!({}), |item| json!({ "Item": item })))
            }
            "BatchGetItem" => {
                let mut responses = Map::new();
                for (table, wanted) in request["RequestItems"].as_object().into_iter().flatten() {
                    let keys = wanted["Keys"].as_array().into_iter().flatten();
                    let found = keys.filter_map(|wanted| self.items.get(&key(wanted)));
                    responses.insert(table.clone(), found.cloned().collect());
                }
                Ok(json!({"Responses": responses, "UnprocessedKeys": {}}))
            }
            "PutItem" | "UpdateItem" => {
                self.check(request)?;
                let now = self.write(request)?;
                let wants_it = request["ReturnValues"] == "ALL_NEW";
                Ok(if wants_it {
                    json!({ "Attributes": now })
                } else {
                    json!({})
                })
            }
            "TransactWriteItems" => {
                let steps = request["TransactItems"].as_array();
                let steps: Vec<&Value> = steps
                    .into_iter()
                    .flatten()
                    .filter_map(|step| step.as_object()?.values().next())
                    .collect();
                for step in &steps {
                    if self.check(step).is_err() {
                        let why = "Transaction cancelled [ConditionalCheckFailed]".to_owned();
                        return Err(("TransactionCanceledException", why));
                    }
                }
                for step in steps {
                    self.write(step)?;
                }
                Ok(json!({}))
            }
            other => Err(strange(other)),
        }
    }

    /// Whether the condition of a write holds.
    fn check(&self, write: &Value) -> Result<(), Refused> {
        let Some(condition) = write["ConditionExpression"].as_str() else {
            return Ok(());
        };
        let nothing = Item::new();
        let item = self.items.get(&target(write)).unwrap_or(&nothing);
        if holds(condition, item, write)? {
            Ok(())
        } else {
            Err((
                "ConditionalCheckFailedException",
                "The conditional request failed".to_owned(),
            ))
        }
    }

    /// Writes; answers the item as it is then.
    fn write(&mut self, write: &Value) -> Result<Item, Refused> {
        let target = target(write);
        if let Some(item) = write["Item"].as_object() {
            self.items.insert(target, item.clone());
            return Ok(item.clone());
        }
        let Some(expression) = write["UpdateExpression"].as_str() else {
            // A check alone.
            return Ok(Item::new());
        };
        let item = self
            .items
            .entry(target)
            .or_insert_with(|| write["Key"].as_object().cloned().unwrap_or_default());
        let (set, remove) = match expression.split_once(" REMOVE ") {
            Some((set, remove)) => (set, remove),
            None => match expression.strip_prefix("REMOVE ") {
                Some(remove) => ("", remove),
                None => (expression, ""),
            },
        };
        let words = |list: &str| -> Vec<String> {
            let list = list.strip_prefix("SET ").unwrap_or(list);
            let each = list.split(',').map(|word| word.trim().to_owned());
            each.filter(|word| !word.is_empty()).collect()
        };
        for assignment in words(set) {
            let (name, value) = assignment
                .split_once(" = ")
                .ok_or_else(|| strange(&assignment))?;
            let value = &write["ExpressionAttributeValues"][value];
            if value.is_null() {
                return Err(strange(&assignment));
            }
            item.insert(attribute(name, write), value.clone());
        }
        for name in words(remove) {
            item.remove(&attribute(&name, write));
        }
        Ok(item.clone())
    }
}

/// The key that a write goes to.
fn target(write: &Value) -> (String, String) {
    match &write["Key"] {
        Value::Null => key(&write["Item"]),
        own => key(own),
    }
}

fn key(item: &Value) -> (String, String) {
    let part = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    (part("thread"), part("item"))
}

fn attribute(name: &str, write: &Value) -> String {
    let known = write["ExpressionAttributeNames"][name].as_str();
    known.unwrap_or(name).to_owned()
}

/// Alternatives of terms that hold together, in parentheses or not.
fn holds(condition: &str, item: &Item, write: &Value) -> Result<bool, Refused> {
    for alternative in apart(condition, " OR ") {
        let mut all = true;
        for term in apart(alternative, " AND ") {
            let inner = term
                .strip_prefix('(')
                .and_then(|term| term.strip_suffix(')'));
            all &= match inner {
                Some(inner) => holds(inner, item, write)?,
                None => term_holds(term, item, write)?,
            };
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The parts between these words, outside parentheses.
fn apart<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= from && text[at..].starts_with(word) => {
                parts.push(text[from..at].trim());
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

fn term_holds(term: &str, item: &Item, write: &Value) -> Result<bool, Refused> {
    let inside = |function: &str| {
        let rest = term.strip_prefix(function)?.strip_prefix('(')?;
        rest.strip_suffix(')').map(|name| attribute(name, write))
    };
    if let Some(name) = inside("attribute_not_exists") {
        return Ok(!item.contains_key(&name));
    }
    if let Some(name) = inside("attribute_exists") {
        return Ok(item.contains_key(&name));
    }
    let words: Vec<&str> = term.split(' ').collect();
    let [name, sign, value] = words[..] else {
        return Err(strange(term));
    };
    let value = &write["ExpressionAttributeValues"][value];
    let Some(stored) = item.get(&attribute(name, write)) else {
        return Ok(false);
    };
    let number = |value: &Value| value["N"].as_str().and_then(|n| n.parse::<u64>().ok());
    Ok(match sign {
        "=" => stored == value,
        "<=" => number(stored) <= number(value),
        "<" => number(stored) < number(value),
        _ => return Err(strange(term)),
    })
}

fn strange(what: &str) -> Refused {
    (
        "ValidationException",
        format!("the bench does not know {what}"),
    )
}
