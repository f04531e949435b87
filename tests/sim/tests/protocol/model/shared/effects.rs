//! What provider, agent and chat answer to an effect.

use bobbin_core::card::{CardState, Post};
use bobbin_core::changes::Changes;
use bobbin_core::effect::{AgentEffect, ChatEffect, Effect, SandboxEffect, Sending};
use bobbin_core::event::{Event, LeftOut};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PostKind, PostRef};
use bobbin_core::message::Operation;
use bobbin_core::outside::AgentSeen;
use bobbin_core::run::{Answer, PromptState, RunEnd};
use bobbin_core::sandbox::{Phase, SandboxState};
use bobbin_core::session::Session;
use bobbin_core::settings::AgentOptions;
use bobbin_core::usage::Usage;

use super::super::super::promises::Ending;
use super::super::driver::Item;
use super::{Kind, Known, Provided, Run, Shared, State, THREADS, Worker, thread};

fn down() -> Event {
    Event::Failed(Failure::SandboxDown { seen: "no answer".to_owned() })
}

fn observed(s: &State, (home, generation): (usize, u32)) -> Event {
    let one = &s.provided[home][generation as usize - 1];
    Event::Observed(match (one.there, one.running) {
        (false, _) => SandboxState::Gone,
        (true, true) => SandboxState::Running,
        (true, false) => SandboxState::Stopped,
    })
}

/// Why the agent there cannot be reached, if so.
fn reached(s: &State, (home, generation): (usize, u32)) -> Option<Event> {
    match &s.provided[home][generation as usize - 1] {
        Provided { there: false, .. } => Some(Event::Failed(Failure::SandboxGone)),
        Provided { server: false, .. } => Some(down()),
        Provided { .. } => None,
    }
}

impl Shared {
    pub(super) fn perform(
        &self,
        s: &mut State,
        worker: &Worker,
        known: Option<&Session>,
        effect: &Effect,
    ) -> Event {
        let home = known.map_or(0, Self::home_of);
        match effect {
            Effect::Sandbox(effect) => self.on_sandbox(s, worker, home, effect),
            Effect::Agent(effect) => {
                let common = known.is_none_or(Session::works_in_common);
                self.on_agent(s, worker, (home, common), effect)
            }
            Effect::ListOptions { .. } => Event::OptionsListed(AgentOptions {
                models: vec![String::new()],
                agents: vec!["build".to_owned()],
            }),
            Effect::Recall { .. } => Event::Recalled(Vec::new()),
            Effect::Wake { .. } => Event::Woken,
            // No agent of these works outside.
            Effect::EndTools { .. } => Event::ToolsEnded,
            Effect::FindAgent { .. } => Event::AgentFound(AgentSeen::default()),
            Effect::FindName { .. } => Event::NameFound(Some(thread(0).sandbox())),
            Effect::Chat(ChatEffect::Tell { thread: told, .. }) => {
                let at = (0..THREADS).find(|at| thread(*at) == *told);
                s.told |= at.map_or(0, |at| 1 << at);
                Event::Told { thread: told.clone() }
            }
            // Their chat can always be written in.
            Effect::Chat(ChatEffect::TellBeside { .. }) => down(),
            Effect::Chat(ChatEffect::PostArtifact { .. }) => {
                Event::Unshown { why: "is not there".to_owned() }
            }
            Effect::Chat(ChatEffect::Post { turn, kind, at, post }) => {
                self.post(s, (turn, kind), at.as_ref(), post)
            }
        }
    }

    fn on_sandbox(
        &self,
        s: &mut State,
        worker: &Worker,
        home: usize,
        effect: &SandboxEffect,
    ) -> Event {
        let at = |generation: u32| generation as usize - 1;
        match effect {
            SandboxEffect::Count { .. } => Event::Counted(0),
            SandboxEffect::Create { generation, .. } => {
                let one = &mut s.provided[home][at(*generation)];
                if !one.there {
                    (one.there, one.running) = (true, true);
                }
                observed(s, (home, *generation))
            }
            SandboxEffect::Observe { generation, .. }
            | SandboxEffect::Confirm { generation, .. } => observed(s, (home, *generation)),
            SandboxEffect::Start { generation } => {
                let one = &mut s.provided[home][at(*generation)];
                one.running = one.there;
                observed(s, (home, *generation))
            }
            SandboxEffect::Stop { generation } => {
                if worker.lapsed {
                    return Event::Failed(Failure::Wait {
                        after_ms: 0,
                        seen: "too little time is left".to_owned(),
                    });
                }
                self.hit(s, worker, (home, *generation));
                let one = &mut s.provided[home][at(*generation)];
                (one.running, one.server) = (false, false);
                breaks(s, (home, *generation), Run::Broken);
                observed(s, (home, *generation))
            }
            SandboxEffect::Delete { generation } => {
                self.hit(s, worker, (home, *generation));
                s.provided[home][at(*generation)] = Provided::default();
                breaks(s, (home, *generation), Run::None);
                observed(s, (home, *generation))
            }
            SandboxEffect::Clone { generation, .. } => match s.provided[home][at(*generation)] {
                Provided { there: false, .. } => Event::Failed(Failure::SandboxGone),
                Provided { running: true, .. } => Event::Cloned { left_out: LeftOut::default() },
                Provided { .. } => down(),
            },
            SandboxEffect::EnsureServer { generation, .. } => {
                match &mut s.provided[home][at(*generation)] {
                    Provided { there: false, .. } => Event::Failed(Failure::SandboxGone),
                    one if one.running => {
                        one.server = true;
                        Event::Healthy
                    }
                    _ => down(),
                }
            }
            SandboxEffect::MakeWorkspace { generation, .. } => reached(s, (home, *generation))
                .unwrap_or(Event::WorkspaceReady {
                    directory: "/workspaces/1".to_owned(),
                    branch: None,
                }),
            SandboxEffect::Snapshot { .. } | SandboxEffect::DeleteSnapshot { .. } => down(),
        }
    }

