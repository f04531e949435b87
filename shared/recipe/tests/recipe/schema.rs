//! The schema of `.bobbin/environment.yaml` says what the parser does.

use bobbin_recipe::of_settings;
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{files, named};

fn schema() -> Validator {
    let text = include_str!("../../../../docs/environment.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Whether the schema takes a text, read by another parser than ours.
fn takes(schema: &Validator, text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    serde_yaml_ng::from_str::<Value>(text).is_ok_and(|value| schema.is_valid(&value))
}

#[track_caller]
fn agrees(schema: &Validator, text: &str, is_right: bool) {
    let read = of_settings(text);
    assert_eq!(read.is_ok(), is_right, "{text}\n{read:?}");
    assert_eq!(takes(schema, text), is_right, "{text}");
}

#[test]
fn schema_and_parser_take_the_same() {
    let schema = schema();
    for text in [
        "{}",
        "set-up: []",
        "set-up: [npm ci, {run: make}, {name: All, run: make all}]",
        "start: ['npm start &']",
        "services: [postgres, redis]",
        "services: []",
        "ports: [1, 65535]",
        "tools: {node: 22, python: '3.12', go: 1.22, 'npm:prettier': 3.3.0, java: temurin-21}",
        "variables: {A: x, _b1: 1, C: true, D: '', E: 1.5}",
    ] {
        agrees(&schema, text, true);
    }
}

#[test]
fn schema_and_parser_refuse_the_same() {
    let schema = schema();
    let many = |item: &str, count: usize| vec![item; count].join(", ");
    let numbers: Vec<String> = (1..=21).map(|number| number.to_string()).collect();
    let named: Vec<String> = (1..=51).map(|number| format!("a{number}: x")).collect();
    for text in [
        "",
        "[]",
        "set-up",
        "setup: [x]",
        "Set-Up: [x]",
        "set-up: npm ci",
        "set-up:",
        "set-up: [1]",
        "set-up: ['']",
        "set-up: ['  ']",
        "set-up: [\"a\\0b\"]",
        "set-up: [[x]]",
        "set-up: [{name: x}]",
        "set-up: [{run: x, cwd: y}]",
        "set-up: [{run: x, name: ''}]",
        "set-up: [{run: x, name: 1}]",
        "services: postgres",
        "services: [mysql]",
        "services: [redis, redis]",
        "ports: [0]",
        "ports: [65536]",
        "ports: [-1]",
        "ports: [80.5]",
        "ports: ['80']",
        "ports: [80, 80]",
        "ports: 80",
        "tools: [node]",
        "tools: {node: '$(id)'}",
        "tools: {node: ''}",
        "tools: {node: [22]}",
        "tools: {node: true}",
        "tools: {node: -1}",
        "tools: {'a b': 1}",
        "variables: [A]",
        "variables: {my-name: x}",
        "variables: {1A: x}",
        "variables: {A: }",
        "variables: {A: [x]}",
        "variables: {A: \"a\\0b\"}",
    ] {
        agrees(&schema, text, false);
    }
    for text in [
        format!("set-up: [{}]", many("x", 21)),
        format!("set-up: [{}]", "x".repeat(4_097)),
        format!("set-up: [{{run: x, name: {}}}]", "x".repeat(81)),
        format!("ports: [{}]", numbers.join(", ")),
        format!("tools: {{{}}}", named[..21].join(", ")),
        format!("tools: {{node: {}}}", "1".repeat(81)),
        format!("variables: {{{}}}", named.join(", ")),
        format!("variables: {{A: {}}}", "x".repeat(4_097)),
        format!("variables: {{{}: x}}", "A".repeat(101)),
    ] {
        let text = text.replace("node: 1", "node: x1");
        agrees(&schema, &text, false);
    }
}

#[test]
fn schema_and_parser_agree_on_fixtures() {
    let schema = schema();
    // What no schema can say: that aliases and a key that stands twice are refused.
    for fixture in named("own-").iter().filter(|name| *name != "own-bomb") {
        let bytes = files(fixture).texts[".bobbin/environment.yaml"].clone();
        let text = String::from_utf8(bytes).unwrap();
        agrees(&schema, &text, of_settings(&text).is_ok());
    }
}

/// Values that are near to right ones.
fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "", " ", "x", "postgres", "redis", "make", "A", "b-c", "22", "1.2", "true", "é", "a b",
        "$x", "name", "run",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..70_000_i64).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let map = prop::collection::vec((text.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            map.prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn schema_and_parser_never_differ(
        key in prop::sample::select(vec!["set-up", "start", "services", "ports", "tools", "variables", "tool"]),
        value in value(),
    ) {
        let instance = json!({ key: value });
        let (is_valid, read) = (schema().is_valid(&instance), of_settings(&instance.to_string()));
        prop_assert_eq!(is_valid, read.is_ok(), "{} {:?}", instance, read);
    }
}
