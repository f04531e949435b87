//! For tests: whether a request is one that a platform takes.
//!
//! It shares no code with what it judges. The published descriptions are read from the folder that `BOBBIN_SPECS` names;
//! without it only the rules that are written here are applied, and that is said loudly.

pub mod discord;
pub mod slack;

use std::path::PathBuf;

use serde_json::{Value, json};

/// A file of the folder that `BOBBIN_SPECS` names; says so loudly where there is none.
#[must_use]
pub fn specification(name: &str) -> Option<PathBuf> {
    found(name).or_else(|| {
        eprintln!(
            "SKIPPED: BOBBIN_SPECS names no folder with {name}, so it is not checked against"
        );
        None
    })
}

/// A file of the reference folder beside that folder; says so loudly where there is none.
#[must_use]
pub fn outside(path: &str) -> Option<PathBuf> {
    specification(&format!("../reference/{path}"))
}

fn found(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("BOBBIN_SPECS")?);
    Some(folder.join(name)).filter(|path| path.exists())
}

/// An official description of an API, as JSON; says so loudly where there is none.
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
    assert!(
        description.pointer(pointer).is_some(),
        "{pointer} is not in the description"
    );
    let mut schema = description.clone();
    schema["$ref"] = json!(format!(
        "#{}",
        pointer.replace('{', "%7B").replace('}', "%7D")
    ));
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    let validator = jsonschema::validator_for(&schema).expect("a readable schema");
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{pointer} refuses {value}: {errors:?}");
}
