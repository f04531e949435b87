//! One worker of the simulator: the `World` that `drive` sees, with what goes wrong in between.

use std::sync::Mutex;

use bobbin_core::effect::{AgentEffect, ChatEffect, Effect, SandboxEffect, Sending};
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::ledger::Entry as LedgerEntry;
use bobbin_core::message::Work;
use bobbin_core::ports::{self, Loaded, Saved};
use bobbin_core::session::{Phase, Session};
use bobbin_core::settings::Offer;

use super::transitions::{Before, Transition};
use super::world::{Late, Out, Trouble, World};

/// How long a caller waits that sets no bound of its own.
const REQUEST_MS: u64 = 15_000;
/// Between two looks at a run.
const LOOK_MS: u64 = 5_000;

pub struct Worker {
    world: World,
    place: usize,
    token: u64,
    /// How far this function's clock goes wrong.
    skew_ms: u64,
    work: Work,
    /// The phase, as this worker knows it, and the decision that is under way.
    pending: Mutex<(Phase, Option<Before>)>,
    /// Effects that were begun together, and how many of them are over.
    together: Mutex<(u32, u32)>,
}

/// What a call meets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    Good,
    /// It fails and nothing was done.
    Fails,
    /// It is done, and its reply is lost.
    ReplyLost,
    /// It is on its way, and its caller gives up waiting.
    Late,
}

fn wait() -> Failure {
    Failure::Wait {
        after_ms: 0,
        seen: "429".to_owned(),
    }
}

/// What an effect needs that may be away.
fn stands_on(effect: &Effect) -> &'static [Out] {
    match effect {
        Effect::Chat(ChatEffect::Post { .. }) | Effect::Chat(ChatEffect::PostArtifact { .. }) => {
            &[Out::Chat, Out::Token]
        }
        Effect::Recall { .. } => &[Out::Table],
        Effect::Sandbox(SandboxEffect::Count { .. })
        | Effect::Sandbox(SandboxEffect::Create { .. })
        | Effect::Sandbox(SandboxEffect::Observe { .. })
        | Effect::Sandbox(SandboxEffect::Start { .. })
        | Effect::Sandbox(SandboxEffect::Stop { .. })
        | Effect::Sandbox(SandboxEffect::Delete { .. })
        | Effect::Sandbox(SandboxEffect::Clone { .. })
        | Effect::Sandbox(SandboxEffect::EnsureServer { .. }) => &[Out::Provider],
        _ => &[],
    }
}

fn away_for_now(what: Out) -> Failure {
    Failure::Outage {
        after_ms: 0,
        seen: format!("{what:?} is away"),
    }
}

impl Worker {
    /// How an effect fails while what it needs is away.
    fn out(&self, effect: &Effect) -> Option<Failure> {
        let inner = self.world.lock();
        let away = stands_on(effect).iter().find(|what| inner.is_out(**what))?;
        Some(match away {
            Out::Token if inner.gives_tokens_up => Failure::NonRecoverable {
                advice: "the token is refused".to_owned(),
            },
            _ => away_for_now(*away),
        })
    }

    pub fn new(world: World, place: usize, token: u64, skew_ms: u64, work: &Work) -> Self {
        Self {
            world,
            place,
            token,
            skew_ms,
            work: work.clone(),
            pending: Mutex::new((Phase::Destroyed, None)),
            together: Mutex::default(),
        }
    }

    /// A call begins: takes a moment, and may find the worker dying. Its number, and what it meets.
    async fn begin(&self, name: &str) -> (u32, Luck) {
        self.unless_dying().await;
        let (call, wait_ms, luck) = {
            let mut inner = self.world.lock();
            inner.calls += 1;
            let place = self.place;
            inner.places[place].counted();
            inner.note(place, || format!("{name} (worker {})", self.token));
            let call = inner.calls;
            if let Trouble::Outage { at, of, for_ms } = inner.trouble
                && call >= at
            {
                inner.trouble = Trouble::None;
                inner.goes_out(of, for_ms);
            }
            if let Trouble::Crashes { at, hit } = &mut inner.trouble
                && at.contains(&(call, false))
            {
                *hit += 1;
                inner.kill(self.token);
            }
            if inner.troubled() {
                let luck = match inner.dice.below(1000) {
                    0..15 => {
                        inner.kill(self.token);
                        Luck::Good
                    }
                    15..65 => Luck::Fails,
                    65..95 => Luck::ReplyLost,
                    95..110 => Luck::Late,
                    _ => Luck::Good,
                };
                (call, inner.dice.below(800), luck)
            } else {
                (call, inner.call_ms.unwrap_or(0), Luck::Good)
            }
        };
        self.unless_dying().await;
        if wait_ms > 0 {
            self.world.pause(wait_ms).await;
        }
        (call, luck)
    }

