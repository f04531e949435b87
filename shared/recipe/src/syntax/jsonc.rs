//! JSON with comments and trailing commas, as editors write it.

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::LineEnds;
use crate::node::{DEPTH_MAX, NodeValue, Pair, RecipeNode, Unread, add};

/// What editors take too: Visual Studio Code passes over a comma that is missing.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_missing_commas: true,
    allow_loose_object_property_names: false,

    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// What a text of JSON with comments says.
pub(crate) fn jsonc(text: &str) -> Result<RecipeNode, Unread> {
    let lines = LineEnds::of(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        Unread::at(lines.line(error.range().start), format!("not JSON ({})", error.kind()))
    })?;
    match parsed.value {
        Some(value) => written(value, &lines, 0),
        None => Ok(RecipeNode { line: 1, value: NodeValue::Null }),
    }
}

fn written(value: Value<'_>, lines: &LineEnds, depth: usize) -> Result<RecipeNode, Unread> {
    let line = lines.line(value.range().start);
    if depth >= DEPTH_MAX {
        return Err(Unread::deep(line));
    }
    let value = match value {
        Value::NullKeyword(_) => NodeValue::Null,
        Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Value::NumberLit(literal) => NodeValue::Number(literal.value.to_owned()),
        Value::StringLit(literal) => NodeValue::Text(literal.value.into_owned()),
        Value::Array(array) => {
            let items = array.elements.into_iter().map(|item| written(item, lines, depth + 1));
            NodeValue::List(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let mut pairs = Vec::new();
            for property in object.properties {
                let key = match property.name {
                    ObjectPropName::String(name) => name.value.into_owned(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                };
                let line = lines.line(property.range.start);
                let value = written(property.value, lines, depth + 1)?;
                add(&mut pairs, Pair { key, line, value })?;
            }
            NodeValue::Map(pairs)
        }
    };
    Ok(RecipeNode { line, value })
}
