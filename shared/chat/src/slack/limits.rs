//! Every bound of Slack's side, unit in the name. Block Kit's are Slack's documented ones, counted here in UTF-16
//! units, which never undercounts.

/// Largest request body that is looked at (Slack's own stay far below).
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// A signature is valid this long before and after its timestamp (Slack's documentation: five minutes).
pub const CLOCK_SKEW_S_MAX: u64 = 300;
/// Files taken along from one message.
pub const FILES_MAX: usize = 20;
/// Longest id of a message (SQS: a deduplication id has at most 128 characters).
pub const MESSAGE_ID_CHARS_MAX: usize = 128;
/// Characters of what a person typed that are said back to them.
pub const ECHO_CHARS_MAX: usize = 60;

/// Text of a section.
pub const SECTION_UNITS_MAX: usize = 3_000;
/// One text element of a context block.
pub const CONTEXT_UNITS_MAX: usize = 2_000;
/// Label of a button.
pub const BUTTON_UNITS_MAX: usize = 75;
/// Label of an input block, and what stands below an input.
pub const LABEL_UNITS_MAX: usize = 150;
/// Label of an option.
pub const OPTION_UNITS_MAX: usize = 75;
/// Options of a select.
pub const OPTIONS_MAX: usize = 100;
/// All `markdown` blocks of a message together.
pub const MARKDOWN_UNITS_MAX: usize = 12_000;
/// The fallback text of a message; what is longer cannot be edited later.
pub const FALLBACK_UNITS_MAX: usize = 4_000;
/// Ids of asks; OpenCode's have 30 characters.
pub const ASK_ID_CHARS_MAX: usize = 128;
/// Value of a button.
pub const BUTTON_VALUE_CHARS_MAX: usize = 2_000;
/// Sections that show a command before the rest is only counted.
pub const SUBJECT_SECTIONS_MAX: usize = 3;
/// Text of a header.
pub const HEADER_UNITS_MAX: usize = 150;
/// Value of an option.
pub const OPTION_VALUE_UNITS_MAX: usize = 150;
/// Tasks of a plan.
pub const TASKS_MAX: usize = 50;
/// Title of a plan or of a task: what a stream takes of them, which is less than a message does.
pub const TASK_UNITS_MAX: usize = 256;
