//! The calls of OpenCode's HTTP API (v1) that a session takes, with their values as they come: the converter wants them raw.

use std::time::Duration;

use bobbin_agent::opencode::Sse;
use bobbin_http::{Answer, Guard, Hosts, Http, HttpError, Method};
use reqwest::{RequestBuilder, Response};
use serde_json::{Map, Value, json};

use super::Endpoint;
use crate::limits::CALL_MS_MAX;

/// A stream without a word for so long is dead: there is a heartbeat every ten seconds.
const SILENCE_MS_MAX: u64 = 30_000;
/// How long the stream itself may last.
const STREAM_MS_MAX: u64 = 30 * 24 * 3_600_000;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("{0}")]
    Http(#[from] HttpError),
    #[error("its server refused with {status}: {said}")]
    Status { status: u16, said: String },
    #[error("its server answered in a form that is not known")]
    Shape,
    #[error("its stream of events ended")]
    StreamEnded,
}

#[derive(Debug, Clone)]
pub(super) struct Api {
    http: Http,
    base: String,
    authorization: String,
    directory: String,
}

impl Api {
    pub(super) fn new(endpoint: &Endpoint, directory: &str) -> Self {
        Self {
            http: http(),
            base: endpoint.base.clone(),
            authorization: endpoint.authorization(),
            directory: directory.to_owned(),
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let request = self.http.request(method, &format!("{}{path}", self.base))?;
        Ok(request
            .header("authorization", &self.authorization)
            .query(&[("directory", &self.directory)]))
    }

    async fn call(&self, request: RequestBuilder) -> Result<Answer, ApiError> {
        let request = request.timeout(Duration::from_millis(CALL_MS_MAX));
        let answer = self.http.send(request).await?;
        if answer.ok() && answer.media_type() != "text/html" {
            return Ok(answer);
        }
        // An unknown path is a page with 200.
        let said = answer.json::<Value>().unwrap_or_default();
        let said = ["/data/message", "/message", "/name"]
            .iter()
            .find_map(|place| said.pointer(place)?.as_str())
            .unwrap_or("no reason told");
        Err(ApiError::Status { status: answer.status, said: said.to_owned() })
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, ApiError> {
        let request = self.request(Method::GET, path)?.query(query);
        self.call(request).await?.json().ok_or(ApiError::Shape)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Answer, ApiError> {
        let request = self.request(Method::POST, path)?.json(body);
        self.call(request).await
    }

    pub(super) async fn create(&self, body: &Value) -> Result<Value, ApiError> {
        self.post("/session", body).await?.json().ok_or(ApiError::Shape)
    }

    pub(super) async fn session(&self, id: &str) -> Result<Value, ApiError> {
        self.get(&format!("/session/{id}"), &[]).await
    }

    pub(super) async fn prompt(&self, session: &str, body: &Value) -> Result<(), ApiError> {
        let path = format!("/session/{session}/prompt_async");
        self.post(&path, body).await.map(|_| ())
    }

    pub(super) async fn abort(&self, session: &str) -> Result<(), ApiError> {
        let path = format!("/session/{session}/abort");
        self.post(&path, &json!({})).await.map(|_| ())
    }

    /// Sessions that are not idle.
    pub(super) async fn statuses(&self) -> Result<Map<String, Value>, ApiError> {
        match self.get("/session/status", &[]).await? {
            Value::Object(statuses) => Ok(statuses),
            _ => Err(ApiError::Shape),
        }
    }

    /// The newest message. One at a time: each holds its images.
    pub(super) async fn last_message(&self, session: &str) -> Result<Option<Value>, ApiError> {
        let path = format!("/session/{session}/message");
        Ok(list(self.get(&path, &[("limit", "1")]).await?)?.pop())
    }

    /// Whether there is this message.
    pub(super) async fn has(&self, session: &str, message: &str) -> Result<bool, ApiError> {
        let path = format!("/session/{session}/message/{message}");
        match self.get(&path, &[]).await {
            Ok(_) => Ok(true),
            Err(ApiError::Status { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn permissions(&self) -> Result<Vec<Value>, ApiError> {
        list(self.get("/permission", &[]).await?)
    }

    pub(super) async fn questions(&self) -> Result<Vec<Value>, ApiError> {
        list(self.get("/question", &[]).await?)
    }

    pub(super) async fn reply_permission(&self, id: &str, reply: &str) -> Result<(), ApiError> {
        let path = format!("/permission/{id}/reply");
        self.post(&path, &json!({"reply": reply})).await.map(|_| ())
    }

    pub(super) async fn reply_question(
        &self,
        id: &str,
        answers: &[Vec<String>],
    ) -> Result<(), ApiError> {
        let path = format!("/question/{id}/reply");
        self.post(&path, &json!({"answers": answers})).await.map(|_| ())
    }

    pub(super) async fn reject_question(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("/question/{id}/reject");
        self.post(&path, &json!({})).await.map(|_| ())
    }

    /// Opens the stream of this directory's events. Nothing that happens after this is missed.
    pub(super) async fn events(&self) -> Result<Events, ApiError> {
        let request = self.request(Method::GET, "/event")?;
        let request = request.timeout(Duration::from_millis(STREAM_MS_MAX));
        let opened =
            tokio::time::timeout(Duration::from_millis(CALL_MS_MAX), self.http.open(request));
        let response = opened.await.map_err(|_| ApiError::StreamEnded)??;
        if !response.status().is_success() {
            return Err(ApiError::Status {
                status: response.status().as_u16(),
                said: "no stream of events".to_owned(),
            });
        }
        Ok(Events { response, sse: Sse::default(), waiting: Vec::new() })
    }
}

fn list(value: Value) -> Result<Vec<Value>, ApiError> {
    match value {
        Value::Array(list) => Ok(list),
        _ => Err(ApiError::Shape),
    }
}

/// A client for loopback alone.
pub(super) fn http() -> Http {
    Http::guarded(Guard::new(Hosts::Named(Vec::new()), true))
}

/// Events as they come.
pub(super) struct Events {
    response: Response,
    sse: Sse,
    /// What has come and was not taken, the next one last.
    waiting: Vec<Value>,
}

impl Events {
    /// The next event. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Result<Value, ApiError> {
        loop {
            if let Some(event) = self.waiting.pop() {
                return Ok(event);
            }
            let silence = Duration::from_millis(SILENCE_MS_MAX);
            let chunk = tokio::time::timeout(silence, self.response.chunk()).await;
            let Ok(Ok(Some(bytes))) = chunk else {
                return Err(ApiError::StreamEnded);
            };
            let events = self.sse.push(&bytes).map_err(|_| ApiError::StreamEnded)?;
            let events = events.iter().map(|text| {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            });
            self.waiting = events.rev().collect();
        }
    }
}
