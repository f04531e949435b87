//! The function that serves tools to agents outside, with the product's own decisions on the records.

use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::records::message::Message;
use bobbin_core::records::sandbox::{InUse, SandboxRecord};
use bobbin_core::records::tool_sandbox;
use bobbin_core::shown::tools::{SandboxStanding, ToolSandbox};

use super::plan::{Out, PlannedEvent};
use super::state::Inner;
use crate::promises::Fact;

/// How an agent uses its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It connects and lists them.
    Comes,
    /// It calls one.
    Calls,
}

impl Inner {
    /// The place of the second sandbox of the agent at this place.
    pub fn second_of(&mut self, at: usize) -> usize {
        let tools = tool_sandbox::tools_of(&self.key_of(at));
        self.place_of(tools.thread())
    }

    pub(super) fn key_of(&self, at: usize) -> SandboxKey {
        self.places[at].thread.sandbox()
    }

    /// The agent outside whose server runs at this place uses its tools, if there is one.
    pub(super) fn tools(&mut self, at: usize, how: Use, idle_pause_ms: u64) {
        let Some(generation) = self.places[at].home.serving(self.now_ms) else {
            return;
        };
        let Some(wish) = self.wish(at, generation, how, idle_pause_ms) else {
            return;
        };
        self.met.insert("wish");
        // It may freeze or crash between reading the records and sending the request.
        let late_ms = match self.troubled().then(|| self.dice.below(10)) {
            Some(0) => return,
            Some(1..5) => self.dice.below(20_000),
            _ => 0,
        };
        self.say_later(at, wish, late_ms);
    }

    /// A message that is sent after this time.
    pub(super) fn say_later(&mut self, at: usize, message: Message, late_ms: u64) {
        match late_ms {
            0 => self.send(message),
            _ => {
                self.deeds.insert(
                    (self.now_ms + late_ms, self.planned),
                    (at, PlannedEvent::Send(message)),
                );
                self.planned += 1;
            }
        }
    }

    /// The request in the second sandbox's group.
    pub fn wish(
        &mut self,
        at: usize,
        generation: u32,
        how: Use,
        idle_pause_ms: u64,
    ) -> Option<Message> {
        let (key, now_ms) = (self.key_of(at), self.now_ms);
        // The bearer token is valid for its generation.
        let agent = self.places[at].home.record.clone()?;
        let is_admitted = agent.generation == generation && agent.works_elsewhere();
        if !is_admitted || self.is_out(Out::Table) {
            return None;
        }
        let second = self.second_of(at);
        let record = self.places[second].home.record.clone().unwrap_or_default();
        let site = ToolSandbox {
            key: &tool_sandbox::tools_of(&key),
            record: &record,
            agent: Some((&key, &agent)),
        };
        if how == Use::Comes {
            return site.expected(now_ms);
        }
        match site.standing() {
            SandboxStanding::Up if self.is_out(Out::Provider) => None,
            SandboxStanding::Up if self.runs(second, &record, now_ms) => {
                self.met.insert("tools used");
                site.used(now_ms, idle_pause_ms)
            }
            SandboxStanding::Up | SandboxStanding::Stopped => Some(site.brought_back(now_ms)),
            SandboxStanding::BeingMade => None,
            SandboxStanding::Gone(_) => site.made(now_ms),
        }
    }

    /// Whether an agent's leftovers outside can be read: `None` if that sandbox does not run by its record.
    pub(super) fn is_left_outside(&mut self, at: usize) -> Option<bool> {
        let second = self.second_of(at);
        let record = self.places[second].home.record.clone()?;
        let is_up = ToolSandbox { key: &self.key_of(second), record: &record, agent: None }
            .standing()
            == SandboxStanding::Up;
        is_up.then(|| self.runs(second, &record, self.now_ms))
    }

    /// A sweep stops an agent's second sandbox: no turn of that agent may have been at work when the sweep checked.
    pub(super) fn stops_second(&mut self, at: usize, generation: u32) {
        let home = &mut self.places[at].home;
        let looked_ms = home.looked_ms.take();
        let Some(record) = &home.record else { return };
        // A stop that a person requested and somebody began is finished by any worker.
        if home.pause_wanted {
            return;
        }
        let began_ms = looked_ms.unwrap_or(home.phase_kept_ms);
        let Some(agent) = record.tooling.agent.clone() else {
            return;
        };
        let agent = self.place_of(agent.thread());
        let home = &self.places[agent].home;
        let Some(record) = &home.record else {
            return;
        };
        let in_use = record.sharing.in_use.iter();
        let since_ms = |one: &InUse| home.uses.get(&(one.thread.clone(), one.turn.clone()));
        let hit = in_use.filter(|one| !one.left && since_ms(one).is_some_and(|at| *at <= began_ms));
        let hit: Vec<_> = hit.map(|one| (one.thread.clone(), one.turn.clone())).collect();
        for (thread, turn) in hit {
            let place = self.place_of(&thread);
            let here = &mut self.places[place];
            let going = here.record.as_ref().and_then(|it| it.turn.as_ref());
            if going.is_none_or(|going| going.id != turn || going.stage.is_ending()) {
                continue;
            }
            let turn = here.turn(&turn).unwrap_or(0);
            here.history.facts.push(Fact::Hit { generation, turn });
        }
    }

    fn runs(&self, second: usize, record: &SandboxRecord, now_ms: Ms) -> bool {
        let home = &self.places[second].home;
        home.is_running(record.generation, now_ms)
    }

    /// Second sandboxes at the provider whose agent's sandbox was deleted on purpose, or no longer needs one by its
    /// record.
    pub(super) fn seconds_left(&self, at: usize) -> u64 {
        let here = &self.places[at];
        let Some(record) = &here.home.record else {
            return 0;
        };
        let is_over = record.tooling.tools.is_none() && !tool_sandbox::is_wanted_by(record);
        let tools = tool_sandbox::tools_of(&self.key_of(at));
        let second = self.known(tools.thread());
        match second.filter(|_| is_over || here.ends_both) {
            Some(second) => self.places[second].home.sandboxes.len() as u64,
            None => 0,
        }
    }
}
