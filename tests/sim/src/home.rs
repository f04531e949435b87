//! One of our sandboxes and what belongs to it: its record, the group of its lifecycle messages, its state at the
//! provider, and its servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::records::sandbox::{Phase, SandboxRecord, SandboxState, SnapshotSeen};
use bobbin_core::tenant::runtime_mode::RuntimeMode;

use super::due::Due;
use super::plan::Late;
use super::project::Project;
use super::queue::Entry;
use super::sandbox::Sandbox;
use super::services::silent;
use super::thread::SimThread;
use crate::promises::Fact;

/// The caller of the provider.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The thread that it works for.
    pub place: usize,
    /// Whether it works for that thread's turn.
    pub is_turn: bool,
}

/// One of our sandboxes.
#[derive(Default)]
pub struct Home {
    pub record: Option<SandboxRecord>,
    pub queue: VecDeque<Entry>,
    /// The provider's sandboxes, by generation.
    pub sandboxes: BTreeMap<u32, Sandbox>,
    /// Sandboxes that the provider hides, and until when.
    hidden: BTreeMap<u32, (Ms, Sandbox)>,
    /// Generations that were deleted.
    pub deleted: BTreeSet<u32>,
    /// Generations that a person asked to delete and somebody began to.
    pub unwanted: BTreeSet<u32>,
    /// A person asked to stop it, and somebody began to.
    pub pause_wanted: bool,
    /// When its record's phase was written, and when each turn that uses it began: workers' clocks differ.
    pub phase_kept_ms: Ms,
    pub uses: BTreeMap<(ThreadKey, TurnId), Ms>,
    /// When a sweep last checked whether the agent that uses it through tools is at work.
    pub looked_ms: Option<Ms>,
    /// The provider uses the wall clock: a sandbox runs this long from its start.
    pub session_ms: Option<u64>,
    /// It cannot be extended: it has reached its hard end.
    pub never_extends: bool,
    /// Snapshots at the provider, and when each is ready.
    pub snapshots: BTreeMap<String, Ms>,
    /// The wake-up that was requested last.
    pub wake_ms: Option<Ms>,
    /// Threads (by place) that have worked in it.
    pub users: BTreeSet<usize>,
    /// What happened to it, in any thread.
    pub facts: Vec<Fact>,
    /// When it is due.
    pub due: Due,
    /// Its servers are unreachable until this time.
    cut_until_ms: Ms,
}

impl Home {
    /// The home of this place's thread.
    pub fn of(place: usize) -> Self {
        Self { users: [place].into(), ..Self::default() }
    }

    /// Keeps a written record as the table does: observations are not kept.
    pub fn keep(&mut self, record: &SandboxRecord, now_ms: Ms, lag_ms: u64) {
        let stored = SandboxRecord::decode(&record.encode()).expect("a record can be read");
        if self.record.as_ref().is_none_or(|before| before.phase != stored.phase) {
            self.phase_kept_ms = now_ms;
        }
        let uses = stored.sharing.in_use.iter().map(|one| (one.thread.clone(), one.turn.clone()));
        let before = std::mem::take(&mut self.uses);
        let since_ms = |one: &(ThreadKey, TurnId)| before.get(one).copied().unwrap_or(now_ms);
        self.uses = uses.map(|one| (one.clone(), since_ms(&one))).collect();
        self.record = Some(stored);
        self.due.keep(record.due_at_ms, now_ms, lag_ms);
    }

    /// How many sandboxes of the record's present generation exist.
    pub fn live(&self) -> usize {
        let generation = self.record.as_ref().map_or(0, |record| record.generation);
        let all = self.sandboxes.keys();
        all.filter(|one| **one == generation).count()
    }

    /// The snapshot that was requested at this time.
    pub fn snapshot(
        &mut self,
        generation: u32,
        at_ms: Ms,
        (now_ms, takes_ms): (Ms, u64),
    ) -> Result<(String, SnapshotSeen), Failure> {
        if !self.sandboxes.contains_key(&generation) {
            return Err(Failure::SandboxGone);
        }
        let name = format!("snapshot-{generation}-{at_ms}");
        let ready_ms = *self.snapshots.entry(name.clone()).or_insert(now_ms + takes_ms);
        let seen = if ready_ms <= now_ms { SnapshotSeen::Ready } else { SnapshotSeen::UnderWay };
        Ok((name, seen))
    }

