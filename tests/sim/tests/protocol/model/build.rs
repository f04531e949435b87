//! The model of a repository's prebuilds: messages in the builder's group and threads that look for what it makes, with
//! two workers, crashes, calls that arrive late, sandboxes and snapshots that vanish, and managers who switch it off.
//!
//! How a thread's own sandbox is stopped, deleted or shared is the other models': here it stays once it is there. Time
//! passes for the builder alone, because nothing of a thread waits for it.

mod effects;
mod rows;
mod steps;

use std::sync::Arc;

use bobbin_core::base::ids::{Ms, SandboxKey, ThreadKey};
use bobbin_core::base::limits::{Limits, SetUpLimits, ShareLimits};
use bobbin_core::protocol::decide::orphan::{Graces, RecordVerdict, fate};
use bobbin_core::protocol::effect::{Effect, SandboxEffect};
use bobbin_core::protocol::machine::{Machine, Step};
use bobbin_core::records::message::Work;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::prebuild::{BuildKey, BuildPurpose, NewBuild, builder_of};
use bobbin_core::records::recipe::{Recipe, RecipeSource, RecipeStep};
use bobbin_core::records::session::Session;

use super::super::promises::{self, End, Ending, Fact, History, Request};
use super::driver::{Driver, Item, LIMITS, MachineNo, NOW, SessionNo, knows, prompt};
use super::faults::Fault;

pub use rows::{transitions_of_few_states, trials};

const REPOSITORY: &str = "acme/api";
const THREADS: usize = 2;
/// The builder's group, after those of the threads.
const BUILDER: Group = THREADS;
const GROUPS: usize = THREADS + 1;
/// Generations of each sandbox, at most.
const GENERATIONS: usize = 4;
/// Contents of the lock files.
const LOCKS: usize = 2;
/// How long a prebuild is kept.
const TTL_MS: u64 = 200;

const ENDED: &str = "promise 3";
const TWICE: &str = "two requests of one hash make one prebuild";
const BARE: &str = "no server and no key in a builder";
const HINDERED: &str = "no turn waits for a prebuild or fails over one";
const TAKEN: &str =
    "a former prebuild goes only once the new one is ready, and no person's snapshot ever";
const KEPT: &str = "a prebuild that a thread met in vain leaves the record";

const BOUNDS: Limits = Limits {
    set_up: SetUpLimits { prebuild_ttl_ms: TTL_MS, prebuilds: 1, ..SetUpLimits::DEFAULT },
    share: ShareLimits { snapshot_ms: 40, ..LIMITS.share },
    ..LIMITS
};

/// A group of the queue: a thread's, or the builder's.
type Group = usize;

/// How often each trouble or action may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    pub crashes: u8,
    pub lapses: u8,
    /// Calls of a worker that has crashed, which arrive later.
    pub late: u8,
    /// Messages that are delivered again although they were accepted.
    pub repeats: u8,
    /// Set-ups and snapshots that fail.
    pub fails: u8,
    /// Builders that vanish.
    pub losses: u8,
    /// Ready prebuilds that vanish.
    pub holes: u8,
    /// Changes of the lock files.
    pub changes: u8,
    /// Managers switch the project's set-up off.
    pub offs: u8,
}

/// The accepted messages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A prompt of a thread, whose sandbox begins with it.
    Prompt(usize),
    /// A request for a prebuild after a set-up with these lock files.
    Build(usize),
    /// The same on another day.
    Again(usize),
}

/// A world to explore.
pub struct Building {
    kinds: Vec<Kind>,
    budget: Budget,
    /// The provider's limit of snapshots.
    room: usize,
    fault: Option<Fault>,
    driver: Driver,
    begin: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Worker {
    message: u8,
    group: Group,
    delivery: u8,
    lapsed: bool,
    machine: MachineNo,
}

/// A generation of a sandbox at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Provided {
    there: bool,
    is_coming: bool,
    cloned: bool,
    /// Its disk comes from a prebuild.
    prebuilt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Making {
    UnderWay,
    Ready,
    Failed,
}

/// A snapshot of the builder at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kept {
    /// The generation that it was made from, and so the message: no two make one from the same.
    generation: u32,
    locks: usize,
    making: Making,
}

