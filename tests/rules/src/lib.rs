//! For tests: whether a request is one that a platform takes.
//!
//! It shares no code with what it judges. The published descriptions are read from the folder that `BOBBIN_SPECS`
//! names; without it only the rules that are written here are applied, and that is said once. Where
//! `BOBBIN_SPECS_REQUIRED` is set, as CI does that has the folder, a test that misses a file of it fails.

pub mod discord;
pub mod github;
pub mod slack;

use std::path::PathBuf;
use std::sync::Once;

use serde_json::{Value, json};

/// A file of the folder that `BOBBIN_SPECS` names; `None` where there is none, which is said once.
///
/// # Panics
/// When there is none and `BOBBIN_SPECS_REQUIRED` is set.
#[must_use]
pub fn specification(name: &str) -> Option<PathBuf> {
    let required = std::env::var_os("BOBBIN_SPECS_REQUIRED").is_some();
    checked(found(name), name, required)
}

fn checked(found: Option<PathBuf>, name: &str, required: bool) -> Option<PathBuf> {
    static SAID: Once = Once::new();
    if found.is_none() {
        let missing = format!("BOBBIN_SPECS names no folder with {name}");
        assert!(!required, "{missing}, and BOBBIN_SPECS_REQUIRED is set");
        SAID.call_once(|| eprintln!("SKIPPED: {missing}, so nothing is checked against it"));
    }
    found
}

/// A file of the reference folder beside that folder, as [`specification`].
#[must_use]
pub fn outside(path: &str) -> Option<PathBuf> {
    specification(&format!("../reference/{path}"))
}

fn found(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("BOBBIN_SPECS")?);
    Some(folder.join(name)).filter(|path| path.exists())
}

/// An official description of an API, as JSON, as [`specification`].
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn description(name: &str) -> Option<Value> {
    let path = specification(name)?;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Some(serde_json::from_str(&text).expect("a JSON document"))
}

/// Checks a value against one schema of a description.
///
/// # Panics
/// When it does not conform, or the description has no such schema.
pub fn conforms(description: &Value, pointer: &str, value: &Value) {
    assert!(description.pointer(pointer).is_some(), "{pointer} is not in the description");
    let mut schema = description.clone();
    schema["$ref"] = json!(format!("#{}", pointer.replace('{', "%7B").replace('}', "%7D")));
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    let validator = jsonschema::validator_for(&schema).expect("a readable schema");
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{pointer} refuses {value}: {errors:?}");
}

/// Whether a path with ids is one of a description's.
fn fits(route: &str, path: &str) -> bool {
    let same = |(known, given): (&str, &str)| {
        known == given || (known.starts_with('{') && !given.is_empty())
    };
    route.split('/').count() == path.split('/').count()
        && route.split('/').zip(path.split('/')).all(same)
}

/// OpenAPI's `nullable`, in the words of JSON Schema.
pub fn allow_null(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(allow_null);
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
                let inner = Value::Object(std::mem::take(fields));
                fields.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_description_is_skipped() {
        assert_eq!(checked(None, "a.json", false), None);
        let found = Some(PathBuf::from("/specs/a.json"));
        assert_eq!(checked(found.clone(), "a.json", true), found);
    }

    #[test]
    #[should_panic(expected = "no folder with a.json")]
    fn a_required_description_must_be_there() {
        let _ = checked(None, "a.json", true);
    }
}
