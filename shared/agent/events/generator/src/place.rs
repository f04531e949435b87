//! Where a definition of ours is in an agent's own description: `Event[type=session.idle].properties`. A name, the
//! values that its fields must have, and the fields to descend into; every item of a list is visited.

/// A place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaPlace {
    /// The name of the agent's definition.
    pub name: String,
    /// What its fields must be.
    pub filters: Vec<(String, String)>,
    /// The fields to descend into, each with the values that fields there must have.
    pub steps: Vec<(String, Vec<(String, String)>)>,
}

impl SchemaPlace {
    /// Parses a place; `None` if a bracket is not closed.
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
