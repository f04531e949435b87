//! The model: one thread's queue, two workers, sweeper, orphan hunt, provider, agent and chat, around `decide`.
//!
//! Each action is one await of one of them, so that a crash, a lapse of visibility or another's step may fall between
//! any two. The due index is taken as stale as can be: a sweep may come at any time.

mod around;
mod effects;
mod steps;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef};
use bobbin_core::base::names::PostKind;
use bobbin_core::protocol::decide::Decision;
use bobbin_core::protocol::decide::orphan::{Graces, RecordVerdict, fate, is_orphan};
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::effect::{AgentEffect, Effect, SandboxEffect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::machine::{Machine, Step};
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::parked::Seen;
use bobbin_core::records::sandbox::{Phase, SandboxState};
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::Stage;
use bobbin_core::records::usage::Usage;
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use bobbin_sandbox::Sandbox as Listed;
use bobbin_sandbox::labels::{StackIdentity, labels};

use super::super::promises::{self, End, Ending, Fact, History, Request};
use super::driver::{
    Asked, Driver, EventNo, Item, Kind, LIMITS, MachineNo, NOW, START, SessionNo, StepResult,
    with_agent,
};
use super::faults::Fault;

/// Messages, and generations of sandboxes, at most.
const MESSAGES: usize = 3;
const GENERATIONS: usize = 6;
/// Entries of the queue.
const QUEUE: usize = 6;
/// Prompts that reached agents, as far as they are told apart.
const ORDER: usize = 5;

/// How often each trouble or message may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    pub crashes: u8,
    pub lapses: u8,
    pub duplicates: u8,
    pub sweeps: u8,
    pub windows: u8,
    pub stops: u8,
    /// Requests to send a waiting prompt at once.
    pub nows: u8,
    pub losses: u8,
    pub hunts: u8,
    /// Prompts whose arrival stays unknown to the sender.
    pub doubts: u8,
    /// Calls that do not reach the agent while it continues.
    pub cuts: u8,
    /// Checks and calls that do not find an existing sandbox.
    pub lies: u8,
    /// Crashes of a run's follower.
    pub kills: u8,
    /// Messages that the queue gives up, including notices.
    pub deaths: u8,
    /// Hunts of another stack of the same name at the same provider.
    pub namesakes: u8,
    /// The provider may act late.
    pub late: bool,
    /// A person's abort may arrive late.
    pub late_aborts: bool,
}

/// A world to explore.
pub struct System {
    pub kinds: Vec<Kind>,
    pub budget: Budget,
    pub fault: Option<Fault>,
    pub version_max: u64,
    /// The runtime mode.
    pub runtime: RuntimeMode,
    pub driver: Driver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    Work(Item),
    /// Only with [`Fault::StopThroughTheQueue`].
    Stop(u8),
}

/// The progress of a machine's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    Todo,
    /// The provider was asked and has not answered.
    Asked,
    /// The result.
    Over(EventNo),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Worker {
    pub item: Item,
    delivery: u8,
    pub lapsed: bool,
    /// The delivery before has left its state.
    parked: bool,
    /// The machine, before its next await.
    pub machine: MachineNo,
    /// The effect that it requests, or the work of two.
    work: Half,
    card: Half,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sandbox {
    /// More than one only with [`Fault::RandomNames`].
    pub copies: u8,
    pub running: bool,
    /// The repository is cloned.
    cloned: bool,
    server: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Run {
    #[default]
    None,
    Going,
    /// Its server stopped.
    Broken,
    Done,
    /// Answered, and its prompt was sent again: OpenCode moves it behind the answer.
    Moved,
    Aborted,
}

/// What agent and chat know about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Known {
    pub run: Run,
    generation: u8,
    /// Bit n: the agent has the ids of minting n.
    ids: u8,
    mints: u8,
    card: u8,
    /// New posts at an end that mentioned the asker.
    called: u8,
    rolled: u8,
    call: u8,
    chunk: u8,
    notice: u8,
    told: Option<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hunt {
    Listed(u8),
    Read(SessionNo),
    Judged(u8),
}

/// The calls that the provider may carry out late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Stop,
    Delete,
}

/// A call to the provider that has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Late {
    call: Call,
    generation: u32,
    by_person: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub record: SessionNo,
    flags: u8,
    pressed: u8,
    /// Bit n: somebody wants message n sent at once.
    now: u8,
    /// Bit n: it was sent into another turn's run.
    pub steered: u8,
    pub queue: Vec<Entry>,
    pub in_flight: bool,
    /// The message whose last delivery has left its state.
    parked: Option<Item>,
    pub workers: [Option<Worker>; 2],
    pub sandboxes: [Sandbox; GENERATIONS],
    pub known: [Known; MESSAGES],
    /// (message, generation) in the order in which agents took them.
    order: Vec<(u8, u8)>,
    pub late: Option<Late>,
    hunt: Option<Hunt>,
    direct: Option<u32>,
    pub accepted: u8,
    /// Bit n: message n is a dead letter.
    pub letters: u8,
    pub left: Budget,
    hits: u8,
    /// An abort that has not arrived: the messages that it is for.
    late_abort: Option<u8>,
    /// A prompt reached the agent while it still worked on one of an ended turn.
    astray: bool,
    /// Bit n: the answer of message n could not be read again.
    withheld: u8,
    /// Once a follow window went by after Stop was pressed.
    pub stop_ignored: bool,
    /// Bits of the promises broken here.
    pub broken: u16,
}

