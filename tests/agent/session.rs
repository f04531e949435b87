//! The server's knowledge of a session, which it keeps in a file as the real one does in its database: a restarted
//! server has the earlier messages, and continues no run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::now_ms;

/// The output of a command that was stopped.
const STOPPED: &str = "\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";

/// A prompt that waits or runs.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Id of its message.
    pub id: String,
    pub provider: String,
    pub model: String,
    pub system: String,
    /// Its first part: a person's words.
    pub text: String,
    /// Addresses of its images.
    pub images: Vec<String>,
}

/// A conversation.
#[derive(Default, Serialize, Deserialize)]
pub struct Session {
    pub info: Value,
    pub messages: Vec<Value>,
    /// The changed files of each prompt's run, by the prompt's id.
    pub changed: BTreeMap<String, Value>,
    #[serde(skip)]
    pub prompts: Vec<Prompt>,
    /// The task that works on the prompts, to be aborted by a stop.
    #[serde(skip)]
    pub run: Option<AbortHandle>,
    /// The model's words so far in the part that it is writing.
    #[serde(skip)]
    pub said: String,
}

impl Session {
    /// The messages are listed in the order of their times: this one's is now.
    pub fn moved_to_now(&mut self, message: &str) {
        if let Some(at) = self.place_of(message) {
            let mut moved = self.messages.remove(at);
            moved["info"]["time"]["created"] = now_ms().into();
            self.messages.push(moved);
        }
    }

    /// Replaces the earlier version.
    pub fn keep(&mut self, message: Value) {
        let id = message["info"]["id"].as_str().unwrap_or_default();
        match self.place_of(id) {
            Some(at) => self.messages[at] = message,
            None => self.messages.push(message),
        }
    }

    pub fn place_of(&self, message: &str) -> Option<usize> {
        let is_it = |one: &Value| one["info"]["id"] == message;
        self.messages.iter().position(is_it)
    }

    /// Whether no prompt came after this one.
    pub fn is_newest(&self, message: &str) -> bool {
        let mut prompts = self.messages.iter().filter(|one| one["info"]["role"] == "user");
        prompts.next_back().is_some_and(|one| one["info"]["id"] == message)
    }

    /// Whether this prompt has its whole answer, waits for it, or gets it at this moment.
    pub fn is_taken(&self, prompt: &str) -> bool {
        let answers = |one: &&Value| one["info"]["parentID"] == prompt;
        let last = self.messages.iter().rfind(answers);
        let is_whole = |one: &Value| !one["info"]["time"]["completed"].is_null();
        self.prompts.iter().any(|one| one.id == prompt) || last.is_some_and(is_whole)
    }

    /// Ends the part that is being written, like a stop, and names its message: its words stay, its tool did not end.
    pub fn break_off(&mut self) -> Option<Value> {
        let is_open = |one: &&mut Value| {
            one["info"]["role"] == "assistant" && one["info"]["time"]["completed"].is_null()
        };
        let now = now_ms();
        let said = std::mem::take(&mut self.said);
        let message = self.messages.iter_mut().rev().find(is_open)?;
        message["info"]["time"]["completed"] = now.into();
        message["info"]["error"] = aborted();
        for part in message["parts"].as_array_mut().into_iter().flatten() {
            if part["type"] == "text" && part["time"]["end"].is_null() {
                part["text"] = said.as_str().into();
                part["time"]["end"] = now.into();
            }
            if part["type"] != "tool" || !part["state"]["time"]["end"].is_null() {
                continue;
            }
            let state = &mut part["state"];
            // A command that has begun has printed something, be it nothing.
            if state["metadata"]["output"].is_string() {
                state["status"] = "completed".into();
                state["output"] = STOPPED.into();
                state["title"] = state["input"]["command"].clone();
                state["metadata"] = json!({"output": "", "exit": null, "truncated": false});
            } else {
                state["status"] = "error".into();
                state["error"] = "Tool execution aborted".into();
                state["metadata"] = json!({"interrupted": true});
            }
            state["time"]["end"] = now.into();
        }
        Some(message.clone())
    }
}

/// The error of a message that was stopped.
pub fn aborted() -> Value {
    json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}})
}

/// The sessions' file, which outlives the server; nothing is kept without a home folder.
pub struct Store(Option<PathBuf>);

impl Store {
    /// A file in the folder where the real one has its database.
    pub fn below(data: Option<&Path>) -> Self {
        Self(data.map(|folder| folder.join("stand-in.json")))
    }

    /// The earlier server's sessions.
    pub fn read(&self) -> BTreeMap<String, Session> {
        let file = self.0.as_ref().and_then(|file| std::fs::read(file).ok());
        file.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// A full disk keeps the earlier file.
    pub fn write(&self, sessions: &BTreeMap<String, Session>) {
        let (Some(file), Ok(text)) = (&self.0, serde_json::to_vec(sessions)) else {
            return;
        };
        let beside = file.with_extension("new");
        let _ = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file));
    }
}
