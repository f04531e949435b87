//! Answers to an interaction, as the HTTP response itself.

use bobbin_core::base::ids::SandboxName;
use bobbin_core::base::person::Person;
use bobbin_core::records::message::{Prompt, Quote};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::KEY_BYTES_MAX;
use serde_json::{Value, json};

use super::bounds::{
    FILES_MAX, FORM_TEXT_UNITS_MAX, NAME_UNITS_MAX, QUOTE_UNITS_MAX, QUOTED_SHOWN_UNITS_MAX,
};
use super::content::{bounded, emphasised_name, inline, mute};
use super::custom_id::CustomId;
use super::flags::{COMPONENTS_V2, EPHEMERAL, SUPPRESS_EMBEDS};
use crate::HttpAnswer;

/// Name of the form's text input.
pub const FORM_PROMPT: &str = "prompt";
/// Name of the form's file input.
pub const FORM_FILES: &str = "files";

/// Name of the input for a key.
pub const FORM_KEY: &str = "key";
/// Name of the form's choice whether to wait.
pub const FORM_WHEN: &str = "when";
/// Its value for a prompt that should not wait.
pub const FORM_NOW: &str = "now";
/// Its value for a prompt that waits.
const FORM_QUEUE: &str = "queue";

/// Label of the button that withdraws a waiting task.
pub const WITHDRAW: &str = "Withdraw";

/// The answer to a ping.
#[must_use]
pub fn pong() -> HttpAnswer {
    HttpAnswer::json(&json!({"type": 1}))
}

/// A text that only the person sees.
#[must_use]
pub fn word(text: &str) -> HttpAnswer {
    HttpAnswer::json(
        &json!({"type": 4, "data": mute(json!({"content": bounded(text), "flags": EPHEMERAL}))}),
    )
}

/// A message that everybody sees.
#[must_use]
pub fn say(text: &str) -> HttpAnswer {
    HttpAnswer::json(
        &json!({"type": 4, "data": mute(json!({"content": bounded(text), "flags": SUPPRESS_EMBEDS}))}),
    )
}

/// A person's prompt in a thread, shown to its readers.
#[must_use]
pub fn quote(prompt: &Prompt) -> HttpAnswer {
    let files = match prompt.attachments.len() {
        0 => String::new(),
        1 => "\n-# with 1 file".to_owned(),
        n => format!("\n-# with {n} files"),
    };
    let text = bobbin_core::text::shorten(&prompt.text, QUOTE_UNITS_MAX);
    let now = if prompt.now { "\n-# for the running task" } else { "" };
    let quoted = quoted(&prompt.quotes);
    say(&format!("{}: {text}{quoted}{now}{files}", emphasised_name(&prompt.by)))
}

/// The last quoted message as a line below the request; empty if none is quoted.
pub(super) fn quoted(quotes: &[Quote]) -> String {
    let Some(quote) = quotes.last() else {
        return String::new();
    };
    let name = match quote.by.as_str() {
        "" => String::new(),
        by => format!("**{}**: ", inline(by, NAME_UNITS_MAX)),
    };
    let text = inline(&quote.text, QUOTED_SHOWN_UNITS_MAX);
    let more = match quotes.len() {
        1 => String::new(),
        n => format!("\n-# and {} before it", n - 1),
    };
    format!("\n> {name}{text}{more}")
}

/// Notice that somebody asked for a fresh sandbox.
#[must_use]
pub fn resetting(by: &Person, keeps_files: bool) -> HttpAnswer {
    let what = if keeps_files {
        "asked for a new conversation in the same sandbox. The next prompt starts it."
    } else {
        "asked for a fresh sandbox. The next prompt starts in it."
    };
    say(&format!("{} {what}", emphasised_name(by)))
}

/// Notice that somebody names the thread's sandbox.
#[must_use]
pub fn naming(by: &Person, name: &SandboxName) -> HttpAnswer {
    say(&format!("{} asked to call this thread's sandbox `{name}`.", emphasised_name(by)))
}

/// Replaces the clicked message with this text, without its buttons.
#[must_use]
pub fn replaced(text: &str) -> HttpAnswer {
    HttpAnswer::json(
        &json!({"type": 7, "data": mute(json!({"content": bounded(text), "components": []}))}),
    )
}

/// Shows everybody that something is being created; edited into the anchor later.
#[must_use]
pub fn deferred() -> HttpAnswer {
    HttpAnswer::json(&json!({"type": 5}))
}

/// Shows only the person that something is being looked up; edited later.
#[must_use]
pub fn deferred_word() -> HttpAnswer {
    HttpAnswer::json(&json!({"type": 5, "data": {"flags": EPHEMERAL}}))
}

