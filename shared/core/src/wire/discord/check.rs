//! For tests: whether a body fits Discord's published description, and the rules that the description does not hold.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::bounds::{
    COMPONENTS_MAX, CONTENT_UNITS_MAX, CUSTOM_ID_UNITS_MAX, TEXT_DISPLAY_OVERHEAD_BYTES,
    TEXT_DISPLAY_UNITS_MAX,
};
use crate::text::units;

/// The byte limit that production showed; ours is below it.
const TEXT_DISPLAY_BYTES_SEEN: usize = 10_170;

/// A file of the reference folder beside the one that `BOBBIN_SPECS` names; says so loudly where there is none.
pub fn outside(path: &str) -> Option<PathBuf> {
    let Some(specs) = std::env::var_os("BOBBIN_SPECS") else {
        eprintln!(
            "SKIPPED: set BOBBIN_SPECS to the folder of API descriptions to run this test in full"
        );
        return None;
    };
    let path = PathBuf::from(specs).join("../reference").join(path);
    if !path.exists() {
        eprintln!(
            "SKIPPED: the reference material is not beside the folder that BOBBIN_SPECS names"
        );
        return None;
    }
    Some(path)
}

/// Fails the test unless the body fits the route in every respect that can be checked here.
pub fn assert_fits(path: &str, method: &str, body: &Value) {
    let mut wrong = own_rules(path, body);
    wrong.extend(against_description(path, method, body));
    assert!(wrong.is_empty(), "{method} {path}: {wrong:#?}\n{body:#}");
}

