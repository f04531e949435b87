//! The client of `bobbin-agentd`: an existing daemon (*server*), an embedded one (*embedded*, a feature), or either
//! (*auto*).
//!
//! Promised: a call has a bound on its time and its answer; each call documents the effect of a repeat; an error says
//! what to do next and contains no token. Deliberately absent: retries, because the caller knows what they mean.

mod error;
mod events;
mod types;

#[cfg(feature = "embedded")]
mod embedded;

use std::time::Duration;

use bobbin_agent_events::UniversalEvent;
use bobbin_http::{AllowedHosts, Http, Method, ReceivedAnswer, is_loopback};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::RequestBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[cfg(feature = "embedded")]
pub use embedded::{Auto, Embedded, EmbeddedOptions};
pub use error::ClientError;
pub use events::EventStream;
pub use types::{
    AgentInfo, AgentMode, CreateSession, CreatedSession, DaemonAsk, EventsPage, FileChange,
    FileStatus, MessageAttachment, NewMessage, NudgeAddress, PermissionAnswer, SessionInfo,
    Submitted, TurnChanges, TurnState, TurnStatus,
};

/// Bound of a call that waits for nothing.
const CALL_MS: u64 = 15_000;
/// Bound of creating a session, which waits for its agent to start.
const CREATE_MS: u64 = 40_000;
/// Bound of an installation: the download of an agent.
const INSTALL_MS: u64 = 900_000;
/// Longest wait that is requested from the daemon.
pub const POLL_MS_MAX: u64 = 60_000;

/// Characters that stay unescaped in a path segment (RFC 3986, 2.3).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Result of a call.
pub type ClientResult<T> = Result<T, ClientError>;

/// Client of an existing daemon.
#[derive(Clone)]
pub struct AgentClient {
    http: Http,
    base: String,
    token: String,
    /// Headers for a tunnel or a preview in front of the daemon.
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for AgentClient {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentClient").field("base", &self.base).finish_non_exhaustive()
    }
}

impl AgentClient {
    /// *Server* mode: a base address (`http://127.0.0.1:2468`) and the daemon's token. Plain http is allowed to
    /// loopback only.
    ///
    /// # Errors
    /// The address is not allowed.
    pub fn server(base: &str, token: &str) -> ClientResult<Self> {
        let hosts =
            if is_loopback(base) { AllowedHosts::Named(Vec::new()) } else { AllowedHosts::Public };
        Ok(Self::over(Http::new(base, hosts)?, base, token))
    }

