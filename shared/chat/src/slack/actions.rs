//! The ids of the buttons and inputs on our messages, by which a click is recognised.

/// Action id of the Stop button; its value is the turn's id.
pub const STOP_ACTION: &str = "v1:stop";
/// Action id of the button that runs a turn's task again; its value is the turn's id.
pub const AGAIN_ACTION: &str = "v1:again";
/// Action id of the button that sends a waiting turn's prompt at once; its value is the turn's id.
pub const NOW_ACTION: &str = "v1:now";
/// Action id of the button that stops the running turn and withdraws waiting prompts; its value is the turn on whose
/// card it is.
pub const STOP_ALL_ACTION: &str = "v1:stopall";
/// Action id of the button that shows a turn's changes; its value is the turn's id.
pub const DIFF_ACTION: &str = "v1:diff";
/// Action id of the button that shows what the project's set-up has said; its value is the turn's id.
pub const SET_UP_LOG_ACTION: &str = "v1:set-up";
/// Action id of the button that shows what a pull request would publish; its value is the turn's id.
pub const PUBLISH_ACTION: &str = "v1:publish:show";
/// Action id of the button that begins a fix of a pull request; its value is the fix's name.
pub const FIX_ACTION: &str = "v1:publish:fix";
/// Action id of the button that publishes what its message shows; its value is the commit.
pub const PUSH_ACTION: &str = "v1:publish:push";
/// Action id of the button that publishes what was shown of several repositories; its value is the name of that.
pub const PUSH_ALL_ACTION: &str = "v1:publish:all";
/// Action id of the button that posts an agent's review; its value is the review's name.
pub const REVIEW_ACTION: &str = "v1:publish:review";
/// Begins the action of what is done with an open pull request; its word follows, and the value is the head.
pub const ACT_ACTION: &str = "v1:act:";
/// Action id of the button that has the edited texts shown; its value is the commit.
pub const EDIT_ACTION: &str = "v1:publish:edit";
/// Block id and action id of the inputs for them.
pub const SUBJECT_INPUT: &str = "v1:publish:subject";
pub const BODY_INPUT: &str = "v1:publish:body";
/// Prefix of the action ids that settle an ask; the value is `<ask id>:<once|always|reject|o<index>|send>`. Slack wants
/// distinct action ids in a block, so that name is appended to the action id as well.
pub const ASK_ACTION: &str = "v1:ask";
/// Prefix of the block id and action id of an input; the input's name follows.
pub const FIELD_ACTION: &str = "v1:field";
/// Name of the button that sends the inputs of its message.
pub const SEND: &str = "send";
/// Prefix of the action id of a button for another page of the list of sandboxes; the page number follows.
pub const PAGE_ACTION: &str = "v1:boxes:";
/// Prefix of the action id of an action on a sandbox of the list; the action's name follows.
pub const SANDBOX_ACTION: &str = "v1:box:";
/// Action id of the button that has a sandbox deleted, below what would be lost.
pub const DESTROY_ACTION: &str = "v1:destroy";
/// Action id of the button beside it, which keeps the sandbox.
pub const KEEP_ACTION: &str = "v1:keep";
/// Callback id of the message shortcut (see [`super::manifest`]).
pub(super) const SHORTCUT: &str = "send_to_bobbin";