/// Discord's own description, closed against unknown fields by the overlay; nothing to say without it.
fn against_description(path: &str, method: &str, body: &Value) -> Vec<String> {
    static DESCRIPTION: OnceLock<Option<Value>> = OnceLock::new();
    let Some(description) = DESCRIPTION.get_or_init(description) else {
        return Vec::new();
    };
    // A route's schema takes a while to compile, and the property tests ask often.
    static COMPILED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let pointer = path
        .replace('~', "~0")
        .replace('/', "~1")
        .replace('{', "%7B")
        .replace('}', "%7D");
    let route = format!("#/paths/{pointer}/{method}/requestBody/content/application~1json/schema");
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = compiled.entry(route.clone()).or_insert_with(|| {
        let schema = json!({"components": description["components"], "paths": description["paths"], "$ref": route});
        Arc::new(jsonschema::validator_for(&schema).expect("the route is described"))
    });
    let validator = Arc::clone(validator);
    drop(compiled);
    validator
        .iter_errors(body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn description() -> Option<Value> {
    let Some(folder) = std::env::var_os("BOBBIN_SPECS").map(PathBuf::from) else {
        eprintln!(
            "SKIPPED: set BOBBIN_SPECS to check every body against discord-openapi.json (github.com/discord/discord-api-spec)"
        );
        return None;
    };
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join(name))
            .unwrap_or_else(|error| panic!("{name} in BOBBIN_SPECS: {error}"));
        serde_json::from_str(&text).expect("JSON")
    };
    let mut description = read("discord-openapi.json");
    for action in read("discord-openapi.strict.overlay.json")["actions"]
        .as_array()
        .expect("actions")
    {
        let target = action["target"].as_str().expect("target");
        let steps: Vec<&str> = target.trim_start_matches("$.").split('.').collect();
        let (last, parents) = steps.split_last().expect("a target names something");
        let parent = parents
            .iter()
            .fold(&mut description, |at, step| &mut at[*step]);
        if action["remove"] == true {
            parent.as_object_mut().expect("object").remove(*last);
        } else {
            merge(&mut parent[*last], &action["update"]);
        }
    }
    Some(description)
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

/// Rules of the documentation, or seen in production, that the description does not state.
pub fn own_rules(path: &str, body: &Value) -> Vec<String> {
    let callback = path.ends_with("/callback");
    let modal = callback && body["type"] == 9;
    let deferred = callback && matches!(body["type"].as_u64(), Some(5 | 6));
    let message = path.contains("/messages") && !path.ends_with("/threads")
        || path.starts_with("/webhooks/")
        || callback && matches!(body["type"].as_u64(), Some(4 | 7));
    let data = if callback { &body["data"] } else { body };
    let mut wrong = Vec::new();
    let mut rule = |holds: bool, words: &str| {
        if !holds {
            wrong.push(words.to_owned());
        }
    };
    let flags = data["flags"].as_u64().unwrap_or(0);
    let mut parts = Vec::new();
    collect(&data["components"], &mut parts);
    if message {
        let v2 = flags & super::answer::COMPONENTS_V2 != 0;
        let content = data["content"].as_str();
        rule(
            may_ping_only_who_is_named(&data["allowed_mentions"]),
            "allowed_mentions must name nobody, or a few people by their ids",
        );
        rule(
            content.is_none_or(|text| {
                (1..=CONTENT_UNITS_MAX).contains(&units(text)) && !super::content::is_blank(text)
            }),
            "content has 1 to 2000 units",
        );
        rule(v2 != content.is_some(), "either components v2 or content");
        rule(data.get("embeds").is_none(), "no embeds are used");
        rule(
            v2 || parts
                .iter()
                .all(|part| matches!(part["type"].as_u64(), Some(1..=8))),
            "v2 components need their flag",
        );
        rule(
            path.starts_with("/webhooks/") || callback || flags & super::answer::EPHEMERAL == 0,
            "ephemeral is for answers",
        );
        rule(
            data.get("nonce").is_none() || data["enforce_nonce"] == true,
            "a nonce must be enforced",
        );
        rule(
            data["nonce"]
                .as_str()
                .is_none_or(|nonce| units(nonce) <= 25),
            "a nonce has at most 25 characters",
        );
    }
    if deferred {
        rule(
            matches!(flags, 0 | super::answer::EPHEMERAL) && data.get("content").is_none(),
            "a deferral has flags 0 or 64 and nothing else",
        );
    }
    if modal {
        rule(
            data["components"]
                .as_array()
                .is_some_and(|parts| (1..=5).contains(&parts.len())),
            "a form has 1 to 5 parts",
        );
        rule(
            parts.iter().all(|part| part.get("disabled").is_none()),
            "nothing is disabled in a form",
        );
    }
    rule(
        parts.len() <= COMPONENTS_MAX,
        "at most 40 components, nested ones counted",
    );
    let texts: Vec<&str> = parts
        .iter()
        .filter(|part| part["type"] == 10)
        .map(|part| part["content"].as_str().unwrap_or_default())
        .collect();
    rule(
        texts.iter().all(|text| !super::content::is_blank(text)),
        "no text display is blank",
    );
    rule(
        texts.iter().map(|text| units(text)).sum::<usize>() <= TEXT_DISPLAY_UNITS_MAX,
        "text displays have 4000 units together",
    );
    rule(
        texts
            .iter()
            .map(|text| text.len() + TEXT_DISPLAY_OVERHEAD_BYTES)
            .sum::<usize>()
            <= TEXT_DISPLAY_BYTES_SEEN,
        "text displays have 10170 bytes together",
    );
    let mut ids: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["custom_id"].as_str())
        .collect();
    rule(
        ids.iter()
            .all(|id| (1..=CUSTOM_ID_UNITS_MAX).contains(&units(id))),
        "a custom_id has 1 to 100 units",
    );
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    rule(ids.len() == count, "custom_ids differ within a message");
    for part in &parts {
        match part["type"].as_u64() {
            Some(1) => {
                let inside = part["components"].as_array().map_or(&[][..], Vec::as_slice);
                let selects = inside
                    .iter()
                    .filter(|child| matches!(child["type"].as_u64(), Some(3 | 5..=8)))
                    .count();
                rule(
                    (1..=5).contains(&inside.len()) && (selects == 0 || inside.len() == 1),
                    "a row holds 1 to 5 buttons or one select",
                );
            }
            Some(2) => {
                let label = part["label"].as_str().unwrap_or_default();
                rule(
                    part.get("url").is_none() || part.get("custom_id").is_none(),
                    "a button has a url or a custom_id",
                );
                rule(
                    (1..=80).contains(&units(label)) && !super::content::is_blank(label),
                    "a button's label has 1 to 80 units",
                );
            }
            Some(3) => {
                let options = part["options"].as_array().map_or(&[][..], Vec::as_slice);
                let fits = |text: &Value| {
                    text.as_str().is_none_or(|text| {
                        (1..=100).contains(&units(text)) && !super::content::is_blank(text)
                    })
                };
                rule(
                    (1..=25).contains(&options.len()),
                    "a select has 1 to 25 options",
                );
                rule(
                    part["max_values"].as_u64().unwrap_or(1) <= options.len() as u64,
                    "a select takes no more values than it has options",
                );
                rule(
                    part["min_values"] != 0 || part["required"] == false,
                    "a select that needs no value is not required",
                );
                rule(
                    options
                        .iter()
                        .all(|o| fits(&o["label"]) && fits(&o["value"]) && fits(&o["description"])),
                    "an option's texts have 1 to 100 units",
                );
            }
            Some(18) => {
                let bounds = [("label", 45), ("description", 100)];
                rule(
                    bounds.iter().all(|(name, most)| {
                        part[*name].as_str().is_none_or(|text| {
                            units(text) <= *most && !super::content::is_blank(text)
                        })
                    }),
                    "a label has at most 45 units, its description 100",
                );
            }
            _ => {}
        }
    }
    let shown = data.to_string().contains("attachment://");
    rule(
        !shown
            || data["attachments"]
                .as_array()
                .is_some_and(|files| !files.is_empty()),
        "what is shown as an attachment is attached",
    );
    wrong
}

