//! The seam: what Bobbin wants of whatever runs an agent in a sandbox.
//!
//! A [`Runtime`] knows how its server is started and spoken to, an [`Agent`] is one server that runs, and a [`RunWatch`]
//! follows one run of it. What decides is what is observed; what the agent tells by itself only makes a card livelier.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, Ms, PromptIds, ThreadKey, TurnId};
use bobbin_core::protocol::effect::Sending;
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::card::{CardStep, PlanItem};
use bobbin_core::records::changes::Changes;
use bobbin_core::records::run::{Answer, PromptState};
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::settings::AgentOptions;
use bobbin_core::tokens::nudge::Nudge;
use bobbin_http::{Http, HttpError};
use futures::future::BoxFuture;

use crate::retrying::Retrying;

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

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The agent works, or waits for an ask.
    Busy,
    /// It was broken off: its server went away. Believe it only when observed twice, some seconds apart.
    Stopped,
    /// It was broken off, as what runs the agent says itself: certain at once.
    Lost,
    /// Nothing has come of the prompt yet, or it is not there. Believe it only when observed twice, some seconds apart.
    Pending,
    /// It has ended, and this is what came of it.
    Done(Answer),
}

/// A kind of agent.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// The port of its server in the sandbox.
    fn port(&self) -> u16;

    /// Whether there is a server at all.
    fn has_server(&self) -> bool {
        true
    }

    /// Providers whose models can be chosen: there is a key for them. The configured one is first.
    fn providers(&self) -> &[String];

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

    /// What this exit status of the script means; none: nothing in particular.
    fn not_launched(&self, exit_code: i64) -> Option<Failure>;

    /// A script that makes a workspace fit for the server, run in that workspace after its files are there; a repeat is
    /// harmless, and its exit status is of no account. The server may be running already.
    fn fit_workspace(&self) -> String;

    /// A script that prints the end of what the server wrote to its terminal.
    fn last_words(&self) -> &'static str;

    /// How servers are reached that a provider at this base has endpoints for: on loopback only where that is.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base may not be spoken to.
    fn http(&self, provider_base: &str) -> Result<Http, HttpError>;

    /// The server behind an endpoint. Nothing is asked yet.
    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent>;
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

    /// Follows the run of a prompt, into which these were sent after it.
    fn watch(
        &self,
        session: &AgentSessionId,
        message: &str,
        further: &[String],
    ) -> Box<dyn RunWatch>;

    /// Ends the run of this prompt, once it has begun, unless the agent has been given a prompt of another turn since.
    async fn cancel(
        &self,
        session: &AgentSessionId,
        message: &str,
        turn: &[String],
    ) -> AgentResult<()>;

    /// Ends a run only if the agent is answering a prompt of this turn (by its message ids) at this moment.
    async fn cancel_if_answering(
        &self,
        session: &AgentSessionId,
        turn: &[String],
    ) -> AgentResult<()>;

    /// Ends a run that no turn follows any more and waits until the agent has nothing to do. False: it goes on all the same.
    async fn end(&self, session: &AgentSessionId, messages: &[String]) -> AgentResult<bool>;

    /// Tells it what a person said to an ask; one that is no longer open counts as told.
    async fn answer(&self, ask: &AskId, about: &About, choice: &Choice) -> AgentResult<()>;

    /// The files that a prompt's run has changed.
    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported>;
}

/// One run, as it is followed.
#[async_trait]
pub trait RunWatch: Send {
    /// Begins to listen, anew where it has before.
    async fn connect(&mut self) -> AgentResult<()>;

    /// Takes in what the agent tells, for so long at most. Whether anything came.
    async fn hear(&mut self, within: Duration) -> AgentResult<bool>;

    /// Reads all that there is to know now, without listening for more than that takes.
    async fn read(&mut self) -> AgentResult<()>;

    /// Nothing is missing any more of what was told since the last [`RunWatch::connect`].
    fn is_caught_up(&self) -> bool;

    /// Whether something suggested since it was last asked that the run may be over.
    fn suggests_end(&mut self) -> bool;

    /// Finds out whose asks those are of which that is not known.
    async fn sort_asks(&mut self) -> AgentResult<()>;

    /// Looks how the run stands: from what the agent has on record, never from what it told.
    async fn observe(&mut self) -> AgentResult<RunState>;

    /// The asks that wait for a person, by id.
    fn asks(&self) -> Vec<(AskId, About)>;

    /// The last steps, for the card, and how many came before them.
    fn steps(&self) -> (Vec<CardStep>, usize);

    /// The plan, for the card.
    fn plan(&self) -> Vec<PlanItem>;

    /// The words that the agent has written in it so far, in the order in which it began them: each is one piece, and only
    /// what the agent is still writing grows.
    fn words(&self) -> Vec<String>;

    /// What the agent has said in it so far, counted by messages: a run that makes too many is in a loop.
    fn messages(&self) -> usize;

    /// The last thing that failed, for people; not by itself the end.
    fn trouble(&self) -> Option<&str>;

    /// The model that did not answer and is asked again, while that is so.
    fn retrying(&self) -> Option<Retrying>;
}
