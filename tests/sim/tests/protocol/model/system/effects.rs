//! The answers of provider, agent and chat to an effect.

use bobbin_core::base::ids::{AgentSessionId, TurnId};
use bobbin_core::base::person::Person;
use bobbin_core::protocol::effect::{Effect, Follow, SandboxEffect, Watched};
use bobbin_core::protocol::event::NotCloned;
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::carried::LeftOut;
use bobbin_core::records::run::{PromptState, RunAnswer, RunEnd};
use bobbin_core::records::session::StrayRun;
use bobbin_sim::services::{Missed, Sent, Services, Serving, perform, silent};

use super::*;

/// What one effect of a worker can use.
struct SystemEffectContext<'a> {
    system: &'a System,
    s: &'a mut State,
    lapsed: bool,
    by_person: bool,
}

impl SystemEffectContext<'_> {
    fn sandbox(&mut self, generation: u32) -> &mut Sandbox {
        &mut self.s.sandboxes[generation as usize - 1]
    }

    fn land(&mut self, call: Call, generation: u32) {
        if self.sandbox(generation).copies > 0 {
            let by_person = self.by_person;
            self.system.land(self.s, Late { call, generation, by_person });
        }
    }
}

impl Services for SystemEffectContext<'_> {
    fn stands(&mut self, generation: u32) -> SandboxState {
        System::stands(self.s, generation)
    }

    fn confirmed(&mut self, generation: u32) -> SandboxState {
        if self.system.has(Fault::OneLookIsBelieved) {
            return SandboxState::Gone;
        }
        self.stands(generation)
    }

    fn cancelled_by(&mut self, watched: &Watched) -> Option<Person> {
        self.system.marked(self.s, &watched.turn).then(ann)
    }

    fn create(&mut self, generation: u32) {
        self.system.create(self.s, generation);
    }

    fn start(&mut self, generation: u32) {
        let sandbox = self.sandbox(generation);
        sandbox.running = sandbox.copies > 0;
    }

    fn may_stop(&mut self, generation: u32) -> bool {
        !self.lapsed || self.sandbox(generation).copies == 0
    }

    fn stop(&mut self, generation: u32) {
        self.land(Call::Stop, generation);
    }

    fn delete(&mut self, generation: u32) {
        self.land(Call::Delete, generation);
    }

    fn clone_into(&mut self, generation: u32, _: &str) -> Result<LeftOut, NotCloned> {
        self.sandbox(generation).cloned = true;
        Ok(LeftOut::default())
    }

    /// Without its repository nothing may run in it: a protocol that tries gets nowhere here.
    fn serve(&mut self, generation: u32, _: bool) -> Serving {
        let sandbox = self.sandbox(generation);
        sandbox.server |= sandbox.cloned;
        if sandbox.cloned { Serving::Healthy } else { Serving::Down }
    }

    fn reached(&mut self, generation: u32) -> Result<(), Failure> {
        match self.sandbox(generation) {
            Sandbox { copies: 0, .. } => Err(Failure::SandboxGone),
            Sandbox { server: false, .. } => Err(silent()),
            Sandbox { .. } => Ok(()),
        }
    }

    fn agent_session(&mut self, generation: u32, _: Ms) -> Result<AgentSessionId, Failure> {
        Ok(format!("ses_{generation}").into())
    }

    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed> {
        self.system.send(self.s, sent.generation, &sent.ids.message, !sent.is_first())
    }

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure> {
        Ok(self.system.find(self.s, generation, message))
    }

    fn follow(&mut self, generation: u32, follow: &Follow, _: bool) -> Event {
        match self.reached(generation) {
            Ok(()) => self.system.follow(self.s, follow),
            Err(failure) => Event::Failed(failure),
        }
    }

    fn abort(&mut self, generation: u32, messages: &[String]) {
        self.system.abort(self.s, generation, self.system.turns_of(messages));
    }

    fn end_run(&mut self, run: &StrayRun) {
        if !self.system.has(Fault::RunsAreLeft) {
            self.abort(run.generation, &run.messages);
        }
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        Ok(self.system.post(self.s, turn, kind, at, post))
    }
}

