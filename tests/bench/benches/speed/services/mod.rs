//! Everything that a worker speaks to, on loopback: AWS behind TLS, a chat, a provider of sandboxes and an agent. They
//! answer at once, or after a delay that is set for each, and write down every call.
//!
//! Promised: what they are told stays told (the table's conditions hold, a sandbox or message that was made is there), so
//! that the program that is measured goes the way that it goes in earnest. Deliberately absent: limits, faults, and
//! anything that the measured paths do not call: that is answered as unknown, and the measurement fails by it.

mod agent;
mod aws;
mod chat;
mod provider;
pub mod relay;
pub mod run;
mod table;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cloud::{ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, tls};
use crate::trips::{Call, Peer};
use crate::wire::{self, Request, Served};

pub use agent::Agent;
pub use chat::ANSWER_POSTED;

/// How the call is named by which a prompt has been sent.
pub const PROMPT_SENT: &str = agent::PROMPT_SENT;
/// A stream that has nothing to say looks this often whether its client is still there.
const STREAM_LOOK: Duration = Duration::from_secs(10);

/// The thread that turns are in, as it stands in messages of the queue.
const THREAD: &str = "discord:1240000000000000100:1240000000000000900";

/// An answer.
pub struct Reply {
    /// What was asked, in words.
    pub name: String,
    /// Its status.
    pub status: u16,
    /// Headers besides those of the body.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Body,
}

/// The body of an answer.
pub enum Body {
    /// JSON, or nothing.
    Whole(Vec<u8>),
    /// What comes in pieces, for as long as somebody sends them, each as a chunk already.
    Stream(Receiver<Vec<u8>>),
}

impl Reply {
    fn json(name: impl Into<String>, value: &Value) -> Self {
        Self::of(name, 200, value)
    }

    fn of(name: impl Into<String>, status: u16, value: &Value) -> Self {
        Self {
            name: name.into(),
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: Body::Whole(value.to_string().into_bytes()),
        }
    }

    fn empty(name: impl Into<String>, status: u16) -> Self {
        Self {
            name: name.into(),
            status,
            headers: Vec::new(),
            body: Body::Whole(Vec::new()),
        }
    }

    /// Nothing that a measured path asks for.
    fn unknown(request: &Request) -> Self {
        let what = format!("{} {}", request.method, request.path);
        Self::of(
            format!("unknown: {what}"),
            501,
            &json!({"message": format!("the bench has no {what}")}),
        )
    }
}

/// One of the services.
trait Service: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Reply;
}

/// What answers on one connection.
type Line = Box<dyn FnMut(&Request) -> Reply + Send>;

/// Answers on every connection alike.
fn lines(service: impl Service) -> impl Fn() -> Line + Send + 'static {
    let service = Arc::new(service);
    move || {
        let service = Arc::clone(&service);
        Box::new(move |request| service.answer(request))
    }
}

/// A provider and its agents that stand elsewhere.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    /// The provider (`host:port`).
    pub provider: String,
    /// Its key.
    pub provider_key: String,
    /// Base of the model's API.
    pub model_api: String,
    /// The model, as provider/model.
    pub model: String,
}

/// What was called since it was asked last.
#[derive(Debug, Default)]
pub struct Seen {
    /// The calls, in the order of their answers.
    pub calls: Vec<Call>,
    /// Connections that were opened.
    pub opened: Vec<Peer>,
}

struct Recorder {
    since: Instant,
    seen: Mutex<Seen>,
    delays_ms: [AtomicU64; Peer::ALL.len()],
    connections: AtomicU64,
}

impl Recorder {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The services, until the process ends.
pub struct Services {
    recorder: Arc<Recorder>,
    /// The agent's side, to say how its runs go.
    pub agent: Arc<Agent>,
    environment: Vec<(String, String)>,
}

impl Services {
    /// Starts them; the certificate of AWS on loopback is written into `folder`.
    ///
    /// # Errors
    /// Without ports, or without a place for the certificate.
    pub fn start(folder: &Path) -> io::Result<Self> {
        Self::around(folder, None)
    }

