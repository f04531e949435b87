//! The form for an ask's answer. A click must be answered with its form at once, by a function that reads no record:
//! the button's name encodes the form's layout, and the texts are read from the clicked message, where each question
//! has its own text, written here as well. Wrong texts could mislead, but never decide: only numbers come back, and
//! they are looked up in the record of the ask.
//!
//! At most five parts fit. Questions that do not fit with a select and free text each share one input for free text;
//! five are typed, as option numbers or free text; more than five are answered in one text, one line each.

use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::{Field, HEADER_CHARS_MAX, Question, WORDS_CHARS_MAX};
use bobbin_core::text::{one_line, shorten, units, visible};
use serde_json::{Value, json};

use super::bounds::{
    FORM_HINT_UNITS_MAX, FORM_LABEL_UNITS_MAX, FORM_PARTS_MAX, FORM_TEXT_UNITS_MAX,
    OPTION_LABEL_UNITS_MAX, QUESTION_UNITS_MAX, SELECT_OPTIONS_MAX, TEXT_DISPLAY_BYTES_MAX,
    TEXT_DISPLAY_UNITS_MAX,
};
use super::content::{inline, is_blank, plain};
use super::custom_id::{CustomId, FormPart};
use super::interaction::Modal;
use crate::HttpAnswer;
use crate::press::{FormInput, Press};

/// The component id of the first question's text; the others follow. Discord numbers components without an id from 1.
const FIRST_TEXT_ID: u64 = 100;
/// Styles of a text input.
const ONE_LINE: u8 = 1;
const LINES: u8 = 2;
/// Separates an option's label from its description.
const DASH: &str = " — ";

/// The parts of the form for several questions.
#[must_use]
pub fn layout(questions: &[Question]) -> Vec<FormPart> {
    let all = || questions.iter().enumerate();
    let whole: Vec<FormPart> = all()
        .flat_map(|(at, asked)| {
            let select = (!asked.options.is_empty()).then(|| FormPart::select(at, asked));
            let words = asked.takes_words().then(|| FormPart::of(FormInput::Words(at)));
            select.into_iter().chain(words)
        })
        .collect();
    if whole.len() <= FORM_PARTS_MAX {
        return whole;
    }
    let one = |(at, asked): (usize, &Question)| match (asked.options.is_empty(), asked.free) {
        (true, _) => FormPart::of(FormInput::Words(at)),
        (false, true) if questions.len() == FORM_PARTS_MAX => FormPart::of(FormInput::Typed(at)),
        (false, _) => FormPart::select(at, asked),
    };
    let mut parts: Vec<FormPart> = all().map(one).collect();
    if parts.len() < FORM_PARTS_MAX {
        parts.push(FormPart::of(FormInput::Lines));
    }
    if parts.len() > FORM_PARTS_MAX {
        parts = vec![FormPart {
            options: questions.len().min(SELECT_OPTIONS_MAX),
            ..FormPart::of(FormInput::Lines)
        }];
    }
    parts
}

/// A question as a text of the message: its name (`numbered`), its text, and its options in a numbered list. Options
/// that do not fit are counted.
#[must_use]
pub fn display(
    question: &Question,
    at: usize,
    numbered: bool,
    options: bool,
    units_max: usize,
) -> Value {
    let mut lines = Vec::new();
    if numbered {
        let name = inline(&question.name(), HEADER_CHARS_MAX);
        lines.push(format!("**{}. {name}**", at + 1));
    }
    // Half for the question's text, in which every character may be escaped and take three bytes.
    let words = (units_max / 6).min(QUESTION_UNITS_MAX);
    lines.push(format!("> {}", inline(&question.text, words)));
    let mut used: usize = lines.iter().map(|line| cost(line)).sum();
    let all = question.options.iter().enumerate().filter(|_| options);
    let mut listed = 0;
    for (n, option) in all {
        let label = inline(&option.label, FORM_HINT_UNITS_MAX);
        let mut line = format!("{}. {label}", n + 1);
        if !is_blank(&option.description) {
            line.push_str(DASH);
            line.push_str(&inline(&option.description, FORM_HINT_UNITS_MAX));
        }
        if used + cost(&line) > units_max {
            break;
        }
        used += cost(&line);
        lines.push(line);
        listed += 1;
    }
    if options && listed < question.options.len() {
        lines.push(format!("-# {} more options cannot be shown.", question.options.len() - listed));
    }
    json!({"type": 10, "id": FIRST_TEXT_ID + at as u64, "content": lines.join("\n")})
}

/// The contents of a question's text in the message.
#[derive(Debug, Default, PartialEq, Eq)]
struct QuestionText {
    name: String,
    words: String,
    options: Vec<(String, String)>,
}

/// Parses a question's text.
fn said(components: &[Value], at: usize) -> QuestionText {
    let mut said = QuestionText::default();
    let Some(content) = content(components, FIRST_TEXT_ID + at as u64) else {
        return said;
    };
    for line in content.lines() {
        if let Some(name) = line.strip_prefix("**") {
            said.name = plain(name.trim_end_matches('*'));
        } else if let Some(words) = line.strip_prefix("> ") {
            said.words = plain(words);
        } else if let Some(option) = line.strip_prefix(&format!("{}. ", said.options.len() + 1)) {
            let (label, description) = option.split_once(DASH).unwrap_or((option, ""));
            said.options.push((plain(label), plain(description)));
        }
    }
    said
}

