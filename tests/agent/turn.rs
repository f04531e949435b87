//! The run of one prompt: the model is asked, its words and calls are reported as they happen, and it is asked again
//! with the tools' results, until it calls none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bobbin_agent::Sse;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::session::Prompt;
use crate::snapshots::Snapshots;
use crate::tools::{self, Call, DISMISSED, Done, REJECTED};
use crate::{Agent, now_ms};

/// One answer of the model.
const MODEL_MS_MAX: u64 = 180_000;
/// The real one reports nothing for this long after it has taken a prompt: by then the sender listens.
const BEGIN_MS: u64 = 200;
/// Steps after which a model that always calls a tool is given up.
const STEPS_MAX: usize = 200;

/// A person's decision on an ask.
pub enum Reply {
    /// A permission: `once`, `always` or `reject`.
    Permission(String),
    /// The answers to questions; `None`: they were dismissed.
    Answers(Option<Vec<Vec<String>>>),
}

/// An answer of the model.
#[derive(Default)]
struct Said {
    text: String,
    call: Option<Call>,
    finish: Option<String>,
    usage: Value,
}

/// How a step went.
enum Ended {
    /// There is more to do: the call and the tool's result.
    Called(Call, String),
    /// It was the last one.
    Last,
}

/// One step of a run: a message of the agent.
struct Step<'a> {
    agent: &'a Arc<Agent>,
    session: &'a str,
    info: Value,
    parts: Vec<Value>,
}

impl Agent {
    /// Runs a prompt to its end.
    pub async fn follow(self: &Arc<Self>, session: &str, prompt: &Prompt) {
        let begin = Duration::from_millis(BEGIN_MS);
        self.heard(begin / 10).await;
        sleep(begin).await;
        let project = self.directory_of(session);
        let snapshots = Snapshots::of(&project, self.data.as_deref());
        let mut content = vec![json!({"type": "text", "text": prompt.text})];
        let image = |url: &String| json!({"type": "image_url", "image_url": {"url": url}});
        content.extend(prompt.images.iter().map(image));
        let mut history = vec![
            json!({"role": "system", "content": prompt.system}),
            json!({"role": "user", "content": content}),
        ];
        // The tree before the first tool, and after the last step.
        let (mut first, mut last) = (None, None);
        for _ in 0..STEPS_MAX {
            let mut step = Step::begin(self, session, prompt, &project);
            let said = match step.ask(prompt, &history).await {
                Ok(said) => said,
                Err(error) => return step.fail(&error),
            };
            if said.call.is_some()
                && first.is_none()
                && let Some(snapshots) = &snapshots
            {
                first = snapshots.now().await;
                last = first.clone();
            }
            let usage = said.usage.clone();
            let finish = said.finish.clone();
            let ended = match said.call {
                Some(call) => step.call(call, &project).await,
                None => Ended::Last,
            };
            let mut changed = Vec::new();
            if let (Some(snapshots), Some(before)) = (&snapshots, &last)
                && let Some(now) = snapshots.now().await
            {
                changed = snapshots.paths(before, &now).await;
                last = Some(now);
            }
            if let (Some(snapshots), Some(first), Some(last)) = (&snapshots, &first, &last) {
                let sum = snapshots.sum(first, last).await;
                if let Some(session) = self.sessions().get_mut(session) {
                    session.changed.insert(prompt.id.clone(), sum);
                }
            }
            step.finish(&finish.unwrap_or_else(|| "unknown".to_owned()), &usage, &changed);
            let Ended::Called(call, answer) = ended else {
                return;
            };
            history.push(json!({"role": "assistant", "content": "", "tool_calls": [{
                "id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments},
            }]}));
            history.push(json!({"role": "tool", "tool_call_id": call.id, "content": answer}));
        }
    }

    /// Where a session works.
    fn directory_of(&self, session: &str) -> PathBuf {
        let sessions = self.sessions();
        let directory = sessions.get(session).and_then(|one| one.info["directory"].as_str());
        directory.map_or_else(|| self.directory.clone(), PathBuf::from)
    }
}

