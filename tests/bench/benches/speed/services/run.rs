//! What an agent does with a prompt: its messages and events, in the shapes that OpenCode 1.18.33 was seen to send.

use serde_json::{Value, json};

/// The words of every answer.
pub const ANSWER: &str =
    "Three of the tests are slow: each starts a server of its own and waits for it.";

/// How a prompt is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Answered at once, before anybody can listen.
    AtOnce,
    /// Answered after very much work: a step for each of so many messages, told in so many events in all.
    Long {
        /// Messages of the agent.
        messages: usize,
        /// Events of the whole run.
        events: usize,
        /// At most so many in a second.
        events_per_second: u32,
    },
}

/// Updates of a command that runs, each with everything that it has printed so far.
const UPDATES: usize = 60;
/// Bytes that it prints between two of them: with the words of the model half a kilobyte an event on average.
const PRINTED_BYTES: usize = 93;
/// Events of a step besides the words of the model and those updates.
const STEP_EVENTS: usize = 11;
/// What the model says at a time.
const WORDS: &str = "and then on ";
/// Every so many steps the plan is written down anew.
const PLAN_EVERY: usize = 10;

/// The run of one prompt.
#[derive(Debug, Clone)]
pub struct Run {
    session: String,
    prompt: String,
    began_ms: u64,
}

impl Run {
    /// Of this prompt.
    #[must_use]
    pub fn new(session: &str, prompt: &str, began_ms: u64) -> Self {
        Self {
            session: session.to_owned(),
            prompt: prompt.to_owned(),
            began_ms,
        }
    }

    /// The message of an agent that answers at once.
    #[must_use]
    pub fn answer(&self) -> Value {
        let head = self.head(0, true, "stop");
        let words = self.part(0, 1, "text", json!({"text": ANSWER}));
        let parts = [
            self.part(0, 0, "step-start", json!({})),
            words,
            self.step_finish(0),
        ];
        json!({"info": head, "parts": parts})
    }

    /// Works step by step: tells each event, and each message when it is whole.
    pub fn work(
        &self,
        messages: usize,
        events: usize,
        mut tell: impl FnMut(Value),
        mut keep: impl FnMut(Value),
    ) {
        // The last step says its answer in one piece and calls nothing.
        let steps = messages.saturating_sub(1).max(1);
        let mut left = events.saturating_sub(STEP_EVENTS);
        for step in 0..steps {
            let share = left / (steps - step);
            left -= share;
            self.step(step, share, &mut tell, &mut keep);
        }
        let mut answer = self.answer();
        answer["info"] = self.head(steps, true, "stop");
        for part in answer["parts"].as_array_mut().into_iter().flatten() {
            let number = part["id"].as_str().and_then(|id| id.chars().last());
            let number = number.and_then(|digit| digit.to_digit(10)).unwrap_or(0);
            part["messageID"] = json!(self.message_id(steps));
            part["id"] = json!(self.part_id(steps, number as usize));
        }
        let update = |part: &Value| self.event("message.part.updated", json!({"part": part}));
        tell(self.event(
            "message.updated",
            json!({"info": self.head(steps, false, "")}),
        ));
        answer["parts"]
            .as_array()
            .into_iter()
            .flatten()
            .map(update)
            .for_each(&mut tell);
        tell(self.event("message.updated", json!({"info": answer["info"]})));
        keep(answer);
    }

