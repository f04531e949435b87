//! One worker, one await at a time, as `drive` goes.

use super::*;

impl Machine {
    pub(super) fn still_running(&self, s: &mut State, slot: usize) {
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

    pub(super) fn asked(&self, s: &State, worker: &Worker) -> Asked {
        let mints = match worker.item {
            Item::Message(at) => s.known[usize::from(at)].mints,
            Item::Burial(_) | Item::Sweep => 0,
        };
        Asked {
            item: worker.item,
            delivery: worker.delivery,
            lapsed: worker.lapsed,
            marks: worker.marks,
            mints,
        }
    }

    pub(super) fn give_back(&self, s: &mut State, slot: usize, done: bool) {
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
    pub(super) fn then(&self, s: &mut State, slot: usize, session: SessionNo, event: Event) {
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
                s.known[usize::from(at)].mints.saturating_add(1).min(6);
        }
        let pc = match (step.save, step.plan) {
            (true, Plan::Do(effect)) if self.has(Fault::EffectBeforeIntent) => Pc::Early {
                from: session,
                to: step.session,
                effect,
                card: None,
            },
            (true, Plan::Both(effect, card)) if self.has(Fault::EffectBeforeIntent) => Pc::Early {
                from: session,
                to: step.session,
                effect,
                card: Some(card),
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
            (false, Plan::Both(work, card)) => Pc::Both {
                session: step.session,
                work: Half::Todo(work),
                card: Half::Todo(card),
            },
            (false, plan) => return self.give_back(s, slot, plan == Plan::Done),
        };
        s.workers[slot] = Some(Worker { pc, ..worker });
    }

    pub(super) fn step(&self, s: &mut State, slot: usize, late: bool) {
        let Some(mut worker) = s.workers[slot] else {
            return;
        };
        match worker.pc {
            Pc::Load => {
                worker.marks = s.marks;
                s.workers[slot] = Some(worker);
                let mut read = s.record;
                if self.has(Fault::CrashesUncounted) {
                    read = self.driver.changed(read, |session| {
                        if let Some(turn) = &mut session.turn {
                            turn.in_hand = false;
                        }
                    });
                }
                self.then(s, slot, read, Event::Delivered);
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
                    Plan::Both(work, card) => {
                        if let Some(worker) = &mut s.workers[slot] {
                            worker.pc = Pc::Both {
                                session: saved,
                                work: Half::Todo(work),
                                card: Half::Todo(card),
                            };
                        }
                    }
                    plan => self.give_back(s, slot, plan == Plan::Done),
                }
            }
            Pc::Do { .. } | Pc::Both { .. } | Pc::Early { .. }
                if worker.lapsed && !self.has(Fault::ZombiesAct) =>
            {
                self.give_back(s, slot, false)
            }
            Pc::Do { session, effect } => match self.perform(s, &worker, effect, late) {
                Outcome::OnItsWay => {
                    s.workers[slot] = Some(Worker {
                        pc: Pc::Waiting { session, effect },
                        ..worker
                    })
                }
                Outcome::Event(Event::Finished(answer)) if answer.end != RunEnd::Completed => {
                    let event = Event::Finished(answer);
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
            Pc::Both {
                session,
                work: Half::Todo(effect),
                card,
            } => {
                let work = match self.perform(s, &worker, effect, late) {
                    Outcome::OnItsWay => Half::Asked(effect),
                    Outcome::Event(event) => Half::Over(self.driver.event_no(event)),
                };
                self.together(s, slot, session, work, card);
                // Neither sees the other: which goes first, and what comes between, matters only where one may be cut off.
                if matches!(work, Half::Over(_)) && s.left.crashes == 0 {
                    self.step_card(s, slot);
                }
            }
            Pc::Both {
                session,
                work: Half::Asked(effect),
                card,
            } => {
                let Effect::Create { generation } = *self.driver.effect(effect) else {
                    return;
                };
                let observed = Self::observed(s, generation);
                let work = Half::Over(self.driver.event_no(observed));
                self.together(s, slot, session, work, card);
            }
            Pc::Both { .. } => self.step_card(s, slot),
            Pc::Early {
                from,
                to,
                effect,
                card,
            } => {
                let event = match self.perform(s, &worker, effect, false) {
                    Outcome::Event(event) => event,
                    Outcome::OnItsWay => return,
                };
                s.workers[slot] = Some(Worker {
                    pc: Pc::SaveAfter {
                        from,
                        to,
                        event: self.driver.event_no(event),
                        card,
                    },
                    ..worker
                });
            }
            Pc::SaveAfter {
                from,
                to,
                event,
                card,
            } => {
                let Some(saved) = self.save(s, slot, from, to) else {
                    return;
                };
                match card {
                    Some(card) => {
                        self.together(s, slot, saved, Half::Over(event), Half::Todo(card));
                    }
                    None => self.then(s, slot, saved, self.driver.event(event)),
                }
            }
        }
    }

    /// The card of two that go together.
    pub(super) fn step_card(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        if let Pc::Both {
            session,
            work,
            card: Half::Todo(effect),
        } = worker.pc
            && let Outcome::Event(event) = self.perform(s, &worker, effect, false)
        {
            let card = Half::Over(self.driver.event_no(event));
            self.together(s, slot, session, work, card);
        }
    }

    /// Goes on once both are over.
    fn together(&self, s: &mut State, slot: usize, session: SessionNo, work: Half, card: Half) {
        if let (Half::Over(work), Half::Over(card)) = (work, card) {
            let [work, card] = [work, card].map(|event| Box::new(self.driver.event(event)));
            return self.then(s, slot, session, Event::Both(work, card));
        }
        if let Some(worker) = &mut s.workers[slot] {
            worker.pc = Pc::Both {
                session,
                work,
                card,
            };
        }
    }

    /// A call does not get through; the run goes on, or comes to its end meanwhile.
    pub(super) fn cut(&self, s: &mut State, slot: usize, ends: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        s.left.cuts -= 1;
        let record = self.record(s);
        let ending = record.turn.as_ref();
        let ending = ending.filter(|turn| matches!(turn.stage, Stage::Ending { .. }));
        if let Some(turn) = ending.and_then(|turn| self.driver.turn_of(&turn.id)) {
            s.withheld |= 1 << turn;
        }
        let going = s.known.iter_mut().filter(|known| known.run == Run::Going);
        going
            .filter(|_| ends)
            .for_each(|known| known.run = Run::Done);
        match worker.pc {
            Pc::Both { session, card, .. } => {
                let work = Half::Over(self.driver.event_no(down()));
                self.together(s, slot, session, work, card);
            }
            Pc::Do { session, .. } => self.then(s, slot, session, down()),
            _ => {}
        }
    }

    /// A prompt is sent and may arrive; its sender hears nothing.
    pub(super) fn doubt(&self, s: &mut State, slot: usize, arrives: bool) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        s.left.doubts -= 1;
        let (Pc::Do { effect, .. }
        | Pc::Both {
            work: Half::Todo(effect),
            ..
        }) = worker.pc
        else {
            return;
        };
        if arrives {
            self.perform(s, &worker, effect, false);
        }
        let event = match down() {
            Event::Failed(failure) if self.has(Fault::DoubtIsNo) => Event::NotSent(failure),
            event => event,
        };
        match worker.pc {
            Pc::Both { session, card, .. } => {
                let work = Half::Over(self.driver.event_no(event));
                self.together(s, slot, session, work, card);
            }
            Pc::Do { session, .. } => self.then(s, slot, session, event),
            _ => {}
        }
    }

    /// Writes under the version that was read; a loser gives the message back.
    pub(super) fn save(
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
        // The marks of what has begun or ended are spent with this write.
        let written = self.driver.session(saved);
        for message in 0..s.accepted {
            let id = self.driver.id_of(message);
            let turn = written.turn.as_ref();
            let steered = turn.is_some_and(|turn| turn.id != id && turn.covers(id));
            let ended = written.ended.iter().any(|ended| ended.id == id);
            s.steered |= u8::from(steered) << message;
            if ended || turn.is_some_and(|turn| turn.covers(id)) {
                s.now &= !(1 << message);
            }
        }
        s.record = self
            .driver
            .changed(saved, |session| session.seen = Default::default());
        if let Some(worker) = &mut s.workers[slot] {
            worker.marks = s.marks;
        }
        Some(saved)
    }
}
