//! One step of a worker: the world answers the product's machine.

use bobbin_core::protocol::delivery::Verdict;
use bobbin_core::protocol::effect::{Effect, SandboxEffect};
use bobbin_core::protocol::machine::Step;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::message::Work;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

use super::super::driver::{
    Asked, Item, NOW, PAST, PRESENT, START, SessionNo, StepResult, each_known, knows,
};
use super::super::faults::Fault;
use super::{
    BARE, BUILDER, Building, Group, HINDERED, Kept, Making, State, TAKEN, TTL_MS, TWICE, Worker,
    breaks, hash, name,
};

impl Building {
    pub(super) fn deliver(&self, s: &mut State, group: Group) {
        let Some(slot) = s.workers.iter().position(Option::is_none) else {
            return;
        };
        let message = s.queues[group][0];
        let others = s.workers.iter().flatten();
        let mut others = others.filter(|worker| worker.message == message);
        let other = others.next().map(|worker| worker.delivery);
        let delivery = self.driver.fresh_delivery(s.records[group], Item::Message(message), other);
        s.workers[slot] = Some(Worker { message, group, delivery, lapsed: false, machine: START });
        s.in_flight[group] = true;
    }

    /// The stored state, as a worker with a fault sees it.
    fn seen(&self, s: &State, worker: &Worker) -> SessionNo {
        if worker.group != BUILDER || !self.has(Fault::BuiltAgain) {
            return s.records[worker.group];
        }
        let mut session = (*self.record(s, BUILDER)).clone();
        for built in session.sandbox.snapshots.iter_mut().filter_map(|kept| kept.built.as_mut()) {
            built.key.hash.clear();
        }
        self.driver.session_no(session)
    }

    pub(super) fn step(&self, s: &mut State, slot: usize, fails: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        self.judge(s, &worker);
        let machine = self.driver.machine(worker.machine);
        let came = match self.driver.step(&machine, Item::Message(worker.message), worker.lapsed) {
            Step::Read => {
                let record = self.seen(s, &worker);
                if s.is_off {
                    StepResult::ReadOff { record }
                } else {
                    StepResult::Read { record, flags: 0, parked: false }
                }
            }
            Step::Write { write, .. } => return self.write(s, slot, write.session, write.expected),
            Step::Park(_) => StepResult::Parked { flags: 0 },
            Step::Perform(effect) => {
                let event = self.perform(s, knows(&machine), &worker, (&effect, fails));
                StepResult::Done(self.driver.event_no(event))
            }
            Step::PerformBoth { work, card } => {
                let [work, card] = [work, card].map(|effect| {
                    let event = self.perform(s, knows(&machine), &worker, (&effect, fails));
                    self.driver.event_no(event)
                });
                StepResult::Both(work, card)
            }
            Step::End(verdict) => return self.give_back(s, slot, verdict == Verdict::Done),
        };
        self.then(s, slot, came);
    }

    fn give_back(&self, s: &mut State, slot: usize, done: bool) {
        let Some(worker) = s.workers[slot].take() else {
            return;
        };
        // A thread waits only for another worker that has its message.
        let is_alone = s.left.lapses == self.budget.lapses;
        if worker.group != BUILDER && !done && is_alone {
            breaks(s, HINDERED);
        }
        // An expired receipt is invalid: neither deleting nor retrying works with it.
        if worker.lapsed {
            return;
        }
        s.in_flight[worker.group] = false;
        if done {
            s.queues[worker.group].remove(0);
        }
    }

