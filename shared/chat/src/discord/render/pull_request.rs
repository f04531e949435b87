//! The card of a pull request.

use bobbin_core::records::watch::PullRequestCard;
use serde_json::Value;

use crate::discord::components::{
    BLURPLE, GREEN, PRIMARY, RED, SECONDARY, button, container, row, text,
};
use crate::discord::content::{inline, span};
use crate::discord::custom_id::CustomId;
use crate::pull_request::{
    CardTone, FIX, NAME_UNITS_MAX, WHY_UNITS_MAX, acts, lines, offered, title, tone,
};

pub(super) fn pull_request(card: &PullRequestCard) -> Value {
    let color = match tone(card) {
        CardTone::Bad => RED,
        CardTone::Good => GREEN,
        CardTone::Neutral => BLURPLE,
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
    let fix =
        offered(card).map(|name| button(PRIMARY, FIX, &CustomId::Fix { name: name.to_owned() }));
    let acts = acts(card).into_iter().map(|(act, head)| {
        button(SECONDARY, act.label(), &CustomId::Act { act, head: head.to_owned() })
    });
    let buttons: Vec<Value> = fix.into_iter().chain(acts).collect();
    if !buttons.is_empty() {
        parts.push(row(&buttons));
    }
    container(color, parts)
}