/// Content of the text display with this id.
pub(super) fn content(components: &[Value], id: u64) -> Option<&str> {
    components.iter().find_map(|part| {
        if part["type"] == 10 && part["id"] == id {
            return part["content"].as_str();
        }
        content(part["components"].as_array()?, id)
    })
}

/// The form, with the texts of the clicked message.
#[must_use]
pub fn open(ask: &AskId, parts: &[FormPart], components: &[Value]) -> HttpAnswer {
    let fields: Vec<Value> =
        parts.iter().take(FORM_PARTS_MAX).map(|part| field(part, parts, components)).collect();
    let id = CustomId::Answer { ask: ask.to_owned() };
    HttpAnswer::json(
        &json!({"type": 9, "data": {"custom_id": id.text(), "title": "Answer the agent", "components": fields}}),
    )
}

fn field(part: &FormPart, parts: &[FormPart], components: &[Value]) -> Value {
    let id = part.input.word();
    let shares = parts.iter().any(|other| other.input == FormInput::Lines);
    match part.input {
        FormInput::Select(at) => {
            let said = said(components, at);
            let entries: Vec<Value> = (0..part.options.max(1))
                .map(|n| {
                    let (label, description) = said.options.get(n).cloned().unwrap_or_default();
                    entry(&label, &description, n)
                })
                .collect();
            let most = if part.multiple { entries.len() } else { 1 };
            let beside = parts.iter().any(|other| other.input == FormInput::Words(at));
            let required = !(beside || shares);
            let placeholder = match (required, part.multiple) {
                (true, true) => "Choose one or more",
                (true, false) => "Choose an answer",
                (false, _) if beside => "Required: choose here, or write below",
                (false, _) => "Required: choose here, or write at the end",
            };
            let select = json!({"type": 3, "custom_id": id, "options": entries, "required": required,
                "min_values": usize::from(required), "max_values": most,
                "placeholder": placeholder});
            labelled(&heading(&said, at), &said.words, select)
        }
        FormInput::Words(at) => {
            let said = said(components, at);
            let beside = parts.iter().any(|other| other.input == FormInput::Select(at));
            let mut text = text_input(&id, WORDS_CHARS_MAX, !beside, "");
            text["style"] = json!(if beside { ONE_LINE } else { LINES });
            match (beside, parts.len()) {
                (true, _) => labelled("Or in your own words", "", text),
                (false, 1) => labelled("Your answer", &said.words, text),
                (false, _) => labelled(&heading(&said, at), &said.words, text),
            }
        }
        FormInput::Typed(at) => {
            let said = said(components, at);
            let mut text = text_input(&id, WORDS_CHARS_MAX, true, "");
            text["placeholder"] = json!("The number of an option, or your own words");
            labelled(&heading(&said, at), &said.words, text)
        }
        FormInput::Lines if part.options == 0 => labelled(
            "In your own words",
            "If no option fits: a line like “2: your words”",
            text_input(&id, FORM_TEXT_UNITS_MAX, false, ""),
        ),
        FormInput::Lines => {
            let lines: Vec<String> = (1..=part.options).map(|n| format!("{n}: ")).collect();
            labelled(
                "Your answers",
                "After each number: the number of an option, or your own words",
                text_input(&id, FORM_TEXT_UNITS_MAX, true, &lines.join("\n")),
            )
        }
    }
}

fn heading(said: &QuestionText, at: usize) -> String {
    if is_blank(&said.name) { format!("Question {}", at + 1) } else { said.name.clone() }
}

pub(super) fn one_line_input(id: &str, units_max: usize, required: bool, value: &str) -> Value {
    let mut text = text_input(id, units_max, required, value);
    text["style"] = json!(ONE_LINE);
    text
}

pub(super) fn text_input(id: &str, units_max: usize, required: bool, value: &str) -> Value {
    let mut text = json!({"type": 4, "custom_id": id, "style": LINES, "max_length": units_max, "required": required});
    if !value.is_empty() {
        text["value"] = json!(value);
    }
    text
}

pub(super) fn labelled(label: &str, description: &str, component: Value) -> Value {
    let mut part =
        json!({"type": 18, "label": shorten(label, FORM_LABEL_UNITS_MAX), "component": component});
    let description = shorten(description, FORM_HINT_UNITS_MAX);
    if units(&description) > 0 && !is_blank(&description) {
        part["description"] = json!(description);
    }
    part
}

/// The fields filled in; `None` if any of them is not ours.
#[must_use]
pub fn filled(modal: &Modal) -> Option<Vec<Field>> {
    let inputs = modal.components.iter().flat_map(|part| {
        let old = part.components.iter();
        part.component.as_deref().into_iter().chain(old)
    });
    inputs
        .map(|field| {
            let text = field.value.as_str().unwrap_or_default();
            FormInput::parse(&field.custom_id)?.filled(&field.values, text)
        })
        .collect()
}

