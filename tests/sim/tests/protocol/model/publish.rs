//! The model of a thread's pull request: proposals and presses with two workers, crashes and calls that arrive late,
//! while people move the branch, merge, close and delete at the forge, and files change in the sandbox.
//!
//! How a sandbox comes and goes is the other models': here it runs from the beginning.

mod effects;
mod rows;

use std::collections::BTreeSet;
use std::sync::Arc;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Membership;
use bobbin_core::protocol::delivery::Verdict;
use bobbin_core::protocol::effect::{Effect, ForgeEffect};
use bobbin_core::protocol::machine::{Machine, Step};
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::message::Work;
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::sandbox::{Phase, SandboxProject, SandboxRecord};
use bobbin_core::records::session::Session;
use bobbin_core::tenant::repositories::BoundForge;

use super::super::promises::{self, End, Ending, Fact, History, Request};
use super::driver::{
    Asked, Driver, Item, MachineNo, NOW, PAST, PRESENT, START, SessionNo, StepResult, each_known,
    knows, person,
};
use super::faults::Fault;

pub use rows::{transitions_of_few_states, trials};

const BASE: &str = "https://git.example.com";
const REPOSITORY: &str = "acme/api";

/// How often each trouble or action may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    pub crashes: u8,
    pub lapses: u8,
    /// Calls of a worker that has crashed, which arrive later.
    pub late: u8,
    /// People's commits on the branch.
    pub commits: u8,
    /// Pull requests that a person merges or closes, and branches that a person deletes.
    pub ends: u8,
    /// Changes of files in the sandbox.
    pub works: u8,
}

/// The accepted messages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Somebody asks what would be published.
    Show,
    /// Somebody presses on the proposal of this work.
    Press(u8),
    /// Not in order: a hint at the pull request, while its card is outdated.
    Watch,
}

/// A world to explore.
pub struct Publishing {
    kinds: Vec<Kind>,
    fault: Option<Fault>,
    driver: Driver,
    begin: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Worker {
    message: u8,
    delivery: u8,
    lapsed: bool,
    machine: MachineNo,
}

/// People's commits, a bit each.
type Persons = u8;

/// The files in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Files {
    work: u8,
    /// The commits that they follow.
    has: Persons,
    /// The commits that were fetched beside the checkout.
    brought: Persons,
}

/// A branch at the forge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Branch {
    name: String,
    /// Its commit; `None` if the branch does not exist.
    at: Option<String>,
    has: Persons,
    pull: Option<PullRequestState>,
    pulls: u8,
    /// What the card shows.
    card: Option<PullRequestState>,
}

/// A call to the forge that has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Call {
    Push {
        branch: String,
        old: Option<String>,
        new: String,
        has: Persons,
        /// Branch and commit that the record named when it was sent.
        recorded: Option<(String, Option<String>)>,
    },
    Open {
        branch: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    record: SessionNo,
    queue: Vec<u8>,
    in_flight: bool,
    workers: [Option<Worker>; 2],
    accepted: u8,
    files: Files,
    branches: Vec<Branch>,
    /// The commits in each of a person's commits, itself included.
    persons: Vec<Persons>,
    late: Option<Call>,
    facts: Vec<Fact>,
    left: Budget,
    broken: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Accept,
    /// A webhook comes.
    Hint,
    Deliver,
    Step(usize),
    /// This worker sends its effect's call and crashes.
    Send(usize),
    /// The call arrives.
    Land,
    Crash(usize),
    Lapse(usize),
    TimePasses,
    /// Files change in the sandbox: fetched commits are merged.
    FilesChange,
    /// A person pushes a commit to the branch.
    PersonPushes,
    PersonMerges,
    PersonCloses,
    PersonDeletes,
}

fn thread() -> ThreadKey {
    ThreadKey::discord("1", "2").expect("valid")
}

/// The commit of this work.
fn commit(work: u8) -> String {
    format!("{work:040x}")
}