impl State {
    /// A person's abort is still on its way when the agent works on the next prompt.
    pub fn abort_comes_too_late(&self) -> bool {
        let newest = self.order.last();
        let next = newest.filter(|(turn, _)| {
            let meant = self.late_abort.is_none_or(|turns| turns & (1 << turn) != 0);
            !meant && self.known[usize::from(*turn)].run == Run::Going
        });
        next.is_some()
    }

    /// The hunt is about to delete something.
    pub const fn finds_orphan(&self) -> bool {
        matches!(self.hunt, Some(Hunt::Judged(_)))
    }
}

/// Whether a person's abort reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reaches {
    Now,
    Later,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Accept,
    Sweep,
    Duplicate(u8),
    Deliver,
    Step(usize),
    /// The provider carries out a create, stop or delete late.
    StepLate(usize),
    /// The card is written before its work.
    StepCard(usize),
    /// A call does not reach the agent, which continues or ends meanwhile.
    Cut {
        slot: usize,
        ends: bool,
    },
    /// A check or call does not find the sandbox, which exists.
    Lie(usize),
    /// The worker that follows it crashes.
    Kill(usize),
    /// The queue gives up its head.
    Die,
    /// A worker receives the dead letter of this message.
    TellDead(u8),
    /// Another stack of the same name hunts for orphans.
    Namesake,
    /// A person's abort arrives.
    LandAbort,
    /// A prompt is sent, and its sender gets no answer; it may have arrived.
    Doubt {
        slot: usize,
        arrives: bool,
    },
    /// A follow window of the run ends before the run does.
    Slice(usize),
    /// The time to follow a run is over before the run is: from then on it is only polled.
    HoldEnds(usize),
    /// The follower lets go of a run, because other work waits.
    GiveWay(usize),
    /// The turn reaches its bound before the run ends.
    NeverEnds(usize),
    Crash(usize),
    Lapse(usize),
    Land,
    TimePasses,
    Press {
        message: u8,
        reaches: Reaches,
    },
    /// Somebody wants this waiting message sent into the run.
    Now(u8),
    Lose(u8),
    Hunt,
    Direct,
}

impl Action {
    /// Trouble that no recovery may depend on.
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Duplicate(_)
                | Self::Slice(_)
                | Self::HoldEnds(_)
                | Self::GiveWay(_)
                | Self::NeverEnds(_)
                | Self::Crash(_)
                | Self::Lapse(_)
                | Self::Press { .. }
                | Self::Now(_)
                | Self::Doubt { .. }
                | Self::Cut { .. }
                | Self::Lie(_)
                | Self::Kill(_)
                | Self::Die
                | Self::Lose(_)
        )
    }
}