    /// What was begun beside a call may have ended, and the worker with it.
    async fn unless_dying(&self) {
        if self.world.lock().is_dying(self.token) {
            std::future::pending::<()>().await;
        }
    }

    /// Lets time pass, dies if it is time to, stands still if it is so.
    async fn stand(&self, wait_ms: u64) {
        let (dies, frozen_ms) = {
            let mut inner = self.world.lock();
            let frozen = inner.is_frozen(self.token);
            let still_ms = if frozen { inner.dice.below(600_000) } else { 0 };
            (inner.is_dying(self.token), still_ms)
        };
        if dies {
            std::future::pending::<()>().await;
        }
        if wait_ms + frozen_ms > 0 {
            self.world.pause(wait_ms + frozen_ms).await;
            self.world.lock().thaw(self.token, &self.world.limits);
        }
    }

    /// A call ends: the worker may die before it hears of it, or stand still for minutes. It never stands still between
    /// `drive`'s look at the visibility and the call itself: a call that is on its way cannot be recalled, and what comes
    /// of that where it matters is [`Luck::Late`].
    async fn end(&self, call: u32) {
        {
            let mut inner = self.world.lock();
            if let Trouble::Crashes { at, hit } = &mut inner.trouble
                && at.contains(&(call, true))
            {
                *hit += 1;
                inner.kill(self.token);
            } else if inner.troubled() {
                match inner.dice.below(1000) {
                    0..15 => inner.kill(self.token),
                    15..30 => inner.freeze(self.token),
                    _ => {}
                }
            }
        }
        self.stand(0).await;
    }

    fn heard(&self, event: &Event) {
        let mut pending = self.pending.lock().expect("nobody panics here");
        let phase = pending.0;
        pending.1 = Some(Transition::before(phase, &self.work, Some(event)));
    }

    /// The decision on what was heard last is known: the phase is this now.
    fn decided(&self, phase: Option<Phase>) {
        let mut pending = self.pending.lock().expect("nobody panics here");
        let now = phase.unwrap_or(pending.0);
        if let Some(before) = pending.1.take() {
            self.world.lock().transitions.insert(before.after(now));
        }
        pending.0 = now;
    }

    /// How a call fails that was done, or was not.
    fn fails(&self, effect: &Effect, at: u64, done: bool) -> Event {
        let down = Failure::SandboxDown {
            seen: "connection reset".to_owned(),
        };
        if let Effect::Agent(AgentEffect::SendPrompt {
            sending: Sending::First { .. },
            ..
        }) = effect
        {
            return match at % 4 {
                0 if !done => Event::NotSent(down),
                1 if !done => Event::NotSent(Failure::SessionMissing),
                2 if !done => Event::NotSent(wait()),
                _ => Event::Failed(down),
            };
        }
        Event::Failed(match (effect, at % 4) {
            (Effect::Sandbox(SandboxEffect::Create { .. }), 0) => Failure::NonRecoverable {
                advice: "quota".to_owned(),
            },
            (Effect::Sandbox(SandboxEffect::EnsureServer { .. }), 0 | 1) => Failure::ResumeFailed {
                seen: "not healthy".to_owned(),
            },
            (
                Effect::Sandbox(SandboxEffect::Clone { .. })
                | Effect::Agent(AgentEffect::CheckServer { .. })
                | Effect::Sandbox(SandboxEffect::EnsureServer { .. })
                | Effect::Agent(AgentEffect::FindAgentSession { .. })
                | Effect::Agent(AgentEffect::FindPrompt { .. })
                | Effect::Agent(AgentEffect::SendPrompt { .. })
                | Effect::Agent(AgentEffect::EndRun(_))
                | Effect::Agent(AgentEffect::Follow(_)),
                0..3,
            ) => down,
            (
                Effect::Agent(AgentEffect::SendPrompt { .. })
                | Effect::Agent(AgentEffect::FindPrompt { .. }),
                _,
            ) => Failure::SessionMissing,
            (
                Effect::Sandbox(SandboxEffect::Count { .. })
                | Effect::Sandbox(SandboxEffect::Create { .. })
                | Effect::Sandbox(SandboxEffect::Observe { .. })
                | Effect::Sandbox(SandboxEffect::Start { .. })
                | Effect::Sandbox(SandboxEffect::Stop { .. })
                | Effect::Sandbox(SandboxEffect::Delete { .. }),
                1 | 2,
            ) => Failure::Outage {
                after_ms: 0,
                seen: "the provider does not answer".to_owned(),
            },
            _ => wait(),
        })
    }