    /// Whether a stop or delete that nobody asked for arrives under a turn: one that the sandbox's record has at work, or
    /// whose run goes on.
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
            // Its own turn deletes what it finds half deleted, to make it anew.
            let is_own = worker.group == at
                && worker.item == Item::Message(u8::try_from(message).unwrap_or(0));
            let in_use = sandbox.is_in_use_by(&thread(at), &turn.id) && !is_own;
            // One that waits until it is stopped or deleted has nothing at work in it.
            let is_wanted =
                matches!(sandbox.phase, Phase::Creating | Phase::Active | Phase::Resuming);
            runs || sandbox.generation == generation && in_use && is_wanted
        });
        if is_hit && !by_person {
            s.hits = 1;
        }
    }

    fn on_agent(
        &self,
        s: &mut State,
        worker: &Worker,
        (home, common): (usize, bool),
        effect: &AgentEffect,
    ) -> Event {
        let unreached = |s: &State, generation: u32| reached(s, (home, generation));
        match effect {
            AgentEffect::CheckServer { generation, .. } => {
                match s.provided[home][*generation as usize - 1] {
                    Provided { server: true, .. } => Event::Healthy,
                    Provided { .. } => down(),
                }
            }
            AgentEffect::FindAgentSession { generation, .. } => unreached(s, *generation)
                .unwrap_or_else(|| Event::AgentSession {
                    id: format!("ses_{home}_{generation}_{}", worker.group).into(),
                }),
            AgentEffect::Attach { .. } => {
                Event::Attached { note: String::new(), missed: Vec::new(), images: Vec::new() }
            }
            AgentEffect::SendPrompt { generation, ids, sending, .. } => {
                match unreached(s, *generation) {
                    Some(Event::Failed(failure)) if matches!(sending, Sending::First { .. }) => {
                        Event::NotSent(failure)
                    }
                    Some(failed) => failed,
                    None => self.send(s, (home, *generation), common, &ids.message),
                }
            }
            AgentEffect::FindPrompt { generation, message, .. } => {
                match unreached(s, *generation) {
                    Some(failed) => failed,
                    None => Event::PromptFound(self.find(s, (home, *generation), message)),
                }
            }
            AgentEffect::Follow(follow) | AgentEffect::Look(follow) => {
                match unreached(s, follow.generation) {
                    Some(failed) => failed,
                    None => self.follow(s, (home, follow.generation), &follow.turn),
                }
            }
            AgentEffect::Abort { generation, messages, .. } => unreached(s, *generation)
                .unwrap_or_else(|| {
                    self.abort(s, (home, *generation), messages);
                    Event::Aborted
                }),
            AgentEffect::EndRun(run) => unreached(s, run.generation).unwrap_or_else(|| {
                self.abort(s, (home, run.generation), &run.messages);
                Event::RunEnded
            }),
            AgentEffect::Decline { ask, .. } => Event::Declined { id: ask.clone() },
            AgentEffect::ReadChanges { generation, .. } => {
                unreached(s, *generation).unwrap_or_else(|| Event::Changed(Changes::default()))
            }
            AgentEffect::ListArtifacts { generation } => {
                unreached(s, *generation).unwrap_or_else(|| Event::Listed(Vec::new()))
            }
        }
    }

    /// Whose prompt it is, and the bit of its minting.
    fn minted(&self, ids: &str) -> Option<(u8, u8)> {
        let mut parts = ids.split('-').skip(1);
        let turn = self.driver.turn_of(parts.next()?)?;
        let mint = parts.next()?.parse::<u8>().ok()?;
        Some((turn, 1 << mint))
    }

    fn send(&self, s: &mut State, here: (usize, u32), common: bool, ids: &str) -> Event {
        let Some((message, bit)) = self.minted(ids) else {
            return down();
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
        // The turns that are at work where this one is.
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
        Event::Prompted
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

    fn follow(&self, s: &mut State, here: (usize, u32), turn: &str) -> Event {
        let Some(message) = self.driver.turn_of(turn) else {
            return down();
        };
        let known = &mut s.known[usize::from(message)];
        let end = match known.run {
            _ if !is_at(known, here) => return Event::Failed(Failure::SessionMissing),
            Run::None => return Event::Failed(Failure::SessionMissing),
            Run::Broken => return down(),
            Run::Aborted => RunEnd::Aborted,
            Run::Going | Run::Done => {
                known.run = Run::Done;
                RunEnd::Completed
            }
        };
        Event::Finished(Answer {
            end,
            text: "a".into(),
            usage: Usage::default(),
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
    ) -> Event {
        let posted =
            Event::Posted(PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") });
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
        // A post whose key stands already changes nothing; an edit does.
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

/// A server went away, or its sandbox: what it knew of prompts is gone with that.
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