/// The answer to an effect from a provider that does not find the sandbox.
const fn not_found(effect: &Effect) -> Option<Event> {
    match effect {
        Effect::Sandbox(SandboxEffect::Observe { .. } | SandboxEffect::Start) => {
            Some(Event::Observed(SandboxState::Gone))
        }
        Effect::Agent(
            AgentEffect::Follow(_)
            | AgentEffect::Look(_)
            | AgentEffect::FindPrompt { .. }
            | AgentEffect::FindAgentSession { .. }
            | AgentEffect::EndRun(_),
        ) => Some(Event::Failed(Failure::SandboxGone)),
        _ => None,
    }
}

/// The result of an effect.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
enum Outcome {
    Event(Event),
    OnItsWay,
}

/// The effect that a machine requests, or the work of two. The generation that a worker knows.
fn generation(machine: &Machine) -> u32 {
    match machine {
        Machine::Act { known, .. } => known.session.sandbox.generation,
        _ => 0,
    }
}

fn work(machine: &Machine) -> Option<&Effect> {
    match machine {
        Machine::Act { next, .. } => next.work(),
        _ => None,
    }
}

impl System {
    pub fn new(kinds: &[Kind], budget: Budget, fault: Option<Fault>) -> Self {
        Self {
            kinds: kinds.to_vec(),
            budget,
            fault,
            version_max: 60,
            runtime: RuntimeMode::OpenCode,
            driver: Driver::new(kinds, RuntimeMode::OpenCode),
        }
    }

    /// Sets the runtime mode.
    pub fn in_mode(self, runtime: RuntimeMode) -> Self {
        Self { driver: Driver::new(&self.kinds, runtime), runtime, ..self }
    }

