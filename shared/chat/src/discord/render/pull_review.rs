//! An agent's review of a pull request, with the button that posts exactly this.

use bobbin_core::records::card::ReviewCard;
use serde_json::Value;

use crate::discord::bounds::TEXT_DISPLAY_UNITS_MAX;
use crate::discord::components::{BLURPLE, PRIMARY, button, container, row, text};
use crate::discord::content::span;
use crate::discord::custom_id::CustomId;
use crate::discord::form::cost;
use crate::pull_review::{POST, comments, commit, left_out, may_be_posted, notes, title};
use crate::review::kept;

/// Maximum length of a name of a repository.
const NAME_UNITS_MAX: usize = 255;
/// Room for a line that mentions people, and for the sentence about what is left out.
const AROUND_UNITS: usize = 300;

pub(super) fn pull_review(card: &ReviewCard) -> Value {
    let head = format!(
        "**{}** of {}, commit {}\n{}",
        title(card),
        span(&card.repository, NAME_UNITS_MAX),
        span(commit(card), NAME_UNITS_MAX),
        comments(card),
    );
    let notes: Vec<String> = notes(card).iter().map(|note| format!("-# {note}")).collect();
    let notes = notes.join("\n");
    let fenced = |text: &str| format!("```\n{text}\n```");
    let room = TEXT_DISPLAY_UNITS_MAX.saturating_sub(cost(&head) + cost(&notes) + AROUND_UNITS);
    let (said, left_over) = kept(&card.draft.text(), |said| cost(&fenced(said)) <= room);
    let mut parts = vec![text(&head), text(&fenced(&said))];
    let more = left_out(card, left_over);
    if !more.is_empty() {
        parts.push(text(&format!("**{more}**")));
    }
    parts.push(text(&notes));
    if may_be_posted(card, left_over) {
        let id = CustomId::Review { name: card.name.clone() };
        parts.push(row(&[button(PRIMARY, POST, &id)]));
    }
    container(BLURPLE, parts)
}
