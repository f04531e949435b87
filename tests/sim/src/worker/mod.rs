//! One worker of the simulator: the `World` that `drive` sees, with trouble in between. `effects` has its effects.

mod effects;

use std::sync::Mutex;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant, ThreadKey, TurnId};
use bobbin_core::protocol::effect::{ChatEffect, Effect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::ports::{
    self, ExpectedVersions, Loaded, Performed, RecordsWrite, Saved,
};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::Work;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::budgets::BudgetWrite;

use super::failing::{Luck, away_for_now, fails, not_there, stands_on};
use super::plan::{Out, Trouble};
use super::queue::Group;
use super::transitions::{Before, Transition};
use super::world::World;
use crate::promises::Fact;

pub struct Worker {
    world: World,
    group: Group,
    /// The thread that it works for: its group's, or the one of the group's sandbox.
    place: usize,
    /// The place of the sandbox and the workspace that this worker knows.
    at: Mutex<(usize, String)>,
    token: u64,
    /// The error of this function's clock.
    skew_ms: u64,
    work: Work,
    /// The phase that this worker knows, and the decision under way.
    pending: Mutex<(Phase, Option<Before>)>,
    /// Somebody else was faster: the decision is made again on the next read.
    overtaken: Mutex<Option<Before>>,
    /// Effects that began together, and how many of them have ended.
    together: Mutex<(u32, u32)>,
}

/// Most attempts of a contended write.
const CONTENTIONS_MAX: u64 = 16;

impl Worker {
    /// How an effect fails while a service is down.
    fn out(&self, effect: &Effect) -> Option<Failure> {
        let inner = self.world.lock();
        let is_out = |what: &Out| {
            inner.is_out(*what) && !(*what == Out::Account && inner.accounts_uncompared)
        };
        let away = stands_on(effect).iter().find(|what| is_out(what))?;
        Some(match away {
            Out::Token if inner.gives_tokens_up => {
                Failure::NonRecoverable { advice: "the token is refused".to_owned() }
            }
            _ => away_for_now(*away),
        })
    }

    pub fn new(world: World, group: Group, token: u64, skew_ms: u64, work: &Work) -> Self {
        Self {
            world,
            group,
            place: group.place,
            at: Mutex::new((group.place, String::new())),
            token,
            skew_ms,
            work: work.clone(),
            pending: Mutex::new((Phase::Destroyed, None)),
            overtaken: Mutex::default(),
            together: Mutex::default(),
        }
    }

    /// A call begins: it takes a moment, and the worker may be crashing. Returns its number and its luck.
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

    fn meets_others(&self, tenant: &Tenant, writes: &[BudgetWrite], since_ms: Ms) -> bool {
        self.world.lock().sums_meet(tenant, writes, since_ms)
    }

    /// Work beside a call may have crashed the worker.
    async fn unless_dying(&self) {
        if self.world.lock().is_dying(self.token) {
            std::future::pending::<()>().await;
        }
    }

    /// Time passes; crashes or freezes if it is time to.
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

    /// A call ends: the worker may crash before it hears the result, or freeze for minutes. It never freezes between
    /// `drive`'s check of the visibility and the call itself: a sent call cannot be recalled, and [`Luck::Late`] covers
    /// its effects.
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

    /// The decision on the last event is known: this is the phase now.
    fn decided(&self, phase: Option<Phase>) {
        let mut pending = self.pending.lock().expect("nobody panics here");
        let now = phase.unwrap_or(pending.0);
        if let Some(before) = pending.1.take() {
            self.world.lock().transitions.insert(before.after(now));
        }
        pending.0 = now;
    }
}

impl Worker {
    /// It works where its record says.
    fn goes_to(&self, session: Option<&Session>) {
        let Some(session) = session else { return };
        let key = session.sandbox_at_hand();
        let at = self.world.lock().place_of(key.thread());
        let workspace = session.workspace().unwrap_or_default();
        let mut here = self.at.lock().expect("nobody panics here");
        *here = (at, workspace.path().to_owned());
    }

    /// The place of the sandbox that it uses.
    pub(super) fn at(&self) -> usize {
        self.at.lock().expect("nobody panics here").0
    }
}

impl ports::World for Worker {
    fn now_ms(&self) -> Ms {
        self.world.lock().now_ms + self.skew_ms
    }

    fn visible_until_ms(&self) -> Ms {
        self.world.lock().visible_until_ms(self.token, &self.world.limits) + self.skew_ms
    }

    async fn load(&self, _: &ThreadKey, turn: &TurnId) -> Result<Loaded, Failure> {
        let (call, luck) = self.begin("load").await;
        if luck == Luck::Fails || self.world.lock().is_out(Out::Table) {
            return Err(away_for_now(Out::Table));
        }
        let found = {
            let mut inner = self.world.lock();
            let session = inner.stored(self.group);
            let here = &inner.places[self.place];
            Loaded {
                session,
                flags: here.flags.clone(),
                in_ledger: here.ledger.contains_key(turn),
                settings: here.settings.clone(),
                parked: here.parked.clone(),
            }
        };
        self.goes_to(found.session.as_ref());
        self.end(call).await;
        let phase =
            found.session.as_ref().map_or(Phase::Destroyed, |session| session.sandbox.phase);
        let mut pending = self.pending.lock().expect("nobody panics here");
        // The first read is the delivery; later ones read the control flags or what others wrote.
        let overtaken = self.overtaken.lock().expect("nobody panics here").take();
        if let Some(before) = overtaken {
            *pending = (phase, Some(before.again(phase)));
        } else if pending.1.is_none() {
            *pending = (phase, Some(Transition::before(phase, &self.work, None)));
        }
        Ok(found)
    }

    async fn save(
        &self,
        RecordsWrite { session, expected, entries, flags, .. }: RecordsWrite<'_>,
    ) -> Result<Saved, Failure> {
        let budgets = &session.observed.writes.budgets;
        let tenant = session.thread.tenant();
        let mut since_ms = self.world.lock().now_ms;
        let (call, luck) = self.begin("save").await;
        // Like the store with a write that keeps meeting others.
        let mut attempt = 1;
        while attempt < CONTENTIONS_MAX && self.meets_others(&tenant, budgets, since_ms) {
            let (wait_ms, call_ms) = {
                let mut inner = self.world.lock();
                inner.met.insert("sums met");
                let by_chance = inner.dice.below(80 * (attempt.max(4) - 3));
                (20 + by_chance, inner.call_ms.unwrap_or(0))
            };
            self.world.pause(wait_ms).await;
            since_ms = self.world.lock().now_ms;
            self.world.pause(call_ms).await;
            attempt += 1;
        }
        let away = {
            let inner = self.world.lock();
            inner.is_out(Out::Table) || inner.is_out(Out::Writes)
        };
        if luck == Luck::Fails || away {
            self.decided(Some(session.sandbox.phase));
            return Err(away_for_now(Out::Writes));
        }
        let saved = {
            let mut guard = self.world.lock();
            let inner = &mut *guard;
            let lag_ms = if inner.troubled() { inner.dice.below(90_000) } else { 0 };
            let now_ms = inner.now_ms;
            if lag_ms > 0 {
                inner.met.insert("index lag");
            }
            let at = inner.place_of(session.sandbox_at_hand().thread());
            let names = &session.observed.writes.names;
            // The write does not concern the sandbox that the thread connects to.
            let versions = ExpectedVersions {
                thread: Some(inner.places[self.place].record.as_ref().map_or(0, |it| it.version)),
                sandbox: Some(inner.places[at].home.record.as_ref().map_or(0, |it| it.version)),
            };
            let same = |expected: Option<u64>, stored| expected.is_none() || expected == stored;
            let stands =
                same(expected.thread, versions.thread) && same(expected.sandbox, versions.sandbox);
            let is_transaction = expected.sandbox.is_some() || !entries.is_empty();
            let meets = is_transaction && inner.troubled() && inner.of_transactions.falls(30);
            let over = inner.over_budget(&tenant, budgets);
            if meets || inner.sums_meet(&tenant, budgets, since_ms) {
                inner.met.insert("contended");
                Saved::Conflict
            } else if let (true, Some((scope, used))) = (stands, over) {
                inner.met.insert("over budget");
                Saved::OverBudget { scope, used }
            } else if stands && inner.names_are_free(names) {
                inner.write_sums(&tenant, budgets);
                inner.write_names(names);
                let mut written = expected.followed_by(session.clone());
                if inner.forgets_untold {
                    written.untold.clear();
                }
                if expected.sandbox.is_some() {
                    let home = &mut inner.places[at].home;
                    if self.is_asked_to_delete() && written.sandbox.phase == Phase::Destroying {
                        home.unwanted.insert(written.sandbox.generation);
                    }
                    home.pause_wanted = written.sandbox.phase == Phase::Pausing
                        && (home.pause_wanted || matches!(self.work, Work::Operate { .. }));
                    home.keep(&written.sandbox, now_ms, lag_ms);
                    home.users.insert(self.place);
                    inner.places[at].keep_operated(&written.sandbox);
                }
                if expected.thread.is_some() {
                    inner.places[self.place].keep(&written, entries, flags, (now_ms, lag_ms));
                }
                let home = &mut inner.places[at].home;
                let live = Fact::Live(home.live());
                home.facts.push(live);
                let flags = inner.places[self.place].flags.clone();
                inner.note(self.place, || {
                    format!(
                        "  saved {:?}: {} {:?}",
                        (written.version, written.sandbox.version),
                        session.sandbox.phase.word(),
                        session.turn.as_ref().map(|turn| (&turn.id, &turn.stage))
                    )
                });
                Saved::Written(flags)
            } else {
                inner.met.insert("conflict");
                Saved::Conflict
            }
        };
        if matches!(saved, Saved::Written(_)) {
            self.decided(Some(session.sandbox.phase));
            self.goes_to(Some(session));
        } else {
            let before = self.pending.lock().expect("nobody panics here").1.take();
            *self.overtaken.lock().expect("nobody panics here") = before;
        }
        self.end(call).await;
        if luck == Luck::ReplyLost { Err(away_for_now(Out::Writes)) } else { Ok(saved) }
    }

    async fn swept(&self, _: &ThreadKey, sweep: &TurnId) -> Result<(), Failure> {
        let (call, luck) = self.begin("swept").await;
        let away = {
            let inner = self.world.lock();
            inner.is_out(Out::Table) || inner.is_out(Out::Writes)
        };
        if luck == Luck::Fails || away {
            return Err(away_for_now(Out::Writes));
        }
        {
            let mut inner = self.world.lock();
            let now_ms = inner.now_ms;
            inner.due(self.group).is_done(sweep, now_ms);
        }
        self.end(call).await;
        match luck {
            Luck::ReplyLost => Err(away_for_now(Out::Writes)),
            _ => Ok(()),
        }
    }

    async fn park(&self, _: &ThreadKey, parked: &Parked) -> Option<ControlFlags> {
        let (call, luck) = self.begin("park").await;
        let away = {
            let inner = self.world.lock();
            inner.is_out(Out::Table) || inner.is_out(Out::Writes)
        };
        if luck == Luck::Fails || away {
            return None;
        }
        let flags = {
            let mut inner = self.world.lock();
            inner.met.insert("parked");
            let token = self.token;
            let here = &mut inner.places[self.place];
            let is_newer = here
                .parked
                .as_ref()
                .is_none_or(|there| there.turn != parked.turn || there.receive < parked.receive);
            if is_newer {
                here.parked = Some(parked.clone());
                here.receipt = token;
            }
            is_newer.then(|| here.flags.clone())
        };
        self.end(call).await;
        flags.filter(|_| luck != Luck::ReplyLost)
    }

    async fn perform(&self, addressed: &Addressed<'_>) -> Performed {
        let effect = addressed.effect;
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
        // Decisions are made on the work.
        if !is_beside {
            self.decided(None);
        }
        let (call, luck) = self.begin(effect.name()).await;
        let failed = {
            let mut inner = self.world.lock();
            let at = inner.dice.next();
            fails(effect, at, luck == Luck::ReplyLost)
        };
        let away = self.out(effect);
        let is_elsewhere = away.is_none() && self.world.lock().is_out(Out::Account);
        let elsewhere = not_there(effect).filter(|_| is_elsewhere);
        let is_away = away.is_some();
        let event = match (away.map(Event::Failed).or(elsewhere), luck) {
            (Some(event), _) => event,
            (None, Luck::Good) => self.done(addressed).await,
            (None, Luck::Fails) => failed,
            (None, Luck::ReplyLost) => {
                self.world.lock().met.insert("reply lost");
                self.done(addressed).await;
                failed
            }
            (None, Luck::Late) => {
                if self.late(addressed) {
                    failed
                } else {
                    self.done(addressed).await
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
                Effect::Chat(
                    ChatEffect::Post { turn, .. } | ChatEffect::PostArtifact { turn, .. },
                ) if matches!(failure, Failure::ThreadClosed { .. }) => here.closed(turn),
                // A service that is down comes back: nobody is refused because of it.
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
        event.into()
    }
}
