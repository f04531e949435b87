//! Lambda's Runtime API (version 2018-06-01, "Using the Lambda runtime API for custom runtimes"): asks for the next event,
//! gives it to the function, says what came of it.
//!
//! Promised: one invocation at a time, each told its answer or its error before the next is asked for; an event that
//! cannot be read, a failure and, where panics unwind, a panic are errors of their invocation and nothing more; one
//! connection, opened again when Lambda has closed it; the trace of the invocation in hand is [`spans::header`]'s.
//! Deliberately absent: streamed answers, concurrent invocations (docs/decisions/0001-managed-instances.md), snapshots of
//! a started function, and time limits: Lambda freezes a process in the middle of a wait, for as long as it likes, and
//! ends the one that takes too long.

pub mod event;

use std::fmt;
use std::panic::AssertUnwindSafe;

use bobbin_core::ids::Ms;
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use crate::http1::{self, Answer, Broken, Http1};
use crate::spans;

/// Largest event: Lambda gives 6 MB (its quotas), escaped and wrapped.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The environment variable that says where Lambda is asked for work.
pub const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";
/// What stands before each of its paths.
const BASE: &str = "/2018-06-01/runtime/";

/// No more work can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Nobody answers.
    #[error("the Runtime API at {address} does not answer: {why}")]
    Silent {
        /// Where it should be.
        address: String,
        /// In a few words.
        why: String,
    },
    /// It does not go on with this process.
    #[error("the Runtime API answered {status} to {path}")]
    Refused {
        /// The status.
        status: u16,
        /// What was asked.
        path: String,
    },
    /// It gave an event that cannot be answered.
    #[error("the Runtime API gave an event without {0}")]
    Headless(&'static str),
}

/// Why an invocation has no answer: what Lambda is told, and what its log shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    #[serde(rename = "errorType")]
    kind: &'static str,
    #[serde(rename = "errorMessage")]
    message: String,
}

impl Failure {
    /// The event is not what this function is invoked with.
    fn of_event(why: &serde_json::Error) -> Self {
        Self {
            kind: "Bobbin.Event",
            // Where, and not what: an event holds what people wrote.
            message: format!(
                "the event cannot be read: {:?} at line {} column {}",
                why.classify(),
                why.line(),
                why.column()
            ),
        }
    }

    fn of_panic(said: &(dyn std::any::Any + Send)) -> Self {
        let said = said
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| said.downcast_ref::<String>().map(String::as_str));
        Self {
            kind: "Bobbin.Panic",
            message: said.unwrap_or("it panicked").to_owned(),
        }
    }
}

/// What went wrong, in the function's own words.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            kind: "Bobbin.Failed",
            message,
        }
    }
}

/// One event, and what Lambda says about it.
pub struct Invocation {
    /// When Lambda ends the process if there is no answer.
    pub deadline_ms: Ms,
    payload: Vec<u8>,
    request_id: String,
    /// Sent back as it came, where Lambda gives one.
    invocation_id: Option<String>,
}

/// Without the event, which holds what people wrote.
impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invocation({})", self.request_id)
    }
}

impl Invocation {
    /// The event.
    ///
    /// # Errors
    /// [`Failure`], if it is none of this kind.
    pub fn event<'a, E: Deserialize<'a>>(&'a self) -> Result<E, Failure> {
        serde_json::from_slice(&self.payload).map_err(|why| Failure::of_event(&why))
    }

    fn of(answer: Answer) -> Result<Self, Lost> {
        let said = |name: &'static str| {
            let value = answer.header(name).filter(|value| is_plain(value));
            value.ok_or(Lost::Headless(name))
        };
        let deadline = "lambda-runtime-deadline-ms";
        let invocation_id = said(INVOCATION_ID).ok().map(str::to_owned);
        Ok(Self {
            request_id: said("lambda-runtime-aws-request-id")?.to_owned(),
            deadline_ms: said(deadline)?
                .parse()
                .map_err(|_| Lost::Headless(deadline))?,
            invocation_id,
            payload: answer.body,
        })
    }
}

const INVOCATION_ID: &str = "lambda-runtime-invocation-id";

/// Whether it can stand in a line of a request as it is.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Gives one invocation after the other to `handler`, from the Runtime API at this address (`host:port`), and ends only
/// when there are no more.
pub async fn serve<A: Serialize>(
    address: &str,
    handler: impl AsyncFn(&Invocation) -> Result<A, Failure>,
) -> Lost {
    let mut api = Api {
        address,
        kept: None,
    };
    loop {
        if let Err(lost) = api.one(&handler).await {
            return lost;
        }
    }
}

