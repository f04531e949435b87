//! A server on loopback for tests of HTTP clients: it answers from a script, keeps its requests, and ends with its
//! value. It does not behave like a platform: that is an emulator's task (`infra/local`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A longer request is answered with 413.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// An answer of the script.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status code of the answer.
    pub status: u16,
    /// Text that is sent as the answer's body.
    pub body: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    /// An answer of this content type; an empty one sends none.
    #[must_use]
    pub fn new(status: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        let reply = Self { status, body: body.into(), headers: Vec::new() };
        match content_type {
            "" => reply,
            _ => reply.with("content-type", content_type),
        }
    }

    /// An answer with neither body nor content type.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::new(status, "", "")
    }

    /// An answer in JSON.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// The same with one more header.
    ///
    /// # Panics
    /// When the value is none.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header's value");
        self.headers.push((HeaderName::from_static(name), value));
        self
    }

    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("a status");
        let mut response = (status, self.body).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().extend(self.headers);
        response
    }
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// Method and target: `GET /path?query`.
    pub line: String,
    /// Headers as they came.
    pub headers: HeaderMap,
    /// Bytes of the body as they came.
    pub body: Vec<u8>,
}

impl Received {
    /// The body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    received: Vec<Received>,
}

type Shared = Arc<Mutex<Script>>;

/// The server. Dropped, it takes no more connections.
pub struct Server {
    base: String,
    script: Shared,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Gives these answers one after the other, and the last of them again and again; without any, 418.
    ///
    /// # Panics
    /// Without a port on loopback.
    pub async fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = Shared::default();
        locked(&script).replies.extend(replies);
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port on loopback");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("axum serves for ever");
        });
        Self { base: format!("http://{address}"), script, task }
    }

    /// Address of the server, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Everything that came, in its order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        locked(&self.script).received.clone()
    }

    /// The lines of the input.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let received = &locked(&self.script).received;
        received.iter().map(|one| one.line.clone()).collect()
    }

    /// Stops it; from then on nothing listens at its address.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

fn locked(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(script): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let mut script = locked(&script);
    script.received.push(Received {
        line: format!("{} {}", head.method, head.uri),
        headers: head.headers,
        body: body.to_vec(),
    });
    let reply = if script.replies.len() > 1 {
        script.replies.pop_front()
    } else {
        script.replies.front().cloned()
    };
    let nothing = || Reply::new(418, "text/plain", "the script is empty");
    reply.unwrap_or_else(nothing).into_response()
}
