//! What a file says, whatever it is written in: values with the lines on which they stand.

use std::fmt;

use crate::words::code;

/// How deep values may be inside others.
pub(crate) const DEPTH_MAX: usize = 32;

/// Keys of one map.
const KEYS_MAX: usize = 500;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeNode {
    pub(crate) line: usize,
    pub(crate) value: NodeValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    /// As it is written: a version `22.10` is not 22.1.
    Number(String),
    Text(String),
    List(Vec<RecipeNode>),
    Map(Vec<Pair>),
}

/// A key of a map with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) value: RecipeNode,
}

/// Why something cannot be read, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) line: Option<usize>,
    pub(crate) words: String,
}

impl Unread {
    pub(crate) fn at(line: usize, words: impl Into<String>) -> Self {
        Self { line: Some(line), words: words.into() }
    }

    pub(crate) fn whole(words: impl Into<String>) -> Self {
        Self { line: None, words: words.into() }
    }

    /// A value that is deeper inside others than anybody writes.
    pub(crate) fn deep(line: usize) -> Self {
        Self::at(line, format!("more than {DEPTH_MAX} values inside each other: write it flatter"))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.words),
            None => f.write_str(&self.words),
        }
    }
}

impl RecipeNode {
    /// A text, a number or a truth as text.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Bool(true) => Some("true"),
            NodeValue::Bool(false) => Some("false"),
            NodeValue::Number(text) | NodeValue::Text(text) => Some(text),
            NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
        }
    }

    pub(crate) const fn text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.value { Some(text.as_str()) } else { None }
    }

    pub(crate) const fn list(&self) -> Option<&[Self]> {
        if let NodeValue::List(list) = &self.value { Some(list.as_slice()) } else { None }
    }

    pub(crate) const fn map(&self) -> Option<&[Pair]> {
        if let NodeValue::Map(pairs) = &self.value { Some(pairs.as_slice()) } else { None }
    }

    /// The value of this key, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.map()?.iter().find(|pair| pair.key == key).map(|pair| &pair.value)
    }

    /// Whether it asks for anything: `privileged: false` does not.
    pub(crate) const fn asks(&self) -> bool {
        match &self.value {
            NodeValue::Null => false,
            NodeValue::Bool(is_on) => *is_on,
            NodeValue::Number(_) => true,
            NodeValue::Text(text) => !text.is_empty(),
            NodeValue::List(list) => !list.is_empty(),
            NodeValue::Map(pairs) => !pairs.is_empty(),
        }
    }

    /// A port, if it is one.
    pub(crate) fn port(&self) -> Option<u16> {
        let NodeValue::Number(number) = &self.value else { return None };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|port| is_plain && *port > 0)
    }
}

/// Puts a pair behind those before it.
pub(crate) fn add(pairs: &mut Vec<Pair>, pair: Pair) -> Result<(), Unread> {
    if let Some(first) = pairs.iter().find(|other| other.key == pair.key) {
        let words = format!("{} is on line {} already: keep one", code(&pair.key), first.line);
        return Err(Unread::at(pair.line, words));
    }
    if pairs.len() >= KEYS_MAX {
        return Err(Unread::at(pair.line, format!("more than {KEYS_MAX} keys in one place")));
    }
    pairs.push(pair);
    Ok(())
}