impl System {
    pub(super) fn stands(s: &State, generation: u32) -> SandboxState {
        let sandbox = &s.sandboxes[generation as usize - 1];
        match (sandbox.copies, sandbox.running) {
            (0, _) => SandboxState::Gone,
            (_, true) => SandboxState::Running,
            (_, false) => SandboxState::Stopped,
        }
    }

    pub(super) fn perform(
        &self,
        s: &mut State,
        worker: &Worker,
        effect: &Addressed<'_>,
        late: bool,
    ) -> Outcome {
        let by_person =
            matches!(worker.item, Item::Message(at) if self.kinds[usize::from(at)] == Kind::Reset);
        if late && let Some((call, generation)) = Self::takes_its_time(s, worker, effect) {
            let by_person = by_person && call != Call::Create;
            s.late = Some(Late { call, generation, by_person });
            return Outcome::OnItsWay;
        }
        let mut here = SystemEffectContext { system: self, s, lapsed: worker.lapsed, by_person };
        Outcome::Event(perform(&mut here, effect))
    }

    /// The call that the provider may carry out late.
    fn takes_its_time(
        s: &State,
        worker: &Worker,
        addressed: &Addressed<'_>,
    ) -> Option<(Call, u32)> {
        let there = |generation: u32| s.sandboxes[generation as usize - 1].copies > 0;
        let generation = addressed.at.generation;
        match addressed.effect {
            Effect::Sandbox(SandboxEffect::Create { .. }) => Some((Call::Create, generation)),
            Effect::Sandbox(SandboxEffect::Stop) => {
                (there(generation) && !worker.lapsed).then_some((Call::Stop, generation))
            }
            Effect::Sandbox(SandboxEffect::Delete) => {
                there(generation).then_some((Call::Delete, generation))
            }
            _ => None,
        }
    }

    /// The prompt's message, and the bit of its minting.
    fn minted(&self, ids: &str) -> Option<(u8, u8)> {
        let mut parts = ids.split('-').skip(1);
        let turn = self.driver.turn_of(parts.next()?)?;
        let mint = parts.next()?.parse::<u8>().ok()?;
        Some((turn, 1 << mint))
    }

    fn find(&self, s: &State, generation: u32, ids: &str) -> PromptState {
        let Some((turn, bit)) = self.minted(ids) else {
            return PromptState::Absent;
        };
        let known = &s.known[usize::from(turn)];
        let has = u32::from(known.generation) == generation && known.ids & bit != 0;
        match known.run {
            _ if !has || self.has(Fault::SentAgainUnseen) || self.has(Fault::NoPromptId) => {
                PromptState::Absent
            }
            Run::Going | Run::Done | Run::Moved | Run::Aborted => PromptState::Taken,
            Run::None | Run::Broken => PromptState::Idle,
        }
    }

    /// How OpenCode or the daemon takes a prompt.
    fn send(&self, s: &mut State, generation: u32, ids: &str, again: bool) -> Result<(), Missed> {
        let Some((turn, bit)) = self.minted(ids) else {
            let reason = "unknown ids".to_owned();
            return Err(Missed::Failed(Failure::TurnFailed { reason }));
        };
        let record = self.record(s);
        let turns = record.turn.iter().map(|turn| self.turns_of(&turn.messages()));
        let together = turns.fold(0, |mask, turns| mask | turns);
        let known = &mut s.known[usize::from(turn)];
        let generation = u8::try_from(generation).unwrap_or(u8::MAX);
        let has = known.generation == generation && known.ids & bit != 0;
        // The daemon runs a prompt once by its id, and a cut one again on request.
        if has && self.runtime == RuntimeMode::Native && !self.has(Fault::NoPromptId) {
            if again && known.run == Run::Broken {
                known.run = Run::Going;
            }
            return Ok(());
        }
        let is_newest = s.order.last() == Some(&(turn, generation));
        if has && is_newest && !self.has(Fault::NoPromptId) {
            // An answered prompt moves behind its answer, and nothing begins.
            if known.run == Run::Done {
                known.run = Run::Moved;
            }
            // The newest prompt continues the whole run.
            for (at, known) in s.known.iter_mut().enumerate() {
                if known.generation == generation
                    && known.run == Run::Broken
                    && together & (1 << at) != 0
                {
                    known.run = Run::Going;
                }
            }
            return Ok(());
        }
        *known = Known { ids: known.ids | bit, generation, run: Run::Going, ..*known };
        s.astray |= self.goes_on_alone(s, &record);
        if s.order.len() < ORDER {
            s.order.push((turn, generation));
        }
        Ok(())
    }

