//! The OpenCode server of a sandbox, over the endpoint that its provider gives.
//!
//! Promised: an answer is believed only when it is OpenCode's own (JSON where JSON is due; a page of HTML, a redirect
//! or a proxy's error is none); a stale endpoint is fetched once more and the call repeated once, which our own message
//! and part ids make harmless for prompts too. Deliberately absent: any judgement of a run (see the folds in
//! `crate::opencode`) and the synchronous prompt call, which no proxy lets live long enough.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use base64::Engine as _;
use bobbin_core::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{PromptIds, ThreadKey};
use bobbin_core::settings::Offer;
use bobbin_http::{self as http, Answer, Hosts, Http, HttpError};
use futures::future::try_join;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::opencode::offer;
use crate::opencode::request::{self, RunWith};
use crate::opencode::types::{FileDiff, Health, Message, Permission, Question, Session, Statuses};
use crate::opencode::{Event, Sse, in_order, is_whole};
use crate::runtime::{InlineImage, Refresh};

/// The user name of OpenCode's Basic authentication.
const USER: &str = "opencode";
/// Time for the head of the event stream.
const STREAM_HEAD_MS_MAX: u64 = 15_000;
/// Life of one event stream; it is opened anew after that.
const STREAM_MS_MAX: u64 = 14 * 60_000;
/// Bytes of one answer: reading it takes three times as many, of the 256 MB that a worker has. A prompt with as many images
/// as there may be fits by itself; where several do not, fewer messages are asked for at a time.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Newest messages that are looked at to see whether an answer is under way: prompts that were sent into a run lie behind
/// what it is writing.
const NEWEST_MESSAGES: u32 = 20;
/// Messages that are asked for at a time.
const PAGE_MESSAGES: u32 = 50;
/// Pages that are read to find a prompt.
const PAGES_MAX: usize = 10;
/// Sessions that are read to find one by its title.
const SESSIONS_MAX: u32 = 100;

/// What went wrong, by what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenCodeError {
    /// Neither proxy nor server gave an answer of OpenCode's.
    #[error("the server does not answer: {seen}")]
    Unreachable {
        /// What came in place of an answer: an error of the connection, a status, a media type.
        seen: String,
    },
    /// A redirect, twice: the endpoint's token is not taken.
    #[error("the preview refuses its token")]
    StaleEndpoint,
    /// 401: the server was started with another password.
    #[error("the server refuses its password")]
    WrongPassword,
    /// OpenCode does not know the session.
    #[error("OpenCode does not know the session")]
    SessionMissing,
    /// OpenCode does not know the message, or the ask is settled already.
    #[error("OpenCode does not know it: {message}")]
    NotFound {
        /// What OpenCode says of it; empty where it says nothing.
        message: String,
    },
    /// OpenCode refused, or failed within. A 500 may be the request's own fault, so it is not repeated blindly.
    #[error("OpenCode refused the request ({status}): {message}")]
    Refused {
        /// HTTP status of the answer.
        status: u16,
        /// What OpenCode says of it; empty where it says nothing.
        message: String,
    },
    /// OpenCode's answer is larger than we take.
    #[error("OpenCode's answer is too large: {seen}")]
    TooLarge {
        /// How large it is, and what it may be.
        seen: String,
    },
    /// The provider gave no endpoint.
    #[error(transparent)]
    NoEndpoint(#[from] NoEndpoint),
    /// The guard did not let the request out.
    #[error("{0}")]
    Guard(HttpError),
}

impl OpenCodeError {
    /// What the turn has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        match self {
            Self::Unreachable { .. } | Self::StaleEndpoint | Self::WrongPassword => {
                Failure::SandboxDown { seen }
            }
            Self::SessionMissing => Failure::SessionMissing,
            Self::NotFound { .. } | Self::Refused { .. } | Self::TooLarge { .. } => {
                Failure::TurnFailed { reason: seen }
            }
            Self::NoEndpoint(none) => none.failure.clone(),
            Self::Guard(_) => Failure::NonRecoverable {
                advice: format!(
                    "The sandbox's address cannot be used: {seen}. The operator has to check daytona_api of the parameter Overrides."
                ),
            },
        }
    }

    /// Whether a fresh endpoint may help.
    const fn is_of_the_endpoint(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::StaleEndpoint)
    }
}

