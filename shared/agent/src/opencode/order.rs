//! The messages of a session in logical order, and which of them belong to one run.

use std::borrow::Cow;

use super::types::{OpenCodeMessage, Role};

/// Whether Bobbin minted this message id (see `PromptIds::mint`: twelve hex digits of time, fourteen of a hash).
/// OpenCode's own suffixes are base 62, so one of them looks like ours once in 10^8.
#[must_use]
pub fn is_minted(id: &str) -> bool {
    id.strip_prefix("msg_").is_some_and(|rest| {
        rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// The messages in logical order. OpenCode lists them by time, and a prompt that is sent again gets the new time
/// (measured on 1.18.33), which is after its answers: such a prompt is moved before the first message that names it as
/// its parent.
#[must_use]
pub fn in_order(messages: &[OpenCodeMessage]) -> Cow<'_, [OpenCodeMessage]> {
    let mut ordered = Cow::Borrowed(messages);
    for at in 0..messages.len() {
        let first = match &ordered[at] {
            message if is_ours(message) => {
                let answers =
                    |one: &OpenCodeMessage| one.info.parent_id.as_ref() == Some(&message.info.id);
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

/// Whether the list (ordered by [`in_order`]) contains the turn of this prompt from its beginning: the part read so far
/// may begin in the middle of it.
#[must_use]
pub fn is_whole(messages: &[OpenCodeMessage], prompt: &str) -> bool {
    let Some(at) = messages.iter().position(|one| one.info.id == prompt) else {
        return false;
    };
    // If it is the last, it may have been moved there, far behind its answers.
    let is_last = at + 1 == messages.len();
    at > 0 && (!is_last || messages[..at].iter().any(is_ours))
}

/// The messages of the prompt's turn, from a list in [`in_order`]: those after it, up to the next prompt of ours that
/// is not one of `further`, which were sent into the same run. OpenCode's own user messages (compaction) belong to the
/// turn, so `parentID` does not help. `None` if the prompt is not in the list.
#[must_use]
pub fn turn_of<'a>(
    messages: &'a [OpenCodeMessage],
    prompt: &str,
    further: &[String],
) -> Option<&'a [OpenCodeMessage]> {
    let start = messages.iter().position(|m| m.info.id == prompt)? + 1;
    let rest = &messages[start..];
    let end =
        rest.iter().position(|m| is_ours(m) && !further.contains(&m.info.id)).unwrap_or(rest.len());
    Some(&rest[..end])
}

pub(super) fn is_ours(message: &OpenCodeMessage) -> bool {
    message.info.role == Role::User && is_minted(&message.info.id)
}
