//! Components of messages and forms.

use serde_json::Value;

use super::{Rules, is_blank, units};

/// The components that hold values.
const INPUTS: [u64; 10] = [3, 4, 5, 6, 7, 8, 19, 21, 22, 23];
/// What Discord adds to each text when it counts their bytes.
const TEXT_OVERHEAD_BYTES: usize = 12;
/// Above it Discord was seen to answer 500.
const TEXT_BYTES_MAX: usize = 10_170;

/// All components, nested ones too.
pub(super) fn all(components: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    collect(components, &mut found);
    found
}

fn collect<'v>(components: &'v Value, into: &mut Vec<&'v Value>) {
    for part in components.as_array().into_iter().flatten() {
        into.push(part);
        collect(&part["components"], into);
        for inner in ["component", "accessory"] {
            if part[inner].is_object() {
                into.push(&part[inner]);
            }
        }
    }
}

/// What holds for the components of a message and of a form.
pub(super) fn check(components: &Value, rules: &mut Rules) {
    let parts = all(components);
    rules.must(parts.len() <= 40, "at most 40 components, nested ones counted");
    texts(&parts, rules);
    let ids: Vec<&str> = parts.iter().filter_map(|part| part["custom_id"].as_str()).collect();
    rules.must(
        ids.iter().all(|id| (1..=100).contains(&units(id))),
        "a custom_id has 1 to 100 units",
    );
    rules.must(differ(&ids), "custom_ids differ within a message");
    let numbers: Vec<u64> =
        parts.iter().filter_map(|part| part["id"].as_u64()).filter(|id| *id > 0).collect();
    rules.must(differ(&numbers), "component ids differ within a message");
    for part in &parts {
        match part["type"].as_u64() {
            Some(1) => row(part, rules),
            Some(2) => button(part, rules),
            Some(3) => select(part, rules),
            Some(18) => label(part, rules),
            _ => {}
        }
    }
}

/// What holds for a form alone.
pub(super) fn form(components: &Value, rules: &mut Rules) {
    for part in all(components) {
        rules.must(part.get("disabled").is_none(), "nothing is disabled in a form");
        let kind = part["type"].as_u64().unwrap_or(0);
        let name = part["custom_id"].as_str().unwrap_or_default();
        rules.must(!INPUTS.contains(&kind) || !name.is_empty(), "an input has a custom_id");
        let options = part["options"].as_array().map_or(&[][..], Vec::as_slice);
        let defaults = options.iter().filter(|one| one["default"] == true).count();
        match kind {
            4 => rules.must(
                part["max_length"].as_u64().is_none_or(|most| most <= 4_000),
                "a text has at most 4000 units",
            ),
            19 => rules.must(
                part["max_values"].as_u64().is_none_or(|most| (1..=10).contains(&most)),
                "at most 10 files",
            ),
            21 => {
                rules.must((2..=10).contains(&options.len()), "a radio group has 2 to 10 options");
                rules.must(defaults <= 1, "a radio group has one default at most");
            }
            22 => rules
                .must((1..=10).contains(&options.len()), "a checkbox group has 1 to 10 options"),
            23 => rules.must(part.get("required").is_none(), "a checkbox cannot be required"),
            _ => {}
        }
        let needed = part["required"].as_bool().unwrap_or(true);
        rules.must(part["min_values"] != 0 || !needed, "what needs no value is not required");
    }
}

fn differ<T: Ord + Clone>(list: &[T]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == list.len()
}

fn texts(parts: &[&Value], rules: &mut Rules) {
    let texts = parts.iter().filter(|part| part["type"] == 10);
    let texts: Vec<&str> = texts.map(|part| part["content"].as_str().unwrap_or_default()).collect();
    rules.must(texts.iter().all(|text| !is_blank(text)), "no text display is blank");
    let together: usize = texts.iter().map(|text| units(text)).sum();
    rules.must(together <= 4_000, "text displays have 4000 units together");
    let bytes: usize = texts.iter().map(|text| text.len() + TEXT_OVERHEAD_BYTES).sum();
    rules.must(bytes <= TEXT_BYTES_MAX, "text displays have 10170 bytes together");
}

fn row(part: &Value, rules: &mut Rules) {
    let inside = part["components"].as_array().map_or(&[][..], Vec::as_slice);
    let buttons = inside.iter().filter(|child| child["type"] == 2).count();
    let fits = (1..=5).contains(&inside.len()) && (buttons == inside.len() || inside.len() == 1);
    rules.must(fits, "a row holds 1 to 5 buttons or one select");
}

fn button(part: &Value, rules: &mut Rules) {
    let (url, id) = (part.get("url").is_some(), part.get("custom_id").is_some());
    let fits = match part["style"].as_u64() {
        Some(1..=4) => id && !url,
        Some(5) => url && !id,
        _ => false,
    };
    rules.must(fits, "a button has a url or a custom_id, as its style says");
    let label = part["label"].as_str().unwrap_or_default();
    rules.must(
        (1..=80).contains(&units(label)) && !is_blank(label),
        "a button's label has 1 to 80 units",
    );
}

fn select(part: &Value, rules: &mut Rules) {
    let options = part["options"].as_array().map_or(&[][..], Vec::as_slice);
    rules.must((1..=25).contains(&options.len()), "a select has 1 to 25 options");
    let most = part["max_values"].as_u64().unwrap_or(1);
    rules.must(most <= options.len() as u64, "a select takes no more values than it has options");
    let needed = part["required"] != false;
    rules.must(part["min_values"] != 0 || !needed, "a select that needs no value is not required");
    let fits = |text: &Value| {
        text.as_str().is_none_or(|text| (1..=100).contains(&units(text)) && !is_blank(text))
    };
    let all = options
        .iter()
        .all(|one| fits(&one["label"]) && fits(&one["value"]) && fits(&one["description"]));
    rules.must(all, "an option's texts have 1 to 100 units");
    let values: Vec<&str> = options.iter().filter_map(|one| one["value"].as_str()).collect();
    rules.must(differ(&values), "the values of a select differ");
}

fn label(part: &Value, rules: &mut Rules) {
    let fits = |name: &str, most: usize| {
        part[name].as_str().is_none_or(|text| units(text) <= most && !is_blank(text))
    };
    rules.must(
        fits("label", 45) && fits("description", 100),
        "a label has at most 45 units, its description 100",
    );
}
