//! The interface to the program that runs an agent in a sandbox.
//!
//! A [`Runtime`] knows how its server is started and called, and an [`Agent`] is one running server. Decisions rest on
//! its observed record; the agent's own events only make a card livelier.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, Ms, ThreadKey, TurnId};
use bobbin_core::base::names::PromptIds;
use bobbin_core::protocol::effect::Sending;
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::changes::Changes;
use bobbin_core::records::run::PromptState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tokens::nudge::Nudge;
use bobbin_http::{AllowedHosts, Http, HttpError};
use futures::future::BoxFuture;

use crate::observe::{Observation, Observe, RunCursor, RunRef};

/// Kinds of error that callers handle specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentErrorKind {
    /// Neither time nor another endpoint helps: the sandbox does not exist, or its address is not allowed.
    Final,
    /// A retry, or another endpoint, may help; `failure` says which.
    Other,
}

/// A failed call to an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct AgentError {
    /// What a caller may handle itself.
    pub kind: AgentErrorKind,
    /// What the turn has to do about it.
    pub failure: Failure,
    /// The error message, for logs and people. It contains no password.
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

/// Result of a call to an agent.
pub type AgentResult<T> = Result<T, AgentError>;

/// A prompt that the agent did not accept, and whether it certainly had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The last error.
    pub error: AgentError,
    /// The agent certainly did nothing: the prompt was never sent, or was refused on the way or by the agent itself.
    pub certain: bool,
}

/// Fetches a fresh endpoint.
pub type Refresh = Arc<dyn Fn() -> BoxFuture<'static, Result<Endpoint, NoEndpoint>> + Send + Sync>;

/// A key in a server's environment, or its placeholder. It has no `Debug`.
pub struct ModelKey {
    /// Name of the variable.
    pub variable: &'static str,
    /// The key itself, or the provider's placeholder for it.
    pub value: String,
    /// The only hosts that may receive it; empty if it is no secret.
    pub hosts: Vec<String>,
    /// Base of the operator's own endpoint that it is for; `None`: a vendor's key, for the named hosts.
    pub endpoint: Option<String>,
}

/// The server of the sandbox tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// Its MCP address.
    pub url: String,
    /// Tools that need a person's permission for each use.
    pub ask: Vec<String>,
}

/// How to start a server.
#[derive(Clone, Copy)]
pub struct LaunchInputs<'a> {
    /// First stop a server that runs but does not answer.
    pub restart: bool,
    /// The password that it shall require from callers.
    pub password: &'a str,
    /// Whether the repository in the sandbox may configure the agent.
    pub is_trusted: bool,
    /// Address on which it has to listen to be reached.
    pub listens_on: Ipv4Addr,
    /// Bearer token for the tools of another sandbox, if it works there.
    pub tools_bearer: &'a str,
}

/// The start of a server. It has no `Debug`: the environment contains the password.
pub struct ServerLaunch {
    /// A shell script, run in the sandbox's working directory.
    pub script: String,
    /// The environment of the server's processes, without the model keys; no other process of the sandbox has it.
    pub environment: BTreeMap<String, String>,
    /// Exit statuses of the script for which no retry helps, and the message for the operator.
    pub refusals: &'static [(i64, &'static str)],
}

impl ServerLaunch {
    /// A script that only looks whether a server runs that the start would leave alone, and says so by status 71.
    #[must_use]
    pub fn look(&self) -> String {
        format!("look=1\n{}", self.script)
    }

    /// Meaning of this exit status of the script; `None` if it has no special one.
    #[must_use]
    pub fn refused(&self, exit_code: i64) -> Option<Failure> {
        let (_, advice) = self.refusals.iter().find(|(code, _)| *code == exit_code)?;
        Some(Failure::NonRecoverable { advice: (*advice).to_owned() })
    }
}

/// An image within a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineImage {
    /// Path below the agent's working directory.
    pub path: String,
    /// Original name.
    pub name: String,
    /// Media type, detected from its bytes.
    pub media_type: &'static str,
    /// Content in base64, as agents expect it.
    pub base64: String,
}

/// A prompt to be submitted.
#[derive(Debug, Clone, Copy)]
pub struct Submission<'a> {
    /// The prompt's turn.
    pub turn: &'a TurnId,
    /// Token with which a runtime that supports it reports the end and the asks at once; `None` if there is no address
    /// for nudges.
    pub nudge: Option<&'a Nudge>,
    /// Ids by which the agent recognises the prompt.
    pub ids: &'a PromptIds,
    /// Model, as provider/model, by the display names.
    pub model: &'a str,
    /// One of the agent's own kinds of agent; `None`: its default.
    pub agent: Option<&'a str>,
    /// Added to the agent's own instructions.
    pub system: &'a str,
    /// The prompt as its author wrote it.
    pub text: &'a str,
    /// Images that the model sees beside the text.
    pub images: &'a [InlineImage],
    /// Known facts about earlier submissions.
    pub sending: Sending,
}

/// Constant properties of a runtime.
#[derive(Debug, Clone)]
pub struct RuntimeFacts<'a> {
    /// Port of its server in the sandbox.
    pub port: u16,
    /// Whether it has a server at all.
    pub has_server: bool,
    /// Providers with models that can be chosen: those with a key. The configured one is first.
    pub providers: &'a [String],
    /// A script that prepares a workspace for the server, run in that workspace after its files exist; a repeat is
    /// harmless, and its exit status does not matter. The server may be running already.
    pub fit_workspace: String,
    /// A script that prints the end of the server's terminal output.
    pub last_words: &'static str,
}

