//! Client of a sandbox's OpenCode server, over the provider's endpoint.
//!
//! Promised: only an answer of OpenCode's own is accepted (JSON where JSON is expected; an HTML page, a redirect or a
//! proxy's error is not). A stale endpoint is replaced once and the call repeated once, which our own message and part
//! ids make harmless for prompts too. Deliberately absent: any judgement of a run (see the folds in `crate::opencode`)
//! and the synchronous prompt call, which takes longer than any proxy allows.

mod error;
mod events;
mod messages;
mod transport;

use std::sync::{Arc, RwLock};

use base64::Engine as _;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_http::Http;
use reqwest::Method;
use serde_json::Value;

use crate::models::Models;
use crate::opencode::options;
use crate::opencode::request;
use crate::opencode::types::{FileDiff, Health, OpenCodeSession, OpenCodeStatuses, ServerPaths};
use crate::runtime::{ConversationKey, Refresh};

use self::error::{CallKind, not_an_answer};
pub use self::error::{NotAccepted, OpenCodeError};
pub use self::events::Events;
use self::events::STREAM_MS_MAX;

/// The user name of OpenCode's Basic authentication.
const USER: &str = "opencode";
/// Path of the health check, which is independent of the directory.
const HEALTH: &str = "/global/health";
/// Sessions that are read to find one by its title.
const SESSIONS_MAX: u32 = 100;

type OpenCodeResult<T> = Result<T, OpenCodeError>;

/// The program behind an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// The server itself; the password is sent as Basic authentication.
    #[default]
    Server,
    /// The daemon in front of it; the password is sent as a token, and OpenCode's API is below a path.
    Daemon,
}

impl Via {
    const fn base_path(self) -> &'static str {
        match self {
            Self::Server => "",
            Self::Daemon => "/opencode",
        }
    }

    fn authorization(self, password: &str) -> String {
        match self {
            Self::Server => {
                let user = format!("{USER}:{password}");
                let encoded = base64::engine::general_purpose::STANDARD.encode(user);
                format!("Basic {encoded}")
            }
            Self::Daemon => format!("Bearer {password}"),
        }
    }
}

/// The client of one server.
#[derive(Clone)]
pub struct OpenCode {
    http: Http,
    endpoint: Arc<RwLock<Endpoint>>,
    via: Via,
    authorization: String,
    refresh: Option<Refresh>,
    /// Longest life of an event stream.
    stream_ms_max: u64,
    /// The directory of every call; `None`: the server's own.
    directory: Option<String>,
    /// Display names of its models.
    pub(in crate::opencode) models: Arc<Models>,
    /// Whether it works through the tools of another sandbox.
    pub(in crate::opencode) has_tools: bool,
}

impl std::fmt::Debug for OpenCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCode").finish_non_exhaustive()
    }
}

impl OpenCode {
    /// A client for this endpoint. `http` comes from the base of the provider's API: only a loopback base allows
    /// loopback endpoints.
    #[must_use]
    pub fn new(http: Http, endpoint: Endpoint, password: &str) -> Self {
        Self::over(Via::Server, http, endpoint, password)
    }

    /// Like [`Self::new`], but the endpoint may lead to the daemon in front of the server.
    #[must_use]
    pub fn over(via: Via, http: Http, endpoint: Endpoint, password: &str) -> Self {
        let endpoint = Arc::new(RwLock::new(endpoint));
        Self {
            http,
            endpoint,
            via,
            authorization: via.authorization(password),
            refresh: None,
            stream_ms_max: STREAM_MS_MAX,
            directory: None,
            models: Arc::default(),
            has_tools: false,
        }
    }

    /// With these display names of models. Without them a model has the server's name.
    #[must_use]
    pub fn with_models(self, models: Arc<Models>) -> Self {
        Self { models, ..self }
    }

    /// For a server that works through the tools of another sandbox.
    #[must_use]
    pub fn with_tools(self) -> Self {
        Self { has_tools: true, ..self }
    }

    /// For this directory; `None`: the server's own. Every call except the health check has it in its query. (The
    /// header `x-opencode-directory` is not equivalent: with it a list of sessions covers all directories of the
    /// project. Measured on 1.18.33, as are the facts in [`bobbin_core::records::workspace::Workspace`].)
    #[must_use]
    pub fn in_directory(&self, directory: Option<&str>) -> Self {
        Self { directory: directory.map(str::to_owned), ..self.clone() }
    }

    /// Whether a session belongs to this client's directory. A server's own directory is not known here, so for a
    /// client without one every session does.
    #[must_use]
    pub fn is_at(&self, session: &OpenCodeSession) -> bool {
        let wanted = self.directory.as_ref();
        wanted.is_none_or(|wanted| *wanted == session.directory)
    }

    /// Fetches a fresh endpoint once if the present one does not work.
    #[must_use]
    pub fn refreshed_by(self, refresh: Refresh) -> Self {
        Self { refresh: Some(refresh), ..self }
    }

    /// Sets the longest life of event streams.
    #[must_use]
    pub fn with_stream_of(self, stream_ms_max: u64) -> Self {
        Self { stream_ms_max, ..self }
    }

