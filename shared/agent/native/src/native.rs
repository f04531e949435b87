//! The daemon of a sandbox as an [`Agent`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_agent::models::Models;
use bobbin_agent::{
    Agent, AgentError, AgentResult, ConversationKey, Missed, Observation, Observe, Reported,
    RunCursor, RunRef, RunStop, Submission,
};
use bobbin_agent_client::{
    AgentClient, CreateSession, FileChange, FileStatus, MessageAttachment, NewMessage,
    NudgeAddress, PermissionAnswer, SessionInfo, TurnState,
};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, digest};
use bobbin_core::protocol::effect::Sending;
use bobbin_core::records::ask::{About, Choice as Said};
use bobbin_core::records::changes::{ChangedFile, Changes, How};
use bobbin_core::records::run::PromptState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::catalogue::AgentOptions;
use tokio::time::{Instant, sleep, timeout_at};

use crate::asks;
use crate::choice::{AgentChoice, DEFAULT, DEFAULT_SESSION, FETCHED, OTHERS, PLAN, PLANNERS};
use crate::daemon::{Daemon, Trouble};
use crate::observe::{self, DaemonRun};
use crate::standing::{begins_again, is_open, known};

/// Bound of one attempt at a daemon that is only assumed to run.
const ATTEMPT_MS_MAX: u64 = 5_000;
/// How long a stop waits for a turn to begin, or to end, and the poll interval.
const END_MS_MAX: u64 = 20_000;
const LOOK_MS: u64 = 250;

/// The daemon, asked about one workspace.
#[derive(Clone)]
pub(crate) struct NativeAgent {
    pub(crate) daemon: Daemon,
    /// The default agent's own server, through the daemon: its options.
    pub(crate) server: Arc<dyn Agent>,
    pub(crate) models: Arc<Models>,
    pub(crate) instructions: Arc<str>,
    /// `None`: the daemon's own.
    pub(crate) directory: Option<String>,
}

