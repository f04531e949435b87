//! The card of a pull request.

use bobbin_core::records::watch::PullRequestCard;

use serde_json::{Value, json};

use crate::pull_request::{FIX, NAME_UNITS_MAX, WHY_UNITS_MAX, acts, lines, offered, title};
use crate::slack::actions::{ACT_ACTION, FIX_ACTION};
use crate::slack::blocks::{RenderedBlocks, label, section};
use crate::slack::escape::{line, mrkdwn, quoted};
use crate::slack::limits::{BUTTON_UNITS_MAX, FALLBACK_UNITS_MAX};

pub(super) fn pull_request(card: &PullRequestCard) -> RenderedBlocks {
    let code = |name: &str| format!("`{}`", quoted(name, NAME_UNITS_MAX));
    let words = |said: &str| line(said, WHY_UNITS_MAX);
    let head = format!(
        "*{}* of {}, branch {}\n{}",
        title(card),
        code(&card.repository),
        code(&card.branch),
        mrkdwn(&card.at.page, FALLBACK_UNITS_MAX),
    );
    let said = lines(card, code, words).join("\n");
    let plain = |name: &str| line(name, NAME_UNITS_MAX);
    let text = format!("{}: {}", title(card), lines(card, plain, words).join(" "));
    let mut blocks = vec![section(&head), section(&said)];
    let fix = offered(card).map(|name| {
        json!({
            "type": "button", "action_id": FIX_ACTION, "value": name, "style": "primary",
            "text": label(FIX, BUTTON_UNITS_MAX),
        })
    });
    let acts = acts(card).into_iter().map(|(act, head)| {
        json!({
            "type": "button", "action_id": format!("{ACT_ACTION}{}", act.word()), "value": head,
            "text": label(act.label(), BUTTON_UNITS_MAX),
        })
    });
    let buttons: Vec<Value> = fix.into_iter().chain(acts).collect();
    if !buttons.is_empty() {
        blocks.push(json!({"type": "actions", "block_id": "v1:acts", "elements": buttons}));
    }
    RenderedBlocks { text, blocks }
}
