//! Ways to answer a person.

use serde::{Deserialize, Serialize};

/// A way to answer one person's request, for a limited time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "platform", rename_all = "snake_case")]
pub enum Reply {
    /// Discord's interaction token, valid for 15 minutes.
    Discord {
        /// Id of the Discord application that received the request.
        application: String,
        /// The interaction's token; it can edit only this one answer.
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
    /// Nobody waits for an answer: the operator reads the record.
    Nobody,
}
