//! A small world in memory, as `drive` sees it, and the delivery of its messages.

use super::secrets::FakeSecrets;
use super::set_up::FakeProject;
use super::*;
use bobbin_core::base::ids::{AgentSessionId, AskId, SandboxKey, SandboxName, TurnId};
use bobbin_core::protocol::effect::{AgentEffect, Follow, RecipeAt, Watched};
use bobbin_core::protocol::ports::{Performed, RecordsWrite};
use bobbin_core::protocol::signals::signals;
use bobbin_core::protocol::target::{Addressed, EffectTarget};
use bobbin_core::records::ask::Ask;
use bobbin_core::records::card::Card;
use bobbin_core::records::checks::Check;
use bobbin_core::records::drafted_review::{NewPullReview, ReviewEnd, ReviewRead};
use bobbin_core::records::given_pull::{FoundPull, GivenPull};
use bobbin_core::records::given_secrets::GivenSecrets;
use bobbin_core::records::observations::NameWrite;
use bobbin_core::records::prebuild::{self, Prebuild};
use bobbin_core::records::pull_request::WatchedPullRequest;
use bobbin_core::records::recipe::FoundRecipe;
use bobbin_core::records::responses::PullRequestResponse;
use bobbin_core::records::sandbox::{SandboxRecord, SnapshotSeen};
use bobbin_core::records::set_up::{FailedStep, SetUpSeen};
use bobbin_core::records::tool_sandbox::{self, AgentSeen};
use bobbin_core::tenant::budgets::{BudgetScope, MicroUsd};
use bobbin_core::tenant::capped_keys::{KeyLimit, LIFE_MS};
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use bobbin_sim::services::{Attached, Missed, Moving, Sent, Services, Serving, perform, polled};

/// This long after it began to follow a run.
pub(super) const OTHERS_AFTER_MS: u64 = 2_000;

