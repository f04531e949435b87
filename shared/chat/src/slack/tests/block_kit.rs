//! Block Kit's rules without a network: known blocks and fields, their limits, unique ids.

use std::collections::BTreeSet;

use serde_json::Value;

fn units(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.encode_utf16().count())
}

fn fields(at: &str, value: &Value, required: &[&str], optional: &[&str], found: &mut Vec<String>) {
    let Some(object) = value.as_object() else {
        found.push(format!("{at} is no object"));
        return;
    };
    found.extend(
        required
            .iter()
            .filter(|name| !object.contains_key(**name))
            .map(|name| format!("{at} lacks {name}")),
    );
    let known =
        |name: &String| required.contains(&name.as_str()) || optional.contains(&name.as_str());
    found.extend(
        object
            .keys()
            .filter(|name| !known(name))
            .map(|name| format!("{at} has unknown field {name}")),
    );
}

fn bound(at: &str, length: usize, min: usize, max: usize, found: &mut Vec<String>) {
    if length < min || length > max {
        found.push(format!("{at}: {length} is not within {min}..={max}"));
    }
}

fn text(at: &str, value: &Value, kind: &str, max: usize, found: &mut Vec<String>) {
    let optional: &[&str] = if kind == "mrkdwn" { &["verbatim"] } else { &["emoji"] };
    fields(at, value, &["type", "text"], optional, found);
    if value["type"] != kind {
        found.push(format!("{at} is not {kind}"));
    }
    bound(at, units(&value["text"]), 1, max, found);
}

fn button(at: &str, value: &Value, found: &mut Vec<String>) {
    fields(
        at,
        value,
        &["type", "text", "action_id"],
        &["value", "style", "accessibility_label"],
        found,
    );
    text(&format!("{at}.text"), &value["text"], "plain_text", 75, found);
    bound(&format!("{at}.value"), units(&value["value"]), 1, 2_000, found);
    bound(&format!("{at}.accessibility_label"), units(&value["accessibility_label"]), 0, 75, found);
    if !matches!(value["style"].as_str(), None | Some("primary" | "danger")) {
        found.push(format!("{at} has an unknown style"));
    }
}

/// An input block: messages take them too, and send their values with every click.
fn input(at: &str, block: &Value, found: &mut Vec<String>) {
    fields(at, block, &["type", "label", "element"], &["block_id", "hint", "optional"], found);
    text(&format!("{at}.label"), &block["label"], "plain_text", 2_000, found);
    let element = &block["element"];
    bound(&format!("{at}.action_id"), units(&element["action_id"]), 1, 255, found);
    match element["type"].as_str() {
        Some("static_select" | "multi_static_select") => select(at, element, found),
        Some("plain_text_input") => {
            fields(
                at,
                element,
                &["type", "action_id"],
                &["multiline", "max_length", "placeholder", "initial_value"],
                found,
            );
            bound(at, units(&element["initial_value"]), 0, 3_000, found);
            let most = element["max_length"].as_u64().unwrap_or(3_000);
            bound(at, usize::try_from(most).unwrap_or(usize::MAX), 1, 3_000, found);
        }
        other => found.push(format!("{at}: unknown element {other:?}")),
    }
}

fn select(at: &str, value: &Value, found: &mut Vec<String>) {
    fields(at, value, &["type", "action_id", "options"], &["placeholder"], found);
    text(&format!("{at}.placeholder"), &value["placeholder"], "plain_text", 150, found);
    let options = value["options"].as_array().map_or(&[][..], Vec::as_slice);
    bound(&format!("{at}.options"), options.len(), 1, 100, found);
    for option in options {
        fields(at, option, &["text", "value"], &["description"], found);
        text(at, &option["text"], "plain_text", 75, found);
        if option.get("description").is_some() {
            text(at, &option["description"], "plain_text", 75, found);
        }
        bound(&format!("{at}.option.value"), units(&option["value"]), 1, 150, found);
    }
}

/// A select whose options are requested while somebody types.
fn external_select(at: &str, value: &Value, found: &mut Vec<String>) {
    fields(at, value, &["type", "action_id"], &["placeholder", "min_query_length"], found);
    text(&format!("{at}.placeholder"), &value["placeholder"], "plain_text", 150, found);
}

