//! What stands between a program and the parts of the laptop stack: it passes every call on and writes it down, and can let
//! the answers of a part take longer.
//!
//! Promised: an answer without an end is passed on piece by piece. Addresses in the provider's answers that lead past the
//! relays are put right. Deliberately absent: requests that go on after their answer has begun.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header, response};
use futures::StreamExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::trips::{Call, Peer};

/// How the call is named by which a prompt has been sent.
pub const PROMPT_SENT: &str = "send the prompt";
/// How the call is named that posts the answer.
pub const ANSWER_POSTED: &str = "post the answer";
/// The words of every answer that is looked for.
pub const ANSWER: &str =
    "Three of the tests are slow: each starts a server of its own and waits for it.";

/// What was called since it was asked last.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The calls, in the order of their answers.
    pub calls: Vec<Call>,
    /// Connections that were opened.
    pub opened: Vec<Peer>,
}

/// All relays of a measurement.
pub struct Relays {
    since: Instant,
    seen: Mutex<Recorded>,
    delays_ms: [AtomicU64; Peer::ALL.len()],
    /// Events of agents' streams that have been passed on, and their bytes.
    events: AtomicU64,
    event_bytes: AtomicU64,
    /// Where agents are reached here, by their ports there.
    agents: Mutex<BTreeMap<u16, u16>>,
    client: Client<HttpConnector, Body>,
}

impl Relays {
    /// None yet. Requires a runtime.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            seen: Mutex::default(),
            delays_ms: Default::default(),
            events: AtomicU64::new(0),
            event_bytes: AtomicU64::new(0),
            agents: Mutex::default(),
            client: client(),
        })
    }

    /// Opens a relay to the part at this address (`host:port`), behind TLS if that is given; its port. Requires a runtime.
    ///
    /// # Errors
    /// Without a port.
    pub fn open(
        self: &Arc<Self>,
        peer: Peer,
        to: &str,
        tls: Option<ServerConfig>,
    ) -> io::Result<u16> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let port = listener.local_addr()?.port();
        let way = Arc::new(Way {
            relays: Arc::clone(self),
            peer,
            to: to.to_owned(),
            here: format!("127.0.0.1:{port}"),
        });
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                way.relays.lock().opened.push(peer);
                let (way, tls) = (Arc::clone(&way), tls.clone());
                tokio::spawn(async move {
                    stream.set_nodelay(true).ok()?;
                    // A client that is killed in the middle is one that has been measured.
                    match tls {
                        None => converse(stream, way).await.ok(),
                        Some(tls) => converse(tls.accept(stream).await.ok()?, way).await.ok(),
                    }
                });
            }
        });
        Ok(port)
    }

    /// Lets a part think for so long before each answer, from now on.
    pub fn delay(&self, peer: Peer, delay_ms: u64) {
        self.delays_ms[peer as usize].store(delay_ms, Ordering::Relaxed);
    }

    /// A time, as those of calls.
    #[must_use]
    pub fn when(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.since)
    }

    /// Whether there has been a call of this name since [`Relays::seen`] was asked last.
    #[must_use]
    pub fn has_recorded(&self, name: &str) -> bool {
        self.lock().calls.iter().any(|call| call.name == name)
    }

    /// What was called since this was asked last.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        std::mem::take(&mut *self.lock())
    }

    /// Events of agents' streams that have been passed on, and their bytes.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        let (told, bytes) = (&self.events, &self.event_bytes);
        (told.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the agent at this port is reached here.
    fn agent(self: &Arc<Self>, there: u16) -> io::Result<u16> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = agents.get(&there) {
            return Ok(*here);
        }
        let to = format!("127.0.0.1:{there}");
        let here = self.open(Peer::Agent, &to, None)?;
        agents.insert(there, here);
        Ok(here)
    }
}

/// A client without TLS.
#[must_use]
pub fn client() -> Client<HttpConnector, Body> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

/// Passes a request on to this address (`host:port`), and waits for the beginning of its answer.
pub async fn pass(
    client: &Client<HttpConnector, Body>,
    to: &str,
    mut head: Parts,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri: Result<Uri, _> = format!("http://{to}{path}").parse();
    head.uri = uri.map_err(|_| StatusCode::BAD_REQUEST)?;
    // The body may be another one than came.
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    let request = axum::http::Request::from_parts(head, Body::from(body));
    let answer = client.request(request).await;
    Ok(answer.map_err(|_| StatusCode::BAD_GATEWAY)?.map(Body::new))
}

