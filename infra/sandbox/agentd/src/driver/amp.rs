//! Amp: `amp --execute --stream-json`, one process per prompt. Its lines have Claude's format (documented); it asks
//! nothing.
//!
//! Never run: Amp only talks to its own service. According to its manual, `amp threads continue <id>` continues a
//! thread.

use std::collections::BTreeMap;

use bobbin_agent_events::{Converted, TurnOutcome};
use serde_json::Value;
use tokio::sync::mpsc;

use super::stdio::{self, AgentProtocol, ProtocolStep};
use super::{AgentLaunch, AgentReport, Down, Handed, Order, Reports, text, with_attachments};
use crate::host::Host;
use crate::process::Program;
use crate::state::{PermissionMode, TurnEnd};

/// One prompt's process.
struct AmpRun {
    turn: String,
    text: String,
    thread: Option<String>,
    allows_all: bool,
    is_over: bool,
}

impl AgentProtocol for AmpRun {
    fn program(&self, launch: &AgentLaunch) -> Program {
        let mut arguments = launch.agent.arguments.clone();
        if let Some(thread) = &self.thread {
            arguments.extend(["threads", "continue", thread].map(str::to_owned));
        }
        arguments.extend(["--execute", &self.text, "--stream-json"].map(str::to_owned));
        if self.allows_all {
            arguments.push("--dangerously-allow-all".to_owned());
        }
        Program {
            path: launch.agent.path.clone(),
            arguments,
            environment: BTreeMap::new(),
            directory: launch.created.directory.clone().into(),
        }
    }

    fn hello(&mut self) -> Vec<ProtocolStep> {
        Vec::new()
    }

    fn is_ready(&self) -> bool {
        true
    }

    /// It accepts no input after its start: cancelling means ending it.
    fn order(&mut self, order: Order) -> Vec<ProtocolStep> {
        match order {
            Order::Cancel => vec![ProtocolStep::GiveUp(Down::exited("the turn was cancelled"))],
            Order::Prompt(_) | Order::Answer { .. } => Vec::new(),
        }
    }

    fn heard(&mut self, raw: &Value, _: &[Converted]) -> Vec<ProtocolStep> {
        let mut steps = Vec::new();
        if let Some(id) = text(raw, "/session_id").filter(|id| self.thread.as_deref() != Some(id)) {
            self.thread = Some(id.to_owned());
            steps.push(ProtocolStep::Report(AgentReport::AgentSession(id.to_owned())));
        }
        if text(raw, "/type") == Some("result") {
            self.is_over = true;
            let failed =
                raw["is_error"] == Value::Bool(true) || text(raw, "/subtype") != Some("success");
            let ended = if failed {
                let said = text(raw, "/error")
                    .or_else(|| text(raw, "/result"))
                    .unwrap_or("the agent failed");
                TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said.to_owned()))
            } else {
                TurnEnd::of(TurnOutcome::Done, "end_turn", None)
            };
            steps.push(ProtocolStep::Report(AgentReport::Ended { turn: self.turn.clone(), ended }));
        }
        steps
    }
}

/// Runs a process per prompt, one after another.
pub(super) async fn drive(
    launch: &AgentLaunch,
    host: &Host,
    mut orders: mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let agent_session = launch.agent_session.clone();
    reports.send(AgentReport::Ready { agent_session: agent_session.clone() }).await;
    let mut thread = agent_session;
    loop {
        let Handed { turn, prompt, .. } = match orders.recv().await {
            Some(Order::Prompt(handed)) => handed,
            Some(Order::Answer { .. } | Order::Cancel) => continue,
            None => return Down::exited("the session was closed"),
        };
        let mut run = AmpRun {
            turn,
            text: with_attachments(&prompt),
            thread: thread.take(),
            allows_all: launch.created.permission_mode == PermissionMode::Bypass,
            is_over: false,
        };
        let down = stdio::drive(&mut run, launch, host, &mut orders, reports).await;
        if !run.is_over {
            return down;
        }
        thread = run.thread;
    }
}