    /// Its state, as the provider reports it.
    pub fn stands(&self, generation: u32, now_ms: Ms) -> SandboxState {
        match self.sandboxes.get(&generation) {
            None => SandboxState::Gone,
            Some(sandbox) if sandbox.broken => {
                SandboxState::Broken { reason: "no capacity".to_owned(), recoverable: false }
            }
            Some(sandbox) if sandbox.ready_ms > now_ms => SandboxState::Provisioning,
            Some(sandbox) if sandbox.stopped => SandboxState::Stopped,
            Some(_) => SandboxState::Running,
        }
    }

    pub fn create(&mut self, generation: u32, now_ms: Ms, takes_ms: u64, broken: bool) {
        let ready_ms = now_ms + takes_ms;
        let recorded = self.record.as_ref().and_then(|one| one.spec.runtime.as_deref());
        let mode = RuntimeMode::of(RuntimeMode::OpenCode, recorded);
        self.sandboxes.entry(generation).or_insert(Sandbox {
            created_ms: now_ms,
            ready_ms,
            ends_ms: self.session_ms.map(|session_ms| ready_ms + session_ms),
            stopped: false,
            broken,
            cloned: false,
            project: Project::default(),
            server: false,
            hangs: false,
            sessions: BTreeSet::new(),
            workspaces: BTreeSet::new(),
            changes: 0,
            brought: BTreeMap::new(),
            is_native: mode == Ok(RuntimeMode::Native),
            agents: BTreeMap::new(),
        });
    }

