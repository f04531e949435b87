//! Discord's bounds (documentation of 2026-08, and what production showed beyond it), and a few of ours.

/// Largest interaction that is parsed (ours; real ones have some tens of kilobytes).
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Id of an interaction (ours; a snowflake has at most 20 digits, and with `open:` before it SQS takes 128).
pub const ID_CHARS_MAX: usize = 64;
/// How far a signature's timestamp may be from our clock, both ways (ours; Discord names no rule).
pub const WINDOW_S: u64 = 300;
/// Length of a message's `content`.
pub const CONTENT_UNITS_MAX: usize = 2_000;
/// Length at which answers are cut: leaves room for the line below a part that is posted beside its file.
pub const CHUNK_UNITS: usize = 1_900;
/// All text displays of a message together.
pub const TEXT_DISPLAY_UNITS_MAX: usize = 4_000;
/// Processed bytes of all text displays, each counted with 12 more; above about 10,170 Discord answers 500.
pub const TEXT_DISPLAY_BYTES_MAX: usize = 9_500;
/// Bytes that Discord adds for each text display.
pub const TEXT_DISPLAY_OVERHEAD_BYTES: usize = 12;
/// Components of a message, nested ones counted.
pub const COMPONENTS_MAX: usize = 40;
/// Options of a select.
pub const SELECT_OPTIONS_MAX: usize = 25;
/// Length of a button's label.
pub const BUTTON_LABEL_UNITS_MAX: usize = 80;
/// Length of an option's label in a select.
pub const OPTION_LABEL_UNITS_MAX: usize = 100;
/// Length of the id of a button or input.
pub const CUSTOM_ID_UNITS_MAX: usize = 100;
/// Length of a thread's name.
pub const THREAD_NAME_UNITS_MAX: usize = 100;
/// Parts of a form.
pub const FORM_PARTS_MAX: usize = 5;
/// Length of a form's title and of a part's label.
pub const FORM_LABEL_UNITS_MAX: usize = 45;
/// Length of the hint below a part's label and of the placeholder of a text input.
pub const FORM_HINT_UNITS_MAX: usize = 100;
/// Length of the text in a form's input.
pub const FORM_TEXT_UNITS_MAX: usize = 4_000;
/// Length of the text in a command's option.
pub const OPTION_TEXT_UNITS_MAX: usize = 6_000;
/// Files of one message or form.
pub const FILES_MAX: usize = 10;
/// Choices of a completion.
pub const CHOICES_MAX: usize = 25;
/// Length of the name and value of a completion's choice.
pub const CHOICE_UNITS_MAX: usize = 100;
/// Messages quoted beside a prompt (ours).
pub const QUOTES_MAX: usize = 5;
/// Length of one quoted message (ours; a message has at most 4,000).
pub const QUOTED_UNITS_MAX: usize = 4_000;
/// Length of a quoted message as shown in the thread (ours).
pub const QUOTED_SHOWN_UNITS_MAX: usize = 150;
/// Length of a prompt as quoted in the thread (ours).
pub const QUOTE_UNITS_MAX: usize = 1_500;
/// Length of a task as shown on its anchor line (ours).
pub const ANCHOR_UNITS_MAX: usize = 300;
/// Length of a person's name as shown (ours; Discord allows 32).
pub const NAME_UNITS_MAX: usize = 64;
/// Length of one step of a card (ours).
pub const STEP_UNITS_MAX: usize = 160;
/// Length of a failure's reason on a card (ours).
pub const REASON_UNITS_MAX: usize = 1_200;
/// Length of an ask's command (ours).
pub const SUBJECT_UNITS_MAX: usize = 2_000;
/// Length of an ask's question (ours).
pub const QUESTION_UNITS_MAX: usize = 1_000;
/// Length of all lines about who settled an ask and how (ours).
pub const SETTLED_UNITS_MAX: usize = 1_200;