    pub fn start(&self) -> State {
        State {
            record: 0,
            flags: 0,
            pressed: 0,
            now: 0,
            steered: 0,
            queue: Vec::new(),
            in_flight: false,
            parked: None,
            workers: [None, None],
            sandboxes: Default::default(),
            known: Default::default(),
            order: Vec::new(),
            late: None,
            hunt: None,
            direct: None,
            accepted: 0,
            letters: 0,
            left: self.budget,
            hits: 0,
            late_abort: None,
            astray: false,
            withheld: 0,
            stop_ignored: false,
            broken: 0,
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn record(&self, s: &State) -> std::sync::Arc<Session> {
        self.driver.session(s.record)
    }

    /// No worker has the queue's head with its visibility intact.
    fn calm(s: &State) -> bool {
        s.workers.iter().flatten().all(|worker| worker.lapsed)
    }

    /// Nothing is under way at all.
    pub fn quiet(&self, s: &State) -> bool {
        usize::from(s.accepted) == self.kinds.len()
            && s.queue.is_empty()
            && s.letters == 0
            && s.workers.iter().all(Option::is_none)
            && s.late.is_none()
            && s.late_abort.is_none()
            && s.hunt.is_none()
            && s.direct.is_none()
    }

    pub fn converged(&self, s: &State) -> bool {
        self.quiet(s) && promises::check(&self.history(s, true)).is_ok()
    }

    /// The history for the promises.
    pub fn history(&self, s: &State, at_end: bool) -> History {
        let record = self.record(s);
        let mut facts = Vec::with_capacity(12);
        if record.sandbox.generation > 0 && !matches!(record.sandbox.phase, Phase::Destroyed) {
            facts.push(Fact::Live(usize::from(
                s.sandboxes[record.sandbox.generation as usize - 1].copies,
            )));
        }
        facts.extend(s.order.iter().map(|(turn, generation)| Fact::Prompted {
            turn: usize::from(*turn),
            generation: u32::from(*generation),
        }));
        for (turn, known) in s.known.iter().enumerate() {
            let mut stands = |times, kind: PostKind| {
                facts.extend((0..times).map(|_| Fact::Posted { turn, kind: kind.clone() }))
            };
            stands(known.card, PostKind::Card);
            stands(known.chunk, PostKind::Chunk(0));
            stands(known.rolled, PostKind::Rolled(1));
            stands(known.call, PostKind::Call);
            stands(known.notice, PostKind::Notice);
            facts.extend((0..known.called).map(|_| Fact::Called {
                turn,
                kind: PostKind::Call,
                who: vec![promises::WHO_ASKS.to_owned()],
            }));
            facts.extend(known.told.map(|ending| Fact::Told { turn, ending }));
        }
        facts.extend(record.ended.iter().filter_map(|ended| {
            Some(Fact::Ended {
                turn: usize::from(self.driver.turn_of(&ended.id)?),
                ending: Ending::from(&ended.outcome),
            })
        }));
        facts.extend(record.sandbox.history.operated.iter().filter_map(|operated| {
            Some(Fact::Ended {
                turn: usize::from(self.driver.turn_of(&operated.id)?),
                ending: match operated.trouble {
                    None => Ending::Answered,
                    Some(_) => Ending::Failed,
                },
            })
        }));
        facts.extend(
            (s.left.losses < self.budget.losses)
                .then_some(Fact::Disturbed { generation: record.sandbox.generation }),
        );
        let steered = (0..MESSAGES).filter(|turn| s.steered & (1 << turn) != 0);
        facts.extend(steered.map(|turn| Fact::Steered { turn }));
        let withheld = (0..MESSAGES).filter(|turn| s.withheld & (1 << turn) != 0);
        facts.extend(withheld.map(|turn| Fact::Withheld { turn }));
        facts.extend(
            (0..s.hits).map(|_| Fact::Hit { generation: record.sandbox.generation, turn: 0 }),
        );
        let astray = s.astray || at_end && self.goes_on_alone(s, &record);
        facts.extend(astray.then_some(Fact::Astray { turn: 0 }));
        let end = at_end.then(|| End {
            phase: record.sandbox.phase,
            generation: record.sandbox.generation,
            turn: record.turn.is_some(),
            listed: (1..)
                .zip(&s.sandboxes)
                .flat_map(|(generation, sandbox)| {
                    (0..sandbox.copies).map(move |_| (generation, sandbox.running))
                })
                .collect(),
            is_settled: true,
        });
        let accepted = self.kinds.iter().map(|kind| match kind {
            Kind::Prompt => Request::Prompt,
            Kind::Reset => Request::Notice,
            Kind::Operate(_) => Request::Operation,
        });
        History {
            accepted: accepted.collect(),
            facts,
            parts: 1,
            files: false,
            partial: false,
            who_asks: Some(promises::WHO_ASKS),
            end,
        }
    }

    /// The agent works on the prompt of a turn that has ended.
    pub(super) fn goes_on_alone(&self, s: &State, record: &Session) -> bool {
        let ended = record.ended.iter();
        let mut ended = ended.filter_map(|turn| self.driver.turn_of(&turn.id));
        ended.any(|turn| s.known[usize::from(turn)].run == Run::Going)
    }

    /// A turn was reported as failed although the agent had answered it, no message died, and at most one call failed.
    pub fn hides_an_answer(&self, s: &State) -> bool {
        let record = self.record(s);
        let failed =
            record.ended.iter().filter(|turn| Ending::from(&turn.outcome) == Ending::Failed);
        let mut failed = failed.filter_map(|turn| self.driver.turn_of(&turn.id));
        s.left.deaths == self.budget.deaths
            && s.left.cuts + 1 >= self.budget.cuts
            && s.left.lies + 1 >= self.budget.lies
            && failed.any(|turn| matches!(s.known[usize::from(turn)].run, Run::Done | Run::Moved))
    }

    /// The listed sandboxes that the product takes for orphans by this record. There is no grace period here.
    fn orphans(listed: u8, record: &Session) -> u8 {
        let stored = (record.version > 0).then_some(&record.sandbox);
        let graces = Graces { young_ms: 0, vanished_ms: 0 };
        (0..8)
            .filter(|at| listed & (1 << at) != 0)
            .filter(|at| fate(stored, at + 1, NOW, NOW, graces) == RecordVerdict::Orphan)
            .fold(0, |mask, at| mask | 1 << at)
    }

    fn listed(s: &State) -> u8 {
        (0..GENERATIONS).filter(|at| s.sandboxes[*at].copies > 0).fold(0, |mask, at| mask | 1 << at)
    }

    fn next_deadline_ms(&self, s: &State) -> Option<u64> {
        let record = self.record(s);
        let waits = record.turn.is_some() || !s.queue.is_empty();
        let lease = record.sandbox.lease.as_ref().map(|lease| lease.until_ms);
        let later = [
            record.due_at_ms(),
            (record.sandbox.phase == Phase::Active)
                .then_some(record.sandbox.last_activity_ms + LIMITS.sandbox.idle_pause_ms),
            (record.sandbox.phase == Phase::Paused)
                .then_some(record.sandbox.phase_since_ms + LIMITS.sandbox.paused_ttl_ms),
        ];
        let all = lease.into_iter().chain(later.into_iter().flatten().filter(|_| !waits));
        all.filter(|at| *at > NOW).min().map(|at| at - NOW)
    }

    pub fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        let record = self.record(s);
        let calm = Self::calm(s);
        let sweep_waits = s.queue.contains(&Entry::Work(Item::Sweep));
        if calm && s.queue.len() < QUEUE {
            if usize::from(s.accepted) < self.kinds.len() {
                actions.push(Action::Accept);
            }
            let due = record.due_at_ms().is_some_and(|at: Ms| at <= NOW) && s.queue.is_empty();
            if !sweep_waits && (due || s.left.sweeps > 0) && record.version > 0 {
                actions.push(Action::Sweep);
            }
            if s.left.deaths > 0
                && !s.in_flight
                && let Some(Entry::Work(Item::Message(_) | Item::DeadLetter(_))) = s.queue.first()
            {
                actions.push(Action::Die);
            }
            for message in (0..s.accepted).filter(|at| s.letters & (1 << at) != 0) {
                if !s.queue.contains(&Entry::Work(Item::DeadLetter(message))) {
                    actions.push(Action::TellDead(message));
                }
            }
            if s.left.duplicates > 0 {
                actions.extend((0..s.accepted).map(Action::Duplicate));
            }
        }
        if !s.in_flight && !s.queue.is_empty() && s.workers.contains(&None) {
            actions.push(Action::Deliver);
        }
        for (slot, worker) in s.workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            self.worker_actions(s, slot, worker, actions);
        }
        if s.late.is_some() {
            actions.push(Action::Land);
        }
        if s.late_abort.is_some() {
            actions.push(Action::LandAbort);
        }
        let stop_is_late = s.late.is_some_and(|late| late.call == Call::Stop);
        if calm && !stop_is_late && self.next_deadline_ms(s).is_some() {
            actions.push(Action::TimePasses);
        }
        if s.left.stops > 0 {
            for message in 0..s.accepted {
                let ended =
                    record.ended.iter().any(|turn| self.driver.turn_of(&turn.id) == Some(message));
                if self.kinds[usize::from(message)] == Kind::Prompt && !ended {
                    let press = |reaches| Action::Press { message, reaches };
                    actions.extend([Reaches::Now, Reaches::Never].map(press));
                    if self.budget.late_aborts && s.late_abort.is_none() {
                        actions.push(press(Reaches::Later));
                    }
                }
            }
        }
        if s.left.nows > 0
            && let Some(running) = &record.turn
        {
            for message in 0..s.accepted {
                let waits = s.queue.contains(&Entry::Work(Item::Message(message)));
                let turn = self.driver.id_of(message);
                let ended = record.ended.iter().any(|ended| ended.id == turn);
                let prompt = self.kinds[usize::from(message)] == Kind::Prompt;
                if waits
                    && prompt
                    && !ended
                    && !running.covers(&turn.into())
                    && s.now & (1 << message) == 0
                {
                    actions.push(Action::Now(message));
                }
            }
        }
        if s.left.losses > 0 {
            let there = (1..).zip(&s.sandboxes).filter(|(_, sandbox)| sandbox.copies > 0);
            actions.extend(there.map(|(generation, _)| Action::Lose(generation)));
        }
        let orphans = Self::orphans(Self::listed(s), &record) != 0;
        if !self.has(Fault::NoHunt)
            && (s.hunt.is_some() || orphans || (s.left.hunts > 0 && Self::listed(s) != 0))
        {
            actions.push(Action::Hunt);
        }
        if s.left.namesakes > 0 && Self::listed(s) != 0 {
            actions.push(Action::Namesake);
        }
        if self.has(Fault::ReadBeforeList) && s.hunt.is_none() && s.left.hunts > 0 {
            actions.push(Action::Hunt);
        }
        let idle = record.sandbox.phase == Phase::Active
            && record.turn.is_none()
            && record.due_at_ms().is_some_and(|at| at <= NOW);
        if self.has(Fault::SweeperStopsDirectly) && (s.direct.is_some() || idle) {
            actions.push(Action::Direct);
        }
    }

