//! The agent in a simulated sandbox. It behaves as OpenCode 1.18.33 was measured: how it treats a prompt, a prompt that
//! it already has and an abort, and what its message list says. Or the daemon runs it: that knows each prompt by its
//! id, works on one at a time, and reports when one was cut off. The product itself reads the state of a run from
//! either.

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
/// OpenCode's session of a thread.
const SESSION: &str = "ses_1";

/// All that one agent received.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// By message id.
    runs: BTreeMap<String, Run>,
    /// Number of prompts taken, to order those of the same moment.
    taken: u32,
    /// The daemon runs it, in its own sessions.
    is_native: bool,
}

/// A prompt, and what the agent does for it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Whose prompt it is.
    pub turn: usize,
    /// Where it works.
    pub workspace: String,
    /// When it ends; `None`: never by itself.
    pub ends_ms: Option<Ms>,
    /// It ends in an error.
    pub error: bool,
    /// The worker that follows it crashes.
    pub kills: bool,
    /// A question that waits for a person from this time on, until it is closed.
    pub ask: Option<(Ms, bool)>,
    /// When it was last sent, and its number among all sends.
    sent: (Ms, u32),
    began_ms: Ms,
    /// When it began, before its server stopped.
    broken: Vec<Ms>,
    is_broken: bool,
    aborted: bool,
    /// When it was aborted.
    aborted_ms: Option<Ms>,
    /// Duration and cost of its model's steps; `None`: they cost nothing.
    pub step: Option<Step>,
}

/// One step of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How long it takes.
    pub ms: u64,
    /// What it costs, in millionths of a US dollar.
    pub cost: MicroUsd,
}

/// What the agent did with a sent prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// A run begins for it.
    Begins,
    /// The agent already has it; an interrupted run continues.
    Known,
    /// The agent already has it and newer ones: it moves behind them, and a second run begins.
    BeginsAgain,
}

impl Run {
    /// A run that begins now.
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

    /// A person was asked and has not answered.
    pub fn asks(&self, now_ms: Ms) -> bool {
        let open = self.ask.is_some_and(|(at, open)| open && at <= now_ms);
        open && !self.aborted && !self.is_broken
    }

    /// The agent works on it.
    pub fn goes_on(&self, now_ms: Ms) -> bool {
        let ended = self.ends_ms.is_some_and(|at| at <= now_ms) && !self.asks(now_ms);
        !self.is_broken && !self.aborted && !ended
    }

    /// Its complete steps, and whether another was cut off.
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

    /// It ended by itself.
    pub fn came_to_its_end(&self, now_ms: Ms) -> bool {
        !self.is_broken && !self.aborted && !self.goes_on(now_ms)
    }
}

impl Agent {
    /// An agent run by the daemon, or OpenCode alone.
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

    /// Takes a prompt. An interrupted run continues with the newest prompt, within `together`.
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

    /// Like the daemon: takes each id once, and a cut prompt once more on request.
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

    /// What the daemon reports of a prompt.
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

    /// The state of these prompts' run, as the daemon reports it.
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

    /// Its server stops: the work is interrupted, and none of it continues by itself.
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

    /// The cost that a poll of this run sees: complete steps.
    pub fn spent(&self, message: &str, further: &[String], now_ms: Ms) -> MicroUsd {
        let runs = self.runs.iter().filter(|(id, _)| *id == message || further.contains(id));
        let seen = runs.map(|(_, run)| run.step.map_or(0, |step| step.cost * run.steps(now_ms).0));
        seen.sum()
    }

    /// What the vendor bills for everything by now.
    pub fn billed(&self, now_ms: Ms) -> MicroUsd {
        self.runs.values().map(|run| run.billed(now_ms)).sum()
    }

    /// The session's status, and its messages by time, as OpenCode lists them.
    fn listed(&self, now_ms: Ms) -> (Option<OpenCodeStatus>, Vec<OpenCodeMessage>) {
        let busy = self.runs.values().any(|run| run.goes_on(now_ms));
        let mut messages: Vec<OpenCodeMessage> = Vec::new();
        let read = |value| serde_json::from_value(value).expect("a message");
        for (id, run) in &self.runs {
            // Orders two of the same moment.
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

    /// The state of this prompt's run, as the product reads it.
    fn verdict(&self, message: &str, further: &[String], now_ms: Ms) -> RunState {
        if self.is_native {
            return self.standing(message, further, now_ms);
        }
        let (status, messages) = self.listed(now_ms);
        conclude(&messages, message, further, status.as_ref())
    }

    /// The result of a run: its answer, or that nothing works on it; `None` while it continues.
    pub fn follow(
        &self,
        message: &str,
        further: &[String],
        now_ms: Ms,
    ) -> Option<Option<RunAnswer>> {
        match self.verdict(message, further, now_ms) {
            RunState::Busy => None,
            RunState::Done(answer) => Some(Some(RunAnswer {
                // Each of several prompts was answered; the world's chat counts the parts of one answer.
                text: if answer.text.is_empty() { answer.text } else { ANSWER.to_owned() },
                ..answer
            })),
            RunState::Stopped | RunState::Lost | RunState::Pending => Some(None),
        }
    }

    /// What it knows about a prompt.
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