/// From a program to one part.
struct Way {
    relays: Arc<Relays>,
    peer: Peer,
    to: String,
    here: String,
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    way: Arc<Way>,
) -> Result<(), hyper::Error> {
    let service = service_fn(|request: hyper::Request<_>| {
        let way = Arc::clone(&way);
        async move {
            let answer = way.answer(request.map(Body::new)).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|status| {
                let mut broken = Response::new(Body::empty());
                *broken.status_mut() = status;
                broken
            }))
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    connection.await
}

impl Way {
    async fn answer(&self, request: hyper::Request<Body>) -> Result<Response<Body>, StatusCode> {
        let relays = &self.relays;
        let (mut head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|_| StatusCode::BAD_REQUEST)?;
        let begun = relays.since.elapsed();
        let delay_ms = relays.delays_ms[self.peer as usize].load(Ordering::Relaxed);
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        let name = self.named(&head, &body);
        let sent = head.uri.path().len() + head_bytes(&head.headers) + body.len();
        let (digest, asked) = (digest(&head, &body), head.uri.path().to_owned());
        // What is signed for AWS is signed with the address here.
        if self.peer != Peer::Aws {
            head.headers.remove(header::HOST);
        }
        let answer = pass(&relays.client, &self.to, head, body).await?;
        let (mut head, body) = answer.into_parts();
        let (body, bytes) = if is_stream(&head) {
            (self.counted(body), 0)
        } else {
            let body = to_bytes(body, usize::MAX).await;
            let body = body.map_err(|_| StatusCode::BAD_GATEWAY)?;
            let body = self.put_right(&asked, body);
            head.headers.remove(header::CONTENT_LENGTH);
            head.headers.remove(header::TRANSFER_ENCODING);
            (Body::from(body.clone()), body.len())
        };
        // Before it is sent, so that whoever has the answer finds the call.
        relays.lock().calls.push(Call {
            peer: self.peer,
            name,
            begun,
            ended: relays.since.elapsed(),
            sent,
            received: head_bytes(&head.headers) + bytes,
            status: head.status.as_u16(),
            digest,
        });
        Ok(Response::from_parts(head, body))
    }

    /// A stream of events, counted while it passes.
    fn counted(&self, body: Body) -> Body {
        let relays = Arc::clone(&self.relays);
        let mut last = 0;
        Body::from_stream(body.into_data_stream().map(move |piece| {
            let bytes = piece.iter().flatten();
            let mut ends = 0;
            for byte in bytes {
                // An empty line ends an event.
                ends += u64::from(last == b'\n' && *byte == b'\n');
                last = *byte;
            }
            relays.events.fetch_add(ends, Ordering::Relaxed);
            let length = piece.as_ref().map_or(0, Bytes::len) as u64;
            relays.event_bytes.fetch_add(length, Ordering::Relaxed);
            piece
        }))
    }

    /// An answer of the provider in which addresses lead here.
    fn put_right(&self, asked: &str, body: Bytes) -> Bytes {
        if self.peer != Peer::Provider {
            return body;
        }
        let text = String::from_utf8_lossy(&body);
        if asked.ends_with("/preview-url") {
            let mut told: Value = serde_json::from_str(&text).unwrap_or_default();
            let port = told["url"].as_str().and_then(|url| url.rsplit(':').next());
            if let Some(there) = port.and_then(|port| port.parse().ok())
                && let Ok(here) = self.relays.agent(there)
            {
                told["url"] = json!(format!("http://127.0.0.1:{here}"));
            }
            return told.to_string().into();
        }
        text.replace(&self.to, &self.here).into()
    }

    /// What a request asks for, in words.
    fn named(&self, head: &Parts, body: &[u8]) -> String {
        let path = head.uri.path();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let words = match (self.peer, &head.method, &segments[..]) {
            (Peer::Aws, method, ["schedules", _]) => match *method {
                Method::POST => "schedule: CreateSchedule",
                Method::PUT => "schedule: UpdateSchedule",
                _ => path,
            },
            (Peer::Aws, ..) => return named_by_target(&head.headers),
            (Peer::Chat, &Method::POST, [.., "messages"]) => {
                if String::from_utf8_lossy(body).contains(ANSWER) {
                    ANSWER_POSTED
                } else {
                    "post the card"
                }
            }
            (Peer::Chat, &Method::PATCH, [.., "messages", _]) => "edit the card",
            (_, &Method::GET, ["api", "sandbox"]) => "list sandboxes",
            (_, &Method::POST, ["api", "sandbox"]) => "create sandbox",
            (_, &Method::GET, ["api", "sandbox", _]) => "read sandbox",
            (_, _, ["api", "sandbox", _, "ports", _, "preview-url"]) => "read preview",
            (_, _, ["api", "sandbox", _, "start"]) => "start sandbox",
            (_, _, [.., "process", "execute"]) => "run a script",
            (_, _, ["global", "health"]) => "health",
            (_, _, ["event"]) => "event stream",
            (_, _, ["permission"]) => "permissions",
            (_, _, ["question"]) => "questions",
            (_, &Method::POST, ["session"]) => "make a session",
            (_, &Method::GET, ["session"]) => "find the session",
            (_, &Method::GET, ["session", "status"]) => "status",
            (_, &Method::GET, ["session", _]) => "session",
            (_, _, ["session", _, "prompt_async"]) => PROMPT_SENT,
            (_, &Method::GET, ["session", _, "message"]) => "messages",
            (_, &Method::GET, ["session", _, "message", _]) => "look for the prompt",
            (_, _, ["session", _, "diff"]) => "changed files",
            (_, _, ["config", "providers"]) => "models",
            (_, _, ["agent"]) => "agents",
            _ => path,
        };
        words.to_owned()
    }
}

/// A call of AWS's JSON protocol.
fn named_by_target(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok());
    let (service, operation) = target.and_then(|t| t.split_once('.')).unwrap_or_default();
    let service = match service {
        "AmazonSQS" => "queue",
        "secretsmanager" => "secret",
        _ => "table",
    };
    format!("{service}: {operation}")
}

fn is_stream(head: &response::Parts) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Bytes of headers as they are written, with as much as a first line takes beside its path.
fn head_bytes(headers: &HeaderMap) -> usize {
    const FIRST_LINE: usize = "POST  HTTP/1.1\r\n\r\n".len();
    let line = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        name.as_str().len() + value.len() + ": \r\n".len()
    };
    FIRST_LINE + headers.iter().map(line).sum::<usize>()
}

/// What a request is known by: the same twice is a question that was asked twice.
fn digest(head: &Parts, body: &[u8]) -> [u8; 32] {
    let target = head.headers.get("x-amz-target");
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let mut digest = Sha256::new();
    for part in [
        head.method.as_str().as_bytes(),
        path.as_bytes(),
        target.map_or(&[], |target| target.as_bytes()),
        body,
    ] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
