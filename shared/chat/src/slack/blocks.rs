//! The building blocks of Slack messages: Block Kit's text, and the key of a post.

use serde_json::{Value, json};

use super::escape::plain_line;

/// `metadata.event_type` of every post of ours.
pub const EVENT_TYPE: &str = "bobbin";

/// A message's visible part.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedBlocks {
    /// For notifications and screen readers, escaped, at most 4,000 characters; without blocks all that is shown.
    pub text: String,
    /// Block Kit blocks, at most 50.
    pub blocks: Vec<Value>,
}

pub(super) fn metadata(key: &str) -> Value {
    json!({ "event_type": EVENT_TYPE, "event_payload": { "op_id": key } })
}

pub(super) fn section(text: &str) -> Value {
    json!({ "type": "section", "text": text_object(text) })
}

/// `verbatim`: Slack does not turn names and addresses in it into links or mentions.
pub(super) fn text_object(text: &str) -> Value {
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

pub(super) fn context(text: &str) -> Value {
    json!({ "type": "context", "elements": [text_object(text)] })
}

/// A text object without markup, never empty: for the label of a button or an option.
pub(super) fn label(text: &str, units_max: usize) -> Value {
    json!({ "type": "plain_text", "text": plain_line(text, units_max), "emoji": false })
}
