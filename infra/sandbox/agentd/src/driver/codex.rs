//! Codex: `codex app-server` on standard input and output, one process per session.
//!
//! Measured with 0.169.0: JSON-RPC without its version field; a thread is a session, stored below `CODEX_HOME`; a turn
//! ends with `turn/completed`, whose turn has the outcome; only one process at a time may have a thread.

use std::collections::{BTreeMap, HashMap};

use bobbin_agent_events::{Converted, TurnOutcome};
use serde_json::{Value, json};

use super::stdio::{AgentProtocol, ProtocolStep, keep_asks, not_offered};
use super::{
    AgentLaunch, AgentReport, Down, Handed, Order, loads_project_config, refused, text,
    with_attachments,
};
use crate::process::Program;
use crate::state::{AskAnswer, PermissionMode, TurnEnd};

/// Keeps Codex from offering a repository's skills to its model (measured with 0.169.0); those in its home are left out
/// too.
const NO_SKILLS: &str = "skills.include_instructions=false";
const INITIALIZE: u64 = 1;
const THREAD: u64 = 2;

pub(super) struct Codex {
    directory: String,
    permission_mode: PermissionMode,
    plans: bool,
    model: Option<String>,
    instructions: Option<String>,
    resumes: Option<String>,
    thread: Option<String>,
    /// Id of the last request.
    requests: u64,
    turn: Option<CodexTurn>,
    asks: HashMap<String, Value>,
}

struct CodexTurn {
    turn: String,
    request: u64,
    /// Codex's own id of it.
    id: Option<String>,
    is_cancelled: bool,
}

impl Codex {
    pub(super) fn new(launch: &AgentLaunch) -> Self {
        let created = &launch.created;
        Self {
            directory: created.directory.clone(),
            permission_mode: created.permission_mode,
            plans: created.permission_mode == PermissionMode::Plan
                || created.agent_mode.as_deref() == Some("plan"),
            model: created.model.clone(),
            instructions: created.instructions.clone(),
            resumes: launch.agent_session.clone(),
            thread: None,
            requests: THREAD,
            turn: None,
            asks: HashMap::new(),
        }
    }

    fn request(&mut self, method: &str, params: Value) -> (u64, ProtocolStep) {
        self.requests += 1;
        let id = self.requests;
        (id, ProtocolStep::Say(json!({"id": id, "method": method, "params": params})))
    }

    /// Starts or resumes a thread.
    fn open(&self) -> Vec<ProtocolStep> {
        let (policy, sandbox) = match self.permission_mode {
            PermissionMode::Bypass => ("never", "danger-full-access"),
            _ if self.plans => ("on-request", "read-only"),
            PermissionMode::Default | PermissionMode::Plan => ("on-request", "workspace-write"),
        };
        let mut params = json!({
            "cwd": self.directory, "approvalPolicy": policy, "sandbox": sandbox,
        });
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        if let Some(instructions) = &self.instructions {
            params["developerInstructions"] = json!(instructions);
        }
        let method = match &self.resumes {
            Some(thread) => {
                params["threadId"] = json!(thread);
                // Earlier turns are in the log.
                params["excludeTurns"] = json!(true);
                "thread/resume"
            }
            None => "thread/start",
        };
        vec![
            ProtocolStep::Say(json!({"method": "initialized"})),
            ProtocolStep::Say(json!({"id": THREAD, "method": method, "params": params})),
        ]
    }

    fn prompt(&mut self, handed: Handed) -> Vec<ProtocolStep> {
        let Handed { turn, prompt, images, .. } = handed;
        let mut input = vec![json!({"type": "text", "text": with_attachments(&prompt)})];
        let images = images.iter();
        input.extend(images.map(|image| json!({"type": "localImage", "path": image.file.path})));
        let mut params = json!({
            "threadId": self.thread,
            "clientUserMessageId": turn,
            "input": input,
        });
        if let Some(model) = &prompt.model {
            params["model"] = json!(model);
        }
        let (request, step) = self.request("turn/start", params);
        self.turn = Some(CodexTurn { turn, request, id: None, is_cancelled: false });
        vec![step]
    }

    fn interrupt(&mut self) -> Vec<ProtocolStep> {
        let id = self.turn.as_ref().and_then(|turn| turn.id.clone());
        let Some(id) = id else {
            // Its id comes with the answer to its start; it is interrupted then.
            return Vec::new();
        };
        let params = json!({"threadId": self.thread, "turnId": id});
        vec![self.request("turn/interrupt", params).1]
    }

    fn end(&mut self, ended: TurnEnd) -> Vec<ProtocolStep> {
        self.asks.clear();
        let turn = self.turn.take().map(|running| running.turn);
        let report = turn.map(|turn| AgentReport::Ended { turn, ended });
        report.map(ProtocolStep::Report).into_iter().collect()
    }