/// How much of the bounds a text uses, in units; a text of many bytes counts as more units.
pub(super) fn cost(text: &str) -> usize {
    let by_bytes = (text.len() + 12) * TEXT_DISPLAY_UNITS_MAX / TEXT_DISPLAY_BYTES_MAX;
    units(text).max(by_bytes + 1)
}

/// An option of a select; a long label continues in the description.
pub(super) fn entry(option: &str, description: &str, index: usize) -> Value {
    let name = label(option, index, OPTION_LABEL_UNITS_MAX);
    let whole = one_line(&visible(option));
    let rest =
        name.strip_suffix('…').and_then(|shown| whole.strip_prefix(shown)).unwrap_or_default();
    let more = shorten(
        format!("{} {}", rest.trim(), one_line(&visible(description))).trim(),
        OPTION_LABEL_UNITS_MAX,
    );
    let mut entry = json!({"label": name, "value": Press::Option(index).word()});
    if !is_blank(&more) {
        entry["description"] = json!(more);
    }
    entry
}

/// The label of an option; a blank one gets a number.
pub(super) fn label(option: &str, index: usize, units_max: usize) -> String {
    let label = shorten(&one_line(&visible(option)), units_max);
    if is_blank(option) { format!("Option {}", index + 1) } else { label }
}

#[cfg(test)]
mod tests {
    use bobbin_core::records::ask::Opt;

    use super::*;
    use crate::discord::check::{CALLBACK, assert_fits};

    fn question(labels: &[&str], free: bool) -> Question {
        let options = labels.iter().map(|label| Opt {
            label: (*label).to_owned(),
            description: format!("what *{label}* means"),
        });
        Question {
            header: "D_B".to_owned(),
            text: "Which [one] <@1>?".to_owned(),
            options: options.collect(),
            multiple: labels.len() > 2,
            free,
        }
    }

    fn words(parts: &[FormPart]) -> Vec<String> {
        parts.iter().map(FormPart::text).collect()
    }

    #[test]
    fn form_layout_degrades_to_fit() {
        let free = || question(&["a", "b"], true);
        let fixed = || question(&["a", "b", "c"], false);
        let open = || question(&[], true);
        assert_eq!(words(&layout(&[free(), open(), fixed()])), ["s0.2", "w0.0", "w1.0", "m2.3"]);
        assert_eq!(words(&layout(&[free(), free(), free()])), ["s0.2", "s1.2", "s2.2", "x.0"]);
        let five = [free(), fixed(), open(), free(), free()];
        assert_eq!(words(&layout(&five)), ["n0.0", "m1.3", "w2.0", "n3.0", "n4.0"]);
        assert_eq!(words(&layout(&vec![fixed(); 5])), vec!["m0.3", "m1.3", "m2.3", "m3.3", "m4.3"]);
        assert_eq!(words(&layout(&vec![free(); 7])), ["x.7"]);
        assert_eq!(words(&layout(&[question(&["x"; 60], true), open()]))[0], "m0.25");
    }

    #[test]
    fn form_restores_original_question_text() {
        let asked = question(&["Post_gres", "a*b"], true);
        let shown = json!([{"type": 17, "components": [{"type": 10, "id": 2, "content": "x"}, display(&asked, 1, true, true, 2_000)]}]);
        let components = shown.as_array().expect("a list");
        let read = said(components, 1);
        assert_eq!((read.name.as_str(), read.words.as_str()), ("2. D_B", "Which [one] <@1>?"));
        let option = |label: &str| (label.to_owned(), format!("what *{label}* means"));
        assert_eq!(read.options, [option("Post_gres"), option("a*b")]);
        assert_eq!(said(components, 0), QuestionText::default());
        let parts = layout(&[question(&[], true), asked]);
        let body: Value =
            serde_json::from_str(&open(&"que_1".into(), &parts, components).body).expect("JSON");
        assert_fits(CALLBACK, "post", &body);
        let select = &body["data"]["components"][1];
        assert_eq!(select["label"], "2. D_B");
        assert_eq!(select["component"]["options"][0]["label"], "Post_gres");
        assert_eq!(select["component"]["options"][1]["description"], "what *a*b* means");
        assert_eq!(select["component"]["required"], false);
    }

    #[test]
    fn any_message_yields_valid_form() {
        for (parts, components) in [
            ("s0.25-m1.25-w0.0-n3.2-x.0", json!([])),
            ("x.10", json!([{"type": 10, "id": 100, "content": "**\n> \n1. \n2. x"}])),
            (
                "s0.2",
                json!([{"type": 10, "id": 100, "content": "**\u{200b}**\n> \n1. \n2. \u{200b} — \u{200b}"}]),
            ),
            ("s0.0", json!("odd")),
        ] {
            let parts: Vec<FormPart> =
                parts.split('-').map(|part| FormPart::parse(part).expect("a part")).collect();
            let components = components.as_array().map_or(&[][..], Vec::as_slice);
            let body: Value = serde_json::from_str(&open(&"que_1".into(), &parts, components).body)
                .expect("JSON");
            assert_fits(CALLBACK, "post", &body);
        }
    }
}
