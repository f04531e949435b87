//! The seam: what Bobbin wants of whatever runs an agent in a sandbox.
//!
//! A [`Runtime`] knows how its server is started and spoken to, and an [`Agent`] is one server that runs. What decides is what
//! is observed on its record; what the agent tells by itself only makes a card livelier.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, Ms, PromptIds, ThreadKey, TurnId};
use bobbin_core::protocol::effect::Sending;
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::changes::Changes;
use bobbin_core::records::run::PromptState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::settings::AgentOptions;
use bobbin_core::tokens::nudge::Nudge;
use bobbin_http::{Hosts, Http, HttpError};
use futures::future::BoxFuture;

use crate::observe::{Observation, Observe, RunCursor, RunRef};

/// What went wrong, as far as a caller does something of its own about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentErrorKind {
    /// Neither time nor another endpoint helps: there is no such sandbox, or its address may not be spoken to.
    Final,
    /// Another try, or another endpoint, may help; `failure` says which.
    Other,
}

/// A call to an agent that did not do what it was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct AgentError {
    /// What a caller may do about it itself.
    pub kind: AgentErrorKind,
    /// What the turn has to do about it.
    pub failure: Failure,
    /// What went wrong, in a sentence for logs and people. It holds no password.
    pub seen: String,
}

impl AgentError {
    /// The server does not answer.
    #[must_use]
    pub fn unreachable(what: &str) -> Self {
        Failure::SandboxDown { seen: format!("the server does not answer: {what}") }.into()
    }
}

impl From<Failure> for AgentError {
    fn from(failure: Failure) -> Self {
        Self { kind: AgentErrorKind::Other, seen: failure.to_string(), failure }
    }
}

/// What an agent said.
pub type AgentResult<T> = Result<T, AgentError>;

/// A prompt that the agent did not accept, and what is certain about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// What went wrong last.
    pub error: AgentError,
    /// The agent did nothing of it: it was never sent, or was refused on the way or by the agent itself.
    pub certain: bool,
}

/// How a fresh endpoint is had.
pub type Refresh = Arc<dyn Fn() -> BoxFuture<'static, Result<Endpoint, NoEndpoint>> + Send + Sync>;

/// A key that a server's environment holds, or something that stands for it. It has no `Debug`.
pub struct ModelKey {
    /// Name of the variable.
    pub variable: &'static str,
    /// The key itself, or the provider's placeholder for it.
    pub value: String,
    /// The only hosts that it is for; none where it is no secret.
    pub hosts: Vec<String>,
    /// The base of the operator's own endpoint that it is for; none: a provider's that hosts name.
    pub endpoint: Option<String>,
}

/// How a server is to be started.
#[derive(Clone, Copy)]
pub struct LaunchInputs<'a> {
    /// End a server that runs but does not answer first.
    pub restart: bool,
    /// What it shall want of whoever speaks to it.
    pub password: &'a str,
    /// The repository in the sandbox may configure the agent.
    pub is_trusted: bool,
    /// The address on which it has to listen to be reached.
    pub listens_on: Ipv4Addr,
    /// What lets it use the tools of another sandbox, where it works there.
    pub tools_bearer: &'a str,
}

/// What starts a server. It has no `Debug`: the environment holds the password.
pub struct Launch {
    /// A shell script, run in the sandbox's working directory.
    pub script: String,
    /// The environment of the server's processes, without the model keys; nothing else of the sandbox has it.
    pub environment: BTreeMap<String, String>,
    /// Exit statuses by which the script says that no other try helps, and what the operator is told.
    pub refusals: &'static [(i64, &'static str)],
}

impl Launch {
    /// What this exit status of the script means; none: nothing in particular.
    #[must_use]
    pub fn refused(&self, exit_code: i64) -> Option<Failure> {
        let (_, advice) = self.refusals.iter().find(|(code, _)| *code == exit_code)?;
        Some(Failure::NonRecoverable { advice: (*advice).to_owned() })
    }
}

/// An image within a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineImage {
    /// Where it is, below the agent's working directory.
    pub path: String,
    /// Its name as given.
    pub name: String,
    /// What its bytes say that it is.
    pub media_type: &'static str,
    /// Its bytes in base64, as the agent takes them.
    pub base64: String,
}

/// A prompt to be submitted.
#[derive(Debug, Clone, Copy)]
pub struct Submission<'a> {
    /// Whose prompt it is.
    pub turn: &'a TurnId,
    /// By what its end and its asks can be said at once, by a runtime that can call; none where it has nowhere to.
    pub nudge: Option<&'a Nudge>,
    /// Its ids, by which the agent knows it again.
    pub ids: &'a PromptIds,
    /// Model, as provider/model, by the names that people use.
    pub model: &'a str,
    /// One of the agent's own kinds of agent; none: the one that it takes by itself.
    pub agent: Option<&'a str>,
    /// Added to the agent's own instructions.
    pub system: &'a str,
    /// The prompt as its author wrote it.
    pub text: &'a str,
    /// What the model sees beside them.
    pub images: &'a [InlineImage],
    /// What is known of earlier sendings.
    pub sending: Sending,
}