fn collect<'v>(components: &'v Value, into: &mut Vec<&'v Value>) {
    for part in components.as_array().into_iter().flatten() {
        into.push(part);
        collect(&part["components"], into);
        if part["component"].is_object() {
            into.push(&part["component"]);
        }
    }
}

/// `parse` is empty, and beside it stands at most a short list of people.
fn may_ping_only_who_is_named(allowed: &Value) -> bool {
    let few = |users: &Vec<Value>| {
        let is_id = |id: &Value| {
            id.as_str()
                .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        };
        (1..=super::content::CALLED_MAX).contains(&users.len()) && users.iter().all(is_id)
    };
    let Some(fields) = allowed.as_object() else {
        return false;
    };
    allowed["parse"] == json!([])
        && fields.iter().all(|(name, value)| match name.as_str() {
            "parse" => true,
            "users" => value.as_array().is_some_and(few),
            _ => false,
        })
}

/// The route of an answer to an interaction.
pub const CALLBACK: &str = "/interactions/{interaction_id}/{interaction_token}/callback";

#[test]
fn the_rules_find_what_they_are_for() {
    let route = "/channels/{channel_id}/messages";
    let good = json!({"content": "x", "allowed_mentions": {"parse": []}});
    assert!(own_rules(route, &good).is_empty());
    for (field, value) in [
        ("content", json!("x".repeat(2001))),
        ("content", json!("\u{200b}")),
        ("allowed_mentions", json!({"parse": ["users"]})),
        ("allowed_mentions", json!({"parse": [], "users": []})),
        ("allowed_mentions", json!({"parse": [], "users": ["x"]})),
        ("allowed_mentions", json!({"parse": [], "roles": ["1"]})),
        ("flags", json!(32_768)),
        ("flags", json!(64)),
        ("nonce", json!("1")),
        ("embeds", json!([])),
        ("components", json!([{"type": 17, "components": []}])),
        (
            "components",
            json!([{"type": 1, "components": [{"type": 2, "style": 1, "label": "a", "custom_id": "a"}, {"type": 2, "style": 1, "label": "b", "custom_id": "a"}]}]),
        ),
        (
            "components",
            json!([{"type": 1, "components": [{"type": 3, "custom_id": "s", "options": []}]}]),
        ),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!own_rules(route, &bad).is_empty(), "{bad}");
    }
    assert!(!own_rules(CALLBACK, &json!({"type": 5, "data": {"flags": 4}})).is_empty());
}

#[test]
fn a_misspelt_field_fails_the_description() {
    let Some(_) = description() else { return };
    let body = json!({"content": "x", "alowed_mentions": {"parse": []}});
    assert!(!against_description("/channels/{channel_id}/messages", "post", &body).is_empty());
}