/// The outside state, and what a test wants to fail.
#[derive(Default)]
pub(super) struct State {
    pub(super) now_ms: Ms,
    pub(super) record: Option<Session>,
    /// Records of threads other than [`thread`], and of sandboxes that no thread here was the first to use.
    pub(super) others: BTreeMap<ThreadKey, Session>,
    pub(super) apart: BTreeMap<SandboxKey, SandboxRecord>,
    /// The owner of each name.
    pub(super) names_of: BTreeMap<SandboxName, SandboxKey>,
    /// Posts to other threads.
    pub(super) told_threads: Vec<(ThreadKey, String)>,
    /// Messages to people outside the thread.
    pub(super) notified_outside: Vec<(Vec<String>, String)>,
    /// Workspaces that were made, by thread.
    pub(super) workspaces: Vec<ThreadKey>,
    /// The states of a snapshot at each poll.
    pub(super) snapshots: Vec<SnapshotSeen>,
    pub(super) deleted_snapshots: Vec<String>,
    /// A deletion is accepted and never finishes.
    pub(super) undeletable: bool,
    pub(super) flags: ControlFlags,
    pub(super) sandboxes: BTreeMap<u32, SandboxState>,
    /// Prompts that the agent has, by (generation, message id).
    pub(super) prompted: Vec<(u32, String)>,
    pub(super) finished: BTreeSet<String>,
    pub(super) asks: Vec<AskId>,
    pub(super) aborted: bool,
    /// The thread's posts by key.
    pub(super) posts: BTreeMap<String, Post>,
    pub(super) posted: Vec<String>,
    /// Whom a new post mentioned.
    pub(super) called: BTreeMap<String, Vec<String>>,
    pub(super) stopped_while_running: bool,
    /// Failures of the next effects with this name.
    pub(super) fail: BTreeMap<&'static str, Vec<Failure>>,
    pub(super) calls: u32,
    pub(super) crash_at: Option<(u32, bool)>,
    pub(super) crashed: bool,
    pub(super) silent_agent: bool,
    /// The follower of a run sees that work waits for a free worker.
    pub(super) others_wait: bool,
    /// Somebody presses Stop while the run is followed.
    pub(super) stop_in_follow: bool,
    /// Somebody presses Stop all while the run is followed.
    pub(super) stop_all_in_follow: Option<StoppedAll>,
    /// Somebody presses Stop all during the wait for a sandbox.
    pub(super) stop_all_in_wait: Option<StoppedAll>,
    /// That Stop's abort ends the run before the flag is read.
    pub(super) abort_wins: bool,
    /// The current message has become visible to others.
    pub(super) lapsed: bool,
    pub(super) ledger: BTreeMap<TurnId, LedgerEntry>,
    pub(super) wakes: Vec<Ms>,
    /// The generations with which the second sandbox was to be deleted.
    pub(super) tools_ended: Vec<u32>,
    /// This many checks and calls do not find an existing sandbox.
    pub(super) lies: u32,
    pub(super) tenant_sandboxes: u32,
    /// Those that were created before the thread's own.
    pub(super) older_sandboxes: u32,
    /// The first prompt sent into a run fails like this.
    pub(super) fail_steer: Option<Failure>,
    /// After a prompt was sent into the run: the server stops, the sandbox is lost, or somebody presses Stop.
    pub(super) down_after_steer: bool,
    /// The same at every poll.
    pub(super) stays_down_after_steer: bool,
    pub(super) lost_after_steer: bool,
    pub(super) stop_after_steer: bool,
    /// Names of the effects, in order.
    pub(super) names: Vec<&'static str>,
    /// How each prompt was sent.
    pub(super) sendings: Vec<Sending>,
    /// Something before the agent refuses the next prompt.
    pub(super) not_sent: Option<Failure>,
    /// The next prompt arrives, but its answer is lost.
    pub(super) unheard: Option<Failure>,
    /// Prompts that were sent again.
    pub(super) sent_again: Vec<String>,
    /// This many posts of a card that replaces another are refused.
    pub(super) fail_roll: u32,
    /// This many posts find the thread closed, except cards that look alive.
    pub(super) closed: u32,
    /// Failures of edits of a card to its end.
    pub(super) fail_ends: Vec<Failure>,
    /// Failures of posts of parts of an answer.
    pub(super) fail_parts: Vec<Failure>,
    /// The start times of the requested conversations, in order.
    pub(super) conversations: Vec<Ms>,
    /// What the agents were sent, in order.
    pub(super) told: Vec<String>,
    /// Signals to the operator from the record's writes, in order.
    pub(super) signalled: Vec<&'static str>,
    /// Neither the first read nor a write sees the control flags.
    pub(super) late_flags: bool,
    /// The managers' settings.
    pub(super) settings: Settings,
    /// Repositories by generation.
    pub(super) clones: BTreeMap<u32, String>,
    /// The forge, and what it says about every repository.
    pub(super) forge: Option<BoundForge>,
    pub(super) at_forge: Option<FoundRepository>,
    /// The forge's answers for repositories with these names.
    pub(super) at_forge_too: BTreeMap<String, FoundRepository>,
    /// Repositories that it was asked for, in order.
    pub(super) asked_forge: Vec<String>,
    /// Submodules that were fetched, in order: folder, repository and commit.
    pub(super) submodules: Vec<String>,
    /// Repositories that were fetched beside the thread's, in order: folder and repository.
    pub(super) carried_beside: Vec<String>,
    /// The work in their checkouts, by their ids.
    pub(super) outgoing_beside: BTreeMap<u64, Outgoing>,
    /// The checks of pull requests, by number.
    pub(super) checks_of: BTreeMap<u64, Vec<Check>>,
    /// Folders into which nothing can be fetched.
    pub(super) not_cloned_too: BTreeMap<String, NotCloned>,
    /// What submodules leave out, by their folders.
    pub(super) left_out_too: BTreeMap<String, LeftOut>,
    /// Repositories that were fetched, by generation.
    pub(super) carried: BTreeMap<u32, String>,
    /// The forge's branches and their commits.
    pub(super) branches: BTreeMap<String, String>,
    /// The work in the sandbox.
    pub(super) outgoing: Option<Outgoing>,
    /// Results of the next pushes, last first.
    pub(super) push_ends: Vec<PushEnd>,
    /// Branch, old and new commit of each push that moved it.
    pub(super) pushes: Vec<(String, Option<String>, String)>,
    /// Pull requests by branch, oldest first.
    pub(super) pulls: Vec<(String, PullRequestSeen)>,
    /// The pull request that a thread can work on, and its head.
    pub(super) given: Option<(GivenPull, String)>,
    /// The review that the agent has written.
    pub(super) written: Option<ReviewRead>,
    pub(super) review_reads: u32,
    /// Why that cannot be read.
    pub(super) review_unread: Option<Failure>,
    /// Reviews at the forge, each with its pull request.
    pub(super) reviews: Vec<(u64, NewPullReview)>,
    /// Why the forge refuses them.
    pub(super) review_refused: Option<String>,
    /// What polls of a pull request see; `None`: it follows from `pulls`.
    pub(super) watched: Option<WatchedPullRequest>,
    /// Why polls fail.
    pub(super) poll_fails: Option<Failure>,
    pub(super) polls: u32,
    /// Branches that were fetched beside the checkout.
    pub(super) brought: Vec<String>,
    /// The last push before each request to move the checkout.
    pub(super) checkouts_moved: Vec<Option<String>>,
    /// Where the checkout is then.
    pub(super) moves_to: Option<String>,
    pub(super) move_fails: Option<Failure>,
    /// Messages that were queued, each id once.
    pub(super) queued: Vec<Message>,
    /// The result of a person's action on a pull request; `None`: nobody has an account.
    pub(super) act_end: Option<ActEnd>,
    /// The actions, each with the head and the person.
    pub(super) acts: Vec<(PullRequestAct, String, String)>,
    /// Cards as they were posted or edited, in order.
    pub(super) cards: Vec<Card>,
    /// How often the card of a pull request was posted or edited.
    pub(super) pull_request_cards: u32,
    /// Responses below pull requests; an existing one is not repeated.
    pub(super) responses: Vec<PullRequestResponse>,
    pub(super) respond_fails: Option<Failure>,
    /// People's commits on branches, and pushes from there that need not follow them.
    pub(super) theirs: BTreeSet<String>,
    pub(super) over_theirs: Vec<String>,
    /// The person who connected each account.
    pub(super) people: BTreeMap<u64, (Person, Membership)>,
    pub(super) person_fails: Option<Failure>,
    /// Branches cannot be fetched beside the checkout.
    pub(super) cannot_bring: bool,
    /// Whether each person's linked account may push.
    pub(super) accounts: BTreeMap<String, Presser>,
    /// The project in the sandboxes.
    pub(super) project: FakeProject,
    /// The project's secrets in them.
    pub(super) secrets: FakeSecrets,
    /// The result of the next clone.
    pub(super) not_cloned: Option<NotCloned>,
    /// What clones leave out.
    pub(super) left_out: LeftOut,
    /// The agent refuses the next conversation with these words.
    pub(super) no_session: Option<String>,
    /// This many new sandboxes do not get their secrets.
    pub(super) without_secrets: u32,
    /// The options that the agent offers.
    pub(super) offer: AgentOptions,
    /// The choices that turns were shown with.
    pub(super) used: Vec<Selection>,
    /// The runtime of agents in new sandboxes.
    pub(super) runtime: RuntimeMode,
    /// Model and agent of each prompt that the agent received.
    pub(super) ran_with: Vec<(String, Option<String>)>,
    /// What lies in the folder of files to be shown, and what the turns change.
    pub(super) display: Vec<Artifact>,
    pub(super) changes: Changes,
    /// The images that went along with each prompt.
    pub(super) seen_images: Vec<Vec<Image>>,
    /// Why the files cannot be shown.
    pub(super) unshowable: Option<String>,
    /// A run crashes its follower.
    pub(super) kills_followers: bool,
    /// Runs continue while their server is unreachable.
    pub(super) went_on: bool,
    /// Runs that were ended because no turn follows them.
    pub(super) ended_runs: Vec<StrayRun>,
    /// The answer of a run, if it is not "the answer".
    pub(super) answers: Option<String>,
    /// How the agent says that its runs ended.
    pub(super) run_end: Option<RunEnd>,
    /// The service that is down, and until when.
    pub(super) out: Option<(Out, Ms)>,
    /// The state left for the next delivery.
    pub(super) parked: Option<Parked>,
    /// Finished sweeps.
    pub(super) swept: Vec<TurnId>,
    /// A person writes right after a delivery has left its state.
    pub(super) speaks_at_park: Option<ControlFlags>,
    /// What each follow or poll knew before, and what seems wrong with the run.
    pub(super) saw: Vec<Seen>,
    pub(super) doubt: Option<Doubt>,
    /// What the run has spent.
    pub(super) spent: Option<u64>,
    /// Stored sums of spent and reserved amounts.
    pub(super) sums: BTreeMap<BudgetScope, u64>,
    /// Keys are capped here.
    pub(super) caps: bool,
    /// Their first limits and later ones.
    pub(super) capped: Vec<MicroUsd>,
    pub(super) key_limits: Vec<KeyLimit>,
    /// Number of writes.
    pub(super) writes: u32,
    /// The limits of deliveries.
    pub(super) limits: Limits,
    /// The same from this call on.
    pub(super) out_at: Option<(u32, Out, Ms)>,
}