    fn worker_actions(&self, s: &State, slot: usize, worker: &Worker, actions: &mut Vec<Action>) {
        let machine = self.driver.machine(worker.machine);
        let begun = *machine != Machine::Start;
        let crashes = s.left.crashes > 0 && begun && !worker.lapsed;
        if let Some(effect) = work(&machine)
            && worker.work == Half::Todo
        {
            self.effect_actions(s, slot, worker.lapsed, (generation(&machine), effect), actions);
        }
        if worker.work != Half::Asked || s.late.is_none() {
            actions.push(Action::Step(slot));
        }
        if let Step::PerformBoth { .. } = self.driver.step(&machine, worker.item, false)
            && !matches!(worker.work, Half::Over(_))
            && worker.card == Half::Todo
            && crashes
        {
            actions.push(Action::StepCard(slot));
        }
        // Before its first read a worker has done nothing: its crash is like no delivery at all.
        if crashes {
            actions.push(Action::Crash(slot));
        }
        if s.left.lapses > 0 && begun && !worker.lapsed {
            actions.push(Action::Lapse(slot));
        }
    }

    /// The possible outcomes of an effect that a worker is about to begin.
    fn effect_actions(
        &self,
        s: &State,
        slot: usize,
        lapsed: bool,
        (generation, effect): (u32, &Effect),
        actions: &mut Vec<Action>,
    ) {
        if s.left.doubts > 0
            && !lapsed
            && matches!(effect, Effect::Agent(AgentEffect::SendPrompt { .. }))
        {
            let doubt = |arrives| Action::Doubt { slot, arrives };
            actions.extend([true, false].map(doubt));
        }
        if s.left.cuts > 0 && !lapsed {
            match effect {
                Effect::Agent(AgentEffect::Follow(_) | AgentEffect::Look(_)) => {
                    let cut = |ends| Action::Cut { slot, ends };
                    actions.extend([true, false].map(cut));
                }
                Effect::Agent(AgentEffect::FindPrompt { .. })
                | Effect::Agent(AgentEffect::EndRun(_))
                | Effect::Agent(AgentEffect::Abort { .. }) => {
                    actions.push(Action::Cut { slot, ends: false });
                }
                _ => {}
            }
        }
        if s.left.lies > 0 && !lapsed && not_found(effect).is_some() {
            actions.push(Action::Lie(slot));
        }
        let follows =
            matches!(effect, Effect::Agent(AgentEffect::Follow(_) | AgentEffect::Look(_)));
        if s.left.kills > 0 && !lapsed && follows {
            actions.push(Action::Kill(slot));
        }
        match effect {
            Effect::Sandbox(
                SandboxEffect::Create { .. } | SandboxEffect::Stop | SandboxEffect::Delete,
            ) => {
                let there = s.sandboxes[generation as usize - 1].copies > 0;
                let create = matches!(effect, Effect::Sandbox(SandboxEffect::Create { .. }));
                if there != create && s.late.is_none() && !lapsed && self.budget.late {
                    actions.push(Action::StepLate(slot));
                }
            }
            Effect::Agent(AgentEffect::Follow(follow) | AgentEffect::Look(follow)) => {
                let turn = self.driver.turn_of(&follow.turn);
                let marked =
                    turn.is_some_and(|turn| s.flags & (1 << turn) != 0) && !follow.cancel_known;
                let going = turn.is_some_and(|turn| s.known[usize::from(turn)].run == Run::Going);
                if s.left.windows > 0 && going && !marked {
                    actions.push(Action::Slice(slot));
                    if s.late.is_none() && Self::calm_but(s, slot) {
                        actions.push(Action::HoldEnds(slot));
                        if follow.gives_way {
                            actions.push(Action::GiveWay(slot));
                        }
                        actions.push(Action::NeverEnds(slot));
                    }
                }
            }
            _ => {}
        }
    }

