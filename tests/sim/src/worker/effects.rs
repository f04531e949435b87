//! What effects do.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{
    AgentSessionId, AskId, Ms, PostRef, SandboxKey, SandboxName, ThreadKey, TurnId,
};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::effect::{
    AgentEffect, Effect, Follow, ForgeEffect, RecipeAt, SandboxEffect, Sending, Watched,
};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::target::{Addressed, EffectTarget};
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::card::Post;
use bobbin_core::records::carried::{
    Carried, CarriedTo, ForgeRepository, FoundRepository, LeftOut,
};
use bobbin_core::records::changes::Changes;
use bobbin_core::records::control::Operation;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::parked::Seen;
use bobbin_core::records::prebuild::{self, Prebuild};
use bobbin_core::records::publication::{Opened, Outgoing, PullRequestSeen, PushEnd};
use bobbin_core::records::pull_request::WatchedPullRequest;
use bobbin_core::records::recipe::FoundRecipe;
use bobbin_core::records::run::PromptState;
use bobbin_core::records::sandbox::{SandboxRecord, SandboxState, SnapshotSeen};
use bobbin_core::records::session::StrayRun;
use bobbin_core::records::set_up::{FailedStep, SetUpSeen};
use bobbin_core::records::tool_sandbox::{self, AgentSeen};
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tenant::selection::Selection;

use super::Worker;
use crate::dice::Dice;
use crate::forge;
use crate::home::{Caller, Home};
use crate::plan::Late;
use crate::project;
use crate::services::{Missed, Moving, Sent, Services, Serving, perform, polled, silent};
use crate::state::Inner;
use crate::thread::SimThread;
use crate::thread::running::changes;
use crate::tools::Use;

/// How long a caller without its own bound waits.
const REQUEST_MS: u64 = 15_000;
/// A sent message reaches the queue within this time, or never.
const SEND_MS_MAX: u64 = 10_000;
/// While things go wrong, one in this many checks does not find its sandbox, by the millisecond of the check.
const LIES_EVERY: u64 = 20;
/// While things go wrong, one in this many new sandboxes never gets its secrets put in, by the millisecond of the
/// check.
const LEFT_EVERY: u64 = 15;
/// Between two polls of a run.
const LOOK_MS: u64 = 5_000;

impl Worker {
    pub(super) async fn done(&self, addressed: &Addressed<'_>) -> Event {
        let (effect, generation) = (addressed.effect, addressed.at.generation);
        if let Effect::Agent(AgentEffect::Follow(follow)) = effect {
            return self.follow(generation, follow).await;
        }
        if let Effect::Agent(AgentEffect::Look(follow)) = effect {
            self.world.lock().met.insert("looked");
            let seen = self.seen(generation, follow).await;
            return seen.unwrap_or_else(|| Event::StillRunning(self.stands(generation, follow)));
        }
        if let Effect::Sandbox(
            SandboxEffect::Observe { after_ms, .. }
            | SandboxEffect::Confirm { after_ms, .. }
            | SandboxEffect::SetUp { after_ms, .. }
            | SandboxEffect::Snapshot { after_ms, .. },
        ) = effect
            && *after_ms > 0
        {
            self.world.pause(*after_ms).await;
        }
        // A caller that cannot connect finds out after a while; one that waits for a server waits within its bound.
        let cut_ms = {
            let inner = self.world.lock();
            inner.places[self.at()].home.cut_ms(inner.now_ms)
        };
        match effect {
            Effect::Sandbox(SandboxEffect::EnsureServer { restart, within_ms, .. }) => {
                if *restart {
                    let mut inner = self.world.lock();
                    let now_ms = inner.now_ms;
                    inner.places[self.at()].home.restart(generation, now_ms);
                }
                self.world.pause(cut_ms.min(*within_ms)).await;
                if cut_ms > *within_ms {
                    return Event::Failed(Failure::ResumeFailed {
                        seen: "not healthy in time".to_owned(),
                    });
                }
            }
            Effect::Agent(
                AgentEffect::CheckServer { .. }
                | AgentEffect::FindAgentSession { .. }
                | AgentEffect::FindPrompt { .. }
                | AgentEffect::SendPrompt { .. }
                | AgentEffect::Abort { .. }
                | AgentEffect::EndRun(_),
            ) => self.world.pause(cut_ms.min(REQUEST_MS)).await,
            _ => {}
        }
        // A hanging server holds its caller until that gives up.
        if let Effect::Agent(AgentEffect::SendPrompt {
            sending: Sending::First { within_ms }, ..
        }) = effect
            && self.world.lock().places[self.at()].home.is_hanging(generation)
        {
            self.world.pause(within_ms.unwrap_or(REQUEST_MS)).await;
        }
        self.act(addressed)
    }