impl From<HttpError> for OpenCodeError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Refused { .. } => Self::Guard(error),
            HttpError::TooLarge { .. } => Self::TooLarge {
                seen: error.to_string(),
            },
            _ => Self::Unreachable {
                seen: error.to_string(),
            },
        }
    }
}

/// A request that came to nothing, and what is certain about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAccepted {
    /// What went wrong last.
    pub error: OpenCodeError,
    /// OpenCode did nothing of it: it was never sent, or was refused by the proxy or by OpenCode itself.
    pub certain: bool,
}

type Answered<T> = Result<T, OpenCodeError>;

/// The client of one server.
#[derive(Clone)]
pub struct OpenCode {
    http: Http,
    endpoint: Arc<RwLock<Endpoint>>,
    authorization: String,
    refresh: Option<Refresh>,
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
    pub turn: &'a str,
    /// Added to the agent's own instructions.
    pub system: &'a str,
    /// The prompt as its author wrote it.
    pub text: &'a str,
    /// Images that the model sees after the text.
    pub images: &'a [InlineImage],
}

/// Which kind of call it is, for the answers that depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Session,
    Other,
}

impl OpenCode {
    /// A client that reaches the server by this endpoint. `http` comes from the base of the provider's API: only a loopback
    /// base lets endpoints be loopback.
    #[must_use]
    pub fn new(http: Http, endpoint: Endpoint, password: &str) -> Self {
        let credentials =
            base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{password}"));
        let endpoint = Arc::new(RwLock::new(endpoint));
        Self {
            http,
            endpoint,
            authorization: format!("Basic {credentials}"),
            refresh: None,
        }
    }

    /// The HTTP client that endpoints of the provider at this base are reached by.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base may not be spoken to.
    pub fn http(provider_base: &str) -> Result<Http, HttpError> {
        Ok(Http::new(provider_base, Hosts::Public)?.with_body_bytes_max(ANSWER_BYTES_MAX))
    }

    /// The same client, which fetches a fresh endpoint once when the one it has does not work.
    #[must_use]
    pub fn refreshed_by(self, refresh: Refresh) -> Self {
        Self {
            refresh: Some(refresh),
            ..self
        }
    }

