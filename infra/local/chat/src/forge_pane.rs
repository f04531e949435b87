//! The laptop's forge as the page shows and uses it.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

/// The answer of a forge; the error says why, without advice.
pub type PaneAnswer<'f> = BoxFuture<'f, Result<Value, String>>;

/// A forge beside the chats. It is read only while its pane is open.
pub trait ForgePane: Send + Sync + 'static {
    /// Repositories as an array of objects with `full_name`, `branches` and `pull_requests`.
    fn repositories(&self) -> PaneAnswer<'_>;
    /// A pull request of `owner/name` as an object with `body` and `files`.
    fn pull_request(&self, repository: String, number: u64) -> PaneAnswer<'_>;
    /// Does what a person pressed, and answers what the page needs to go on.
    fn act(&self, wish: PaneRequest) -> PaneAnswer<'_>;
}

/// What a person presses in the pane, as the page sends it.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum PaneRequest {
    /// Makes a repository with a first commit; answers its `repository`.
    Create {
        /// Its name, without an owner.
        name: String,
        /// Only its people see it.
        private: bool,
    },
    /// Marks a draft as ready for review.
    Ready {
        /// `owner/name`.
        repository: String,
        /// The pull request's number.
        number: u64,
    },
    /// Merges a pull request.
    Merge {
        /// `owner/name`.
        repository: String,
        /// The pull request's number.
        number: u64,
        /// The head that was shown; another one is not merged.
        seen_sha: String,
    },
    /// Closes a pull request.
    Close {
        /// `owner/name`.
        repository: String,
        /// The pull request's number.
        number: u64,
    },
    /// Answers a `url` that opens the forge's own page once, with a person signed in.
    Open {
        /// `owner/name`.
        repository: String,
        /// A pull request of it.
        #[serde(default)]
        number: Option<u64>,
    },
}
