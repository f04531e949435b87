//! One step of a worker: the world answers the product's machine.

use super::*;
use bobbin_core::protocol::effect::{AgentEffect, SandboxEffect};
use bobbin_core::protocol::event::Cause;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::parked::Seen;
use bobbin_sim::services::silent;

impl System {
    /// The follow window is over before the run is.
    pub(super) fn still_running(&self, s: &mut State, slot: usize) {
        self.goes_on(s, slot, Event::StillRunning(Seen::default()));
    }

    /// The delivery hears that the run continues.
    pub(super) fn goes_on(&self, s: &mut State, slot: usize, event: Event) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        if let Some(Effect::Agent(AgentEffect::Follow(follow) | AgentEffect::Look(follow))) =
            work(&self.driver.machine(worker.machine))
            && let Some(turn) = self.driver.turn_of(&follow.turn)
            && s.pressed & (1 << turn) != 0
            && !follow.cancel_known
        {
            s.stop_ignored = true;
        }
        self.work_is_over(s, slot, event);
    }

    fn asked(&self, s: &State, worker: &Worker) -> Asked {
        let mints = match worker.item {
            Item::Message(at) => s.known[usize::from(at)].mints,
            Item::Aged(_) | Item::DeadLetter(_) | Item::Sweep => 0,
        };
        Asked { item: worker.item, delivery: worker.delivery, lapsed: worker.lapsed, mints }
    }

    fn give_back(&self, s: &mut State, slot: usize, done: bool) {
        let Some(worker) = s.workers[slot].take() else {
            return;
        };
        // An expired receipt is invalid: neither deleting nor retrying works with it.
        if worker.lapsed {
            return;
        }
        s.in_flight = false;
        if done {
            s.queue.remove(0);
        }
    }

    /// Gives the machine the result of its step: it continues to the next one, or the delivery is over.
    fn then(&self, s: &mut State, slot: usize, came: StepResult) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let after = self.driver.after(worker.machine, came, self.asked(s, &worker));
        let mut number = after.machine;
        if self.has(Fault::SliceWithoutCursor)
            && came == StepResult::Done(self.driver.event_no(Event::StillRunning(Seen::default())))
        {
            let machine = (*self.driver.machine(number)).clone();
            number = self.driver.machine_no(without_cursor(machine));
        }
        if after.minted
            && let Item::Message(at) = worker.item
        {
            s.known[usize::from(at)].mints =
                s.known[usize::from(at)].mints.saturating_add(1).min(6);
        }
        let machine = self.driver.machine(number);
        if let Step::End(verdict) = self.driver.step(&machine, worker.item, false) {
            return self.give_back(s, slot, verdict == Verdict::Done);
        }
        let work = match came {
            // An effect that happened too early is not repeated.
            StepResult::Written { .. } => worker.work,
            _ => Half::Todo,
        };
        s.workers[slot] = Some(Worker { machine: number, work, card: Half::Todo, ..worker });
    }

    /// Continues when all requests are done.
    fn go_on(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        let step = self.driver.step(&machine, worker.item, false);
        match (step, worker.work, worker.card) {
            (Step::Perform(_), Half::Over(work), _) => self.then(s, slot, StepResult::Done(work)),
            (Step::PerformBoth { .. }, Half::Over(work), Half::Over(card)) => {
                self.then(s, slot, StepResult::Both(work, card));
            }
            _ => {}
        }
    }

    fn work_is_over(&self, s: &mut State, slot: usize, event: Event) {
        if let Some(worker) = &mut s.workers[slot] {
            worker.work = Half::Over(self.driver.event_no(event));
        }
        self.go_on(s, slot);
    }

    pub(super) fn step(&self, s: &mut State, slot: usize, late: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        if worker.work == Half::Asked
            && let Step::Perform(effect) = self.driver.step(&machine, worker.item, false)
        {
            return self.has_landed(s, slot, &effect);
        }
        // The second of two is checked like a first: it is cut off if the visibility has ended meanwhile.
        let lapsed = worker.lapsed && !self.has(Fault::ZombiesAct);
        match self.driver.step(&machine, worker.item, lapsed) {
            Step::Read => {
                let mut record = s.record;
                if self.has(Fault::CrashesUncounted) {
                    let mut session = (*self.record(s)).clone();
                    session.turn.iter_mut().for_each(|turn| turn.in_hand = false);
                    record = self.driver.session_no(session);
                }
                let came = StepResult::Read { record, flags: s.flags, parked: worker.parked };
                self.then(s, slot, came);
            }
            Step::Park(_) => {
                s.parked = Some(worker.item);
                let flags = s.flags;
                self.then(s, slot, StepResult::Parked { flags });
            }
            Step::Write { prepare: Some(effect), .. }
                if self.has(Fault::EffectBeforeIntent) && worker.work == Half::Todo =>
            {
                self.work(s, slot, &effect, false);
            }
            Step::Write { write, .. } => {
                self.write(s, slot, write.session, write.expected);
                self.go_on(s, slot);
            }
            Step::Perform(effect) => self.work(s, slot, &effect, late),
            Step::PerformBoth { work, card } => match worker.work {
                Half::Todo => {
                    self.work(s, slot, &work, late);
                    // Neither sees the other: their order matters only if one may be cut off.
                    let over = s.workers[slot].is_some_and(|worker| worker.work != Half::Asked);
                    if over && s.left.crashes == 0 {
                        self.card(s, slot, &card);
                    }
                }
                Half::Asked => self.has_landed(s, slot, &work),
                Half::Over(_) => self.card(s, slot, &card),
            },
            Step::End(verdict) => self.give_back(s, slot, verdict == Verdict::Done),
        }
    }

    fn work(&self, s: &mut State, slot: usize, effect: &Addressed<'_>, late: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        match self.perform(s, &worker, effect, late) {
            Outcome::Event(event) => self.work_is_over(s, slot, event),
            Outcome::OnItsWay => {
                s.workers[slot] = Some(Worker { work: Half::Asked, ..worker });
            }
        }
    }

    /// The provider has carried out its late call.
    fn has_landed(&self, s: &mut State, slot: usize, effect: &Addressed<'_>) {
        if let Effect::Sandbox(
            SandboxEffect::Create { .. } | SandboxEffect::Stop | SandboxEffect::Delete,
        ) = effect.effect
        {
            self.work_is_over(s, slot, Event::Observed(Self::stands(s, effect.at.generation)));
        }
    }

    fn card(&self, s: &mut State, slot: usize, effect: &Addressed<'_>) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        if worker.card == Half::Todo
            && let Outcome::Event(event) = self.perform(s, &worker, effect, false)
        {
            let card = Half::Over(self.driver.event_no(event));
            s.workers[slot] = Some(Worker { card, ..worker });
            self.go_on(s, slot);
        }
    }

    /// The card is written before its work.
    pub(super) fn step_card(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        if let Step::PerformBoth { card, .. } = self.driver.step(&machine, worker.item, false) {
            self.card(s, slot, &card);
        }
    }

    /// A call does not reach the agent; the run continues or ends meanwhile.
    pub(super) fn cut(&self, s: &mut State, slot: usize, ends: bool) {
        s.left.cuts -= 1;
        let record = self.record(s);
        let ending = record.turn.as_ref();
        let ending = ending.filter(|turn| turn.stage.is_ending());
        if let Some(turn) = ending.and_then(|turn| self.driver.turn_of(&turn.id)) {
            s.withheld |= 1 << turn;
        }
        let going = s.known.iter_mut().filter(|known| known.run == Run::Going);
        going.filter(|_| ends).for_each(|known| known.run = Run::Done);
        self.work_is_over(s, slot, Event::Failed(silent()));
    }

    /// A check or call does not find the sandbox, which exists.
    pub(super) fn lie(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        if let Some(event) = work(&machine).and_then(not_found) {
            s.left.lies -= 1;
            self.work_is_over(s, slot, event);
        }
    }

    /// A prompt is sent and may arrive; its sender gets no answer.
    pub(super) fn doubt(&self, s: &mut State, slot: usize, arrives: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        s.left.doubts -= 1;
        let machine = self.driver.machine(worker.machine);
        if let Step::Perform(effect) | Step::PerformBoth { work: effect, .. } =
            self.driver.step(&machine, worker.item, false)
            && arrives
        {
            self.perform(s, &worker, &effect, false);
        }
        let event = match silent() {
            failure if self.has(Fault::DoubtIsNo) => Event::NotSent(failure),
            failure => Event::Failed(failure),
        };
        self.work_is_over(s, slot, event);
    }

    /// Writes under the version that was read.
    fn write(&self, s: &mut State, slot: usize, session: &Session, expected: ExpectedVersions) {
        if !expected.are_of(Some(&self.record(s))) && !self.has(Fault::NoCondition) {
            return self.then(s, slot, StepResult::Conflict);
        }
        // This write spends the control flags of turns that have begun or ended.
        for message in 0..s.accepted {
            let id = self.driver.id_of(message);
            let turn = session.turn.as_ref();
            let steered = turn.is_some_and(|turn| turn.id != id && turn.covers(&id.into()));
            let ended = session.ended.iter().any(|ended| ended.id == id);
            s.steered |= u8::from(steered) << message;
            if ended || turn.is_some_and(|turn| turn.covers(&id.into())) {
                s.now &= !(1 << message);
            }
        }
        s.record = self.driver.session_no(Session {
            observed: Default::default(),
            ..expected.followed_by(session.clone())
        });
        let flags = s.flags;
        self.then(s, slot, StepResult::Written { flags });
    }
}

/// The fault: at a follow window's end the machine is made to write that nothing was sent.
fn without_cursor(machine: Machine) -> Machine {
    let (known, cause, mut decision) = match machine {
        Machine::Write { known, cause, decision } if decision.next.work().is_none() => {
            (known, cause, decision)
        }
        Machine::Act { known, next } if next.work().is_none() => {
            let session = known.session.clone();
            let next = *next;
            let cause = Box::new(Cause::Delivered);
            (known, cause, Box::new(Decision { session, next }))
        }
        machine => return machine,
    };
    if let Some(turn) = &mut decision.session.turn {
        turn.stage = Stage::Received { ids: None };
    }
    Machine::Write { known, cause, decision }
}