    /// Whether a person has stopped this turn.
    pub(super) fn marked(&self, s: &State, turn: &str) -> bool {
        self.driver.turn_of(turn).is_some_and(|turn| s.flags & (1 << turn) != 0)
    }

    fn follow(&self, s: &mut State, follow: &Follow) -> Event {
        let Some(turn) = self.driver.turn_of(&follow.turn) else {
            return Event::Failed(silent());
        };
        if s.flags & (1 << turn) != 0 && !follow.cancel_known {
            return Event::CancelSeen { by: ann() };
        }
        if let Some(known) = &follow.steers {
            let wanted = (0..s.accepted).find(|message| {
                let id = self.driver.id_of(*message);
                let is_new = follow.turn != id && !known.iter().any(|known| known == id);
                s.now & (1 << message) != 0 && is_new
            });
            if let Some(message) = wanted {
                return Event::SteerSeen {
                    turn: self.driver.id_of(message).into(),
                    queued: self.driver.queued(message),
                    by: ann(),
                };
            }
        }
        // The run belongs to all its prompts.
        let further = follow.further.iter().filter_map(|ids| {
            let id = ids.split('-').nth(1)?;
            self.driver.turn_of(id)
        });
        let all: Vec<usize> = std::iter::once(turn).chain(further).map(usize::from).collect();
        let has = |run: Run| all.iter().any(|at| s.known[*at].run == run);
        let end = match () {
            () if has(Run::None) => return Event::Failed(Failure::SessionMissing),
            () if has(Run::Broken) => return Event::Failed(silent()),
            // It seems to have had no effect: the follower has the server restarted.
            () if has(Run::Moved) && self.has(Fault::SentAgainUnseen) => {
                return Event::Failed(silent());
            }
            () if has(Run::Aborted) => RunEnd::Aborted,
            () => RunEnd::Completed,
        };
        for at in all {
            if s.known[at].run == Run::Going {
                s.known[at].run = Run::Done;
            }
        }
        Event::Finished(RunAnswer {
            end,
            text: "a".into(),
            usage: Usage::default(),
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    fn post(
        &self,
        s: &mut State,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> PostRef {
        let posted = PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") };
        let Some(turn) = self.driver.turn_of(turn) else {
            return posted;
        };
        let known = &mut s.known[usize::from(turn)];
        if at.is_none() && !post.calls().is_empty() && !stands(known, kind) {
            known.called = (known.called + 1).min(3);
        }
        let post = post.bare();
        let times = match kind {
            PostKind::Card => &mut known.card,
            PostKind::Rolled(_) => &mut known.rolled,
            PostKind::Call => &mut known.call,
            PostKind::Chunk(_) | PostKind::Ask(_) | PostKind::Artifact(_) => &mut known.chunk,
            PostKind::Notice
            | PostKind::Told(_)
            | PostKind::Unshown
            | PostKind::Diff
            | PostKind::Review
            | PostKind::PullReview
            | PostKind::PullReviewText
            | PostKind::PullRequest
            | PostKind::PullRequestEnd
            | PostKind::PullRequestTask => &mut known.notice,
        };
        let stands = at.is_none() && *times > 0 && !self.has(Fault::NoPostId);
        if at.is_none() && !stands {
            *times = (*times + 1).min(2);
        }
        // A post with an existing key changes nothing; an edit does.
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
}

/// Whether the post exists: the answer or the line mentions people at an end.
const fn stands(known: &Known, kind: &PostKind) -> bool {
    match kind {
        PostKind::Call => known.call > 0,
        _ => known.chunk > 0,
    }
}

fn ann() -> bobbin_core::base::person::Person {
    bobbin_core::base::person::Person { id: "ann".into(), name: "ann".into() }
}
