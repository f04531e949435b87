//! An agent's review of a pull request, with the button that posts exactly this.

use bobbin_core::records::card::ReviewCard;
use serde_json::json;

use crate::pull_review::{POST, comments, commit, left_out, may_be_posted, notes, title};
use crate::review::kept;
use crate::slack::actions::REVIEW_ACTION;
use crate::slack::blocks::{RenderedBlocks, context, label, section};
use crate::slack::escape::{code_pieces, line, quoted};
use crate::slack::limits::{BUTTON_UNITS_MAX, SECTION_UNITS_MAX};

/// Maximum length of a name of a repository.
const NAME_UNITS_MAX: usize = 255;
/// Sections that show the text.
const SECTIONS_MAX: usize = 5;
/// Room in a section for what stands around a text.
const AROUND_UNITS: usize = 100;

pub(super) fn pull_review(card: &ReviewCard) -> RenderedBlocks {
    let name = |name: &str| format!("`{}`", quoted(name, NAME_UNITS_MAX));
    let head = format!(
        "*{}* of {}, commit {}\n{}",
        title(card),
        name(&card.repository),
        name(commit(card)),
        comments(card),
    );
    let pieces = |text: &str| code_pieces(text, SECTION_UNITS_MAX - AROUND_UNITS, SECTIONS_MAX);
    let (said, left_over) = kept(&card.draft.text(), |text| pieces(text).1 == 0);
    let mut blocks = vec![section(&head)];
    blocks.extend(pieces(&said).0.iter().map(|piece| section(&format!("```\n{piece}\n```"))));
    let more = left_out(card, left_over);
    if !more.is_empty() {
        blocks.push(section(&format!("*{more}*")));
    }
    if may_be_posted(card, left_over) {
        let button = json!({
            "type": "button", "action_id": REVIEW_ACTION, "value": card.name, "style": "primary",
            "text": label(POST, BUTTON_UNITS_MAX),
        });
        blocks.push(json!({"type": "actions", "block_id": "v1:review", "elements": [button]}));
    }
    blocks.extend(notes(card).iter().map(|note| context(note)));
    let text = format!("{} of {}", title(card), line(&card.repository, NAME_UNITS_MAX));
    RenderedBlocks { text, blocks }
}
