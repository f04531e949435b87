//! YAML, without what makes a small file large: anchors and aliases are refused.

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::node::{DEPTH_MAX, NodeValue, Pair, RecipeNode, Unread, add};

/// A list or a map whose end has not been seen.
enum Unclosed {
    List {
        line: usize,
        items: Vec<RecipeNode>,
    },
    Map {
        line: usize,
        pairs: Vec<Pair>,
        /// The key whose value comes next.
        key: Option<(String, usize)>,
    },
}

impl Unclosed {
    fn put(&mut self, value: RecipeNode) -> Result<(), Unread> {
        match self {
            Self::List { items, .. } => items.push(value),
            Self::Map { pairs, key, .. } => match key.take() {
                Some((key, line)) => add(pairs, Pair { key, line, value })?,
                None => {
                    let word = value.scalar().map(str::to_owned).ok_or_else(|| {
                        Unread::at(value.line, "a key that is not a word: begin the line with one")
                    })?;
                    *key = Some((word, value.line));
                }
            },
        }
        Ok(())
    }

    fn close(self) -> RecipeNode {
        match self {
            Self::List { line, items } => RecipeNode { line, value: NodeValue::List(items) },
            Self::Map { line, pairs, .. } => RecipeNode { line, value: NodeValue::Map(pairs) },
        }
    }
}

/// What a YAML text says.
pub(crate) fn yaml(text: &str) -> Result<RecipeNode, Unread> {
    let mut opened: Vec<Unclosed> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            Unread::at(error.marker().line(), format!("not YAML ({})", error.info()))
        })?;
        let line = span.start.line();
        if is_marked(&event) {
            let words = "anchors, aliases and tags are not read: write the value out";
            return Err(Unread::at(line, words));
        }
        let whole = match event {
            Event::DocumentStart(_) if root.is_some() => {
                return Err(Unread::at(line, "a second document: keep one"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if opened.len() >= DEPTH_MAX => {
                return Err(Unread::deep(line));
            }
            Event::SequenceStart(..) => {
                opened.push(Unclosed::List { line, items: Vec::new() });
                None
            }
            Event::MappingStart(..) => {
                opened.push(Unclosed::Map { line, pairs: Vec::new(), key: None });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => opened.pop().map(Unclosed::close),
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                Some(RecipeNode { line, value: plain(&text) })
            }
            Event::Scalar(text, ..) => {
                Some(RecipeNode { line, value: NodeValue::Text(text.into_owned()) })
            }
            _ => None,
        };
        match (whole, opened.last_mut()) {
            (Some(whole), Some(around)) => around.put(whole)?,
            (Some(whole), None) => root = Some(whole),
            (None, _) => {}
        }
    }
    Ok(root.unwrap_or(RecipeNode { line: 1, value: NodeValue::Null }))
}

const fn is_marked(event: &Event<'_>) -> bool {
    match event {
        Event::Alias(_) => true,
        Event::Scalar(_, _, anchor, tag)
        | Event::SequenceStart(anchor, tag)
        | Event::MappingStart(anchor, tag) => *anchor > 0 || tag.is_some(),
        _ => false,
    }
}

/// What a text without quotes means (YAML 1.2, core schema).
fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        number if is_number(number) => NodeValue::Number(number.to_owned()),
        text => NodeValue::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let all = |digits: &str, is: fn(&char) -> bool| {
        !digits.is_empty() && digits.chars().all(|digit| is(&digit))
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return all(digits, char::is_ascii_hexdigit);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return all(digits, |digit| ('0'..='7').contains(digit));
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // What Rust reads as a number and begins and ends with a digit or a point is one here too.
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.parse::<f64>().is_ok()
}
