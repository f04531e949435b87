//! Markdown as models write it and chats read it.

use pulldown_cmark::Options;

/// Extensions of CommonMark that are parsed.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
}
