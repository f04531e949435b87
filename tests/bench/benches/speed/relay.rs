//! A relay between a program and the parts of the laptop stack: it passes every call on and records it, and can delay a
//! part's answers.
//!
//! Promised: an answer without an end is passed on piece by piece. Addresses in the provider's answers that lead past
//! the relays are put right. Of a connection that is no HTTP it is written down who spoke when (`wire.rs`).
//! Deliberately absent: requests that go on after their answer has begun.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
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
use nix::unistd::{Uid, setfsuid};
use rustls::ServerConfig;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::place;
use crate::shares::PROMPT_SENT;
use crate::trips::{Call, Peer};
use crate::wire::{Exchange, Wire};

/// The name of the call that posts the answer.
pub const ANSWER_POSTED: &str = "post the answer";
/// The text of every answer that is looked for.
pub const ANSWER: &str =
    "Three of the tests are slow: each starts a server of its own and waits for it.";

/// The calls since the last question.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The calls, in the order of their answers.
    pub calls: Vec<Call>,
    /// Connections that were opened.
    pub opened: Vec<Peer>,
}

/// The name of a program's connection, by the port from which the relay passes it on.
type Named = Arc<dyn Fn(u16) -> String + Send + Sync>;

/// A connection without HTTP.
struct Wired {
    peer: Peer,
    port: u16,
    named: Named,
    wire: Mutex<Wire>,
}

/// A relay that listens until this is dropped.
pub struct Door {
    _open: oneshot::Sender<()>,
}

/// Bytes that are passed on at once.
const PIECE: usize = 16 * 1024;

/// All relays of a measurement.
pub struct Relays {
    since: Instant,
    seen: Mutex<Recorded>,
    wired: Mutex<Vec<Arc<Wired>>>,
    delays_ms: [AtomicU64; Peer::ALL.len()],
    /// Events of agents' streams that were passed on, and their bytes.
    events: AtomicU64,
    event_bytes: AtomicU64,
    /// Where agents are reached here, by their ports there.
    agents: Mutex<BTreeMap<u16, u16>>,
}