/// A call to the provider that has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Call {
    Create(u32),
    Delete(u32),
    /// With the recorded names, if room is to be made for it.
    Snapshot(Kept, Option<Vec<String>>),
    DeleteSnapshot(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Each thread's record with its sandbox's, and the builder's.
    records: [SessionNo; GROUPS],
    queues: [Vec<u8>; GROUPS],
    in_flight: [bool; GROUPS],
    workers: [Option<Worker>; 2],
    accepted: u8,
    /// Bit n: message n was accepted.
    known: u16,
    provided: [[Provided; GENERATIONS]; GROUPS],
    /// Bit n: the agent has the prompt of message n.
    prompted: u8,
    locks: usize,
    snapshots: Vec<Kept>,
    /// A person's snapshot of another sandbox.
    of_person: bool,
    /// An old prebuild of another repository.
    of_other: bool,
    /// Generations whose prebuild a thread found missing.
    met: Vec<u32>,
    /// Generations whose snapshot nobody had read when the builder vanished: the next build may delete it for room.
    unread: Vec<u32>,
    late: Option<Call>,
    is_off: bool,
    left: Budget,
    /// Broken promises.
    broken: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Accept,
    /// An accepted message is delivered again.
    Repeat(u8),
    Sweep,
    /// The orphan hunt sees this generation of the builder's sandbox.
    Hunt(u32),
    Deliver(Group),
    Step(usize),
    /// The set-up that this worker polls fails.
    Fail(usize),
    /// This worker sends its effect's call and crashes.
    Send(usize),
    /// The call arrives.
    Land,
    Crash(usize),
    Lapse(usize),
    TimePasses,
    /// The builder's sandbox starts.
    Come,
    /// The snapshot is ready.
    Finish,
    /// The snapshot fails.
    Spoil,
    /// The builder's sandbox vanishes.
    Vanish,
    /// A ready prebuild vanishes.
    Lose,
    LocksChange,
    SwitchOff,
}

fn thread(at: usize) -> ThreadKey {
    ThreadKey::discord("1", &format!("{}", at + 2)).expect("valid")
}

fn builder() -> SandboxKey {
    builder_of(&thread(0).tenant(), REPOSITORY, None)
}

fn group_key(group: Group) -> ThreadKey {
    if group < THREADS { thread(group) } else { builder().group() }
}

fn recipe() -> Recipe {
    let step = RecipeStep { name: "install".to_owned(), run: "install".to_owned() };
    let from = RecipeSource::File(".bobbin/environment.yaml".to_owned());
    Recipe { set_up: vec![step], ..Recipe::empty(from) }
}

/// The lock files' content.
fn content(locks: usize) -> String {
    format!("locks-{locks}")
}

fn hash(locks: usize) -> String {
    BuildKey::of("image", &recipe().text(), &content(locks)).hash
}

/// The snapshot's name.
fn name(generation: u32) -> String {
    format!("prebuild-{generation}")
}

fn build(locks: usize, useless: Option<u32>) -> Work {
    Work::Build(NewBuild {
        repo: REPOSITORY.to_owned(),
        provider: None,
        channel: String::new(),
        hash: hash(locks),
        useless: useless.map(name),
        purpose: BuildPurpose::Build,
    })
}

