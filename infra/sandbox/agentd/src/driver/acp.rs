//! Any agent that speaks the Agent Client Protocol, version 1, on its standard input and output: one process per
//! session.
//!
//! File system and terminals are not offered: the agent works on the sandbox's own disk.

use std::collections::{BTreeMap, HashMap};

use bobbin_agent_events::{Converted, TurnOutcome};
use serde_json::{Value, json};

use super::stdio::{AgentProtocol, ProtocolStep, keep_asks, not_offered};
use super::{AgentLaunch, AgentReport, Down, Handed, Order, refused, text};
use crate::process::Program;
use crate::state::{AskAnswer, PermissionMode, PromptAttachment, TurnEnd, WaitingAsk};

const VERSION: u64 = 1;
const INITIALIZE: &str = "bobbin-initialize";
const SESSION: &str = "bobbin-session";
const SETTING: &str = "bobbin-setting";

pub(super) struct Acp {
    agent: String,
    directory: String,
    model: Option<String>,
    /// Id of the requested mode.
    mode: Option<String>,
    resumes: Option<String>,
    /// The agent's session, known once it has answered.
    session: Option<String>,
    is_ready: bool,
    takes_images: bool,
    /// Earlier messages are being repeated; they are already in the log.
    is_replaying: bool,
    /// Settings without an answer yet.
    settings: u64,
    turn: Option<String>,
    asks: HashMap<String, Value>,
}

impl Acp {
    pub(super) fn new(launch: &AgentLaunch) -> Self {
        let created = &launch.created;
        let plans = created.permission_mode == PermissionMode::Plan;
        Self {
            agent: launch.agent.id.clone(),
            directory: created.directory.clone(),
            model: created.model.clone(),
            mode: created.agent_mode.clone().or(plans.then(|| "plan".to_owned())),
            resumes: launch.agent_session.clone(),
            session: None,
            is_ready: false,
            takes_images: false,
            is_replaying: false,
            settings: 0,
            turn: None,
            asks: HashMap::new(),
        }
    }