    /// Performs the effect at once.
    fn act(&self, addressed: &Addressed<'_>) -> Event {
        let mut guard = self.world.lock();
        perform(&mut self.here(&mut guard), addressed)
    }

    fn here<'a>(&'a self, inner: &'a mut Inner) -> WorkerEffectContext<'a> {
        let (at, workspace) = self.at.lock().expect("nobody panics here").clone();
        WorkerEffectContext { worker: self, inner, at, workspace }
    }

    /// The message that deletes the agent's second sandbox.
    fn end_of_tools(&self, inner: &mut Inner, generation: u32) -> Option<Message> {
        let (at, now_ms) = (self.at(), inner.now_ms);
        let second = inner.second_of(at);
        let record = inner.places[second].home.record.clone()?;
        tool_sandbox::ended((&inner.key_of(at), generation), &record, now_ms)
    }

    fn caller(&self) -> Caller {
        Caller { place: self.place, is_turn: matches!(self.work, Work::Prompt(_)) }
    }

    /// A person requested the deletion of this delivery.
    pub(super) fn is_asked_to_delete(&self) -> bool {
        matches!(self.work, Work::Reset { .. } | Work::Operate { want: Operation::Destroy, .. })
    }

    /// The changing call of a forge effect; `None` if a check beforehand makes it unnecessary.
    fn at_forge(&self, inner: &Inner, generation: u32, effect: &ForgeEffect) -> Option<Late> {
        let (here, home) = (&inner.places[self.place], &inner.places[self.at()].home);
        match effect {
            ForgeEffect::Push { carried, branch, old, new, follows } => {
                let (old, follows) = (old.as_deref(), follows.as_deref());
                let repository = carried.repository.id;
                let moving = Moving { repository, branch, old, new, follows };
                let call = here.push_call(home, generation, &moving);
                let is_running = home.is_running(generation, inner.now_ms);
                call.ok().filter(|_| is_running).map(Late::Push)
            }
            ForgeEffect::OpenPullRequest { branch, is_draft, .. } => {
                let is_new = here.forge.pull_request(branch).is_none();
                is_new.then(|| Late::Request { branch: branch.clone(), is_draft: *is_draft })
            }
            _ => None,
        }
    }

    fn delete(&self, generation: u32) -> Late {
        Late::Delete { generation, by_person: self.is_asked_to_delete() }
    }

    async fn follow(&self, generation: u32, follow: &Follow) -> Event {
        loop {
            let is_over = |now_ms: u64| now_ms + self.skew_ms >= follow.until_ms;
            if is_over(self.world.lock().now_ms) {
                return Event::StillRunning(self.stands(generation, follow));
            }
            if let Some(event) = self.seen(generation, follow).await {
                return event;
            }
            let stands = self.stands(generation, follow);
            if !follow.cancel_known && follow.card.budget.is_some_and(|it| stands.spent >= Some(it))
            {
                return Event::StillRunning(stands);
            }
            if follow.gives_way && self.world.lock().is_crowded() {
                self.world.lock().met.insert("gave way");
                return Event::OthersWait(stands);
            }
            self.stand(LOOK_MS).await;
        }
    }