    fn answered(&mut self, id: u64, raw: &Value) -> Vec<ProtocolStep> {
        let error = refused(raw);
        match id {
            INITIALIZE => self.open(),
            THREAD => match (text(raw, "/result/thread/id"), error) {
                (Some(thread), _) => {
                    self.thread = Some(thread.to_owned());
                    let agent_session = Some(thread.to_owned());
                    vec![ProtocolStep::Report(AgentReport::Ready { agent_session })]
                }
                (None, error) => vec![ProtocolStep::GiveUp(Down {
                    kind: "stream_error",
                    message: format!(
                        "Codex has no thread: {}",
                        error.unwrap_or_else(|| "no reason given".to_owned())
                    ),
                })],
            },
            _ if self.turn.as_ref().is_some_and(|turn| turn.request == id) => match error {
                Some(error) => {
                    self.end(TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(error)))
                }
                None => self.started(raw),
            },
            _ => Vec::new(),
        }
    }

    fn started(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        let Some(running) = &mut self.turn else {
            return Vec::new();
        };
        running.id = text(raw, "/result/turn/id").map(str::to_owned);
        if running.is_cancelled {
            return self.interrupt();
        }
        Vec::new()
    }

    fn completed(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        let is_ours = self.turn.as_ref().is_some_and(|turn| {
            turn.id.is_none() || turn.id.as_deref() == text(raw, "/params/turn/id")
        });
        if !is_ours {
            return Vec::new();
        }
        let status = text(raw, "/params/turn/status").unwrap_or("");
        let ended = match status {
            "completed" => TurnEnd::of(TurnOutcome::Done, status, None),
            "interrupted" => TurnEnd::of(TurnOutcome::Cancelled, status, None),
            _ => {
                let said = text(raw, "/params/turn/error/message").unwrap_or("the agent failed");
                TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said.to_owned()))
            }
        };
        self.end(ended)
    }

    fn answer(&mut self, ask: &str, answer: &AskAnswer) -> Vec<ProtocolStep> {
        let Some(request) = self.asks.remove(ask) else {
            return Vec::new();
        };
        let result = match answer {
            AskAnswer::Once => json!({"decision": "accept"}),
            AskAnswer::Always => json!({"decision": always(&request)}),
            AskAnswer::Reject => json!({"decision": "decline"}),
            AskAnswer::Answers(answers) => json!({"answers": by_id(&request, answers)}),
            AskAnswer::Declined => json!({"answers": {}}),
        };
        vec![ProtocolStep::Say(json!({"id": request["id"], "result": result}))]
    }
}

/// Keeps Codex from trusting these directories, which it does automatically where it may write (measured with 0.169.0):
/// a trusted one's configuration is loaded. A worktree's repository is in the daemon's own.
fn untrusted(directory: &str) -> String {
    let own = std::env::current_dir().unwrap_or_default();
    let own = own.to_string_lossy();
    let directories = std::collections::BTreeSet::from([directory, &*own]);
    // A TOML basic string has the same escapes as a JSON string.
    let each =
        directories.into_iter().map(|one| format!("{}={{trust_level=\"untrusted\"}}", json!(one)));
    format!("projects={{{}}}", each.collect::<Vec<_>>().join(","))
}

/// Allows similar requests from now on, if the request offers that.
fn always(request: &Value) -> Value {
    let offered = request["params"]["availableDecisions"].as_array();
    let amendment = offered
        .into_iter()
        .flatten()
        .find(|decision| decision.get("acceptWithExecpolicyAmendment").is_some());
    amendment.cloned().unwrap_or(json!("acceptForSession"))
}

/// Answers by question id.
fn by_id(request: &Value, answers: &[Vec<String>]) -> Value {
    let questions = request["params"]["questions"].as_array();
    let by_id = questions
        .into_iter()
        .flatten()
        .zip(answers)
        .filter_map(|(question, labels)| {
            Some((text(question, "/id")?.to_owned(), json!({"answers": labels})))
        })
        .collect();
    Value::Object(by_id)
}

impl AgentProtocol for Codex {
    fn program(&self, launch: &AgentLaunch) -> Program {
        let mut arguments = launch.agent.arguments.clone();
        if !loads_project_config() {
            // Skills are offered even in an untrusted directory.
            let own = [untrusted(&launch.created.directory), NO_SKILLS.to_owned()];
            arguments.extend(own.into_iter().flat_map(|one| ["-c".to_owned(), one]));
        }
        arguments.push("app-server".to_owned());
        Program {
            path: launch.agent.path.clone(),
            arguments,
            environment: BTreeMap::new(),
            directory: launch.created.directory.clone().into(),
        }
    }

    fn hello(&mut self) -> Vec<ProtocolStep> {
        let client =
            json!({"name": "bobbin", "title": "Bobbin", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"clientInfo": client});
        vec![ProtocolStep::Say(json!({"id": INITIALIZE, "method": "initialize", "params": params}))]
    }

    fn is_ready(&self) -> bool {
        self.thread.is_some()
    }

    fn order(&mut self, order: Order) -> Vec<ProtocolStep> {
        match order {
            Order::Prompt(handed) => self.prompt(handed),
            Order::Answer { ask, answer } => self.answer(ask.id(), &answer),
            Order::Cancel => {
                if let Some(running) = &mut self.turn {
                    running.is_cancelled = true;
                }
                self.interrupt()
            }
        }
    }

    fn heard(&mut self, raw: &Value, made: &[Converted]) -> Vec<ProtocolStep> {
        let is_ask = keep_asks(&mut self.asks, raw, made);
        let id = raw.get("id");
        match (text(raw, "/method"), id) {
            (None, Some(id)) => id.as_u64().map_or(Vec::new(), |id| self.answered(id, raw)),
            (Some(method), Some(id)) if !is_ask => {
                vec![ProtocolStep::Say(json!({"id": id, "error": not_offered(method)}))]
            }
            (Some("turn/completed"), _) => self.completed(raw),
            _ => Vec::new(),
        }
    }
}