/// Tells Lambda that this process cannot start, and why.
///
/// # Errors
/// [`Lost`].
pub(crate) async fn refuse(address: &str, kind: &'static str, why: &str) -> Result<(), Lost> {
    let body = serde_json::json!({ "errorMessage": why, "errorType": kind, "stackTrace": [] });
    let mut api = Api {
        address,
        kept: None,
    };
    let headers = [(ERROR_TYPE, kind)];
    let body = body.to_string();
    api.tell("init/error", &headers, body.as_bytes()).await
}

const ERROR_TYPE: &str = "lambda-runtime-function-error-type";

struct Api<'a> {
    address: &'a str,
    kept: Option<Http1<TcpStream>>,
}

impl Api<'_> {
    /// One invocation, from its event to its answer.
    async fn one<A: Serialize>(
        &mut self,
        handler: &impl AsyncFn(&Invocation) -> Result<A, Failure>,
    ) -> Result<(), Lost> {
        let path = "invocation/next";
        let answer = self
            .exchange(&self.request("GET", path, &[], None)?)
            .await?;
        if answer.status != 200 {
            return Err(refused(answer.status, path));
        }
        spans::begin(answer.header("lambda-runtime-trace-id"));
        let invocation = Invocation::of(answer)?;
        // A handler that has panicked is not asked for what it had in hand: it begins anew with the next event.
        let handling = AssertUnwindSafe(handler(&invocation)).catch_unwind();
        let outcome = match handling.await {
            Ok(outcome) => outcome,
            Err(said) => Err(Failure::of_panic(&*said)),
        };
        let outcome = outcome.and_then(|answer| {
            serde_json::to_vec(&answer).map_err(|e| Failure::from(e.to_string()))
        });
        let Invocation {
            request_id,
            invocation_id,
            ..
        } = &invocation;
        let mut headers = Vec::new();
        headers.extend(invocation_id.as_deref().map(|id| (INVOCATION_ID, id)));
        match outcome {
            Ok(answer) => {
                let path = format!("invocation/{request_id}/response");
                self.tell(&path, &headers, &answer).await
            }
            Err(failure) => {
                let Failure { kind, message } = &failure;
                tracing::error!(event = "invocation.failed", kind, "{message}");
                headers.push((ERROR_TYPE, kind));
                let told = serde_json::json!(failure).to_string();
                let path = format!("invocation/{request_id}/error");
                self.tell(&path, &headers, told.as_bytes()).await
            }
        }
    }

    /// Says something that Lambda only acknowledges.
    async fn tell(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Lost> {
        let request = self.request("POST", path, headers, Some(body))?;
        match self.exchange(&request).await?.status {
            200..300 => Ok(()),
            // Of this invocation: too late, or too large. It is over, and the next may do better.
            status @ (400 | 413) => {
                tracing::error!(
                    event = "invocation.untold",
                    status,
                    "Lambda did not take what came of an invocation"
                );
                Ok(())
            }
            // "Non-recoverable state. Runtime should exit promptly."
            status => Err(refused(status, path)),
        }
    }

    /// Nothing in it can be more than a line: paths and headers are ours, or plain.
    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Vec<u8>, Lost> {
        let agent = concat!("bobbin/", env!("CARGO_PKG_VERSION"));
        let mut all = vec![("host", self.address), ("user-agent", agent)];
        all.extend(body.map(|_| ("content-type", "application/json")));
        all.extend(headers);
        let request = http1::request(method, &format!("{BASE}{path}"), &all, body);
        request.ok_or_else(|| self.silent(&"that is no address"))
    }

    fn silent(&self, why: &dyn fmt::Display) -> Lost {
        Lost::Silent {
            address: self.address.to_owned(),
            why: why.to_string(),
        }
    }

    /// On the kept connection, or a new one if Lambda has closed it.
    async fn exchange(&mut self, request: &[u8]) -> Result<Answer, Lost> {
        if let Some(mut kept) = self.kept.take()
            && kept.is_open().await
        {
            match kept.exchange(request, EVENT_BYTES_MAX).await {
                Ok(answer) => return Ok(self.keep(kept, answer)),
                // Closed while it was written. What Lambda had from it already, it refuses to be told again.
                Err(Broken::Lost) => {}
                Err(broken @ Broken::TooLarge) => return Err(self.silent(&broken)),
            }
        }
        let stream = TcpStream::connect(self.address).await;
        let stream = stream.map_err(|e| self.silent(&e))?;
        stream.set_nodelay(true).map_err(|e| self.silent(&e))?;
        let mut opened = Http1::new(stream);
        let answer = opened.exchange(request, EVENT_BYTES_MAX).await;
        let answer = answer.map_err(|broken| self.silent(&broken))?;
        Ok(self.keep(opened, answer))
    }

    fn keep(&mut self, connection: Http1<TcpStream>, answer: Answer) -> Answer {
        self.kept = (!answer.is_last()).then_some(connection);
        answer
    }
}

fn refused(status: u16, path: &str) -> Lost {
    Lost::Refused {
        status,
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