    /// The cost so far of a run that continues.
    fn stands(&self, generation: u32, follow: &Follow) -> Seen {
        let mut inner = self.world.lock();
        let now_ms = inner.now_ms;
        let at = self.at();
        let sandbox = inner.places[at].home.sandboxes.get_mut(&generation);
        let agent = sandbox.and_then(|sandbox| sandbox.agents.get(&self.place));
        let spent = agent.map(|agent| agent.spent(&follow.message, &follow.further, now_ms));
        Seen { spent: spent.filter(|spent| *spent > 0), ..Seen::default() }
    }

    /// Polls a run once. `None` while it continues.
    async fn seen(&self, generation: u32, follow: &Follow) -> Option<Event> {
        // The follower tries a few times before it reports that nobody answers.
        let cut_ms = {
            let mut inner = self.world.lock();
            let home = &inner.places[self.at()].home;
            let cut_ms = home.cut_ms(inner.now_ms);
            // This worker crashes when the call ends.
            if inner.places[self.place].kills(home, generation, &follow.message) {
                inner.met.insert("killed");
                inner.kill(self.token);
                return Some(still_running());
            }
            cut_ms
        };
        if cut_ms > 0 {
            self.world.pause(cut_ms.min(REQUEST_MS)).await;
            return Some(Event::Failed(Failure::SandboxDown {
                seen: "connection reset".to_owned(),
            }));
        }
        let mut guard = self.world.lock();
        self.here(&mut guard).look_at_run(generation, follow)
    }

    /// Sends a lifecycle call, which arrives within its bound. False: this effect has none.
    pub(super) fn late(&self, addressed: &Addressed<'_>) -> bool {
        let (effect, generation) = (addressed.effect, addressed.at.generation);
        let mut inner = self.world.lock();
        let limits = &self.world.limits;
        let left_ms = inner.visible_until_ms(self.token, limits).saturating_sub(inner.now_ms);
        let after_ms = inner.dice.below(limits.sandbox.lifecycle_call_ms);
        if matches!(effect, Effect::EndTools) {
            let end = self.end_of_tools(&mut inner, generation);
            let late_ms = 1 + after_ms % SEND_MS_MAX;
            if let Some(message) = end {
                inner.say_later(self.at(), message, late_ms);
            }
            return true;
        }
        let call = match effect {
            Effect::Sandbox(SandboxEffect::Create { .. }) => Late::Create(generation),
            Effect::Sandbox(SandboxEffect::Stop) if left_ms > limits.sandbox.lifecycle_call_ms => {
                Late::Stop(generation)
            }
            Effect::Sandbox(SandboxEffect::Delete) => self.delete(generation),
            Effect::Agent(AgentEffect::Abort { messages, .. }) => {
                Late::Abort(generation, messages.clone())
            }
            Effect::Agent(AgentEffect::EndRun(run)) => {
                Late::Abort(run.generation, run.messages.clone())
            }
            Effect::Forge(effect) => match self.at_forge(&inner, generation, effect) {
                Some(call) => {
                    inner.met.insert("late at the forge");
                    call
                }
                None => return false,
            },
            _ => return false,
        };
        let at_ms = inner.now_ms + after_ms;
        let spot = (self.caller(), self.at());
        inner.later.push((at_ms, spot, call));
        true
    }
}

/// What one effect of a delivery can use.
struct WorkerEffectContext<'a> {
    worker: &'a Worker,
    inner: &'a mut Inner,
    /// The place of the sandbox.
    at: usize,
    workspace: String,
}