impl Relays {
    /// None yet. Requires a runtime.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            seen: Mutex::default(),
            wired: Mutex::default(),
            delays_ms: Default::default(),
            events: AtomicU64::new(0),
            event_bytes: AtomicU64::new(0),
            agents: Mutex::default(),
        })
    }

    /// Opens a relay to the part at this address (`host:port`), behind TLS if that is given; returns its port. Requires
    /// a runtime.
    ///
    /// # Errors
    /// Without a port.
    pub fn open(
        self: &Arc<Self>,
        peer: Peer,
        to: &str,
        tls: Option<ServerConfig>,
    ) -> io::Result<u16> {
        let (listener, port) = bound()?;
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        tokio::spawn(serve(listener, self.way(peer, to, port), tls));
        Ok(port)
    }

    /// Opens a relay at another port to the agent at this port, as a user of this machine, because the sockets' owner
    /// is checked. It listens when this returns.
    ///
    /// # Errors
    /// Without the right to be somebody else, or without the port.
    pub fn open_as(self: &Arc<Self>, user: u32, at: u16, there: u16) -> io::Result<Door> {
        let way = self.way(Peer::Agent, &format!("127.0.0.1:{there}"), at);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (open, closed) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            // Only for this thread, and for every socket that it makes or accepts.
            setfsuid(Uid::from_raw(user));
            runtime.block_on(async {
                match TcpListener::bind((Ipv4Addr::LOCALHOST, at)).await {
                    Ok(listener) => {
                        let _ = tell.send(Ok(()));
                        tokio::select! {
                            () = serve(listener, way, None) => {}
                            _ = closed => {}
                        }
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                }
            });
        });
        told.recv().map_err(io::Error::other)??;
        Ok(Door { _open: open })
    }

    /// Opens a relay for unreadable bytes to this address (`host:port`); returns its port. Requires a runtime.
    ///
    /// # Errors
    /// Without a port.
    pub fn open_wire(self: &Arc<Self>, peer: Peer, to: &str, named: Named) -> io::Result<u16> {
        let (listener, port) = bound()?;
        let (relays, to) = (Arc::clone(self), to.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (relays, to, named) = (Arc::clone(&relays), to.clone(), Arc::clone(&named));
                tokio::spawn(async move { relays.wire(peer, near, &to, named).await });
            }
        });
        Ok(port)
    }

    async fn wire(&self, peer: Peer, near: TcpStream, to: &str, named: Named) -> io::Result<()> {
        let wire = Mutex::new(Wire::opened(self.since.elapsed()));
        let far = TcpStream::connect(to).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let port = far.local_addr()?.port();
        let wired = Arc::new(Wired { peer, port, named, wire });
        self.lock().opened.push(peer);
        self.wired().push(Arc::clone(&wired));
        let wire = || wired.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let now = || self.since.elapsed();
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        let asking = carry(from_near, to_far, |bytes| wire().said(now(), bytes));
        let answering = carry(from_far, to_near, |bytes| wire().answered(now(), bytes));
        tokio::try_join!(asking, answering).map(drop)
    }

    fn way(self: &Arc<Self>, peer: Peer, to: &str, port: u16) -> Arc<Way> {
        Arc::new(Way {
            relays: Arc::clone(self),
            client: client(),
            peer,
            to: to.to_owned(),
            here: format!("127.0.0.1:{port}"),
        })
    }

    /// Delays each answer of a part by this time, from now on.
    pub fn delay(&self, peer: Peer, delay_ms: u64) {
        self.delays_ms[peer as usize].store(delay_ms, Ordering::Relaxed);
    }

    /// A time, as those of calls.
    #[must_use]
    pub fn when(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.since)
    }

    /// Whether there was a call with this name since the last [`Relays::recorded`].
    #[must_use]
    pub fn has_recorded(&self, name: &str) -> bool {
        self.lock().calls.iter().any(|call| call.name == name)
    }

    /// The calls since the last call of this.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        let mut recorded = std::mem::take(&mut *self.lock());
        let mut all = self.wired();
        for wired in all.iter() {
            recorded.calls.extend(wired.calls());
        }
        // Connections that nobody carries any more.
        all.retain(|wired| Arc::strong_count(wired) > 1);
        recorded
    }

    /// Events of agents' streams that were passed on, and their bytes.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        let (told, bytes) = (&self.events, &self.event_bytes);
        (told.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wired(&self) -> MutexGuard<'_, Vec<Arc<Wired>>> {
        self.wired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address here of the agent at this port.
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

impl Wired {
    fn calls(&self) -> Vec<Call> {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (self.named)(self.port);
        let call = |exchange: Exchange| Call {
            peer: self.peer,
            name: name.clone(),
            begun: exchange.begun,
            ended: exchange.ended,
            sent: exchange.sent,
            received: exchange.received,
            status: 200,
            digest: [0; 32],
        };
        wire.taken().into_iter().map(call).collect()
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
    // The body may differ from the one that arrived.
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    let request = axum::http::Request::from_parts(head, Body::from(body));
    let answer = client.request(request).await;
    Ok(answer.map_err(|_| StatusCode::BAD_GATEWAY)?.map(Body::new))
}

/// The way from a program to one part.
struct Way {
    relays: Arc<Relays>,
    client: Client<HttpConnector, Body>,
    peer: Peer,
    to: String,
    here: String,
}

/// Passes everything on, to its end; reports the number of bytes before they go on.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    tell: impl Fn(usize),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let bytes = from.read(&mut piece).await?;
        if bytes == 0 {
            return to.shutdown().await;
        }
        tell(bytes);
        to.write_all(&piece[..bytes]).await?;
    }
}

/// A listener on loopback, and its port. Requires a runtime.
fn bound() -> io::Result<(TcpListener, u16)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

async fn serve(listener: TcpListener, way: Arc<Way>, tls: Option<TlsAcceptor>) {
    while let Ok((stream, _)) = listener.accept().await {
        way.relays.lock().opened.push(way.peer);
        let (way, tls) = (Arc::clone(&way), tls.clone());
        tokio::spawn(async move {
            stream.set_nodelay(true).ok()?;
            // A client that is killed midway has been measured already.
            match tls {
                None => converse(stream, way).await.ok(),
                Some(tls) => converse(tls.accept(stream).await.ok()?, way).await.ok(),
            }
        });
    }
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
        // Requests that are signed for AWS are signed with the address here.
        if self.peer != Peer::Aws {
            head.headers.remove(header::HOST);
        }
        let answer = pass(&self.client, &self.to, head, body).await?;
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
        // Recorded before it is sent, so that the call is there for everybody who has the answer.
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

    /// An answer of the provider whose addresses lead here.
    fn put_right(&self, asked: &str, body: Bytes) -> Bytes {
        if self.peer != Peer::Provider {
            return body;
        }
        let text = String::from_utf8_lossy(&body).replace(&self.to, &self.here);
        let Ok(mut told) = serde_json::from_str::<Value>(&text) else {
            return text.into();
        };
        for address in place::agents_in(asked, &mut told) {
            let there = address.as_str().and_then(|url| url.rsplit(':').next());
            if let Some(there) = there.and_then(|port| port.parse().ok())
                && let Ok(here) = self.relays.agent(there)
            {
                *address = format!("http://127.0.0.1:{here}").into();
            }
        }
        told.to_string().into()
    }

    /// The purpose of a request, in words.
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
            (Peer::Provider, method, segments) => {
                let query = head.uri.query().unwrap_or_default();
                place::named(method, segments, query).unwrap_or(path)
            }
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

/// The identity of a request: the same one twice is a question that was asked twice.
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
