//! `agent run`: an agent on this machine, in this terminal, without any chat: by a `bobbin-agentd` of one's own, or one that
//! is there.

mod asks;
mod shown;

use std::io::IsTerminal as _;

use bobbin_agent_client::{
    Ask, Auto, ClientError, CreateSession, EmbeddedOptions, Message, TurnState, TurnStatus,
};
use bobbin_agent_events::{Outcome, UniversalEventData};
use clap::Subcommand;

use crate::output::{CommandError, Status};
use shown::Shown;

/// The id of the one turn of a run.
const TURN: &str = "run";

/// Agents on this machine.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Have an agent do a task in the present directory, and watch it
    Run(Run),
}

/// What `agent run` takes.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// What is to be done
    task: String,
    /// opencode, claude, codex, amp, or a name that --acp gives
    #[arg(long, default_value = "opencode")]
    agent: String,
    /// In the agent's own notation; its default without it
    #[arg(long)]
    model: Option<String>,
    /// What it may do without asking: default, plan or bypass
    #[arg(long, value_name = "MODE", default_value = "default")]
    permissions: String,
    /// Another agent that speaks the Agent Client Protocol; may be repeated
    #[arg(long, value_name = "NAME=COMMAND LINE")]
    acp: Vec<String>,
    /// The address of a daemon that is there; its token comes from BOBBIN_AGENTD_TOKEN
    #[arg(long, value_name = "URL")]
    daemon: Option<String>,
}

fn told(error: ClientError) -> CommandError {
    error.to_string().into()
}

/// Runs a command.
///
/// # Errors
/// What to do next.
pub async fn run(command: &Command) -> Result<Status, CommandError> {
    let Command::Run(run) = command;
    let directory = std::env::current_dir()
        .map_err(|error| format!("The present directory cannot be used: {error}"))?;
    // Whose name nobody can guess, and which goes with this run.
    let state = tempfile::Builder::new()
        .prefix("bobbin-agent-")
        .tempdir()
        .map_err(|error| format!("A folder for the daemon cannot be made: {error}"))?;
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
) -> Result<Status, CommandError> {
    let client = daemon.client();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let id = format!("terminal-{}-{}", std::process::id(), now.as_millis());
    let created = client.create_session(&id, session).await.map_err(told)?;
    if let Some(error) = created.error {
        return Err(format!("{} does not start: {}", session.agent, error.message).into());
    }
    let message = Message {
        message: task.to_owned(),
        turn: Some(TURN.to_owned()),
        ..Message::default()
    };
    client.send(&id, &message).await.map_err(told)?;
    let mut shown = Shown::default();
    let mut stream = client.follow(&id, 0).await.map_err(told)?;
    let mut last = 0;
    let (mut is_cancelled, mut has_ended) = (false, false);
    loop {
        let event = tokio::select! {
            event = stream.next() => event,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(|error| format!("Ctrl-C cannot be heard: {error}"))?;
                if is_cancelled {
                    return Ok(Status::Interrupted);
                }
                is_cancelled = true;
                tell!("\nStopping; Ctrl-C once more leaves at once.");
                client.cancel(&id, TURN).await.map_err(told)?;
                continue;
            }
        };
        match event {
            Ok(event) => {
                last = event.id;
                shown.event(&event);
                has_ended |= matches!(event.data, UniversalEventData::TurnEnded { .. });
                // Words, which are most of what comes, neither ask anything nor end the turn.
                if !has_ended && matches!(event.data, UniversalEventData::Message { .. }) {
                    continue;
                }
            }
            Err(ClientError::StreamEnded) => {
                stream = client.follow(&id, last).await.map_err(told)?;
            }
            Err(error) => return Err(told(error)),
        }
        let status = client.turn(&id, TURN).await.map_err(told)?;
        for ask in &status.asks {
            answer(daemon, &id, ask, &mut shown).await?;
        }
        if status.last_event <= last
            && !matches!(status.state, TurnState::Running | TurnState::Waiting)
        {
            return Ok(ended(&status));
        }
    }
}

/// Puts an ask to the person; where nobody sits at the terminal, it is turned down.
async fn answer(
    daemon: &Auto,
    session: &str,
    ask: &Ask,
    shown: &mut Shown,
) -> Result<(), CommandError> {
    shown.end_line();
    let sits = std::io::stdin().is_terminal();
    let client = daemon.client();
    let done = match ask {
        Ask::Permission(ask) => {
            let reply = asks::permission(ask, sits).await;
            client.reply_permission(session, &ask.id, reply).await
        }
        Ask::Question(ask) => match asks::questions(ask, sits).await {
            Some(answers) => client.reply_question(session, &ask.id, &answers).await,
            None => client.reject_question(session, &ask.id).await,
        },
    };
    match done {
        // It was settled meanwhile.
        Err(error) if error.status() == Some(404) => Ok(()),
        done => done.map_err(told),
    }
}

fn ended(status: &TurnStatus) -> Status {
    let said = status.message.as_deref().unwrap_or("no reason was told");
    match (status.state, status.outcome) {
        (TurnState::Failed, _) => {
            tell!("The turn failed: {said}");
            Status::TurnFailed
        }
        (TurnState::Lost, _) => {
            tell!("The turn was lost: {said}");
            Status::Lost
        }
        (_, Some(Outcome::Cancelled)) => {
            tell!("The turn was stopped.");
            Status::Cancelled
        }
        _ => Status::Done,
    }
}