impl WorkerEffectContext<'_> {
    fn with<T>(&mut self, act: impl FnOnce(&mut SimThread, &mut Home, &mut Dice, Ms) -> T) -> T {
        let now_ms = self.inner.now_ms;
        self.inner
            .with(self.worker.place, self.at, |here, home, dice| act(here, home, dice, now_ms))
    }

    fn land(&mut self, call: Late) {
        self.inner.land((self.worker.caller(), self.at), call);
    }

    /// Polls a run once. `None` while it continues.
    fn look_at_run(&mut self, generation: u32, follow: &Follow) -> Option<Event> {
        self.with(|here, home, dice, now_ms| {
            home.extend(generation, now_ms);
            here.follow(home, (generation, follow), now_ms, dice)
        })
    }

    /// Whether a run's files can be read: false if their sandbox is gone.
    fn leaves_files(&mut self) -> Result<bool, Failure> {
        let record = self.inner.places[self.at].home.record.as_ref();
        if !record.is_some_and(SandboxRecord::works_elsewhere) {
            return Ok(true);
        }
        match self.inner.is_left_outside(self.at) {
            Some(true) => Ok(true),
            Some(false) => Err(silent()),
            None => {
                self.inner.places[self.worker.place].withheld();
                Ok(false)
            }
        }
    }
}

