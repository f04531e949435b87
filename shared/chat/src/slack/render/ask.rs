//! A permission request or a question, and its lines of record once settled.

use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::{About, Ask, Opt, Question, WORDS_CHARS_MAX};
use serde_json::{Value, json};

use super::words::clock;
use crate::press::{FEW_OPTIONS, FormInput, Press};
use crate::slack::actions::{ASK_ACTION, FIELD_ACTION, SEND};
use crate::slack::blocks::{RenderedBlocks, context, label, section};
use crate::slack::escape::{code_pieces, line, mrkdwn, quoted, units};
use crate::slack::limits::{
    ASK_ID_CHARS_MAX, BUTTON_UNITS_MAX, LABEL_UNITS_MAX, OPTION_UNITS_MAX, OPTIONS_MAX,
    SECTION_UNITS_MAX, SUBJECT_SECTIONS_MAX,
};

/// Maximum length of all lines of record; together with the question they fit into the fallback text.
const SETTLED_UNITS_MAX: usize = 1_500;
/// Maximum length of the line for one option.
const OPTION_LINE_UNITS_MAX: usize = 400;
/// Room for the line that counts the options not shown.
const LEFT_OUT_UNITS: usize = 60;
/// Maximum length of a pattern as shown.
const PATTERN_UNITS_MAX: usize = 120;
/// Maximum length of a permission's or question's title in the fallback text.
const TITLE_UNITS_MAX: usize = 2_000;

pub(super) fn ask(ask: &Ask, settled: Option<&str>) -> RenderedBlocks {
    let settled = settled.map(record);
    let (title, mut blocks) = match &ask.about {
        About::Permission { .. } => permission(&ask.about, settled.is_some()),
        About::Question { questions } => shown(questions, settled.is_some()),
    };
    match &settled {
        Some(words) => blocks.push(context(words)),
        None => {
            blocks.extend(if ask.id.is_empty() || ask.id.len() > ASK_ID_CHARS_MAX {
                vec![section("It cannot be shown with buttons, so it will count as no.")]
            } else {
                choices(ask)
            });
            let until = until(ask.expires_at_ms);
            blocks.push(context(&match &ask.about {
                About::Permission { .. } => {
                    format!("If nobody decides by {until}, it counts as no.")
                }
                About::Question { .. } => {
                    format!("If nobody answers by {until}, the agent gets no answer.")
                }
            }));
        }
    }
    let text = match &settled {
        Some(words) => format!("{title} {words}"),
        None => title,
    };
    RenderedBlocks { text, blocks }
}

/// The lines of record, never empty: who decided, and each answer below.
fn record(words: &str) -> String {
    let each = SETTLED_UNITS_MAX / words.lines().count().max(1) - 4;
    let mut lines = words.lines();
    let mut out = line(lines.next().unwrap_or_default(), each);
    for answer in lines {
        out.push_str("\n• ");
        out.push_str(&line(answer, each));
    }
    if out.trim().is_empty() { "Settled.".to_owned() } else { out }
}

fn permission(about: &About, settled: bool) -> (String, Vec<Value>) {
    let About::Permission { action, subject, left_out, places, always } = about else {
        return (String::new(), Vec::new());
    };
    let wants = match action.as_str() {
        "bash" => "run a command".to_owned(),
        "edit" => "change a file".to_owned(),
        "read" => "read a protected file".to_owned(),
        "external_directory" => "use a path outside of its folder".to_owned(),
        other => format!("use {}", line(other, 100)),
    };
    let title = format!("The agent wants to {wants}. Allow it?");
    let mut blocks = vec![section(&format!("*{title}*"))];
    if !subject.trim().is_empty() {
        let (pieces, left) = code_pieces(subject, SECTION_UNITS_MAX - 8, SUBJECT_SECTIONS_MAX);
        blocks.extend(pieces.iter().map(|piece| section(&format!("```\n{piece}\n```"))));
        let left = left + left_out;
        if left > 0 {
            blocks.push(context(&format!(
                "*{left} more characters are not shown.* Deny it if you do not know them."
            )));
        }
    }
    if !places.is_empty() {
        blocks.push(context(&format!("It reaches outside of its folder: {}", list(places))));
    }
    if !always.is_empty() && !settled {
        blocks.push(context(&format!(
            "“Allow Always” covers {} in this sandbox, until it is paused.",
            list(always)
        )));
    }
    (title, blocks)
}

fn list(patterns: &[String]) -> String {
    let spans = patterns.iter().map(|one| format!("`{}`", quoted(one, PATTERN_UNITS_MAX)));
    spans.collect::<Vec<_>>().join(", ")
}

/// The questions; options only if they do not fit into the buttons and inputs. Inputs come with their question.
fn shown(questions: &[Question], settled: bool) -> (String, Vec<Value>) {
    let mut blocks = Vec::new();
    let mut title = String::new();
    for (at, question) in questions.iter().enumerate() {
        let words = if question.text.trim().is_empty() {
            "The agent asks".to_owned()
        } else {
            mrkdwn(question.text.trim(), TITLE_UNITS_MAX)
        };
        if title.is_empty() {
            title.clone_from(&words);
        }
        if questions.len() > 1 {
            let name = line(&question.name(), LABEL_UNITS_MAX);
            blocks.push(section(&format!("*{}. {name}*\n{words}", at + 1)));
        } else {
            blocks.push(section(&words));
        }
        if !settled {
            blocks.extend(options(question));
            if questions.len() > 1 {
                blocks.extend(inputs(question, at, false));
            }
        }
    }
    if blocks.is_empty() {
        blocks.push(section("The agent asks"));
    }
    if title.is_empty() {
        title = "The agent asks".to_owned();
    } else if questions.len() > 1 {
        title = format!("The agent has {} questions.", questions.len());
    }
    (title, blocks)
}