/// A service that Bobbin needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// Nothing can be read or written.
    Table,
    /// Reads work, and writes do not.
    Writes,
    Chat,
    Provider,
}

impl Out {
    /// The effects that need it.
    fn takes(self, effect: &str) -> bool {
        match self {
            Self::Table | Self::Writes => false,
            Self::Chat => effect == "post",
            Self::Provider => {
                !matches!(effect, "post" | "wake" | "recall" | "end_tools" | "find_agent")
            }
        }
    }
}

impl State {
    /// A thread's record with that of its sandbox.
    pub(super) fn stored(&self, of: &ThreadKey) -> Option<Session> {
        if let ThreadKey::Sandbox(key) = of {
            return self
                .sandbox_record(key)
                .map(|sandbox| Session { sandbox, ..Session::new(of.clone(), 0) });
        }
        let record = if *of == thread() { self.record.as_ref() } else { self.others.get(of) }?;
        Some(Session {
            sandbox: self.sandbox_record(&record.sandbox_key()).unwrap_or_default(),
            ..record.clone()
        })
    }

    fn holder(&mut self, of: &ThreadKey) -> Option<&mut Session> {
        if *of == thread() { self.record.as_mut() } else { self.others.get_mut(of) }
    }

    pub(super) fn sandbox_record(&self, key: &SandboxKey) -> Option<SandboxRecord> {
        let own = if *key.thread() == thread() {
            self.record.as_ref()
        } else {
            self.others.get(key.thread())
        };
        self.apart.get(key).cloned().or_else(|| Some(own?.sandbox.clone()))
    }

    fn names_are_free(&self, names: &[NameWrite]) -> bool {
        let free = |one: &NameWrite| match self.names_of.get(&one.name) {
            Some(key) => *key == one.sandbox,
            None => true,
        };
        names.iter().all(free)
    }

    fn put(&mut self, session: Session, expected: ExpectedVersions) {
        let (thread_of, key) = (session.thread.clone(), session.sandbox_at_hand());
        let own_before = self.holder(&thread_of).map(|own| own.sandbox.clone()).unwrap_or_default();
        let sandbox = session.sandbox.clone();
        if expected.thread.is_some() {
            let own = if key == thread_of.sandbox() { sandbox.clone() } else { own_before };
            let session = Session { sandbox: own, ..session };
            if thread_of == thread() {
                self.record = Some(session);
            } else {
                self.others.insert(thread_of.clone(), session);
            }
        }
        if expected.sandbox.is_none() || key == thread_of.sandbox() && expected.thread.is_some() {
            return;
        }
        match self.holder(key.thread()) {
            Some(own) => own.sandbox = sandbox,
            None => {
                self.apart.insert(key, sandbox);
            }
        }
    }
}

pub(super) struct Fake(Mutex<State>);

impl Fake {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { now_ms: 1_000_000, ..State::default() }))
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Counts a call and crashes before it if that is wanted; says whether to crash after it.
    pub(super) fn call(&self) -> bool {
        let (before, after) = self.with(|s| {
            s.calls += 1;
            if let Some((call, out, until_ms)) = s.out_at
                && s.calls >= call
            {
                (s.out, s.out_at) = (Some((out, until_ms)), None);
            }
            let here = |after| s.crash_at == Some((s.calls, after));
            (here(false), here(true))
        });
        if before {
            self.crash();
        }
        after
    }

    fn is_out(&self, one_of: &[Out]) -> bool {
        self.with(|s| {
            s.out.is_some_and(|(out, until_ms)| one_of.contains(&out) && s.now_ms < until_ms)
        })
    }

    pub(super) fn crash(&self) {
        self.with(|s| s.crashed = true);
        panic!("crash point");
    }

    pub(super) fn effect(&self, addressed: &Addressed<'_>) -> Event {
        let (thread, effect) = (&addressed.at.thread, addressed.effect);
        self.with(|s| {
            s.names.push(effect.name());
            if let Some((out, until_ms)) = s.out
                && out.takes(effect.name())
                && s.now_ms < until_ms
            {
                return Event::Failed(outage(out));
            }
            if let Some(failures) = s.fail.get_mut(effect.name())
                && !failures.is_empty()
            {
                let failure = failures.remove(0);
                match failure {
                    Failure::SandboxGone if s.lies > 0 => s.lies -= 1,
                    Failure::SandboxGone => s.sandboxes.clear(),
                    _ => {}
                }
                return Event::Failed(failure);
            }
            perform(&mut FakeEffectContext { s, thread, at: &addressed.at }, addressed)
        })
    }
}

/// What one effect of a delivery can use.
struct FakeEffectContext<'a> {
    s: &'a mut State,
    thread: &'a ThreadKey,
    at: &'a EffectTarget,
}