/// Acknowledges a click; the clicked message is changed later.
#[must_use]
pub fn deferred_update() -> HttpAnswer {
    HttpAnswer::json(&json!({"type": 6}))
}

/// The answer to a person who is typing, without suggestions.
#[must_use]
pub fn no_choices() -> HttpAnswer {
    HttpAnswer::json(&json!({"type": 8, "data": {"choices": []}}))
}

/// The form for a further prompt.
#[must_use]
pub fn form(files_max: usize) -> HttpAnswer {
    let text = json!({"type": 18, "label": "What should happen next?", "component": {
        "type": 4, "custom_id": FORM_PROMPT, "style": 2, "min_length": 1, "max_length": FORM_TEXT_UNITS_MAX, "required": true,
        "placeholder": "Goes to the same sandbox",
    }});
    let when = json!({"type": 18, "label": "If something is running", "component": {
        "type": 21, "custom_id": FORM_WHEN, "required": true, "options": [
            {"value": FORM_QUEUE, "label": "Queue", "description": "Starts when all current tasks are done", "default": true},
            {"value": FORM_NOW, "label": "Send now", "description": "Goes to the agent at once, into the running task"},
        ],
    }});
    let files = json!({"type": 18, "label": "Files", "description": "Optional", "component": {
        "type": 19, "custom_id": FORM_FILES, "min_values": 0, "max_values": files_max.clamp(1, FILES_MAX), "required": false,
    }});
    let components = if files_max == 0 { vec![text, when] } else { vec![text, when, files] };
    HttpAnswer::json(
        &json!({"type": 9, "data": {"custom_id": CustomId::Say.text(), "title": "Reply to the sandbox", "components": components}}),
    )
}

/// The form for a key of the server's own. Discord has no input that hides what is typed.
#[must_use]
pub fn key_form(key: Key) -> HttpAnswer {
    let provider = key.provider().unwrap_or_default().to_owned();
    let brand = key.brand();
    let input = json!({"type": 18, "label": format!("{brand} key of this server"),
    "description": "It is stored encrypted and never shown again. Discord transmits it.", "component": {
        "type": 4, "custom_id": FORM_KEY, "style": 1, "min_length": 1, "max_length": KEY_BYTES_MAX, "required": true,
    }});
    HttpAnswer::json(
        &json!({"type": 9, "data": {"custom_id": CustomId::Key { provider }.text(), "title": format!("{brand} key"), "components": [input]}}),
    )
}

/// The clicked card with "Stopping…" in place of its Stop button; `None` if the card has parts that are not ours.
#[must_use]
pub fn stopping(components: &[Value], flags: u64, stop: &str) -> Option<HttpAnswer> {
    if components.is_empty() || flags & COMPONENTS_V2 == 0 {
        return None;
    }
    let mut replaced = false;
    let components: Option<Vec<Value>> =
        components.iter().map(|part| without_stop(part, stop, &mut replaced)).collect();
    let components = components.filter(|_| replaced)?;
    Some(HttpAnswer::json(
        &json!({"type": 7, "data": mute(json!({"flags": COMPONENTS_V2, "components": components}))}),
    ))
}

/// The component in the form of a request: only fields that requests have.
fn without_stop(part: &Value, stop: &str, replaced: &mut bool) -> Option<Value> {
    let mut children = || {
        part["components"]
            .as_array()?
            .iter()
            .map(|child| without_stop(child, stop, replaced))
            .collect::<Option<Vec<_>>>()
    };
    match part["type"].as_u64()? {
        17 => Some(
            json!({"type": 17, "accent_color": part["accent_color"], "components": children()?}),
        ),
        1 => Some(json!({"type": 1, "components": children()?})),
        2 if part["custom_id"] == stop => {
            *replaced = true;
            let label = match part["label"].as_str() {
                Some(WITHDRAW) => "Withdrawing…",
                _ => "Stopping…",
            };
            Some(
                json!({"type": 2, "style": 2, "label": label, "custom_id": stop, "disabled": true}),
            )
        }
        2 if part["custom_id"].is_string() => Some(
            json!({"type": 2, "style": part["style"], "label": part["label"], "custom_id": part["custom_id"]}),
        ),
        10 => Some(json!({"type": 10, "content": part["content"]})),
        14 => Some(
            json!({"type": 14, "divider": part["divider"].as_bool().unwrap_or(true), "spacing": part["spacing"].as_u64().unwrap_or(1)}),
        ),
        _ => None,
    }
}
