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
    /// The provider stops it at this time, used or not, unless it is extended.
    pub(super) ends_ms: Option<Ms>,
    pub(super) stopped: bool,
    pub(super) broken: bool,
    /// The repository is cloned.
    pub(super) cloned: bool,
    pub(super) project: Project,
    pub(super) server: bool,
    /// The server accepts requests and never answers.
    pub(super) hangs: bool,
    /// Threads (by place) with an agent session in it, and with a workspace in it.
    pub(super) sessions: BTreeSet<usize>,
    pub(super) workspaces: BTreeSet<usize>,
    /// The daemon runs its agents, in its own sessions.
    pub(super) is_native: bool,
    /// Changes of its files without a prompt.
    pub changes: usize,
    /// Commits of its thread's branch that were fetched into it, and after how many prompts.
    pub brought: BTreeMap<String, usize>,
    /// Each thread's own session of the agent.
    pub agents: BTreeMap<usize, Agent>,
}

impl Sandbox {
    /// This thread's agent.
    pub(super) fn agent(&mut self, place: usize) -> &mut Agent {
        let is_native = self.is_native;
        let agent = self.agents.entry(place);
        agent.or_insert_with(|| Agent::new(is_native))
    }

    /// The server stopped, and with it the runs of all threads.
    pub(super) fn dies(&mut self, now_ms: Ms) {
        self.agents.values_mut().for_each(|agent| agent.dies(now_ms));
    }
}