impl Services for FakeEffectContext<'_> {
    fn stands(&mut self, generation: u32) -> SandboxState {
        self.s.sandboxes.get(&generation).cloned().unwrap_or(SandboxState::Gone)
    }

    fn seen(&mut self, generation: u32) -> SandboxState {
        if self.s.lies > 0 {
            self.s.lies -= 1;
            return SandboxState::Gone;
        }
        self.stands(generation)
    }

    fn pass(&mut self, ms: u64) {
        self.s.now_ms += ms;
    }

    fn cancelled_by(&mut self, watched: &Watched) -> Option<Person> {
        if let Some(all) = self.s.stop_all_in_wait.take() {
            self.s.flags.stopped_all.insert("all".into(), all);
        }
        watched.cancelled_by(&self.s.flags).cloned()
    }

    fn count(&mut self, older_than: Option<u32>) -> u32 {
        older_than.map_or(self.s.tenant_sandboxes, |_| self.s.older_sandboxes)
    }

    fn create_from(&mut self, generation: u32, prebuild: Option<&str>) -> Result<(), Failure> {
        self.s.project.created_from.push(prebuild.map(str::to_owned));
        match self.s.project.create_fails.take().filter(|_| prebuild.is_some()) {
            Some(failure) => return Err(failure),
            None => self.create(generation),
        }
        if let Some(state) = self.s.project.created_state.take() {
            self.s.sandboxes.insert(generation, state);
        }
        Ok(())
    }

    fn create(&mut self, generation: u32) {
        self.s.sandboxes.entry(generation).or_insert(SandboxState::Running);
    }

    fn start(&mut self, generation: u32) {
        if self.stands(generation) == SandboxState::Stopped {
            self.s.sandboxes.insert(generation, SandboxState::Running);
        }
    }

    fn stop(&mut self, generation: u32) {
        let s = &mut *self.s;
        s.stopped_while_running |= s.prompted.iter().any(|(_, id)| !s.finished.contains(id));
        if self.stands(generation) == SandboxState::Running {
            self.s.sandboxes.insert(generation, SandboxState::Stopped);
        }
    }

    fn delete(&mut self, generation: u32) {
        if self.s.undeletable {
            self.s.sandboxes.insert(generation, SandboxState::Busy);
        } else {
            self.s.sandboxes.remove(&generation);
        }
    }

    fn clone_into(&mut self, generation: u32, repo: &str) -> Result<LeftOut, NotCloned> {
        if let Some(why) = self.s.not_cloned.take() {
            return Err(why);
        }
        self.s.project.calls.push("clone");
        self.s.clones.insert(generation, repo.to_owned());
        let is_prebuilt = matches!(self.s.project.created_from.last(), Some(Some(_)));
        Ok(LeftOut { is_prebuilt, ..self.s.left_out.clone() })
    }

    fn find_repository(&mut self, name: &str) -> FoundRepository {
        self.s.asked_forge.push(name.to_owned());
        if let Some(found) = self.s.at_forge_too.get(name) {
            return found.clone();
        }
        self.s.at_forge.clone().unwrap_or(FoundRepository::NotInstalled)
    }

    fn carry(
        &mut self,
        generation: u32,
        repository: &ForgeRepository,
        wanted: Option<&str>,
        to: &CarriedTo,
    ) -> Result<(Carried, LeftOut), NotCloned> {
        let base = self.s.branches.get(&repository.branch).cloned();
        let carried = Carried { repository: repository.clone(), default: None, folder: None, base };
        let path = match to {
            CarriedTo::Project => None,
            CarriedTo::Submodule(path) => {
                let at = wanted.unwrap_or_default();
                self.s.submodules.push(format!("{path}: {}@{at}", repository.name));
                Some(path)
            }
            CarriedTo::Beside(folder) => {
                self.s.carried_beside.push(format!("{folder}: {}", repository.name));
                Some(folder)
            }
        };
        if let Some(path) = path {
            return match self.s.not_cloned_too.remove(path) {
                Some(why) => Err(why),
                None => Ok((carried, self.s.left_out_too.remove(path).unwrap_or_default())),
            };
        }
        if let Some(why) = self.s.not_cloned.take() {
            return Err(why);
        }
        let at = wanted.map(|at| format!("@{at}")).unwrap_or_default();
        self.s.carried.insert(generation, format!("{}{at}", repository.name));
        Ok((carried, self.s.left_out.clone()))
    }

    fn outgoing(&mut self, _: u32, carried: &Carried) -> Outgoing {
        let work = match carried.folder {
            None => self.s.outgoing.clone(),
            Some(_) => self.s.outgoing_beside.get(&carried.repository.id).cloned(),
        };
        work.unwrap_or(Outgoing::Unchanged)
    }

    fn push(&mut self, _: u32, moving: &Moving<'_>) -> PushEnd {
        let &Moving { repository, branch, old, new, follows } = moving;
        if let Some(ended) = self.s.push_ends.pop() {
            return ended;
        }
        let there = self.s.branches.get(branch).map(String::as_str);
        if there == Some(new) {
            return PushEnd::Done { changed: Vec::new() };
        }
        if there != old {
            return match there {
                Some(theirs) => PushEnd::Theirs { at: theirs.to_owned() },
                None => PushEnd::Moved { at: None },
            };
        }
        let outgoing = self.s.outgoing_beside.get(&repository).or(self.s.outgoing.as_ref());
        let is_shown = matches!(outgoing, Some(Outgoing::Ready { commit, .. }) if commit == new);
        if !is_shown {
            return PushEnd::Changed;
        }
        if old.is_some_and(|old| self.s.theirs.contains(old)) && follows != old {
            self.s.over_theirs.push(new.to_owned());
        }
        let changed = match outgoing {
            Some(Outgoing::Ready { files, .. }) => files.clone(),
            _ => Vec::new(),
        };
        self.s.branches.insert(branch.to_owned(), new.to_owned());
        self.s.pushes.push((branch.to_owned(), old.map(str::to_owned), new.to_owned()));
        PushEnd::Done { changed }
    }

    fn pull_request(&mut self, branch: &str) -> Option<PullRequestSeen> {
        let (_, seen) = self.s.pulls.iter().rev().find(|(head, _)| head == branch)?;
        Some(seen.clone())
    }

    fn given_pull(&mut self, number: u64) -> FoundPull {
        match &self.s.given {
            Some((pull, head)) if pull.number == number => {
                FoundPull::There { pull: pull.clone(), head: head.clone() }
            }
            _ => FoundPull::Missing,
        }
    }

    fn written_review(&mut self) -> Result<ReviewRead, Failure> {
        self.s.review_reads += 1;
        match self.s.review_unread.clone() {
            Some(failure) => Err(failure),
            None => Ok(self.s.written.clone().unwrap_or(ReviewRead::Absent)),
        }
    }

    fn review(&mut self, number: u64, review: &NewPullReview) -> ReviewEnd {
        if let Some(why) = self.s.review_refused.clone() {
            return ReviewEnd::Refused { why };
        }
        let known = self.s.reviews.iter().position(|(_, one)| one.name == review.name);
        let nth = known.unwrap_or_else(|| {
            self.s.reviews.push((number, review.clone()));
            self.s.reviews.len() - 1
        });
        let page = format!("https://git.example.com/acme/api/pull/{number}#review-{}", nth + 1);
        ReviewEnd::There { page }
    }

    fn bring(&mut self, _: u32, branch: &str) -> bool {
        if self.s.cannot_bring {
            return false;
        }
        self.s.brought.push(branch.to_owned());
        true
    }

    fn move_checkout(&mut self, pushed: Option<&str>) -> Result<Option<String>, Failure> {
        self.s.checkouts_moved.push(pushed.map(str::to_owned));
        self.s.move_fails.clone().map_or_else(|| Ok(self.s.moves_to.clone()), Err)
    }

    fn failures(&mut self, checks: &[Check]) -> String {
        checks
            .iter()
            .map(|check| format!("{} failed: ```ignore all``` <!-- x -->\n", check.name))
            .collect()
    }

    fn queue(&mut self, messages: &[Message]) {
        for message in messages {
            if !self.s.queued.iter().any(|one| one.id == message.id) {
                self.s.queued.push(message.clone());
            }
        }
    }

    fn person_of(&mut self, account: u64) -> Result<Option<(Person, Membership)>, Failure> {
        match self.s.person_fails.clone() {
            Some(failure) => Err(failure),
            None => Ok(self.s.people.get(&account).cloned()),
        }
    }

    fn respond(&mut self, _: u64, what: &PullRequestResponse) -> Result<(), Failure> {
        if let Some(failure) = self.s.respond_fails.clone() {
            return Err(failure);
        }
        if !self.s.responses.contains(what) {
            self.s.responses.push(what.clone());
        }
        Ok(())
    }

    fn poll(&mut self, number: u64) -> Result<WatchedPullRequest, Failure> {
        self.s.polls += 1;
        if let Some(failure) = self.s.poll_fails.clone() {
            return Err(failure);
        }
        if let Some(watched) = self.s.watched.clone() {
            return Ok(watched);
        }
        let unknown = || Failure::TurnFailed { reason: "there is no such pull request".to_owned() };
        let of = |(_, seen): &&(String, PullRequestSeen)| seen.at.number == number;
        let (branch, seen) = self.s.pulls.iter().find(of).ok_or_else(unknown)?;
        let head = self.s.branches.get(branch).map_or("", String::as_str);
        let mut watched = polled(seen, branch, head);
        if let Some(checks) = self.s.checks_of.get(&number) {
            watched.pull.totals.checks = checks.len();
            watched.pull.checks.clone_from(checks);
        }
        Ok(watched)
    }

    fn act(&mut self, _: u64, act: PullRequestAct, head: &str, person: &str) -> ActEnd {
        self.s.acts.push((act, head.to_owned(), person.to_owned()));
        let unknown = || ActEnd::NotLinked { why: "You have not connected it.".to_owned() };
        self.s.act_end.clone().unwrap_or_else(unknown)
    }

    fn presser(&mut self, person: &str) -> Presser {
        self.s.accounts.get(person).cloned().unwrap_or(Presser::NotLinked)
    }

    fn open_pull_request(&mut self, branch: &str, is_draft: bool) -> Opened {
        if let Some(seen) = self.pull_request(branch) {
            return Opened::There(seen);
        }
        let number = self.s.pulls.len() as u64 + 1;
        let page = format!("https://git.example.com/acme/api/pull/{number}");
        let at = PullRequestRef { number, page };
        let seen = PullRequestSeen { at, state: PullRequestState::Open, is_draft };
        self.s.pulls.push((branch.to_owned(), seen.clone()));
        Opened::There(seen)
    }

    fn read_recipe(&mut self, _: u32, at: &RecipeAt) -> FoundRecipe {
        self.s.project.read(at)
    }

    fn set_up(&mut self, generation: u32, steps: usize) -> SetUpSeen {
        let now_ms = self.s.now_ms;
        self.s.project.look(generation, steps, now_ms)
    }

    fn start_project(&mut self, _: u32) -> Vec<FailedStep> {
        self.s.project.calls.push("start");
        self.s.project.not_started.clone()
    }

    fn serve(&mut self, generation: u32, is_new: bool) -> Serving {
        self.s.project.serves(generation);
        if is_new && self.s.without_secrets > 0 {
            self.s.without_secrets -= 1;
            return Serving::WithoutSecrets;
        }
        Serving::Healthy
    }

    fn secrets(&mut self, generation: u32, restart: bool) -> Option<GivenSecrets> {
        let (s, at) = (&mut *self.s, self.at);
        s.secrets.served(&s.settings, at, (generation, restart))
    }

    fn cap(&mut self, cap: Option<MicroUsd>) -> Option<Ms> {
        let cap = cap.filter(|_| self.s.caps)?;
        self.s.capped.push(cap);
        Some(self.s.now_ms + LIFE_MS)
    }

    fn limit(&mut self, limit: Option<KeyLimit>) {
        self.s.key_limits.extend(limit);
    }

    fn workspace(&mut self, _: u32) -> Result<Event, Failure> {
        self.s.workspaces.push(self.thread.clone());
        Ok(Event::WorkspaceReady {
            directory: format!("/work/{}", self.thread.short_hash()),
            branch: Some(format!("bobbin/{}", self.thread.short_hash())),
        })
    }

    fn snapshot(&mut self, _: u32, at_ms: Ms) -> Result<(String, SnapshotSeen), Failure> {
        let all = &mut self.s.snapshots;
        let seen = if all.is_empty() { SnapshotSeen::Ready } else { all.remove(0) };
        Ok((format!("snapshot-{at_ms}"), seen))
    }

    fn delete_snapshot(&mut self, name: &str) -> Result<(), Failure> {
        self.s.deleted_snapshots.push(name.to_owned());
        Ok(())
    }

    fn reached(&mut self, generation: u32) -> Result<(), Failure> {
        match self.s.sandboxes.get(&generation) {
            None => Err(Failure::SandboxGone),
            Some(SandboxState::Running) => Ok(()),
            Some(_) => Err(Failure::SandboxDown { seen: "not started".to_owned() }),
        }
    }

    fn agent_session(&mut self, generation: u32, since_ms: Ms) -> Result<AgentSessionId, Failure> {
        if let Some(reason) = self.s.no_session.take() {
            return Err(Failure::TurnFailed { reason });
        }
        self.s.conversations.push(since_ms);
        let id = match since_ms {
            0 => format!("ses_{generation}"),
            since_ms => format!("ses_{generation}_{since_ms}"),
        };
        Ok(id.into())
    }

    fn attach(&mut self, files: &[Attachment]) -> Attached {
        let missed = files.iter().map(|file| format!("{} is gone", file.name));
        let image = |file: &Attachment| Image {
            path: format!("in/{}", file.name),
            name: file.name.clone(),
        };
        ("files".to_owned(), missed.collect(), files.iter().map(image).collect())
    }

    fn intercepts(&mut self, sent: &Sent<'_>) -> Option<Missed> {
        if sent.text.starts_with("and ")
            && let Some(failure) = self.s.fail_steer.take()
        {
            return Some(Missed::Failed(failure));
        }
        self.s.sendings.push(sent.sending);
        let failure = self.s.not_sent.take()?;
        if failure == Failure::SandboxGone {
            self.s.sandboxes.clear();
        }
        Some(Missed::NotSent(failure))
    }

    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed> {
        let s = &mut *self.s;
        if !sent.is_first() {
            s.sent_again.push(sent.ids.message.clone());
        }
        let entry = (sent.generation, sent.ids.message.clone());
        if !s.prompted.contains(&entry) {
            s.prompted.push(entry);
            s.told.push(sent.text.to_owned());
            let with = s.secrets.servers.get(&sent.generation).cloned().unwrap_or_default();
            s.secrets.prompted_with.push(with);
            s.ran_with.push((sent.model.to_owned(), sent.agent.map(str::to_owned)));
            s.seen_images.push(sent.images.to_vec());
        }
        s.unheard.take().map_or(Ok(()), |failure| Err(Missed::Failed(failure)))
    }

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure> {
        let entry = (generation, message.to_owned());
        Ok(match () {
            () if !self.s.prompted.contains(&entry) => PromptState::Absent,
            () if self.s.went_on || self.s.finished.contains(message) => PromptState::Taken,
            () => PromptState::Idle,
        })
    }

    fn follow(&mut self, _: u32, follow: &Follow, is_held: bool) -> Event {
        let s = &mut *self.s;
        let turn = follow.turn.clone();
        if !follow.further.is_empty() {
            if std::mem::take(&mut s.down_after_steer) || s.stays_down_after_steer {
                let seen = "connection refused".to_owned();
                return Event::Failed(Failure::SandboxDown { seen });
            }
            if std::mem::take(&mut s.lost_after_steer) {
                s.sandboxes.clear();
                return Event::Failed(Failure::SandboxGone);
            }
            s.stop_in_follow |= std::mem::take(&mut s.stop_after_steer);
        }
        if let Some(all) = s.stop_all_in_follow.take() {
            s.flags.stopped_all.insert("all".into(), all);
        }
        if std::mem::take(&mut s.stop_in_follow) {
            s.flags.cancelled.insert(turn.clone(), person("bob"));
            s.aborted |= s.abort_wins;
        }
        if let Some(by) = follow.cancelled_by(&s.flags).filter(|_| !s.abort_wins) {
            return Event::CancelSeen { by: by.clone() };
        }
        let known = follow.steers.as_ref();
        let is_new = |id: &TurnId| known.is_some_and(|known| !known.contains(id)) && *id != turn;
        if let Some((id, by)) = s.flags.now.iter().find(|(id, _)| is_new(id))
            && let Some(queued) = s.flags.queued.get(id)
        {
            let (turn, queued, by) = (id.clone(), queued.clone(), by.clone());
            return Event::SteerSeen { turn, queued, by };
        }
        let has = |id: &String| s.prompted.iter().any(|(_, has)| has == id);
        assert!(
            follow.further.iter().all(has),
            "a run is not over before the agent has all its prompts"
        );
        let is_known = |ask: &&AskId| follow.asks.iter().any(|known| known.id == **ask);
        if let Some(ask) = s.asks.iter().find(|ask| !is_known(ask)) {
            let about = About::Permission {
                action: "bash".into(),
                subject: "rm x".into(),
                left_out: 0,
                places: [].into(),
                always: [].into(),
            };
            return Event::Asked { id: ask.clone(), about };
        }
        let closed = |known: &&Ask| !known.settled && !s.asks.contains(&known.id);
        if let Some(known) = follow.asks.iter().find(closed) {
            let settlement = s.flags.settled.get(&known.id).cloned();
            return Event::AskClosed { id: known.id.clone(), settlement };
        }
        if !s.aborted && (s.silent_agent || !s.asks.is_empty()) {
            let gives_way = is_held && follow.gives_way && s.others_wait;
            if gives_way {
                s.now_ms += OTHERS_AFTER_MS;
            } else if is_held {
                s.now_ms = s.now_ms.max(follow.until_ms);
            }
            s.saw.push(follow.seen.clone());
            let card = Some(format!("picture {}", s.saw.len()));
            let seen = Seen { card, spent: s.spent, doubt: s.doubt };
            return if gives_way { Event::OthersWait(seen) } else { Event::StillRunning(seen) };
        }
        s.finished.insert(follow.message.clone());
        s.finished.extend(follow.further.iter().cloned());
        let end = match &s.run_end {
            Some(end) => end.clone(),
            None if s.aborted => RunEnd::Aborted,
            None => RunEnd::Completed,
        };
        Event::Finished(RunAnswer {
            end,
            text: s.answers.clone().unwrap_or_else(|| "the answer".into()),
            usage: Usage { cost_micro_usd: s.spent.unwrap_or_default(), ..Usage::default() },
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    fn abort(&mut self, _: u32, _: &[String]) {
        self.s.aborted = true;
    }

    fn end_run(&mut self, run: &StrayRun) {
        self.s.ended_runs.push(run.clone());
    }

    fn decline(&mut self, _: u32, ask: &AskId) {
        self.s.asks.retain(|open| open != ask);
    }

    fn changes(&mut self, _: u32) -> Result<Changes, Failure> {
        Ok(self.s.changes.clone())
    }

    fn artifacts(&mut self, _: u32) -> Result<Vec<Artifact>, Failure> {
        Ok(self.s.display.clone())
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let s = &mut *self.s;
        s.pull_request_cards += u32::from(*kind == PostKind::PullRequest);
        if let Post::Card(card) = post {
            s.cards.push(card.clone());
        }
        if matches!(kind, PostKind::Rolled(_)) && at.is_none() && s.fail_roll > 0 {
            s.fail_roll -= 1;
            return Err(busy());
        }
        let is_end =
            matches!(post, Post::Card(card) if matches!(card.state, CardState::Ended { .. }));
        let is_alive = !is_end && matches!(post, Post::Card(_));
        if !is_alive && s.closed > 0 {
            s.closed -= 1;
            return Err(closed());
        }
        if is_end && !s.fail_ends.is_empty() {
            return Err(s.fail_ends.remove(0));
        }
        if matches!(post.bare(), Post::Chunk { .. }) && !s.fail_parts.is_empty() {
            return Err(s.fail_parts.remove(0));
        }
        let key = at.map_or_else(|| post_key(self.thread, turn, kind), |at| at.id.clone());
        // A repeated key returns the existing post, as the platforms do; only an edit changes it.
        if !s.posts.contains_key(&key) {
            s.posted.push(key.clone());
            if at.is_none() && !post.calls().is_empty() {
                s.called.insert(key.clone(), post.calls().to_vec());
            }
            s.posts.insert(key.clone(), post.clone());
        } else if at.is_some() {
            s.posts.insert(key.clone(), post.clone());
        }
        Ok(PostRef { channel: "c".into(), id: key })
    }

    fn show(
        &mut self,
        _: u32,
        turn: &TurnId,
        index: u32,
        file: &Artifact,
    ) -> Result<PostRef, String> {
        if let Some(why) = &self.s.unshowable {
            return Err(why.clone());
        }
        let key = post_key(self.thread, turn, &PostKind::Artifact(index));
        if !self.s.posts.contains_key(&key) {
            self.s.posted.push(key.clone());
            let post = Post::File(ShownFile { name: file.name(), bytes: Vec::new() });
            self.s.posts.insert(key.clone(), post);
        }
        Ok(PostRef { channel: "c".into(), id: key })
    }

    fn tell(&mut self, thread: &ThreadKey, word: &str) {
        self.s.told_threads.push((thread.clone(), word.to_owned()));
    }

    fn notify_outside(&mut self, people: &[String], word: &str) -> Result<ThreadKey, Failure> {
        self.s.notified_outside.push((people.to_vec(), word.to_owned()));
        Ok(self.thread.clone())
    }

    fn recalled(&mut self, turns: &[TurnId]) -> Vec<LedgerEntry> {
        turns.iter().filter_map(|turn| self.s.ledger.get(turn).cloned()).collect()
    }

    fn named(&mut self, name: &SandboxName) -> Option<SandboxKey> {
        self.s.names_of.get(name).cloned()
    }

    fn end_tools(&mut self, generation: u32) {
        self.s.tools_ended.push(generation);
    }

    fn agent_seen(&mut self, of: &SandboxKey) -> AgentSeen {
        tool_sandbox::seen(self.s.sandbox_record(of).as_ref())
    }

    fn prebuild(&mut self, builder: &SandboxKey, at: &EffectTarget) -> Option<Prebuild> {
        prebuild::newest(&self.s.sandbox_record(builder)?, at.credentials.as_deref())
    }

    fn wake(&mut self, at_ms: Ms) {
        self.s.wakes.push(at_ms);
    }

    fn options(&mut self, used: &Selection) -> AgentOptions {
        self.s.used.push(used.clone());
        self.s.offer.clone()
    }
}

impl World for Fake {
    fn now_ms(&self) -> Ms {
        self.with(|s| s.now_ms)
    }

    fn visible_until_ms(&self) -> Ms {
        self.with(|s| if s.lapsed { s.now_ms } else { s.now_ms + s.limits.poll.visibility_ms })
    }

    async fn load(&self, of: &ThreadKey, turn: &TurnId) -> Result<Loaded, Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table]) {
            return Err(outage(Out::Table));
        }
        let found = self.with(|s| Loaded {
            session: s.stored(of).map(|record| {
                Session::decode(&record.encode(), Some(&record.sandbox.encode())).unwrap()
            }),
            flags: if s.late_flags { ControlFlags::default() } else { s.flags.clone() },
            in_ledger: s.ledger.contains_key(turn),
            settings: s.settings.clone(),
            parked: s.parked.clone(),
        });
        if after {
            self.crash();
        }
        Ok(found)
    }

    async fn save(
        &self,
        RecordsWrite { session, expected, entries, .. }: RecordsWrite<'_>,
    ) -> Result<Saved, Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return Err(outage(Out::Writes));
        }
        let saved = self.with(|s| {
            let stored = s.stored(&session.thread);
            let of_sandbox = s.sandbox_record(&session.sandbox_at_hand());
            let stored = stored.map(|stored| Session {
                sandbox: of_sandbox.clone().unwrap_or_default(),
                ..stored
            });
            if !expected.are_of(stored.as_ref())
                || !s.names_are_free(&session.observed.writes.names)
            {
                return Saved::Conflict;
            }
            let scopes = session.observed.writes.budgets.iter().map(|one| &one.scope);
            let each: BTreeSet<&BudgetScope> = scopes.clone().collect();
            assert_eq!(each.len(), scopes.count(), "a write changes each sum once");
            for one in &session.observed.writes.budgets {
                let used = s.sums.get(&one.scope).copied().unwrap_or_default();
                if one.at_most.is_some_and(|at_most| used > at_most) {
                    return Saved::OverBudget { scope: one.scope.clone(), used };
                }
            }
            for one in &session.observed.writes.budgets {
                let sum = s.sums.entry(one.scope.clone()).or_default();
                *sum = sum.checked_add_signed(one.add).expect("no sum falls below zero");
            }
            let entries = entries.iter().cloned();
            s.ledger.extend(entries.map(|entry| (entry.turn.clone(), entry)));
            for one in &session.observed.writes.names {
                if one.released {
                    s.names_of.remove(&one.name);
                } else {
                    s.names_of.insert(one.name.clone(), one.sandbox.clone());
                }
            }
            s.writes += 1;
            let signals = signals(stored.as_ref(), session, s.now_ms);
            s.signalled.extend(signals.iter().map(|signal| signal.kind.name()));
            let spent = s.flags.spent(session);
            s.flags = std::mem::take(&mut s.flags).without(&spent);
            s.put(expected.followed_by(session.clone()), expected);
            Saved::Written(if s.late_flags { ControlFlags::default() } else { s.flags.clone() })
        });
        if after {
            self.crash();
        }
        Ok(saved)
    }

    async fn park(&self, _: &ThreadKey, parked: &Parked) -> Option<ControlFlags> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return None;
        }
        let flags = self.with(|s| {
            s.parked = Some(parked.clone());
            if let Some(said) = s.speaks_at_park.take() {
                s.flags = said;
            }
            s.flags.clone()
        });
        if after {
            self.crash();
        }
        Some(flags)
    }

    async fn swept(&self, _: &ThreadKey, sweep: &TurnId) -> Result<(), Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return Err(outage(Out::Writes));
        }
        self.with(|s| s.swept.push(sweep.clone()));
        if after {
            self.crash();
        }
        Ok(())
    }

    async fn perform(&self, addressed: &Addressed<'_>) -> Performed {
        let effect = addressed.effect;
        let after = self.call();
        let follows =
            matches!(effect, Effect::Agent(AgentEffect::Follow(_) | AgentEffect::Look(_)));
        let kills = follows && self.with(|s| s.kills_followers);
        let event = self.effect(addressed);
        if after || kills {
            self.crash();
        }
        event.into()
    }
}

