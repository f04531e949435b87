//! An existing pull request that a thread works from.

use serde::{Deserialize, Serialize};

use crate::records::publication::PullRequestState;

/// The pull request whose head a sandbox was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GivenPull {
    /// Its number.
    pub number: u64,
    /// Its page.
    pub page: String,
    /// Its state when it was looked up last.
    pub state: PullRequestState,
    /// Short name of its branch; `None`: that is in another repository, or gone with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Short name of the branch into which it is to be merged.
    pub into: String,
    /// The commit of that branch from which it differs.
    pub into_commit: String,
}

impl GivenPull {
    /// Short name of the branch into which a thread's own work is proposed: the pull request's, while that is open and
    /// in the same repository.
    #[must_use]
    pub fn takes_work(&self) -> &str {
        let own = self.branch.as_deref().filter(|_| self.state == PullRequestState::Open);
        own.unwrap_or(&self.into)
    }
}

/// The answer of a forge about a pull request that was asked for by its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FoundPull {
    /// There is none with this number.
    Missing,
    /// It is there.
    There {
        /// What it is.
        pull: GivenPull,
        /// The newest commit of its branch.
        head: String,
    },
    /// The forge refuses it, and a retry does not help.
    Refused {
        /// The reason and what to do, for people.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_into_an_open_branch_here() {
        let mut pull = GivenPull {
            number: 12,
            page: String::new(),
            state: PullRequestState::Open,
            branch: Some("feature".to_owned()),
            into: "main".to_owned(),
            into_commit: "a".repeat(40),
        };
        assert_eq!(pull.takes_work(), "feature");
        pull.state = PullRequestState::Merged;
        assert_eq!(pull.takes_work(), "main");
        (pull.state, pull.branch) = (PullRequestState::Open, None);
        assert_eq!(pull.takes_work(), "main", "a fork's");
    }
}
