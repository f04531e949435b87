//! The OpenCode server of a sandbox, over the endpoint that its provider gives.
//!
//! Promised: an answer is believed only when it is OpenCode's own (JSON where JSON is due; a page of HTML, a redirect
//! or a proxy's error is none); a stale endpoint is fetched once more and the call repeated once, which our own message
//! and part ids make harmless for prompts too. Deliberately absent: any judgement of a run (see the folds in
//! `crate::opencode`) and the synchronous prompt call, which no proxy lets live long enough.

mod error;
mod events;
mod messages;
mod transport;

use std::sync::{Arc, RwLock};

use base64::Engine as _;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::ids::{PromptIds, TurnId};
use bobbin_http::Http;
use reqwest::Method;
use serde_json::Value;

use crate::opencode::models::Models;
use crate::opencode::options;
use crate::opencode::request::{self, RunWith};
use crate::opencode::types::{FileDiff, Health, ServerPaths, Session, Statuses};
use crate::runtime::{Conversation, InlineImage, Refresh};

use self::error::{CallKind, not_an_answer};
pub use self::error::{NotAccepted, OpenCodeError};
pub use self::events::Events;
use self::events::STREAM_MS_MAX;

/// The user name of OpenCode's Basic authentication.
const USER: &str = "opencode";
/// What says whether the server is up; it is of no directory.
const HEALTH: &str = "/global/health";
/// Sessions that are read to find one by its title.
const SESSIONS_MAX: u32 = 100;

type Answered<T> = Result<T, OpenCodeError>;

/// What an endpoint leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// The server itself, which wants the password as Basic authentication.
    #[default]
    Server,
    /// The daemon in front of it, which wants the password as a token and has OpenCode's API below a path of its own.
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
    /// How long a stream of events may last.
    stream_ms_max: u64,
    /// The directory that every call is about; none: the server's own.
    directory: Option<String>,
    /// The names that people use for its models.
    pub(in crate::opencode) models: Arc<Models>,
    /// It works by the tools of another sandbox.
    pub(in crate::opencode) has_tools: bool,
}

impl std::fmt::Debug for OpenCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCode").finish_non_exhaustive()
    }
}

/// What a prompt says.
#[derive(Debug, Clone, Copy)]
pub struct PromptText<'a> {
    /// Whose prompt it is.
    pub turn: &'a TurnId,
    /// Added to the agent's own instructions.
    pub system: &'a str,
    /// The prompt as its author wrote it.
    pub text: &'a str,
    /// Images that the model sees after the text.
    pub images: &'a [InlineImage],
}

impl OpenCode {
    /// A client that reaches the server by this endpoint. `http` comes from the base of the provider's API: only a loopback
    /// base lets endpoints be loopback.
    #[must_use]
    pub fn new(http: Http, endpoint: Endpoint, password: &str) -> Self {
        Self::over(Via::Server, http, endpoint, password)
    }

    /// The same, where the endpoint may lead to the daemon in front of the server.
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

    /// The same client, for people who name models so. Without them a model has the name that the server gives it.
    #[must_use]
    pub fn with_models(self, models: Arc<Models>) -> Self {
        Self { models, ..self }
    }

    /// The same client, of a server that works by the tools of another sandbox.
    #[must_use]
    pub fn with_tools(self) -> Self {
        Self { has_tools: true, ..self }
    }

    /// The same client, for what happens in this directory; none: in the server's own. Every call but the health's names it
    /// in its query. (The header `x-opencode-directory` is not the same: with it a list of sessions is of all directories of
    /// the project. Measured on 1.18.33, as is what [`bobbin_core::records::workspace::Workspace`] says.)
    #[must_use]
    pub fn in_directory(&self, directory: Option<&str>) -> Self {
        Self { directory: directory.map(str::to_owned), ..self.clone() }
    }

    /// Whether a session is of the directory that this client is for; a server's own directory is not known here, so that
    /// for a client without one every session is.
    #[must_use]
    pub fn is_at(&self, session: &Session) -> bool {
        let wanted = self.directory.as_ref();
        wanted.is_none_or(|wanted| *wanted == session.directory)
    }

    /// The same client, which fetches a fresh endpoint once when the one it has does not work.
    #[must_use]
    pub fn refreshed_by(self, refresh: Refresh) -> Self {
        Self { refresh: Some(refresh), ..self }
    }

    /// The same client, whose streams of events may last so long.
    #[must_use]
    pub fn with_stream_of(self, stream_ms_max: u64) -> Self {
        Self { stream_ms_max, ..self }
    }

