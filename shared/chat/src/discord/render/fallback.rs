//! Reduced versions of messages that Discord refused.

use bobbin_core::text::units;
use serde_json::{Value, json};

use crate::discord::components::{GREY, container, text};
use crate::discord::content::{noted, notice};
use crate::discord::flags::COMPONENTS_V2;

/// Line below the part of an answer that is posted beside its file.
pub(super) const WHOLE_IN_FILE: &str =
    "-# This is only a part: the whole answer is in the attached file `answer.md`.";

/// The same message without its file, with a note about it.
#[must_use]
pub fn without_file(body: &Value) -> Value {
    let mut less = body.clone();
    less.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("attachments")));
    let content = body["content"].as_str().unwrap_or_default();
    less["content"] = json!(match content.strip_suffix(WHOLE_IN_FILE) {
        Some(part) => noted(
            part.trim_end(),
            "-# The file with the whole answer could not be attached: this server does not accept it."
        ),
        None =>
            noted(content, "-# The file could not be attached: this server does not accept it."),
    });
    less
}

/// The same message, but not as a reply; `None` if it is none.
#[must_use]
pub fn without_reply(body: &Value) -> Option<Value> {
    let mut less = body.clone();
    let reference = less.as_object_mut()?.remove("message_reference");
    reference.map(|_| less)
}

/// Replacement for a message that the server's filter refused.
#[must_use]
pub fn blocked(body: &Value) -> Value {
    const WORDS: &str = "This part was blocked by this server's message filter. Ask for it as a file in the sandbox.";
    let mut less = if body["flags"].as_u64().unwrap_or(0) & COMPONENTS_V2 == 0 {
        notice(WORDS)
    } else {
        container(GREY, vec![text(WORDS)])
    };
    if body["components"].is_array() && less["components"].is_null() {
        less["components"] = body["components"].clone();
    }
    less
}

/// The same message with half of each longer text display; `None` if it has no long ones.
#[must_use]
pub fn smaller(body: &Value) -> Option<Value> {
    const KEPT_UNITS: usize = 200;
    fn halve(parent: &mut Value, changed: &mut bool) {
        let parts = parent.get_mut("components").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            let content = part["content"].as_str().unwrap_or_default();
            if part["type"] == 10 && units(content) > KEPT_UNITS {
                *changed = true;
                // A code block stays closed, and nobody approves half a command for a whole one.
                let half = bobbin_core::text::split(content, units(content) / 2);
                let half = half.first().map_or("", String::as_str);
                part["content"] = json!(format!("{half}\n**This text is shortened.**"));
            }
            halve(part, changed);
        }
    }
    let mut less = body.clone();
    let mut changed = false;
    halve(&mut less, &mut changed);
    changed.then_some(less)
}

/// The text of a message, without components.
#[must_use]
pub fn as_text(body: &Value) -> Value {
    fn collect<'v>(part: &'v Value, into: &mut Vec<&'v str>) {
        into.extend(part["content"].as_str());
        part["components"].as_array().into_iter().flatten().for_each(|child| collect(child, into));
    }
    let mut texts = Vec::new();
    collect(body, &mut texts);
    let mut less = notice(&texts.join("\n"));
    less["allowed_mentions"] = body["allowed_mentions"].clone();
    less
}

/// The text of a message: as the only text display if it uses components, otherwise as its content.
#[must_use]
pub fn as_one_text(body: &Value) -> Value {
    let mut one = as_text(body);
    if body["flags"].as_u64().unwrap_or(0) & COMPONENTS_V2 != 0 {
        one["components"] = json!([{"type": 10, "content": one["content"]}]);
        one["flags"] = json!(COMPONENTS_V2);
        one.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("content")));
    }
    one
}
