//! A service that stands elsewhere: requests are passed on as they are, and answers come back as they come.
//!
//! Promised: one connection there for each connection here, so that reuse is as it would be; an answer without an end is
//! passed on piece by piece. Addresses in the provider's answers that lead past the relay are put right ([`Through`]).
//! Deliberately absent: TLS, and requests that go on after their answer has begun.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::PROMPT_SENT;
use super::{Body, Line, Recorder, Reply, serve};
use crate::trips::Peer;
use crate::wire::Request;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 64;
/// A connection there that says nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(120);

/// The way to one server.
pub struct Relay {
    /// Its address.
    to: String,
    stream: Option<TcpStream>,
}

/// An answer from there.
pub struct Passed {
    /// Status.
    pub status: u16,
    /// Headers, without those of the body's frame.
    pub headers: Vec<(String, String)>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
    /// It is only the beginning; all of it is in chunks, as they were made there.
    pub goes_on: bool,
}

impl Relay {
    /// To a server at this address (`host:port`).
    #[must_use]
    pub fn new(to: &str) -> Self {
        Self {
            to: to.to_owned(),
            stream: None,
        }
    }

    /// Passes a request on and waits for its answer, or for the beginning of one that does not end.
    ///
    /// # Errors
    /// When nobody is there, or it makes no sense. The connection is made anew for the next request.
    pub fn pass(&mut self, request: &Request) -> io::Result<Passed> {
        let passed = self.exchange(request);
        if passed.is_err() {
            self.stream = None;
        }
        passed
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Passed> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(&self.to)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE))?;
                none.insert(stream)
            }
        };
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
        for (name, value) in &request.headers {
            let is_ours = ["host", "content-length", "transfer-encoding"]
                .iter()
                .any(|ours| name.eq_ignore_ascii_case(ours));
            if !is_ours {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        head.push_str(&format!(
            "host: {}\r\ncontent-length: {}\r\n\r\n",
            self.to,
            request.body.len()
        ));
        let mut bytes = head.into_bytes();
        bytes.extend(&request.body);
        stream.write_all(&bytes)?;
        answer(stream, &request.method)
    }
}

/// A provider that stands elsewhere, with the agents in its sandboxes.
pub(super) struct Through {
    provider: String,
    /// Where it is reached here.
    here: String,
    recorder: Arc<Recorder>,
    /// Where agents are reached here, by their ports there.
    agents: Mutex<BTreeMap<u16, u16>>,
}

impl Through {
    /// To the provider at this address, from this port.
    pub(super) fn new(provider: &str, port: u16, recorder: &Arc<Recorder>) -> Self {
        Self {
            provider: provider.to_owned(),
            here: format!("127.0.0.1:{port}"),
            recorder: Arc::clone(recorder),
            agents: Mutex::default(),
        }
    }

    /// One connection of the worker to the provider.
    pub(super) fn line(self: Arc<Self>) -> Line {
        let mut relay = Relay::new(&self.provider);
        Box::new(move |request| {
            reply(&mut relay, request, |body| {
                let text = String::from_utf8_lossy(&body);
                let mut told: Value = serde_json::from_str(&text).ok()?;
                if request.path.contains("/preview-url") {
                    let url = told["url"].as_str()?;
                    let there = url.rsplit(':').next()?.parse().ok()?;
                    told["url"] = json!(format!("http://127.0.0.1:{}", self.agent(there).ok()?));
                    return Some(told.to_string().into_bytes());
                }
                Some(text.replace(&self.provider, &self.here).into_bytes())
            })
        })
    }

    /// Where the agent at this port is reached here.
    fn agent(&self, there: u16) -> io::Result<u16> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = agents.get(&there) {
            return Ok(*here);
        }
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let here = listener.local_addr()?.port();
        let lines = move || -> Line {
            let mut relay = Relay::new(&format!("127.0.0.1:{there}"));
            Box::new(move |request| reply(&mut relay, request, |_| None))
        };
        serve(Peer::Agent, listener, None, lines, &self.recorder);
        agents.insert(there, here);
        Ok(here)
    }
}

