//! Spans: the worker's steps for a turn, as subsegments of the invocation's own X-Ray segment.
//!
//! Lambda traces each invocation by itself (`Tracing: Active`) and runs a daemon beside the function that accepts
//! segment documents as datagrams ("Sending trace data to AWS X-Ray", "Segment documents"). So a span costs one
//! datagram on loopback: no library, no connection, no wait, and nothing if tracing is off. Deliberately absent:
//! OpenTelemetry, which needs an exporter and its own connection at every cold start (docs/decisions/0002-traces.md).

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::net::UdpSocket;
use std::sync::Arc;

use bobbin_core::base::ids::Ms;
use serde_json::{Value, json};

/// Prefix of each datagram.
const HEADER: &str = "{\"format\":\"json\",\"version\":1}\n";
/// Variable with the daemon's address (`host:port`; set by Lambda).
const DAEMON: &str = "AWS_XRAY_DAEMON_ADDRESS";
/// Variable with the current invocation's header, which `lambda_runtime` sets before each invocation: a process has one
/// at a time.
const PRESENT: &str = "_X_AMZN_TRACE_ID";
/// Most characters of a span's name.
const NAME_CHARS_MAX: usize = 200;

/// Destination of spans; none if there is no daemon.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    daemon: Option<Arc<UdpSocket>>,
}

/// The trace of one sampled invocation, as its header names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    root: String,
    parent: String,
}

/// One step: its name, times and thread.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Name of the effect.
    pub name: &'a str,
    /// Begin, in Unix milliseconds.
    pub began_ms: Ms,
    /// End, in Unix milliseconds.
    pub ended_ms: Ms,
    /// It did not succeed.
    pub failed: bool,
    /// The thread's key, as in the log.
    pub thread: &'a str,
    /// The turn's id, as in the log; may be empty.
    pub turn: &'a str,
}

impl Spans {
    /// Reads the daemon's address from the environment. An unusable address loses the spans, nothing else.
    #[must_use]
    pub fn from_environment() -> Self {
        let daemon = env::var(DAEMON).ok().and_then(|address| {
            let socket = UdpSocket::bind(("127.0.0.1", 0))
                .and_then(|socket| socket.connect(&address).map(|()| socket))
                .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
            socket
                .inspect_err(|error| tracing::warn!(event = "spans.unsent", %error, "spans cannot be sent to {DAEMON}"))
                .ok()
        });
        Self { daemon: daemon.map(Arc::new) }
    }

    /// The trace of the current invocation, if it is sampled.
    #[must_use]
    pub fn present(&self) -> Option<Trace> {
        self.daemon.as_ref()?;
        Trace::read(&env::var(PRESENT).ok()?)
    }

    /// Sends a span. One that the daemon does not receive is lost; spans may be.
    pub fn put(&self, trace: Option<&Trace>, span: &Span<'_>) {
        let (Some(daemon), Some(trace)) = (&self.daemon, trace) else {
            return;
        };
        let id = RandomState::new().hash_one(span.began_ms);
        let document = document(trace, span, id);
        let _ = daemon.send(format!("{HEADER}{document}").as_bytes());
    }
}

impl Trace {
    /// Parses `Root=1-…;Parent=…;Sampled=1`; `None` if it is not sampled or incomplete.
    fn read(header: &str) -> Option<Self> {
        let part = |name: &str| {
            let mut parts = header.split(';').filter_map(|part| part.split_once('='));
            parts.find(|(key, _)| key.trim() == name).map(|(_, it)| it)
        };
        (part("Sampled")? == "1").then_some(())?;
        Some(Self { root: part("Root")?.to_owned(), parent: part("Parent")?.to_owned() })
    }
}

fn document(trace: &Trace, span: &Span<'_>, id: u64) -> Value {
    let name: String = span.name.chars().take(NAME_CHARS_MAX).collect();
    // Seconds with three decimals; an `f64` is exact enough for some 285,000 years.
    let seconds = |ms: Ms| ms as f64 / 1_000.0;
    let mut document = json!({
        "type": "subsegment",
        "trace_id": trace.root,
        "parent_id": trace.parent,
        "id": format!("{id:016x}"),
        "name": name,
        "start_time": seconds(span.began_ms),
        "end_time": seconds(span.ended_ms),
        "annotations": {"thread": span.thread, "turn": span.turn},
    });
    if span.failed {
        document["fault"] = json!(true);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(failed: bool) -> Span<'static> {
        Span {
            name: "create",
            began_ms: 1_700_000_000_250,
            ended_ms: 1_700_000_003_000,
            failed,
            thread: "discord:1:2",
            turn: "discord_9",
        }
    }

    #[test]
    fn span_is_an_xray_subsegment() {
        let header = "Root=1-581cf771-a006649127e371903a2de979;Parent=70de5b6f19ff9a0a;Sampled=1;Lineage=1:a:0";
        let trace = Trace::read(header).expect("sampled");
        assert_eq!(
            document(&trace, &span(false), 0xab),
            json!({
                "type": "subsegment", "trace_id": "1-581cf771-a006649127e371903a2de979", "parent_id": "70de5b6f19ff9a0a",
                "id": "00000000000000ab", "name": "create",
                "start_time": 1_700_000_000.25, "end_time": 1_700_000_003.0,
                "annotations": {"thread": "discord:1:2", "turn": "discord_9"},
            })
        );
        assert_eq!(document(&trace, &span(true), 1)["fault"], true);
    }

    #[test]
    fn unsampled_invocation_is_not_traced() {
        for header in ["", "Root=1-5-6", "Root=1-5-6;Parent=7;Sampled=0", "Parent=7;Sampled=1"] {
            assert_eq!(Trace::read(header), None, "{header}");
        }
    }

    #[test]
    fn span_is_one_datagram() {
        let daemon = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        let ours = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        let address = daemon.local_addr().expect("bound");
        ours.connect(address).expect("on loopback");
        let trace = Trace::read("Root=1-5-6;Parent=7;Sampled=1");
        Spans::default().put(trace.as_ref(), &span(false));
        let spans = Spans { daemon: Some(Arc::new(ours)) };
        spans.put(None, &span(false));
        spans.put(trace.as_ref(), &span(false));
        let mut datagram = [0; 2_048];
        let length = daemon.recv(&mut datagram).expect("the span");
        let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
        let (header, body) = text.split_once('\n').expect("a header");
        assert_eq!(header, r#"{"format":"json","version":1}"#);
        let body: Value = serde_json::from_str(body).expect("a document");
        assert_eq!(body["name"], "create");
    }
}