    pub fn start(&mut self, generation: u32, now_ms: Ms, takes_ms: u64) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation).filter(|sandbox| sandbox.stopped)
        {
            sandbox.stopped = false;
            sandbox.ready_ms = now_ms + takes_ms;
            let ready_ms = sandbox.ready_ms;
            sandbox.ends_ms = self.session_ms.map(|session_ms| ready_ms + session_ms);
        }
    }

    /// The worker that follows a run tells the provider that work continues.
    pub fn extend(&mut self, generation: u32, now_ms: Ms) {
        if let (Some(session_ms), false) = (self.session_ms, self.never_extends)
            && let Some(sandbox) = self.sandboxes.get_mut(&generation)
        {
            sandbox.ends_ms = sandbox.ends_ms.max(Some(now_ms + session_ms));
        }
    }

    /// The generation whose agent server runs.
    pub fn serving(&self, now_ms: Ms) -> Option<u32> {
        let mut all = self.sandboxes.iter().rev();
        let serving =
            all.find(|(generation, one)| one.server && self.is_running(**generation, now_ms));
        serving.map(|(generation, _)| *generation)
    }

    /// Whether the provider says that it runs.
    pub fn is_running(&self, generation: u32, now_ms: Ms) -> bool {
        self.stands(generation, now_ms) == SandboxState::Running
    }

    /// Whether it has no agent, and so no server.
    fn is_bare(&self) -> bool {
        let recorded = self.record.as_ref().and_then(|one| one.spec.runtime.as_deref());
        RuntimeMode::recorded_as(recorded) == Some(RuntimeMode::Bare)
    }

    /// Whether the provider uses the wall clock.
    pub const fn is_clocked(&self) -> bool {
        self.session_ms.is_some()
    }

    /// When the next sandbox ends.
    pub fn next_end_ms(&self) -> Option<Ms> {
        let running = self.sandboxes.values().filter(|one| !one.stopped);
        running.filter_map(|one| one.ends_ms).min()
    }

    /// Stops the sandboxes whose time is over, even at work; true: there was one.
    pub fn time_is_over(&mut self, now_ms: Ms) -> bool {
        let is_over = |one: &Sandbox| !one.stopped && one.ends_ms.is_some_and(|at| at <= now_ms);
        let over: Vec<u32> = self
            .sandboxes
            .iter()
            .filter(|(_, one)| is_over(one))
            .map(|(generation, _)| *generation)
            .collect();
        for generation in &over {
            self.park(*generation, now_ms);
            self.facts.push(Fact::Disturbed { generation: *generation });
        }
        !over.is_empty()
    }

    /// A call reaches the provider. A stop or delete may wrongly hit a turn of one of these threads.
    pub fn land(&mut self, from: Caller, call: Late, threads: &mut [SimThread], now_ms: Ms) {
        match call {
            Late::Create(generation) => self.create(generation, now_ms, 1_000, false),
            Late::Stop(generation) => {
                self.hits(from, generation, threads, now_ms);
                self.park(generation, now_ms);
            }
            Late::Delete { generation, by_person } => {
                if !by_person {
                    self.hits(from, generation, threads, now_ms);
                }
                // The part of an answer that another thread's turn had not read yet is lost with it.
                if by_person || self.unwanted.contains(&generation) {
                    self.users.iter().for_each(|place| threads[*place].withheld());
                }
                self.deleted.insert(generation);
                self.sandboxes.remove(&generation);
            }
            Late::Abort(generation, messages) => {
                if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
                    sandbox.agent(from.place).abort(&messages, now_ms);
                }
            }
            Late::Push(call) => drop(threads[from.place].pushed(call)),
            Late::Request { branch, is_draft } => {
                threads[from.place].requested(&branch, is_draft);
            }
        }
    }

    /// What works in this generation, on record or in fact.
    fn hits(&mut self, from: Caller, generation: u32, threads: &mut [SimThread], now_ms: Ms) {
        // A person wants it deleted, no matter who does it.
        if self.unwanted.contains(&generation) {
            return;
        }
        let record = self.record.as_ref();
        // A turn that waits for its stop or deletion has nothing at work in it.
        let present = record.filter(|record| {
            let is_wanted =
                matches!(record.phase, Phase::Creating | Phase::Active | Phase::Resuming);
            record.generation == generation && is_wanted
        });
        for place in self.users.clone() {
            let thread = &mut threads[place];
            let turn = thread.record.as_ref().and_then(|session| session.turn.as_ref());
            let Some(turn) = turn.filter(|turn| !turn.stage.is_ending()) else {
                continue;
            };
            // Its own turn deletes a half-deleted sandbox to create it again.
            let is_own = from.is_turn && from.place == place;
            let in_use =
                present.is_some_and(|record| record.is_in_use_by(&thread.thread, &turn.id));
            let number = thread.turn(&turn.id);
            let sandbox = self.sandboxes.get(&generation);
            let agent = sandbox.and_then(|sandbox| sandbox.agents.get(&place));
            let mut runs = agent.into_iter().flat_map(|agent| agent.runs());
            let works = runs.any(|run| Some(run.turn) == number && run.goes_on(now_ms));
            if in_use && !is_own || works {
                let turn = number.unwrap_or(0);
                thread.history.facts.push(Fact::Hit { generation, turn });
            }
        }
    }

    fn park(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            (sandbox.stopped, sandbox.server) = (true, false);
            sandbox.project.stops();
            sandbox.dies(now_ms);
        }
    }

    pub fn lose(&mut self) {
        if let Some((generation, _)) = self.sandboxes.pop_last() {
            self.facts.push(Fact::Disturbed { generation });
        }
    }

    /// The provider hides the newest one until then, by name and in lists; meanwhile it does not run.
    pub fn hides(&mut self, now_ms: Ms, until_ms: Ms) {
        self.stops_by_itself(now_ms);
        if let Some((generation, sandbox)) = self.sandboxes.pop_last() {
            self.hidden.insert(generation, (until_ms, sandbox));
        }
    }

    /// Whether something is hidden.
    pub fn is_hiding(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Shows again what was hidden until now.
    pub fn shows_again(&mut self, now_ms: Ms) {
        let over = self.hidden.extract_if(.., |_, (until_ms, _)| *until_ms <= now_ms);
        let shown = over.map(|(generation, (_, sandbox))| (generation, sandbox));
        self.sandboxes.extend(shown);
    }

    pub fn server_dies(&mut self, now_ms: Ms) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            let sandbox = sandbox.get_mut();
            sandbox.server = false;
            sandbox.dies(now_ms);
        }
    }

    /// Its servers are unreachable for a while; what runs there continues.
    pub fn cut(&mut self, until_ms: Ms) {
        self.cut_until_ms = until_ms;
    }

    /// A server is ended and started again, even if it is unreachable.
    pub fn restart(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            sandbox.dies(now_ms);
        }
    }

    /// How much longer its servers are unreachable.
    pub fn cut_ms(&self, now_ms: Ms) -> u64 {
        self.cut_until_ms.saturating_sub(now_ms)
    }

    pub fn hangs(&mut self) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            sandbox.get_mut().hangs = true;
        }
    }

    pub fn is_hanging(&self, generation: u32) -> bool {
        let sandbox = self.sandboxes.get(&generation);
        sandbox.is_some_and(|sandbox| sandbox.hangs && sandbox.server && !sandbox.stopped)
    }

    pub fn stops_by_itself(&mut self, now_ms: Ms) {
        if let Some(generation) = self.sandboxes.last_key_value().map(|(generation, _)| *generation)
        {
            self.park(generation, now_ms);
            self.facts.push(Fact::Disturbed { generation });
        }
    }

    /// The sandbox's server, if it is reachable.
    pub(super) fn server(&mut self, generation: u32, now_ms: Ms) -> Result<&mut Sandbox, Failure> {
        let is_cut = self.cut_ms(now_ms) > 0;
        match self.sandboxes.get_mut(&generation) {
            None => Err(Failure::SandboxGone),
            Some(sandbox)
                if sandbox.server
                    && !is_cut
                    && !sandbox.hangs
                    && !sandbox.stopped
                    && sandbox.ready_ms <= now_ms
                    && !sandbox.broken =>
            {
                Ok(sandbox)
            }
            Some(_) => Err(silent()),
        }
    }

    pub fn check_server(&mut self, generation: u32, now_ms: Ms) -> Result<(), Failure> {
        if self.is_bare() {
            return match self.stands(generation, now_ms) {
                SandboxState::Running => Ok(()),
                SandboxState::Gone => Err(Failure::SandboxGone),
                _ => Err(silent()),
            };
        }
        // A server that does not answer says nothing about its sandbox.
        self.server(generation, now_ms).map(drop).map_err(|_| silent())
    }

    /// The repository is cloned into the sandbox, unless it was there already. Whether no set-up has begun there.
    pub fn clone_into(&mut self, generation: u32) -> bool {
        self.sandboxes.get_mut(&generation).is_some_and(|sandbox| {
            sandbox.cloned = true;
            !sandbox.project.has_begun()
        })
    }

    /// The newest sandbox's services were started since its last start.
    pub fn is_project_started(&self) -> bool {
        self.sandboxes.last_key_value().is_some_and(|(_, sandbox)| sandbox.project.is_started)
    }

    /// The project of a sandbox.
    pub fn project(&mut self, generation: u32) -> Option<&mut Project> {
        self.sandboxes.get_mut(&generation).map(|sandbox| &mut sandbox.project)
    }

    /// Starts the agent's server, unless it runs.
    pub fn serve(&mut self, generation: u32, now_ms: Ms) {
        let record = self.record.as_ref();
        let wants =
            record.is_some_and(|record| record.project.repo.is_some() && !record.works_elsewhere());
        let Some(sandbox) = self.sandboxes.get_mut(&generation) else {
            return;
        };
        if wants && !sandbox.cloned {
            self.facts.push(Fact::Spent {
                what: "servers in a sandbox without its repository",
                times: 1,
                bound: 0,
            });
        }
        let has_services = |record: &SandboxRecord| {
            record.project.set_up.as_ref().is_some_and(|set_up| !set_up.recipe.services.is_empty())
        };
        let is_bare = !sandbox.project.is_started && record.is_some_and(has_services);
        let is_set_up = |record: &SandboxRecord| {
            record.project.set_up.as_ref().is_some_and(|set_up| !set_up.ended.is_empty())
        };
        let is_untouched = !sandbox.project.has_begun() && record.is_some_and(is_set_up);
        let is_trusted = |record: &SandboxRecord| {
            record.project.set_up.as_ref().is_some_and(|set_up| set_up.prebuilt_at.is_some())
        };
        let is_unbuilt = !sandbox.project.is_prebuilt && record.is_some_and(is_trusted);
        let is_builder = record.is_some_and(SandboxRecord::is_builder);
        for (is_broken, what) in [
            (is_unbuilt, "servers in a project whose prebuild was not there"),
            (is_builder, "servers in a builder"),
            (is_untouched, "servers in a project that was not set up"),
            (sandbox.project.runs, "servers beside a set-up"),
            (is_bare, "servers before the project's services"),
        ] {
            if is_broken {
                self.facts.push(Fact::Spent { what, times: 1, bound: 0 });
            }
        }
        // A server that does not answer is ended and started again.
        if std::mem::take(&mut sandbox.hangs) {
            sandbox.dies(now_ms);
        }
        sandbox.server = true;
    }
}
