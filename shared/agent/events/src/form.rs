//! Forms that agents ask people to fill in: JSON Schemas of flat objects, as in elicitation.
//!
//! Each field is a question. A field for further text (`<field>_…`, without options, after one with options) is not a
//! separate question: it lets its question accept free text.

use serde_json::{Map, Value, json};

use crate::ask::{QuestionInfo, QuestionOption};
use crate::convert::text_at;

/// Longest description that may serve as a heading, in characters.
const HEADER_CHARS_MAX: usize = 30;

/// The questions of a form, and for the answer a list of the fields in the same order: `field`, its `type`, and
/// `customField` if free text goes into another field.
pub(crate) fn questions(message: &str, schema: &Value) -> (Vec<QuestionInfo>, Value) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&none);
    let owner = |name: &str| {
        properties.iter().find_map(|(other, of_other)| {
            let rest = name.strip_prefix(other.as_str())?;
            (rest.starts_with('_') && !options(of_other).is_empty()).then_some(other.as_str())
        })
    };
    let is_custom =
        |name: &str, property: &Value| options(property).is_empty() && owner(name).is_some();
    let mut infos = Vec::new();
    let mut fields = Vec::new();
    for (name, property) in properties {
        if is_custom(name, property) {
            continue;
        }
        let custom = properties
            .iter()
            .find(|(other, one)| is_custom(other, one) && owner(other) == Some(name))
            .map(|(other, _)| other);
        let options = options(property);
        let title = text_at(property, "/title").unwrap_or_else(|| name.clone());
        let is_first = infos.is_empty() && title != message;
        let text = if is_first { format!("{message}\n{title}") } else { title };
        let header = text_at(property, "/description")
            .filter(|text| text.chars().count() <= HEADER_CHARS_MAX);
        let kind = text_at(property, "/type").unwrap_or_default();
        infos.push(QuestionInfo {
            question: text,
            header,
            custom: Some(custom.is_some() || options.is_empty()),
            options,
            multi_select: Some(kind == "array"),
        });
        fields.push(json!({ "field": name, "type": kind, "customField": custom }));
    }
    (infos, Value::Array(fields))
}

fn options(property: &Value) -> Vec<QuestionOption> {
    let lists = ["/oneOf", "/anyOf", "/enum", "/items/oneOf", "/items/anyOf", "/items/enum"];
    let list = lists.iter().find_map(|at| property.pointer(at)?.as_array().cloned());
    let option = |one: &Value| {
        let label = one.as_str().map(str::to_owned);
        let label = label.or_else(|| text_at(one, "/const"))?;
        let title = text_at(one, "/title").filter(|title| *title != label);
        Some(QuestionOption { label, description: text_at(one, "/description").or(title) })
    };
    let plain = |label: &str| QuestionOption { label: label.to_owned(), description: None };
    match (list, property.get("type").and_then(Value::as_str)) {
        (Some(list), _) => list.iter().filter_map(option).collect(),
        (None, Some("boolean")) => vec![plain("true"), plain("false")],
        (None, _) => Vec::new(),
    }
}
