//! `agent run`: runs an agent on this machine, in this terminal, without a chat. It starts a `bobbin-agentd` or uses a
//! running one.

mod asks;
mod shown;

use std::io::IsTerminal as _;
use std::time::Duration;

use bobbin_agent_client::{
    AgentClient, Auto, ClientError, CreateSession, DaemonAsk, EmbeddedOptions, EventStream,
    NewMessage, TurnState, TurnStatus,
};
use bobbin_agent_events::{TurnOutcome, UniversalEventData};
use clap::Subcommand;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::output::{CommandError, ExitStatus};
use shown::AlreadyShown;

/// Turn id; a run has one turn.
const TURN: &str = "run";
/// How long to wait for a cancelled turn to end.
const STOP_MS_MAX: u64 = 4_000;

/// Agents on this machine.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Let an agent do a task in the current directory, and watch it
    Run(AgentRun),
}

/// What `agent run` takes.
#[derive(Debug, clap::Args)]
pub struct AgentRun {
    /// What to do
    task: String,
    /// opencode, claude, codex, amp, or a name that --acp gives
    #[arg(long, default_value = "opencode")]
    agent: String,
    /// The model, in the agent's own notation; by default the agent's own choice
    #[arg(long)]
    model: Option<String>,
    /// What it may do without asking: default, plan or bypass
    #[arg(long, value_name = "MODE", default_value = "default")]
    permissions: String,
    /// Another agent that speaks the Agent Client Protocol; may be repeated
    #[arg(long, value_name = "NAME=COMMAND LINE")]
    acp: Vec<String>,
    /// The address of a running daemon; its token comes from BOBBIN_AGENTD_TOKEN
    #[arg(long, value_name = "URL")]
    daemon: Option<String>,
}

fn told(error: ClientError) -> CommandError {
    error.to_string().into()
}

/// Runs a command.
///
/// # Errors
/// The daemon cannot be reached, or the agent does not start; with advice.
pub async fn run(command: &AgentCommand) -> Result<ExitStatus, CommandError> {
    let AgentCommand::Run(run) = command;
    let directory = std::env::current_dir()
        .map_err(|error| format!("The current directory cannot be used: {error}"))?;
    let state = tempfile::Builder::new()
        .prefix("bobbin-agent-")
        .tempdir()
        .map_err(|error| format!("A folder for the daemon cannot be created: {error}"))?;
    let options = EmbeddedOptions {
        state: state.path().to_owned(),
        acp: run.acp.clone(),
        directory: Some(directory.clone()),
        ..EmbeddedOptions::default()
    };
    let token = std::env::var("BOBBIN_AGENTD_TOKEN").unwrap_or_default();
    let server = run.daemon.as_deref().map(|base| (base, token.as_str()));
    let daemon = Auto::open(server, &options).await.map_err(told)?;
    let session = CreateSession {
        agent: run.agent.clone(),
        permission_mode: Some(run.permissions.clone()),
        model: run.model.clone(),
        directory: directory.to_str().map(str::to_owned),
        title: Some("bobbin agent run".to_owned()),
        ..CreateSession::default()
    };
    let done = follow(&daemon, &session, &run.task).await;
    daemon.close().await;
    done
}

