//! Rules for a modal that the ingress returns (callback type 9).

use super::refusal::{DiscordRefusal, FormErrors};
use crate::json::JsonFields;
use serde_json::Value;
use std::collections::BTreeSet;

/// Collects all errors of a modal.
pub fn check(data: &Value) -> Result<(), DiscordRefusal> {
    let mut wrong = FormErrors::default();
    for (field, max) in [("custom_id", 100), ("title", 45)] {
        if data.str(field).is_empty() {
            wrong.at(&format!("data.{field}"), "BASE_TYPE_REQUIRED", "This field is required");
        }
        wrong.longer(&format!("data.{field}"), data.str(field), max);
    }
    let parts = data.list("components");
    if parts.is_empty() || parts.len() > 5 {
        wrong.at("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    }
    let mut seen = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        let path = format!("data.components.{at}");
        let inner = match part.int("type") {
            18 => {
                wrong.longer(&format!("{path}.label"), part.str("label"), 45);
                wrong.longer(&format!("{path}.description"), part.str("description"), 100);
                if part.str("label").is_empty() {
                    wrong.at(
                        &format!("{path}.label"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    );
                }
                &part["component"]
            }
            10 => continue,
            _ => {
                wrong.at(
                    &format!("{path}.type"),
                    "UNION_TYPE_CHOICES",
                    "Value of field \"type\" must be one of (10, 18).",
                );
                continue;
            }
        };
        input_of(inner, &format!("{path}.component"), &mut seen, &mut wrong);
    }
    wrong.done()
}

fn input_of(input: &Value, path: &str, seen: &mut BTreeSet<String>, wrong: &mut FormErrors) {
    if ![3, 4, 19, 21].contains(&input.int("type")) {
        wrong.at(
            &format!("{path}.type"),
            "UNION_TYPE_CHOICES",
            "This component cannot be used in a modal.",
        );
    }
    if input.str("custom_id").is_empty() || !seen.insert(input.str("custom_id").to_owned()) {
        wrong.at(
            &format!("{path}.custom_id"),
            "COMPONENT_CUSTOM_ID_DUPLICATED",
            "A unique custom_id is required",
        );
    }
    if input.has("disabled") {
        wrong.at(
            &format!("{path}.disabled"),
            "COMPONENT_INVALID",
            "disabled cannot be used in a modal",
        );
    }
    wrong.longer(
        &format!("{path}.placeholder"),
        input.str("placeholder"),
        if input.int("type") == 4 { 100 } else { 150 },
    );
    if input.int("type") == 4 {
        if ![1, 2].contains(&input.int("style")) {
            wrong.at(&format!("{path}.style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.");
        }
        if input.int("max_length") > 4000 {
            wrong.at(
                &format!("{path}.max_length"),
                "NUMBER_TYPE_MAX",
                "int value should be less than or equal to 4000.",
            );
        }
        wrong.longer(&format!("{path}.value"), input.str("value"), 4000);
    }
    let options = input.list("options").len();
    let range = match input.int("type") {
        3 => 1..=25,
        21 => 2..=10,
        _ => return,
    };
    if !range.contains(&options) {
        wrong.at(&format!("{path}.options"), "BASE_TYPE_BAD_LENGTH", "Wrong number of options.");
    }
    for (at, option) in input.list("options").iter().enumerate() {
        for field in ["label", "value", "description"] {
            let at = format!("{path}.options.{at}.{field}");
            wrong.longer(&at, option.str(field), 100);
            if field != "description" && option.str(field).is_empty() {
                wrong.at(&at, "BASE_TYPE_REQUIRED", "This field is required");
            }
        }
    }
    let required = input["required"].as_bool().unwrap_or(true);
    if required && input["min_values"] == 0 {
        wrong.at(
            &format!("{path}.min_values"),
            "COMPONENT_INVALID",
            "A select that needs no value cannot be required.",
        );
    }
    if input["max_values"].as_u64().unwrap_or(1) > options as u64 {
        wrong.at(
            &format!("{path}.max_values"),
            "NUMBER_TYPE_MAX",
            "More values than there are options.",
        );
    }
}
