//! Markdown as models write it and chats read it.

use pulldown_cmark::Options;

/// What is read besides CommonMark.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
}