    fn request(id: &str, method: &str, params: Value) -> ProtocolStep {
        ProtocolStep::Say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    fn initialized(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        if raw["result"]["protocolVersion"] != json!(VERSION) {
            let spoken = &raw["result"]["protocolVersion"];
            return vec![ProtocolStep::GiveUp(Down {
                kind: "stream_error",
                message: format!(
                    "{} speaks version {spoken} of the protocol, not {VERSION}",
                    self.agent
                ),
            })];
        }
        let can = &raw["result"]["agentCapabilities"];
        self.takes_images = can["promptCapabilities"]["image"] == json!(true);
        let mut params = json!({"cwd": self.directory, "mcpServers": []});
        let method = match &self.resumes {
            None => "session/new",
            Some(session) => {
                params["sessionId"] = json!(session);
                if can["sessionCapabilities"]["resume"].is_object() {
                    "session/resume"
                } else if can["loadSession"] == json!(true) {
                    self.is_replaying = true;
                    "session/load"
                } else {
                    return vec![ProtocolStep::GiveUp(Down {
                        kind: "stream_error",
                        message: format!(
                            "{} cannot resume an earlier session; create a new one",
                            self.agent
                        ),
                    })];
                }
            }
        };
        vec![Self::request(SESSION, method, params)]
    }

    fn opened(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        self.is_replaying = false;
        let session = text(raw, "/result/sessionId").map(str::to_owned);
        let session = session.or(self.resumes.clone().filter(|_| raw.get("result").is_some()));
        let Some(session) = session else {
            let said = refused(raw).unwrap_or_else(|| "no reason given".to_owned());
            return vec![ProtocolStep::GiveUp(Down {
                kind: "stream_error",
                message: format!("{} did not open a session: {said}", self.agent),
            })];
        };
        self.session = Some(session);
        let mut steps = self.settings(raw);
        self.settings = steps.len() as u64;
        if steps.is_empty() {
            steps.push(self.ready());
        }
        steps
    }

    fn ready(&mut self) -> ProtocolStep {
        self.is_ready = true;
        let agent_session = self.session.clone();
        ProtocolStep::Report(AgentReport::Ready { agent_session })
    }

    /// Settings before the first prompt, as far as the agent offers them.
    fn settings(&self, raw: &Value) -> Vec<ProtocolStep> {
        let options = raw["result"]["configOptions"].as_array();
        let option = |id: &str| {
            let mut options = options.into_iter().flatten();
            options.any(|option| {
                text(option, "/id") == Some(id) || text(option, "/category") == Some(id)
            })
        };
        let set = |id: &str, value: &str| {
            let params = json!({"sessionId": self.session, "configId": id, "value": value});
            Self::request(&format!("{SETTING}-{id}"), "session/set_config_option", params)
        };
        let mut steps = Vec::new();
        if let Some(model) = self.model.as_deref().filter(|_| option("model")) {
            steps.push(set("model", model));
        }
        if let Some(mode) = &self.mode {
            if option("mode") {
                steps.push(set("mode", mode));
            } else {
                let params = json!({"sessionId": self.session, "modeId": mode});
                steps.push(Self::request(&format!("{SETTING}-mode"), "session/set_mode", params));
            }
        }
        steps
    }

    /// A refused setting fails the attempt: the agent must not work in another mode than the requested one.
    fn set(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        if let Some(said) = refused(raw) {
            return vec![ProtocolStep::GiveUp(Down {
                kind: "mode_not_supported",
                message: format!("{} does not accept the model or mode: {said}", self.agent),
            })];
        }
        self.settings = self.settings.saturating_sub(1);
        match self.settings {
            0 => vec![self.ready()],
            _ => Vec::new(),
        }
    }

    fn prompt(&mut self, handed: Handed) -> Vec<ProtocolStep> {
        let handed = if self.takes_images { handed } else { handed.without_images() };
        let Handed { turn, prompt, images, .. } = handed;
        let mut blocks = vec![json!({"type": "text", "text": prompt.text})];
        blocks.extend(images.iter().map(
            |image| json!({"type": "image", "mimeType": image.media_type, "data": image.base64}),
        ));
        blocks.extend(prompt.attachments.iter().map(link));
        let params = json!({"sessionId": self.session, "prompt": blocks});
        let step = Self::request(&format!("turn-{turn}"), "session/prompt", params);
        self.turn = Some(turn);
        vec![step]
    }

    fn cancel(&mut self) -> Vec<ProtocolStep> {
        let params = json!({"sessionId": self.session});
        let notice = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
        let mut steps = vec![ProtocolStep::Say(notice)];
        // The protocol requires this answer to open asks.
        for (_, request) in self.asks.drain() {
            let result = match text(&request, "/method") {
                Some("elicitation/create") => json!({"action": "cancel"}),
                _ => json!({"outcome": {"outcome": "cancelled"}}),
            };
            steps.push(respond(&request, &result));
        }
        steps
    }

    fn prompt_ended(&mut self, raw: &Value) -> Vec<ProtocolStep> {
        let Some(turn) = self.turn.take() else {
            return Vec::new();
        };
        self.asks.clear();
        let ended = match (text(raw, "/result/stopReason"), refused(raw)) {
            (Some("cancelled"), _) => TurnEnd::of(TurnOutcome::Cancelled, "cancelled", None),
            (Some(reason @ ("refusal" | "max_turn_requests")), _) => TurnEnd::of(
                TurnOutcome::Failed,
                reason,
                Some(format!("the agent stopped: {reason}")),
            ),
            (Some(reason), _) => TurnEnd::of(TurnOutcome::Done, reason, None),
            (None, said) => {
                let said = said.unwrap_or_else(|| "the agent failed".to_owned());
                TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said))
            }
        };
        vec![ProtocolStep::Report(AgentReport::Ended { turn, ended })]
    }

    fn answer(&mut self, ask: &WaitingAsk, answer: &AskAnswer) -> Vec<ProtocolStep> {
        let Some(request) = self.asks.remove(ask.id()) else {
            return Vec::new();
        };
        let selected = |kinds: &[&str]| match option_of(&request, kinds) {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        };
        let result = match answer {
            AskAnswer::Once => selected(&["allow_once", "allow_always"]),
            AskAnswer::Always => selected(&["allow_always", "allow_once"]),
            AskAnswer::Reject => selected(&["reject_once", "reject_always"]),
            AskAnswer::Answers(answers) => {
                json!({"action": "accept", "content": content(&request, ask, answers)})
            }
            AskAnswer::Declined => json!({"action": "decline"}),
        };
        vec![respond(&request, &result)]
    }
}