    async fn done(&self, effect: &Effect) -> Event {
        if let Effect::Agent(AgentEffect::Follow(follow)) = effect {
            return self.follow(follow).await;
        }
        if let Effect::Sandbox(SandboxEffect::Observe { after_ms, .. }) = effect
            && *after_ms > 0
        {
            self.world.pause(*after_ms).await;
        }
        // Who does not get through finds out after a while; who waits for a server waits for it within its bound.
        let cut_ms = {
            let inner = self.world.lock();
            inner.places[self.place].cut_ms(inner.now_ms)
        };
        match effect {
            Effect::Sandbox(SandboxEffect::EnsureServer {
                generation,
                restart,
                within_ms,
                ..
            }) => {
                if *restart {
                    let mut inner = self.world.lock();
                    let now_ms = inner.now_ms;
                    inner.places[self.place].restart(*generation, now_ms);
                }
                self.world.pause(cut_ms.min(*within_ms)).await;
                if cut_ms > *within_ms {
                    return Event::Failed(Failure::ResumeFailed {
                        seen: "not healthy in time".to_owned(),
                    });
                }
            }
            Effect::Agent(AgentEffect::CheckServer { .. })
            | Effect::Agent(AgentEffect::FindAgentSession { .. })
            | Effect::Agent(AgentEffect::FindPrompt { .. })
            | Effect::Agent(AgentEffect::SendPrompt { .. })
            | Effect::Agent(AgentEffect::Abort { .. })
            | Effect::Agent(AgentEffect::EndRun(_)) => {
                self.world.pause(cut_ms.min(REQUEST_MS)).await
            }
            _ => {}
        }
        // A server that hangs holds its caller for as long as that waits.
        if let Effect::Agent(AgentEffect::SendPrompt {
            generation,
            sending: Sending::First { within_ms },
            ..
        }) = effect
            && self.world.lock().places[self.place].is_hanging(*generation)
        {
            self.world.pause(within_ms.unwrap_or(REQUEST_MS)).await;
        }
        let visible_ms = self
            .world
            .lock()
            .visible_until_ms(self.token, &self.world.limits);
        let mut guard = self.world.lock();
        let inner = &mut *guard;
        let (now_ms, troubled) = (inner.now_ms, inner.troubled());
        let tenant = inner.places[self.place].thread.tenant();
        let older_than = match effect {
            Effect::Sandbox(SandboxEffect::Count { older_than }) => *older_than,
            _ => None,
        };
        let own = older_than.map(|generation| inner.made(self.place, generation));
        let listed = (0..inner.places.len())
            .filter(|at| inner.places[*at].thread.tenant() == tenant)
            .flat_map(|at| inner.places[at].sandboxes.keys().map(move |one| (at, *one)));
        let listed = listed.map(|(at, generation)| inner.made(at, generation));
        let counted = match own {
            Some(_) if inner.counts_once => 0,
            Some(own) => listed.filter(|made| *made < own).count(),
            None => listed.count(),
        };
        let (dice, here) = (&mut inner.dice, &mut inner.places[self.place]);
        match effect {
            Effect::Sandbox(SandboxEffect::Count { .. }) => {
                Event::Counted(u32::try_from(counted).unwrap_or(u32::MAX))
            }
            Effect::Recall { turns } => Event::Recalled(here.recalled(turns)),
            Effect::Wake { at_ms } => {
                here.wake_ms = Some(*at_ms);
                Event::Woken
            }
            Effect::Sandbox(SandboxEffect::Create { generation }) => {
                let takes_ms = if troubled && dice.falls(30) {
                    400_000
                } else {
                    dice.below(5_000)
                };
                here.create(*generation, now_ms, takes_ms, troubled && dice.falls(20));
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Observe {
                watch: Some(turn), ..
            })
            | Effect::Sandbox(SandboxEffect::Clone {
                watch: Some(turn), ..
            })
            | Effect::Sandbox(SandboxEffect::EnsureServer {
                watch: Some(turn), ..
            }) if here.marks.cancelled.contains_key(turn) => {
                let by = here.marks.cancelled[turn].clone();
                Event::CancelSeen { by }
            }
            Effect::Sandbox(SandboxEffect::Observe { generation, .. }) => {
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Start { generation }) => {
                let takes_ms = dice.below(5_000);
                here.start(*generation, now_ms, takes_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Stop { generation }) => {
                // As the real one does: what cannot be recalled needs time in which nobody else acts.
                if visible_ms <= now_ms + self.world.limits.lifecycle_call_ms {
                    return Event::Failed(Failure::Wait {
                        after_ms: 0,
                        seen: "too little time is left for a stop".to_owned(),
                    });
                }
                here.land(Late::Stop(*generation), now_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Delete { generation }) => {
                here.land(Late::Delete(*generation), now_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::CheckServer { generation, .. }) => {
                here.check_server(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Clone { generation, .. }) => {
                here.clone_into(*generation, now_ms, troubled && dice.falls(30))
            }
            Effect::Survey { .. } => Event::Surveyed(Offer {
                models: vec!["m".to_owned()],
                agents: vec!["build".to_owned()],
            }),
            Effect::Sandbox(SandboxEffect::EnsureServer { generation, .. }) => {
                here.ensure_server(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::FindAgentSession { generation, .. }) => {
                here.find_session(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::Attach { .. }) => Event::Attached {
                note: String::new(),
                missed: Vec::new(),
                images: Vec::new(),
            },
            Effect::Agent(AgentEffect::SendPrompt {
                generation,
                ids,
                text,
                sending,
                ..
            }) => {
                if let Sending::First { within_ms: Some(_) } = sending {
                    inner.met.insert("sent at once");
                }
                // What the thread was about comes before the person's words.
                let words = text.rsplit("\n\n").next().unwrap_or_default();
                if words.len() < text.len() {
                    inner.met.insert("digest");
                }
                let turn = words.split_whitespace().next().unwrap_or_default();
                here.send_prompt(*generation, (ids, *sending), turn, now_ms, dice, troubled)
            }
            Effect::Agent(AgentEffect::FindPrompt {
                generation,
                message,
                ..
            }) => here.find_prompt(*generation, message, now_ms),
            Effect::Agent(AgentEffect::Abort {
                generation,
                messages,
                ..
            }) => here.abort(*generation, messages, Event::Aborted, now_ms),
            Effect::Agent(AgentEffect::EndRun(run)) => {
                inner.met.insert("run ended");
                here.abort(run.generation, &run.messages, Event::RunEnded, now_ms)
            }
            Effect::Agent(AgentEffect::Decline {
                generation, ask, ..
            }) => here.decline(*generation, ask, now_ms),
            Effect::Agent(AgentEffect::ReadChanges { generation, .. }) => {
                here.read_changes(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::ListArtifacts { generation }) => {
                here.list_artifacts(*generation, now_ms)
            }
            Effect::Chat(ChatEffect::PostArtifact {
                generation,
                turn,
                index,
                file,
            }) => here.post_artifact(*generation, (turn, *index, file), now_ms),
            Effect::Chat(ChatEffect::Post {
                turn,
                kind,
                at,
                post,
            }) => here.post(turn, kind, at.as_ref(), post),
            Effect::Agent(AgentEffect::Follow(_)) => unreachable!("followed above"),
        }
    }

    async fn follow(&self, follow: &bobbin_core::effect::Follow) -> Event {
        loop {
            // Who follows tries a few times before it says that nobody is there.
            let cut_ms = {
                let inner = self.world.lock();
                inner.places[self.place].cut_ms(inner.now_ms)
            };
            let kills = {
                let mut inner = self.world.lock();
                let kills = inner.places[self.place].kills(follow.generation, &follow.message);
                if kills {
                    inner.met.insert("killed");
                    inner.kill(self.token);
                }
                kills
            };
            // It is over with this worker when the call ends.
            if kills {
                return Event::StillRunning;
            }
            if cut_ms > 0 {
                self.world.pause(cut_ms.min(REQUEST_MS)).await;
                return Event::Failed(Failure::SandboxDown {
                    seen: "connection reset".to_owned(),
                });
            }
            {
                let mut guard = self.world.lock();
                let inner = &mut *guard;
                if inner.now_ms + self.skew_ms >= follow.until_ms {
                    return Event::StillRunning;
                }
                let now_ms = inner.now_ms;
                if let Some(event) =
                    inner.places[self.place].follow(follow, now_ms, &mut inner.dice)
                {
                    return event;
                }
            }
            self.stand(LOOK_MS).await;
        }
    }
}

impl ports::World for Worker {
    fn now_ms(&self) -> Ms {
        self.world.lock().now_ms + self.skew_ms
    }

    fn visible_until_ms(&self) -> Ms {
        self.world
            .lock()
            .visible_until_ms(self.token, &self.world.limits)
            + self.skew_ms
    }

    async fn load(&self, _: &ThreadKey, turn: &str) -> Result<Loaded, Failure> {
        let (call, luck) = self.begin("load").await;
        if luck == Luck::Fails || self.world.lock().is_out(Out::Table) {
            return Err(away_for_now(Out::Table));
        }
        let found = {
            let inner = self.world.lock();
            let here = &inner.places[self.place];
            Loaded {
                session: here.session(),
                marks: here.marks.clone(),
                in_ledger: here.ledger.contains_key(turn),
                settings: here.settings.clone(),
            }
        };
        self.end(call).await;
        let phase = found
            .session
            .as_ref()
            .map_or(Phase::Destroyed, |session| session.phase);
        let mut pending = self.pending.lock().expect("nobody panics here");
        // The first read is the delivery; a later one only looks at the marks.
        if pending.1.is_none() {
            *pending = (phase, Some(Transition::before(phase, &self.work, None)));
        }
        Ok(found)
    }

    async fn save(
        &self,
        session: &Session,
        expected: u64,
        entries: &[LedgerEntry],
    ) -> Result<Saved, Failure> {
        let (call, luck) = self.begin("save").await;
        self.decided(Some(session.phase));
        let away = {
            let inner = self.world.lock();
            inner.is_out(Out::Table) || inner.is_out(Out::Writes)
        };
        if luck == Luck::Fails || away {
            return Err(away_for_now(Out::Writes));
        }
        let saved = {
            let mut guard = self.world.lock();
            let inner = &mut *guard;
            let lag_ms = if inner.troubled() {
                inner.dice.below(90_000)
            } else {
                0
            };
            let now_ms = inner.now_ms;
            if lag_ms > 0 {
                inner.met.insert("index lag");
            }
            let here = &mut inner.places[self.place];
            if here.record.as_ref().map_or(0, |stored| stored.version) == expected {
                here.keep(
                    &Session {
                        version: expected + 1,
                        ..session.clone()
                    },
                    entries,
                    now_ms,
                    lag_ms,
                );
                let marks = here.marks.clone();
                inner.note(self.place, || {
                    format!(
                        "  saved {}: {} {:?}",
                        expected + 1,
                        session.phase.word(),
                        session.turn.as_ref().map(|turn| (&turn.id, &turn.stage))
                    )
                });
                Saved::Written(marks)
            } else {
                inner.met.insert("conflict");
                Saved::Conflict
            }
        };
        self.end(call).await;
        if luck == Luck::ReplyLost {
            Err(away_for_now(Out::Writes))
        } else {
            Ok(saved)
        }
    }

    async fn perform(&self, _: &ThreadKey, effect: &Effect) -> Event {
        self.together.lock().expect("nobody panics here").0 += 1;
        self.world.aside().await;
        let is_pair = self.together.lock().expect("nobody panics here").0 > 1;
        let is_beside = is_pair && matches!(effect, Effect::Chat(ChatEffect::Post { .. }));
        if is_pair {
            self.world.lock().met.insert("together");
            if !is_beside && self.world.lock().cards_first {
                self.world.aside().await;
            }
        }
        // What is decided is decided on the work.
        if !is_beside {
            self.decided(None);
        }
        let (call, luck) = self.begin(effect.name()).await;
        let failed = {
            let mut inner = self.world.lock();
            let at = inner.dice.next();
            self.fails(effect, at, luck == Luck::ReplyLost)
        };
        let away = self.out(effect);
        let is_away = away.is_some();
        let event = match (away, luck) {
            (Some(failure), _) => Event::Failed(failure),
            (None, Luck::Good) => self.done(effect).await,
            (None, Luck::Fails) => failed,
            (None, Luck::ReplyLost) => {
                self.world.lock().met.insert("reply lost");
                self.done(effect).await;
                failed
            }
            (None, Luck::Late) => {
                if self.late(effect) {
                    failed
                } else {
                    self.done(effect).await
                }
            }
        };
        if let Event::NotSent(failure) = &event {
            let mut inner = self.world.lock();
            inner.note(self.place, || format!("  not sent: {failure:?}"));
            inner.met.insert("not sent");
        }
        if let Event::Unshown { .. } = &event {
            self.world.lock().places[self.place].withheld();
        }
        if let Event::Failed(failure) = &event {
            let mut inner = self.world.lock();
            inner.note(self.place, || format!("  failed: {failure:?}"));
            if matches!(failure, Failure::Outage { .. }) {
                inner.met.insert("outage");
            }
            let here = &mut inner.places[self.place];
            match effect {
                // What is away comes back: nobody goes without for it.
                _ if is_away => {}
                Effect::Chat(ChatEffect::Post { turn, .. }) => here.refused(turn),
                _ => here.withheld(),
            }
        }
        self.end(call).await;
        if !is_beside {
            self.heard(&event);
        }
        let mut together = self.together.lock().expect("nobody panics here");
        together.1 += 1;
        if together.0 == together.1 {
            *together = (0, 0);
        }
        event
    }
}

impl Worker {
    /// Sends a lifecycle call on its way, to arrive within its bound. False: this effect is none.
    fn late(&self, effect: &Effect) -> bool {
        let mut inner = self.world.lock();
        let limits = &self.world.limits;
        let left_ms = inner
            .visible_until_ms(self.token, limits)
            .saturating_sub(inner.now_ms);
        let after_ms = inner.dice.below(limits.lifecycle_call_ms);
        let call = match effect {
            Effect::Sandbox(SandboxEffect::Create { generation }) => Late::Create(*generation),
            Effect::Sandbox(SandboxEffect::Stop { generation })
                if left_ms > limits.lifecycle_call_ms =>
            {
                Late::Stop(*generation)
            }
            Effect::Sandbox(SandboxEffect::Delete { generation }) => Late::Delete(*generation),
            Effect::Agent(AgentEffect::Abort {
                generation,
                messages,
                ..
            }) => Late::Abort(*generation, messages.clone()),
            Effect::Agent(AgentEffect::EndRun(run)) => {
                Late::Abort(run.generation, run.messages.clone())
            }
            _ => return false,
        };
        let at_ms = inner.now_ms + after_ms;
        let place = self.place;
        inner.later.push((at_ms, place, call));
        true
    }
}