/// The fake world never waits, so one poll is the whole run.
pub(super) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the fake world never waits"),
    }
}

pub(super) fn thread() -> ThreadKey {
    ThreadKey::discord("1", "2").unwrap()
}

pub(super) fn person(name: &str) -> Person {
    Person { id: name.to_owned(), name: name.to_owned() }
}

pub(super) fn prompt(id: &str) -> Message {
    let work =
        Work::Prompt(Prompt { text: "do it".into(), by: person("ann"), ..Prompt::default() });
    Message { id: id.into(), thread: thread(), accepted_at_ms: 1_000_000, work }
}

/// Somebody wants this waiting prompt sent into the run.
pub(super) fn wants_now(world: &Fake, id: &str) {
    let queued = Queued {
        by: person("cy"),
        accepted_at_ms: 1_000_000,
        card: Some(PostRef { channel: "c".into(), id: format!("card of {id}") }),
        refused: false,
        prompt: Some(Box::new(Prompt {
            text: format!("and {id}"),
            by: person("cy"),
            ..Prompt::default()
        })),
    };
    world.with(|s| {
        s.flags.queued.insert(id.into(), queued);
        s.flags.now.insert(id.into(), person("bob"));
    });
}

/// The card of a waiting prompt.
pub(super) fn waiting_card(world: &Fake, id: &str) -> CardState {
    world.with(|s| match s.posts.get(&format!("card of {id}")) {
        Some(Post::Card(card)) => card.state.clone(),
        other => panic!("no card: {other:?}"),
    })
}