    /// The same with a provider and agents that stand elsewhere: what goes there is passed on, and written down too.
    ///
    /// # Errors
    /// As [`Services::start`].
    pub fn around(folder: &Path, elsewhere: Option<&Elsewhere>) -> io::Result<Self> {
        let recorder = Arc::new(Recorder {
            since: Instant::now(),
            seen: Mutex::default(),
            delays_ms: Default::default(),
            connections: AtomicU64::new(0),
        });
        let (config, authority) = tls(folder)?;
        let agent = Arc::new(Agent::default());
        let listen = || TcpListener::bind("127.0.0.1:0");
        let port = |listener: &TcpListener| listener.local_addr().map(|at| at.port());
        let (aws, chat, provider) = (listen()?, listen()?, listen()?);
        let ports = [port(&aws)?, port(&chat)?, port(&provider)?];
        let key = elsewhere.map_or("a key of the bench", |it| &it.provider_key);
        let (cloud, posts) = (lines(aws::Aws::new(key)), lines(chat::Chat::default()));
        serve(Peer::Aws, aws, Some(config), cloud, &recorder);
        serve(Peer::Chat, chat, None, posts, &recorder);
        match elsewhere {
            Some(elsewhere) => {
                let through = Arc::new(relay::Through::new(
                    &elsewhere.provider,
                    ports[2],
                    &recorder,
                ));
                let lines = move || Arc::clone(&through).line();
                serve(Peer::Provider, provider, None, lines, &recorder);
            }
            None => {
                let run = listen()?;
                let sandboxes = provider::Provider::new(ports[2], port(&run)?);
                serve(Peer::Provider, provider, None, lines(sandboxes), &recorder);
                serve(Peer::Agent, run, None, lines(Arc::clone(&agent)), &recorder);
            }
        }
        Ok(Self {
            recorder,
            agent,
            environment: environment(ports, &authority, elsewhere),
        })
    }

    /// The environment of a worker of the stack, as the template and Lambda set it.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }

    /// Lets a service think for so long before each answer, from now on.
    pub fn delay(&self, peer: Peer, delay_ms: u64) {
        self.recorder.delays_ms[peer as usize].store(delay_ms, Ordering::Relaxed);
    }

    /// A time, as those of calls.
    #[must_use]
    pub fn when(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.recorder.since)
    }

    /// Whether there has been a call of this name since [`Services::seen`] was asked last.
    #[must_use]
    pub fn has_seen(&self, name: &str) -> bool {
        self.recorder
            .seen()
            .calls
            .iter()
            .any(|call| call.name == name)
    }

    /// What was called since this was asked last.
    #[must_use]
    pub fn seen(&self) -> Seen {
        std::mem::take(&mut *self.recorder.seen())
    }
}

/// A prompt of this number, as ingress puts it on the queue, in the event that Lambda makes of it.
#[must_use]
pub fn prompt(number: u64, accepted_at_ms: u128) -> Vec<u8> {
    prompt_in(THREAD, number, accepted_at_ms)
}

/// The same in another thread.
#[must_use]
pub fn prompt_in(thread: &str, number: u64, accepted_at_ms: u128) -> Vec<u8> {
    let id = (1_240_000_000_000_000_000 + number).to_string();
    let message = json!({
        "schema": 1, "kind": "message", "id": id, "thread": thread, "accepted_at_ms": accepted_at_ms as u64,
        "work": {
            "work": "prompt", "text": format!("echo: {}", run::ANSWER), "attachments": [],
            "by": {"id": "1240000000000000300", "name": "Anna"},
        },
    });
    let record = json!({
        "messageId": format!("059f36b4-87a3-44ab-83d2-{number:012}"),
        "receiptHandle": format!("AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a{number:012}"),
        "body": message.to_string(),
        "attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": accepted_at_ms.to_string(),
            "MessageGroupId": thread, "MessageDeduplicationId": id,
        },
        "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": REGION,
        "eventSourceARN": format!("arn:aws:sqs:{REGION}:123456789012:messages.fifo"),
    });
    json!({ "Records": [record] }).to_string().into_bytes()
}

