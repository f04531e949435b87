//! The model of shared sandboxes: two threads, their sandboxes' own groups, two workers, sweeps, crashes, and a person
//! who wants the sandbox stopped or deleted at any moment.
//!
//! What one thread meets alone (Stop, steering, cut paths, dead letters, the orphan hunt) is the other model's.
//! Versions say only whether what a worker knows is still what is stored, so that a state does not tell how often
//! something was written. Where the month has a budget, each run takes steps that cost, one before each look.

mod effects;
mod money;
mod rows;
mod steps;

use bobbin_core::base::ids::{Ms, SandboxName, ThreadKey};
use bobbin_core::base::names::PostKind;
use bobbin_core::protocol::machine::Machine;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::Work;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::budgets::MicroUsd;

use super::super::promises::{self, End, Ending, Fact, History, Request};
use super::driver::{Driver, Item, MachineNo, NOW, PRESENT, SessionNo, person, prompt};
use super::faults::Fault;

pub use rows::{transitions_of_few_states, trials};

/// Threads, each with its own sandbox.
const THREADS: usize = 2;
/// Generations of each sandbox, at most.
const GENERATIONS: usize = 3;
/// Most messages of one system, including its sweeps.
const MESSAGES: usize = 9;

/// A group of the queue: a thread's, or after those a sandbox's.
type Group = usize;

/// How often each trouble or message may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    pub crashes: u8,
    pub lapses: u8,
    /// Sweeps without a reason.
    pub sweeps: u8,
    /// Operations that wait too long for the sandbox's turns.
    pub ages: u8,
}

/// The accepted messages, in order: a thread's prompt, or an operation on the first one's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prompt(usize),
    Operate(Operation),
}

/// How the threads share sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Only the first one, in an unnamed sandbox.
    Private,
    /// Each in its own sandbox.
    Apart,
    /// Both in the common checkout of the first one's.
    Common,
    /// The second one in its own worktree.
    Worktrees,
}

