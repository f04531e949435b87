//! The agent's answer, split into messages that the chat accepts.

use std::borrow::Cow;

use super::{Context, words};
use crate::records::run::{RunAnswer, RunEnd};
use crate::text::gist;

/// Characters (UTF-16 units) of an answer in the message beside its file.
const FILE_GIST_UNITS_MAX: usize = 1_200;

/// The parts of an answer; and the whole answer as a file if it is too long for messages.
pub(super) fn parts(answer: &RunAnswer, context: &Context<'_>) -> (Vec<String>, Option<String>) {
    let limits = context.delivery.limits;
    let text = match (answer.text.trim(), &answer.end) {
        ("", RunEnd::Rejected) => Cow::Borrowed(words::DECLINED),
        ("", RunEnd::Cut) => Cow::Borrowed(words::CUT_OFF),
        ("", _) => Cow::Borrowed(words::NO_TEXT),
        (text, RunEnd::Cut) => Cow::Owned(format!("{text}\n\n{}", words::CUT_OFF)),
        (text, RunEnd::Unexplained) => Cow::Owned(format!("{text}\n\n{}", words::MAYBE_INCOMPLETE)),
        (text, _) => Cow::Borrowed(text),
    };
    let text = text.as_ref();
    if text.chars().count() <= limits.chat.answer_chars {
        return ((context.delivery.split)(text), None);
    }
    // One message beside the file: people read it before they open the file.
    let gist = gist(text, FILE_GIST_UNITS_MAX);
    let mut parts = (context.delivery.split)(&gist);
    parts.truncate(1);
    (parts, Some(text.to_owned()))
}