/// What never changes about a runtime.
#[derive(Debug, Clone)]
pub struct RuntimeFacts<'a> {
    /// The port of its server in the sandbox.
    pub port: u16,
    /// Whether there is a server at all.
    pub has_server: bool,
    /// Providers whose models can be chosen: there is a key for them. The configured one is first.
    pub providers: &'a [String],
    /// A script that makes a workspace fit for the server, run in that workspace after its files are there; a repeat is
    /// harmless, and its exit status does not matter. The server may be running already.
    pub fit_workspace: String,
    /// A script that prints the end of what the server wrote to its terminal.
    pub last_words: &'static str,
}

/// A kind of agent.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// What never changes about it.
    fn facts(&self) -> RuntimeFacts<'_>;

    /// The keys that a server needs.
    ///
    /// # Errors
    /// [`Failure::NonRecoverable`] when there is none for the configured model.
    fn keys(&self) -> Result<Vec<ModelKey>, Failure>;

    /// What starts a server.
    ///
    /// # Errors
    /// As [`Runtime::keys`].
    fn launch(&self, inputs: LaunchInputs<'_>) -> Result<Launch, Failure>;

    /// The server behind an endpoint. Nothing is asked yet.
    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent>;
}

/// Bytes of one answer of a server: reading it takes three times as many, of the 128 MB that a worker has. A prompt with as
/// many images as there may be fits by itself; where several do not, fewer messages are asked for at a time.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How servers are reached that a provider at this base has endpoints for: on loopback only where that is.
///
/// # Errors
/// [`HttpError::Refused`] when the base may not be spoken to.
pub fn server_http(provider_base: &str) -> Result<Http, HttpError> {
    Ok(Http::new(provider_base, Hosts::Public)?.with_body_bytes_max(ANSWER_BYTES_MAX))
}

/// What a prompt's run has changed, as its agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// That.
    pub changes: Changes,
    /// It names none although tools ran. OpenCode says so as well where one file's name is no UTF-8.
    pub may_lack: bool,
}

impl From<Changes> for Reported {
    fn from(changes: Changes) -> Self {
        Self { changes, may_lack: false }
    }
}

/// A thread's conversation with its agent.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The thread.
    pub thread: &'a ThreadKey,
    /// When it was begun anew; 0: it is the thread's first.
    pub since_ms: Ms,
}

impl Conversation<'_> {
    /// The name by which it is found again.
    #[must_use]
    pub fn name(&self) -> String {
        match self.since_ms {
            0 => self.thread.to_string(),
            since_ms => format!("{} since {since_ms}", self.thread),
        }
    }
}

/// Which run is to end.
#[derive(Debug, Clone, Copy)]
pub enum RunStop<'a> {
    /// That of this prompt, once it has begun, unless the agent has been given a prompt of another turn since.
    Prompt {
        /// The prompt.
        message: &'a str,
        /// The prompts of its turn.
        turn: &'a [String],
    },
    /// The present one, only if the agent is answering a prompt of this turn (by its message ids) at this moment.
    Answering {
        /// The prompts of the turn.
        turn: &'a [String],
    },
    /// One that no turn follows any more: it is waited for until the agent has nothing to do.
    Stray {
        /// Its prompts.
        messages: &'a [String],
    },
}

/// A server that runs in one sandbox, reached by its endpoint, as it is asked about one workspace: the common one, unless
/// [`Agent::in_workspace`] says another. Sessions, runs, asks and changes of other workspaces are not seen.
#[async_trait]
pub trait Agent: fmt::Debug + Send + Sync {
    /// The same server, asked about this workspace.
    fn in_workspace(&self, workspace: &Workspace) -> Arc<dyn Agent>;

    /// Whether it calls itself healthy; with a fresh endpoint where the present one does not work, if that is wanted.
    async fn is_healthy(&self, refresh: bool) -> AgentResult<bool>;

    /// What it offers to choose from, by the names that people use.
    async fn options(&self) -> AgentResult<AgentOptions>;

    /// The session of a conversation in this workspace: the known one, else the newest that bears its name, else a new one.
    /// Of the kind of agent that was chosen, where a server runs several.
    async fn ensure_session(
        &self,
        conversation: Conversation<'_>,
        known: Option<&AgentSessionId>,
        agent: Option<&str>,
    ) -> AgentResult<AgentSessionId>;

    /// Hands a prompt over. Accepted is not yet begun.
    async fn submit(&self, session: &AgentSessionId, prompt: Submission<'_>) -> Result<(), Missed>;

    /// What it knows of a prompt that may have been submitted.
    async fn prompt_state(
        &self,
        session: &AgentSessionId,
        message: &str,
    ) -> AgentResult<PromptState>;

    /// Looks at a run. The cursor is a new one at first, and then the one of the look before.
    async fn observe<'a>(
        &self,
        run: RunRef<'_>,
        cursor: &'a mut RunCursor,
        how: Observe,
    ) -> AgentResult<Observation<'a>>;

    /// Ends a run. False: it goes on all the same, which only [`RunStop::Stray`] finds out.
    async fn stop(&self, session: &AgentSessionId, what: RunStop<'_>) -> AgentResult<bool>;

    /// Tells it what a person said to an ask; one that is no longer open counts as told.
    async fn answer(&self, ask: &AskId, about: &About, choice: &Choice) -> AgentResult<()>;

    /// The files that a prompt's run has changed.
    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported>;
}
