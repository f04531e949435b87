//! The requests to a thread's agent: prompts, their runs, and their leftovers.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, Ms, TurnId};
use bobbin_core::base::names::PromptIds;
use bobbin_core::protocol::effect::{Follow, Sending};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::ask::{About, AskDecision};
use bobbin_core::records::changes::{ChangedFile, Changes, How};
use bobbin_core::records::run::PromptState;

use super::SimThread;
use crate::agent::{Run, Sent};
use crate::dice::Dice;
use crate::home::Home;
use crate::plan::Late;
use crate::promises::Fact;
use crate::services::{Missed, silent};

impl SimThread {
    pub fn find_session(
        &self,
        home: &mut Home,
        generation: u32,
        now_ms: Ms,
    ) -> Result<AgentSessionId, Failure> {
        let sandbox = home.server(generation, now_ms)?;
        sandbox.sessions.insert(self.place);
        // A sandbox that is created again under its generation begins with an empty disk.
        Ok(format!("ses_{generation}_{}_{}", sandbox.created_ms, self.place).into())
    }

    pub fn send_prompt(
        &mut self,
        home: &mut Home,
        generation: u32,
        (ids, sending): (&PromptIds, Sending),
        (turn, workspace): (&TurnId, &str),
        now_ms: Ms,
        (dice, troubled): (&mut Dice, bool),
    ) -> Result<(), Missed> {
        let turn = self.turn(turn);
        let first = matches!(sending, Sending::First { .. });
        let (endless, asks) = (self.next_run_is_endless, self.next_run_asks);
        let (kills, planned_ms) = (self.next_run_kills, self.next_run_takes_ms);
        let (ended, step) = (self.ended_turns(), self.step);
        let sandbox = match home.server(generation, now_ms) {
            Ok(sandbox) if !sandbox.sessions.contains(&self.place) && first => {
                return Err(Missed::NotSent(Failure::SessionMissing));
            }
            Ok(sandbox) if !sandbox.sessions.contains(&self.place) => {
                return Err(Missed::Failed(Failure::SessionMissing));
            }
            Ok(sandbox) => sandbox,
            Err(failed) => return Err(Missed::Failed(failed)),
        };
        let Some(turn) = turn else {
            let reason = "whose prompt?".to_owned();
            return Err(Missed::Failed(Failure::TurnFailed { reason }));
        };
        let run = || {
            let long = troubled && dice.falls(100);
            let takes_ms = 1_000 + dice.below(if long { 40 * 60_000 } else { 120_000 });
            let takes_ms = planned_ms.unwrap_or(takes_ms);
            let ends = !endless && !dice.falls(if troubled { 30 } else { 0 });
            let mut run = Run::new(turn, ends.then_some(now_ms + takes_ms));
            run.workspace = workspace.to_owned();
            run.step = step;
            run.error = troubled && dice.falls(50);
            run.kills = kills || troubled && dice.falls(10);
            let asks = asks || troubled && dice.falls(150);
            run.ask = asks.then_some((now_ms + takes_ms / 2, true));
            run
        };
        let is_over = |turn: usize| ended.contains(&turn);
        // What belongs to the same turn continues with it; the interrupted rest of an ended turn is only read.
        let together = |run: &Run| !is_over(run.turn);
        match sandbox.agent(self.place).take(&ids.message, !first, run, together, now_ms) {
            Sent::Known => return Ok(()),
            Sent::Begins | Sent::BeginsAgain => {}
        }
        let runs = sandbox.agent(self.place).runs();
        let going = runs.filter(|run| run.goes_on(now_ms));
        let astray = going.filter(|run| is_over(run.turn));
        let astray: Vec<Fact> = astray.map(|run| Fact::Astray { turn: run.turn }).collect();
        (self.next_run_is_endless, self.next_run_asks) = (false, false);
        (self.next_run_kills, self.next_run_takes_ms) = (false, None);
        self.history.facts.extend(astray);
        self.history.facts.push(Fact::Prompted { turn, generation });
        self.prompted_ms = now_ms;
        Ok(())
    }

    /// Whether the worker that follows this prompt's run crashes.
    pub fn kills(&self, home: &Home, generation: u32, message: &str) -> bool {
        let sandbox = home.sandboxes.get(&generation);
        let agent = sandbox.and_then(|sandbox| sandbox.agents.get(&self.place));
        let run = agent.and_then(|agent| agent.run(message));
        run.is_some_and(|run| run.kills)
    }

    /// What the agent knows of a prompt.
    pub fn find_prompt(
        &self,
        home: &mut Home,
        generation: u32,
        message: &str,
        now_ms: Ms,
    ) -> Result<PromptState, Failure> {
        let sandbox = home.server(generation, now_ms)?;
        if !sandbox.sessions.contains(&self.place) {
            return Err(Failure::SessionMissing);
        }
        Ok(sandbox.agent(self.place).find(message, now_ms))
    }

    /// What a person's stop ends at the agent: this turn's prompts, if it is the running one.
    pub fn to_abort(&self, turn: &TurnId) -> Option<Late> {
        let running = self.record.as_ref()?.turn.as_ref()?;
        let generation = running.stage.prompted()?.generation;
        (running.id == *turn).then(|| Late::Abort(generation, running.messages()))
    }

    /// Ends the run of these prompts, if the agent works on them.
    pub fn abort(&self, home: &mut Home, generation: u32, messages: &[String], now_ms: Ms) {
        if let Ok(sandbox) = home.server(generation, now_ms) {
            sandbox.agent(self.place).abort(messages, now_ms);
        }
    }

