//! The agent in a simulated sandbox. As OpenCode 1.18.33 was measured to behave: what it does with a prompt, with one
//! that it has already, with an abort, and what its message list says. Or run by the daemon, which knows each prompt by
//! its id, works on one after the other, and says of one that was cut that it was. How a run stands is read from either
//! by the product.

use std::collections::BTreeMap;

use bobbin_agent::RunState;
use bobbin_agent::opencode::{OpenCodeMessage, OpenCodeStatus, conclude};
use bobbin_agent_client::TurnState;
use bobbin_agent_native::standing::{CUT_LATER, RunStanding, begins_again, known};
use bobbin_core::base::ids::Ms;
use bobbin_core::records::run::{PromptState, RunAnswer, RunEnd};
use bobbin_core::records::usage::Usage;
use bobbin_core::tenant::budgets::MicroUsd;
use serde_json::json;

/// What every run answers.
const ANSWER: &str = "two parts";
/// OpenCode's own session of a thread.
const SESSION: &str = "ses_1";

/// All that one agent was given.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// By message id.
    runs: BTreeMap<String, Run>,
    /// Sendings that it took, so that two of one moment have an order.
    taken: u32,
    /// The daemon runs it, in sessions of its own.
    is_native: bool,
}

/// A prompt, and what the agent does for it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Whose prompt it is.
    pub turn: usize,
    /// Where it works.
    pub workspace: String,
    /// When it comes to its end; none: never by itself.
    pub ends_ms: Option<Ms>,
    /// It ends in an error.
    pub error: bool,
    /// The worker that follows it crashes.
    pub kills: bool,
    /// A question that waits for a person from this time on, until it is closed.
    pub ask: Option<(Ms, bool)>,
    /// When it was last sent, and as which of all sendings.
    sent: (Ms, u32),
    began_ms: Ms,
    /// When it began before its server went away.
    broken: Vec<Ms>,
    is_broken: bool,
    aborted: bool,
    /// When it was aborted.
    aborted_ms: Option<Ms>,
    /// What its model's steps take and cost; `None`: they cost nothing.
    pub step: Option<Step>,
}

/// A step of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How long it takes.
    pub ms: u64,
    /// What it costs, in millionths of a US dollar.
    pub cost: MicroUsd,
}

/// What became of a sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// A run begins for it.
    Begins,
    /// The agent has it already; what was broken off goes on.
    Known,
    /// It has it already, and newer ones: it is moved behind them, and a second run begins for it.
    BeginsAgain,
}

impl Run {
    /// One that begins now.
    pub fn new(turn: usize, ends_ms: Option<Ms>) -> Self {
        Self {
            turn,
            workspace: String::new(),
            ends_ms,
            error: false,
            kills: false,
            ask: None,
            sent: (0, 0),
            began_ms: 0,
            broken: Vec::new(),
            is_broken: false,
            aborted: false,
            aborted_ms: None,
            step: None,
        }
    }

    /// A person is asked, and has not answered.
    pub fn asks(&self, now_ms: Ms) -> bool {
        let open = self.ask.is_some_and(|(at, open)| open && at <= now_ms);
        open && !self.aborted && !self.is_broken
    }

    /// The agent works on it.
    pub fn goes_on(&self, now_ms: Ms) -> bool {
        let ended = self.ends_ms.is_some_and(|at| at <= now_ms) && !self.asks(now_ms);
        !self.is_broken && !self.aborted && !ended
    }

    /// Its steps that are complete, and whether another was begun and cut off.
    fn steps(&self, now_ms: Ms) -> (u64, bool) {
        let Some(step) = self.step else { return (0, false) };
        let end_ms = self.aborted_ms.unwrap_or(now_ms).min(self.ends_ms.unwrap_or(Ms::MAX));
        let worked_ms = end_ms.saturating_sub(self.began_ms);
        if self.came_to_its_end(now_ms) {
            (worked_ms.div_ceil(step.ms), false)
        } else {
            (worked_ms / step.ms, self.aborted)
        }
    }

    /// What the vendor bills for it by now.
    fn billed(&self, now_ms: Ms) -> MicroUsd {
        let (complete, is_cut) = self.steps(now_ms);
        self.step.map_or(0, |step| step.cost * (complete + u64::from(is_cut)))
    }

    /// It came to its end by itself.
    pub fn came_to_its_end(&self, now_ms: Ms) -> bool {
        !self.is_broken && !self.aborted && !self.goes_on(now_ms)
    }
}

impl Agent {
    /// One that the daemon runs, or OpenCode by itself.
    pub fn new(is_native: bool) -> Self {
        Self { is_native, ..Self::default() }
    }

    pub fn run(&self, message: &str) -> Option<&Run> {
        self.runs.get(message)
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    pub fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.runs.values_mut()
    }

