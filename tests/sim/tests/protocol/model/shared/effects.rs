//! The answers of provider, agent and chat to an effect.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{
    AgentSessionId, Ms, PostRef, SandboxKey, SandboxName, ThreadKey, TurnId,
};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::effect::{Follow, Watched};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::carried::LeftOut;
use bobbin_core::records::control::Operation;
use bobbin_core::records::parked::Seen;
use bobbin_core::records::run::{PromptState, RunAnswer, RunEnd};
use bobbin_core::records::sandbox::{Phase, SandboxState};
use bobbin_core::records::session::Session;
use bobbin_core::records::usage::Usage;
use bobbin_sim::services::{Missed, Sent, Services, Serving, perform, silent};

use super::super::super::promises::Ending;
use super::super::driver::Item;
use super::{Kind, Known, Provided, Run, Shared, State, THREADS, Worker, thread};

/// What one effect of a worker can use.
struct SharedEffectContext<'a> {
    shared: &'a Shared,
    s: &'a mut State,
    worker: &'a Worker,
    /// The place of its sandbox, and whether it uses the common workspace.
    home: usize,
    common: bool,
}

impl SharedEffectContext<'_> {
    fn one(&mut self, generation: u32) -> &mut Provided {
        &mut self.s.provided[self.home][generation as usize - 1]
    }
}

impl Services for SharedEffectContext<'_> {
    fn stands(&mut self, generation: u32) -> SandboxState {
        let one = self.one(generation);
        match (one.there, one.running) {
            (false, _) => SandboxState::Gone,
            (true, true) => SandboxState::Running,
            (true, false) => SandboxState::Stopped,
        }
    }

    /// Nobody presses Stop here.
    fn cancelled_by(&mut self, _: &Watched) -> Option<Person> {
        None
    }

    fn create(&mut self, generation: u32) {
        let one = self.one(generation);
        if !one.there {
            (one.there, one.running) = (true, true);
        }
    }

    fn start(&mut self, generation: u32) {
        let one = self.one(generation);
        one.running = one.there;
    }

    fn may_stop(&mut self, _: u32) -> bool {
        !self.worker.lapsed
    }

    fn stop(&mut self, generation: u32) {
        let here = (self.home, generation);
        self.shared.hit(self.s, self.worker, here);
        let one = self.one(generation);
        (one.running, one.server) = (false, false);
        breaks(self.s, here, Run::Broken);
    }

    fn delete(&mut self, generation: u32) {
        let here = (self.home, generation);
        self.shared.hit(self.s, self.worker, here);
        *self.one(generation) = Provided::default();
        breaks(self.s, here, Run::None);
    }

    fn clone_into(&mut self, _: u32, _: &str) -> Result<LeftOut, NotCloned> {
        Ok(LeftOut::default())
    }

    fn serve(&mut self, generation: u32, _: bool) -> Serving {
        self.one(generation).server = true;
        Serving::Healthy
    }

    fn workspace(&mut self, generation: u32) -> Result<Event, Failure> {
        self.reached(generation)?;
        Ok(Event::WorkspaceReady { directory: "/workspaces/1".to_owned(), branch: None })
    }

    fn reached(&mut self, generation: u32) -> Result<(), Failure> {
        match self.one(generation) {
            Provided { there: false, .. } => Err(Failure::SandboxGone),
            Provided { server: false, .. } => Err(silent()),
            Provided { .. } => Ok(()),
        }
    }

    fn agent_session(&mut self, generation: u32, _: Ms) -> Result<AgentSessionId, Failure> {
        Ok(format!("ses_{}_{generation}_{}", self.home, self.worker.group).into())
    }

    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed> {
        let here = (self.home, sent.generation);
        self.shared.send(self.s, here, self.common, &sent.ids.message)
    }

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure> {
        Ok(self.shared.find(self.s, (self.home, generation), message))
    }

    fn follow(&mut self, generation: u32, follow: &Follow, _: bool) -> Event {
        let here = (self.home, generation);
        match self.reached(generation) {
            Ok(()) => self.shared.follow(self.s, here, follow),
            Err(failure) => Event::Failed(failure),
        }
    }

    fn abort(&mut self, generation: u32, messages: &[String]) {
        self.shared.abort(self.s, (self.home, generation), messages);
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        Ok(self.shared.post(self.s, (turn, kind), at, post))
    }

    fn tell(&mut self, told: &ThreadKey, _: &str) {
        let at = (0..THREADS).find(|at| thread(*at) == *told);
        self.s.told |= at.map_or(0, |at| 1 << at);
    }

    fn named(&mut self, _: &SandboxName) -> Option<SandboxKey> {
        Some(thread(0).sandbox())
    }
}

