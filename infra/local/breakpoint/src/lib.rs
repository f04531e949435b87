//! Breakpoints: a test control that holds a call from one function process at a local service.
//!
//! A breakpoint names a call (`dynamodb PutItem`, `provider POST /api/sandbox`), which occurrence of it in the
//! process's work, and whether it is held before the service processes it, or afterwards, before the answer is sent.
//! While it is held, the breakpoint reports the process that made it. The caller is identified by the connection: its
//! socket belongs to a process with an invocation, and the invocation's event contains the breakpoint's text.
//!
//! Promised: one implementation for every local service; without a breakpoint a request costs one atomic load; a call
//! held before processing is never processed once its process is gone or has finished that work; every hold has a
//! bound. Deliberately absent: killing (the test does it), calls that a process makes outside an invocation, and
//! systems without `/proc`, where no call is ever recognised.
//!
//! The engine serves the control calls:
//!
//! | call | does |
//! |---|---|
//! | `POST /_bobbin/breakpoints {"text", "function", "call", "nth", "when"}` | sets a breakpoint, tells its `id`; without `call` it only writes calls down |
//! | `GET /_bobbin/breakpoints/ID` | tells `state` (`armed`, `held`, `passed`, `gone`), `process`, and the `calls` so far |
//! | `DELETE /_bobbin/breakpoints/ID` | takes it away; a held call goes on |

mod access;
mod call;
mod folder;
mod limits;
mod process;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Extensions, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

pub use access::{
    ControlKey, FORGE_COOKIE, KEY_COOKIE, PREVIEW_COOKIE, has_own_host, own_only,
    remove_key_cookies,
};
pub use folder::{FolderError, FolderLock};

/// A process with an invocation.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// System process id.
    pub process: u32,
    /// Logical id of the function.
    pub function: String,
    /// Event of the invocation.
    pub event: Bytes,
}

/// Lists the processes with invocations.
pub trait Invocations: Send + Sync + 'static {
    /// All of them, at this moment.
    fn invocations(&self) -> Vec<Invocation>;
}

/// When a call is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Before the service processes it.
    #[default]
    Before,
    /// After processing, before the answer is sent.
    After,
}

/// Condition of an armed breakpoint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Condition {
    /// Text in the invocation's event; empty matches any.
    text: String,
    /// The function; empty matches any.
    function: String,
    /// The call's name; empty matches none.
    call: String,
    /// Which call with this name, from 1; 0 counts as 1.
    nth: usize,
    when: When,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum BreakpointState {
    Armed,
    Held,
    /// Released, or held for the bound.
    Passed,
    /// The connection closed while the call was held.
    Gone,
}

struct Breakpoint {
    condition: Condition,
    state: BreakpointState,
    process: Option<u32>,
    calls: Vec<String>,
    released: Arc<Notify>,
}

/// All breakpoints of a stack. Clones share them.
#[derive(Clone, Default)]
pub struct Breakpoints(Arc<BreakpointSet>);

#[derive(Default)]
struct BreakpointSet {
    count: AtomicUsize,
    made: AtomicUsize,
    breakpoints: Mutex<BTreeMap<usize, Breakpoint>>,
    invocations: OnceLock<Arc<dyn Invocations>>,
}

/// A held call.
struct HeldInvocation {
    breakpoints: Breakpoints,
    id: usize,
    process: u32,
    when: When,
    released: Arc<Notify>,
    is_over: bool,
}

impl Breakpoints {
    /// Sets the source of invocations; only the first call counts.
    pub fn set_invocations(&self, invocations: Arc<dyn Invocations>) {
        // A second engine on the same breakpoints would be a bug; its calls are not recognised.
        let _ = self.0.invocations.set(invocations);
    }