    /// Whether the server is up.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn health(&self) -> OpenCodeResult<Health> {
        self.get(HEALTH, &[], CallKind::Other).await
    }

    /// Whether the server is up, without fetching a fresh endpoint: for polling while it starts.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn probe(&self) -> OpenCodeResult<Health> {
        let answer = self.once(Method::GET, HEALTH, &[], None, CallKind::Other).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    /// Creates a session for a conversation.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn create_session(
        &self,
        conversation: ConversationKey<'_>,
    ) -> OpenCodeResult<OpenCodeSession> {
        self.create(request::create_session(conversation)).await
    }

    /// Creates a session with this body.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn create(&self, body: Value) -> OpenCodeResult<OpenCodeSession> {
        self.post_json("/session", Some(body), CallKind::Other).await
    }

    /// The newest session with exactly this title in this client's directory.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn find_session(&self, title: &str) -> OpenCodeResult<Option<OpenCodeSession>> {
        let limit = SESSIONS_MAX.to_string();
        let query = [("search", title), ("roots", "true"), ("limit", limit.as_str())];
        let mut found: Vec<OpenCodeSession> = self.get("/session", &query, CallKind::Other).await?;
        found.retain(|session| session.title == title && self.is_at(session));
        // Without a directory, sessions of every worktree of the repository are listed.
        if self.directory.is_none() && found.iter().any(|one| !one.directory.is_empty()) {
            let own: ServerPaths = self.get("/path", &[], CallKind::Other).await?;
            found.retain(|one| one.directory.is_empty() || one.directory == own.directory);
        }
        let newest =
            |a: &OpenCodeSession, b: &OpenCodeSession| a.time.created.total_cmp(&b.time.created);
        Ok(found.into_iter().max_by(newest))
    }

    /// Reads a session.
    ///
    /// # Errors
    /// [`OpenCodeError::SessionMissing`] if it does not exist.
    pub async fn session(&self, id: &str) -> OpenCodeResult<OpenCodeSession> {
        self.get(&format!("/session/{id}"), &[], CallKind::Session).await
    }

    /// The sessions that this one started as subagents.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn children(&self, id: &str) -> OpenCodeResult<Vec<OpenCodeSession>> {
        self.get(&format!("/session/{id}/children"), &[], CallKind::Session).await
    }

    /// The models of the server. The answer contains keys in plain text: only names are kept.
    pub(in crate::opencode) async fn offered_models(
        &self,
    ) -> OpenCodeResult<options::ConfigProviders> {
        self.get("/config/providers", &[], CallKind::Other).await
    }

    /// The agents of the server.
    pub(in crate::opencode) async fn offered_agents(
        &self,
    ) -> OpenCodeResult<Vec<options::AgentEntry>> {
        self.get("/agent", &[], CallKind::Other).await
    }

    /// Status of the sessions that are not idle.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn statuses(&self) -> OpenCodeResult<OpenCodeStatuses> {
        self.get("/session/status", &[], CallKind::Other).await
    }

    /// Ends the run of a session, if there is one.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn abort(&self, session: &str) -> OpenCodeResult<()> {
        self.post_json::<Value>(&format!("/session/{session}/abort"), None, CallKind::Session)
            .await
            .map(drop)
    }

    /// The requested permissions, in the form of events. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn permissions(&self) -> OpenCodeResult<Vec<Value>> {
        self.get("/permission", &[], CallKind::Other).await
    }

    /// Answers a permission: `once`, `always` or `reject`.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] if it is already settled.
    pub async fn reply_permission(&self, id: &str, reply: &str) -> OpenCodeResult<()> {
        let body = request::permission_reply(reply);
        self.post_json::<Value>(&format!("/permission/{id}/reply"), Some(body), CallKind::Other)
            .await
            .map(drop)
    }

    /// The open questions, in the form of events. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn questions(&self) -> OpenCodeResult<Vec<Value>> {
        self.get("/question", &[], CallKind::Other).await
    }

    /// Answers a question: one list of labels per question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] if it is already settled.
    pub async fn reply_question(&self, id: &str, answers: &[Vec<String>]) -> OpenCodeResult<()> {
        let body = request::question_reply(answers);
        self.post_json::<Value>(&format!("/question/{id}/reply"), Some(body), CallKind::Other)
            .await
            .map(drop)
    }

    /// Declines a question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] if it is already settled.
    pub async fn reject_question(&self, id: &str) -> OpenCodeResult<()> {
        self.post_json::<Value>(&format!("/question/{id}/reject"), None, CallKind::Other)
            .await
            .map(drop)
    }

    /// State of the MCP servers, by their names in the configuration.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn tool_servers(&self) -> OpenCodeResult<Value> {
        self.get("/mcp", &[], CallKind::Other).await
    }

    /// Reconnects an MCP server.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn connect_tools(&self, server: &str) -> OpenCodeResult<()> {
        let path = format!("/mcp/{server}/connect");
        let connected = self.post_json::<Value>(&path, None, CallKind::Other).await;
        connected.map(drop)
    }

    /// The files that a prompt's turn changed.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn diff(&self, session: &str, prompt: &str) -> OpenCodeResult<Vec<FileDiff>> {
        self.get(&format!("/session/{session}/diff"), &[("messageID", prompt)], CallKind::Session)
            .await
    }
}

#[cfg(test)]
mod tests;
