//! Limits of the scripted model.

/// Body of one request, with room for images as data URLs.
pub(crate) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Actions per message; further ones are ignored.
pub(crate) const ACTIONS_MAX: usize = 50;
/// Longest duration of one `slow`.
pub(crate) const SLOW_SECONDS_MAX: f64 = 3_600.0;
/// Longest `long` answer.
pub(crate) const LONG_CHARS_MAX: usize = 200_000;
/// Questions in one `question`.
pub(crate) const QUESTIONS_MAX: usize = 10;
/// Options of one `question`.
pub(crate) const OPTIONS_MAX: usize = 20;
/// A tool's output as repeated in the answer.
pub(crate) const REPORT_CHARS_MAX: usize = 1_200;
/// Names of offered tools kept per logged call.
pub(crate) const TOOLS_MAX: usize = 100;
/// Calls in the log; the oldest is dropped first.
pub(crate) const CALLS_MAX: usize = 1_000;
/// Longest text in the call log.
pub(crate) const CALL_TEXT_CHARS_MAX: usize = 2_000;
/// Keys that can be made.
pub(crate) const MADE_KEYS_MAX: usize = 1_000;
/// Hexadecimal digits of a key's digest in the log.
pub(crate) const KEY_DIGITS: usize = 16;
/// Characters per streamed chunk of a long text.
pub(crate) const CHUNK_CHARS_MAX: usize = 200;
/// Largest reported usage, so that no client thinks its context is full and compacts.
pub(crate) const USAGE_TOKENS_MAX: usize = 4_000;
/// How long a stop waits for open connections.
pub(crate) const STOP_MS_MAX: u64 = 2_000;

/// The first `chars_max` characters of `text`, with an ellipsis if cut.
pub(crate) fn bounded(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The last `chars_max` characters of `text`, with an ellipsis if cut.
pub(crate) fn ended(text: &str, chars_max: usize) -> String {
    match text.char_indices().rev().nth(chars_max.saturating_sub(1)) {
        Some((from, _)) if from > 0 => format!("…{}", &text[from..]),
        _ => text.to_owned(),
    }
}
