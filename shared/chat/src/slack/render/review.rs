//! What a pull request would publish, with inputs for its subject and its text: Slack sends their values with each
//! click, so nothing has to open a form.

use bobbin_core::records::card::Review;
use bobbin_core::records::publication::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use serde_json::{Value, json};

use crate::review::{
    BLANK, BLANKS, TICK, commit, files, files_total, kept, label as publishing, label_of_all,
    title, too_long, warnings, written,
};
use crate::slack::actions::{BODY_INPUT, EDIT_ACTION, PUSH_ACTION, PUSH_ALL_ACTION, SUBJECT_INPUT};
use crate::slack::blocks::{RenderedBlocks, context, label, section};
use crate::slack::escape::{code_pieces, line, mrkdwn, quoted, units};
use crate::slack::limits::{
    BUTTON_UNITS_MAX, FALLBACK_UNITS_MAX, INPUT_UNITS_MAX, LABEL_UNITS_MAX, SECTION_UNITS_MAX,
};

/// Maximum length of a name of a repository or branch.
const NAME_UNITS_MAX: usize = 255;
/// Label of the button that sends the inputs.
const EDITED: &str = "Show edited text";
/// Sections that show a text.
const SECTIONS_MAX: usize = 5;
/// Room in a section for what stands around a text.
const AROUND_UNITS: usize = 100;

/// A review, with the button that publishes exactly this.
pub(super) fn review(review: &Review) -> RenderedBlocks {
    let name = |name: &str| format!("`{}`", quoted(name, NAME_UNITS_MAX));
    let proposal = &review.proposal;
    let subject = written(&proposal.subject);
    let (body, left_over) = kept(&proposal.body, fits);
    let mut blocks = vec![section(&format!(
        "*{}*\n{}: {} ← {}, commit {}",
        title(review),
        name(&review.repository),
        name(&review.into),
        name(&review.branch),
        name(commit(review)),
    ))];
    blocks.extend(code("Subject", &subject));
    if body.trim().is_empty() {
        blocks.push(section("Without a text."));
    } else {
        blocks.extend(code("Text", &body));
    }
    if left_over > 0 {
        blocks.push(section(&format!("*{}*", too_long(left_over))));
    }
    blocks.push(section(&listed(review)));
    let warnings = warnings(review);
    if !warnings.is_empty() {
        blocks.push(section(&warnings.join("\n")));
    }
    if subject.contains(BLANK) || body.contains(BLANK) {
        blocks.push(context(BLANKS));
    }
    if left_over == 0 {
        let button = button_of(PUSH_ACTION, publishing(review), &proposal.commit, Some("primary"));
        let all = review
            .all
            .as_ref()
            .map(|offer| button_of(PUSH_ALL_ACTION, &label_of_all(offer), &offer.name, None));
        blocks
            .push(actions("v1:publish:now", &[button].into_iter().chain(all).collect::<Vec<_>>()));
    }
    blocks.push(input(SUBJECT_INPUT, "Subject", &subject, SUBJECT_CHARS_MAX, false));
    blocks.push(input(BODY_INPUT, "Text", &body, BODY_CHARS_MAX, true));
    let edit = button_of(EDIT_ACTION, EDITED, &proposal.commit, None);
    blocks.push(actions("v1:publish:edited", &[edit]));
    blocks.push(context(&format!(
        "To change subject or text, edit them here and press *{EDITED}*. The other button publishes what stands above it."
    )));
    let text = format!(
        "{} of {}: {}",
        title(review),
        line(&review.repository, NAME_UNITS_MAX),
        line(&subject, FALLBACK_UNITS_MAX / 2),
    );
    RenderedBlocks { text, blocks }
}

/// Whether a text can be shown whole and fits into its input.
fn fits(text: &str) -> bool {
    let (_, left) = code_pieces(text, SECTION_UNITS_MAX - AROUND_UNITS, SECTIONS_MAX);
    left == 0 && units(text) <= INPUT_UNITS_MAX
}

fn code(name: &str, text: &str) -> Vec<Value> {
    let (pieces, _) = code_pieces(text, SECTION_UNITS_MAX - AROUND_UNITS, SECTIONS_MAX);
    let block = |(nth, piece): (usize, &String)| {
        let name = if nth == 0 { format!("*{name}*\n") } else { String::new() };
        section(&format!("{name}```\n{piece}\n```"))
    };
    pieces.iter().enumerate().map(block).collect()
}

fn listed(review: &Review) -> String {
    let cost = |text: &str| units(&mrkdwn(text, SECTION_UNITS_MAX));
    let (lines, more) = files(review, SECTION_UNITS_MAX - AROUND_UNITS, cost);
    let mut out = format!("*{}*", files_total(review));
    if !lines.is_empty() {
        out.push_str(&format!("\n```\n{}\n```", mrkdwn(&lines.join("\n"), SECTION_UNITS_MAX)));
    }
    if more > 0 && !lines.is_empty() {
        out.push_str(&format!("\nand {more} more"));
    }
    out
}

fn actions(id: &str, buttons: &[Value]) -> Value {
    json!({ "type": "actions", "block_id": id, "elements": buttons })
}

fn button_of(action: &str, words: &str, value: &str, style: Option<&str>) -> Value {
    let mut button = json!({
        "type": "button", "action_id": action, "value": value, "text": label(words, BUTTON_UNITS_MAX),
    });
    if let Some(style) = style {
        button["style"] = style.into();
    }
    button
}

fn input(id: &str, name: &str, value: &str, chars_max: usize, multiline: bool) -> Value {
    // Nothing in an input ends a block of code.
    let value = value.replace(TICK, "`");
    // A value longer than the bound would be refused; what is too long is told when it comes back.
    let bound = chars_max.max(units(&value)).min(INPUT_UNITS_MAX);
    let mut element = json!({ "type": "plain_text_input", "action_id": id, "multiline": multiline, "max_length": bound });
    if !value.is_empty() {
        element["initial_value"] = value.into();
    }
    json!({ "type": "input", "block_id": id, "label": label(name, LABEL_UNITS_MAX), "optional": multiline, "element": element })
}
