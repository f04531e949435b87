//! The model: one thread's queue, two workers, sweeper, orphan hunt, provider, agent and chat, around `decide`.
//!
//! Each action is one await of one of them, so that a crash, a lapse of visibility or another's step may fall between
//! any two. The due index is taken as stale as can be: a sweep may come at any time.

use bobbin_core::card::{CardState, Post, PostRef, Usage};
use bobbin_core::decide::orphan::is_orphan;
use bobbin_core::effect::Effect;
use bobbin_core::event::{Answer, Coarse, Event, RunEnd};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind};
use bobbin_core::session::{Phase, Session, Stage};

use super::super::promises::{self, Accepted, End, Ending, Fact, History};
use super::driver::{
    Asked, Driver, EffectNo, Item, Kind, LIMITS, NOW, Plan, SessionNo, with_agent,
};
use super::faults::Fault;

/// Messages, and generations of sandboxes, at most.
const MESSAGES: usize = 3;
const GENERATIONS: usize = 6;
/// Entries of the queue.
const QUEUE: usize = 6;
/// Prompts that reached agents, as far as they are told apart.
const ORDER: usize = 5;

/// What may go wrong, or come, how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    pub crashes: u8,
    pub lapses: u8,
    pub duplicates: u8,
    pub sweeps: u8,
    pub slices: u8,
    pub stops: u8,
    pub losses: u8,
    pub hunts: u8,
    /// The provider may take its time.
    pub late: bool,
}

/// A world to explore.
pub struct Machine {
    pub kinds: Vec<Kind>,
    pub budget: Budget,
    pub fault: Option<Fault>,
    pub version_max: u64,
    pub driver: Driver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    Work(Item),
    /// Only with [`Fault::StopThroughTheQueue`].
    Stop(u8),
}

