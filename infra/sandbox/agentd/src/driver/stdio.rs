//! Agents that speak JSON lines on their standard input and output: the process, and the line exchange.

use bobbin_agent_events::{Converted, UniversalEventData, UniversalMessage};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

use super::lines::{Lines, OutputLine};
use super::{AgentLaunch, AgentReport, Down, Order, Reports, closed};
use crate::host::Host;
use crate::limits::{LINE_BYTES_MAX, LINES_IN_ROW_MAX, LOOK_MS, START_MS_MAX};
use crate::process::{AgentProcess, Program};

/// Reaction to a message.
#[derive(Debug)]
pub(crate) enum ProtocolStep {
    /// Send this line to the agent.
    Say(Value),
    Report(AgentReport),
    /// Give up on the agent.
    GiveUp(Down),
}

/// The protocol of one agent. Pure: no clock, no process.
pub(crate) trait AgentProtocol: Send {
    /// How to start the program.
    fn program(&self, launch: &AgentLaunch) -> Program;
    /// First lines to send.
    fn hello(&mut self) -> Vec<ProtocolStep>;
    /// Whether it accepts orders.
    fn is_ready(&self) -> bool;
    /// Whether the agent is replaying output of an ended process, which is already in the log.
    fn is_replaying(&self) -> bool {
        false
    }
    fn order(&mut self, order: Order) -> Vec<ProtocolStep>;
    /// Handles one line of the agent, with its converted events.
    fn heard(&mut self, raw: &Value, made: &[Converted]) -> Vec<ProtocolStep>;
}

/// Keeps the line of each ask, by the ask's id. Returns whether there is one.
pub(super) fn keep_asks(
    asks: &mut HashMap<String, Value>,
    raw: &Value,
    made: &[Converted],
) -> bool {
    let mut is_ask = false;
    for id in made.iter().filter_map(|one| one.data.asked()) {
        is_ask = true;
        asks.insert(id.to_owned(), raw.clone());
    }
    is_ask
}

/// The error of a request that nobody here can handle: it is refused, or the agent would wait forever.
pub(super) fn not_offered(method: &str) -> Value {
    json!({"code": -32601, "message": format!("{method} is not offered")})
}

/// Runs an agent of this protocol until its orders end or it exits.
pub(crate) async fn drive(
    protocol: &mut impl AgentProtocol,
    launch: &AgentLaunch,
    host: &Host,
    orders: &mut mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let program = protocol.program(launch);
    let mut process = match AgentProcess::spawn(&program, host) {
        Ok(process) => process,
        Err(error) => {
            return Down::exited(format!(
                "{} could not be started: {error}",
                program.path.display()
            ));
        }
    };
    let down = pump(protocol, launch, &mut process, orders, reports).await;
    let last_words = process.end(host).await;
    match last_words {
        Some(words) if down.kind == "agent_process_exited" => {
            Down { message: format!("{}: {words}", down.message), ..down }
        }
        _ => down,
    }
}

async fn pump(
    protocol: &mut impl AgentProtocol,
    launch: &AgentLaunch,
    process: &mut AgentProcess,
    orders: &mut mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let (Some(stdin), Some(stdout)) = (process.stdin(), process.stdout()) else {
        return Down::exited("the agent has no standard input or output");
    };
    let mut input = FramedWrite::new(stdin, LinesCodec::new());
    let mut output = FramedRead::new(stdout, Lines::of(LINE_BYTES_MAX));
    let mut converter = launch.converter();
    let deadline = Instant::now() + Duration::from_millis(START_MS_MAX);
    let session_closed = || Down::exited("the session was closed");
    let mut in_row = 0;
    let mut steps = protocol.hello();
    loop {
        for step in steps {
            match step {
                ProtocolStep::Say(value) => {
                    // An agent that reads nothing must not keep its session from being closed.
                    let sent = tokio::select! {
                        biased;
                        sent = input.send(value.to_string()) => sent,
                        () = closed(orders) => return session_closed(),
                        () = tokio::time::sleep_until(deadline), if !protocol.is_ready() => return Down::start_timeout(&launch.agent.id),
                    };
                    if sent.is_err() {
                        return Down::exited(format!("{} ended", launch.agent.id));
                    }
                }
                ProtocolStep::Report(report) => reports.send(report).await,
                ProtocolStep::GiveUp(down) => return down,
            }
        }
        if orders.is_closed() {
            return session_closed();
        }
        let is_ready = protocol.is_ready();
        in_row += 1;
        if is_ready && in_row >= LINES_IN_ROW_MAX {
            in_row = 0;
            if let Ok(order) = orders.try_recv() {
                steps = protocol.order(order);
                continue;
            }
        }
        steps = tokio::select! {
            // The agent's output is handled before the next order, unless it never pauses.
            biased;
            line = output.next() => match line {
                Some(Ok(OutputLine::Text(line))) if line.trim().is_empty() => Vec::new(),
                Some(Ok(OutputLine::TooLong(bytes))) => {
                    tracing::warn!(agent = launch.agent.id, bytes, "a line of an agent is too long to be read");
                    reports.send(AgentReport::Said(vec![unread(bytes)])).await;
                    Vec::new()
                }
                Some(Ok(OutputLine::Text(line))) => {
                    let made = converter.convert_line(&line);
                    let raw = serde_json::from_str(&line).unwrap_or(Value::Null);
                    let was_said = protocol.is_replaying();
                    let steps = protocol.heard(&raw, &made);
                    if !was_said {
                        reports.send(AgentReport::Said(made)).await;
                    }
                    steps
                }
                Some(Err(error)) => return Down::exited(format!("the output of {} cannot be read: {error}", launch.agent.id)),
                None => return Down::exited(format!("{} ended", launch.agent.id)),
            },
            order = next_order(orders, is_ready) => match order {
                Some(order) => protocol.order(order),
                None => return session_closed(),
            },
            () = tokio::time::sleep_until(deadline), if !is_ready => return Down::start_timeout(&launch.agent.id),
        };
    }
}

/// Reports an overlong line.
fn unread(bytes: usize) -> Converted {
    let message = UniversalMessage::Unparsed {
        raw: json!({"omitted": format!("a line of {bytes} bytes")}),
        error: Some(format!("it is longer than {LINE_BYTES_MAX} bytes")),
    };
    Converted { agent_session_id: None, data: UniversalEventData::Message { message }, raw: None }
}

/// The next order, once orders are accepted; `None` once the sender is gone, even before that.
async fn next_order(orders: &mut mpsc::Receiver<Order>, is_ready: bool) -> Option<Order> {
    while !is_ready && !orders.is_closed() {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
    if is_ready { orders.recv().await } else { None }
}