    /// Puts the breakpoints in front of a service. `service` is the prefix of its calls' names; `peer` finds the remote
    /// address of a request's connection.
    pub fn before(
        &self,
        service: &'static str,
        peer: fn(&Extensions) -> Option<SocketAddr>,
        router: Router,
    ) -> Router {
        let breakpoints = self.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let breakpoints = breakpoints.clone();
            async move {
                if breakpoints.0.count.load(Ordering::Relaxed) == 0 {
                    return next.run(request).await;
                }
                let peer = peer(request.extensions());
                breakpoints.intercept(service, peer, request, next).await
            }
        }))
    }

    async fn intercept(
        &self,
        service: &str,
        peer: Option<SocketAddr>,
        request: Request,
        next: Next,
    ) -> Response {
        let (Some(peer), Some(invocations)) = (peer, self.0.invocations.get()) else {
            return next.run(request).await;
        };
        let caller = process::behind(peer, &request, &invocations.invocations());
        let Some(held) =
            caller.and_then(|caller| self.take(&call::name(service, &request), &caller))
        else {
            return next.run(request).await;
        };
        if held.when == When::After {
            let response = next.run(request).await;
            held.hold().await;
            return response;
        }
        // A closed connection is only noticed once the whole request has been read.
        let (head, body) = request.into_parts();
        let Ok(body) = to_bytes(body, limits::REQUEST_BYTES_MAX).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let process = held.process;
        held.hold().await;
        let lives = |one: &Invocation| one.process == process;
        if invocations.invocations().iter().any(lives) {
            next.run(Request::from_parts(head, Body::from(body))).await
        } else {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }

    /// Records the call at every matching breakpoint; the first one that wants to hold it takes it.
    fn take(&self, name: &str, caller: &Invocation) -> Option<HeldInvocation> {
        let mut taken = None;
        for (id, breakpoint) in self.breakpoints().iter_mut() {
            if !breakpoint.concerns(caller) || breakpoint.calls.len() >= limits::CALLS_MAX {
                continue;
            }
            breakpoint.calls.push(name.to_owned());
            let nth = breakpoint.calls.iter().filter(|call| *call == name).count();
            let is_it = breakpoint.state == BreakpointState::Armed
                && breakpoint.condition.call == name
                && nth == breakpoint.condition.nth.max(1);
            if is_it && taken.is_none() {
                breakpoint.state = BreakpointState::Held;
                breakpoint.process = Some(caller.process);
                taken = Some(HeldInvocation {
                    breakpoints: self.clone(),
                    id: *id,
                    process: caller.process,
                    when: breakpoint.condition.when,
                    released: Arc::clone(&breakpoint.released),
                    is_over: false,
                });
            }
        }
        taken
    }

    /// The control calls; `id` is what follows `breakpoints/` in the path.
    pub fn control(&self, method: &Method, id: &str, body: &[u8]) -> Response {
        let number = id.parse::<usize>().ok();
        match (method.as_str(), number) {
            ("POST", None) if id.is_empty() => match serde_json::from_slice::<Condition>(body) {
                Ok(condition) => self.arm(condition),
                Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
            },
            ("GET", Some(number)) => match self.breakpoints().get(&number) {
                Some(breakpoint) => json_response(&json!({
                    "state": breakpoint.state, "process": breakpoint.process, "calls": breakpoint.calls,
                })),
                None => unknown(),
            },
            ("DELETE", Some(number)) => match self.breakpoints().remove(&number) {
                Some(breakpoint) => {
                    self.0.count.fetch_sub(1, Ordering::Relaxed);
                    breakpoint.released.notify_one();
                    json_response(&json!({ "state": breakpoint.state }))
                }
                None => unknown(),
            },
            _ => unknown(),
        }
    }

    fn arm(&self, condition: Condition) -> Response {
        let mut breakpoints = self.breakpoints();
        if breakpoints.len() >= limits::BREAKPOINTS_MAX {
            let words = "too many breakpoints are set; remove some";
            return (StatusCode::CONFLICT, words).into_response();
        }
        let id = self.0.made.fetch_add(1, Ordering::Relaxed) + 1;
        let breakpoint = Breakpoint {
            condition,
            state: BreakpointState::Armed,
            process: None,
            calls: Vec::new(),
            released: Arc::default(),
        };
        breakpoints.insert(id, breakpoint);
        self.0.count.fetch_add(1, Ordering::Relaxed);
        json_response(&json!({ "id": id }))
    }

    fn breakpoints(&self) -> MutexGuard<'_, BTreeMap<usize, Breakpoint>> {
        self.0.breakpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Breakpoint {
    fn concerns(&self, caller: &Invocation) -> bool {
        let Condition { text, function, .. } = &self.condition;
        let names = |text: &str| {
            let (event, text) = (&caller.event[..], text.as_bytes());
            text.is_empty() || event.windows(text.len()).any(|part| part == text)
        };
        (function.is_empty() || *function == caller.function) && names(text)
    }
}

impl HeldInvocation {
    async fn hold(mut self) {
        let bound = Duration::from_millis(limits::HOLD_MS_MAX);
        // Released or timed out: the call goes on.
        let _ = tokio::time::timeout(bound, self.released.notified()).await;
        self.is_over = true;
    }
}

impl Drop for HeldInvocation {
    fn drop(&mut self) {
        if let Some(breakpoint) = self.breakpoints.breakpoints().get_mut(&self.id) {
            breakpoint.state =
                if self.is_over { BreakpointState::Passed } else { BreakpointState::Gone };
        }
    }
}

/// The remote address, where axum's connection info has it.
#[must_use]
pub fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    Some(*peer)
}

fn json_response(value: &serde_json::Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

fn unknown() -> Response {
    (StatusCode::NOT_FOUND, "no such breakpoint").into_response()
}