impl<'a> Step<'a> {
    fn begin(agent: &'a Arc<Agent>, session: &'a str, prompt: &Prompt, project: &Path) -> Self {
        let number = agent.sessions().get(session).map_or(0, |one| one.messages.len());
        let info = json!({
            "id": format!("{}-answer-{number}", prompt.id), "sessionID": session, "role": "assistant", "parentID": prompt.id,
            "providerID": prompt.provider, "modelID": prompt.model, "mode": "build", "agent": "build", "cost": 0, "time": {"created": now_ms()},
            "path": {"cwd": project, "root": project},
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        });
        let mut step = Self { agent, session, info, parts: Vec::new() };
        step.tell("session.status", json!({"status": {"type": "busy"}}));
        step.keep();
        step.tell_info();
        step.add("step-start", json!({}));
        step
    }

    fn tell(&self, kind: &str, mut properties: Value) {
        properties["sessionID"] = self.session.into();
        self.agent.tell(kind, properties);
    }

    fn tell_info(&self) {
        self.tell("message.updated", json!({"info": self.info}));
    }

    /// Stores the message in the list.
    fn keep(&self) {
        let message = json!({"info": self.info, "parts": self.parts});
        self.agent.keep(self.session, message);
    }

    /// Adds and reports a new part; returns its place.
    fn add(&mut self, kind: &str, mut part: Value) -> usize {
        let place = self.parts.len();
        let message = self.info["id"].as_str().unwrap_or_default();
        part["id"] = format!("{message}-{place}").into();
        part["sessionID"] = self.session.into();
        part["messageID"] = message.into();
        part["type"] = kind.into();
        self.parts.push(part);
        self.updated(place);
        place
    }

    fn updated(&self, place: usize) {
        self.keep();
        let part = &self.parts[place];
        self.tell("message.part.updated", json!({"part": part, "time": now_ms()}));
    }

    /// Asks the model and reports its words as they come.
    async fn ask(&mut self, prompt: &Prompt, history: &[Value]) -> Result<Said, Value> {
        let body = json!({
            "model": prompt.model, "messages": history, "stream": true, "stream_options": {"include_usage": true},
            "tools": tools::offered(),
        });
        let sent = self
            .agent
            .client
            .post(&self.agent.model_url)
            .header("x-session-id", self.session)
            .timeout(Duration::from_millis(MODEL_MS_MAX))
            .json(&body)
            .send();
        let broke = |error: reqwest::Error| failure(&error.to_string(), None);
        let mut answer = sent.await.map_err(broke)?;
        let status = answer.status().as_u16();
        if status != 200 {
            let told: Value = answer.json().await.unwrap_or_default();
            let words = told["error"]["message"].as_str().unwrap_or("Unknown error").to_owned();
            return Err(failure(&words, Some(status)));
        }
        let (mut sse, mut said, mut text) = (Sse::default(), Said::default(), None);
        while let Some(bytes) = answer.chunk().await.map_err(broke)? {
            let events = sse.push(&bytes).map_err(|error| failure(&error.to_string(), None))?;
            for chunk in events.iter().filter_map(|event| serde_json::from_str(event).ok()) {
                self.take(&chunk, &mut said, &mut text);
            }
        }
        if let Some(place) = text {
            self.parts[place]["text"] = said.text.as_str().into();
            self.parts[place]["time"]["end"] = now_ms().into();
            self.updated(place);
        }
        Ok(said)
    }

    fn take(&mut self, chunk: &Value, said: &mut Said, text: &mut Option<usize>) {
        if chunk["usage"].is_object() {
            said.usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        if let Some(finish) = choice["finish_reason"].as_str() {
            said.finish = Some(finish.replace('_', "-"));
        }
        let words = choice["delta"]["content"].as_str().unwrap_or_default();
        if !words.is_empty() {
            let place = *text.get_or_insert_with(|| {
                self.add("text", json!({"text": "", "time": {"start": now_ms()}}))
            });
            said.text.push_str(words);
            if let Some(session) = self.agent.sessions().get_mut(self.session) {
                session.said.clone_from(&said.text);
            }
            let (message, part) = (&self.info["id"], &self.parts[place]["id"]);
            self.tell(
                "message.part.delta",
                json!({"messageID": message, "partID": part, "field": "text", "delta": words}),
            );
        }
        for delta in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let call = said.call.get_or_insert_default();
            let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            call.id.push_str(&field(&delta["id"]));
            call.tool.push_str(&field(&delta["function"]["name"]));
            call.arguments.push_str(&field(&delta["function"]["arguments"]));
        }
    }

