//! Every bound of the scripted model.

/// Body of one request: room for images as data URLs.
pub(crate) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Actions taken from one message; what is beyond is left out.
pub(crate) const ACTIONS_MAX: usize = 50;
/// Time that one `slow` may take.
pub(crate) const SLOW_SECONDS_MAX: f64 = 3_600.0;
/// Length of one `long` answer.
pub(crate) const LONG_CHARS_MAX: usize = 200_000;
/// Questions asked together by one `question`.
pub(crate) const QUESTIONS_MAX: usize = 10;
/// Options of one `question`.
pub(crate) const OPTIONS_MAX: usize = 20;
/// A tool's output as repeated in the answer.
pub(crate) const REPORT_CHARS_MAX: usize = 1_200;
/// Names of offered tools that a call in the log keeps.
pub(crate) const TOOLS_MAX: usize = 100;
/// Calls that the log keeps; the oldest goes first.
pub(crate) const CALLS_MAX: usize = 1_000;
/// A text as kept in the call log.
pub(crate) const CALL_TEXT_CHARS_MAX: usize = 2_000;
/// Hexadecimal digits by which a key is known in the log.
pub(crate) const KEY_DIGITS: usize = 16;
/// Characters in one streamed chunk of a long text.
pub(crate) const CHUNK_CHARS_MAX: usize = 200;
/// The usage that is reported, so that no client thinks its context is full and compacts.
pub(crate) const USAGE_TOKENS_MAX: usize = 4_000;
/// Time that open connections get when the server stops.
pub(crate) const STOP_MS_MAX: u64 = 2_000;

/// The first `chars_max` characters of `text`, with an ellipsis where something was left out.
pub(crate) fn bounded(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The last `chars_max` characters of `text`, with an ellipsis where something was left out.
pub(crate) fn ended(text: &str, chars_max: usize) -> String {
    match text.char_indices().rev().nth(chars_max.saturating_sub(1)) {
        Some((from, _)) if from > 0 => format!("…{}", &text[from..]),
        _ => text.to_owned(),
    }
}