impl Services for WorkerEffectContext<'_> {
    fn stands(&mut self, generation: u32) -> SandboxState {
        self.inner.places[self.at].home.stands(generation, self.inner.now_ms)
    }

    /// One check may lie; the list does not.
    fn look(&mut self, generation: u32) -> SandboxState {
        if self.inner.troubled() && self.inner.now_ms.is_multiple_of(LIES_EVERY) {
            return SandboxState::Gone;
        }
        self.stands(generation)
    }

    fn cancelled_by(&mut self, watched: &Watched) -> Option<Person> {
        watched.cancelled_by(&self.inner.places[self.worker.place].flags).cloned()
    }

    fn count(&mut self, older_than: Option<u32>) -> u32 {
        let inner = &*self.inner;
        let tenant = inner.places[self.worker.place].thread.tenant();
        let own = older_than.map(|generation| inner.made(self.at, generation));
        let listed = (0..inner.places.len())
            .filter(|at| inner.places[*at].thread.tenant() == tenant)
            .flat_map(|at| inner.places[at].home.sandboxes.keys().map(move |one| (at, *one)));
        let listed = listed.map(|(at, generation)| inner.made(at, generation));
        let counted = match own {
            Some(_) if inner.counts_once => 0,
            Some(own) => listed.filter(|made| *made < own).count(),
            None => listed.count(),
        };
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    fn create(&mut self, generation: u32) {
        let troubled = self.inner.troubled();
        self.with(|_, home, dice, now_ms| {
            let takes_ms = if troubled && dice.falls(30) { 400_000 } else { dice.below(5_000) };
            home.create(generation, now_ms, takes_ms, troubled && dice.falls(20));
        });
    }

    fn create_from(&mut self, generation: u32, prebuild: Option<&str>) -> Result<(), Failure> {
        let Some(name) = prebuild else {
            self.create(generation);
            return Ok(());
        };
        let mut homes = self.inner.places.iter().map(|place| &place.home);
        let is_there = homes.any(|home| {
            let is_builder = home.record.as_ref().is_some_and(SandboxRecord::is_builder);
            is_builder && home.snapshots.contains_key(name)
        });
        if !is_there {
            self.inner.met.insert("prebuild missing");
            return Err(Failure::TurnFailed { reason: "no such snapshot".to_owned() });
        }
        let is_new = !self.inner.places[self.at].home.sandboxes.contains_key(&generation);
        self.create(generation);
        if is_new {
            self.with(|_, home, _, _| {
                if let Some(project) = home.project(generation) {
                    project.is_prebuilt = true;
                }
            });
        }
        self.inner.met.insert("prebuild used");
        Ok(())
    }

    fn start(&mut self, generation: u32) {
        self.with(|_, home, dice, now_ms| home.start(generation, now_ms, dice.below(5_000)));
    }

    /// Like the real one: a call that cannot be recalled needs time in which nobody else acts.
    fn may_stop(&mut self, _: u32) -> bool {
        let limits = &self.worker.world.limits;
        let visible_ms = self.inner.visible_until_ms(self.worker.token, limits);
        visible_ms > self.inner.now_ms + limits.sandbox.lifecycle_call_ms
    }

    fn stop(&mut self, generation: u32) {
        if self.worker.work == Work::Sweep {
            self.inner.stops_second(self.at, generation);
        }
        self.land(Late::Stop(generation));
    }

    fn delete(&mut self, generation: u32) {
        self.land(self.worker.delete(generation));
    }

    fn clone_into(&mut self, generation: u32, _: &str) -> Result<LeftOut, NotCloned> {
        let troubled = self.inner.troubled();
        self.with(|_, home, dice, _| {
            if troubled && dice.falls(30) {
                return Err(NotCloned::NotFound);
            }
            let is_new = home.clone_into(generation);
            let is_prebuilt = home.project(generation).is_some_and(|one| one.is_prebuilt);
            Ok(LeftOut { is_new, is_prebuilt, ..LeftOut::default() })
        })
    }

    fn read_recipe(&mut self, generation: u32, _: &RecipeAt) -> FoundRecipe {
        if self.inner.has_recipes {
            project::recipe(self.at + generation as usize)
        } else {
            project::nothing()
        }
    }

    fn set_up(&mut self, generation: u32, steps: usize) -> SetUpSeen {
        // Some take longer than a delivery follows them.
        let is_long = (self.at + generation as usize) % 6 == 3;
        let takes_ms = if is_long { 8 * project::SET_UP_MS } else { project::SET_UP_MS };
        let seen = self.with(|_, home, _, now_ms| {
            home.project(generation).map(|one| one.look(steps, takes_ms, now_ms))
        });
        self.inner.met.insert("set-up");
        seen.unwrap_or_default()
    }

    fn start_project(&mut self, generation: u32) -> Vec<FailedStep> {
        self.with(|_, home, _, _| {
            if let Some(project) = home.project(generation) {
                project.is_started = true;
            }
        });
        Vec::new()
    }

    fn find_repository(&mut self, name: &str) -> FoundRepository {
        FoundRepository::Here { repository: forge::repository(name), size_kb: 0 }
    }

    fn carry(
        &mut self,
        generation: u32,
        repository: &ForgeRepository,
        _: Option<&str>,
        _: &CarriedTo,
    ) -> Result<(Carried, LeftOut), NotCloned> {
        let left_out = self.clone_into(generation, &repository.name)?;
        Ok((self.inner.places[self.worker.place].carried(repository), left_out))
    }

    fn outgoing(&mut self, generation: u32, _: &Carried) -> Outgoing {
        if self.inner.troubled() && self.inner.dice.falls(30) {
            return Outgoing::Refused { why: "the work is too large.".to_owned() };
        }
        self.with(|here, home, _, _| here.outgoing(home, generation))
    }

    fn push(&mut self, generation: u32, moving: &Moving<'_>) -> PushEnd {
        let pushes_unshown = self.inner.pushes_unshown;
        let ended = self.with(|here, home, _, _| {
            if pushes_unshown {
                here.pushes_unshown(home, generation, moving)
            } else {
                here.pushes(home, generation, moving)
            }
        });
        self.inner.met.insert(match &ended {
            PushEnd::Done { .. } => "pushed",
            PushEnd::Changed => "shown anew",
            PushEnd::Theirs { .. } | PushEnd::Moved { at: Some(_) } => "branch moved",
            PushEnd::Moved { at: None } => "branch gone",
            PushEnd::Refused { .. } => "not followed",
        });
        ended
    }

    fn pull_request(&mut self, branch: &str) -> Option<PullRequestSeen> {
        self.inner.places[self.worker.place].forge.pull_request(branch)
    }

    fn poll(&mut self, number: u64) -> Result<WatchedPullRequest, Failure> {
        let forge = &self.inner.places[self.worker.place].forge;
        let at = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        let unknown = || Failure::TurnFailed { reason: "there is no such pull request".to_owned() };
        let (branch, seen) = forge.pulls.get(at).ok_or_else(unknown)?;
        let head = forge.branches.get(branch).map_or("", String::as_str);
        Ok(polled(seen, branch, head))
    }

    fn open_pull_request(&mut self, branch: &str, is_draft: bool) -> Opened {
        let here = &mut self.inner.places[self.worker.place];
        match here.forge.pull_request(branch) {
            Some(seen) => Opened::There(seen),
            None => here.requested(branch, is_draft),
        }
    }

    fn serve(&mut self, generation: u32, is_new: bool) -> Serving {
        self.with(|_, home, _, now_ms| home.serve(generation, now_ms));
        // By the time, so that the rest of a history stays the same without this.
        let now_ms = self.inner.now_ms;
        if self.inner.troubled() && is_new && now_ms.is_multiple_of(LEFT_EVERY) {
            self.inner.met.insert("without secrets");
            return Serving::WithoutSecrets;
        }
        self.inner.tools(self.at, Use::Comes, self.worker.world.limits.sandbox.idle_pause_ms);
        Serving::Healthy
    }

    fn workspace(&mut self, generation: u32) -> Result<Event, Failure> {
        self.inner.met.insert("workspace");
        self.with(|here, home, _, _| here.make_workspace(home, generation))
    }

    fn snapshot(&mut self, generation: u32, at_ms: Ms) -> Result<(String, SnapshotSeen), Failure> {
        self.inner.met.insert("snapshot made");
        self.with(|_, home, dice, now_ms| {
            home.snapshot(generation, at_ms, (now_ms, dice.below(20_000)))
        })
    }

    fn delete_snapshot(&mut self, name: &str) -> Result<(), Failure> {
        self.inner.places[self.at].home.snapshots.remove(name);
        Ok(())
    }

    fn reached(&mut self, generation: u32) -> Result<(), Failure> {
        self.with(|_, home, _, now_ms| home.server(generation, now_ms).map(drop))
    }

    fn check(&mut self, generation: u32) -> Result<(), Failure> {
        self.with(|_, home, _, now_ms| home.check_server(generation, now_ms))
    }

    fn agent_session(&mut self, generation: u32, _: Ms) -> Result<AgentSessionId, Failure> {
        self.with(|here, home, _, now_ms| here.find_session(home, generation, now_ms))
    }

    fn intercepts(&mut self, sent: &Sent<'_>) -> Option<Missed> {
        if let Sending::First { within_ms: Some(_) } = sent.sending {
            self.inner.met.insert("sent at once");
        }
        if sent.text.contains("\n\n") {
            self.inner.met.insert("digest");
        }
        None
    }

    /// Nobody can know about a silent server, unless nothing listens.
    fn refuses(&mut self, generation: u32) -> bool {
        let troubled = self.inner.troubled();
        self.with(|_, home, dice, _| match home.sandboxes.get(&generation) {
            None => true,
            Some(sandbox) if sandbox.stopped => true,
            Some(sandbox) => !sandbox.server && troubled && dice.falls(500),
        })
    }

    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed> {
        // The thread's history comes before the person's words.
        let words = sent.text.rsplit("\n\n").next().unwrap_or_default();
        let turn = words.split_whitespace().next().unwrap_or_default().into();
        let (generation, troubled) = (sent.generation, self.inner.troubled());
        let workspace = self.workspace.clone();
        self.with(|here, home, dice, now_ms| {
            let what = (sent.ids, sent.sending);
            here.send_prompt(home, generation, what, (&turn, &workspace), now_ms, (dice, troubled))
        })?;
        let sandbox = self.inner.places[self.at].home.sandboxes.get(&generation);
        if sandbox.is_some_and(|sandbox| sandbox.is_native) {
            self.inner.met.insert("native");
        }
        self.inner.note_work(self.at, generation, &workspace);
        self.inner.tools(self.at, Use::Calls, self.worker.world.limits.sandbox.idle_pause_ms);
        Ok(())
    }

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure> {
        self.with(|here, home, _, now_ms| here.find_prompt(home, generation, message, now_ms))
    }

    fn follow(&mut self, generation: u32, follow: &Follow, _: bool) -> Event {
        self.look_at_run(generation, follow).unwrap_or_else(still_running)
    }

    fn abort(&mut self, generation: u32, messages: &[String]) {
        self.with(|here, home, _, now_ms| here.abort(home, generation, messages, now_ms));
    }

    fn end_run(&mut self, run: &StrayRun) {
        self.inner.met.insert("run ended");
        self.abort(run.generation, &run.messages);
    }

    fn decline(&mut self, generation: u32, _: &AskId) {
        self.with(|here, home, _, now_ms| here.decline(home, generation, now_ms));
    }

    fn changes(&mut self, generation: u32) -> Result<Changes, Failure> {
        if !self.leaves_files()? {
            return Ok(Changes::default());
        }
        self.reached(generation).map(|()| changes())
    }

    fn artifacts(&mut self, generation: u32) -> Result<Vec<Artifact>, Failure> {
        if !self.leaves_files()? {
            return Ok(Vec::new());
        }
        self.with(|here, home, _, now_ms| here.list_artifacts(home, generation, now_ms))
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        Ok(self.inner.places[self.worker.place].post(turn, kind, at, post))
    }

    fn show(
        &mut self,
        generation: u32,
        turn: &TurnId,
        index: u32,
        file: &Artifact,
    ) -> Result<PostRef, String> {
        self.with(|here, home, _, now_ms| {
            here.post_artifact(home, generation, (turn, index, file), now_ms)
        })
    }

    fn tell(&mut self, _: &ThreadKey, _: &str) {
        self.inner.met.insert("told");
    }

    fn notify_outside(&mut self, _: &[String], _: &str) -> Result<ThreadKey, Failure> {
        self.inner.met.insert("told beside");
        Ok(self.inner.places[self.worker.place].thread.clone())
    }

    fn recalled(&mut self, turns: &[TurnId]) -> Vec<LedgerEntry> {
        self.inner.places[self.worker.place].recalled(turns)
    }

    fn named(&mut self, name: &SandboxName) -> Option<SandboxKey> {
        let key = (self.inner.places[self.worker.place].thread.tenant(), name.clone());
        self.inner.names.get(&key).cloned()
    }

    fn end_tools(&mut self, generation: u32) {
        if let Some(message) = self.worker.end_of_tools(self.inner, generation) {
            self.inner.met.insert("second ended");
            self.inner.send(message);
        }
    }

    fn queue(&mut self, messages: &[Message]) {
        let builds = messages.iter().filter(|one| matches!(one.work, Work::Build(_)));
        builds.for_each(|message| self.inner.send(message.clone()));
    }

    fn prebuild(&mut self, builder: &SandboxKey, at: &EffectTarget) -> Option<Prebuild> {
        let place = self.inner.known(builder.thread())?;
        let record = self.inner.places[place].home.record.as_ref()?;
        prebuild::newest(record, at.credentials.as_deref())
    }

    fn agent_seen(&mut self, of: &SandboxKey) -> AgentSeen {
        let inner = &mut *self.inner;
        let agent = inner.place_of(of.thread());
        let mut seen = tool_sandbox::seen(inner.places[agent].home.record.as_ref());
        if self.worker.work == Work::Sweep {
            let now_ms = inner.now_ms;
            inner.places[self.at].home.looked_ms = Some(now_ms);
            if seen.at_work_since_ms.is_some() {
                inner.met.insert("second in use");
            }
            seen.at_work_since_ms.take_if(|_| inner.pauses_used);
            return seen;
        }
        let met = if seen.wants { "second made" } else { "wished too late" };
        inner.met.insert(met);
        seen.wants |= inner.makes_unwanted;
        seen
    }

    fn wake(&mut self, at_ms: Ms) {
        self.inner.wake_up_at(self.at, at_ms);
    }

    fn options(&mut self, _: &Selection) -> AgentOptions {
        AgentOptions {
            models: vec!["m".to_owned()],
            agents: vec!["build".to_owned()],
            unpriced: Vec::new(),
        }
    }
}

fn still_running() -> Event {
    Event::StillRunning(Seen::default())
}
