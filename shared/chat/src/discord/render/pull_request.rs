//! The card of a pull request.

use bobbin_core::records::watch::PullRequestCard;
use serde_json::Value;

use crate::discord::components::{BLURPLE, GREEN, PRIMARY, RED, button, container, row, text};
use crate::discord::content::{inline, span};
use crate::discord::custom_id::CustomId;
use crate::pull_request::{
    FIX, NAME_UNITS_MAX, Tone, WHY_UNITS_MAX, lines, offered, title, tone,
};

pub(super) fn pull_request(card: &PullRequestCard) -> Value {
    let color = match tone(card) {
        Tone::Bad => RED,
        Tone::Good => GREEN,
        Tone::Neutral => BLURPLE,
    };
    let head = format!(
        "**{}** of {}, branch {}\n<{}>",
        title(card),
        span(&card.repository, NAME_UNITS_MAX),
        span(&card.branch, NAME_UNITS_MAX),
        card.at.page,
    );
    let code = |name: &str| span(name, NAME_UNITS_MAX);
    let words = |said: &str| inline(said, WHY_UNITS_MAX);
    let mut parts = vec![text(&head), text(&lines(card, code, words).join("\n"))];
    if let Some(name) = offered(card) {
        let fix = CustomId::Fix { name: name.to_owned() };
        parts.push(row(&[button(PRIMARY, FIX, &fix)]));
    }
    container(color, parts)
}