/// Passes a request on; `put_right` may change the answer's body.
fn reply(
    relay: &mut Relay,
    request: &Request,
    put_right: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>,
) -> Reply {
    let name = named(request);
    let Ok(passed) = relay.pass(request) else {
        return Reply::of(name, 502, &json!({"message": "the relay reached nobody"}));
    };
    let kind = passed
        .headers
        .iter()
        .find(|(name, _)| name == "content-type");
    let mut headers: Vec<(&'static str, String)> = kind
        .map(|(_, kind)| ("content-type", kind.clone()))
        .into_iter()
        .collect();
    let cursor = passed
        .headers
        .iter()
        .find(|(name, _)| name == "x-next-cursor");
    headers.extend(cursor.map(|(_, cursor)| ("x-next-cursor", cursor.clone())));
    let body = match (passed.goes_on, relay.stream.take_if(|_| passed.goes_on)) {
        (true, Some(mut stream)) => {
            let (sender, pieces) = sync_channel(64);
            thread::spawn(move || {
                let mut piece = passed.body;
                // Ends with the server, or when nobody listens any more.
                while sender.send(piece).is_ok() {
                    piece = vec![0; 16 * 1024];
                    match stream.read(&mut piece) {
                        Ok(bytes @ 1..) => piece.truncate(bytes),
                        _ => return,
                    }
                }
            });
            Body::Stream(pieces)
        }
        _ => {
            let copy = passed.body.clone();
            Body::Whole(put_right(passed.body).unwrap_or(copy))
        }
    };
    Reply {
        name,
        status: passed.status,
        headers,
        body,
    }
}

/// What a request asks for, in the words of the services of the bench.
fn named(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let words = match (request.method.as_str(), &segments[..]) {
        ("GET", ["api", "sandbox"]) => "list sandboxes",
        ("POST", ["api", "sandbox"]) => "create sandbox",
        ("GET", ["api", "sandbox", _]) => "read sandbox",
        ("GET", ["api", "sandbox", _, "ports", _, "preview-url"]) => "read preview",
        (_, ["api", "sandbox", _, "start"]) => "start sandbox",
        (_, [.., "process", "execute"]) => "run a script",
        (_, ["global", "health"]) => "health",
        (_, ["event"]) => "event stream",
        ("POST", ["session"]) => "make a session",
        ("GET", ["session"]) => "find the session",
        ("GET", ["session", "status"]) => "status",
        (_, ["session", _, "prompt_async"]) => PROMPT_SENT,
        ("GET", ["session", _, "message", _]) => "look for the prompt",
        ("GET", ["config", "providers"]) => "models",
        ("GET", ["agent"]) => "agents",
        _ => path,
    };
    words.to_owned()
}

fn answer(stream: &mut TcpStream, method: &str) -> io::Result<Passed> {
    let mut pending = Vec::new();
    let (status, headers) = loop {
        let mut parsed = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut parsed);
        let read = response.parse(&pending).map_err(io::Error::other)?;
        if let httparse::Status::Complete(length) = read {
            let header = |header: &httparse::Header<'_>| {
                let value = String::from_utf8_lossy(header.value).into_owned();
                (header.name.to_ascii_lowercase(), value)
            };
            let headers: Vec<_> = response.headers.iter().map(header).collect();
            let status = response.code.unwrap_or_default();
            pending.drain(..length);
            break (status, headers);
        }
        if pending.len() > HEAD_BYTES_MAX {
            return Err(io::Error::other("the head of an answer is too long"));
        }
        fill(stream, &mut pending)?;
    };
    let header = |name: &str| headers.iter().find(|(key, _)| key == name);
    let length = header("content-length").and_then(|(_, value)| value.parse::<usize>().ok());
    let has_none = method == "HEAD" || matches!(status, 204 | 304);
    let is_stream =
        header("content-type").is_some_and(|(_, kind)| kind.starts_with("text/event-stream"));
    let is_chunked = header("transfer-encoding").is_some();
    match (has_none, length) {
        (true, _) => pending.clear(),
        (false, Some(length)) => {
            while pending.len() < length {
                fill(stream, &mut pending)?;
            }
        }
        (false, None) if is_chunked && !is_stream => pending = whole(stream, pending)?,
        (false, None) => {}
    }
    // A stream begins with what has come of it, in its chunks.
    let frames = [
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
    ];
    Ok(Passed {
        status,
        headers: headers
            .iter()
            .filter(|(name, _)| !frames.contains(&name.as_str()))
            .cloned()
            .collect(),
        body: pending,
        goes_on: is_stream,
    })
}

/// A body that comes in chunks, put together.
fn whole(stream: &mut TcpStream, mut pending: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let parsed = httparse::parse_chunk_size(&pending);
        let parsed = parsed.map_err(|_| io::Error::other("a chunk without a size"))?;
        if let httparse::Status::Complete((start, length)) = parsed {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            while pending.len() < start + length + 2 {
                fill(stream, &mut pending)?;
            }
            body.extend(&pending[start..start + length]);
            pending.drain(..start + length + 2);
            if length == 0 {
                return Ok(body);
            }
        } else {
            fill(stream, &mut pending)?;
        }
    }
}

fn fill(stream: &mut TcpStream, pending: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => {
            pending.extend(&buffer[..bytes]);
            Ok(())
        }
    }
}
