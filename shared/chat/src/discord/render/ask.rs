//! A permission request or a question, and its text once it is settled.

use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::{About, Ask, Question};
use bobbin_core::text::{one_line, units};
use serde_json::{Value, json};

use crate::discord::bounds::{
    BUTTON_LABEL_UNITS_MAX, SELECT_OPTIONS_MAX, SETTLED_UNITS_MAX, STEP_UNITS_MAX,
    SUBJECT_UNITS_MAX, TEXT_DISPLAY_UNITS_MAX,
};
use crate::discord::components::{
    DANGER, GREY, PRIMARY, SECONDARY, SUCCESS, YELLOW, button, container, row, text,
};
use crate::discord::content::{code, inline, span};
use crate::discord::custom_id::CustomId;
use crate::discord::custom_id::FormPart;
use crate::discord::form::{self, cost, entry, label};
use crate::press::{FEW_OPTIONS, FormInput, Press};

/// Maximum length of a pattern as shown.
const PATTERN_UNITS_MAX: usize = 80;
/// Maximum lines about who decided what: one per question, and there are at most ten.
const RECORD_LINES_MAX: usize = 12;
/// Room for the title, the footer and the note about options that are not shown.
const AROUND_UNITS: usize = 600;

/// A permission request or question; once settled, shows who decided what instead of buttons.
#[must_use]
pub fn ask(ask: &Ask, settled: Option<&str>) -> Value {
    let mut parts = match &ask.about {
        About::Permission { .. } => permission(&ask.about, settled.is_some()),
        About::Question { questions } => shown(questions, settled.is_some()),
    };
    if settled.is_none() {
        parts.extend(match &ask.about {
            About::Permission { always, .. } => vec![decisions(&ask.id, !always.is_empty())],
            About::Question { questions } => answers(&ask.id, questions),
        });
    }
    parts.push(text(&match settled {
        Some(words) => record(words),
        None => {
            let (who, without) = match &ask.about {
                About::Permission { .. } => ("decide", "If nobody decides, it counts as no"),
                About::Question { .. } => ("answer", "If nobody answers, the agent gets no answer"),
            };
            format!(
                "-# Anybody who may use the sandbox here can {who}. {without} <t:{}:R>.",
                ask.expires_at_ms / 1000
            )
        }
    }));
    container(if settled.is_some() { GREY } else { YELLOW }, parts)
}

/// The decisions: the first line small, the others as a list below it.
fn record(words: &str) -> String {
    let count = words.lines().count().clamp(1, RECORD_LINES_MAX);
    // Every character may be escaped, hence half.
    let each = (SETTLED_UNITS_MAX / count / 2).min(STEP_UNITS_MAX);
    let mut lines = words.lines().take(RECORD_LINES_MAX);
    let first = inline(lines.next().unwrap_or_default(), each);
    let rest = lines.map(|line| format!("\n- {}", inline(line, each)));
    format!("-# Settled: {first}{}", rest.collect::<String>())
}

fn permission(about: &About, settled: bool) -> Vec<Value> {
    let About::Permission { action, subject, left_out, places, always } = about else {
        return Vec::new();
    };
    let mut parts = vec![
        text(&format!("**{}**", permission_title(action))),
        text(&code(subject, SUBJECT_UNITS_MAX, *left_out)),
    ];
    if !places.is_empty() {
        parts.push(text(&format!("It reaches outside of its folder: {}", list(places))));
    }
    if !always.is_empty() && !settled {
        parts.push(text(&format!(
            "-# “Allow always” covers {} in this sandbox, until it is paused.",
            list(always)
        )));
    }
    parts
}

fn list(patterns: &[String]) -> String {
    let spans = patterns.iter().map(|one| span(one, PATTERN_UNITS_MAX));
    spans.collect::<Vec<_>>().join(", ")
}

fn permission_title(action: &str) -> String {
    match action {
        "bash" => "The agent wants to run this command".to_owned(),
        "edit" | "write" => "The agent wants to change this file".to_owned(),
        "read" => "The agent wants to read this file".to_owned(),
        "external_directory" => "The agent wants to use a path outside of its folder".to_owned(),
        "webfetch" => "The agent wants to fetch this address".to_owned(),
        other => format!("The agent asks for permission: {}", inline(other, 60)),
    }
}

