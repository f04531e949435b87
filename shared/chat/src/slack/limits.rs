//! All bounds of the Slack side, unit in the name. Block Kit's are Slack's documented ones, counted here in UTF-16
//! units, which never undercounts.

/// Largest request body that is read (Slack's own stay far below).
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// A signature is valid this long before and after its timestamp (Slack's documentation: five minutes).
pub const CLOCK_SKEW_S_MAX: u64 = 300;
/// Maximum number of files taken from one message.
pub const FILES_MAX: usize = 20;
/// Longest id of a message (SQS: a deduplication id has at most 128 characters).
pub const MESSAGE_ID_CHARS_MAX: usize = 128;
/// Characters of a person's text that are quoted back to them.
pub const ECHO_CHARS_MAX: usize = 60;

/// Length of a section's text.
pub const SECTION_UNITS_MAX: usize = 3_000;
/// Length of one text element in a context block.
pub const CONTEXT_UNITS_MAX: usize = 2_000;
/// Length of the text in an input.
pub const INPUT_UNITS_MAX: usize = 3_000;
/// Length of a button's label.
pub const BUTTON_UNITS_MAX: usize = 75;
/// Length of an input block's label, and of the hint below an input.
pub const LABEL_UNITS_MAX: usize = 150;
/// Length of an option's label.
pub const OPTION_UNITS_MAX: usize = 75;
/// Options of a select.
pub const OPTIONS_MAX: usize = 100;
/// Total length of a message's `markdown` blocks.
pub const MARKDOWN_UNITS_MAX: usize = 12_000;
/// Length of a message's fallback text; a longer one cannot be edited later.
pub const FALLBACK_UNITS_MAX: usize = 4_000;
/// Length of the text of a message without blocks.
pub const TEXT_UNITS_MAX: usize = 40_000;
/// Length of an ask's id; OpenCode's have 30 characters.
pub const ASK_ID_CHARS_MAX: usize = 128;
/// Length of a button's value.
pub const BUTTON_VALUE_CHARS_MAX: usize = 2_000;
/// Sections that show a command before the rest is only counted.
pub const SUBJECT_SECTIONS_MAX: usize = 3;
/// Length of a header's text.
pub const HEADER_UNITS_MAX: usize = 150;
/// Length of an option's value.
pub const OPTION_VALUE_UNITS_MAX: usize = 150;
/// Tasks of a plan.
pub const TASKS_MAX: usize = 50;
/// Length of the title of a plan or task: a stream takes less than a message.
pub const TASK_UNITS_MAX: usize = 256;