impl Building {
    pub fn new(kinds: &[Kind], budget: Budget, fault: Option<Fault>) -> Self {
        let of_builder = |work| (builder().group(), work);
        let accepted = kinds.iter().map(|kind| match kind {
            Kind::Prompt(at) => (thread(*at), prompt(Some(REPOSITORY))),
            Kind::Build(locks) | Kind::Again(locks) => of_builder(build(*locks, None)),
        });
        // The requests that threads may send.
        let requests = (0..LOCKS).flat_map(|locks| {
            let useless = (1..).take(GENERATIONS).map(Some);
            useless.chain([None]).map(move |useless| of_builder(build(locks, useless)))
        });
        let others = [Work::Sweep, Work::Reconcile].map(of_builder);
        let all = accepted.chain(requests).chain(others);
        let driver = Driver::of(&thread(0), all).within(&BOUNDS).with_switch(REPOSITORY);
        let records = [0, 1, BUILDER].map(|group| {
            let session = Session::new(group_key(group), NOW);
            driver.session_no(session)
        });
        let begin = State {
            records,
            queues: Default::default(),
            in_flight: [false; GROUPS],
            workers: [None, None],
            accepted: 0,
            known: 0,
            provided: Default::default(),
            prompted: 0,
            locks: 0,
            snapshots: Vec::new(),
            of_person: true,
            of_other: true,
            met: Vec::new(),
            unread: Vec::new(),
            late: None,
            is_off: false,
            left: budget,
            broken: Vec::new(),
        };
        Self { kinds: kinds.to_vec(), budget, room: usize::MAX, fault, driver, begin }
    }

    /// Limits the provider's number of snapshots.
    pub fn with_room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn record(&self, s: &State, group: Group) -> Arc<Session> {
        self.driver.session(s.records[group])
    }

    /// The message with this request to the builder: the same one, however many threads ask.
    fn message_of(&self, work: &Work) -> u8 {
        let all = self.driver.messages();
        let at = all.iter().position(|message| message.work == *work);
        at.and_then(|at| u8::try_from(at).ok()).expect("only what threads may request")
    }

    /// Puts a message into the builder's group, once.
    fn request(s: &mut State, message: u8) {
        if s.known & (1 << message) == 0 {
            s.known |= 1 << message;
            s.queues[BUILDER].push(message);
        }
    }

    /// Requests for prebuilds that were accepted.
    fn requests<'s>(&'s self, s: &'s State) -> impl Iterator<Item = u8> + 's {
        let all = self.driver.messages();
        let is_request = |message: &u8| {
            let is_known = s.known & (1 << message) != 0;
            is_known && matches!(all[usize::from(*message)].work, Work::Build(_))
        };
        (0..u8::try_from(all.len()).unwrap_or(u8::MAX)).filter(is_request)
    }

    fn quiet(&self, s: &State) -> bool {
        usize::from(s.accepted) == self.kinds.len()
            && s.queues.iter().all(Vec::is_empty)
            && s.workers.iter().all(Option::is_none)
            && s.late.is_none()
    }

    /// Every prompt was answered, every request's end is on record, no builder is left, and each prebuild was deleted
    /// when it expired: nothing was forgotten but what only the next build can find.
    fn converged(&self, s: &State) -> bool {
        let is_answered = |(message, kind): (usize, &Kind)| match kind {
            Kind::Prompt(at) => {
                let message = u8::try_from(message).unwrap_or(u8::MAX);
                let id = self.driver.id_of(message);
                self.record(s, *at).ended.iter().any(|ended| ended.id == id)
            }
            Kind::Build(_) | Kind::Again(_) => true,
        };
        self.quiet(s)
            && self.kinds.iter().enumerate().all(is_answered)
            && s.snapshots.iter().all(|one| s.unread.contains(&one.generation))
            && promises::check(&self.history(s, true)).is_ok()
    }

    /// The builder's history, for the promises.
    fn history(&self, s: &State, at_end: bool) -> History {
        let record = self.record(s, BUILDER);
        let requests: Vec<u8> = self.requests(s).collect();
        let generation = record.sandbox.generation;
        let listed = (1..).zip(&s.provided[BUILDER]).filter(|(_, one)| one.there);
        let listed: Vec<(u32, bool)> = listed.map(|(at, one)| (at, !one.is_coming)).collect();
        let ended = record.sandbox.history.operated.iter().filter_map(|one| {
            let message = self.driver.turn_of(&one.id)?;
            let turn = requests.iter().position(|request| *request == message)?;
            let ending = if one.trouble.is_none() { Ending::Answered } else { Ending::Failed };
            Some(Fact::Ended { turn, ending })
        });
        let end = at_end.then(|| End {
            phase: record.sandbox.phase,
            generation,
            turn: false,
            listed,
            is_settled: true,
        });
        let accepted = vec![Request::Operation; requests.len()];
        History { accepted, facts: ended.collect(), end, ..History::default() }
    }