/// The commit of a person.
fn of_person(number: usize) -> String {
    format!("f{number:039x}")
}

fn repository() -> ForgeRepository {
    ForgeRepository {
        installation: 7,
        id: 42,
        name: REPOSITORY.to_owned(),
        address: format!("{BASE}/{REPOSITORY}"),
        is_private: true,
        branch: "main".to_owned(),
    }
}

impl Publishing {
    pub fn new(kinds: &[Kind], budget: Budget, fault: Option<Fault>) -> Self {
        let of = |step| Work::Publish { step, by: person(), membership: Membership::default() };
        let work = |kind: &Kind| {
            let work = match kind {
                Kind::Show => of(PublishStep::Show { subject: None, body: None, of: None }),
                Kind::Press(work) => of(PublishStep::Push { commit: commit(*work) }),
                Kind::Watch => Work::Poll,
            };
            (thread(), work)
        };
        let owners = BTreeSet::from(["acme".to_owned()]);
        let driver = Driver::of(&thread(), kinds.iter().map(work)).at_forge(BoundForge {
            base: BASE.to_owned(),
            owners,
            ..BoundForge::default()
        });
        let sandbox = SandboxRecord {
            version: PRESENT,
            phase: Phase::Active,
            generation: 1,
            project: SandboxProject {
                repo: Some(REPOSITORY.to_owned()),
                carried: Some(Carried {
                    repository: repository(),
                    default: None,
                    folder: None,
                    base: Some("e".repeat(40)),
                }),
                ..SandboxProject::default()
            },
            ..SandboxRecord::new(NOW)
        };
        let record = Session { version: PRESENT, sandbox, ..Session::new(thread(), NOW) };
        let begin = State {
            record: driver.session_no(record),
            queue: Vec::new(),
            in_flight: false,
            workers: [None, None],
            accepted: 0,
            files: Files { work: 1, has: 0, brought: 0 },
            branches: Vec::new(),
            persons: Vec::new(),
            late: None,
            facts: Vec::new(),
            left: budget,
            broken: 0,
        };
        Self { kinds: kinds.to_vec(), fault, driver, begin }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn record(&self, s: &State) -> Arc<Session> {
        self.driver.session(s.record)
    }

    /// The recorded branch, at the forge.
    fn branch<'s>(&self, s: &'s mut State) -> Option<&'s mut Branch> {
        let record = self.record(s);
        let name = &record.published.publication.as_ref()?.branch;
        s.branches.iter_mut().find(|branch| branch.name == *name)
    }

    /// Whether the next message can come: a press needs a proposal in the thread.
    fn can_accept(&self, s: &State) -> bool {
        match self.kinds.get(usize::from(s.accepted)) {
            Some(Kind::Show) => true,
            Some(Kind::Press(work)) => s.facts.contains(&Fact::Proposed { commit: commit(*work) }),
            Some(Kind::Watch) | None => false,
        }
    }

    /// The message of a hint, if one comes now.
    fn hint(&self, s: &State) -> Option<u8> {
        let at = self.kinds.iter().position(|kind| *kind == Kind::Watch)?;
        let message = u8::try_from(at).ok()?;
        let record = self.record(s);
        let publication =
            record.published.publication.as_ref().filter(|one| one.watch.is_some())?;
        let branch = s.branches.iter().find(|branch| branch.name == publication.branch)?;
        let is_coming = s.queue.contains(&message);
        (branch.card != branch.pull && !is_coming).then_some(message)
    }

    /// Every open pull request has a card, and every card shows its state. A pull request that a person ended before
    /// Bobbin knew about it has none: the thread is told of its end.
    fn has_true_cards(&self, s: &State) -> bool {
        let is_true = |branch: &Branch| {
            let is_open = branch.pull == Some(PullRequestState::Open);
            branch.card == branch.pull || branch.card.is_none() && !is_open
        };
        !self.kinds.contains(&Kind::Watch) || s.branches.iter().all(is_true)
    }

    fn quiet(&self, s: &State) -> bool {
        !self.can_accept(s)
            && self.hint(s).is_none()
            && s.queue.is_empty()
            && s.workers.iter().all(Option::is_none)
            && s.late.is_none()
    }

    /// Nothing is under way, everybody was answered, and the record matches the forge.
    fn converged(&self, s: &State) -> bool {
        self.quiet(s) && self.has_true_cards(s) && promises::check(&self.history(s, true)).is_ok()
    }

    fn history(&self, s: &State, at_end: bool) -> History {
        let record = self.record(s);
        let mut facts = s.facts.clone();
        facts.extend(record.ended.iter().filter_map(|ended| {
            let turn = usize::from(self.driver.turn_of(&ended.id)?);
            Some(Fact::Ended { turn, ending: Ending::from(&ended.outcome) })
        }));
        let end = at_end.then(|| End {
            phase: record.sandbox.phase,
            generation: record.sandbox.generation,
            turn: record.turn.is_some(),
            listed: vec![(1, true)],
            is_settled: true,
        });
        let accepted = vec![Request::Publication; usize::from(s.accepted)];
        History { accepted, facts, end, ..History::default() }
    }

    /// Time until the lease of a crashed worker ends.
    fn next_deadline_ms(&self, s: &State) -> Option<u64> {
        let until_ms = self.record(s).sandbox.lease.as_ref()?.until_ms;
        (until_ms > NOW).then(|| until_ms - NOW)
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if self.can_accept(s) {
            actions.push(Action::Accept);
        }
        if self.hint(s).is_some() {
            actions.push(Action::Hint);
        }
        if !s.in_flight && !s.queue.is_empty() && s.workers.contains(&None) {
            actions.push(Action::Deliver);
        }
        for (slot, worker) in s.workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            actions.push(Action::Step(slot));
            let machine = self.driver.machine(worker.machine);
            if *machine == Machine::Start {
                continue;
            }
            if s.left.late > 0 && s.late.is_none() && self.call(s, worker).is_some() {
                actions.push(Action::Send(slot));
            }
            if s.left.crashes > 0 {
                actions.push(Action::Crash(slot));
            }
            if s.left.lapses > 0 && !worker.lapsed {
                actions.push(Action::Lapse(slot));
            }
        }
        if s.late.is_some() {
            actions.push(Action::Land);
        }
        let is_calm = s.workers.iter().flatten().all(|worker| worker.lapsed);
        if is_calm && self.next_deadline_ms(s).is_some() {
            actions.push(Action::TimePasses);
        }
        if s.left.works > 0 {
            actions.push(Action::FilesChange);
        }
        self.deeds(s, actions);
    }

    /// Actions of people at the forge.
    fn deeds(&self, s: &State, actions: &mut Vec<Action>) {
        let record = self.record(s);
        let Some(publication) = &record.published.publication else {
            return;
        };
        if s.left.commits > 0 {
            actions.push(Action::PersonPushes);
        }
        let branch = s.branches.iter().find(|branch| branch.name == publication.branch);
        let Some(branch) = branch.filter(|_| s.left.ends > 0) else {
            return;
        };
        if branch.pull == Some(PullRequestState::Open) {
            actions.extend([Action::PersonMerges, Action::PersonCloses]);
        }
        if branch.at.is_some() {
            actions.push(Action::PersonDeletes);
        }
    }

    fn next(&self, last: &State, action: Action) -> State {
        let mut s = last.clone();
        match action {
            Action::Accept => {
                s.queue.push(s.accepted);
                s.accepted += 1;
            }
            Action::Hint => s.queue.extend(self.hint(last)),
            Action::Deliver => self.deliver(&mut s),
            Action::Step(slot) => self.step(&mut s, slot),
            Action::Send(slot) => {
                s.left.late -= 1;
                s.late = s.workers[slot].take().and_then(|worker| self.call(&s, &worker));
                s.in_flight = false;
            }
            Action::Land => {
                if let Some(call) = s.late.take() {
                    self.lands(&mut s, call);
                }
            }
            Action::Crash(slot) => {
                s.left.crashes -= 1;
                s.in_flight &= s.workers[slot].take().is_some_and(|worker| worker.lapsed);
            }
            Action::Lapse(slot) => {
                s.left.lapses -= 1;
                s.in_flight = false;
                if let Some(worker) = &mut s.workers[slot] {
                    worker.lapsed = true;
                }
            }
            Action::TimePasses => {
                if let Some(by_ms) = self.next_deadline_ms(&s) {
                    s.record = self.driver.shift(s.record, by_ms);
                    for worker in s.workers.iter_mut().flatten() {
                        worker.machine = self.driver.shift_machine(worker.machine, by_ms);
                    }
                }
            }
            Action::FilesChange => {
                s.left.works -= 1;
                s.files.work += 1;
                s.files.has |= s.files.brought;
            }
            Action::PersonPushes => self.person_pushes(&mut s),
            Action::PersonMerges => self.person_ends(&mut s, Some(PullRequestState::Merged)),
            Action::PersonCloses => self.person_ends(&mut s, Some(PullRequestState::Closed)),
            Action::PersonDeletes => self.person_ends(&mut s, None),
        }
        s.broken = promises::broken(&self.history(&s, false));
        s
    }

    fn person_pushes(&self, s: &mut State) {
        s.left.commits -= 1;
        let Some(name) =
            self.record(s).published.publication.as_ref().map(|one| one.branch.clone())
        else {
            return;
        };
        let number = s.persons.len();
        let branch = branch_of(s, &name);
        branch.at = Some(of_person(number));
        branch.has |= 1 << number;
        let has = branch.has;
        s.persons.push(has);
    }

    /// A person merges or closes the pull request, or deletes the branch, which closes it.
    fn person_ends(&self, s: &mut State, to: Option<PullRequestState>) {
        s.left.ends -= 1;
        let Some(branch) = self.branch(s) else {
            return;
        };
        if to.is_none() {
            (branch.at, branch.has) = (None, 0);
        }
        let is_open = branch.pull == Some(PullRequestState::Open);
        if is_open {
            branch.pull = Some(to.unwrap_or(PullRequestState::Closed));
            let branch = branch.name.clone();
            s.facts.push(Fact::PersonClosed { branch });
        }
    }

    fn deliver(&self, s: &mut State) {
        let Some(slot) = s.workers.iter().position(Option::is_none) else {
            return;
        };
        let message = s.queue[0];
        let item = Item::Message(message);
        let mut others = s.workers.iter().flatten();
        let other = others.find(|worker| worker.message == message).map(|worker| worker.delivery);
        let delivery = self.driver.fresh_delivery(s.record, item, other);
        s.workers[slot] = Some(Worker { message, delivery, lapsed: false, machine: START });
        s.in_flight = true;
    }

    fn step(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        let came = match self.driver.step(&machine, Item::Message(worker.message), worker.lapsed) {
            Step::Read => StepResult::Read { record: s.record, flags: 0, parked: false },
            Step::Write { write, .. } => return self.write(s, slot, write.session, write.expected),
            Step::Park(_) => StepResult::Parked { flags: 0 },
            Step::Perform(effect) => {
                let event = self.perform(s, knows(&machine), &worker, &effect);
                StepResult::Done(self.driver.event_no(event))
            }
            Step::PerformBoth { work, card } => {
                let [work, card] = [work, card].map(|effect| {
                    let event = self.perform(s, knows(&machine), &worker, &effect);
                    self.driver.event_no(event)
                });
                StepResult::Both(work, card)
            }
            Step::End(verdict) => return Self::give_back(s, slot, verdict == Verdict::Done),
        };
        self.then(s, slot, came);
    }

    fn give_back(s: &mut State, slot: usize, done: bool) {
        // An expired receipt is invalid: neither deleting nor retrying works with it.
        if s.workers[slot].take().is_none_or(|worker| worker.lapsed) {
            return;
        }
        s.in_flight = false;
        if done {
            s.queue.remove(0);
        }
    }

    fn then(&self, s: &mut State, slot: usize, came: StepResult) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let Worker { message, delivery, lapsed, machine } = worker;
        let item = Item::Message(message);
        let after = self.driver.after(machine, came, Asked { item, delivery, lapsed, mints: 0 });
        s.workers[slot] = Some(Worker { machine: after.machine, ..worker });
        let machine = self.driver.machine(after.machine);
        if let Step::End(verdict) = self.driver.step(&machine, item, false) {
            Self::give_back(s, slot, verdict == Verdict::Done);
        }
    }

    /// Writes if the versions are still the expected ones; everyone else's copy is stale from then on.
    fn write(&self, s: &mut State, slot: usize, session: &Session, expected: ExpectedVersions) {
        let stored = self.record(s);
        if !expected.are_of(Some(&stored)) {
            return self.then(s, slot, StepResult::Conflict);
        }
        let mut written = (*stored).clone();
        if expected.sandbox.is_some() {
            written.sandbox = SandboxRecord { version: PRESENT, ..session.sandbox.clone() };
        }
        if expected.thread.is_some() {
            let sandbox = written.sandbox;
            let observed = Default::default();
            written = Session { version: PRESENT, sandbox, observed, ..session.clone() };
        }
        s.record = self.driver.session_no(written);
        self.then(s, slot, StepResult::Written { flags: 0 });
        for (at, worker) in s.workers.iter_mut().enumerate() {
            let Some(worker) = worker else { continue };
            let mut machine = (*self.driver.machine(worker.machine)).clone();
            each_known(&mut machine, |known| {
                let version = |version: &mut u64| {
                    // The writer knows the new state under the versions after those that it read.
                    if at == slot {
                        *version = PRESENT;
                    } else if *version == PRESENT {
                        *version = PAST;
                    }
                };
                if expected.thread.is_some() {
                    version(&mut known.version);
                }
                if expected.sandbox.is_some() {
                    version(&mut known.sandbox.version);
                }
            });
            worker.machine = self.driver.machine_no(machine);
        }
    }

    /// The call with which a worker is about to change something at the forge; `None` if there is none, or a check
    /// before it would find that it need not, or must not, be sent.
    fn call(&self, s: &State, worker: &Worker) -> Option<Call> {
        let machine = self.driver.machine(worker.machine);
        let step = self.driver.step(&machine, Item::Message(worker.message), worker.lapsed);
        let Step::Perform(addressed) = step else {
            return None;
        };
        let Effect::Forge(effect) = addressed.effect else {
            return None;
        };
        match effect {
            ForgeEffect::Push { carried, branch, old, new, follows } => {
                let (old, follows) = (old.as_deref(), follows.as_deref());
                let repository = carried.repository.id;
                let moving = effects::Moving { repository, branch, old, new, follows };
                self.push_call(s, knows(&machine), &moving).ok()
            }
            ForgeEffect::OpenPullRequest { branch, .. } => {
                let is_new = s.branches.iter().all(|one| one.name != *branch || one.pulls == 0);
                is_new.then(|| Call::Open { branch: branch.clone() })
            }
            _ => None,
        }
    }
}

/// The branch with this name, which need not exist yet.
fn branch_of<'s>(s: &'s mut State, name: &str) -> &'s mut Branch {
    let at = s.branches.iter().position(|branch| branch.name == name).unwrap_or_else(|| {
        let name = name.to_owned();
        s.branches.push(Branch { name, at: None, has: 0, pull: None, pulls: 0, card: None });
        s.branches.len() - 1
    });
    &mut s.branches[at]
}

fn posted(s: &mut State, turn: usize, kind: &PostKind) -> bool {
    let fact = Fact::Posted { turn, kind: kind.clone() };
    let is_new = !s.facts.contains(&fact);
    if is_new {
        s.facts.push(fact);
    }
    is_new
}