    /// Whether the server is up.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn health(&self) -> Answered<Health> {
        self.get("/global/health", &[], About::Other).await
    }

    /// The same without a fresh endpoint, for looking often while the server starts.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn probe(&self) -> Answered<Health> {
        let answer = self
            .once(Method::GET, "/global/health", &[], None, About::Other)
            .await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    /// Makes a session for a thread.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn create_session(&self, thread: &ThreadKey) -> Answered<Session> {
        self.post_json(
            "/session",
            Some(request::create_session(thread)),
            About::Other,
        )
        .await
    }

    /// The newest session with exactly this title.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn find_session(&self, title: &str) -> Answered<Option<Session>> {
        let limit = SESSIONS_MAX.to_string();
        let query = [
            ("search", title),
            ("roots", "true"),
            ("limit", limit.as_str()),
        ];
        let found: Vec<Session> = self.get("/session", &query, About::Other).await?;
        let newest = |a: &Session, b: &Session| a.time.created.total_cmp(&b.time.created);
        Ok(found
            .into_iter()
            .filter(|session| session.title == title)
            .max_by(newest))
    }

    /// Reads a session.
    ///
    /// # Errors
    /// [`OpenCodeError::SessionMissing`] when there is none.
    pub async fn session(&self, id: &str) -> Answered<Session> {
        self.get(&format!("/session/{id}"), &[], About::Session)
            .await
    }

    /// What the server offers, by name. The answer holds keys in clear: nothing else of it is kept.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn offer(&self) -> Answered<Offer> {
        let providers = self.get::<offer::Providers>("/config/providers", &[], About::Other);
        let agents = self.get::<Vec<offer::Agent>>("/agent", &[], About::Other);
        let (providers, agents) = try_join(providers, agents).await?;
        Ok(Offer {
            models: offer::models(&providers),
            agents: offer::agents(&agents),
        })
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
        let body = request::prompt(
            ids,
            prompt.turn,
            with,
            prompt.system,
            prompt.text,
            prompt.images,
        );
        let path = format!("/session/{session}/prompt_async");
        let once = || self.attempt(Method::POST, &path, &[], Some(&body), About::Session);
        let answer = match once().await {
            Err(first) if first.error.is_of_the_endpoint() => {
                let renewed = self.renew().await.map_err(|error| NotAccepted {
                    error,
                    certain: first.certain,
                })?;
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
        Err(NotAccepted {
            error: not_an_answer(&answer),
            certain: false,
        })
    }

    /// Reads a message; `None` when OpenCode does not have it.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn message(&self, session: &str, message: &str) -> Answered<Option<Message>> {
        match self
            .get(
                &format!("/session/{session}/message/{message}"),
                &[],
                About::Session,
            )
            .await
        {
            Ok(found) => Ok(Some(found)),
            Err(OpenCodeError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The messages of a session from a prompt on, oldest first; the newest page when the prompt is not there.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn messages_since(&self, session: &str, prompt: &str) -> Answered<Vec<Message>> {
        let mut messages = PAGE_MESSAGES;
        loop {
            match self.pages_since(session, prompt, messages).await {
                Err(OpenCodeError::TooLarge { .. }) if messages > 1 => messages = fewer(messages),
                other => return other,
            }
        }
    }

    async fn pages_since(
        &self,
        session: &str,
        prompt: &str,
        messages: u32,
    ) -> Answered<Vec<Message>> {
        let path = format!("/session/{session}/message");
        let limit = messages.to_string();
        let mut found: Vec<Message> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut query = vec![("limit", limit.as_str())];
            query.extend(cursor.as_deref().map(|cursor| ("before", cursor)));
            let answer = self
                .call(Method::GET, &path, &query, None, About::Session)
                .await?;
            let mut page: Vec<Message> = answer.json().ok_or_else(|| not_an_answer(&answer))?;
            page.append(&mut found);
            found = page;
            let next = answer
                .headers
                .get("x-next-cursor")
                .and_then(|value| value.to_str().ok());
            cursor = next.filter(|next| !next.is_empty()).map(str::to_owned);
            if cursor.is_none() || is_whole(&in_order(&found), prompt) {
                break;
            }
        }
        Ok(in_order(&found).into_owned())
    }

    /// The newest messages of a session, oldest first.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn newest(&self, session: &str) -> Answered<Vec<Message>> {
        let path = format!("/session/{session}/message");
        let mut messages = NEWEST_MESSAGES;
        loop {
            let limit = messages.to_string();
            let query = [("limit", limit.as_str())];
            match self.get(&path, &query, About::Session).await {
                Err(OpenCodeError::TooLarge { .. }) if messages > 1 => messages = fewer(messages),
                other => return other,
            }
        }
    }

    /// What the sessions that are not idle do.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn statuses(&self) -> Answered<Statuses> {
        self.get("/session/status", &[], About::Other).await
    }

    /// Ends the run of a session, if there is one.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn abort(&self, session: &str) -> Answered<()> {
        self.post_json::<Value>(&format!("/session/{session}/abort"), None, About::Session)
            .await
            .map(drop)
    }

    /// The permissions that are asked for. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn permissions(&self) -> Answered<Vec<Permission>> {
        self.get("/permission", &[], About::Other).await
    }

    /// Answers a permission: `once`, `always` or `reject`.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reply_permission(&self, id: &str, reply: &str) -> Answered<()> {
        let body = request::permission_reply(reply);
        self.post_json::<Value>(&format!("/permission/{id}/reply"), Some(body), About::Other)
            .await
            .map(drop)
    }

    /// The questions that are asked. After an abort some stay listed for ever.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn questions(&self) -> Answered<Vec<Question>> {
        self.get("/question", &[], About::Other).await
    }

    /// Answers a question: one list of labels per question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reply_question(&self, id: &str, answers: &[Vec<String>]) -> Answered<()> {
        let body = request::question_reply(answers);
        self.post_json::<Value>(&format!("/question/{id}/reply"), Some(body), About::Other)
            .await
            .map(drop)
    }

    /// Declines a question.
    ///
    /// # Errors
    /// [`OpenCodeError::NotFound`] when it is settled already.
    pub async fn reject_question(&self, id: &str) -> Answered<()> {
        self.post_json::<Value>(&format!("/question/{id}/reject"), None, About::Other)
            .await
            .map(drop)
    }

    /// The files that a prompt's turn changed.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn diff(&self, session: &str, prompt: &str) -> Answered<Vec<FileDiff>> {
        self.get(
            &format!("/session/{session}/diff"),
            &[("messageID", prompt)],
            About::Session,
        )
        .await
    }

    /// Opens the event stream. Nothing is replayed: read everything anew once [`Event::Connected`] has come.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn events(&self) -> Answered<Events> {
        match self.open_events().await {
            Err(error) if error.is_of_the_endpoint() && self.renew().await? => {
                self.open_events().await
            }
            other => other,
        }
    }

    async fn open_events(&self) -> Answered<Events> {
        let request = self
            .request(Method::GET, "/event", &[])?
            .timeout(Duration::from_millis(STREAM_MS_MAX));
        let head = tokio::time::timeout(
            Duration::from_millis(STREAM_HEAD_MS_MAX),
            self.http.open(request),
        );
        let response = head.await.map_err(|_| OpenCodeError::Unreachable {
            seen: "no head of the event stream in time".to_owned(),
        })??;
        let status = response.status().as_u16();
        if status == 200 && http::media_type(response.headers()) == "text/event-stream" {
            return Ok(Events {
                response,
                sse: Sse::default(),
                ready: Vec::new(),
            });
        }
        let headers = response.headers().clone();
        let answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        Err(classify(&answer, About::Other).unwrap_or_else(|| not_an_answer(&answer)))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        about: About,
    ) -> Answered<T> {
        let answer = self.call(Method::GET, path, query, None, about).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<Value>,
        about: About,
    ) -> Answered<T> {
        let answer = self.call(Method::POST, path, &[], body, about).await?;
        answer.json().ok_or_else(|| not_an_answer(&answer))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
        about: About,
    ) -> Answered<Answer> {
        match self
            .once(method.clone(), path, query, body.as_ref(), about)
            .await
        {
            Err(error) if error.is_of_the_endpoint() && self.renew().await? => {
                self.once(method, path, query, body.as_ref(), about).await
            }
            other => other,
        }
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        about: About,
    ) -> Answered<Answer> {
        let attempt = self.attempt(method, path, query, body, about);
        attempt.await.map_err(|missed| missed.error)
    }

    async fn attempt(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        about: About,
    ) -> Result<Answer, NotAccepted> {
        let request = self.request(method, path, query);
        let mut request = request.map_err(|error| NotAccepted {
            error,
            certain: true,
        })?;
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = self.http.send(request).await.map_err(|error| NotAccepted {
            certain: error.is_unsent(),
            error: error.into(),
        })?;
        let error = match classify(&answer, about) {
            Some(error) => error,
            None if answer.status == 200 && answer.media_type() == "text/html" => {
                not_an_answer(&answer)
            }
            None => return Ok(answer),
        };
        Err(NotAccepted {
            error,
            certain: is_refusal(answer.status),
        })
    }

    /// Fetches a fresh endpoint; false when there is no way to.
    async fn renew(&self) -> Answered<bool> {
        let Some(refresh) = &self.refresh else {
            return Ok(false);
        };
        let fresh = refresh().await?;
        *self
            .endpoint
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = fresh;
        Ok(true)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Answered<RequestBuilder> {
        let endpoint = self
            .endpoint
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        let mut url = Url::parse(&format!("{}{path}", endpoint.url)).map_err(|_| {
            OpenCodeError::Unreachable {
                seen: "the preview's address cannot be read".to_owned(),
            }
        })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self
            .http
            .request(method, url.as_str())?
            .header("authorization", &self.authorization);
        for (name, value) in &endpoint.headers {
            request = request.header(*name, value);
        }
        Ok(request)
    }
}