fn respond(request: &Value, result: &Value) -> ProtocolStep {
    ProtocolStep::Say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

fn link(attachment: &PromptAttachment) -> Value {
    let name = attachment.filename.as_deref();
    let name = name.or_else(|| attachment.path.rsplit('/').next()).unwrap_or("file");
    let mut link = json!({
        "type": "resource_link", "uri": format!("file://{}", attachment.path), "name": name,
    });
    if let Some(mime) = &attachment.mime {
        link["mimeType"] = json!(mime);
    }
    link
}

/// The first option of one of these kinds.
fn option_of(request: &Value, kinds: &[&str]) -> Option<Value> {
    let options = request["params"]["options"].as_array()?;
    kinds.iter().find_map(|kind| {
        let option = options.iter().find(|option| text(option, "/kind") == Some(kind))?;
        Some(option["optionId"].clone())
    })
}

/// Answers by the fields of the ask's form, which are in the order of its questions. Free text goes into the field for
/// it, if there is one.
fn content(request: &Value, ask: &WaitingAsk, answers: &[Vec<String>]) -> Value {
    let form = match ask {
        WaitingAsk::Question(asked) => asked.metadata.get("form").and_then(Value::as_array),
        WaitingAsk::Permission(_) => None,
    };
    let properties = &request["params"]["requestedSchema"]["properties"];
    let mut content = serde_json::Map::new();
    for (field, labels) in form.into_iter().flatten().zip(answers) {
        let Some(name) = text(field, "/field") else {
            continue;
        };
        let (kind, custom) =
            (text(field, "/type").unwrap_or_default(), text(field, "/customField"));
        let mut values = Vec::new();
        let mut free = Vec::new();
        for label in labels {
            let value = chosen(&properties[name], label).or_else(|| typed(kind, label));
            match (value, custom) {
                (Some(value), _) => values.push(value),
                (None, Some(_)) => free.push(label.as_str()),
                (None, None) => values.push(json!(label)),
            }
        }
        if let (Some(custom), false) = (custom, free.is_empty()) {
            content.insert(custom.to_owned(), json!(free.join(", ")));
        }
        let value = match kind {
            "array" => (!values.is_empty()).then_some(Value::Array(values)),
            _ => values.into_iter().next(),
        };
        content.extend(value.map(|value| (name.to_owned(), value)));
    }
    Value::Object(content)
}

/// The value of the option with this label.
fn chosen(schema: &Value, label: &str) -> Option<Value> {
    let lists = ["/oneOf", "/anyOf", "/enum", "/items/oneOf", "/items/anyOf", "/items/enum"];
    let options = lists.iter().find_map(|place| schema.pointer(place)?.as_array())?;
    let option = options.iter().find(|option| {
        let shown = [option.as_str(), text(option, "/const"), text(option, "/title")];
        shown.contains(&Some(label))
    })?;
    Some(option.get("const").unwrap_or(option).clone())
}

/// The value of a type other than text.
fn typed(kind: &str, label: &str) -> Option<Value> {
    let is_of_kind = |value: &Value| match kind {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    };
    serde_json::from_str::<Value>(label).ok().filter(is_of_kind)
}

impl AgentProtocol for Acp {
    fn program(&self, launch: &AgentLaunch) -> Program {
        Program {
            path: launch.agent.path.clone(),
            arguments: launch.agent.arguments.clone(),
            environment: BTreeMap::new(),
            directory: launch.created.directory.clone().into(),
        }
    }

    fn hello(&mut self) -> Vec<ProtocolStep> {
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "bobbin", "version": env!("CARGO_PKG_VERSION")},
        });
        vec![Self::request(INITIALIZE, "initialize", params)]
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn is_replaying(&self) -> bool {
        self.is_replaying
    }

    fn order(&mut self, order: Order) -> Vec<ProtocolStep> {
        match order {
            Order::Prompt(handed) => self.prompt(handed),
            Order::Answer { ask, answer } => self.answer(&ask, &answer),
            Order::Cancel => self.cancel(),
        }
    }

    fn heard(&mut self, raw: &Value, made: &[Converted]) -> Vec<ProtocolStep> {
        let is_ask = keep_asks(&mut self.asks, raw, made);
        match (text(raw, "/method"), raw.get("id")) {
            (None, Some(id)) => match id.as_str() {
                Some(INITIALIZE) => self.initialized(raw),
                Some(SESSION) => self.opened(raw),
                Some(id) if id.starts_with(SETTING) => self.set(raw),
                Some(id) if id.strip_prefix("turn-") == self.turn.as_deref() => {
                    self.prompt_ended(raw)
                }
                _ => Vec::new(),
            },
            (Some(method), Some(id)) if !is_ask => {
                let error = not_offered(method);
                vec![ProtocolStep::Say(json!({"jsonrpc": "2.0", "id": id, "error": error}))]
            }
            _ => Vec::new(),
        }
    }
}