    /// Time until something of the builder is due, or the lease of a crashed worker ends.
    fn next_deadline_ms(&self, s: &State) -> Option<u64> {
        let record = self.record(s, BUILDER);
        let rests = s.queues[BUILDER].is_empty();
        let lease = record.sandbox.lease.as_ref().map(|lease| lease.until_ms);
        let due = record.sandbox.due_at_ms.filter(|_| rests);
        lease.into_iter().chain(due).filter(|at| *at > NOW).min().map(|at| at - NOW)
    }

    fn is_due(&self, s: &State) -> bool {
        self.record(s, BUILDER).sandbox.due_at_ms.is_some_and(|at: Ms| at <= NOW)
    }

    /// The orphan hunt's decision on a generation of the builder's sandbox.
    fn fate(&self, s: &State, generation: u32) -> RecordVerdict {
        let record = self.record(s, BUILDER);
        let graces = Graces { young_ms: 0, vanished_ms: 0 };
        fate(Some(&record.sandbox), generation, NOW, NOW, graces)
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if usize::from(s.accepted) < self.kinds.len() {
            actions.push(Action::Accept);
        }
        if s.left.repeats > 0 {
            let over = self.requests(s).filter(|message| !s.queues[BUILDER].contains(message));
            actions.extend(over.map(Action::Repeat));
        }
        if s.queues[BUILDER].is_empty() && self.is_due(s) {
            actions.push(Action::Sweep);
        }
        for generation in (1..).take(GENERATIONS) {
            let is_there = s.provided[BUILDER][generation as usize - 1].there;
            if is_there && !self.has(Fault::NoHunt) {
                match self.fate(s, generation) {
                    RecordVerdict::Orphan => actions.push(Action::Hunt(generation)),
                    RecordVerdict::TakenBack if s.queues[BUILDER].is_empty() => {
                        actions.push(Action::Hunt(generation));
                    }
                    _ => {}
                }
            }
        }
        for group in 0..GROUPS {
            if s.workers.contains(&None) && !s.in_flight[group] && !s.queues[group].is_empty() {
                actions.push(Action::Deliver(group));
            }
        }
        self.of_workers(s, actions);
        self.of_provider(s, actions);
        if s.late.is_some() {
            actions.push(Action::Land);
        }
        let of_builder = s.workers.iter().flatten().filter(|worker| worker.group == BUILDER);
        if of_builder.into_iter().all(|worker| worker.lapsed) && self.next_deadline_ms(s).is_some()
        {
            actions.push(Action::TimePasses);
        }
        if s.left.changes > 0 {
            actions.push(Action::LocksChange);
        }
        if s.left.offs > 0 {
            actions.push(Action::SwitchOff);
        }
    }