/// The mentions of each new post, in order.
pub(super) fn called(world: &Fake) -> Vec<Vec<String>> {
    world.with(|s| {
        let calls = s.posted.iter().filter_map(|key| s.called.get(key));
        calls.cloned().collect()
    })
}

pub(super) fn work(id: &str, work: Work) -> Message {
    Message { id: id.into(), thread: thread(), accepted_at_ms: 1_000_000, work }
}

/// A request for a fresh sandbox.
pub(super) fn reset() -> Message {
    let (by, membership) = (person("ann"), Membership::default());
    work("r1", Work::Reset { by, membership, keeps_files: false })
}

/// A service that refuses because of too many requests.
pub(super) fn busy() -> Failure {
    Failure::Wait { after_ms: 0, seen: "429".to_owned() }
}

/// The first delivery crashes at this call: before it or after its effect.
pub(super) fn dies(world: &Fake, message: &Message, call: u32, after: bool) {
    world.with(|s| s.crash_at = Some((s.calls + call, after)));
    let died = catch_unwind(AssertUnwindSafe(|| deliver(world, message, 1)));
    world.with(|s| s.crash_at = None);
    assert!(died.is_err());
}

pub(super) fn deliver(world: &Fake, message: &Message, receive: u32) -> Verdict {
    let (limits, forge) = world.with(|s| (s.limits.clone(), s.forge.clone()));
    let delivery = Delivery {
        message,
        id: format!("{}#{receive}", message.id),
        receive,
        follow_until_ms: world.now_ms() + HOLD_MS_MAX,
        model: "m",
        providers: &["anthropic".to_owned()],
        runtime: world.with(|s| s.runtime),
        forge: forge.as_ref(),
        limits: &limits,
        split: |text| vec![text.to_owned()],
    };
    now(drive(world, &delivery, None)).verdict
}

