//! How somebody is answered.

use serde::{Deserialize, Serialize};

/// A way to answer one person's request, for a while.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "platform", rename_all = "snake_case")]
pub enum Reply {
    /// Discord's interaction token, valid for 15 minutes.
    Discord {
        /// The id of the Discord application that was asked.
        application: String,
        /// The interaction's token: it edits this one answer and nothing else.
        token: String,
    },
    /// A message that only this person sees, in a Slack thread.
    Slack {
        /// The channel in which the message is shown.
        channel: String,
        /// Thread root, if any.
        thread_ts: Option<String>,
        /// The one person who sees it.
        user: String,
    },
    /// Nobody waits for words: who runs the stack reads the record.
    Nobody,
}
