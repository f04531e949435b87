//! What Bobbin does below a pull request of its own: after a fix was begun or pushed, and when somebody asks there.

use serde::{Deserialize, Serialize};

/// One thing that Bobbin does there. A repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestResponse {
    /// Show that this was seen.
    Seen(Remark),
    /// Say this, unless it was said under its name.
    Say(NewRemark),
    /// Resolve the review thread with this id.
    Resolve {
        /// The forge's id of the thread.
        thread: String,
    },
    /// Ask these accounts for another review.
    AskForReview {
        /// Their names.
        logins: Vec<String>,
    },
}

/// Something that was written below a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// A comment of a review thread, by its id.
    Line(u64),
    /// A comment on the whole, by its id.
    Whole(u64),
}

/// A text to be said below a pull request. Its name is part of it, out of sight: a repeat finds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewRemark {
    /// The review thread's first comment; `None`: on the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// The name, of letters, digits and `-`.
    pub name: String,
    /// The text, in the forge's Markdown.
    pub body: String,
}