fn decisions(ask: &AskId, always: bool) -> Value {
    let mut buttons = vec![press(ask, SUCCESS, "Allow once", Press::Once)];
    if always {
        buttons.push(press(ask, SECONDARY, "Allow always", Press::Always));
    }
    buttons.push(press(ask, DANGER, "Deny", Press::Reject));
    row(&buttons)
}

fn press(ask: &AskId, style: u8, label: &str, press: Press) -> Value {
    let ask = ask.to_owned();
    button(style, label, &CustomId::Ask { ask, press })
}

/// The questions, each in its own text, which a form parses again; options only if they are not all on buttons.
fn shown(questions: &[Question], settled: bool) -> Vec<Value> {
    let title = match questions.len() {
        0 | 1 => "**The agent has a question**".to_owned(),
        n => format!("**The agent has {n} questions**"),
    };
    let mut parts = vec![text(&title)];
    let taken = AROUND_UNITS + if settled { SETTLED_UNITS_MAX } else { 0 };
    let mut room = TEXT_DISPLAY_UNITS_MAX.saturating_sub(taken);
    for (at, question) in questions.iter().enumerate() {
        let share = room / (questions.len() - at);
        let one = questions.len() == 1;
        let options = !(settled || one && shown_by_buttons(question));
        let display = form::display(question, at, !one, options, share);
        let content = display["content"].as_str().unwrap_or_default();
        room = room.saturating_sub(cost(content));
        parts.push(display);
    }
    parts
}

fn few(question: &Question) -> bool {
    let fits = |label: &String| units(&one_line(label)) <= BUTTON_LABEL_UNITS_MAX;
    !question.multiple
        && (1..=FEW_OPTIONS).contains(&question.options.len())
        && question.options.iter().all(|option| fits(&option.label))
}

fn shown_by_buttons(question: &Question) -> bool {
    few(question) && question.options.iter().all(|o| o.description.is_empty())
}

/// Buttons for one question with few options, a list for more, a form for several questions and free text.
fn answers(ask: &AskId, questions: &[Question]) -> Vec<Value> {
    let skip = press(ask, SECONDARY, "Skip", Press::Reject);
    let open = |style: u8, label: &str, parts: Vec<FormPart>| {
        let ask = ask.to_owned();
        button(style, label, &CustomId::Form { ask, parts })
    };
    let question = match questions {
        [] => return vec![row(&[skip])],
        [one] => one,
        several => {
            return vec![row(&[open(PRIMARY, "Answer…", form::layout(several)), skip])];
        }
    };
    let words = vec![FormPart::of(FormInput::Words(0))];
    if question.options.is_empty() {
        return vec![row(&[open(PRIMARY, "Answer…", words), skip])];
    }
    let mut last = vec![skip];
    if question.takes_words() {
        last.insert(0, open(SECONDARY, "Other answer…", words));
    }
    let choice = if few(question) {
        let options = question.options.iter().enumerate();
        let one = |(n, option): (usize, &bobbin_core::records::ask::Opt)| {
            let label = label(&option.label, n, BUTTON_LABEL_UNITS_MAX);
            press(ask, PRIMARY, &label, Press::Option(n))
        };
        options.map(one).collect()
    } else {
        vec![select(ask, question)]
    };
    vec![row(&choice), row(&last)]
}

fn select(ask: &AskId, question: &Question) -> Value {
    let entries: Vec<Value> = question
        .options
        .iter()
        .take(SELECT_OPTIONS_MAX)
        .enumerate()
        .map(|(n, option)| entry(&option.label, &option.description, n))
        .collect();
    let pick = CustomId::Pick { ask: ask.to_owned() };
    let (most, placeholder) = if question.multiple {
        (entries.len(), "Choose one or more")
    } else {
        (1, "Choose an answer")
    };
    json!({"type": 3, "custom_id": pick.text(), "placeholder": placeholder, "options": entries, "min_values": 1, "max_values": most})
}