    /// Like [`Self::server`], over an existing HTTP client, whose guard decides where it may connect.
    #[must_use]
    pub fn over(http: Http, base: &str, token: &str) -> Self {
        Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            headers: Vec::new(),
        }
    }

    /// Adds headers that something in front of the daemon requires.
    #[must_use]
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Self {
        self.headers = headers;
        self
    }

    /// The daemon's address.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether the daemon answers, within 2 s.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn health(&self) -> ClientResult<()> {
        let request = self.request(Method::GET, "/v1/health")?;
        self.call(request.timeout(Duration::from_secs(2))).await.map(|_| ())
    }

    /// The daemon's agents.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn agents(&self) -> ClientResult<Vec<AgentInfo>> {
        #[derive(serde::Deserialize)]
        struct AgentList {
            agents: Vec<AgentInfo>,
        }
        self.get::<AgentList>("/v1/agents").await.map(|list| list.agents)
    }

    /// The modes of an agent.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn modes(&self, agent: &str) -> ClientResult<Vec<AgentMode>> {
        #[derive(serde::Deserialize)]
        struct ModeList {
            modes: Vec<AgentMode>,
        }
        let path = format!("/v1/agents/{}/modes", part(agent));
        self.get::<ModeList>(&path).await.map(|list| list.modes)
    }

    /// Installs an agent, if it is missing. A repeat is harmless.
    ///
    /// # Errors
    /// [`ClientError`]; with `install_failed` it says which step failed.
    pub async fn install(&self, agent: &str) -> ClientResult<()> {
        let path = format!("/v1/agents/{}/install", part(agent));
        let request = self.request(Method::POST, &path)?.json(&json!({}));
        self.call(request.timeout(Duration::from_millis(INSTALL_MS))).await.map(|_| ())
    }

    /// The daemon's sessions.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sessions(&self) -> ClientResult<Vec<SessionInfo>> {
        #[derive(serde::Deserialize)]
        struct SessionList {
            sessions: Vec<SessionInfo>,
        }
        self.get::<SessionList>("/v1/sessions").await.map(|list| list.sessions)
    }

    /// Creates a session. If the id exists: [`ClientError::is_kind`]`("session_already_exists")`, and nothing is done.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_session(
        &self,
        id: &str,
        session: &CreateSession,
    ) -> ClientResult<CreatedSession> {
        let request = self.request(Method::POST, &at(id, ""))?.json(session);
        self.read(request.timeout(Duration::from_millis(CREATE_MS))).await
    }

    /// Sends a message as a turn. If the turn's id is already known, nothing is done, whatever its state.
    ///
    /// # Errors
    /// [`ClientError`]. Without an answer it is not known whether the turn was accepted: send it again with its id.
    pub async fn send(&self, session: &str, message: &NewMessage) -> ClientResult<Submitted> {
        let answer = self.post(&at(session, "/messages"), &json!(message)).await?;
        let header = |name: &str| Some(answer.headers.get(name)?.to_str().ok()?.to_owned());
        let turn = header("x-bobbin-turn").ok_or(ClientError::NotADaemon)?;
        Ok(match header("x-bobbin-outcome").as_deref() {
            Some("AlreadyKnown") => Submitted::AlreadyKnown(turn),
            _ => Submitted::Accepted(turn),
        })
    }

    /// State of a turn.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn turn(&self, session: &str, turn: &str) -> ClientResult<TurnStatus> {
        self.get(&at(session, &format!("/turns/{}", part(turn)))).await
    }

    /// File changes of a turn that has ended, including those of turns that were sent into it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn changes(&self, session: &str, turn: &str) -> ClientResult<TurnChanges> {
        self.get(&at(session, &format!("/turns/{}/changes", part(turn)))).await
    }

    /// Cancels a turn. It is harmless to repeat, and for a turn that has ended.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel(&self, session: &str, turn: &str) -> ClientResult<()> {
        let path = at(session, &format!("/turns/{}/cancel", part(turn)));
        self.post(&path, &Value::Null).await.map(|_| ())
    }

    /// Ends a session for good. A repeat is harmless.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn terminate(&self, session: &str) -> ClientResult<()> {
        self.post(&at(session, "/terminate"), &Value::Null).await.map(|_| ())
    }

    /// Answers a permission.
    ///
    /// # Errors
    /// [`ClientError`]; 404 if it is no longer open.
    pub async fn reply_permission(
        &self,
        session: &str,
        ask: &str,
        reply: PermissionAnswer,
    ) -> ClientResult<()> {
        let path = at(session, &format!("/permissions/{}/reply", part(ask)));
        self.post(&path, &json!({"reply": reply})).await.map(|_| ())
    }

    /// Answers questions: for each its labels, or free text.
    ///
    /// # Errors
    /// [`ClientError`]; 404 if they are no longer open.
    pub async fn reply_question(
        &self,
        session: &str,
        ask: &str,
        answers: &[Vec<String>],
    ) -> ClientResult<()> {
        let path = at(session, &format!("/questions/{}/reply", part(ask)));
        self.post(&path, &json!({"answers": answers})).await.map(|_| ())
    }

    /// Declines questions.
    ///
    /// # Errors
    /// [`ClientError`]; 404 if they are no longer open.
    pub async fn reject_question(&self, session: &str, ask: &str) -> ClientResult<()> {
        let path = at(session, &format!("/questions/{}/reject", part(ask)));
        self.post(&path, &Value::Null).await.map(|_| ())
    }

    /// Events after `offset`; if there are none yet, those that come within `wait` (at most [`POLL_MS_MAX`]).
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn events(
        &self,
        session: &str,
        offset: u64,
        limit: u64,
        wait: Duration,
    ) -> ClientResult<EventsPage> {
        let wait = wait.min(Duration::from_millis(POLL_MS_MAX));
        let query = format!("/events?offset={offset}&limit={limit}&wait={}", wait.as_millis());
        let request = self.request(Method::GET, &at(session, &query))?;
        self.read(request.timeout(wait + Duration::from_millis(CALL_MS))).await
    }

    /// A stream of the events after `offset`, existing ones first. If it breaks, open another with the id of the last
    /// event.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow(&self, session: &str, offset: u64) -> ClientResult<EventStream> {
        let path = at(session, &format!("/events/sse?offset={offset}"));
        let request = self.request(Method::GET, &path)?.timeout(events::STREAM_MAX);
        let response = self.http.open(request).await?;
        if response.status().is_success() {
            return Ok(EventStream::new(response));
        }
        Err(ClientError::refused(response.status().as_u16(), None))
    }

    fn request(&self, method: Method, path: &str) -> ClientResult<RequestBuilder> {
        let mut request = self.http.request(method, &format!("{}{path}", self.base))?;
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        Ok(request.bearer_auth(&self.token).timeout(Duration::from_millis(CALL_MS)))
    }

    async fn call(&self, request: RequestBuilder) -> ClientResult<ReceivedAnswer> {
        let answer = self.http.send(request).await?;
        if answer.ok() {
            return Ok(answer);
        }
        Err(ClientError::refused(answer.status, answer.json()))
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> ClientResult<T> {
        self.call(request).await?.json().ok_or(ClientError::NotADaemon)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> ClientResult<T> {
        let request = self.request(Method::GET, path)?;
        self.read(request).await
    }

    async fn post(&self, path: &str, body: &Value) -> ClientResult<ReceivedAnswer> {
        let request = self.request(Method::POST, path)?;
        let request = if body.is_null() { request } else { request.json(body) };
        self.call(request).await
    }
}

fn part(id: &str) -> String {
    utf8_percent_encode(id, PATH).to_string()
}

fn at(session: &str, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", part(session))
}

/// The last event's id, for the next call.
#[must_use]
pub fn last_id(events: &[UniversalEvent], before: u64) -> u64 {
    events.last().map_or(before, |event| event.id)
}