/// Where a worker stands: before its next await.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pc {
    Load,
    Save {
        from: SessionNo,
        to: SessionNo,
        plan: Plan,
    },
    Do {
        session: SessionNo,
        effect: EffectNo,
    },
    /// The provider has been asked to stop or delete, and has not answered.
    Waiting {
        session: SessionNo,
        effect: EffectNo,
    },
    /// The run is over; the marks are read once more.
    Look {
        session: SessionNo,
        event: u32,
    },
    /// Only with [`Fault::EffectBeforeIntent`].
    Early {
        from: SessionNo,
        to: SessionNo,
        effect: EffectNo,
    },
    SaveAfter {
        from: SessionNo,
        to: SessionNo,
        event: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Worker {
    pub item: Item,
    delivery: u8,
    pub lapsed: bool,
    marks: u8,
    pub pc: Pc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sandbox {
    /// More than one only with [`Fault::RandomNames`].
    pub copies: u8,
    pub running: bool,
    server: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Run {
    #[default]
    None,
    Going,
    /// Its server went away.
    Broken,
    Done,
    Aborted,
}

/// What agent and chat know of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Known {
    pub run: Run,
    generation: u8,
    /// Bit n: the agent has the ids of the n-th minting.
    ids: u8,
    mints: u8,
    card: u8,
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

/// What the provider may do late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Stop,
    Delete,
}

/// A call on its way to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Late {
    call: Call,
    generation: u32,
    by_person: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub record: SessionNo,
    marks: u8,
    pressed: u8,
    pub queue: Vec<Entry>,
    pub in_flight: bool,
    pub workers: [Option<Worker>; 2],
    pub sandboxes: [Sandbox; GENERATIONS],
    pub known: [Known; MESSAGES],
    /// (message, generation) in the order in which agents took them.
    order: Vec<(u8, u8)>,
    pub late: Option<Late>,
    hunt: Option<Hunt>,
    direct: Option<u32>,
    pub accepted: u8,
    pub left: Budget,
    hits: u8,
    /// Once a slice went by after Stop was pressed.
    pub stop_ignored: bool,
    /// Bits of the promises that are broken here.
    pub broken: u8,
}

impl State {
    /// The hunt is about to delete something.
    pub const fn finds_orphan(&self) -> bool {
        matches!(self.hunt, Some(Hunt::Judged(_)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Accept,
    Sweep,
    Duplicate(u8),
    Deliver,
    Step(usize),
    /// The provider takes its time with a create, stop or delete.
    StepLate(usize),
    /// A slice of the run ends before the run does.
    Slice(usize),
    /// The turn's bound is over before the run is.
    NeverEnds(usize),
    Crash(usize),
    Lapse(usize),
    Land,
    TimePasses,
    Press {
        message: u8,
        reaches: bool,
    },
    Lose(u8),
    Hunt,
    Direct,
}

impl Action {
    /// Something that no recovery may count on.
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Duplicate(_)
                | Self::Slice(_)
                | Self::NeverEnds(_)
                | Self::Crash(_)
                | Self::Lapse(_)
                | Self::Press { .. }
                | Self::Lose(_)
        )
    }
}

/// How an effect came out.
enum Outcome {
    Event(Event),
    OnItsWay,
}

fn down() -> Event {
    Event::Failed(Failure::SandboxDown {
        seen: "no answer".to_owned(),
    })
}

impl Machine {
    pub fn new(kinds: &[Kind], budget: Budget, fault: Option<Fault>) -> Self {
        Self {
            kinds: kinds.to_vec(),
            budget,
            fault,
            version_max: 60,
            driver: Driver::new(kinds),
        }
    }

    pub fn start(&self) -> State {
        State {
            record: 0,
            marks: 0,
            pressed: 0,
            queue: Vec::new(),
            in_flight: false,
            workers: [None, None],
            sandboxes: Default::default(),
            known: Default::default(),
            order: Vec::new(),
            late: None,
            hunt: None,
            direct: None,
            accepted: 0,
            left: self.budget,
            hits: 0,
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

    /// Nobody works on the queue's head with its visibility intact.
    fn calm(s: &State) -> bool {
        s.workers.iter().flatten().all(|worker| worker.lapsed)
    }

    /// Nothing is under way at all.
    pub fn quiet(&self, s: &State) -> bool {
        usize::from(s.accepted) == self.kinds.len()
            && s.queue.is_empty()
            && s.workers.iter().all(Option::is_none)
            && s.late.is_none()
            && s.hunt.is_none()
            && s.direct.is_none()
    }

    pub fn converged(&self, s: &State) -> bool {
        self.quiet(s) && promises::check(&self.history(s, true)).is_ok()
    }

    /// What the promises look at.
    pub fn history(&self, s: &State, at_end: bool) -> History {
        let record = self.record(s);
        let mut facts = Vec::with_capacity(12);
        if record.generation > 0 && !matches!(record.phase, Phase::Destroyed) {
            facts.push(Fact::Live(usize::from(
                s.sandboxes[record.generation as usize - 1].copies,
            )));
        }
        facts.extend(s.order.iter().map(|(turn, generation)| Fact::Prompted {
            turn: usize::from(*turn),
            generation: u32::from(*generation),
        }));
        for (turn, known) in s.known.iter().enumerate() {
            let mut stands = |times, kind: PostKind| {
                facts.extend((0..times).map(|_| Fact::Posted {
                    turn,
                    kind: kind.clone(),
                }))
            };
            stands(known.card, PostKind::Card);
            stands(known.chunk, PostKind::Chunk(0));
            stands(known.notice, PostKind::Notice);
            facts.extend(known.told.map(|ending| Fact::Told { turn, ending }));
        }
        facts.extend(record.ended.iter().filter_map(|ended| {
            Some(Fact::Ended {
                turn: usize::from(self.driver.turn_of(&ended.id)?),
                ending: Ending::from(&ended.outcome),
            })
        }));
        facts.extend(
            (s.left.losses < self.budget.losses).then_some(Fact::Disturbed {
                generation: record.generation,
            }),
        );
        facts.extend((0..s.hits).map(|_| Fact::Hit {
            generation: record.generation,
            turn: 0,
        }));
        let end = at_end.then(|| End {
            phase: record.phase,
            generation: record.generation,
            turn: record.turn.is_some(),
            listed: (1..)
                .zip(&s.sandboxes)
                .flat_map(|(generation, sandbox)| {
                    (0..sandbox.copies).map(move |_| (generation, sandbox.running))
                })
                .collect(),
        });
        let accepted = self.kinds.iter().map(|kind| match kind {
            Kind::Prompt => Accepted::Prompt,
            Kind::Reset => Accepted::Reset,
        });
        History {
            accepted: accepted.collect(),
            facts,
            parts: 1,
            end,
        }
    }

    /// Those of the listed sandboxes that the product takes for orphans, by this record. There is no grace here.
    fn orphans(listed: u8, record: &Session) -> u8 {
        let stored = (record.version > 0).then_some(record);
        (0..8)
            .filter(|at| listed & (1 << at) != 0 && is_orphan(stored, at + 1, NOW, NOW, 0))
            .fold(0, |mask, at| mask | 1 << at)
    }

    fn listed(s: &State) -> u8 {
        (0..GENERATIONS)
            .filter(|at| s.sandboxes[*at].copies > 0)
            .fold(0, |mask, at| mask | 1 << at)
    }

    fn next_deadline_ms(&self, s: &State) -> Option<u64> {
        let record = self.record(s);
        let waits = record.turn.is_some() || !s.queue.is_empty();
        let lease = record.lease.as_ref().map(|lease| lease.until_ms);
        let later = [
            record.due_at_ms,
            (record.phase == Phase::Active)
                .then_some(record.last_activity_ms + LIMITS.idle_pause_ms),
            (record.phase == Phase::Paused).then_some(record.phase_since_ms + LIMITS.paused_ttl_ms),
        ];
        let all = lease
            .into_iter()
            .chain(later.into_iter().flatten().filter(|_| !waits));
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
            let due = record.due_at_ms.is_some_and(|at: Ms| at <= NOW) && s.queue.is_empty();
            if !sweep_waits && (due || s.left.sweeps > 0) && record.version > 0 {
                actions.push(Action::Sweep);
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
        let stop_is_late = s.late.is_some_and(|late| late.call == Call::Stop);
        if calm && !stop_is_late && self.next_deadline_ms(s).is_some() {
            actions.push(Action::TimePasses);
        }
        if s.left.stops > 0 {
            for message in 0..s.accepted {
                let ended = record
                    .ended
                    .iter()
                    .any(|turn| self.driver.turn_of(&turn.id) == Some(message));
                if self.kinds[usize::from(message)] == Kind::Prompt && !ended {
                    actions.extend([true, false].map(|reaches| Action::Press { message, reaches }));
                }
            }
        }
        if s.left.losses > 0 {
            let there = (1..)
                .zip(&s.sandboxes)
                .filter(|(_, sandbox)| sandbox.copies > 0);
            actions.extend(there.map(|(generation, _)| Action::Lose(generation)));
        }
        let orphans = Self::orphans(Self::listed(s), &record) != 0;
        if !self.has(Fault::NoHunt)
            && (s.hunt.is_some() || orphans || (s.left.hunts > 0 && Self::listed(s) != 0))
        {
            actions.push(Action::Hunt);
        }
        if self.has(Fault::ReadBeforeList) && s.hunt.is_none() && s.left.hunts > 0 {
            actions.push(Action::Hunt);
        }
        let idle = record.phase == Phase::Active
            && record.turn.is_none()
            && record.due_at_ms.is_some_and(|at| at <= NOW);
        if self.has(Fault::SweeperStopsDirectly) && (s.direct.is_some() || idle) {
            actions.push(Action::Direct);
        }
    }

    fn worker_actions(&self, s: &State, slot: usize, worker: &Worker, actions: &mut Vec<Action>) {
        let mut trouble_free = true;
        match worker.pc {
            Pc::Waiting { .. } => trouble_free = s.late.is_none(),
            Pc::Do { effect, .. } | Pc::Early { effect, .. } => {
                match &*self.driver.effect(effect) {
                    Effect::Create { generation }
                    | Effect::Stop { generation }
                    | Effect::Delete { generation } => {
                        let there = s.sandboxes[*generation as usize - 1].copies > 0;
                        let create = matches!(&*self.driver.effect(effect), Effect::Create { .. });
                        if there != create && s.late.is_none() && !worker.lapsed && self.budget.late
                        {
                            actions.push(Action::StepLate(slot));
                        }
                    }
                    Effect::Follow(follow) => {
                        let turn = self.driver.turn_of(&follow.turn);
                        let marked = turn.is_some_and(|turn| s.marks & (1 << turn) != 0)
                            && !follow.cancel_known;
                        let going =
                            turn.is_some_and(|turn| s.known[usize::from(turn)].run == Run::Going);
                        if s.left.slices > 0 && going && !marked {
                            actions.push(Action::Slice(slot));
                            if s.late.is_none() && Self::calm_but(s, slot) {
                                actions.push(Action::NeverEnds(slot));
                            }
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if trouble_free {
            actions.push(Action::Step(slot));
        }
        // Before its first read a worker has done nothing: its crash is a delivery that did not happen.
        if s.left.crashes > 0 && worker.pc != Pc::Load && !worker.lapsed {
            actions.push(Action::Crash(slot));
        }
        if s.left.lapses > 0 && worker.pc != Pc::Load && !worker.lapsed {
            actions.push(Action::Lapse(slot));
        }
    }

    fn calm_but(s: &State, slot: usize) -> bool {
        s.workers
            .iter()
            .enumerate()
            .all(|(at, worker)| at == slot || worker.is_none())
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
                    self.record(&s).due_at_ms.is_some_and(|at| at <= NOW) && s.queue.is_empty();
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
            Action::Slice(slot) => {
                s.left.slices -= 1;
                self.still_running(&mut s, slot);
            }
            Action::NeverEnds(slot) => {
                s.left.slices -= 1;
                self.pass(&mut s, LIMITS.turn_ms);
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

    fn deliver(&self, s: &mut State) {
        let Some(slot) = s.workers.iter().position(Option::is_none) else {
            return;
        };
        match s.queue[0] {
            Entry::Work(item) => {
                let other = s
                    .workers
                    .iter()
                    .flatten()
                    .find(|worker| worker.item == item)
                    .map(|worker| worker.delivery);
                let delivery = self.driver.fresh_delivery(s.record, item, other);
                s.workers[slot] = Some(Worker {
                    item,
                    delivery,
                    lapsed: false,
                    marks: 0,
                    pc: Pc::Load,
                });
                s.in_flight = true;
            }
            Entry::Stop(message) => {
                s.marks |= 1 << message;
                s.queue.remove(0);
            }
        }
    }

    fn press(&self, s: &mut State, message: u8, reaches: bool) {
        s.left.stops -= 1;
        s.pressed |= 1 << message;
        if self.has(Fault::StopThroughTheQueue) {
            s.queue.push(Entry::Stop(message));
            return;
        }
        s.marks |= 1 << message;
        let known = &mut s.known[usize::from(message)];
        if reaches && known.run == Run::Going {
            known.run = Run::Aborted;
        }
    }

    /// Time passes for everybody who remembers a time.
    fn pass(&self, s: &mut State, by_ms: u64) {
        let shift = |number: &mut SessionNo| *number = self.driver.shift(*number, by_ms);
        shift(&mut s.record);
        for worker in s.workers.iter_mut().flatten() {
            match &mut worker.pc {
                Pc::Load => {}
                Pc::Save { from, to, .. }
                | Pc::Early { from, to, .. }
                | Pc::SaveAfter { from, to, .. } => {
                    shift(from);
                    shift(to);
                }
                Pc::Do { session, .. } | Pc::Waiting { session, .. } | Pc::Look { session, .. } => {
                    shift(session)
                }
            }
        }
        if let Some(Hunt::Read(session)) = &mut s.hunt {
            shift(session);
        }
    }

    fn land(&self, s: &mut State, late: Late) {
        let record = self.record(s);
        let under_way = record
            .turn
            .as_ref()
            .is_some_and(|turn| !matches!(turn.stage, Stage::Ending { .. }));
        let wanted = matches!(
            record.phase,
            Phase::Creating | Phase::Active | Phase::Resuming
        );
        if record.generation == late.generation
            && (with_agent(&record) || under_way && wanted)
            && !late.by_person
            && late.call != Call::Create
        {
            s.hits = s.hits.saturating_add(1).min(2);
        }
        match late.call {
            Call::Create => return self.create(s, late.generation),
            Call::Delete => return self.vanish(s, late.generation),
            Call::Stop => {}
        }
        let sandbox = &mut s.sandboxes[late.generation as usize - 1];
        (sandbox.running, sandbox.server) = (false, false);
        self.break_runs(s, late.generation, Run::Broken);
    }

    fn create(&self, s: &mut State, generation: u32) {
        let sandbox = &mut s.sandboxes[generation as usize - 1];
        if sandbox.copies == 0 || self.has(Fault::RandomNames) {
            sandbox.copies = (sandbox.copies + 1).min(3);
            sandbox.running = true;
        }
    }

    fn vanish(&self, s: &mut State, generation: u32) {
        s.sandboxes[generation as usize - 1] = Sandbox::default();
        self.break_runs(s, generation, Run::None);
        for known in s
            .known
            .iter_mut()
            .filter(|known| u32::from(known.generation) == generation)
        {
            (known.ids, known.generation) = (0, 0);
        }
    }

    fn break_runs(&self, s: &mut State, generation: u32, to: Run) {
        for known in s
            .known
            .iter_mut()
            .filter(|known| u32::from(known.generation) == generation)
        {
            if known.run == Run::Going || to == Run::None {
                known.run = to;
            }
        }
    }

    fn hunt(&self, s: &mut State) {
        let record = self.record(s);
        s.hunt = match s.hunt {
            None => {
                s.left.hunts = s.left.hunts.saturating_sub(1);
                if self.has(Fault::ReadBeforeList) {
                    Some(Hunt::Read(s.record))
                } else {
                    Some(Hunt::Listed(Self::listed(s)))
                }
            }
            Some(Hunt::Listed(listed)) => judged(Self::orphans(listed, &record)),
            Some(Hunt::Read(session)) => judged(Self::orphans(
                Self::listed(s),
                &self.driver.session(session),
            )),
            Some(Hunt::Judged(orphans)) => {
                let at = orphans.trailing_zeros();
                self.land(
                    s,
                    Late {
                        call: Call::Delete,
                        generation: at + 1,
                        by_person: false,
                    },
                );
                judged(orphans & !(1 << at))
            }
        };
    }

    /// The fault: no message, no mark, just a stop of what was seen idle.
    fn direct(&self, s: &mut State) {
        match s.direct.take() {
            None => s.direct = Some(self.record(s).generation),
            Some(generation) => self.land(
                s,
                Late {
                    call: Call::Stop,
                    generation,
                    by_person: false,
                },
            ),
        }
    }

    fn still_running(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let (Pc::Do { session, effect }
        | Pc::Early {
            to: session,
            effect,
            ..
        }) = worker.pc
        else {
            return;
        };
        if let Effect::Follow(follow) = &*self.driver.effect(effect)
            && let Some(turn) = self.driver.turn_of(&follow.turn)
            && s.pressed & (1 << turn) != 0
            && !follow.cancel_known
        {
            s.stop_ignored = true;
        }
        self.then(s, slot, session, Event::StillRunning);
    }

    fn asked(&self, s: &State, worker: &Worker) -> Asked {
        let mints = match worker.item {
            Item::Message(at) => s.known[usize::from(at)].mints,
            Item::Sweep => 0,
        };
        Asked {
            item: worker.item,
            delivery: worker.delivery,
            lapsed: worker.lapsed,
            marks: worker.marks,
            mints,
        }
    }

    fn give_back(&self, s: &mut State, slot: usize, done: bool) {
        let Some(worker) = s.workers[slot].take() else {
            return;
        };
        // A receipt that has lapsed is worth nothing: neither deleting nor giving back works with it.
        if worker.lapsed {
            return;
        }
        s.in_flight = false;
        if done {
            s.queue.remove(0);
        }
    }

    /// Decides on an event and stands before the next await.
    fn then(&self, s: &mut State, slot: usize, session: SessionNo, event: Event) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let slice_over = event == Event::StillRunning;
        let mut step = self.driver.decide(session, event, self.asked(s, &worker));
        if slice_over && self.has(Fault::SliceWithoutCursor) && step.plan == Plan::Hold {
            step.save = true;
            step.session = self.driver.changed(step.session, |session| {
                if let Some(turn) = &mut session.turn {
                    (turn.stage, turn.prompt_ids, turn.prompted_generation) =
                        (Stage::Received, None, None);
                }
            });
        }
        if step.minted
            && let Item::Message(at) = worker.item
        {
            s.known[usize::from(at)].mints =
                s.known[usize::from(at)].mints.saturating_add(1).min(7);
        }
        let pc = match (step.save, step.plan) {
            (true, Plan::Do(effect)) if self.has(Fault::EffectBeforeIntent) => Pc::Early {
                from: session,
                to: step.session,
                effect,
            },
            (true, plan) => Pc::Save {
                from: session,
                to: step.session,
                plan,
            },
            (false, Plan::Do(effect)) => Pc::Do {
                session: step.session,
                effect,
            },
            (false, plan) => return self.give_back(s, slot, plan == Plan::Done),
        };
        s.workers[slot] = Some(Worker { pc, ..worker });
    }

    fn step(&self, s: &mut State, slot: usize, late: bool) {
        let Some(mut worker) = s.workers[slot] else {
            return;
        };
        match worker.pc {
            Pc::Load => {
                worker.marks = s.marks;
                s.workers[slot] = Some(worker);
                self.then(s, slot, s.record, Event::Delivered);
            }
            Pc::Save { from, to, plan } => {
                let Some(saved) = self.save(s, slot, from, to) else {
                    return;
                };
                match plan {
                    Plan::Do(effect) => {
                        if let Some(worker) = &mut s.workers[slot] {
                            worker.pc = Pc::Do {
                                session: saved,
                                effect,
                            };
                        }
                    }
                    plan => self.give_back(s, slot, plan == Plan::Done),
                }
            }
            Pc::Do { .. } | Pc::Early { .. } if worker.lapsed && !self.has(Fault::ZombiesAct) => {
                self.give_back(s, slot, false)
            }
            Pc::Do { session, effect } => match self.perform(s, &worker, effect, late) {
                Outcome::OnItsWay => {
                    s.workers[slot] = Some(Worker {
                        pc: Pc::Waiting { session, effect },
                        ..worker
                    })
                }
                Outcome::Event(event @ Event::Finished(_)) => {
                    s.workers[slot] = Some(Worker {
                        pc: Pc::Look {
                            session,
                            event: self.driver.event_no(event),
                        },
                        ..worker
                    });
                }
                Outcome::Event(event) => self.then(s, slot, session, event),
            },
            Pc::Waiting { session, effect } => {
                let (Effect::Create { generation }
                | Effect::Stop { generation }
                | Effect::Delete { generation }) = *self.driver.effect(effect)
                else {
                    return;
                };
                self.then(s, slot, session, Self::observed(s, generation));
            }
            Pc::Look { session, event } => {
                worker.marks = s.marks;
                s.workers[slot] = Some(worker);
                self.then(s, slot, session, self.driver.event(event));
            }
            Pc::Early { from, to, effect } => {
                let event = match self.perform(s, &worker, effect, false) {
                    Outcome::Event(event) => event,
                    Outcome::OnItsWay => return,
                };
                s.workers[slot] = Some(Worker {
                    pc: Pc::SaveAfter {
                        from,
                        to,
                        event: self.driver.event_no(event),
                    },
                    ..worker
                });
            }
            Pc::SaveAfter { from, to, event } => {
                let Some(saved) = self.save(s, slot, from, to) else {
                    return;
                };
                self.then(s, slot, saved, self.driver.event(event));
            }
        }
    }

    /// Writes under the version that was read; a loser gives the message back.
    fn save(
        &self,
        s: &mut State,
        slot: usize,
        from: SessionNo,
        to: SessionNo,
    ) -> Option<SessionNo> {
        let expected = self.driver.session(from).version;
        if self.record(s).version != expected && !self.has(Fault::NoCondition) {
            self.give_back(s, slot, false);
            return None;
        }
        let saved = self
            .driver
            .changed(to, |session| session.version = expected + 1);
        s.record = self
            .driver
            .changed(saved, |session| session.seen = Default::default());
        if let Some(worker) = &mut s.workers[slot] {
            worker.marks = s.marks;
        }
        Some(saved)
    }

    fn observed(s: &State, generation: u32) -> Event {
        let sandbox = &s.sandboxes[generation as usize - 1];
        Event::Observed(match (sandbox.copies, sandbox.running) {
            (0, _) => Coarse::Gone,
            (_, true) => Coarse::Running,
            (_, false) => Coarse::Parked,
        })
    }

    fn perform(&self, s: &mut State, worker: &Worker, effect: EffectNo, late: bool) -> Outcome {
        let effect = self.driver.effect(effect);
        let at = |generation: u32| generation as usize - 1;
        Outcome::Event(match &*effect {
            Effect::Create { generation } => {
                if late {
                    s.late = Some(Late {
                        call: Call::Create,
                        generation: *generation,
                        by_person: false,
                    });
                    return Outcome::OnItsWay;
                }
                self.create(s, *generation);
                Self::observed(s, *generation)
            }
            Effect::Observe {
                watch: Some(turn), ..
            }
            | Effect::EnsureServer {
                watch: Some(turn), ..
            } if self.marked(s, turn) => Event::CancelSeen { by: ann() },
            Effect::Observe { generation, .. } => Self::observed(s, *generation),
            Effect::Start { generation } => {
                let sandbox = &mut s.sandboxes[at(*generation)];
                sandbox.running = sandbox.copies > 0;
                Self::observed(s, *generation)
            }
            Effect::Stop { generation } | Effect::Delete { generation } => {
                let call = if matches!(&*effect, Effect::Delete { .. }) {
                    Call::Delete
                } else {
                    Call::Stop
                };
                if s.sandboxes[at(*generation)].copies == 0 {
                    return Outcome::Event(Self::observed(s, *generation));
                }
                if worker.lapsed && call == Call::Stop {
                    return Outcome::Event(Event::Failed(Failure::Wait {
                        after_ms: 0,
                        seen: "too little time is left".to_owned(),
                    }));
                }
                let by_person = matches!(worker.item, Item::Message(at) if self.kinds[usize::from(at)] == Kind::Reset);
                let call = Late {
                    call,
                    generation: *generation,
                    by_person,
                };
                if late {
                    s.late = Some(call);
                    return Outcome::OnItsWay;
                }
                self.land(s, call);
                Self::observed(s, *generation)
            }
            Effect::CheckServer { generation, .. } => match &s.sandboxes[at(*generation)] {
                Sandbox {
                    copies: 1..,
                    running: true,
                    server: true,
                } => Event::Healthy,
                _ => down(),
            },
            Effect::EnsureServer { generation, .. } => match &mut s.sandboxes[at(*generation)] {
                Sandbox { copies: 0, .. } => Event::Failed(Failure::SandboxGone),
                sandbox if sandbox.running => {
                    sandbox.server = true;
                    Event::Healthy
                }
                _ => down(),
            },
            Effect::FindAgentSession { generation, .. } => match self.reached(s, *generation) {
                Some(failed) => failed,
                None => Event::AgentSession {
                    id: format!("ses_{generation}"),
                },
            },
            Effect::Count => Event::Counted(0),
            Effect::Recall { .. } => Event::Recalled(Vec::new()),
            Effect::Wake { .. } => Event::Woken,
            Effect::Attach { .. } => Event::Attached {
                note: String::new(),
                missed: Vec::new(),
            },
            Effect::SendPrompt {
                generation, ids, ..
            } => match self.reached(s, *generation) {
                Some(failed) => failed,
                None => self.send(s, *generation, &ids.message),
            },
            Effect::Follow(follow) => match self.reached(s, follow.generation) {
                Some(failed) => failed,
                None => self.follow(s, follow),
            },
            Effect::Abort { generation, .. } => match self.reached(s, *generation) {
                Some(failed) => failed,
                None => {
                    for known in s.known.iter_mut().filter(|known| {
                        u32::from(known.generation) == *generation && known.run == Run::Going
                    }) {
                        known.run = Run::Aborted;
                    }
                    Event::Aborted
                }
            },
            Effect::Decline { ask, .. } => Event::Declined { id: ask.clone() },
            Effect::Post {
                turn,
                kind,
                at,
                post,
            } => self.post(s, turn, kind, at.as_ref(), post),
        })
    }

    fn reached(&self, s: &State, generation: u32) -> Option<Event> {
        match &s.sandboxes[generation as usize - 1] {
            Sandbox { copies: 0, .. } => Some(Event::Failed(Failure::SandboxGone)),
            Sandbox { server: false, .. } => Some(down()),
            _ => None,
        }
    }

    fn send(&self, s: &mut State, generation: u32, ids: &str) -> Event {
        let mut parts = ids.split('-').skip(1);
        let (Some(turn), Some(mint)) = (
            parts.next().and_then(|id| self.driver.turn_of(id)),
            parts.next().and_then(|n| n.parse::<u8>().ok()),
        ) else {
            return Event::Failed(Failure::TurnFailed {
                reason: "unknown ids".to_owned(),
            });
        };
        let known = &mut s.known[usize::from(turn)];
        let generation = u8::try_from(generation).unwrap_or(u8::MAX);
        let has = known.generation == generation && known.ids & (1 << mint) != 0;
        if has && !self.has(Fault::NoPromptId) {
            if known.run == Run::Broken {
                known.run = Run::Going;
            }
            return Event::Prompted;
        }
        *known = Known {
            ids: known.ids | 1 << mint,
            generation,
            run: Run::Going,
            ..*known
        };
        if s.order.len() < ORDER {
            s.order.push((turn, generation));
        }
        Event::Prompted
    }

    /// Whether a person has stopped this turn.
    fn marked(&self, s: &State, turn: &str) -> bool {
        self.driver
            .turn_of(turn)
            .is_some_and(|turn| s.marks & (1 << turn) != 0)
    }

    fn follow(&self, s: &mut State, follow: &bobbin_core::effect::Follow) -> Event {
        let Some(turn) = self.driver.turn_of(&follow.turn) else {
            return down();
        };
        if s.marks & (1 << turn) != 0 && !follow.cancel_known {
            return Event::CancelSeen { by: ann() };
        }
        let known = &mut s.known[usize::from(turn)];
        let end = match known.run {
            Run::None => return Event::Failed(Failure::SessionMissing),
            Run::Broken => return down(),
            Run::Aborted => RunEnd::Aborted,
            Run::Going | Run::Done => RunEnd::Completed,
        };
        if known.run == Run::Going {
            known.run = Run::Done;
        }
        Event::Finished(Answer {
            end,
            text: "a".into(),
            usage: Usage::default(),
            steps: Vec::new(),
        })
    }

    fn post(
        &self,
        s: &mut State,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Event {
        let posted = Event::Posted(PostRef {
            channel: String::new(),
            id: format!("{turn}-{kind:?}"),
        });
        let Some(turn) = self.driver.turn_of(turn) else {
            return posted;
        };
        let known = &mut s.known[usize::from(turn)];
        let times = match kind {
            PostKind::Card => &mut known.card,
            PostKind::Chunk(_) | PostKind::Ask(_) => &mut known.chunk,
            PostKind::Notice => &mut known.notice,
        };
        let stands = at.is_none() && *times > 0 && !self.has(Fault::NoPostId);
        if at.is_none() && !stands {
            *times = (*times + 1).min(2);
        }
        // A post whose key stands already changes nothing; an edit does.
        if let Post::Card(card) = post
            && !stands
        {
            known.told = match &card.state {
                CardState::Ended { outcome, .. } => Some(Ending::from(outcome)),
                _ => None,
            };
        }
        posted
    }

    /// Whether the bounds of the exploration leave this state in.
    pub fn within(&self, s: &State) -> bool {
        let record = self.record(s);
        record.version <= self.version_max && (record.generation as usize) < GENERATIONS
    }
}

fn ann() -> bobbin_core::message::Person {
    bobbin_core::message::Person {
        id: "ann".into(),
        name: "ann".into(),
    }
}

fn judged(orphans: u8) -> Option<Hunt> {
    (orphans != 0).then_some(Hunt::Judged(orphans))
}