    /// Actions of workers, and trouble for them.
    fn of_workers(&self, s: &State, actions: &mut Vec<Action>) {
        for (slot, worker) in s.workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            actions.push(Action::Step(slot));
            let machine = self.driver.machine(worker.machine);
            if *machine == Machine::Start {
                continue;
            }
            if s.left.fails > 0 && self.looks_at_set_up(worker, &machine) {
                actions.push(Action::Fail(slot));
            }
            if s.left.late > 0 && s.late.is_none() && self.call(worker).is_some() {
                actions.push(Action::Send(slot));
            }
            if s.left.crashes > 0 && !worker.lapsed {
                actions.push(Action::Crash(slot));
            }
            if s.left.lapses > 0 && !worker.lapsed {
                actions.push(Action::Lapse(slot));
            }
        }
    }

    /// Actions of the provider.
    fn of_provider(&self, s: &State, actions: &mut Vec<Action>) {
        let mut sandboxes = s.provided[BUILDER].iter();
        if sandboxes.any(|one| one.is_coming) {
            actions.push(Action::Come);
        }
        if s.left.losses > 0 && s.provided[BUILDER].iter().any(|one| one.there) {
            actions.push(Action::Vanish);
        }
        let is = |making| s.snapshots.iter().any(|one| one.making == making);
        if is(Making::UnderWay) {
            actions.push(Action::Finish);
            if s.left.fails > 0 {
                actions.push(Action::Spoil);
            }
        }
        if s.left.holes > 0 && is(Making::Ready) {
            actions.push(Action::Lose);
        }
    }

    fn looks_at_set_up(&self, worker: &Worker, machine: &Machine) -> bool {
        let step = self.driver.step(machine, Item::Message(worker.message), worker.lapsed);
        let Step::Perform(addressed) = step else {
            return false;
        };
        worker.group == BUILDER
            && matches!(addressed.effect, Effect::Sandbox(SandboxEffect::SetUp { .. }))
    }

    /// The call with which a worker is about to change something at the provider.
    fn call(&self, worker: &Worker) -> Option<Call> {
        let machine = self.driver.machine(worker.machine);
        let step = self.driver.step(&machine, Item::Message(worker.message), worker.lapsed);
        let (Step::Perform(addressed), BUILDER) = (step, worker.group) else {
            return None;
        };
        let generation = addressed.at.generation;
        let Effect::Sandbox(effect) = addressed.effect else {
            return None;
        };
        match effect {
            SandboxEffect::Create { .. } => Some(Call::Create(generation)),
            SandboxEffect::Delete => Some(Call::Delete(generation)),
            SandboxEffect::Snapshot { .. } => {
                Some(Call::Snapshot(snapshot_of(knows(&machine)?), kept_beside(effect)))
            }
            SandboxEffect::DeleteSnapshot { name } => Some(Call::DeleteSnapshot(name.clone())),
            _ => None,
        }
    }

    fn next(&self, last: &State, action: Action) -> State {
        let mut s = last.clone();
        match action {
            Action::Accept => {
                let message = s.accepted;
                s.accepted += 1;
                match self.kinds[usize::from(message)] {
                    Kind::Prompt(at) => s.queues[at].push(message),
                    Kind::Build(locks) => {
                        let first = self.message_of(&build(locks, None));
                        Self::request(&mut s, first);
                    }
                    Kind::Again(_) => Self::request(&mut s, message),
                }
            }
            Action::Repeat(message) => {
                s.left.repeats -= 1;
                s.queues[BUILDER].push(message);
            }
            Action::Sweep => s.queues[BUILDER].push(self.message_of(&Work::Sweep)),
            Action::Hunt(generation) => match self.fate(&s, generation) {
                RecordVerdict::Orphan => {
                    s.provided[BUILDER][generation as usize - 1] = Provided::default()
                }
                _ => s.queues[BUILDER].push(self.message_of(&Work::Reconcile)),
            },
            Action::Deliver(group) => self.deliver(&mut s, group),
            Action::Step(slot) => self.step(&mut s, slot, false),
            Action::Fail(slot) => {
                s.left.fails -= 1;
                self.step(&mut s, slot, true);
            }
            Action::Send(slot) => {
                s.left.late -= 1;
                if let Some(worker) = s.workers[slot].take() {
                    s.late = self.call(&worker);
                    self.judge(&mut s, &worker);
                    s.in_flight[worker.group] &= worker.lapsed;
                }
            }
            Action::Land => {
                if let Some(call) = s.late.take() {
                    self.land(&mut s, call);
                }
            }
            Action::Crash(slot) => {
                s.left.crashes -= 1;
                if let Some(worker) = s.workers[slot].take() {
                    s.in_flight[worker.group] = false;
                }
            }
            Action::Lapse(slot) => {
                s.left.lapses -= 1;
                if let Some(worker) = &mut s.workers[slot] {
                    worker.lapsed = true;
                    s.in_flight[worker.group] = false;
                }
            }
            Action::TimePasses => {
                if let Some(by_ms) = self.next_deadline_ms(&s) {
                    s.records[BUILDER] = self.driver.shift(s.records[BUILDER], by_ms);
                    for worker in s.workers.iter_mut().flatten() {
                        if worker.group == BUILDER {
                            worker.machine = self.driver.shift_machine(worker.machine, by_ms);
                        }
                    }
                }
            }
            Action::Come => s.provided[BUILDER].iter_mut().for_each(|one| one.is_coming = false),
            Action::Finish => come_to(&mut s, Making::Ready),
            Action::Spoil => {
                s.left.fails -= 1;
                come_to(&mut s, Making::Failed);
            }
            Action::Vanish => {
                s.left.losses -= 1;
                s.provided[BUILDER] = Default::default();
                let record = self.record(&s, BUILDER);
                let is_unread = |one: &&Kept| {
                    record.sandbox.snapshots.iter().all(|kept| kept.name != name(one.generation))
                };
                let unread = s.snapshots.iter().filter(is_unread).map(|one| one.generation);
                s.unread = unread.collect();
            }
            Action::Lose => {
                s.left.holes -= 1;
                s.snapshots.retain(|one| one.making != Making::Ready);
            }
            Action::LocksChange => {
                s.left.changes -= 1;
                s.locks = (s.locks + 1) % LOCKS;
            }
            Action::SwitchOff => {
                s.left.offs -= 1;
                s.is_off = true;
            }
        }
        self.look(&mut s, last);
        s
    }

    /// Breaks that the records alone show.
    fn look(&self, s: &mut State, last: &State) {
        if s.records != last.records {
            let is_other = |at: usize| {
                let record = self.record(s, at);
                record.ended.iter().any(|ended| ended.outcome != Outcome::Answered)
            };
            if (0..THREADS).any(is_other) {
                breaks(s, HINDERED);
            }
            if promises::is_broken(promises::broken(&self.history(s, false)), 3) {
                breaks(s, ENDED);
            }
        }
        // With all switched off nobody begins with a prebuild.
        if !s.met.is_empty() && !s.is_off && self.quiet(s) {
            let record = self.record(s, BUILDER);
            let mut kept = record.sandbox.snapshots.iter();
            if kept.any(|kept| s.met.iter().any(|met| kept.name == name(*met))) {
                breaks(s, KEPT);
            }
        }
    }

    fn within(&self, s: &State) -> bool {
        let generation = |group| self.record(s, group).sandbox.generation as usize;
        (0..GROUPS).all(|group| generation(group) < GENERATIONS)
    }
}

/// Ends a snapshot that is under way.
fn come_to(s: &mut State, making: Making) {
    let under_way = s.snapshots.iter_mut().filter(|one| one.making == Making::UnderWay);
    under_way.for_each(|one| one.making = making);
}

fn breaks(s: &mut State, what: &'static str) {
    if !s.broken.contains(&what) {
        s.broken.push(what);
        s.broken.sort_unstable();
    }
}

/// The recorded names that a worker spares when it makes room for a snapshot; `None`: it only polls.
fn kept_beside(effect: &SandboxEffect) -> Option<Vec<String>> {
    match effect {
        SandboxEffect::Snapshot { after_ms: 0, share: Some(share), .. } => {
            Some(share.keeps.clone())
        }
        _ => None,
    }
}

/// The snapshot that a worker requests, as it begins.
fn snapshot_of(known: &Session) -> Kept {
    let key = known.sandbox.project.set_up.as_ref().and_then(|set_up| set_up.key.clone());
    let locks = (0..LOCKS).find(|locks| key.as_ref().is_some_and(|key| key.hash == hash(*locks)));
    Kept {
        generation: known.sandbox.generation,
        locks: locks.unwrap_or(LOCKS),
        making: Making::UnderWay,
    }
}