    /// Whether the server is up.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn health(&self) -> Answered<Health> {
        self.get(HEALTH, &[], CallKind::Other).await
    }

    /// Whether the server is up, without a fresh endpoint: for asking often while it starts.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn probe(&self) -> Answered<Health> {
        let answer = self.once(Method::GET, HEALTH, &[], None, CallKind::Other).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    /// Makes a session for a conversation.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn create_session(&self, conversation: Conversation<'_>) -> Answered<Session> {
        self.create(request::create_session(conversation)).await
    }

    /// Makes a session as this body says.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn create(&self, body: Value) -> Answered<Session> {
        self.post_json("/session", Some(body), CallKind::Other).await
    }

    /// The newest session with exactly this title in the directory that this client is for.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn find_session(&self, title: &str) -> Answered<Option<Session>> {
        let limit = SESSIONS_MAX.to_string();
        let query = [("search", title), ("roots", "true"), ("limit", limit.as_str())];
        let mut found: Vec<Session> = self.get("/session", &query, CallKind::Other).await?;
        found.retain(|session| session.title == title && self.is_at(session));
        // Without a directory those of every worktree of the repository are listed.
        if self.directory.is_none() && found.iter().any(|one| !one.directory.is_empty()) {
            let own: ServerPaths = self.get("/path", &[], CallKind::Other).await?;
            found.retain(|one| one.directory.is_empty() || one.directory == own.directory);
        }
        let newest = |a: &Session, b: &Session| a.time.created.total_cmp(&b.time.created);
        Ok(found.into_iter().max_by(newest))
    }

    /// Reads a session.
    ///
    /// # Errors
    /// [`OpenCodeError::SessionMissing`] when there is none.
    pub async fn session(&self, id: &str) -> Answered<Session> {
        self.get(&format!("/session/{id}"), &[], CallKind::Session).await
    }

    /// The models that the server offers. The answer holds keys in clear: nothing but names is kept of it.
    pub(in crate::opencode) async fn offered_models(&self) -> Answered<options::Providers> {
        self.get("/config/providers", &[], CallKind::Other).await
    }

    /// The agents that it offers.
    pub(in crate::opencode) async fn offered_agents(&self) -> Answered<Vec<options::AgentEntry>> {
        self.get("/agent", &[], CallKind::Other).await
    }

    /// Sends a prompt; accepted is not yet stored (look for the message), and stored is not yet begun.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn prompt(
        &self,
        session: &str,
        ids: &PromptIds,
        with: &RunWith,
        prompt: &PromptText<'_>,
    ) -> Result<(), NotAccepted> {
        let body =
            request::prompt(ids, prompt.turn, with, prompt.system, prompt.text, prompt.images);
        self.send(session, &body).await
    }

    /// Hands over a prompt of this body, with an id of the message's own in it.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn send(&self, session: &str, body: &Value) -> Result<(), NotAccepted> {
        let path = format!("/session/{session}/prompt_async");
        let once = || self.attempt(Method::POST, &path, &[], Some(body), CallKind::Session);
        let answer = match once().await {
            Err(first) if first.error.is_of_the_endpoint() => {
                let renewed = self
                    .renew()
                    .await
                    .map_err(|error| NotAccepted { error, certain: first.certain })?;
                if !renewed {
                    return Err(first);
                }
                // What is certain of the last attempt says nothing of the one before it.
                once().await.map_err(|last| NotAccepted {
                    certain: first.certain && last.certain,
                    error: last.error,
                })?
            }
            other => other?,
        };
        if answer.status == 204 {
            return Ok(());
        }
        Err(NotAccepted { error: not_an_answer(&answer), certain: false })
    }

    /// What the sessions that are not idle do.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn statuses(&self) -> Answered<Statuses> {
        self.get("/session/status", &[], CallKind::Other).await
    }

    /// Ends the run of a session, if there is one.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn abort(&self, session: &str) -> Answered<()> {
        self.post_json::<Value>(&format!("/session/{session}/abort"), None, CallKind::Session)
            .await
            .map(drop)
    }

    /// The permissions that are asked for, as events tell of them. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn permissions(&self) -> Answered<Vec<Value>> {
        self.get("/permission", &[], CallKind::Other).await
    }

    /// Answers a permission: `once`, `always` or `reject`.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reply_permission(&self, id: &str, reply: &str) -> Answered<()> {
        let body = request::permission_reply(reply);
        self.post_json::<Value>(&format!("/permission/{id}/reply"), Some(body), CallKind::Other)
            .await
            .map(drop)
    }

    /// The questions that are asked, as events tell of them. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn questions(&self) -> Answered<Vec<Value>> {
        self.get("/question", &[], CallKind::Other).await
    }

    /// Answers a question: one list of labels per question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reply_question(&self, id: &str, answers: &[Vec<String>]) -> Answered<()> {
        let body = request::question_reply(answers);
        self.post_json::<Value>(&format!("/question/{id}/reply"), Some(body), CallKind::Other)
            .await
            .map(drop)
    }

    /// Declines a question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reject_question(&self, id: &str) -> Answered<()> {
        self.post_json::<Value>(&format!("/question/{id}/reject"), None, CallKind::Other)
            .await
            .map(drop)
    }

    /// How the servers of tools stand, by their names in the configuration.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn tool_servers(&self) -> Answered<Value> {
        self.get("/mcp", &[], CallKind::Other).await
    }

    /// Connects a server of tools anew.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn connect_tools(&self, server: &str) -> Answered<()> {
        let path = format!("/mcp/{server}/connect");
        let connected = self.post_json::<Value>(&path, None, CallKind::Other).await;
        connected.map(drop)
    }

    /// The files that a prompt's turn changed.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn diff(&self, session: &str, prompt: &str) -> Answered<Vec<FileDiff>> {
        self.get(&format!("/session/{session}/diff"), &[("messageID", prompt)], CallKind::Session)
            .await
    }
}

#[cfg(test)]
mod tests;