/// A world to explore.
pub struct Shared {
    kinds: Vec<Kind>,
    fault: Option<Fault>,
    driver: Driver,
    begin: State,
    /// The month has a budget.
    is_capped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Worker {
    item: Item,
    group: Group,
    delivery: u8,
    lapsed: bool,
    machine: MachineNo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Provided {
    there: bool,
    running: bool,
    server: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Run {
    #[default]
    None,
    Going,
    Broken,
    Done,
    Aborted,
}

/// What agent and chat know about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Known {
    run: Run,
    /// Where it runs: whose sandbox, its generation, and whether in the common checkout.
    home: u8,
    generation: u8,
    common: bool,
    /// Bit n: the agent has the ids of minting n.
    ids: u8,
    mints: u8,
    card: u8,
    chunk: u8,
    notice: u8,
    told: Option<Ending>,
    /// Steps of its runs, if they cost something.
    steps: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Each thread's and each sandbox's record, with the other half empty.
    threads: [SessionNo; THREADS],
    homes: [SessionNo; THREADS],
    queues: [Vec<Item>; 2 * THREADS],
    in_flight: [bool; 2 * THREADS],
    workers: [Option<Worker>; 2],
    provided: [[Provided; GENERATIONS]; THREADS],
    known: [Known; MESSAGES],
    /// (message, generation) in the order in which agents took them.
    order: Vec<(u8, u8)>,
    accepted: u8,
    left: Budget,
    /// Bit n: thread n was told what happened to its sandbox.
    told: u8,
    hits: u8,
    /// Two turns worked in one workspace.
    crowded: bool,
    /// A link was changed at once.
    relinked: bool,
    /// The stored sum of the month.
    used: MicroUsd,
    broken: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Accept,
    Sweep(Group),
    Deliver(Group),
    Step(usize),
    Crash(usize),
    Lapse(usize),
    /// The operation at the head of this group has waited for the full time.
    Age(Group),
    TimePasses,
    /// Only with [`Fault::LinkAtOnce`].
    Relink,
}

fn thread(at: usize) -> ThreadKey {
    ThreadKey::discord("1", &format!("{}", at + 2)).expect("valid")
}

fn group_key(group: Group) -> ThreadKey {
    if group < THREADS { thread(group) } else { thread(group - THREADS).sandbox().group() }
}

impl Shared {
    pub fn new(share: Share, kinds: &[Kind], budget: Budget, fault: Option<Fault>) -> Self {
        let repo = (share != Share::Common).then_some("acme/api");
        let mut kinds = kinds.to_vec();
        // Each thread has had a turn.
        let warm = if share == Share::Private { 1 } else { THREADS };
        kinds.splice(0..0, (0..warm).map(Kind::Prompt));
        let accepted = kinds.iter().map(|kind| match kind {
            Kind::Prompt(at) => (thread(*at), prompt(repo)),
            Kind::Operate(want) => {
                let by = Some(person());
                (group_key(THREADS), Work::Operate { want: *want, by })
            }
        });
        let sweeps = (0..2 * THREADS).map(|group| (group_key(group), Work::Sweep));
        let driver = Driver::of(&thread(0), accepted.chain(sweeps));
        let nothing = |of| {
            let session = Session::new(of, NOW);
            driver.session_no(session)
        };
        let begin = State {
            threads: [0, 1].map(|at| nothing(thread(at))),
            homes: [0, 1].map(|at| nothing(group_key(THREADS + at))),
            queues: Default::default(),
            in_flight: [false; 2 * THREADS],
            workers: [None, None],
            provided: Default::default(),
            known: Default::default(),
            order: Vec::new(),
            accepted: 0,
            left: Budget::default(),
            told: 0,
            hits: 0,
            crowded: false,
            relinked: false,
            used: 0,
            broken: 0,
        };
        let mut shared = Self { kinds, fault: None, driver, begin, is_capped: false };
        for at in 0..warm {
            let mut s = shared.begin.clone();
            if at == 1 && share != Share::Apart {
                shared.share(&mut s);
            }
            s = shared.next(&s, Action::Accept);
            shared.begin = shared.undisturbed(s);
        }
        shared.begin.left = budget;
        shared.fault = fault;
        shared
    }

    /// The first thread's sandbox gets a name, and the second thread connects to it.
    fn share(&self, s: &mut State) {
        let mut home = (*self.driver.session(s.homes[0])).clone();
        home.sandbox.sharing.name = "front".parse::<SandboxName>().ok();
        home.sandbox.sharing.threads = [thread(0), thread(1)].into();
        s.homes[0] = self.driver.session_no(home);
        let mut beside = (*self.driver.session(s.threads[1])).clone();
        beside.place.link = Some(thread(0).sandbox());
        beside.version = PRESENT;
        s.threads[1] = self.driver.session_no(beside);
    }

    /// Runs until nothing is under way, without trouble.
    fn undisturbed(&self, mut s: State) -> State {
        loop {
            let mut actions = Vec::new();
            self.actions(&s, &mut actions);
            let goes_on = |action: &&Action| matches!(action, Action::Deliver(_) | Action::Step(_));
            match actions.iter().find(goes_on) {
                Some(action) => s = self.next(&s, *action),
                None => return s,
            }
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn record(&self, s: &State, at: usize) -> std::sync::Arc<Session> {
        self.driver.session(s.threads[at])
    }

    fn home(&self, s: &State, at: usize) -> std::sync::Arc<Session> {
        self.driver.session(s.homes[at])
    }

    /// The place of this sandbox.
    fn home_of(session: &Session) -> usize {
        usize::from(session.sandbox_at_hand() != thread(0).sandbox())
    }

    /// Number of the sweep of a group.
    fn sweep(&self, group: Group) -> u8 {
        u8::try_from(self.kinds.len() + group).unwrap_or(u8::MAX)
    }

    fn calm(s: &State) -> bool {
        s.workers.iter().flatten().all(|worker| worker.lapsed)
    }

    fn quiet(&self, s: &State) -> bool {
        usize::from(s.accepted) == self.kinds.len()
            && s.queues.iter().all(Vec::is_empty)
            && s.workers.iter().all(Option::is_none)
    }

    /// Nothing is under way, every thread has got its answers, and no record says that somebody works or waits in a
    /// sandbox.
    fn converged(&self, s: &State) -> bool {
        let is_free = |at: usize| {
            let home = self.home(s, at);
            home.sandbox.sharing.in_use.is_empty() && home.sandbox.sharing.waiting.is_empty()
        };
        self.quiet(s)
            && self.is_settled(s)
            && (0..THREADS).all(is_free)
            && (0..THREADS).all(|at| promises::check(&self.history(s, at, true)).is_ok())
    }

    /// A thread's messages in order, then the operations on its sandbox.
    fn messages(&self, at: usize) -> Vec<u8> {
        let is_its = |kind: &Kind| match kind {
            Kind::Prompt(of) => *of == at,
            Kind::Operate(_) => at == 0,
        };
        let all = (0..).zip(&self.kinds);
        all.filter(|(_, kind)| is_its(kind)).map(|(message, _)| message).collect()
    }

    /// The history for the promises: one thread and its first sandbox.
    fn history(&self, s: &State, at: usize, at_end: bool) -> History {
        let (record, home) = (self.record(s, at), self.home(s, at));
        let messages = self.messages(at);
        let turn_of = |message: u8| messages.iter().position(|one| *one == message);
        let mut facts = Vec::with_capacity(12);
        let generation = home.sandbox.generation;
        if generation > 0 {
            let live = s.provided[at].iter().filter(|one| one.there).count();
            // A generation exists once at most, by its name: what matters is that there is no other.
            facts.push(Fact::Live(live));
        }
        facts.extend(s.order.iter().filter_map(|(message, generation)| {
            Some(Fact::Prompted { turn: turn_of(*message)?, generation: u32::from(*generation) })
        }));
        for (turn, message) in messages.iter().enumerate() {
            let known = &s.known[usize::from(*message)];
            let mut stands = |times, kind: PostKind| {
                facts.extend((0..times).map(|_| Fact::Posted { turn, kind: kind.clone() }));
            };
            stands(known.card, PostKind::Card);
            stands(known.chunk, PostKind::Chunk(0));
            facts.extend(known.told.map(|ending| Fact::Told { turn, ending }));
        }
        let ended = record.ended.iter();
        let ended = ended.map(|ended| (ended.id.as_str(), Ending::from(&ended.outcome)));
        let operated = home.sandbox.history.operated.iter().map(|one| {
            let ending = if one.trouble.is_none() { Ending::Answered } else { Ending::Failed };
            (one.id.as_str(), ending)
        });
        facts.extend(ended.chain(operated).filter_map(|(id, ending)| {
            let turn = turn_of(self.driver.turn_of(id)?)?;
            Some(Fact::Ended { turn, ending })
        }));
        facts.extend((0..s.hits).map(|_| Fact::Hit { generation, turn: 0 }));
        if s.crowded {
            facts.push(Fact::Working {
                workspace: "project".to_owned(),
                who: vec![thread(0).to_string(), thread(1).to_string()],
            });
        }
        if at_end {
            let over = record.ended.iter();
            let over = over.filter_map(|ended| self.driver.turn_of(&ended.id));
            let going = over.filter(|message| s.known[usize::from(*message)].run == Run::Going);
            let turns: Vec<usize> = going.filter_map(turn_of).collect();
            facts.extend(turns.into_iter().map(|turn| Fact::Astray { turn }));
        }
        let listed = (1..).zip(&s.provided[at]).filter(|(_, one)| one.there);
        let end = at_end.then(|| End {
            phase: home.sandbox.phase,
            generation,
            turn: record.turn.is_some(),
            listed: listed.map(|(generation, one)| (generation, one.running)).collect(),
            is_settled: true,
        });
        let accepted = messages.iter().map(|message| match self.kinds[usize::from(*message)] {
            Kind::Prompt(_) => Request::Prompt,
            Kind::Operate(_) => Request::Operation,
        });
        History {
            accepted: accepted.collect(),
            facts,
            parts: 1,
            files: false,
            partial: false,
            who_asks: None,
            end,
        }
    }

    /// Time until something is due, or until a wait for a lease or in line is over.
    fn next_deadline_ms(&self, s: &State) -> Option<u64> {
        let rests = s.queues.iter().all(Vec::is_empty);
        let mut all: Vec<Ms> = Vec::new();
        for at in 0..THREADS {
            let (record, home) = (self.record(s, at), self.home(s, at));
            let sandbox = &home.sandbox;
            all.extend(sandbox.lease.as_ref().map(|lease| lease.until_ms));
            all.extend(sandbox.sharing.waiting.iter().map(|one| one.until_ms));
            all.extend(
                [record.due_at_ms, sandbox.due_at_ms].into_iter().flatten().filter(|_| rests),
            );
        }
        all.into_iter().filter(|at| *at > NOW).min().map(|at| at - NOW)
    }

    fn is_due(&self, s: &State, group: Group) -> bool {
        let due_at_ms = match group.checked_sub(THREADS) {
            None => self.record(s, group).due_at_ms,
            Some(at) => self.home(s, at).sandbox.due_at_ms,
        };
        due_at_ms.is_some_and(|at| at <= NOW)
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if usize::from(s.accepted) < self.kinds.len() {
            actions.push(Action::Accept);
        }
        let is_free = s.workers.contains(&None);
        for group in 0..2 * THREADS {
            let stored = match group.checked_sub(THREADS) {
                None => self.record(s, group).version > 0,
                Some(at) => self.home(s, at).sandbox.version > 0,
            };
            let is_due = self.is_due(s, group);
            // A thread's own record is swept only when due; its sandbox at any time.
            let by_chance = s.left.sweeps > 0 && group == THREADS;
            let comes = is_due && !self.is_capped || by_chance;
            if s.queues[group].is_empty() && stored && comes {
                actions.push(Action::Sweep(group));
            }
            if is_free && !s.in_flight[group] && !s.queues[group].is_empty() {
                actions.push(Action::Deliver(group));
            }
            if s.left.ages > 0
                && !s.in_flight[group]
                && let Some(Item::Message(message)) = s.queues[group].first()
                && let Some(Kind::Operate(_)) = self.kinds.get(usize::from(*message))
            {
                actions.push(Action::Age(group));
            }
        }
        for (slot, worker) in s.workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            actions.push(Action::Step(slot));
            let begun = *self.driver.machine(worker.machine) != Machine::Start;
            if begun && !worker.lapsed {
                if s.left.crashes > 0 {
                    actions.push(Action::Crash(slot));
                }
                if s.left.lapses > 0 {
                    actions.push(Action::Lapse(slot));
                }
            }
        }
        // No money of a turn waits for a time, and a sandbox's later states would double the states.
        if Self::calm(s) && !self.is_capped && self.next_deadline_ms(s).is_some() {
            actions.push(Action::TimePasses);
        }
        if self.has(Fault::LinkAtOnce) && !s.relinked && self.record(s, 1).turn.is_some() {
            actions.push(Action::Relink);
        }
    }

    fn next(&self, last: &State, action: Action) -> State {
        let mut s = last.clone();
        match action {
            Action::Accept => {
                let group = match self.kinds[usize::from(s.accepted)] {
                    Kind::Prompt(at) => at,
                    Kind::Operate(_) => THREADS,
                };
                s.queues[group].push(Item::Message(s.accepted));
                s.accepted += 1;
            }
            Action::Sweep(group) => {
                s.left.sweeps -= u8::from(!self.is_due(&s, group));
                s.queues[group].push(Item::Message(self.sweep(group)));
            }
            Action::Deliver(group) => self.deliver(&mut s, group),
            Action::Step(slot) => self.step(&mut s, slot),
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
            Action::Age(group) => {
                s.left.ages -= 1;
                if let Some(Item::Message(message)) = s.queues[group].first().copied() {
                    s.queues[group][0] = Item::Aged(message);
                }
            }
            Action::TimePasses => {
                if let Some(by_ms) = self.next_deadline_ms(&s) {
                    self.pass(&mut s, by_ms);
                }
            }
            Action::Relink => {
                s.relinked = true;
                let mut beside = (*self.record(&s, 1)).clone();
                beside.place.link = None;
                s.threads[1] = self.driver.session_no(beside);
                self.outdate(&mut s, None, (Some(1), None));
            }
        }
        s.broken =
            (0..THREADS).fold(0, |bits, at| bits | promises::broken(&self.history(&s, at, false)));
        s
    }

    /// Time passes for everybody who remembers a time.
    fn pass(&self, s: &mut State, by_ms: u64) {
        for number in s.threads.iter_mut().chain(&mut s.homes) {
            *number = self.driver.shift(*number, by_ms);
        }
        for worker in s.workers.iter_mut().flatten() {
            worker.machine = self.driver.shift_machine(worker.machine, by_ms);
        }
    }

    fn within(&self, s: &State) -> bool {
        (0..THREADS).all(|at| (self.home(s, at).sandbox.generation as usize) < GENERATIONS)
    }
}