    fn then(&self, s: &mut State, slot: usize, came: StepResult) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let Worker { message, delivery, lapsed, machine, .. } = worker;
        let item = Item::Message(message);
        let after = self.driver.after(machine, came, Asked { item, delivery, lapsed, mints: 0 });
        s.workers[slot] = Some(Worker { machine: after.machine, ..worker });
        let machine = self.driver.machine(after.machine);
        if let Step::End(verdict) = self.driver.step(&machine, item, false) {
            self.give_back(s, slot, verdict == Verdict::Done);
        }
    }

    /// Writes if the versions are still the expected ones; everyone else's copy is stale from then on.
    fn write(&self, s: &mut State, slot: usize, session: &Session, expected: ExpectedVersions) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let group = worker.group;
        let stored = self.record(s, group);
        let stands = |expected: Option<u64>, version: u64| expected.is_none_or(|it| it == version);
        let of_thread = expected.thread.filter(|_| group != BUILDER);
        if !stands(of_thread, stored.version) || !stands(expected.sandbox, stored.sandbox.version) {
            return self.then(s, slot, StepResult::Conflict);
        }
        let mut written = (*stored).clone();
        if expected.sandbox.is_some() {
            written.sandbox = SandboxRecord { version: PRESENT, ..session.sandbox.clone() };
        }
        if of_thread.is_some() {
            let sandbox = written.sandbox;
            let observed = Default::default();
            written = Session { version: PRESENT, sandbox, observed, ..session.clone() };
        }
        if group == BUILDER {
            self.spoil(&mut written.sandbox);
            let mut machine = (*self.driver.machine(worker.machine)).clone();
            each_known(&mut machine, |known| self.spoil_known(&mut known.sandbox));
            let machine = self.driver.machine_no(machine);
            s.workers[slot] = Some(Worker { machine, ..worker });
        }
        s.records[group] = self.driver.session_no(written);
        self.then(s, slot, StepResult::Written { flags: 0 });
        for (at, worker) in s.workers.iter_mut().enumerate() {
            let Some(worker) = worker.as_mut().filter(|worker| worker.group == group) else {
                continue;
            };
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
                if of_thread.is_some() {
                    version(&mut known.version);
                }
                if expected.sandbox.is_some() {
                    version(&mut known.sandbox.version);
                }
            });
            worker.machine = self.driver.machine_no(machine);
        }
    }

    /// What a faulty writer keeps of the builder.
    fn spoil(&self, written: &mut SandboxRecord) {
        self.spoil_known(written);
        if self.has(Fault::ResultsUnkept) {
            written.history.operated.clear();
        }
    }

    /// The same, if its delivery continues with it.
    fn spoil_known(&self, known: &mut SandboxRecord) {
        if self.has(Fault::KeyedBuilders) {
            known.spec.runtime = None;
        }
        if self.has(Fault::UnfinishedUnkept) {
            known.snapshots.retain(|kept| kept.built.is_some());
        }
    }

    /// Checks the call that a worker is about to make for the builder.
    pub(super) fn judge(&self, s: &mut State, worker: &Worker) {
        if worker.group != BUILDER {
            return;
        }
        let machine = self.driver.machine(worker.machine);
        let step = self.driver.step(&machine, Item::Message(worker.message), worker.lapsed);
        let Step::Perform(addressed) = step else {
            return;
        };
        if !is_bare(&addressed) {
            breaks(s, BARE);
        }
        match addressed.effect {
            Effect::Sandbox(SandboxEffect::DeleteSnapshot { name }) => {
                let known = knows(&machine).map(|known| &known.sandbox);
                if !self.may_go(s, worker, (known, name)) {
                    breaks(s, TAKEN);
                }
            }
            Effect::Sandbox(SandboxEffect::Snapshot { .. })
                if self.is_second(s, worker, addressed.at.generation) =>
            {
                breaks(s, TWICE);
            }
            _ => {}
        }
    }

    /// Whether a thread can begin with this snapshot.
    pub(super) fn is_usable(&self, s: &State, one: &Kept) -> bool {
        let record = self.record(s, BUILDER);
        let mut kept = record.sandbox.snapshots.iter().filter(|kept| kept.built.is_some());
        one.making == Making::Ready && kept.any(|kept| kept.name == name(one.generation))
    }

    /// Whether the request is already fulfilled.
    fn is_second(&self, s: &State, worker: &Worker, generation: u32) -> bool {
        let message = &self.driver.messages()[usize::from(worker.message)];
        let Work::Build(build) = &message.work else {
            return false;
        };
        let is_its = |one: &&Kept| one.generation != generation && hash(one.locks) == build.hash;
        s.snapshots.iter().filter(is_its).any(|one| self.is_usable(s, one))
    }

    /// Whether a worker's knowledge lets it delete this snapshot of the builder: a newer one is ready, it has expired,
    /// or it is useless.
    fn may_go(
        &self,
        s: &State,
        worker: &Worker,
        (known, wanted): (Option<&SandboxRecord>, &str),
    ) -> bool {
        let its = s.snapshots.iter().find(|one| name(one.generation) == wanted);
        let Some(its) = its.filter(|one| one.making == Making::Ready) else {
            return true;
        };
        let is_newer = |generation: u32| generation > its.generation;
        let mut ready = s.snapshots.iter().filter(|one| one.making == Making::Ready);
        let mut kept = known.iter().flat_map(|known| &known.snapshots);
        let kept = kept.find(|kept| kept.name == wanted);
        let is_over = kept.is_some_and(|kept| kept.at_ms + TTL_MS <= NOW);
        let is_unfinished = kept.is_some_and(|kept| kept.built.is_none());
        let message = &self.driver.messages()[usize::from(worker.message)];
        let is_useless = matches!(
            &message.work,
            Work::Build(build) if build.useless.as_deref() == Some(wanted)
        );
        ready.any(|one| is_newer(one.generation)) || is_over || is_unfinished || is_useless
    }
}

/// Whether a call for the builder brings it neither a server nor a key.
fn is_bare(Addressed { at, effect, .. }: &Addressed<'_>) -> bool {
    let is_serving = matches!(
        effect,
        Effect::Agent(_)
            | Effect::Sandbox(
                SandboxEffect::EnsureServer { .. }
                    | SandboxEffect::MakeWorkspace { .. }
                    | SandboxEffect::StartProject { .. }
            )
    );
    let is_create = matches!(effect, Effect::Sandbox(SandboxEffect::Create { .. }));
    let mode = RuntimeMode::recorded_as(at.runtime.as_deref());
    !is_serving && at.project.is_none() && (!is_create || mode == Some(RuntimeMode::Bare))
}