impl std::fmt::Debug for NativeAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeAgent").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl NativeAgent {
    /// The session of a conversation with an agent in this workspace. Its id is derived from these, so that a repeat
    /// creates none, and a thread that changes its agent finds an earlier conversation with it.
    fn session(&self, conversation: ConversationKey<'_>, choice: AgentChoice<'_>) -> String {
        let directory = self.directory.as_deref().unwrap_or_default();
        let mode = choice.of_session().unwrap_or_default();
        let of = digest(&["native-session", &conversation.name(), directory, mode]);
        format!("{}-{}", choice.agent, &of[..12])
    }

    /// Tells the daemon to cancel a turn; an unknown one counts as ended.
    async fn cancel_turn(&self, session: &str, turn: &str) -> Result<(), Trouble> {
        let call = |client: AgentClient| async move { client.cancel(session, turn).await };
        match self.daemon.call(call).await {
            Err(trouble) if trouble.is_kind("not_found") => Ok(()),
            told => told,
        }
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, Trouble> {
        let call = |client: AgentClient| async move { client.sessions().await };
        self.daemon.call(call).await
    }

    /// Cancels the running turns of these prompts. True if none of them is running.
    async fn end_all(&self, session: &str, messages: &[String]) -> Result<bool, Trouble> {
        let mut is_quiet = true;
        for message in messages {
            let newest = self.daemon.newest(session, message).await?;
            if is_open(newest.status.state) {
                is_quiet = false;
                self.cancel_turn(session, &newest.turn).await?;
            }
        }
        Ok(is_quiet)
    }

    /// Cancels the running prompts of a turn, and this prompt of it once it has arrived.
    async fn end_begun(
        &self,
        session: &str,
        message: &str,
        turn: &[String],
    ) -> Result<(), Trouble> {
        let until = Instant::now() + Duration::from_millis(END_MS_MAX);
        loop {
            self.end_all(session, turn).await?;
            let newest = self.daemon.newest(session, message).await?;
            if is_open(newest.status.state) {
                return self.cancel_turn(session, &newest.turn).await;
            }
            // A prompt that was sent and has not arrived yet is waited for.
            if newest.status.state != TurnState::NotSeen || Instant::now() >= until {
                return Ok(());
            }
            sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }

    /// Cancels the running turns of these prompts until none is left. False: something continues all the same.
    async fn end_stray(&self, session: &str, messages: &[String]) -> Result<bool, Trouble> {
        let until = Instant::now() + Duration::from_millis(END_MS_MAX);
        loop {
            match self.end_all(session, messages).await {
                Err(trouble) if trouble.is_kind("session_not_found") => return Ok(true),
                Ok(false) if Instant::now() < until => sleep(Duration::from_millis(LOOK_MS)).await,
                ended => return ended,
            }
        }
    }

    /// The names of the installed agents, and of the modes of each.
    async fn agents(&self) -> Result<Vec<String>, Trouble> {
        let call = |client: AgentClient| async move { client.agents().await };
        let there = self.daemon.call(call).await?;
        let installed = |name: &str| there.iter().any(|one| one.id == name && one.installed);
        let mut names = Vec::new();
        for name in OTHERS.into_iter().filter(|name| installed(name)) {
            names.push(name.to_owned());
            if PLANNERS.contains(&name) {
                names.push(format!("{name}:{PLAN}"));
            }
        }
        Ok(names)
    }
}

#[async_trait]
impl Agent for NativeAgent {
    fn in_workspace(&self, workspace: &Workspace) -> Arc<dyn Agent> {
        let directory = workspace.directory();
        Arc::new(Self {
            server: self.server.in_workspace(workspace),
            directory: directory.map(str::to_owned),
            ..self.clone()
        })
    }

    async fn is_healthy(&self, refresh: bool) -> AgentResult<bool> {
        let health = |client: AgentClient| async move { client.health().await };
        if refresh {
            self.daemon.call(health).await?;
        } else {
            health(self.daemon.client()).await.map_err(Trouble::from)?;
        }
        Ok(true)
    }

    async fn options(&self) -> AgentResult<AgentOptions> {
        let mut offer = self.server.options().await?;
        offer.agents.push(DEFAULT.to_owned());
        offer.agents.extend(self.agents().await?);
        Ok(offer)
    }

    async fn ensure_session(
        &self,
        conversation: ConversationKey<'_>,
        known: Option<&AgentSessionId>,
        agent: Option<&str>,
    ) -> AgentResult<AgentSessionId> {
        let choice = AgentChoice::read(agent);
        let id = self.session(conversation, choice);
        let wanted = CreateSession {
            agent: choice.agent.to_owned(),
            agent_mode: choice.of_session().map(str::to_owned),
            directory: self.directory.clone(),
            // A conversation that was begun without the daemon continues in its session.
            agent_session_id: known
                .filter(|id| choice.agent == DEFAULT && id.starts_with(DEFAULT_SESSION))
                .map(ToString::to_string),
            title: Some(conversation.title()),
            instructions: Some(self.instructions.to_string()),
            ..CreateSession::default()
        };
        let (session, wanted) = (id.as_str(), &wanted);
        let call =
            |client: AgentClient| async move { client.create_session(session, wanted).await };
        match self.daemon.call(call).await {
            Ok(created) if !created.healthy => {
                let why = created.error.map(|error| error.message);
                let reason = why.unwrap_or_else(|| "the agent did not start".to_owned());
                Err(Failure::TurnFailed { reason }.into())
            }
            Ok(_) => Ok(id.into()),
            Err(trouble) if trouble.is_kind("session_already_exists") => Ok(id.into()),
            Err(trouble) if trouble.is_kind("agent_not_installed") => {
                let agent = choice.agent;
                let how = if FETCHED.contains(&agent) {
                    format!(
                        ": on a laptop by starting the stack with `cargo run -- --agents {agent}`, elsewhere with `bobbin snapshot --agents {agent}`, which says what else to do"
                    )
                } else {
                    " to its image".to_owned()
                };
                let reason = format!(
                    "{agent} is not in this sandbox. The operator adds it{how}. `agent:{DEFAULT}` works without it."
                );
                Err(Failure::TurnFailed { reason }.into())
            }
            Err(trouble) => Err(trouble.into()),
        }
    }

    async fn submit(&self, session: &AgentSessionId, prompt: Submission<'_>) -> Result<(), Missed> {
        let choice = AgentChoice::read(prompt.agent);
        let route = self.models.route(prompt.model).map_err(unfit)?;
        let model = choice.model(&self.models, &route).map_err(unfit)?;
        let turn = match prompt.sending {
            Sending::First { .. } => prompt.ids.message.clone(),
            Sending::Again => {
                let newest = self.daemon.newest(session, &prompt.ids.message).await;
                let newest =
                    newest.map_err(|trouble| Missed { certain: false, ..trouble.into() })?;
                if !begins_again(newest.status.state) {
                    return Ok(());
                }
                newest.next(&prompt.ids.message)
            }
        };
        // The daemon reads them from the sandbox's disk.
        let images = prompt.images.iter().map(|image| MessageAttachment {
            path: image.path.clone(),
            mime: Some(image.media_type.to_owned()),
            filename: Some(image.name.clone()),
        });
        let message = NewMessage {
            message: prompt.text.to_owned(),
            turn: Some(turn),
            attachments: images.collect(),
            model,
            mode: choice.of_turn().map(str::to_owned),
            nudge: prompt.nudge.map(|nudge| NudgeAddress {
                url: nudge.url.clone(),
                token: nudge.token.expose().to_owned(),
            }),
        };
        let (session, message) = (session.as_str(), &message);
        let send = || {
            self.daemon.call(|client: AgentClient| async move {
                client.send(session, message).await.map(drop)
            })
        };
        let Sending::First { within_ms: Some(within_ms) } = prompt.sending else {
            return send().await.map_err(Missed::from);
        };
        let until = Instant::now() + Duration::from_millis(within_ms);
        let mut is_silent = false;
        loop {
            let bound = until.min(Instant::now() + Duration::from_millis(ATTEMPT_MS_MAX));
            match timeout_at(bound, send()).await {
                Ok(sent) => {
                    return sent.map_err(|trouble| Missed {
                        certain: trouble.is_certain() && !is_silent,
                        error: trouble.into(),
                    });
                }
                Err(_) if Instant::now() < until => is_silent = true,
                Err(_) => {
                    return Err(Missed {
                        error: AgentError::unreachable("the prompt was not accepted in time"),
                        certain: false,
                    });
                }
            }
        }
    }

    async fn prompt_state(
        &self,
        session: &AgentSessionId,
        message: &str,
    ) -> AgentResult<PromptState> {
        let newest = match self.daemon.newest(session, message).await {
            Err(trouble) if trouble.is_kind("session_not_found") => return Ok(PromptState::Absent),
            newest => newest?,
        };
        Ok(known(newest.status.state))
    }

    async fn observe<'a>(
        &self,
        run: RunRef<'_>,
        cursor: &'a mut RunCursor,
        how: Observe,
    ) -> AgentResult<Observation<'a>> {
        let begin = || DaemonRun::new(self.daemon.clone(), Arc::clone(&self.models), run);
        observe::observe(begin, cursor, how).await
    }

    async fn stop(&self, session: &AgentSessionId, what: RunStop<'_>) -> AgentResult<bool> {
        match what {
            RunStop::Prompt { message, turn } => self.end_begun(session, message, turn).await?,
            // A turn's id is unique: this cannot hit the next prompt.
            RunStop::Answering { turn } => {
                self.end_all(session, turn).await?;
            }
            RunStop::Stray { messages } => return Ok(self.end_stray(session, messages).await?),
        }
        Ok(true)
    }

    async fn answer(&self, ask: &AskId, about: &About, said: &Said) -> AgentResult<()> {
        let open = self.sessions().await?;
        let found = open.iter().find_map(|one| {
            let same = |id: &&String| asks::name(&one.session_id, id) == *ask;
            Some((one.session_id.as_str(), one.asks.iter().find(same)?.as_str()))
        });
        // An ask that is no longer open counts as answered.
        let Some((session, id)) = found else {
            return Ok(());
        };
        let permission = |reply| {
            self.daemon.call(move |client: AgentClient| async move {
                client.reply_permission(session, id, reply).await
            })
        };
        let told = match (about, said) {
            (About::Permission { .. }, Said::Once) => permission(PermissionAnswer::Once).await,
            (About::Permission { .. }, Said::Always) => permission(PermissionAnswer::Always).await,
            (About::Permission { .. }, Said::Reject) => permission(PermissionAnswer::Reject).await,
            (About::Question { .. }, Said::Reject) => {
                let call =
                    |client: AgentClient| async move { client.reject_question(session, id).await };
                self.daemon.call(call).await
            }
            (About::Question { .. }, Said::Answers(answers)) => {
                let call = |client: AgentClient| async move {
                    client.reply_question(session, id, answers).await
                };
                self.daemon.call(call).await
            }
            _ => {
                let reason = "the choice does not match the question".to_owned();
                return Err(Failure::TurnFailed { reason }.into());
            }
        };
        match told {
            Err(trouble) if trouble.is_kind("not_found") => Ok(()),
            told => Ok(told?),
        }
    }

    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported> {
        let turn = self.daemon.newest(session, message).await?.turn;
        let (session, turn) = (session.as_str(), turn.as_str());
        let call = |client: AgentClient| async move { client.changes(session, turn).await };
        let found = self.daemon.call(call).await?;
        let changes =
            Changes { files: found.files.into_iter().map(change).collect(), unknown: !found.known };
        Ok(changes.into())
    }
}

fn change(file: FileChange) -> ChangedFile {
    ChangedFile {
        file: file.file,
        how: match file.status {
            FileStatus::Added => How::Added,
            FileStatus::Deleted => How::Deleted,
            FileStatus::Modified => How::Modified,
        },
        added: file.additions,
        removed: file.deletions,
        patch: file.patch,
    }
}

/// No agent can run with this model: that is the turn's failure, and no retry would fix it.
fn unfit(failure: Failure) -> Missed {
    Missed { error: failure.into(), certain: false }
}