impl Shared {
    pub(super) fn perform(
        &self,
        s: &mut State,
        worker: &Worker,
        known: Option<&Session>,
        effect: &Addressed<'_>,
    ) -> Event {
        let home = known.map_or(0, Self::home_of);
        let common = known.is_none_or(Session::works_in_common);
        perform(&mut SharedEffectContext { shared: self, s, worker, home, common }, effect)
    }

    /// Whether a stop or delete that nobody requested hits a turn: one at work by the sandbox's record, or one whose
    /// run continues.
    fn hit(&self, s: &mut State, worker: &Worker, (home, generation): (usize, u32)) {
        let by_person = match worker.item {
            Item::Message(at) | Item::Aged(at) => {
                matches!(self.kinds.get(usize::from(at)), Some(Kind::Operate(Operation::Destroy)))
            }
            Item::DeadLetter(_) | Item::Sweep => false,
        };
        let sandbox = &self.home(s, home).sandbox;
        let is_hit = (0..THREADS).any(|at| {
            let record = self.record(s, at);
            let Some(turn) = record.turn.as_ref().filter(|turn| !turn.stage.is_ending()) else {
                return false;
            };
            let message = self.driver.turn_of(&turn.id).map_or(0, usize::from);
            let known = &s.known[message];
            let runs = known.run == Run::Going
                && (usize::from(known.home), u32::from(known.generation)) == (home, generation);
            // Its own turn deletes a half-deleted sandbox to create it again.
            let is_own = worker.group == at
                && worker.item == Item::Message(u8::try_from(message).unwrap_or(0));
            let in_use = sandbox.is_in_use_by(&thread(at), &turn.id) && !is_own;
            // A turn that waits for its stop or deletion has nothing at work in it.
            let is_wanted =
                matches!(sandbox.phase, Phase::Creating | Phase::Active | Phase::Resuming);
            runs || sandbox.generation == generation && in_use && is_wanted
        });
        if is_hit && !by_person {
            s.hits = 1;
        }
    }

    /// The prompt's message, and the bit of its minting.
    fn minted(&self, ids: &str) -> Option<(u8, u8)> {
        let mut parts = ids.split('-').skip(1);
        let turn = self.driver.turn_of(parts.next()?)?;
        let mint = parts.next()?.parse::<u8>().ok()?;
        Some((turn, 1 << mint))
    }

    fn send(
        &self,
        s: &mut State,
        here: (usize, u32),
        common: bool,
        ids: &str,
    ) -> Result<(), Missed> {
        let Some((message, bit)) = self.minted(ids) else {
            return Err(Missed::Failed(silent()));
        };
        let known = &mut s.known[usize::from(message)];
        if is_at(known, here) && known.ids & bit != 0 {
            if known.run == Run::Broken {
                known.run = Run::Going;
            }
        } else {
            *known = Known {
                run: Run::Going,
                home: u8::try_from(here.0).unwrap_or(0),
                generation: u8::try_from(here.1).unwrap_or(0),
                common,
                ids: known.ids | bit,
                ..*known
            };
            s.order.push((message, known.generation));
        }
        // The turns at work in the same place.
        let at_work = |other: &usize| {
            let one = &s.known[*other];
            let Some(Kind::Prompt(at)) = self.kinds.get(*other) else {
                return false;
            };
            let record = self.record(s, *at);
            let id = self.driver.id_of(u8::try_from(*other).unwrap_or(0));
            is_at(one, here)
                && (one.common && common || *other == usize::from(message))
                && one.run == Run::Going
                && !record.ended.iter().any(|ended| ended.id == id)
        };
        s.crowded |= (0..self.kinds.len()).filter(at_work).count() > 1;
        Ok(())
    }