/// A kind of agent.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Its constant properties.
    fn facts(&self) -> RuntimeFacts<'_>;

    /// The keys that a server needs.
    ///
    /// # Errors
    /// [`Failure::NonRecoverable`] if there is none for the configured model.
    fn keys(&self) -> Result<Vec<ModelKey>, Failure>;

    /// The start of a server.
    ///
    /// # Errors
    /// As [`Runtime::keys`].
    fn launch(&self, inputs: LaunchInputs<'_>) -> Result<ServerLaunch, Failure>;

    /// The server behind an endpoint. Makes no call.
    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent>;
}

/// Most bytes of one answer of a server: parsing it takes three times as many, of the 128 MB that a worker has. A
/// prompt with the maximum of images fits by itself; if several do not, fewer messages are requested at a time.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// HTTP client for servers whose endpoints come from a provider at this base: loopback only if the base is.
///
/// # Errors
/// [`HttpError::Refused`] when the base is not an allowed address.
pub fn server_http(provider_base: &str) -> Result<Http, HttpError> {
    Ok(Http::new(provider_base, AllowedHosts::Public)?.with_body_bytes_max(ANSWER_BYTES_MAX))
}

/// The file changes of a prompt's run, as its agent reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The changes.
    pub changes: Changes,
    /// It names none although tools ran. OpenCode also reports none if a file's name is not UTF-8.
    pub may_lack: bool,
}

impl From<Changes> for Reported {
    fn from(changes: Changes) -> Self {
        Self { changes, may_lack: false }
    }
}

/// A thread's conversation with its agent.
#[derive(Debug, Clone, Copy)]
pub struct ConversationKey<'a> {
    /// The thread.
    pub thread: &'a ThreadKey,
    /// When it was restarted; 0: it is the thread's first.
    pub since_ms: Ms,
}

impl ConversationKey<'_> {
    /// The name by which it is found.
    #[must_use]
    pub fn name(&self) -> String {
        match self.since_ms {
            0 => self.thread.to_string(),
            since_ms => format!("{} since {since_ms}", self.thread),
        }
    }

    /// The title by which people and agents find its session.
    #[must_use]
    pub fn title(&self) -> String {
        format!("bobbin {}", self.name())
    }
}

/// The run to stop.
#[derive(Debug, Clone, Copy)]
pub enum RunStop<'a> {
    /// The run of this prompt, once it has begun, unless the agent has been given a prompt of another turn since.
    Prompt {
        /// The prompt.
        message: &'a str,
        /// The prompts of its turn.
        turn: &'a [String],
    },
    /// The present run, only if the agent is answering a prompt of this turn (by its message ids) at this moment.
    Answering {
        /// The prompts of the turn.
        turn: &'a [String],
    },
    /// A run that no turn follows any more; waits until the agent is idle.
    Stray {
        /// Its prompts.
        messages: &'a [String],
    },
}

/// A running server in one sandbox, reached by its endpoint and asked about one workspace: the common one, unless
/// [`Agent::in_workspace`] selects another. Sessions, runs, asks and changes of other workspaces are not seen.
#[async_trait]
pub trait Agent: fmt::Debug + Send + Sync {
    /// The same server, for this workspace.
    fn in_workspace(&self, workspace: &Workspace) -> Arc<dyn Agent>;

    /// Whether it reports itself healthy; with `refresh`, a fresh endpoint is fetched if the present one does not work.
    async fn is_healthy(&self, refresh: bool) -> AgentResult<bool>;

    /// Its options, by their display names.
    async fn options(&self) -> AgentResult<AgentOptions>;

    /// The session of a conversation in this workspace: the known one, else the newest with its name, else a new one.
    /// It is of the chosen kind of agent, if a server runs several.
    async fn ensure_session(
        &self,
        conversation: ConversationKey<'_>,
        known: Option<&AgentSessionId>,
        agent: Option<&str>,
    ) -> AgentResult<AgentSessionId>;

    /// Submits a prompt. Accepted does not mean begun.
    async fn submit(&self, session: &AgentSessionId, prompt: Submission<'_>) -> Result<(), Missed>;

    /// State of a prompt that may have been submitted.
    async fn prompt_state(
        &self,
        session: &AgentSessionId,
        message: &str,
    ) -> AgentResult<PromptState>;

    /// Observes a run. Pass a new cursor at first, and the same one from then on.
    async fn observe<'a>(
        &self,
        run: RunRef<'_>,
        cursor: &'a mut RunCursor,
        how: Observe,
    ) -> AgentResult<Observation<'a>>;

    /// Stops a run. False: it continues all the same, which only [`RunStop::Stray`] finds out.
    async fn stop(&self, session: &AgentSessionId, what: RunStop<'_>) -> AgentResult<bool>;

    /// Sends a person's decision on an ask; one that is no longer open counts as answered.
    async fn answer(&self, ask: &AskId, about: &About, choice: &Choice) -> AgentResult<()>;

    /// The files changed by a prompt's run.
    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported>;
}
