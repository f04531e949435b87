//! An answer as a stream (`chat.startStream`, `appendStream`, `stopStream`): the same text as a post, in pieces. The
//! key of the post comes with the end, because Slack takes metadata only there.

use bobbin_core::text::units;
use serde_json::{Value, json};

use crate::slack::blocks::metadata;
use crate::slack::escape::markdown;
use crate::slack::limits::MARKDOWN_UNITS_MAX;

/// Maximum number of pieces of one answer: each costs a call.
pub const PIECES_MAX: usize = 12;
/// Minimum length of a piece, in UTF-16 units.
const PIECE_UNITS_MIN: usize = 400;

/// Recipient of a stream; Slack requires it outside direct messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    pub user: String,
    /// Id of the team that the person belongs to.
    pub team: String,
}

/// The answer in pieces that begin at a line or a word; together they are the whole, as harmless as [`super::free`]'s.
#[must_use]
pub fn stream_pieces(text: &str) -> Vec<String> {
    let text = markdown(text, MARKDOWN_UNITS_MAX);
    let most = units(&text).div_ceil(PIECES_MAX).max(PIECE_UNITS_MIN);
    let (mut pieces, mut piece, mut length) = (Vec::new(), String::new(), 0);
    for word in text.split_inclusive(char::is_whitespace) {
        if length > 0 && length + units(word) > most {
            pieces.push(std::mem::take(&mut piece));
            length = 0;
        }
        piece.push_str(word);
        length += units(word);
    }
    pieces.push(piece);
    // With long words the pieces are shorter than they could be: the rest goes into the last one.
    let rest = pieces.split_off(pieces.len().min(PIECES_MAX));
    if let Some(last) = pieces.last_mut() {
        last.push_str(&rest.concat());
    }
    pieces
}

/// The arguments of `chat.startStream`.
#[must_use]
pub fn start_stream(channel: &str, root_ts: &str, to: &Recipient, piece: &str) -> Value {
    json!({ "channel": channel, "thread_ts": root_ts, "recipient_user_id": to.user, "recipient_team_id": to.team, "markdown_text": piece })
}

/// The arguments of `chat.appendStream`.
#[must_use]
pub fn append_stream(channel: &str, ts: &str, piece: &str) -> Value {
    json!({ "channel": channel, "ts": ts, "markdown_text": piece })
}

/// The arguments of `chat.stopStream`: from here on the message has its key.
#[must_use]
pub fn stop_stream(channel: &str, ts: &str, key: &str) -> Value {
    json!({ "channel": channel, "ts": ts, "metadata": metadata(key) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_pieces_are_few_and_complete() {
        let long = "word and\nword ".repeat(800);
        let pieces = stream_pieces(&long);
        assert_eq!(pieces.concat(), long);
        assert!((2..=PIECES_MAX).contains(&pieces.len()), "{}", pieces.len());
        assert_eq!(stream_pieces("short answer"), ["short answer"]);
        let unbroken = "x".repeat(5_000);
        assert_eq!(stream_pieces(&unbroken), [unbroken]);
        assert_eq!(stream_pieces("hey <!channel>"), ["hey &lt;!channel>"]);
    }
}
