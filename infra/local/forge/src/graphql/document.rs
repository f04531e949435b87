//! Documents, as far as the known ones go: one operation of fields, arguments and inline fragments.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A field with its arguments and its own fields.
#[derive(Debug, PartialEq)]
pub(super) struct Field {
    /// Its name in the answer: the alias, if it has one.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) arguments: BTreeMap<String, FieldArgument>,
    pub(super) fields: Vec<Selection>,
}

/// A field, or fields of one type only.
#[derive(Debug, PartialEq)]
pub(super) enum Selection {
    Field(Field),
    On(String, Vec<Selection>),
}

/// The value of an argument.
#[derive(Debug, PartialEq)]
pub(super) enum FieldArgument {
    Variable(String),
    Plain(Value),
    Object(BTreeMap<String, FieldArgument>),
}

impl FieldArgument {
    /// The value with the variables of a request.
    pub(super) fn value(&self, variables: &Map<String, Value>) -> Value {
        match self {
            Self::Variable(name) => variables.get(name).cloned().unwrap_or_default(),
            Self::Plain(value) => value.clone(),
            Self::Object(fields) => {
                let pairs = fields.iter().map(|(name, one)| (name.clone(), one.value(variables)));
                Value::Object(pairs.collect())
            }
        }
    }
}

/// An operation.
#[derive(Debug, PartialEq)]
pub(super) struct Document {
    /// Types by the names of variables.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) fields: Vec<Selection>,
}

/// Names, numbers and signs; commas and white space say nothing.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        if letter.is_whitespace() || letter == ',' {
            continue;
        }
        let mut word = letter.to_string();
        if is_part(&letter) {
            while let Some(next) = rest.next_if(is_part) {
                word.push(next);
            }
        } else if letter == '.' {
            while rest.next_if_eq(&'.').is_some() {
                word.push('.');
            }
        }
        found.push(word);
    }
    found
}

struct DocumentReader {
    words: std::iter::Peekable<std::vec::IntoIter<String>>,
}

impl DocumentReader {
    fn has(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }

    fn need(&mut self, word: &str) -> Option<()> {
        self.has(word).then_some(())
    }

    /// `$name: Type!`, up to the closing bracket.
    fn variables(&mut self) -> Option<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        while !self.has(")") {
            self.need("$")?;
            let name = self.words.next()?;
            self.need(":")?;
            let mut kind = self.words.next()?;
            if self.has("!") {
                kind.push('!');
            }
            found.insert(name, kind);
        }
        Some(found)
    }

    fn arguments(&mut self, end: &str) -> Option<BTreeMap<String, FieldArgument>> {
        let mut found = BTreeMap::new();
        while !self.has(end) {
            let name = self.words.next()?;
            self.need(":")?;
            let word = self.words.next()?;
            let value = match word.as_str() {
                "$" => FieldArgument::Variable(self.words.next()?),
                "{" => FieldArgument::Object(self.arguments("}")?),
                word => {
                    FieldArgument::Plain(serde_json::from_str(word).unwrap_or_else(|_| word.into()))
                }
            };
            found.insert(name, value);
        }
        Some(found)
    }

    fn fields(&mut self) -> Option<Vec<Selection>> {
        self.need("{")?;
        let mut found = Vec::new();
        while !self.has("}") {
            if self.has("...") {
                self.need("on")?;
                found.push(Selection::On(self.words.next()?, self.fields()?));
                continue;
            }
            let key = self.words.next()?;
            let name = if self.has(":") { self.words.next()? } else { key.clone() };
            let arguments = if self.has("(") { self.arguments(")")? } else { BTreeMap::new() };
            let is_deep = self.words.peek().is_some_and(|next| next == "{");
            let fields = if is_deep { self.fields()? } else { Vec::new() };
            found.push(Selection::Field(Field { key, name, arguments, fields }));
        }
        Some(found)
    }
}

/// Reads a document.
pub(super) fn read(text: &str) -> Option<Document> {
    let mut reader = DocumentReader { words: words(text).into_iter().peekable() };
    let kind = reader.words.next()?;
    if kind != "query" && kind != "mutation" {
        return None;
    }
    reader.words.next()?;
    let variables = if reader.has("(") { reader.variables()? } else { BTreeMap::new() };
    let fields = reader.fields()?;
    reader.words.peek().is_none().then_some(Document { variables, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        let text = "query A($n: Int!, $s: String) { z: a(first: 2, b: { c: $n }) { ... on B { d } __typename } }";
        let read = read(text).expect("read");
        let kinds: Vec<&str> = read.variables.values().map(String::as_str).collect();
        assert_eq!(kinds, ["Int!", "String"]);
        let [Selection::Field(a)] = read.fields.as_slice() else { panic!("{read:?}") };
        assert_eq!((&*a.key, &*a.name), ("z", "a"));
        let variables = serde_json::from_str(r#"{"n":7}"#).expect("an object");
        let b = a.arguments["b"].value(&variables);
        assert_eq!((a.arguments["first"].value(&variables), b["c"].clone()), (2.into(), 7.into()));
        assert_eq!(a.fields.len(), 2);
        assert_eq!(super::read("query A { a "), None);
        assert_eq!(super::read("fragment A on B { a }"), None);
    }
}