fn environment(
    [aws, chat, provider]: [u16; 3],
    authority: &Path,
    elsewhere: Option<&Elsewhere>,
) -> Vec<(String, String)> {
    let endpoint = format!("https://localhost:{aws}");
    let queue = |name: &str| format!("{endpoint}/123456789012/{name}.fifo");
    let mut overrides = json!({
        "discord_api": format!("http://127.0.0.1:{chat}/api/v10"),
        "daytona_api": format!("http://127.0.0.1:{provider}/api"),
    });
    // Nothing is made from a snapshot where none was prepared.
    let (mut snapshot, mut model) = ("bobbin-sandbox", "anthropic/claude-sonnet-4-5");
    if let Some(elsewhere) = elsewhere {
        overrides["model_base_url"] = json!(elsewhere.model_api);
        (snapshot, model) = ("", &elsewhere.model);
    }
    [
        ("AWS_LAMBDA_FUNCTION_NAME", "bench".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/bench".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench".to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.to_owned()),
        (
            "AWS_SESSION_TOKEN",
            "IQoJb3JpZ2luX2VjEXAMPLETOKEN".to_owned(),
        ),
        ("AWS_ENDPOINT_URL", endpoint.clone()),
        ("AWS_CA_BUNDLE", authority.display().to_string()),
        ("STACK", "bench".to_owned()),
        ("STACK_ID", "this-one".to_owned()),
        ("TABLE", "bench-table".to_owned()),
        ("MESSAGES_QUEUE_URL", queue("messages")),
        ("CONTROL_QUEUE_URL", queue("control")),
        ("MESSAGES_DEAD_QUEUE_URL", queue("messages-dead")),
        ("CONTROL_DEAD_QUEUE_URL", queue("control-dead")),
        ("WORKER_SECRET_ID", "worker-secret".to_owned()),
        ("PROVIDER_SECRET_ID", "provider-secret".to_owned()),
        ("STACK_KEY_ID", "stack-key".to_owned()),
        ("SCHEDULE_GROUP", "bench".to_owned()),
        (
            "SCHEDULE_ROLE_ARN",
            "arn:aws:iam::123456789012:role/bench".to_owned(),
        ),
        (
            "MESSAGES_QUEUE_ARN",
            format!("arn:aws:sqs:{REGION}:123456789012:messages.fifo"),
        ),
        (
            "SCHEDULE_DEAD_QUEUE_ARN",
            format!("arn:aws:sqs:{REGION}:123456789012:schedule-dead"),
        ),
        ("DISCORD_APPLICATION_ID", "1240000000000000001".to_owned()),
        ("DAYTONA_SNAPSHOT", snapshot.to_owned()),
        ("MODEL", model.to_owned()),
        ("ALLOWED_GUILDS", "1240000000000000100".to_owned()),
        ("OVERRIDES", overrides.to_string()),
        ("LOG_LEVEL", "info".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn serve(
    peer: Peer,
    listener: TcpListener,
    config: Option<ServerConfig>,
    lines: impl Fn() -> Line + Send + 'static,
    recorder: &Arc<Recorder>,
) {
    let config = config.map(Arc::new);
    let recorder = Arc::clone(recorder);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, line) = (config.clone(), lines());
            let recorder = Arc::clone(&recorder);
            recorder.seen().opened.push(peer);
            // A client that is killed in the middle is one that has been measured.
            thread::spawn(move || {
                stream.set_nodelay(true).ok()?;
                match config {
                    None => converse(peer, stream, line, &recorder).ok(),
                    Some(config) => {
                        let tls = ServerConnection::new(config).ok()?;
                        let stream: StreamOwned<_, TcpStream> = StreamOwned::new(tls, stream);
                        converse(peer, stream, line, &recorder).ok()
                    }
                }
            });
        }
    });
}

fn converse<S: Read + Write>(
    peer: Peer,
    stream: S,
    mut line: Line,
    recorder: &Recorder,
) -> io::Result<()> {
    let connection = recorder.connections.fetch_add(1, Ordering::Relaxed);
    let mut served = Served::new(stream);
    while let Some(request) = served.request()? {
        let begun = recorder.since.elapsed();
        let delay_ms = recorder.delays_ms[peer as usize].load(Ordering::Relaxed);
        if delay_ms > 0 {
            thread::sleep(Duration::from_millis(delay_ms));
        }
        let reply = line(&request);
        let ended = recorder.since.elapsed();
        let headers: Vec<(&str, &str)> = reply
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let (answer, events) = match reply.body {
            Body::Whole(body) => (wire::answer(reply.status, &headers, &body), None),
            Body::Stream(events) => (wire::endless(&headers), Some(events)),
        };
        // Before it is sent, so that whoever has the answer finds the call.
        recorder.seen().calls.push(Call {
            peer,
            connection,
            name: reply.name,
            begun,
            ended,
            sent: request.bytes,
            received: answer.len(),
            digest: digest(&request),
        });
        served.write(&answer)?;
        while let Some(events) = &events {
            match events.recv_timeout(STREAM_LOOK) {
                Ok(piece) => served.write(&piece)?,
                Err(RecvTimeoutError::Timeout) => served.write(&wire::chunk(agent::HEARTBEAT))?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
    Ok(())
}

/// What a request is known by: the same twice is a question that was asked twice.
fn digest(request: &Request) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [
        request.method.as_bytes(),
        request.path.as_bytes(),
        request.header("x-amz-target").as_bytes(),
        &request.body,
    ] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