async fn follow(
    daemon: &Auto,
    session: &CreateSession,
    task: &str,
) -> Result<ExitStatus, CommandError> {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let id = format!("terminal-{}-{}", std::process::id(), now.as_millis());
    // One stream for the whole run, so that no interrupt between two waits is missed.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| format!("Ctrl-C cannot be handled: {error}"))?;
    tell!("Starting {}. Ctrl-C stops it.", session.agent);
    let begun = tokio::select! {
        begun = begin(daemon.client(), &id, session, task) => begun,
        _ = interrupts.recv() => return Ok(ExitStatus::Interrupted),
    };
    let mut watch = WatchedTurn {
        daemon,
        id: &id,
        stream: begun?,
        last: 0,
        looks: false,
        has_ended: false,
        shown: AlreadyShown::default(),
    };
    tell!("{} works on it.", session.agent);
    let mut stops_by: Option<Instant> = None;
    loop {
        let late = async move {
            match stops_by {
                Some(by) => tokio::time::sleep_until(by).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            step = watch.step() => {
                if let Some(status) = step? {
                    return Ok(status);
                }
            }
            _ = interrupts.recv() => {
                if stops_by.is_some() {
                    return Ok(ExitStatus::Interrupted);
                }
                tell!("\nStopping. Press Ctrl-C again to leave at once.");
                let within = Duration::from_millis(STOP_MS_MAX);
                stops_by = Some(Instant::now() + within);
                // The timeout above bounds a daemon that does not answer.
                let cancelled = tokio::time::timeout(within, daemon.client().cancel(&id, TURN));
                cancelled.await.unwrap_or(Ok(())).map_err(told)?;
                watch.looks = true;
            }
            () = late => {
                tell!("It has not stopped within {} s. Leaving it.", STOP_MS_MAX / 1_000);
                return Ok(ExitStatus::Interrupted);
            }
        }
    }
}

/// Starts the agent, sends the task, and subscribes to the events.
async fn begin(
    client: &AgentClient,
    id: &str,
    session: &CreateSession,
    task: &str,
) -> Result<EventStream, CommandError> {
    let created = client.create_session(id, session).await.map_err(told)?;
    if let Some(error) = created.error {
        return Err(format!("{} did not start: {}", session.agent, error.message).into());
    }
    let message = NewMessage {
        message: task.to_owned(),
        turn: Some(TURN.to_owned()),
        ..NewMessage::default()
    };
    client.send(id, &message).await.map_err(told)?;
    client.follow(id, 0).await.map_err(told)
}

/// A turn that is watched.
struct WatchedTurn<'a> {
    daemon: &'a Auto,
    id: &'a str,
    stream: EventStream,
    /// Sequence number of the last event shown.
    last: u64,
    /// Poll the turn's status next.
    looks: bool,
    /// The turn's end was among the events.
    has_ended: bool,
    shown: AlreadyShown,
}

impl WatchedTurn<'_> {
    /// Handles one event or one status poll. Cancel-safe at every await.
    async fn step(&mut self) -> Result<Option<ExitStatus>, CommandError> {
        let client = self.daemon.client();
        if !self.looks {
            match self.stream.next().await {
                Ok(event) => {
                    self.last = event.id;
                    self.shown.event(&event);
                    self.has_ended |= matches!(event.data, UniversalEventData::TurnEnded { .. });
                    // Message text, most of the stream, neither asks nor ends the turn.
                    let is_word = matches!(event.data, UniversalEventData::Message { .. });
                    self.looks = self.has_ended || !is_word;
                }
                Err(ClientError::StreamEnded) => {
                    self.stream = client.follow(self.id, self.last).await.map_err(told)?;
                    self.looks = true;
                }
                Err(error) => return Err(told(error)),
            }
            return Ok(None);
        }
        let status = client.turn(self.id, TURN).await.map_err(told)?;
        for ask in &status.asks {
            answer(self.daemon, self.id, ask, &mut self.shown).await?;
        }
        self.looks = false;
        let goes_on = matches!(status.state, TurnState::Running | TurnState::Waiting);
        Ok((status.last_event <= self.last && !goes_on).then(|| ended(&status)))
    }
}

/// Puts an ask to the person; without a terminal it is declined.
async fn answer(
    daemon: &Auto,
    session: &str,
    ask: &DaemonAsk,
    shown: &mut AlreadyShown,
) -> Result<(), CommandError> {
    shown.end_line();
    let sits = std::io::stdin().is_terminal();
    let client = daemon.client();
    let done = match ask {
        DaemonAsk::Permission(ask) => {
            let reply = asks::permission(ask, sits).await;
            client.reply_permission(session, &ask.id, reply).await
        }
        DaemonAsk::Question(ask) => match asks::questions(ask, sits).await {
            Some(answers) => client.reply_question(session, &ask.id, &answers).await,
            None => client.reject_question(session, &ask.id).await,
        },
    };
    match done {
        // The ask was settled in the meantime.
        Err(error) if error.status() == Some(404) => Ok(()),
        done => done.map_err(told),
    }
}

fn ended(status: &TurnStatus) -> ExitStatus {
    let said = status.message.as_deref().unwrap_or("no reason was given");
    match (status.state, status.outcome) {
        (TurnState::Failed, _) => {
            tell!("The turn failed: {said}");
            ExitStatus::TurnFailed
        }
        (TurnState::Lost, _) => {
            tell!("The turn was lost: {said}");
            ExitStatus::Lost
        }
        (_, Some(TurnOutcome::Cancelled)) => {
            tell!("The turn was stopped.");
            ExitStatus::Cancelled
        }
        _ => ExitStatus::Done,
    }
}