    fn find(&self, s: &State, here: (usize, u32), ids: &str) -> PromptState {
        let Some((message, bit)) = self.minted(ids) else {
            return PromptState::Absent;
        };
        let known = &s.known[usize::from(message)];
        match known.run {
            _ if !is_at(known, here) || known.ids & bit == 0 => PromptState::Absent,
            Run::Going | Run::Done | Run::Aborted => PromptState::Taken,
            Run::None | Run::Broken => PromptState::Idle,
        }
    }

    fn follow(&self, s: &mut State, here: (usize, u32), follow: &Follow) -> Event {
        let Some(message) = self.driver.turn_of(&follow.turn) else {
            return Event::Failed(silent());
        };
        let known = &mut s.known[usize::from(message)];
        let goes_on = self.is_capped
            && known.run == Run::Going
            && is_at(known, here)
            && known.goes_on(follow.card.budget);
        let end = match known.run {
            _ if !is_at(known, here) => return Event::Failed(Failure::SessionMissing),
            Run::None => return Event::Failed(Failure::SessionMissing),
            Run::Broken => return Event::Failed(silent()),
            Run::Aborted => RunEnd::Aborted,
            Run::Going if goes_on => {
                return Event::StillRunning(Seen { spent: known.spent(), ..Seen::default() });
            }
            Run::Going | Run::Done => {
                known.run = Run::Done;
                RunEnd::Completed
            }
        };
        Event::Finished(RunAnswer {
            end,
            text: "a".into(),
            usage: Usage { cost_micro_usd: known.spent().unwrap_or_default(), ..Usage::default() },
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    fn abort(&self, s: &mut State, here: (usize, u32), ids: &[String]) {
        for (message, _) in ids.iter().filter_map(|ids| self.minted(ids)) {
            let known = &mut s.known[usize::from(message)];
            if is_at(known, here) && known.run == Run::Going {
                known.run = Run::Aborted;
            }
        }
    }

    fn post(
        &self,
        s: &mut State,
        (turn, kind): (&str, &PostKind),
        at: Option<&PostRef>,
        post: &Post,
    ) -> PostRef {
        let posted = PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") };
        let Some(message) = self.driver.turn_of(turn) else {
            return posted;
        };
        let known = &mut s.known[usize::from(message)];
        let times = match kind {
            PostKind::Card => &mut known.card,
            PostKind::Chunk(_) => &mut known.chunk,
            _ => &mut known.notice,
        };
        let stands = at.is_none() && *times > 0;
        if at.is_none() {
            *times = 1;
        }
        // A post with an existing key changes nothing; an edit does.
        if let Post::Card(card) = post.bare()
            && !stands
        {
            known.told = match &card.state {
                CardState::Ended { outcome, .. } => Some(Ending::from(outcome)),
                _ => None,
            };
        }
        posted
    }
}

fn is_at(known: &Known, (home, generation): (usize, u32)) -> bool {
    (usize::from(known.home), u32::from(known.generation)) == (home, generation)
}

/// A server or its sandbox is gone, and with it what it knew about prompts.
fn breaks(s: &mut State, here: (usize, u32), to: Run) {
    for known in s.known.iter_mut().filter(|known| is_at(known, here)) {
        if known.run == Run::Going || to == Run::None {
            known.run = to;
        }
        if to == Run::None {
            (known.ids, known.generation) = (0, 0);
        }
    }
}
