//! What provider, agent and chat answer to an effect.

use bobbin_core::changes::Changes;
use bobbin_core::effect::{AgentEffect, ChatEffect, SandboxEffect};
use bobbin_core::event::LeftOut;
use bobbin_core::outside::AgentSeen;
use bobbin_core::run::Answer;
use bobbin_core::run::PromptState;
use bobbin_core::run::RunEnd;
use bobbin_core::runtime_mode::RuntimeMode;

use super::*;

impl System {
    pub(super) fn observed(s: &State, generation: u32) -> Event {
        let sandbox = &s.sandboxes[generation as usize - 1];
        Event::Observed(match (sandbox.copies, sandbox.running) {
            (0, _) => SandboxState::Gone,
            (_, true) => SandboxState::Running,
            (_, false) => SandboxState::Stopped,
        })
    }

    pub(super) fn perform(
        &self,
        s: &mut State,
        worker: &Worker,
        effect: &Effect,
        late: bool,
    ) -> Outcome {
        let at = |generation: u32| generation as usize - 1;
        Outcome::Event(match effect {
            Effect::Sandbox(SandboxEffect::Create { generation, .. }) => {
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
            Effect::Sandbox(
                SandboxEffect::Observe { watch: Some(watched), .. }
                | SandboxEffect::Clone { watch: Some(watched), .. }
                | SandboxEffect::EnsureServer { watch: Some(watched), .. },
            ) if self.marked(s, &watched.turn) => Event::CancelSeen { by: ann() },
            Effect::Sandbox(SandboxEffect::Confirm { .. })
                if self.has(Fault::OneLookIsBelieved) =>
            {
                Event::Observed(SandboxState::Gone)
            }
            Effect::Sandbox(
                SandboxEffect::Observe { generation, .. }
                | SandboxEffect::Confirm { generation, .. },
            ) => Self::observed(s, *generation),
            Effect::Sandbox(SandboxEffect::Start { generation }) => {
                let sandbox = &mut s.sandboxes[at(*generation)];
                sandbox.running = sandbox.copies > 0;
                Self::observed(s, *generation)
            }
            Effect::Sandbox(SandboxEffect::Stop { generation })
            | Effect::Sandbox(SandboxEffect::Delete { generation }) => {
                let call = if matches!(effect, Effect::Sandbox(SandboxEffect::Delete { .. })) {
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
                let call = Late { call, generation: *generation, by_person };
                if late {
                    s.late = Some(call);
                    return Outcome::OnItsWay;
                }
                self.land(s, call);
                Self::observed(s, *generation)
            }
            Effect::Agent(AgentEffect::CheckServer { generation, .. }) => {
                match &s.sandboxes[at(*generation)] {
                    Sandbox { copies: 1.., running: true, server: true, .. } => Event::Healthy,
                    _ => down(),
                }
            }
            Effect::Sandbox(SandboxEffect::Clone { generation, .. }) => {
                match &mut s.sandboxes[at(*generation)] {
                    Sandbox { copies: 0, .. } => Event::Failed(Failure::SandboxGone),
                    sandbox if sandbox.running => {
                        sandbox.cloned = true;
                        Event::Cloned { left_out: LeftOut::default() }
                    }
                    _ => down(),
                }
            }
            Effect::ListOptions { .. } => Event::OptionsListed(AgentOptions {
                models: vec![String::new()],
                agents: vec!["build".to_owned()],
            }),
            // Without its repository nothing may run in it: such a protocol never gets anywhere here.
            Effect::Sandbox(SandboxEffect::EnsureServer { generation, .. }) => {
                match &mut s.sandboxes[at(*generation)] {
                    Sandbox { copies: 0, .. } => Event::Failed(Failure::SandboxGone),
                    sandbox if sandbox.running && sandbox.cloned => {
                        sandbox.server = true;
                        Event::Healthy
                    }
                    _ => down(),
                }
            }
            Effect::Agent(AgentEffect::FindAgentSession { generation, .. }) => {
                match self.reached(s, *generation) {
                    Some(failed) => failed,
                    None => Event::AgentSession { id: format!("ses_{generation}").into() },
                }
            }
            Effect::Sandbox(SandboxEffect::Count { .. }) => Event::Counted(0),
            // One thread alone: no names, no workspaces of its own, nobody to be told. The model of shared ones has them.
            Effect::FindName { .. } => Event::NameFound(None),
            Effect::Chat(ChatEffect::Tell { thread, .. }) => Event::Told { thread: thread.clone() },
            // Its chat can always be written in: histories and outages are about one that cannot.
            Effect::Chat(ChatEffect::TellBeside { .. }) => {
                Event::Failed(Failure::ThreadClosed { seen: "closed".to_owned() })
            }
            Effect::Sandbox(
                SandboxEffect::MakeWorkspace { .. }
                | SandboxEffect::Snapshot { .. }
                | SandboxEffect::DeleteSnapshot { .. },
            ) => down(),
            Effect::Recall { .. } => Event::Recalled(Vec::new()),
            Effect::Wake { .. } => Event::Woken,
            // No agent of these works outside.
            Effect::EndTools { .. } => Event::ToolsEnded,
            Effect::FindAgent { .. } => Event::AgentFound(AgentSeen::default()),
            Effect::Agent(AgentEffect::Attach { .. }) => {
                Event::Attached { note: String::new(), missed: Vec::new(), images: Vec::new() }
            }
            Effect::Agent(AgentEffect::SendPrompt { generation, ids, sending, .. }) => {
                match self.reached(s, *generation) {
                    // The proxy knows of a sandbox that is gone or stopped.
                    Some(Event::Failed(failure)) if matches!(sending, Sending::First { .. }) => {
                        Event::NotSent(failure)
                    }
                    Some(failed) => failed,
                    None => {
                        let again = *sending == Sending::Again;
                        self.send(s, *generation, &ids.message, again)
                    }
                }
            }
            Effect::Agent(AgentEffect::Follow(follow) | AgentEffect::Look(follow)) => {
                match self.reached(s, follow.generation) {
                    Some(failed) => failed,
                    None => self.follow(s, follow),
                }
            }
            Effect::Agent(AgentEffect::FindPrompt { generation, message, .. }) => {
                match self.reached(s, *generation) {
                    Some(failed) => failed,
                    None => Event::PromptFound(self.find(s, *generation, message)),
                }
            }
            Effect::Agent(AgentEffect::Abort { generation, messages, .. }) => {
                match self.reached(s, *generation) {
                    Some(failed) => failed,
                    None => {
                        self.abort(s, *generation, self.turns_of(messages));
                        Event::Aborted
                    }
                }
            }
            Effect::Agent(AgentEffect::EndRun(run)) => match self.reached(s, run.generation) {
                Some(failed) => failed,
                None => {
                    if !self.has(Fault::RunsAreLeft) {
                        self.abort(s, run.generation, self.turns_of(&run.messages));
                    }
                    Event::RunEnded
                }
            },
            Effect::Agent(AgentEffect::Decline { ask, .. }) => Event::Declined { id: ask.clone() },
            // Runs change nothing and leave no files here: histories and crashes are about those.
            Effect::Agent(AgentEffect::ReadChanges { generation, .. }) => {
                match self.reached(s, *generation) {
                    Some(failed) => failed,
                    None => Event::Changed(Changes::default()),
                }
            }
            Effect::Agent(AgentEffect::ListArtifacts { generation }) => {
                match self.reached(s, *generation) {
                    Some(failed) => failed,
                    None => Event::Listed(Vec::new()),
                }
            }
            Effect::Chat(ChatEffect::PostArtifact { .. }) => {
                Event::Unshown { why: "is not there".to_owned() }
            }
            Effect::Chat(ChatEffect::Post { turn, kind, at, post }) => {
                self.post(s, turn, kind, at.as_ref(), post)
            }
        })
    }

    pub(super) fn reached(&self, s: &State, generation: u32) -> Option<Event> {
        match &s.sandboxes[generation as usize - 1] {
            Sandbox { copies: 0, .. } => Some(Event::Failed(Failure::SandboxGone)),
            Sandbox { server: false, .. } => Some(down()),
            _ => None,
        }
    }

    /// Whose prompt it is, and the bit of its minting.
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

    /// What OpenCode does with a prompt, or the daemon.
    pub(super) fn send(&self, s: &mut State, generation: u32, ids: &str, again: bool) -> Event {
        let Some((turn, bit)) = self.minted(ids) else {
            return Event::Failed(Failure::TurnFailed { reason: "unknown ids".to_owned() });
        };
        let record = self.record(s);
        let turns = record.turn.iter().map(|turn| self.turns_of(&turn.messages()));
        let together = turns.fold(0, |mask, turns| mask | turns);
        let known = &mut s.known[usize::from(turn)];
        let generation = u8::try_from(generation).unwrap_or(u8::MAX);
        let has = known.generation == generation && known.ids & bit != 0;
        // The daemon runs a prompt once by its id, and one that was cut once more where that is wanted.
        if has && self.runtime == RuntimeMode::Native && !self.has(Fault::NoPromptId) {
            if again && known.run == Run::Broken {
                known.run = Run::Going;
            }
            return Event::Prompted;
        }
        let is_newest = s.order.last() == Some(&(turn, generation));
        if has && is_newest && !self.has(Fault::NoPromptId) {
            // One that was answered is moved behind its answer, and begins nothing.
            if known.run == Run::Done {
                known.run = Run::Moved;
            }
            // The newest prompt makes the whole run go on.
            for (at, known) in s.known.iter_mut().enumerate() {
                if known.generation == generation
                    && known.run == Run::Broken
                    && together & (1 << at) != 0
                {
                    known.run = Run::Going;
                }
            }
            return Event::Prompted;
        }
        *known = Known { ids: known.ids | bit, generation, run: Run::Going, ..*known };
        s.astray |= self.goes_on_alone(s, &record);
        if s.order.len() < ORDER {
            s.order.push((turn, generation));
        }
        Event::Prompted
    }

    /// Whether a person has stopped this turn.
    pub(super) fn marked(&self, s: &State, turn: &str) -> bool {
        self.driver.turn_of(turn).is_some_and(|turn| s.flags & (1 << turn) != 0)
    }

    pub(super) fn follow(&self, s: &mut State, follow: &bobbin_core::effect::Follow) -> Event {
        let Some(turn) = self.driver.turn_of(&follow.turn) else {
            return down();
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
        // The run is that of all its prompts.
        let further = follow.further.iter().filter_map(|ids| {
            let id = ids.split('-').nth(1)?;
            self.driver.turn_of(id)
        });
        let all: Vec<usize> = std::iter::once(turn).chain(further).map(usize::from).collect();
        let has = |run: Run| all.iter().any(|at| s.known[*at].run == run);
        let end = match () {
            () if has(Run::None) => return Event::Failed(Failure::SessionMissing),
            () if has(Run::Broken) => return down(),
            // Nothing seems to have come of it: who follows has the server restarted.
            () if has(Run::Moved) && self.has(Fault::SentAgainUnseen) => return down(),
            () if has(Run::Aborted) => RunEnd::Aborted,
            () => RunEnd::Completed,
        };
        for at in all {
            if s.known[at].run == Run::Going {
                s.known[at].run = Run::Done;
            }
        }
        Event::Finished(Answer {
            end,
            text: "a".into(),
            usage: Usage::default(),
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    pub(super) fn post(
        &self,
        s: &mut State,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Event {
        let posted =
            Event::Posted(PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") });
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
            PostKind::Notice | PostKind::Unshown | PostKind::Diff => &mut known.notice,
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
}

/// Whether the post stands already: calling at an end is the answer's, or the line's.
const fn stands(known: &Known, kind: &PostKind) -> bool {
    match kind {
        PostKind::Call => known.call > 0,
        _ => known.chunk > 0,
    }
}

fn ann() -> bobbin_core::person::Person {
    bobbin_core::person::Person { id: "ann".into(), name: "ann".into() }
}
