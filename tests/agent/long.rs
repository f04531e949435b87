//! A run of very much work, in the shapes that OpenCode 1.18.33 was seen to send: a step for each message, in which the
//! model says something in pieces and runs a command that prints a lot; a plan every tenth step; at last an answer.

use serde_json::{Value, json};

/// Updates of a running command, each with all its output so far.
const UPDATES: usize = 60;
/// Bytes printed between two updates: with the model's words half a kilobyte for each event on average.
const PRINTED_BYTES: usize = 93;
/// Events of a step besides the model's words and those updates.
const STEP_EVENTS: usize = 10;
/// Events of the last step, which says its answer in one piece and calls nothing.
const LAST_STEP_EVENTS: usize = 5;
/// The model's words at a time.
const WORDS: &str = "and then on ";
/// The plan is written again after this many steps.
const PLAN_EVERY: usize = 10;

/// The work that a prompt asks for.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Messages of the agent.
    pub messages: usize,
    /// Events of the whole run.
    pub events: usize,
    /// At most this many in a second.
    pub events_a_second: u32,
}

impl Work {
    /// Asked for by a line `long: MESSAGES EVENTS EVENTS_A_SECOND`.
    pub fn asked(text: &str) -> Option<Self> {
        let asked = text.lines().find_map(|line| line.strip_prefix("long: "))?;
        let mut numbers = asked.split(' ').map(str::parse);
        Some(Self {
            messages: numbers.next()?.ok()?,
            events: numbers.next()?.ok()?,
            events_a_second: u32::try_from(numbers.next()?.ok()?).ok()?,
        })
    }
}

/// The result of a run, piece by piece.
pub enum Piece {
    /// An event for the listeners: its kind and properties.
    Event(&'static str, Value),
    /// A message that is whole.
    Message(Value),
}

/// The run of one prompt.
pub struct Run<'a> {
    pub session: &'a str,
    pub prompt: &'a str,
    pub began_ms: u64,
}

impl Run<'_> {
    /// All of it, a step at a time.
    pub fn steps(&self, work: Work) -> impl Iterator<Item = Vec<Piece>> {
        let steps = work.messages.saturating_sub(1).max(1);
        let mut left = work.events.saturating_sub(LAST_STEP_EVENTS);
        let work = (0..steps).map(move |step| {
            let share = left / (steps - step);
            left -= share;
            self.step(step, share)
        });
        work.chain(std::iter::once_with(move || self.last(steps)))
    }

    fn last(&self, step: usize) -> Vec<Piece> {
        let whole = self.head(step, true, "stop");
        let parts = [
            self.part(step, 0, "step-start", json!({})),
            self.part(step, 1, "text", json!({"text": "All of it is done."})),
            self.step_finish(step),
        ];
        let mut pieces = vec![told("info", &self.head(step, false, ""))];
        pieces.extend(parts.iter().map(|part| told("part", part)));
        pieces.push(told("info", &whole));
        pieces.push(Piece::Message(json!({"info": whole, "parts": parts})));
        pieces
    }

    /// One step with this many events.
    fn step(&self, step: usize, events: usize) -> Vec<Piece> {
        let start = self.part(step, 0, "step-start", json!({}));
        let empty = self.part(step, 1, "text", json!({"text": ""}));
        let mut pieces = vec![
            Piece::Event("session.status", json!({"status": {"type": "busy"}})),
            told("info", &self.head(step, false, "")),
            told("part", &start),
            told("part", &empty),
        ];
        let said = events.saturating_sub(STEP_EVENTS + UPDATES);
        let delta = json!({"messageID": self.message_id(step), "partID": empty["id"], "field": "text", "delta": WORDS});
        let deltas = (0..said).map(|_| Piece::Event("message.part.delta", delta.clone()));
        pieces.extend(deltas);
        let text = self.part(step, 1, "text", json!({"text": WORDS.repeat(said)}));
        pieces.push(told("part", &text));
        let (tool, input) = match step % PLAN_EVERY {
            0 => ("todowrite", plan(step)),
            _ => (
                "bash",
                json!({"command": format!("cargo test --package part-{step} -- --nocapture"), "description": "Runs tests"}),
            ),
        };
        let call = |state: Value| {
            let call = format!("call_{step:012x}");
            let more = json!({"tool": tool, "callID": call, "state": state});
            self.part(step, 2, "tool", more)
        };
        let pending = json!({"status": "pending", "input": {}, "raw": ""});
        pieces.push(told("part", &call(pending)));
        let mut printed = String::new();
        for _ in 0..UPDATES {
            printed.push_str(&"x".repeat(PRINTED_BYTES - 1));
            printed.push('\n');
            let running = json!({"status": "running", "input": input, "metadata": {"output": printed}, "time": {"start": self.began_ms}});
            pieces.push(told("part", &call(running)));
        }
        let time = json!({"start": self.began_ms, "end": self.began_ms});
        let done = call(json!({"status": "completed", "input": input, "output": printed,
            "metadata": {"output": printed, "exit": 0, "truncated": false}, "title": "Runs tests", "time": time}));
        let finish = self.step_finish(step);
        let whole = self.head(step, true, "tool-calls");
        pieces.push(told("part", &done));
        pieces.push(told("part", &finish));
        // As seen: twice the same.
        pieces.extend([told("info", &whole), told("info", &whole)]);
        let parts = [start, text, done, finish];
        pieces.push(Piece::Message(json!({"info": whole, "parts": parts})));
        pieces
    }

    fn message_id(&self, step: usize) -> String {
        // In the order of time, as the real ones.
        format!("msg_{:012x}{step:04x}AAAAAAAAAA", self.began_ms)
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

    fn part(&self, step: usize, number: usize, kind: &str, mut more: Value) -> Value {
        more["id"] = json!(format!("prt_{:012x}{step:04x}AAAAAAAAA{number}", self.began_ms));
        more["messageID"] = json!(self.message_id(step));
        more["sessionID"] = json!(self.session);
        more["type"] = json!(kind);
        more
    }

    fn step_finish(&self, step: usize) -> Value {
        let tokens = json!({"total": 120, "input": 100, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}});
        let more = json!({"reason": "stop", "tokens": tokens, "cost": 0.01});
        self.part(step, 3, "step-finish", more)
    }
}

/// A message's head (`info`) or one of its parts (`part`) in its current state.
fn told(what: &str, value: &Value) -> Piece {
    let kind = match what {
        "info" => "message.updated",
        _ => "message.part.updated",
    };
    Piece::Event(kind, json!({ what: value }))
}

fn plan(step: usize) -> Value {
    let part = |at: usize| {
        let status = if at * PLAN_EVERY * 4 < step { "completed" } else { "pending" };
        json!({"content": format!("Part {at} of the work"), "priority": "high", "status": status})
    };
    json!({"todos": (0..5).map(part).collect::<Vec<_>>()})
}
