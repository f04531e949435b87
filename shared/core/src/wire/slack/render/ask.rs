//! A permission request or a question, and the line of record that it becomes.

use serde_json::{Value, json};

use super::escape::{code_pieces, line, mrkdwn, units};
use super::words::clock;
use super::{Rendered, context, label, section};
use crate::session::{About, Ask};
use crate::wire::slack::interactivity::ASK_ACTION;
use crate::wire::slack::limits::{
    ASK_ID_CHARS_MAX, BUTTON_UNITS_MAX, BUTTONS_MAX, OPTION_UNITS_MAX, OPTIONS_MAX,
    SECTION_UNITS_MAX, SUBJECT_SECTIONS_MAX,
};

/// The line of record; with the question before it, it fits into the fallback text.
const SETTLED_UNITS_MAX: usize = 1_000;
/// The longest line that is shown for one option.
const OPTION_LINE_UNITS_MAX: usize = 400;

pub(super) fn ask(ask: &Ask, settled: Option<&str>) -> Rendered {
    let settled = settled.map(record);
    let (title, mut blocks) = match &ask.about {
        About::Permission { action, subject } => permission(action, subject),
        About::Question { text, options } => question(text, options),
    };
    match &settled {
        Some(words) => blocks.push(context(words)),
        None => {
            match choices(ask) {
                Some(choices) => blocks.push(choices),
                None => blocks.push(section(
                    "It cannot be shown as buttons, so it will count as no.",
                )),
            }
            blocks.push(context(&format!(
                "No answer by {} counts as no.",
                until(ask.expires_at_ms)
            )));
        }
    }
    let text = match &settled {
        Some(words) => format!("{title} {words}"),
        None => title,
    };
    Rendered { text, blocks }
}

/// The line of record, never empty.
fn record(words: &str) -> String {
    let words = line(words, SETTLED_UNITS_MAX);
    if words.is_empty() {
        "Settled.".to_owned()
    } else {
        words
    }
}

fn permission(action: &str, subject: &str) -> (String, Vec<Value>) {
    let wants = match action {
        "bash" => "run a command".to_owned(),
        "edit" => "change a file".to_owned(),
        "read" => "read a protected file".to_owned(),
        "external_directory" => "work outside of its directory".to_owned(),
        other => format!("use {}", line(other, 100)),
    };
    let title = format!("The agent wants to {wants}. Allow it?");
    let mut blocks = vec![section(&format!("*{title}*"))];
    if !subject.trim().is_empty() {
        let (pieces, left) = code_pieces(subject, SECTION_UNITS_MAX - 8, SUBJECT_SECTIONS_MAX);
        blocks.extend(
            pieces
                .iter()
                .map(|piece| section(&format!("```\n{piece}\n```"))),
        );
        if left > 0 {
            blocks.push(context(&format!(
                "*{left} more characters are not shown.* Deny it if you do not know them."
            )));
        }
    }
    (title, blocks)
}

fn question(text: &str, options: &[String]) -> (String, Vec<Value>) {
    let words = if text.trim().is_empty() {
        "The agent asks".to_owned()
    } else {
        mrkdwn(text.trim(), SECTION_UNITS_MAX - 40)
    };
    let mut blocks = vec![section(&words)];
    // Labels are short: what does not fit into them is written out.
    if options
        .iter()
        .any(|option| units(option) > BUTTON_UNITS_MAX)
    {
        let mut list = String::new();
        for (n, option) in options.iter().enumerate() {
            let entry = format!("{}. {}\n", n + 1, line(option, OPTION_LINE_UNITS_MAX));
            if units(&list) + units(&entry) > SECTION_UNITS_MAX {
                break;
            }
            list.push_str(&entry);
        }
        blocks.push(section(list.trim_end()));
    }
    (words, blocks)
}

/// The buttons, or a select when there are too many; nothing when the ask's id does not fit into them.
fn choices(ask: &Ask) -> Option<Value> {
    if ask.id.is_empty() || ask.id.len() > ASK_ID_CHARS_MAX {
        return None;
    }
    let elements = match &ask.about {
        About::Permission { .. } => vec![
            button(&ask.id, "once", "Allow Once", Some("primary")),
            button(&ask.id, "always", "Always Allow", None),
            button(&ask.id, "reject", "Deny", Some("danger")),
        ],
        About::Question { options, .. } if options.is_empty() => {
            vec![button(&ask.id, "reject", "Skip", None)]
        }
        About::Question { options, .. } if options.len() <= BUTTONS_MAX => {
            let one =
                |(n, option): (usize, &String)| button(&ask.id, &format!("o{n}"), option, None);
            options.iter().enumerate().map(one).collect()
        }
        About::Question { options, .. } => vec![select(&ask.id, options)],
    };
    Some(json!({ "type": "actions", "block_id": ASK_ACTION, "elements": elements }))
}

fn button(ask: &str, choice: &str, text: &str, style: Option<&str>) -> Value {
    let mut button = json!({
        "type": "button", "action_id": format!("{ASK_ACTION}:{choice}"), "value": format!("{ask}:{choice}"),
        "text": label(text, BUTTON_UNITS_MAX),
    });
    if let Some(style) = style {
        button["style"] = style.into();
    }
    button
}

fn select(ask: &str, options: &[String]) -> Value {
    let one = |(n, option): (usize, &String)| json!({ "text": label(option, OPTION_UNITS_MAX), "value": format!("{ask}:o{n}") });
    let options: Vec<Value> = options
        .iter()
        .take(OPTIONS_MAX)
        .enumerate()
        .map(one)
        .collect();
    json!({
        "type": "static_select", "action_id": format!("{ASK_ACTION}:pick"), "options": options,
        "placeholder": label("Choose an answer", OPTION_UNITS_MAX),
    })
}

/// A time that Slack shows in the reader's own zone.
fn until(at_ms: u64) -> String {
    format!("<!date^{}^{{time}}|{}>", at_ms / 1_000, clock(at_ms))
}
