//! A person's choices for a turn.

use serde::{Deserialize, Serialize};

use crate::base::ids::SandboxName;

/// Repository, model, agent and the like of a turn, as far as somebody chose them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Selection {
    /// Repository to clone, `owner/name` or an https address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Number of the pull request in that repository to work from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<u64>,
    /// The model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent, or its mode or persona, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The sandbox to work in, by its name; `None` means the thread's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxName>,
    /// The provider for a new sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The runtime mode of a new sandbox, by the name of a [`crate::tenant::runtime_mode::RuntimeMode`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The snapshot to create a new sandbox from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Work in the common checkout of a shared sandbox, and not in a worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_common: bool,
    /// How pull requests are opened, by the name of a [`PullRequests`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests: Option<String>,
    /// Who may have something pushed, by the name of a [`PullRequestsBy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests_by: Option<String>,
    /// Whether submodules come with a repository of the forge, by a word of [`SUBMODULES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submodules: Option<String>,
    /// Programs at the forge whose reviews count like those of people, as [`review_bots`] writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_bots: Option<String>,
}

/// Programs that one setting names.
const BOTS_MAX: usize = 10;
/// Longest name of one: GitHub's own bound for accounts.
const BOT_BYTES_MAX: usize = 39;

/// The names in a list of programs, apart from commas and spaces, without GitHub's `[bot]` behind them. Empty if one of
/// them cannot be a name, or there are too many.
#[must_use]
pub fn review_bots(list: &str) -> Vec<String> {
    let apart = list.split([',', ' ']).filter(|name| !name.is_empty());
    let names: Vec<String> = apart.map(bot_name).collect();
    let is_name = |name: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=BOT_BYTES_MAX).contains(&name.len()) && name.chars().all(plain)
    };
    if names.len() <= BOTS_MAX && names.iter().all(is_name) { names } else { Vec::new() }
}

/// The name of a program, as lists of them have it.
#[must_use]
pub fn bot_name(login: &str) -> String {
    let name = login.to_ascii_lowercase();
    name.strip_suffix("[bot]").unwrap_or(&name).to_owned()
}

/// Whether submodules come with a repository: the first word if nobody chose.
pub const SUBMODULES: [&str; 2] = ["no", "yes"];

/// How pull requests are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequests {
    /// As drafts.
    Draft,
    /// Ready for review.
    Ready,
    /// Not at all.
    Off,
}

impl PullRequests {
    /// The names that can be chosen.
    pub const NAMES: [&str; 3] = ["draft", "ready", "off"];

    /// The way with this name; drafts if nobody chose.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("ready") => Self::Ready,
            Some("off") => Self::Off,
            _ => Self::Draft,
        }
    }
}

/// Who may have something pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullRequestsBy {
    /// Whoever may use Bobbin in the channel.
    Everyone,
    /// Whoever has linked an account of their own that may push to the repository.
    Linked,
}

impl PullRequestsBy {
    /// The names that can be chosen.
    pub const NAMES: [&str; 2] = ["everyone", "linked"];

    /// The choice with this name; everyone if nobody chose.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("linked") => Self::Linked,
            _ => Self::Everyone,
        }
    }
}

impl Selection {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These choices, with those of `other` for what was not chosen.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let first = |a: &Option<String>, b: &Option<String>| a.clone().or_else(|| b.clone());
        Self {
            repo: first(&self.repo, &other.repo),
            pr: self.pr.or(other.pr),
            model: first(&self.model, &other.model),
            agent: first(&self.agent, &other.agent),
            sandbox: self.sandbox.clone().or_else(|| other.sandbox.clone()),
            provider: first(&self.provider, &other.provider),
            runtime: first(&self.runtime, &other.runtime),
            snapshot: first(&self.snapshot, &other.snapshot),
            in_common: self.in_common || other.in_common,
            pull_requests: first(&self.pull_requests, &other.pull_requests),
            pull_requests_by: first(&self.pull_requests_by, &other.pull_requests_by),
            submodules: first(&self.submodules, &other.submodules),
            review_bots: first(&self.review_bots, &other.review_bots),
        }
    }
}