    /// Makes the model's call. A person who says no ends the run.
    async fn call(&mut self, call: Call, project: &Path) -> Ended {
        let input = call.input();
        let pending = json!({"status": "pending", "input": {}, "raw": ""});
        let place =
            self.add("tool", json!({"tool": call.tool, "callID": call.id, "state": pending}));
        let start = now_ms();
        self.parts[place]["state"] =
            json!({"status": "running", "input": input, "time": {"start": start}});
        self.updated(place);
        let done = self.allowed(&call, project).await;
        let done = match done {
            Err(refused) => Err(refused),
            Ok(()) => self.done(place, &call, &input, project).await,
        };
        let time = json!({"start": start, "end": now_ms()});
        let (state, ended) = match done {
            Ok(Done { output, title, metadata }) => (
                json!({"status": "completed", "input": input, "output": output, "title": title, "metadata": metadata, "time": time}),
                Ended::Called(call, output),
            ),
            Err(error) => {
                let ended = if [REJECTED, DISMISSED].contains(&error.as_str()) {
                    Ended::Last
                } else {
                    Ended::Called(call, error.clone())
                };
                (json!({"status": "error", "input": input, "error": error, "time": time}), ended)
            }
        };
        self.parts[place]["state"] = state;
        self.updated(place);
        ended
    }

    async fn done(
        &mut self,
        place: usize,
        call: &Call,
        input: &Value,
        project: &Path,
    ) -> Result<Done, String> {
        match call.tool.as_str() {
            "bash" => {
                self.parts[place]["state"]["metadata"] = json!({"output": ""});
                self.updated(place);
                tools::command(input, project).await
            }
            "write" => tools::write(input, project),
            "todowrite" => {
                self.tell("todo.updated", json!({"todos": input["todos"]}));
                Ok(tools::plan(input))
            }
            "question" => {
                let asked = json!({"questions": input["questions"]});
                match self.asked("question", asked, call).await {
                    Some(Reply::Answers(Some(answers))) => Ok(tools::answered(input, &answers)),
                    _ => Err(DISMISSED.to_owned()),
                }
            }
            other => Err(format!("There is no tool {other}.")),
        }
    }

    /// Waits for the permission that a call needs.
    async fn allowed(&self, call: &Call, project: &Path) -> Result<(), String> {
        let Some(needed) = tools::permission(call, project) else {
            return Ok(());
        };
        let pattern = needed["always"][0].as_str().unwrap_or_default().to_owned();
        if self.agent.is_allowed(&pattern) {
            return Ok(());
        }
        match self.asked("permission", needed, call).await {
            Some(Reply::Permission(reply)) if reply == "once" => Ok(()),
            Some(Reply::Permission(reply)) if reply == "always" => {
                self.agent.allow(pattern);
                Ok(())
            }
            _ => Err(REJECTED.to_owned()),
        }
    }

    /// Asks a person and waits for the decision.
    async fn asked(&self, kind: &str, mut ask: Value, call: &Call) -> Option<Reply> {
        ask["sessionID"] = self.session.into();
        ask["tool"] = json!({"messageID": self.info["id"], "callID": call.id});
        let (reply, replied) = oneshot::channel();
        let ask = self.agent.ask(kind, ask, reply);
        self.tell(&format!("{kind}.asked"), ask);
        replied.await.ok()
    }

    fn finish(mut self, reason: &str, usage: &Value, changed: &[String]) {
        let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
        let tokens = json!({
            "total": tokens("total_tokens"), "input": tokens("prompt_tokens"), "output": tokens("completion_tokens"),
            "reasoning": 0, "cache": {"read": 0, "write": 0},
        });
        self.add("step-finish", json!({"reason": reason, "cost": 0, "tokens": tokens}));
        if !changed.is_empty() {
            self.add("patch", json!({"files": changed}));
        }
        self.info["tokens"] = tokens;
        self.info["finish"] = reason.into();
        self.ended();
    }

    /// The model has not answered.
    fn fail(mut self, error: &Value) {
        self.parts.clear();
        self.info["error"] = error.clone();
        self.tell("session.error", json!({"error": error}));
        self.ended();
    }

    fn ended(mut self) {
        self.info["time"]["completed"] = now_ms().into();
        self.keep();
        self.tell_info();
        self.agent.save();
    }
}

fn failure(words: &str, status: Option<u16>) -> Value {
    let mut data = json!({"message": words, "isRetryable": false});
    if let Some(status) = status {
        data["statusCode"] = status.into();
    }
    json!({"name": "APIError", "data": data})
}