    fn calm_but(s: &State, slot: usize) -> bool {
        s.workers.iter().enumerate().all(|(at, worker)| at == slot || worker.is_none())
    }

    pub fn next(&self, last: &State, action: Action) -> State {
        let mut s = last.clone();
        match action {
            Action::Accept => {
                s.queue.push(Entry::Work(Item::Message(s.accepted)));
                s.accepted += 1;
            }
            Action::Sweep => {
                let due =
                    self.record(&s).due_at_ms().is_some_and(|at| at <= NOW) && s.queue.is_empty();
                s.queue.push(Entry::Work(Item::Sweep));
                s.left.sweeps -= u8::from(!due);
            }
            Action::Duplicate(message) => {
                s.queue.push(Entry::Work(Item::Message(message)));
                s.left.duplicates -= 1;
            }
            Action::Deliver => self.deliver(&mut s),
            Action::Step(slot) => self.step(&mut s, slot, false),
            Action::StepLate(slot) => self.step(&mut s, slot, true),
            Action::StepCard(slot) => self.step_card(&mut s, slot),
            Action::Cut { slot, ends } => self.cut(&mut s, slot, ends),
            Action::Lie(slot) => self.lie(&mut s, slot),
            Action::Kill(slot) => {
                s.left.kills -= 1;
                s.workers[slot] = None;
                s.in_flight = false;
            }
            Action::Die => {
                s.left.deaths -= 1;
                // The dead letter of a notice's message is still there.
                if let Entry::Work(Item::Message(message)) = s.queue.remove(0) {
                    s.letters |= 1 << message;
                }
            }
            Action::TellDead(message) => self.tell_dead(&mut s, message),
            Action::Namesake => self.namesake(&mut s),
            Action::LandAbort => {
                if let Some(turns) = s.late_abort.take() {
                    let generation = self.record(&s).sandbox.generation;
                    self.abort(&mut s, generation, turns);
                }
            }
            Action::Doubt { slot, arrives } => self.doubt(&mut s, slot, arrives),
            Action::Slice(slot) => {
                s.left.windows -= 1;
                self.still_running(&mut s, slot);
            }
            Action::HoldEnds(slot) => {
                s.left.windows -= 1;
                self.pass(&mut s, LIMITS.poll.hold_ms);
                self.still_running(&mut s, slot);
            }
            Action::GiveWay(slot) => {
                s.left.windows -= 1;
                self.goes_on(&mut s, slot, Event::OthersWait(Seen::default()));
            }
            Action::NeverEnds(slot) => {
                s.left.windows -= 1;
                self.pass(&mut s, LIMITS.turn.turn_ms);
                self.still_running(&mut s, slot);
            }
            Action::Crash(slot) => {
                s.left.crashes -= 1;
                s.workers[slot] = None;
                s.in_flight = false;
            }
            Action::Lapse(slot) => {
                s.left.lapses -= 1;
                s.in_flight = false;
                if let Some(worker) = &mut s.workers[slot] {
                    worker.lapsed = true;
                }
            }
            Action::Land => {
                if let Some(late) = s.late.take() {
                    self.land(&mut s, late);
                }
            }
            Action::TimePasses => {
                if let Some(by_ms) = self.next_deadline_ms(&s) {
                    self.pass(&mut s, by_ms);
                }
            }
            Action::Press { message, reaches } => self.press(&mut s, message, reaches),
            Action::Now(message) => {
                s.left.nows -= 1;
                s.now |= 1 << message;
            }
            Action::Lose(generation) => {
                s.left.losses -= 1;
                self.vanish(&mut s, u32::from(generation));
            }
            Action::Hunt => self.hunt(&mut s),
            Action::Direct => self.direct(&mut s),
        }
        s.broken = promises::broken(&self.history(&s, false));
        s
    }

    /// Whether this state is within the exploration's bounds.
    pub fn within(&self, s: &State) -> bool {
        let record = self.record(s);
        record.version <= self.version_max && (record.sandbox.generation as usize) < GENERATIONS
    }
}
