//! Where a definition of ours stands in an agent's own description: `Event[type=session.idle].properties`. A name,
//! values that fields of it must have, and fields to go into; lists are gone through.

/// A place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaPlace {
    /// The name of a definition of theirs.
    pub name: String,
    /// What its fields must be.
    pub filters: Vec<(String, String)>,
    /// Where to go from there, each with what the fields there must be.
    pub steps: Vec<(String, Vec<(String, String)>)>,
}

impl SchemaPlace {
    /// Reads one; `None` where a bracket stays open.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let end = rest.find(['[', '.']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let (filters, behind) = match behind.strip_prefix('[') {
                Some(inside) => inside.split_once(']')?,
                None => ("", behind),
            };
            let filters = filters.split(',').filter_map(|one| {
                let (field, value) = one.split_once('=')?;
                Some((field.to_owned(), value.to_owned()))
            });
            segments.push((name.to_owned(), filters.collect()));
            rest = behind.strip_prefix('.').unwrap_or(behind);
        }
        let mut segments = segments.into_iter();
        let (name, filters) = segments.next()?;
        Some(Self { name, filters, steps: segments.collect() })
    }
}