/// An open event stream.
pub struct Events {
    response: Response,
    sse: Sse,
    ready: Vec<Event>,
}

impl Events {
    /// The next events, at least one; `None` at the end of the stream. Safe to drop and call again.
    ///
    /// # Errors
    /// [`OpenCodeError::Unreachable`] when the stream broke.
    pub async fn next(&mut self) -> Answered<Option<Vec<Event>>> {
        while self.ready.is_empty() {
            let Some(bytes) = self.response.chunk().await.map_err(http::broken)? else {
                return Ok(None);
            };
            let data = self
                .sse
                .push(&bytes)
                .map_err(|e| OpenCodeError::Unreachable {
                    seen: e.to_string(),
                })?;
            self.ready = data.iter().map(|data| Event::parse(data)).collect();
        }
        Ok(Some(std::mem::take(&mut self.ready)))
    }
}

/// Messages with images are large: where so many are more than an answer may hold, these are asked for.
const fn fewer(messages: u32) -> u32 {
    if messages > 5 { messages / 5 } else { 1 }
}

/// Whether whoever answers so has not passed the request on, or has not accepted it: a redirect of the proxy, or a fault of
/// the request's own. A proxy's 5xx may come after the request was passed on, and so may its "took too long".
const fn is_refusal(status: u16) -> bool {
    matches!(status, 300..=407 | 409..=499)
}