    /// Takes a prompt. What was broken off goes on with the newest one, as far as `together` has it.
    pub fn take(
        &mut self,
        message: &str,
        again: bool,
        run: impl FnOnce() -> Run,
        together: impl Fn(&Run) -> bool,
        now_ms: Ms,
    ) -> Sent {
        self.taken += 1;
        let sent = (now_ms, self.taken);
        if self.is_native {
            return self.take_once(message, || Run { sent, ..run() }, again, now_ms);
        }
        let newest = self.runs.values().map(|run| run.sent).max();
        let what = match self.runs.get_mut(message) {
            Some(run) => {
                let is_newest = Some(run.sent) == newest;
                run.sent = sent;
                if is_newest {
                    Sent::Known
                } else {
                    (run.began_ms, run.aborted) = (now_ms, false);
                    Sent::BeginsAgain
                }
            }
            None => {
                let run = Run { sent, began_ms: now_ms, ..run() };
                self.runs.insert(message.to_owned(), run);
                Sent::Begins
            }
        };
        let broken = self.runs.values_mut().filter(|run| run.is_broken);
        for run in broken.filter(|run| together(run)) {
            run.broken.push(run.began_ms);
            (run.is_broken, run.began_ms) = (false, now_ms);
        }
        what
    }

    /// As the daemon takes it: once by its id, and one that was cut once more where that is wanted.
    fn take_once(
        &mut self,
        message: &str,
        run: impl FnOnce() -> Run,
        again: bool,
        now_ms: Ms,
    ) -> Sent {
        let state = self.state(message, now_ms);
        match self.runs.get_mut(message) {
            Some(run) => {
                if again && begins_again(state) {
                    (run.is_broken, run.began_ms) = (false, now_ms);
                }
                Sent::Known
            }
            None => {
                let run = Run { began_ms: now_ms, ..run() };
                self.runs.insert(message.to_owned(), run);
                Sent::Begins
            }
        }
    }

    /// What the daemon says of a prompt.
    fn state(&self, message: &str, now_ms: Ms) -> TurnState {
        match self.runs.get(message) {
            None => TurnState::NotSeen,
            Some(run) if run.is_broken => TurnState::Lost,
            Some(run) if run.asks(now_ms) => TurnState::Waiting,
            Some(run) if run.goes_on(now_ms) => TurnState::Running,
            Some(run) if run.error && !run.aborted => TurnState::Failed,
            Some(_) => TurnState::Done,
        }
    }

