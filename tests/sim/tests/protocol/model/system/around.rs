//! What happens around the workers: deliveries, people, the provider's late calls, time and the orphan hunt.

use super::*;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

impl System {
    pub(super) fn deliver(&self, s: &mut State) {
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
                    parked: s.parked.take() == Some(item),
                    machine: START,
                    work: Half::Todo,
                    card: Half::Todo,
                });
                s.in_flight = true;
            }
            Entry::Stop(message) => {
                s.flags |= 1 << message;
                s.queue.remove(0);
            }
        }
    }

    pub(super) fn press(&self, s: &mut State, message: u8, reaches: Reaches) {
        s.left.stops -= 1;
        s.pressed |= 1 << message;
        if self.has(Fault::StopThroughTheQueue) {
            s.queue.push(Entry::Stop(message));
            return;
        }
        s.flags |= 1 << message;
        // A press finds the turn by its record, with all prompts that were sent into its run.
        let record = self.record(s);
        let id = self.driver.id_of(message);
        let running = record.turn.as_ref().filter(|turn| turn.id == id);
        let Some(turns) = running.map(|turn| self.turns_of(&turn.messages())) else {
            return;
        };
        match reaches {
            Reaches::Now => self.abort(s, record.sandbox.generation, turns),
            Reaches::Later => s.late_abort = Some(turns),
            Reaches::Never => {}
        }
    }

    /// The messages (a bit each) that these ids were minted for.
    pub(super) fn turns_of(&self, ids: &[String]) -> u8 {
        let turns = ids.iter().filter_map(|ids| {
            let id = ids.split('-').nth(1)?;
            self.driver.turn_of(id)
        });
        turns.fold(0, |mask, turn| mask | 1 << turn)
    }

    /// An abort for these messages arrives: it ends the agent's work, unless that is for others.
    pub(super) fn abort(&self, s: &mut State, generation: u32, turns: u8) {
        let here = |one: &&(u8, u8)| u32::from(one.1) == generation;
        let newest = s.order.iter().rev().find(here);
        let meant = newest.is_some_and(|(turn, _)| turns & (1 << turn) != 0);
        // The daemon ends just these.
        if self.runtime == RuntimeMode::Native {
            for (turn, known) in s.known.iter_mut().enumerate() {
                let ours = turns & (1 << turn) != 0 && u32::from(known.generation) == generation;
                if ours && known.run == Run::Going {
                    known.run = Run::Aborted;
                }
            }
            return;
        }
        if !meant && !self.has(Fault::AbortsHitAnything) {
            return;
        }
        for (turn, known) in s.known.iter_mut().enumerate() {
            if u32::from(known.generation) == generation && known.run == Run::Going {
                known.run = Run::Aborted;
                if !meant && turns & (1 << turn) == 0 {
                    s.hits = s.hits.saturating_add(1).min(2);
                }
            }
        }
    }

    /// Time passes for everybody who remembers a time.
    pub(super) fn pass(&self, s: &mut State, by_ms: u64) {
        let shift = |number: &mut SessionNo| *number = self.driver.shift(*number, by_ms);
        shift(&mut s.record);
        for worker in s.workers.iter_mut().flatten() {
            worker.machine = self.driver.shift_machine(worker.machine, by_ms);
        }
        if let Some(Hunt::Read(session)) = &mut s.hunt {
            shift(session);
        }
    }

    pub(super) fn land(&self, s: &mut State, late: Late) {
        let record = self.record(s);
        let under_way = record.turn.as_ref().is_some_and(|turn| !turn.stage.is_ending());
        let wanted =
            matches!(record.sandbox.phase, Phase::Creating | Phase::Active | Phase::Resuming);
        if record.sandbox.generation == late.generation
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

    pub(super) fn create(&self, s: &mut State, generation: u32) {
        let sandbox = &mut s.sandboxes[generation as usize - 1];
        if sandbox.copies == 0 || self.has(Fault::RandomNames) {
            sandbox.copies = (sandbox.copies + 1).min(3);
            sandbox.running = true;
            sandbox.cloned = false;
        }
    }

    pub(super) fn vanish(&self, s: &mut State, generation: u32) {
        s.sandboxes[generation as usize - 1] = Sandbox::default();
        self.break_runs(s, generation, Run::None);
        for known in s.known.iter_mut().filter(|known| u32::from(known.generation) == generation) {
            (known.ids, known.generation) = (0, 0);
        }
    }

    pub(super) fn break_runs(&self, s: &mut State, generation: u32, to: Run) {
        for known in s.known.iter_mut().filter(|known| u32::from(known.generation) == generation) {
            if known.run == Run::Going || to == Run::None {
                known.run = to;
            }
        }
    }

    pub(super) fn hunt(&self, s: &mut State) {
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
            Some(Hunt::Read(session)) => {
                judged(Self::orphans(Self::listed(s), &self.driver.session(session)))
            }
            Some(Hunt::Judged(orphans)) => {
                let at = orphans.trailing_zeros();
                self.land(s, Late { call: Call::Delete, generation: at + 1, by_person: false });
                judged(orphans & !(1 << at))
            }
        };
    }

    /// A dead letter is kept until its notice is on record; until then the notice is sent again.
    pub(super) fn tell_dead(&self, s: &mut State, message: u8) {
        let id = self.driver.id_of(message);
        let record = self.record(s);
        if record.ended.iter().any(|ended| ended.id == id) {
            s.letters &= !(1 << message);
            return;
        }
        s.queue.push(Entry::Work(Item::DeadLetter(message)));
        if self.has(Fault::LettersGoUnread) {
            s.letters &= !(1 << message);
        }
    }

    /// A stack of the same name has its own table, without these threads.
    pub(super) fn namesake(&self, s: &mut State) {
        s.left.namesakes -= 1;
        let name = "dev";
        let ours = StackIdentity { name, id: "ours" };
        let theirs = if self.has(Fault::StacksByName) { ours.id } else { "theirs" };
        let thread = self.record(s).thread.clone();
        for at in 0..GENERATIONS {
            if s.sandboxes[at].copies == 0 {
                continue;
            }
            let generation = u32::try_from(at).unwrap_or(0) + 1;
            let listed =
                Listed { labels: labels(ours, &thread.sandbox(), generation), ..nameless() };
            if !listed.is_foreign(theirs) && is_orphan(None, generation, NOW, NOW, 0) {
                self.vanish(s, generation);
                s.hits = s.hits.saturating_add(1).min(2);
            }
        }
    }

    /// The fault: no message, no flag, just a stop of an idle sandbox.
    pub(super) fn direct(&self, s: &mut State) {
        match s.direct.take() {
            None => s.direct = Some(self.record(s).sandbox.generation),
            Some(generation) => {
                self.land(s, Late { call: Call::Stop, generation, by_person: false })
            }
        }
    }
}

fn nameless() -> Listed {
    Listed {
        id: String::new(),
        name: String::new(),
        labels: std::collections::BTreeMap::new(),
        state: SandboxState::Busy,
        said: String::new(),
        created_ms: None,
        ends_ms: None,
        exec_base: None,
    }
}

fn judged(orphans: u8) -> Option<Hunt> {
    (orphans != 0).then_some(Hunt::Judged(orphans))
}
