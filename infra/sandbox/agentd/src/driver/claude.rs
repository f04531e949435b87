//! Claude Code: `--input-format stream-json --output-format stream-json` with the control protocol, one process per
//! session.
//!
//! Measured with 2.1.332: a turn ends with a line `result`, also if it failed (`is_error`); the session's id comes with
//! the first line of each turn; `--resume` resumes a session.

use std::collections::{BTreeMap, HashMap};

use bobbin_agent_events::{Converted, TurnOutcome};
use serde_json::{Value, json};

use super::stdio::{AgentProtocol, ProtocolStep, keep_asks};
use super::{
    AgentLaunch, AgentReport, Handed, Order, loads_project_config, text, with_attachments,
};
use crate::process::Program;
use crate::state::{AskAnswer, PermissionMode, TurnEnd};

/// Id of the first control request.
const INITIALIZE: &str = "bobbin-initialize";
/// Text for the model on a refusal.
const REFUSED: &str = "The user refused this.";

pub(super) struct Claude {
    is_ready: bool,
    resumes: Option<String>,
    model: Option<String>,
    session_model: Option<String>,
    turn: Option<String>,
    is_cancelled: bool,
    /// Control requests so far.
    requests: u64,
    /// Pending requests of the agent, by ask id.
    asks: HashMap<String, Value>,
}

impl Claude {
    pub(super) fn new(launch: &AgentLaunch) -> Self {
        Self {
            is_ready: false,
            resumes: launch.agent_session.clone(),
            model: launch.created.model.clone(),
            session_model: launch.created.model.clone(),
            turn: None,
            is_cancelled: false,
            requests: 0,
            asks: HashMap::new(),
        }
    }

    fn control(&mut self, request: Value) -> ProtocolStep {
        self.requests += 1;
        let id = format!("bobbin-{}", self.requests);
        ProtocolStep::Say(json!({"type": "control_request", "request_id": id, "request": request}))
    }

    fn prompt(&mut self, handed: Handed) -> Vec<ProtocolStep> {
        let prompt = &handed.prompt;
        let mut steps = Vec::new();
        let wanted = prompt.model.clone().or(self.session_model.clone());
        if wanted != self.model {
            let request = json!({"subtype": "set_model", "model": wanted});
            steps.push(self.control(request));
            self.model = wanted;
        }
        let mut content = vec![json!({"type": "text", "text": with_attachments(prompt)})];
        content.extend(handed.images.iter().map(|image| {
            let source =
                json!({"type": "base64", "media_type": image.media_type, "data": image.base64});
            json!({"type": "image", "source": source})
        }));
        let message = json!({"role": "user", "content": content});
        steps.push(ProtocolStep::Say(json!({"type": "user", "message": message})));
        self.turn = Some(handed.turn);
        self.is_cancelled = false;
        steps
    }

    fn answer(&mut self, ask: &str, answer: &AskAnswer) -> Vec<ProtocolStep> {
        let Some(line) = self.asks.remove(ask) else {
            return Vec::new();
        };
        let request = &line["request"];
        let allow = |input: Value| json!({"behavior": "allow", "updatedInput": input});
        let response = match answer {
            AskAnswer::Once => allow(request["input"].clone()),
            AskAnswer::Always => {
                let mut allowed = allow(request["input"].clone());
                allowed["updatedPermissions"] = request["permission_suggestions"].clone();
                allowed
            }
            AskAnswer::Answers(answers) => allow(answered(&request["input"], answers)),
            AskAnswer::Reject | AskAnswer::Declined => {
                json!({"behavior": "deny", "message": REFUSED})
            }
        };
        let response = json!({
            "subtype": "success", "request_id": line["request_id"], "response": response,
        });
        vec![ProtocolStep::Say(json!({"type": "control_response", "response": response}))]
    }