    /// How the run of these prompts stands, as the daemon says it.
    fn standing(&self, message: &str, further: &[String], now_ms: Ms) -> RunState {
        let all: Vec<&str> =
            std::iter::once(message).chain(further.iter().map(String::as_str)).collect();
        let states: Vec<TurnState> = all.iter().map(|one| self.state(one, now_ms)).collect();
        let standing = RunStanding::of(&states);
        match standing {
            RunStanding::Works => return RunState::Busy,
            RunStanding::Cut => return RunState::Lost,
            RunStanding::Unseen => return RunState::Pending,
            RunStanding::CutLater | RunStanding::Over => {}
        }
        let runs: Vec<&Run> = all.iter().filter_map(|one| self.runs.get(*one)).collect();
        let end = if runs.iter().any(|run| run.aborted) {
            RunEnd::Aborted
        } else if standing == RunStanding::CutLater {
            RunEnd::Error { reason: CUT_LATER.to_owned() }
        } else if runs.iter().any(|run| run.error) {
            RunEnd::Error { reason: "overloaded".to_owned() }
        } else {
            RunEnd::Completed
        };
        RunState::Done(RunAnswer {
            text: match end {
                RunEnd::Completed => ANSWER.to_owned(),
                _ => String::new(),
            },
            end,
            usage: Usage::default(),
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    /// Its server went away: what it worked on is broken off, and nothing of it goes on by itself.
    pub fn dies(&mut self, now_ms: Ms) {
        let going = self.runs.values_mut().filter(|run| run.goes_on(now_ms));
        going.for_each(|run| run.is_broken = true);
    }

    /// Like the adapters: OpenCode aborts only if the newest prompt is one of these; the daemon aborts just these.
    pub fn abort(&mut self, messages: &[String], now_ms: Ms) {
        if self.is_native {
            let ours = self.runs.iter_mut().filter(|(id, _)| messages.contains(id));
            let open = ours.filter(|(_, run)| run.goes_on(now_ms));
            return open.for_each(|(_, run)| {
                (run.aborted, run.aborted_ms) = (true, Some(now_ms));
            });
        }
        let newest = self.runs.iter().max_by_key(|(_, run)| run.sent);
        if newest.is_some_and(|(id, _)| messages.contains(id)) {
            let going = self.runs.values_mut().filter(|run| run.goes_on(now_ms));
            going.for_each(|run| (run.aborted, run.aborted_ms) = (true, Some(now_ms)));
        }
    }

    /// What a look at the run of these prompts sees of its cost: complete steps.
    pub fn spent(&self, message: &str, further: &[String], now_ms: Ms) -> MicroUsd {
        let runs = self.runs.iter().filter(|(id, _)| *id == message || further.contains(id));
        let seen = runs.map(|(_, run)| run.step.map_or(0, |step| step.cost * run.steps(now_ms).0));
        seen.sum()
    }

    /// What the vendor bills for everything by now.
    pub fn billed(&self, now_ms: Ms) -> MicroUsd {
        self.runs.values().map(|run| run.billed(now_ms)).sum()
    }

    /// The session's status, and its messages in the order of time, in which OpenCode lists them.
    fn listed(&self, now_ms: Ms) -> (Option<OpenCodeStatus>, Vec<OpenCodeMessage>) {
        let busy = self.runs.values().any(|run| run.goes_on(now_ms));
        let mut messages: Vec<OpenCodeMessage> = Vec::new();
        let read = |value| serde_json::from_value(value).expect("a message");
        for (id, run) in &self.runs {
            // Two of one moment, in their order.
            let sent = run.sent.0 as f64 + f64::from(run.sent.1) / 1_000_000.0;
            messages.push(read(json!({
                "info": {"id": id, "sessionID": SESSION, "role": "user", "time": {"created": sent}},
            })));
            for (at, began_ms) in run.broken.iter().chain([&run.began_ms]).enumerate() {
                let is_last = at == run.broken.len();
                let is_over = is_last && !run.is_broken && !run.goes_on(now_ms);
                let steps = if is_last { run.steps(now_ms).0 } else { 0 };
                let cost = run.step.map_or(0.0, |step| step.cost as f64 / 1_000_000.0);
                let costing = |info: &mut serde_json::Value| {
                    info["cost"] = json!(cost);
                    info["tokens"] = json!({
                        "input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0},
                    });
                };
                let before = steps.saturating_sub(u64::from(is_over && !run.aborted));
                for step in 0..before {
                    let at_ms = *began_ms as f64 + 0.1 + step as f64 / 1_000.0;
                    let mut info = json!({
                        "id": format!("{id}-step-{step}"), "sessionID": SESSION,
                        "role": "assistant", "parentID": id, "finish": "tool-calls",
                        "time": {"created": at_ms, "completed": at_ms},
                    });
                    costing(&mut info);
                    messages.push(read(json!({"info": info, "parts": []})));
                }
                let answer = format!("{id}-answer-{at}");
                let mut info = json!({
                    "id": answer, "sessionID": SESSION, "role": "assistant", "parentID": id,
                    "time": {"created": *began_ms as f64 + 0.5},
                });
                let mut parts = json!([]);
                if is_over {
                    info["time"]["completed"] = json!(now_ms);
                    match (run.aborted, run.error) {
                        (true, _) => info["error"] = json!({"name": "MessageAbortedError"}),
                        (false, true) => {
                            info["error"] =
                                json!({"name": "APIError", "data": {"message": "overloaded"}});
                        }
                        (false, false) => {
                            if steps > 0 {
                                costing(&mut info);
                            }
                            info["finish"] = json!("stop");
                            parts = json!([{
                                "id": "prt", "sessionID": SESSION, "messageID": answer, "type": "text", "text": ANSWER,
                            }]);
                        }
                    }
                }
                messages.push(read(json!({"info": info, "parts": parts})));
            }
        }
        messages.sort_by(|a, b| a.info.time.created.total_cmp(&b.info.time.created));
        (busy.then_some(OpenCodeStatus::Busy), messages)
    }

    /// How the run of this prompt stands, by the product's own reading.
    fn verdict(&self, message: &str, further: &[String], now_ms: Ms) -> RunState {
        if self.is_native {
            return self.standing(message, further, now_ms);
        }
        let (status, messages) = self.listed(now_ms);
        conclude(&messages, message, further, status.as_ref())
    }

    /// What there is to tell of a run: its answer, or that nothing works on it; none while it goes on.
    pub fn follow(
        &self,
        message: &str,
        further: &[String],
        now_ms: Ms,
    ) -> Option<Option<RunAnswer>> {
        match self.verdict(message, further, now_ms) {
            RunState::Busy => None,
            RunState::Done(answer) => Some(Some(RunAnswer {
                // Of several prompts each was answered; the world's chat counts the parts of one answer.
                text: if answer.text.is_empty() { answer.text } else { ANSWER.to_owned() },
                ..answer
            })),
            RunState::Stopped | RunState::Lost | RunState::Pending => Some(None),
        }
    }

    /// What it knows of a prompt.
    pub fn find(&self, message: &str, now_ms: Ms) -> PromptState {
        if self.is_native {
            return known(self.state(message, now_ms));
        }
        if !self.runs.contains_key(message) {
            return PromptState::Absent;
        }
        match self.verdict(message, &[], now_ms) {
            RunState::Busy | RunState::Done(_) => PromptState::Taken,
            RunState::Stopped | RunState::Lost | RunState::Pending => PromptState::Idle,
        }
    }
}
