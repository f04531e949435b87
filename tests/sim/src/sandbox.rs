//! A sandbox at the provider.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::base::ids::Ms;

use super::agent::Agent;
use super::project::Project;

#[derive(Debug, Clone)]
pub struct Sandbox {
    pub created_ms: Ms,
    /// It runs from this time on.
    pub(super) ready_ms: Ms,
    /// It is stopped at this time, used or not, unless somebody has that put off.
    pub(super) ends_ms: Option<Ms>,
    pub(super) stopped: bool,
    pub(super) broken: bool,
    /// The repository stands in it.
    pub(super) cloned: bool,
    pub(super) project: Project,
    pub(super) server: bool,
    /// The server takes what it is sent and never answers.
    pub(super) hangs: bool,
    /// Threads (by place) whose agent session is in it; that have a workspace of their own in it.
    pub(super) sessions: BTreeSet<usize>,
    pub(super) workspaces: BTreeSet<usize>,
    /// Its agents are run by the daemon, in sessions of its own.
    pub(super) is_native: bool,
    /// Changes of its files that no prompt made.
    pub changes: usize,
    /// Commits of its thread's branch that were brought into it, and after how many prompts.
    pub brought: BTreeMap<String, usize>,
    /// Each thread's own session of the agent.
    pub agents: BTreeMap<usize, Agent>,
}

impl Sandbox {
    /// The agent as this thread knows it.
    pub(super) fn agent(&mut self, place: usize) -> &mut Agent {
        let is_native = self.is_native;
        let agent = self.agents.entry(place);
        agent.or_insert_with(|| Agent::new(is_native))
    }

    /// The server went away, and with it what all threads' runs were at.
    pub(super) fn dies(&mut self, now_ms: Ms) {
        self.agents.values_mut().for_each(|agent| agent.dies(now_ms));
    }
}
