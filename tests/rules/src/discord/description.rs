//! Discord's published description (github.com/discord/discord-api-spec), closed against unknown fields by an overlay.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::fits;

/// What the description has for a path and a method.
pub(super) enum Route {
    /// As the description writes it.
    Known(String),
    /// The description has no such path.
    Unknown,
    /// The description is not there.
    NoDescription,
}

/// The route of a path with ids; a word of the description comes before a parameter in the same place.
pub(super) fn route(method: &str, path: &str) -> Route {
    let Some(description) = description() else {
        return Route::NoDescription;
    };
    let routes = description["paths"].as_object().into_iter().flatten();
    let fitting =
        routes.filter(|(route, methods)| fits(route, path) && methods[method].is_object());
    match fitting.min_by_key(|(route, _)| route.matches('{').count()) {
        Some((route, _)) => Route::Known(route.clone()),
        None => Route::Unknown,
    }
}

/// What the description finds in a body; nothing where it is not there.
pub(super) fn wrong(path: &str, method: &str, body: &Value) -> Vec<String> {
    // A route's schema takes a while to compile, and the property tests ask often.
    static COMPILED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let Some(description) = description() else {
        return Vec::new();
    };
    let content = &description["paths"][path][method]["requestBody"]["content"];
    if !content["application/json"].is_object() {
        return vec!["this route takes no JSON".to_owned()];
    }
    let pointer =
        path.replace('~', "~0").replace('/', "~1").replace('{', "%7B").replace('}', "%7D");
    let route = format!("#/paths/{pointer}/{method}/requestBody/content/application~1json/schema");
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = compiled.entry(route.clone()).or_insert_with(|| {
        let schema = json!({"components": description["components"], "paths": description["paths"], "$ref": route});
        Arc::new(jsonschema::validator_for(&schema).expect("the route is described"))
    });
    let validator = Arc::clone(validator);
    drop(compiled);
    validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn description() -> Option<&'static Value> {
    static DESCRIPTION: OnceLock<Option<Value>> = OnceLock::new();
    DESCRIPTION.get_or_init(read).as_ref()
}

fn read() -> Option<Value> {
    let mut description = parsed(&crate::specification("discord-openapi.json")?);
    let overlay = parsed(&crate::specification("discord-openapi.strict.overlay.json")?);
    for action in overlay["actions"].as_array().expect("actions") {
        let target = action["target"].as_str().expect("target");
        let steps: Vec<&str> = target.trim_start_matches("$.").split('.').collect();
        let (last, parents) = steps.split_last().expect("a target names something");
        let parent = parents.iter().fold(&mut description, |at, step| &mut at[*step]);
        if action["remove"] == true {
            parent.as_object_mut().expect("object").remove(*last);
        } else {
            merge(&mut parent[*last], &action["update"]);
        }
    }
    Some(description)
}

fn parsed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{} in BOBBIN_SPECS: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn merge(into: &mut Value, update: &Value) {
    match (into, update) {
        (Value::Object(into), Value::Object(update)) => {
            for (name, value) in update {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, update) => *into = update.clone(),
    }
}
