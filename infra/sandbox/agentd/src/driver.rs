//! Drivers of agents: one file per agent, and what they share.
//!
//! Promised: a driver sends its agent only what it was ordered to, in order; the agent's output is reported raw and
//! converted, in order; it ends when its orders end, and leaves nothing running. Deliberately absent: the log, and
//! checking orders; both belong to the session.

mod acp;
mod amp;
mod claude;
mod codex;
mod handed;
mod lines;
mod opencode;
mod stdio;

use bobbin_agent_events::{Converted, Converter, error_said};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

pub(crate) use handed::Handed;

use crate::agents::{AgentKind, InstalledAgent};
use crate::host::Host;
use crate::limits::{LOOK_MS, ORDERS_MAX};
use crate::state::{AskAnswer, SessionParameters, TurnEnd, TurnPrompt, WaitingAsk};

/// An order to the agent.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Prompt(Handed),
    Answer { ask: WaitingAsk, answer: AskAnswer },
    Cancel,
}

/// A report about the agent.
#[derive(Debug)]
pub(crate) enum AgentReport {
    /// It is ready, in this session of its own.
    Ready {
        agent_session: Option<String>,
    },
    /// Its session id, learnt later.
    AgentSession(String),
    /// The events converted from one of its messages.
    Said(Vec<Converted>),
    Ended {
        turn: String,
        ended: TurnEnd,
    },
}

/// Why a driver ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Down {
    /// One of the API's error types.
    pub(crate) kind: &'static str,
    /// For a person; may contain the end of the agent's standard error.
    pub(crate) message: String,
}

impl Down {
    pub(crate) fn exited(message: impl Into<String>) -> Self {
        Self { kind: "agent_process_exited", message: message.into() }
    }

    pub(crate) fn start_timeout(agent: &str) -> Self {
        Self { kind: "timeout", message: format!("{agent} did not get ready in time") }
    }
}

/// Parameters of an agent's start.
#[derive(Debug, Clone)]
pub(crate) struct AgentLaunch {
    pub(crate) session: String,
    pub(crate) agent: InstalledAgent,
    pub(crate) created: SessionParameters,
    /// The agent's own session to resume.
    pub(crate) agent_session: Option<String>,
    /// Number of earlier starts.
    pub(crate) launches: u64,
}

impl AgentLaunch {
    /// A converter whose ask ids differ from those of earlier starts.
    pub(crate) fn converter(&self) -> Converter {
        let mut converter = Converter::of(self.agent.kind.converter());
        for _ in 0..self.launches {
            converter.restarted();
        }
        converter
    }

    /// A turn's model: its own, else the session's.
    pub(crate) fn model<'a>(&'a self, prompt: &'a TurnPrompt) -> Option<&'a str> {
        prompt.model.as_deref().or(self.created.model.as_deref())
    }
}

/// Shared by the drivers of all sessions.
#[derive(Debug, Default)]
pub(crate) struct SharedServers {
    /// The one server of all OpenCode sessions.
    pub(crate) opencode: opencode::Server,
}

/// Channel for a driver's reports. Sending waits while the receiver is busy.
#[derive(Debug, Clone)]
pub(crate) struct Reports {
    sender: mpsc::Sender<AgentReport>,
    host: Arc<Host>,
    session: String,
    /// The agent's own session, once known.
    own: Arc<Mutex<Option<String>>>,
}

impl Reports {
    pub(crate) fn new(sender: mpsc::Sender<AgentReport>, host: Arc<Host>, session: &str) -> Self {
        Self { sender, host, session: session.to_owned(), own: Arc::default() }
    }

    pub(crate) async fn send(&self, report: AgentReport) {
        // Before anybody can learn of the end, by its event or otherwise, and continue.
        if self.ends_turn(&report) {
            self.host.changes.end(&self.session).await;
        }
        // The receiver may be gone.
        let _ = self.sender.send(report).await;
    }

    fn ends_turn(&self, report: &AgentReport) -> bool {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match report {
            AgentReport::Ended { .. } => true,
            AgentReport::Said(made) => made.iter().any(|one| one.ends_turn_of(own.as_deref())),
            AgentReport::Ready { agent_session } => {
                own.clone_from(agent_session);
                false
            }
            AgentReport::AgentSession(id) => {
                *own = Some(id.clone());
                false
            }
        }
    }
}

/// Runs an agent until its orders end or it exits.
pub(crate) async fn drive(
    launch: AgentLaunch,
    host: &Host,
    shared: &SharedServers,
    mut orders: mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let (ready, prepared) = mpsc::channel(ORDERS_MAX);
    let prepare = async {
        let launch = &launch;
        while let Some(order) = orders.recv().await {
            let order = match order {
                Order::Prompt(prompt) => Order::Prompt(prompt.prepared(launch, host).await),
                order => order,
            };
            let is_taken = tokio::select! {
                biased;
                sent = ready.send(order) => sent.is_ok(),
                () = closed(&orders) => false,
            };
            if !is_taken {
                break;
            }
        }
        drop(ready);
        // The agent exits by itself.
        std::future::pending().await
    };
    let down = tokio::select! {
        down = speak(&launch, host, shared, prepared, reports) => down,
        never = prepare => never,
    };
    if !host.is_stopping() {
        host.changes.end(&launch.session).await;
    }
    down
}

/// Waits until the orders' sender is gone, whatever it has sent before.
async fn closed(orders: &mpsc::Receiver<Order>) {
    while !orders.is_closed() {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

async fn speak(
    launch: &AgentLaunch,
    host: &Host,
    shared: &SharedServers,
    mut orders: mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    match launch.agent.kind {
        AgentKind::OpenCode => {
            opencode::drive(launch.clone(), host, &shared.opencode, orders, reports).await
        }
        AgentKind::Claude => {
            let mut protocol = claude::Claude::new(launch);
            stdio::drive(&mut protocol, launch, host, &mut orders, reports).await
        }
        AgentKind::Codex => {
            let mut protocol = codex::Codex::new(launch);
            stdio::drive(&mut protocol, launch, host, &mut orders, reports).await
        }
        AgentKind::Amp => amp::drive(launch, host, orders, reports).await,
        AgentKind::Acp => {
            let mut protocol = acp::Acp::new(launch);
            stdio::drive(&mut protocol, launch, host, &mut orders, reports).await
        }
    }
}

/// If `off`, a project's own agent configuration (hooks, MCP servers, permissions) is not loaded: it would run beside
/// the model keys.
const PROJECT_CONFIG_VARIABLE: &str = "BOBBIN_AGENTD_PROJECT_CONFIG";

fn loads_project_config() -> bool {
    std::env::var(PROJECT_CONFIG_VARIABLE).as_deref() != Ok("off")
}

/// A prompt's text with its attached files named: the agent reads them itself.
fn with_attachments(prompt: &TurnPrompt) -> String {
    let mut text = prompt.text.clone();
    for attachment in &prompt.attachments {
        text.push_str("\n\nAttached file: ");
        text.push_str(&attachment.path);
    }
    text
}

/// The agent's error message for one of our requests.
fn refused(raw: &Value) -> Option<String> {
    raw.get("error").map(error_said)
}

/// The text at this JSON pointer.
fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}
