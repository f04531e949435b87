//! Text from people and models inside messages: bounded, on one line where necessary, without mentions or tricks.

use bobbin_core::base::person::Person;
use bobbin_core::text::{
    apart_fences, is_hidden, one_line, shorten, units, visible, without_controls,
};
use serde_json::{Value, json};

use super::bounds::{CONTENT_UNITS_MAX, NAME_UNITS_MAX};
use super::flags::SUPPRESS_EMBEDS;

/// The body with all pings disabled: without this field a bot's message pings everybody that it mentions, even in
/// edits.
pub(super) fn mute(mut body: Value) -> Value {
    body["allowed_mentions"] = json!({"parse": []});
    body
}

/// The line that mentions these people, and the field that lets it ping only them; `None` if no id is valid.
pub(super) fn called(people: &[String]) -> Option<(String, Value)> {
    let is_id = |id: &&String| {
        (1..=SNOWFLAKE_DIGITS_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit())
    };
    let ids: Vec<&String> = people.iter().filter(is_id).take(CALLED_MAX).collect();
    let line: Vec<String> = ids.iter().map(|id| format!("<@{id}>")).collect();
    (!ids.is_empty()).then(|| (line.join(" "), json!({"parse": [], "users": ids})))
}

/// Maximum digits of a Discord id, an unsigned 64-bit number.
const SNOWFLAKE_DIGITS_MAX: usize = 20;
/// People mentioned in one message: their line fits beside a part of an answer.
pub(super) const CALLED_MAX: usize = 4;

/// Text as the `content` of a message: never empty, never too long.
pub(super) fn bounded(text: &str) -> String {
    if is_blank(text) {
        "(nothing to show)".to_owned()
    } else {
        shorten(&without_controls(text), CONTENT_UNITS_MAX)
    }
}

/// Whether nothing of the text is visible; Discord refuses such text as empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_hidden(c))
}

/// One line of foreign text, shown literally: Markdown and mentions in it have no effect.
pub(super) fn inline(text: &str, units_max: usize) -> String {
    // Every character may be escaped, hence half.
    escaped(&shorten(&one_line(&visible(text)), units_max))
}

/// Visible text on one line, shown literally. [`plain`] reverses it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '>' | '#' | '@' | '(' | ')'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    if is_blank(&out) { "(blank)".to_owned() } else { out }
}

/// Reverses the escaping of [`inline`] and [`escaped`].
pub(super) fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => {
                out.push(*next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Foreign text as a code span on one line.
pub(super) fn span(text: &str, units_max: usize) -> String {
    let shown = shorten(&one_line(&visible(text)).replace('`', "\u{2cb}"), units_max);
    format!("`{}`", if is_blank(&shown) { "(blank)" } else { &shown })
}

/// Foreign text as a code block; a fence in it cannot end the block. Says how much was left out, including `left_out`
/// units cut before.
pub(super) fn code(text: &str, units_max: usize, left_out: usize) -> String {
    let shown = apart_fences(&visible(text));
    let cut = shorten(&shown, units_max);
    let missing = bobbin_core::text::units(shown.trim())
        .saturating_sub(bobbin_core::text::units(&cut))
        .saturating_add(left_out);
    let note = if missing == 0 {
        String::new()
    } else {
        format!("\n**{missing} more characters are not shown here.**")
    };
    format!("```\n{}\n```{note}", if is_blank(&cut) { "(blank)" } else { &cut })
}

/// A person's name in bold.
pub(super) fn emphasised_name(person: &Person) -> String {
    let name = if is_blank(&person.name) { &person.id } else { &person.name };
    format!("**{}**", inline(name, NAME_UNITS_MAX))
}

/// A short notice about the session, as a separate message.
pub(super) fn notice(text: &str) -> Value {
    mute(json!({"content": bounded(text), "flags": SUPPRESS_EMBEDS}))
}

/// Text with a line below it, both within a message's content.
pub(super) fn noted(content: &str, line: &str) -> String {
    format!("{}\n{line}", shorten(content, CONTENT_UNITS_MAX - units(line) - 1)).trim().to_owned()
}
