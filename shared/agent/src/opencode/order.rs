//! The messages of a session in the order in which they belong, and which of them are of one run.

use std::borrow::Cow;

use super::types::{Message, Role};

/// Whether Bobbin minted this message id (see `PromptIds::mint`: twelve hex digits of time, fourteen of a hash).
/// OpenCode's own tails are base 62, so that one of theirs looks like ours once in 10^8.
#[must_use]
pub fn is_minted(id: &str) -> bool {
    id.strip_prefix("msg_").is_some_and(|rest| {
        rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// The messages in the order in which they belong. OpenCode lists them by time, and the time of a prompt that is sent once
/// more is moved to then (measured on 1.18.33), behind what it was answered with: such a prompt goes before the first message
/// that names it as its parent.
#[must_use]
pub fn in_order(messages: &[Message]) -> Cow<'_, [Message]> {
    let mut ordered = Cow::Borrowed(messages);
    for at in 0..messages.len() {
        let first = match &ordered[at] {
            message if is_ours(message) => {
                let answers = |one: &Message| one.info.parent_id.as_ref() == Some(&message.info.id);
                ordered[..at].iter().position(answers)
            }
            _ => None,
        };
        if let Some(first) = first {
            ordered.to_mut()[first..=at].rotate_right(1);
        }
    }
    ordered
}

/// Whether the turn of this prompt stands in the list (as [`in_order`] has it) from its beginning on: what was read so far
/// may end in the middle of it.
#[must_use]
pub fn is_whole(messages: &[Message], prompt: &str) -> bool {
    let Some(at) = messages.iter().position(|one| one.info.id == prompt) else {
        return false;
    };
    // One that is the last may have been moved there, far behind what it was answered with.
    let is_last = at + 1 == messages.len();
    at > 0 && (!is_last || messages[..at].iter().any(is_ours))
}

/// The messages of the prompt's turn, of a list that is [`in_order`]: those after it, up to the next prompt of ours that is not one of `further`, which were
/// sent into the same run. OpenCode's own user messages (compaction) belong to the turn, so `parentID` says nothing. `None`
/// when the prompt is not in the list.
#[must_use]
pub fn turn_of<'a>(
    messages: &'a [Message],
    prompt: &str,
    further: &[String],
) -> Option<&'a [Message]> {
    let start = messages.iter().position(|m| m.info.id == prompt)? + 1;
    let rest = &messages[start..];
    let end =
        rest.iter().position(|m| is_ours(m) && !further.contains(&m.info.id)).unwrap_or(rest.len());
    Some(&rest[..end])
}

pub(super) fn is_ours(message: &Message) -> bool {
    message.info.role == Role::User && is_minted(&message.info.id)
}