/// The options in full, if a label or a description is too long for its place; and how many are not shown.
fn options(question: &Question) -> Option<Value> {
    let buttons = few(question);
    let long = |option: &Opt| {
        let cut = units(&option.label) > OPTION_UNITS_MAX
            || units(&option.description) > OPTION_UNITS_MAX;
        cut || (buttons && !option.description.is_empty())
    };
    let count = question.options.len();
    if !question.options.iter().any(long) {
        let more = count.saturating_sub(OPTIONS_MAX);
        return (more > 0).then(|| section(&format!("{more} more options cannot be shown.")));
    }
    let mut list = String::new();
    let mut listed = 0;
    for (n, option) in question.options.iter().enumerate() {
        let whole = match option.description.as_str() {
            "" => option.label.clone(),
            description => format!("{} — {description}", option.label),
        };
        let entry = format!("{}. {}\n", n + 1, line(&whole, OPTION_LINE_UNITS_MAX));
        if units(&list) + units(&entry) > SECTION_UNITS_MAX - LEFT_OUT_UNITS {
            break;
        }
        list.push_str(&entry);
        listed += 1;
    }
    if listed < count {
        list.push_str(&format!("{} more options cannot be shown in full.", count - listed));
    }
    Some(section(list.trim_end()))
}

fn few(question: &Question) -> bool {
    !question.multiple && (1..=FEW_OPTIONS).contains(&question.options.len())
}

/// The buttons: one per option for one question with few options, otherwise one that sends the inputs above it.
fn choices(ask: &Ask) -> Vec<Value> {
    let skip = || button(&ask.id, "reject", "Skip", None);
    let send = |text| button(&ask.id, SEND, text, Some("primary"));
    let mut blocks = Vec::new();
    let elements = match &ask.about {
        About::Permission { always, .. } => {
            let mut buttons = vec![button(&ask.id, "once", "Allow Once", Some("primary"))];
            if !always.is_empty() {
                buttons.push(button(&ask.id, "always", "Allow Always", None));
            }
            buttons.push(button(&ask.id, "reject", "Deny", Some("danger")));
            buttons
        }
        About::Question { questions } => match questions.as_slice() {
            [] => vec![skip()],
            [one] if few(one) => {
                let options = one.options.iter().enumerate();
                let mut buttons: Vec<Value> = options
                    .map(|(n, option)| {
                        button(&ask.id, &Press::Option(n).word(), &option.label, None)
                    })
                    .collect();
                if one.takes_words() {
                    blocks.push(actions("options", &buttons));
                    blocks.extend(inputs(one, 0, true));
                    buttons = vec![send("Send Other Answer")];
                }
                buttons.push(skip());
                buttons
            }
            [one] => {
                blocks.extend(inputs(one, 0, false));
                vec![send("Send Answer"), skip()]
            }
            _ => vec![send("Send Answers"), skip()],
        },
    };
    blocks.push(actions("decide", &elements));
    blocks
}

fn actions(name: &str, elements: &[Value]) -> Value {
    json!({ "type": "actions", "block_id": format!("{ASK_ACTION}:{name}"), "elements": elements })
}

fn button(ask: &AskId, word: &str, text: &str, style: Option<&str>) -> Value {
    let mut button = json!({
        "type": "button", "action_id": format!("{ASK_ACTION}:{word}"), "value": format!("{ask}:{word}"),
        "text": label(text, BUTTON_UNITS_MAX),
    });
    if let Some(style) = style {
        button["style"] = style.into();
    }
    button
}

/// The inputs of a question: a select for its options unless they are buttons, a text input for free text.
fn inputs(question: &Question, at: usize, buttons: bool) -> Vec<Value> {
    let mut blocks = Vec::new();
    let choice = !question.options.is_empty();
    if choice && !buttons {
        let (kind, placeholder) = if question.multiple {
            ("multi_static_select", "Choose one or more")
        } else {
            ("static_select", "Choose an answer")
        };
        let element = json!({ "type": kind, "options": entries(question), "placeholder": label(placeholder, OPTION_UNITS_MAX) });
        let name = if question.multiple { "Answers" } else { "Answer" };
        blocks.push(input(FormInput::Select(at), name, question.takes_words(), element));
    }
    if question.takes_words() {
        let element = json!({ "type": "plain_text_input", "multiline": !choice, "max_length": WORDS_CHARS_MAX });
        let name = match (choice, buttons) {
            (true, true) => "Other answer",
            (true, false) => "Or in your own words",
            (false, _) => "Answer",
        };
        blocks.push(input(FormInput::Words(at), name, choice, element));
    }
    blocks
}

fn entries(question: &Question) -> Vec<Value> {
    let one = |(n, option): (usize, &Opt)| {
        let mut entry = json!({ "text": label(&option.label, OPTION_UNITS_MAX), "value": Press::Option(n).word() });
        if !option.description.trim().is_empty() {
            entry["description"] = label(&option.description, OPTION_UNITS_MAX);
        }
        entry
    };
    let options = question.options.iter().take(OPTIONS_MAX).enumerate();
    options.map(one).collect()
}

fn input(input: FormInput, name: &str, optional: bool, mut element: Value) -> Value {
    let id = format!("{FIELD_ACTION}:{}", input.word());
    element["action_id"] = id.as_str().into();
    json!({ "type": "input", "block_id": id, "label": label(name, LABEL_UNITS_MAX), "optional": optional, "element": element })
}

/// A time that Slack shows in the reader's own time zone.
pub(super) fn until(at_ms: u64) -> String {
    format!("<!date^{}^{{time}}|{}>", at_ms / 1_000, clock(at_ms))
}