    fn ended(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        let Some(turn) = self.turn.take() else {
            return Vec::new();
        };
        self.asks.clear();
        let said = text(raw, "/result").or_else(|| text(raw, "/errors/0"));
        let has_failed = raw["is_error"] == json!(true) || text(raw, "/subtype") != Some("success");
        let ended = if self.is_cancelled {
            TurnEnd::of(TurnOutcome::Cancelled, "interrupted", None)
        } else if has_failed {
            let said = said.unwrap_or("the agent failed").to_owned();
            TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said))
        } else {
            let reason = text(raw, "/stop_reason").unwrap_or("end_turn");
            TurnEnd::of(TurnOutcome::Done, reason, None)
        };
        vec![ProtocolStep::Report(AgentReport::Ended { turn, ended })]
    }
}

/// The input of the question tool with its answers: labels by question text.
fn answered(input: &Value, answers: &[Vec<String>]) -> Value {
    let questions = input["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let by_question: serde_json::Map<String, Value> = questions
        .iter()
        .zip(answers)
        .filter_map(|(question, labels)| {
            let question = text(question, "/question")?.to_owned();
            Some((question, json!(labels.join(", "))))
        })
        .collect();
    let mut input = input.clone();
    input["answers"] = Value::Object(by_question);
    input
}

impl AgentProtocol for Claude {
    fn program(&self, launch: &AgentLaunch) -> Program {
        let mut arguments = launch.agent.arguments.clone();
        arguments.extend(
            [
                "--print",
                "--output-format",
                "stream-json",
                "--input-format",
                "stream-json",
                "--permission-prompt-tool",
                "stdio",
                "--include-partial-messages",
                "--replay-user-messages",
                "--verbose",
            ]
            .map(str::to_owned),
        );
        let plans = launch.created.permission_mode == PermissionMode::Plan
            || launch.created.agent_mode.as_deref() == Some("plan");
        let options = [
            ("--resume", self.resumes.as_deref()),
            ("--model", self.model.as_deref()),
            ("--permission-mode", plans.then_some("plan")),
            ("--append-system-prompt", launch.created.instructions.as_deref()),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                arguments.extend([name.to_owned(), value.to_owned()]);
            }
        }
        if !loads_project_config() {
            let own = ["--setting-sources", "user", "--strict-mcp-config"];
            arguments.extend(own.map(str::to_owned));
        }
        // Updates belong to the image; telemetry is off.
        let environment = ["DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
            .map(|name| (name.to_owned(), "1".to_owned()));
        Program {
            path: launch.agent.path.clone(),
            arguments,
            environment: BTreeMap::from(environment),
            directory: launch.created.directory.clone().into(),
        }
    }

    fn hello(&mut self) -> Vec<ProtocolStep> {
        let request = json!({"subtype": "initialize"});
        let line = json!({"type": "control_request", "request_id": INITIALIZE, "request": request});
        vec![ProtocolStep::Say(line)]
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn order(&mut self, order: Order) -> Vec<ProtocolStep> {
        match order {
            Order::Prompt(handed) => self.prompt(handed),
            Order::Answer { ask, answer } => self.answer(ask.id(), &answer),
            Order::Cancel => {
                self.is_cancelled = true;
                vec![self.control(json!({"subtype": "interrupt"}))]
            }
        }
    }

    fn heard(&mut self, raw: &Value, made: &[Converted]) -> Vec<ProtocolStep> {
        keep_asks(&mut self.asks, raw, made);
        match text(raw, "/type") {
            Some("control_response") if text(raw, "/response/request_id") == Some(INITIALIZE) => {
                self.is_ready = true;
                let agent_session = self.resumes.clone();
                vec![ProtocolStep::Report(AgentReport::Ready { agent_session })]
            }
            Some("system") if text(raw, "/subtype") == Some("init") => {
                let id = text(raw, "/session_id").map(str::to_owned);
                id.map(|id| ProtocolStep::Report(AgentReport::AgentSession(id)))
                    .into_iter()
                    .collect()
            }
            Some("result") => self.ended(raw),
            _ => Vec::new(),
        }
    }
}
