//! The card of a pull request.

use bobbin_core::records::watch::PullRequestCard;

use crate::pull_request::{NAME_UNITS_MAX, WHY_UNITS_MAX, lines, title};
use crate::slack::blocks::{RenderedBlocks, section};
use crate::slack::escape::{line, mrkdwn, quoted};
use crate::slack::limits::FALLBACK_UNITS_MAX;

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
    RenderedBlocks { text, blocks: vec![section(&head), section(&said)] }
}