fn not_an_answer(answer: &Answer) -> OpenCodeError {
    let kind = answer.media_type();
    let kind = if kind.is_empty() { "nothing" } else { &kind };
    OpenCodeError::Unreachable {
        seen: format!(
            "{kind} with status {} where OpenCode's JSON was due",
            answer.status
        ),
    }
}

/// OpenCode's errors have two shapes; an error of neither shape is the proxy's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentErrorBody {
    name: Option<String>,
    _tag: Option<String>,
    message: String,
    data: AgentErrorData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentErrorData {
    message: String,
}

fn classify(answer: &Answer, about: About) -> Option<OpenCodeError> {
    let status = answer.status;
    if answer.ok() {
        return None;
    }
    if (300..400).contains(&status) {
        return Some(OpenCodeError::StaleEndpoint);
    }
    if status == 401 && answer.headers.contains_key("www-authenticate") {
        return Some(OpenCodeError::WrongPassword);
    }
    let body: AgentErrorBody = answer.json().unwrap_or_default();
    let own = body.name.is_some() || body._tag.is_some();
    if !own {
        let body: Value = answer.json().unwrap_or_default();
        let said = http::sentence(&body["message"]);
        let seen = if said.is_empty() {
            format!("status {status}")
        } else {
            format!("status {status}: {said}")
        };
        return Some(OpenCodeError::Unreachable {
            seen: seen.chars().take(300).collect(),
        });
    }
    let message = if body.data.message.is_empty() {
        body.message
    } else {
        body.data.message
    };
    Some(match status {
        404 if about == About::Session && message.starts_with("Session not found") => {
            OpenCodeError::SessionMissing
        }
        404 => OpenCodeError::NotFound { message },
        _ => OpenCodeError::Refused {
            status,
            message: message
                .lines()
                .next()
                .unwrap_or("")
                .chars()
                .take(300)
                .collect(),
        },
    })
}

#[cfg(test)]
mod tests;