    /// Declines the open question.
    pub fn decline(&self, home: &mut Home, generation: u32, now_ms: Ms) {
        if let Ok(sandbox) = home.server(generation, now_ms) {
            let asks = sandbox.agent(self.place).runs_mut().filter_map(|run| run.ask.as_mut());
            asks.for_each(|ask| ask.1 = false);
        }
    }

    /// A person answers the open question, first come first served.
    fn answers(&mut self, home: &mut Home, turn: &TurnId, ask: &AskId, now_ms: Ms) {
        let turn = self.turn(turn);
        let by = bobbin_core::base::person::Person { id: "bob".into(), name: "bob".into() };
        let settlement = AskDecision { by, choice: bobbin_core::records::ask::Choice::Once };
        self.flags.settled.entry(ask.to_owned()).or_insert(settlement);
        let agents = home.sandboxes.values_mut();
        for run in agents
            .flat_map(|sandbox| sandbox.agents.get_mut(&self.place))
            .flat_map(|agent| agent.runs_mut())
            .filter(|run| Some(run.turn) == turn)
        {
            if let Some(ask) = &mut run.ask {
                ask.1 = false;
            }
            run.ends_ms = run.ends_ms.map(|at| at.max(now_ms + 5_000));
        }
    }

    /// One poll of a run: its result, or `None`.
    pub fn follow(
        &mut self,
        home: &mut Home,
        (generation, follow): (u32, &Follow),
        now_ms: Ms,
        dice: &mut Dice,
    ) -> Option<Event> {
        if let Some(by) = follow.cancelled_by(&self.flags) {
            return Some(Event::CancelSeen { by: by.clone() });
        }
        if let Some(known) = &follow.steers
            && let Some((id, by)) =
                self.flags.now.iter().find(|(id, _)| !known.contains(id) && **id != follow.turn)
            && let Some(queued) = self.flags.queued.get(id)
        {
            return Some(Event::SteerSeen {
                turn: id.clone(),
                queued: queued.clone(),
                by: by.clone(),
            });
        }
        let ask_id = AskId::from(format!("per_{}", follow.turn));
        let settlement = self.flags.settled.get(&ask_id).cloned();
        let sandbox = match home.server(generation, now_ms) {
            Ok(sandbox) => sandbox,
            Err(failed) => return Some(Event::Failed(failed)),
        };
        let open =
            sandbox.agent(self.place).run(&follow.message).is_some_and(|run| run.asks(now_ms));
        let known = follow.asks.iter().find(|ask| ask.id == ask_id);
        if open && known.is_none() {
            return Some(Event::Asked {
                id: ask_id,
                about: About::Permission {
                    action: "bash".into(),
                    subject: "make".into(),
                    left_out: 0,
                    places: [].into(),
                    always: [].into(),
                },
            });
        }
        if !open && let Some(ask) = known.filter(|ask| !ask.settled) {
            return Some(Event::AskClosed { id: ask.id.clone(), settlement });
        }
        if open {
            if dice.falls(20) {
                self.answers(home, &follow.turn, &ask_id.as_str().into(), now_ms);
            }
            return None;
        }
        let seen = sandbox.agent(self.place).follow(&follow.message, &follow.further, now_ms)?;
        Some(match seen {
            Some(answer) => Event::Finished(answer),
            None => {
                // Interrupted, or never begun: only the latter needs a restart, unless the daemon says that it was cut
                // off.
                if !sandbox.is_native {
                    sandbox.dies(now_ms);
                }
                Event::Failed(silent())
            }
        })
    }

    /// At rest: notes what it still works on although the turn has ended.
    pub fn note_strays(&mut self, home: &Home, now_ms: Ms) {
        let ended = self.ended_turns();
        let agents = home.sandboxes.values();
        let agents = agents.filter_map(|sandbox| sandbox.agents.get(&self.place));
        let going = agents
            .flat_map(|agent| agent.runs())
            .filter(|run| run.goes_on(now_ms) && ended.contains(&run.turn));
        let astray: Vec<Fact> = going.map(|run| Fact::Astray { turn: run.turn }).collect();
        self.history.facts.extend(astray);
    }

    /// The thread's own workspace: a worktree, which needs the repository.
    pub fn make_workspace(&self, home: &mut Home, generation: u32) -> Result<Event, Failure> {
        match home.sandboxes.get_mut(&generation) {
            None => Err(Failure::SandboxGone),
            Some(sandbox) if !sandbox.cloned => {
                Ok(Event::NoWorkspace { why: "there is no repository".to_owned() })
            }
            Some(sandbox) if sandbox.stopped => Err(silent()),
            Some(sandbox) => {
                sandbox.workspaces.insert(self.place);
                Ok(Event::WorkspaceReady {
                    directory: format!("/workspaces/{}", self.place),
                    branch: Some(format!("bobbin/{}", self.place)),
                })
            }
        }
    }

    /// Every run that ended by itself has left a file to show, which stays.
    pub fn list_artifacts(
        &self,
        home: &mut Home,
        generation: u32,
        now_ms: Ms,
    ) -> Result<Vec<Artifact>, Failure> {
        let sandbox = home.server(generation, now_ms)?;
        let over = sandbox.agent(self.place).runs().filter(|run| run.came_to_its_end(now_ms));
        let file = |run: &Run| Artifact {
            path: format!("{}-{generation}.txt", run.turn),
            size: 1,
            sum: "1".to_owned(),
        };
        Ok(over.map(file).collect())
    }
}

/// Every run's changes of files.
pub fn changes() -> Changes {
    let change = ChangedFile {
        file: "a".to_owned(),
        how: How::Added,
        added: 1,
        removed: 0,
        patch: String::new(),
    };
    Changes { files: vec![change], unknown: false }
}
