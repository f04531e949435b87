//! A live session: the one task that writes its log, and the effects that follow a write.
//!
//! Promised: decide, write, act, in that order; several inputs share one write. Readers see only what is on disk,
//! except an end that does not fit on the disk: a stop takes effect all the same. Deliberately absent: HTTP, and
//! communication with agents.

mod actor;
mod events;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{RwLock, mpsc, oneshot, watch};

use crate::driver::{AgentReport, Down, SharedServers};
use crate::host::Host;
use crate::limits::INPUTS_MAX;
use crate::log::{LogPage, Reader};
use crate::nudge::NudgeTarget;
use crate::state::{
    Acceptance, AskAnswer, RequestRefusal, SessionParameters, SessionState, TurnPrompt,
};

/// Why a session refused a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionError {
    Refused(RequestRefusal),
    /// The disk is full.
    Full,
    /// The log cannot be written or read.
    Broken(String),
    /// The daemon is stopping.
    Gone,
}

type ReplySender<T> = oneshot::Sender<Result<T, SessionError>>;

/// Requests and reports to a session.
#[derive(Debug)]
pub(crate) enum SessionInput {
    Create {
        created: SessionParameters,
        reply: ReplySender<()>,
    },
    /// Makes the agent ready before its first prompt.
    Start,
    Prompt {
        turn: String,
        prompt: TurnPrompt,
        nudge: Option<NudgeTarget>,
        reply: ReplySender<Acceptance>,
    },
    Answer {
        ask: String,
        answer: AskAnswer,
        reply: ReplySender<()>,
    },
    Cancel {
        turn: String,
        reply: ReplySender<()>,
    },
    Terminate {
        reply: ReplySender<()>,
    },
    Report {
        launch: u64,
        report: AgentReport,
    },
    Down {
        launch: u64,
        down: Down,
    },
    /// The time for a cancelled turn to end is over.
    CancelOverdue {
        turn: String,
    },
}

/// Progress of a session, for waiting clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Id of the last event on disk.
    pub(crate) last_event: u64,
    /// Incremented by each write.
    pub(crate) writes: u64,
    pub(crate) agent: AgentStatus,
}

/// Whether the agent is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum AgentStatus {
    #[default]
    NotStarted,
    Starting,
    Ready,
    Down(Down),
}

/// A handle of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: String,
    inputs: mpsc::Sender<SessionInput>,
    state: Arc<RwLock<SessionState>>,
    reader: Reader,
    progress: watch::Receiver<Progress>,
}

impl SessionHandle {
    /// Opens or creates a session's log. Unfinished turns are ended: nothing starts by itself.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(crate) async fn open(
        id: &str,
        path: &Path,
        host: Arc<Host>,
        shared: Arc<SharedServers>,
    ) -> std::io::Result<Self> {
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let opened = {
            let path = path.to_owned();
            tokio::task::spawn_blocking(move || actor::OpenedLog::read(path)).await
        };
        let opened = opened.map_err(std::io::Error::other)??;
        let (progress, watch) =
            watch::channel(Progress { last_event: opened.last_event, ..Progress::default() });
        let session = Self {
            id: id.to_owned(),
            inputs: sender.clone(),
            reader: opened.log.reader(),
            state: Arc::new(RwLock::new(SessionState::default())),
            progress: watch,
        };
        let around = actor::Around { host, shared, inputs: sender, progress };
        let actor = actor::SessionActor::new(id, opened, session.state.clone(), around).await;
        tokio::spawn(actor.run(inputs));
        Ok(session)
    }

    async fn ask<T>(
        &self,
        input: impl FnOnce(ReplySender<T>) -> SessionInput,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.inputs.send(input(reply)).await;
        sent.map_err(|_| SessionError::Gone)?;
        answer.await.map_err(|_| SessionError::Gone)?
    }

    pub(crate) async fn create(&self, created: SessionParameters) -> Result<(), SessionError> {
        self.ask(|reply| SessionInput::Create { created, reply }).await
    }

    pub(crate) async fn start(&self) {
        // A session that is gone needs no agent.
        let _ = self.inputs.send(SessionInput::Start).await;
    }

    pub(crate) async fn prompt(
        &self,
        turn: String,
        prompt: TurnPrompt,
        nudge: Option<NudgeTarget>,
    ) -> Result<Acceptance, SessionError> {
        self.ask(|reply| SessionInput::Prompt { turn, prompt, nudge, reply }).await
    }

    pub(crate) async fn answer(&self, ask: String, answer: AskAnswer) -> Result<(), SessionError> {
        self.ask(|reply| SessionInput::Answer { ask, answer, reply }).await
    }

    pub(crate) async fn cancel(&self, turn: String) -> Result<(), SessionError> {
        self.ask(|reply| SessionInput::Cancel { turn, reply }).await
    }

    pub(crate) async fn terminate(&self) -> Result<(), SessionError> {
        self.ask(|reply| SessionInput::Terminate { reply }).await
    }

    /// The state on disk. Hold it briefly: the session cannot write meanwhile.
    pub(crate) async fn state(&self) -> tokio::sync::RwLockReadGuard<'_, SessionState> {
        self.state.read().await
    }

    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Events after this id.
    pub(crate) async fn page(
        &self,
        after: u64,
        events_max: u64,
        bytes_max: usize,
    ) -> Result<LogPage, SessionError> {
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || reader.page(after, events_max, bytes_max));
        match read.await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(error)) => Err(SessionError::Broken(error.to_string())),
            Err(error) => Err(SessionError::Broken(error.to_string())),
        }
    }
}