    /// One step of so many events: the model says something and runs a command that prints a lot.
    fn step(
        &self,
        step: usize,
        events: usize,
        tell: &mut impl FnMut(Value),
        keep: &mut impl FnMut(Value),
    ) {
        let part = |part: &Value| self.event("message.part.updated", json!({"part": part}));
        let start = self.part(step, 0, "step-start", json!({}));
        tell(self.event("session.status", json!({"status": {"type": "busy"}})));
        tell(self.event(
            "message.updated",
            json!({"info": self.head(step, false, "")}),
        ));
        tell(part(&start));
        tell(part(&self.part(step, 1, "text", json!({"text": ""}))));
        let said = events.saturating_sub(STEP_EVENTS + UPDATES);
        let mut text = String::new();
        for _ in 0..said {
            text.push_str(WORDS);
            let delta = json!({"messageID": self.message_id(step), "partID": self.part_id(step, 1), "field": "text", "delta": WORDS});
            tell(self.event("message.part.delta", delta));
        }
        let text = self.part(step, 1, "text", json!({"text": text}));
        tell(part(&text));
        let call = |state: Value| {
            let plans = step.is_multiple_of(PLAN_EVERY);
            let tool = if plans { "todowrite" } else { "bash" };
            let call = format!("call_{step:012x}");
            self.part(
                step,
                2,
                "tool",
                json!({"tool": tool, "callID": call, "state": state}),
            )
        };
        let input = match step % PLAN_EVERY {
            0 => {
                json!({"todos": (0..5).map(|at| json!({"content": format!("Part {at} of the work"), "priority": "high",
                "status": if at * PLAN_EVERY * 4 < step { "completed" } else { "pending" }})).collect::<Vec<_>>()})
            }
            _ => {
                json!({"command": format!("cargo test --package part-{step} -- --nocapture"), "description": "Runs tests"})
            }
        };
        tell(part(&call(
            json!({"status": "pending", "input": {}, "raw": ""}),
        )));
        let mut printed = String::new();
        for _ in 0..UPDATES {
            printed.push_str(&"x".repeat(PRINTED_BYTES - 1));
            printed.push('\n');
            let running = json!({"status": "running", "input": input, "metadata": {"output": printed}, "time": {"start": self.began_ms}});
            tell(part(&call(running)));
        }
        let time = json!({"start": self.began_ms, "end": self.began_ms});
        let done = call(
            json!({"status": "completed", "input": input, "output": printed,
            "metadata": {"output": printed, "exit": 0, "truncated": false}, "title": "Runs tests", "time": time}),
        );
        tell(part(&done));
        let finish = self.step_finish(step);
        tell(part(&finish));
        let head = self.head(step, true, "tool-calls");
        // As seen: twice the same.
        tell(self.event("message.updated", json!({"info": head})));
        tell(self.event("message.updated", json!({"info": head})));
        keep(json!({"info": head, "parts": [start, text, done, finish]}));
    }

    fn message_id(&self, step: usize) -> String {
        // In the order of time, as the real ones.
        format!("msg_{:012x}{step:04x}AAAAAAAAAA", self.began_ms)
    }

    fn part_id(&self, step: usize, number: usize) -> String {
        format!("prt_{:012x}{step:04x}AAAAAAAAA{number}", self.began_ms)
    }

    fn head(&self, step: usize, is_whole: bool, finish: &str) -> Value {
        let created = self.began_ms + step as u64;
        let mut head = json!({
            "id": self.message_id(step), "parentID": self.prompt, "role": "assistant", "mode": "build", "agent": "build",
            "path": {"cwd": "/home/daytona/project", "root": "/home/daytona/project"}, "cost": 0.01,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "modelID": "claude-sonnet-4-5", "providerID": "anthropic", "time": {"created": created},
            "sessionID": self.session,
        });
        if is_whole {
            head["time"]["completed"] = json!(created);
            head["finish"] = json!(finish);
            head["tokens"] = json!({"total": 120, "input": 100, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}});
        }
        head
    }

    fn part(&self, step: usize, number: usize, kind: &str, more: Value) -> Value {
        let mut part = json!({
            "id": self.part_id(step, number), "messageID": self.message_id(step), "sessionID": self.session, "type": kind,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            part[name] = value.clone();
        }
        part
    }

    fn step_finish(&self, step: usize) -> Value {
        let tokens = json!({"total": 120, "input": 100, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}});
        let more = json!({"reason": "stop", "tokens": tokens, "cost": 0.01});
        self.part(step, 3, "step-finish", more)
    }

    /// An event of the run's session.
    #[must_use]
    pub fn event(&self, kind: &str, mut properties: Value) -> Value {
        properties["sessionID"] = json!(self.session);
        json!({"id": "evt_1ffbd59b4001KSqMgyNtoPCtmG", "type": kind, "properties": properties})
    }
}