fn plan(at: &str, block: &Value, found: &mut Vec<String>) {
    fields(at, block, &["type", "title", "tasks"], &["block_id"], found);
    bound(&format!("{at}.title"), units(&block["title"]), 1, 256, found);
    let tasks = block["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    bound(&format!("{at}.tasks"), tasks.len(), 1, 50, found);
    let mut ids = BTreeSet::new();
    for (n, task) in tasks.iter().enumerate() {
        let at = format!("{at}.tasks[{n}]");
        fields(&at, task, &["type", "task_id", "title", "status"], &[], found);
        bound(&format!("{at}.title"), units(&task["title"]), 1, 256, found);
        let known = ["pending", "in_progress", "complete", "error"];
        if !known.iter().any(|known| task["status"] == *known) || task["type"] != "task_card" {
            found.push(format!("{at} is no task_card with a known status"));
        }
        if !ids.insert(task["task_id"].as_str()) {
            found.push(format!("{at}: task_id is used twice"));
        }
    }
}

fn actions(at: &str, block: &Value, found: &mut Vec<String>) {
    fields(at, block, &["type", "elements"], &["block_id"], found);
    let elements = block["elements"].as_array().map_or(&[][..], Vec::as_slice);
    bound(&format!("{at}.elements"), elements.len(), 1, 25, found);
    let mut ids = BTreeSet::new();
    for (n, element) in elements.iter().enumerate() {
        let at = format!("{at}.elements[{n}]");
        match element["type"].as_str() {
            Some("button") => button(&at, element, found),
            Some("static_select") => select(&at, element, found),
            Some("external_select") => external_select(&at, element, found),
            other => found.push(format!("{at}: unknown element {other:?}")),
        }
        bound(&format!("{at}.action_id"), units(&element["action_id"]), 1, 255, found);
        if !ids.insert(element["action_id"].as_str()) {
            found.push(format!("{at}: action_id is used twice"));
        }
    }
}

/// Problems for which Slack would refuse a Home.
pub(super) fn home_problems(view: &Value) -> Vec<String> {
    let mut found = Vec::new();
    fields("view", view, &["type", "blocks"], &[], &mut found);
    let blocks = view["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    found.extend(blocks_problems(blocks, 100));
    bound("view", view.to_string().len(), 1, 250_000, &mut found);
    found
}

/// Problems for which Slack would refuse a message.
pub(super) fn problems(fallback: &str, blocks: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    bound("text", fallback.encode_utf16().count(), 1, 4_000, &mut found);
    found.extend(blocks_problems(blocks, 50));
    found
}

fn blocks_problems(blocks: &[Value], most: usize) -> Vec<String> {
    let mut found = Vec::new();
    bound("blocks", blocks.len(), 1, most, &mut found);
    let mut markdown = 0;
    let mut ids = BTreeSet::new();
    for (n, block) in blocks.iter().enumerate() {
        let at = format!("blocks[{n}]");
        match block["type"].as_str() {
            Some("section") => {
                fields(&at, block, &["type", "text"], &["block_id", "accessory"], &mut found);
                text(&at, &block["text"], "mrkdwn", 3_000, &mut found);
                if block.get("accessory").is_some() {
                    button(&format!("{at}.accessory"), &block["accessory"], &mut found);
                }
            }
            Some("header") => {
                fields(&at, block, &["type", "text"], &["block_id"], &mut found);
                text(&at, &block["text"], "plain_text", 150, &mut found);
            }
            Some("plan") => plan(&at, block, &mut found),
            Some("context") => {
                fields(&at, block, &["type", "elements"], &["block_id"], &mut found);
                let elements = block["elements"].as_array().map_or(&[][..], Vec::as_slice);
                bound(&at, elements.len(), 1, 10, &mut found);
                elements.iter().for_each(|element| text(&at, element, "mrkdwn", 2_000, &mut found));
            }
            Some("markdown") => {
                fields(&at, block, &["type", "text"], &["block_id"], &mut found);
                bound(&at, units(&block["text"]), 1, 12_000, &mut found);
                markdown += units(&block["text"]);
            }
            Some("actions") => actions(&at, block, &mut found),
            Some("input") => input(&at, block, &mut found),
            other => found.push(format!("{at}: unknown block {other:?}")),
        }
        let id = &block["block_id"];
        bound(&format!("{at}.block_id"), units(id), 0, 255, &mut found);
        if id.as_str().is_some_and(|id| !ids.insert(id)) {
            found.push(format!("{at}: block_id is used twice"));
        }
    }
    bound("all markdown", markdown, 0, 12_000, &mut found);
    found
}

#[test]
fn block_check_finds_invalid_blocks() {
    use serde_json::json;
    let bad = [
        json!({"type": "section", "text": {"type": "mrkdwn", "text": ""}}),
        json!({"type": "section", "text": {"type": "mrkdwn", "text": "x".repeat(3_001)}}),
        json!({"type": "section", "text": {"type": "mrkdwn", "text": "x"}, "colour": "red"}),
        json!({"type": "markdown", "text": "x".repeat(12_001)}),
        json!({"type": "actions", "elements": []}),
        json!({"type": "actions", "elements": [{"type": "button", "action_id": "a", "value": "v", "text": {"type": "plain_text", "text": "x".repeat(76)}}]}),
        json!({"type": "alert", "text": "x"}),
        json!({"type": "plan", "title": "x", "tasks": []}),
        json!({"type": "plan", "title": "x", "tasks": [{"type": "task_card", "task_id": "1", "title": "x", "status": "completed"}]}),
        json!({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}),
        json!({"type": "input", "label": {"type": "plain_text", "text": "x"}, "element": {"type": "plain_text_input", "action_id": "a", "max_length": 3_001}}),
        json!({"type": "input", "element": {"type": "plain_text_input", "action_id": "a"}}),
    ];
    for block in bad {
        assert_eq!(problems("t", std::slice::from_ref(&block)).len().min(1), 1, "{block}");
    }
}
