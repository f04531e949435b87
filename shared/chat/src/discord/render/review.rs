//! What a pull request would publish. Its subject and its text have displays of their own, which the form reads back.

use bobbin_core::records::card::Review;
use serde_json::{Value, json};

use crate::discord::bounds::TEXT_DISPLAY_UNITS_MAX;
use crate::discord::components::{BLURPLE, PRIMARY, SECONDARY, button, container, row, text};
use crate::discord::content::{escaped, span};
use crate::discord::custom_id::CustomId;
use crate::discord::editing::{BODY_ID, EDIT, NO_BODY, SUBJECT_ID};
use crate::discord::form::cost;
use crate::review::{
    BLANK, BLANKS, commit, files, files_total, kept, label, label_of_all, title, too_long,
    warnings, written,
};

/// Maximum length of a name of a repository or branch.
const NAME_UNITS_MAX: usize = 255;
/// Room for the sentence about a text that is too long, the count of files, and a line that mentions people.
const AROUND_UNITS: usize = 400;

/// A review, with the button that publishes exactly this.
pub(super) fn review(review: &Review) -> Value {
    let name = |name: &str| span(name, NAME_UNITS_MAX);
    let head = format!(
        "**{}**\n{}: {} ← {}, commit {}",
        title(review),
        name(&review.repository),
        name(&review.into),
        name(&review.branch),
        name(commit(review)),
    );
    let proposal = &review.proposal;
    let subject = written(&proposal.subject);
    let has_blanks =
        [&proposal.subject, &proposal.body].iter().any(|text| written(text).contains(BLANK));
    let subject = format!("**{}**", escaped(&subject));
    let mut notes = warnings(review);
    if has_blanks {
        notes.push(format!("-# {BLANKS}"));
    }
    notes.push("-# Nothing is published before somebody presses the button.".to_owned());
    let notes = notes.join("\n");
    let used: usize = [&head, &subject, &notes].map(|text| cost(text)).iter().sum();
    let room = TEXT_DISPLAY_UNITS_MAX.saturating_sub(used + AROUND_UNITS);
    let (body, left_over) = kept(&proposal.body, |body| cost(&fenced(body)) <= room);
    let body = if body.trim().is_empty() { NO_BODY.to_owned() } else { fenced(&body) };
    let room = room.saturating_sub(cost(&body));
    let mut parts = vec![text(&head), display(SUBJECT_ID, &subject), display(BODY_ID, &body)];
    if left_over > 0 {
        parts.push(text(&format!("**{}**", too_long(left_over))));
    }
    parts.push(text(&listed(review, room)));
    parts.push(text(&notes));
    let publish = CustomId::Push { commit: proposal.commit.clone() };
    let publish = (left_over == 0).then(|| button(PRIMARY, label(review), &publish));
    let all = review.all.as_ref().filter(|_| left_over == 0).map(|offer| {
        button(SECONDARY, &label_of_all(offer), &CustomId::PushAll { name: offer.name.clone() })
    });
    let edit = CustomId::EditText { of: Some(proposal.commit.clone()) };
    let edit = button(SECONDARY, EDIT, &edit);
    parts.push(row(&publish.into_iter().chain(all).chain([edit]).collect::<Vec<_>>()));
    container(BLURPLE, parts)
}

fn listed(review: &Review, room: usize) -> String {
    let (lines, more) = files(review, room, cost);
    let mut out = format!("**{}**", files_total(review));
    if !lines.is_empty() {
        out.push('\n');
        out.push_str(&fenced(&lines.join("\n")));
    }
    if more > 0 && !lines.is_empty() {
        out.push_str(&format!("\n-# and {more} more"));
    }
    out
}

fn fenced(text: &str) -> String {
    format!("```\n{text}\n```")
}

fn display(id: u64, content: &str) -> Value {
    json!({"type": 10, "id": id, "content": content})
}