pub(super) fn outage(of: Out) -> Failure {
    Failure::Outage { after_ms: 0, seen: format!("the {of:?} does not answer").to_lowercase() }
}

/// Delivers a prompt whose run crashes its follower, from this delivery until it is done. Returns the number of
/// crashes.
pub(super) fn deaths(world: &Fake, id: &str, from: u32) -> u32 {
    let mut died = 0;
    for receive in from..=20 {
        match catch_unwind(AssertUnwindSafe(|| deliver(world, &prompt(id), receive))) {
            Err(_) => died += 1,
            Ok(verdict) => {
                assert_eq!(verdict, Verdict::Done);
                break;
            }
        }
    }
    died
}

/// Delivers until the message is done, moving time by each delay, as often as the queue does.
pub(super) fn deliver_until_done(world: &Fake, message: &Message, from: u32) -> u32 {
    for receive in from..=DELIVERIES_MAX {
        match deliver(world, message, receive) {
            Verdict::Done => return receive,
            Verdict::Hold { delay_ms, .. } | Verdict::Newer { delay_ms, .. } => {
                world.with(|s| s.now_ms += delay_ms)
            }
        }
    }
    panic!("{} never ended: {:?}", message.id, world.with(|s| s.record.clone()));
}

/// Delivers a message until it is done, in a new world for each crash before and after each of its calls, and checks
/// the result. Returns the number of crashes.
pub(super) fn each_crash(
    begun: impl Fn() -> Fake,
    message: &Message,
    check: impl Fn(&Fake, &str),
) -> u32 {
    let world = begun();
    let before = world.with(|s| s.calls);
    deliver_until_done(&world, message, 1);
    let calls = world.with(|s| s.calls) - before;
    for (call, after) in (1..=calls).flat_map(|call| [(call, false), (call, true)]) {
        let world = begun();
        world.with(|s| s.crash_at = Some((s.calls + call, after)));
        let crash = format!("crash at call {call}, after it: {after}");
        let mut receive = 0;
        loop {
            receive += 1;
            match catch_unwind(AssertUnwindSafe(|| deliver(&world, message, receive))) {
                Err(_) => break,
                Ok(Verdict::Hold { delay_ms, .. }) => later(&world, delay_ms),
                Ok(over) => panic!("{crash}: not reached before {over:?}"),
            }
        }
        world.with(|s| s.crash_at = None);
        deliver_until_done(&world, message, receive + 1);
        check(&world, &crash);
    }
    2 * calls
}

pub(super) fn record(world: &Fake) -> Session {
    world.with(|s| s.record.clone().unwrap())
}

pub(super) fn outcomes(world: &Fake) -> Vec<Outcome> {
    record(world).ended.into_iter().map(|turn| turn.outcome).collect()
}

pub(super) fn chunks(world: &Fake) -> Vec<String> {
    world.with(|s| {
        s.posts
            .values()
            .filter_map(|post| match post.bare() {
                Post::Chunk { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect()
    })
}

/// An active thread that has answered once.
pub(super) fn active() -> Fake {
    let world = Fake::new();
    deliver_until_done(&world, &prompt("m1"), 1);
    world
}

/// The answer of a thread that cannot be written to.
pub(super) fn closed() -> Failure {
    Failure::ThreadClosed { seen: "the thread is locked".to_owned() }
}

pub(super) fn later(world: &Fake, ms: u64) {
    world.with(|s| s.now_ms += ms);
}
