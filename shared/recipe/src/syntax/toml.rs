//! TOML, for the versions that it names.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::LineEnds;
use crate::node::{DEPTH_MAX, NodeValue, Pair, RecipeNode, Unread};

/// What a TOML text says.
pub(crate) fn toml(text: &str) -> Result<RecipeNode, Unread> {
    let lines = LineEnds::of(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default().start;
        Unread::at(lines.line(at), format!("not TOML ({})", error.message()))
    })?;
    table_written(table.get_ref(), 1, &lines, 0)
}

fn table_written(
    table: &DeTable<'_>,
    line: usize,
    lines: &LineEnds,
    depth: usize,
) -> Result<RecipeNode, Unread> {
    let pairs = table.iter().map(|(key, value)| {
        let line = lines.line(key.span().start);
        let value = written(value, lines, depth + 1)?;
        Ok(Pair { key: key.get_ref().to_string(), line, value })
    });
    Ok(RecipeNode { line, value: NodeValue::Map(pairs.collect::<Result<_, _>>()?) })
}

fn written(
    value: &Spanned<DeValue<'_>>,
    lines: &LineEnds,
    depth: usize,
) -> Result<RecipeNode, Unread> {
    let line = lines.line(value.span().start);
    if depth >= DEPTH_MAX {
        return Err(Unread::deep(line));
    }
    let value = match value.get_ref() {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Integer(number) => NodeValue::Number(number.to_string()),
        DeValue::Float(number) => NodeValue::Number(number.to_string()),
        DeValue::Boolean(is_on) => NodeValue::Bool(*is_on),
        DeValue::Datetime(date) => NodeValue::Text(date.to_string()),
        DeValue::Array(array) => {
            let items = array.iter().map(|item| written(item, lines, depth + 1));
            NodeValue::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return table_written(table, line, lines, depth),
    };
    Ok(RecipeNode { line, value })
}
