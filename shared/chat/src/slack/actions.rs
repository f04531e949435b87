//! The names of the buttons and inputs that our messages show, by which a click on them is known again.

/// Action id of the Stop button; its value is the turn's id.
pub const STOP_ACTION: &str = "v1:stop";
/// Action id of the button that runs a turn's task again; its value is the turn's id.
pub const AGAIN_ACTION: &str = "v1:again";
/// Action id of the button that sends a waiting turn's prompt at once; its value is the turn's id.
pub const NOW_ACTION: &str = "v1:now";
/// Action id of the button that stops what runs and withdraws what waits; its value is the turn on whose card it stands.
pub const STOP_ALL_ACTION: &str = "v1:stopall";
/// Action id of the button that shows what a turn changed; its value is the turn's id.
pub const DIFF_ACTION: &str = "v1:diff";
/// Beginning of the action id of what settles an ask; the value is `<ask id>:<once|always|reject|o<index>|send>`. Slack
/// wants distinct action ids in a block, so the word is appended to the action id as well.
pub const ASK_ACTION: &str = "v1:ask";
/// Beginning of the block id and action id of an input; the input's word follows.
pub const FIELD_ACTION: &str = "v1:field";
/// The word of the button that sends the inputs of its message.
pub const SEND: &str = "send";
/// Beginning of the action id of a button for another page of the list of sandboxes; its number follows.
pub const PAGE_ACTION: &str = "v1:boxes:";
/// Beginning of the action id of what can be done about a sandbox of the list; the word follows.
pub const SANDBOX_ACTION: &str = "v1:box:";
/// Action id of the button that has a sandbox deleted, below what would be lost.
pub const DESTROY_ACTION: &str = "v1:destroy";
/// Action id of the button beside it.
pub const KEEP_ACTION: &str = "v1:keep";
/// Callback id of the message shortcut (see [`super::manifest`]).
pub(super) const SHORTCUT: &str = "send_to_bobbin";
