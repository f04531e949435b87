//! Gates: a test control that holds one call of one function's process at a local service.
//!
//! A gate names a call (`dynamodb PutItem`, `provider POST /api/sandbox`), which one of them in the process's work, and
//! whether it is held before the service has processed it or after, before the answer goes out. While it is held, the
//! gate tells which process is behind it. Whose call it is, is known by the connection: its socket belongs to a process
//! that holds an invocation, and the invocation's event holds the words that the gate was armed with.
//!
//! Promised: one implementation for every local service; without an armed gate a request costs one load of a number;
//! a call that was held before its processing is never processed when its process is gone or has ended that work; every
//! hold has a bound.
//! Deliberately absent: killing (the test does it), calls that a process makes outside an invocation, and systems
//! without `/proc`, where no call is ever recognised.
//!
//! The engine serves the control calls:
//!
//! | call | does |
//! |---|---|
//! | `POST /_bobbin/gates {"text", "function", "call", "nth", "when"}` | arms a gate, tells its `id`; without `call` it only writes calls down |
//! | `GET /_bobbin/gates/ID` | tells `state` (`armed`, `held`, `passed`, `gone`), `process`, and the `calls` so far |
//! | `DELETE /_bobbin/gates/ID` | takes it away; a held call goes on |

mod call;
mod limits;
mod own;
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

pub use own::{ControlKey, KEY_COOKIE, has_own_host, own_only};

/// A process that holds an invocation.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Its id.
    pub process: u32,
    /// The function's id in the template.
    pub function: String,
    /// The event that it works on.
    pub event: Bytes,
}

/// Knows which processes hold invocations.
pub trait Servings: Send + Sync + 'static {
    /// All of them, at this moment.
    fn servings(&self) -> Vec<Serving>;
}

/// When a call is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Before the service has processed it.
    #[default]
    Before,
    /// After that, before its answer goes out.
    After,
}

/// A gate as it is armed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Order {
    /// Stands in the event of the invocation; empty: any.
    text: String,
    /// The function; empty: any.
    function: String,
    /// The call's name; empty: none is held.
    call: String,
    /// Which one of the calls with this name, from 1; 0 counts as 1.
    nth: usize,
    when: When,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Armed,
    Held,
    /// It was released, or held for longer than the bound.
    Passed,
    /// The connection ended while it was held.
    Gone,
}

struct Gate {
    order: Order,
    state: State,
    process: Option<u32>,
    calls: Vec<String>,
    released: Arc<Notify>,
}

/// All gates of a stack. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Gates(Arc<Inner>);

#[derive(Default)]
struct Inner {
    standing: AtomicUsize,
    made: AtomicUsize,
    gates: Mutex<BTreeMap<usize, Gate>>,
    servings: OnceLock<Arc<dyn Servings>>,
}

/// A call that a gate holds.
struct Held {
    gates: Gates,
    id: usize,
    process: u32,
    when: When,
    released: Arc<Notify>,
    is_over: bool,
}

impl Gates {
    /// Makes known who knows the functions' processes; only the first one counts.
    pub fn know(&self, servings: Arc<dyn Servings>) {
        // A second engine on the same gates would be a mistake of the program; its calls are not recognised.
        let _ = self.0.servings.set(servings);
    }

    /// Puts the gates in front of a service. `service` begins the names of its calls; `peer` finds the address of the
    /// other end of a request's connection.
    pub fn before(
        &self,
        service: &'static str,
        peer: fn(&Extensions) -> Option<SocketAddr>,
        router: Router,
    ) -> Router {
        let gates = self.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let gates = gates.clone();
            async move {
                if gates.0.standing.load(Ordering::Relaxed) == 0 {
                    return next.run(request).await;
                }
                let peer = peer(request.extensions());
                gates.meet(service, peer, request, next).await
            }
        }))
    }

    async fn meet(
        &self,
        service: &str,
        peer: Option<SocketAddr>,
        request: Request,
        next: Next,
    ) -> Response {
        let (Some(peer), Some(servings)) = (peer, self.0.servings.get()) else {
            return next.run(request).await;
        };
        let caller = process::behind(peer, &request, &servings.servings());
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
        // The end of the connection is only noticed when all of the request has been read.
        let (head, body) = request.into_parts();
        let Ok(body) = to_bytes(body, limits::REQUEST_BYTES_MAX).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let process = held.process;
        held.hold().await;
        let lives = |one: &Serving| one.process == process;
        if servings.servings().iter().any(lives) {
            next.run(Request::from_parts(head, Body::from(body))).await
        } else {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }

    /// Writes the call down at every gate that it concerns; the first one that wants it takes it.
    fn take(&self, name: &str, caller: &Serving) -> Option<Held> {
        let mut taken = None;
        for (id, gate) in self.gates().iter_mut() {
            if !gate.concerns(caller) || gate.calls.len() >= limits::CALLS_MAX {
                continue;
            }
            gate.calls.push(name.to_owned());
            let nth = gate.calls.iter().filter(|call| *call == name).count();
            let is_it = gate.state == State::Armed
                && gate.order.call == name
                && nth == gate.order.nth.max(1);
            if is_it && taken.is_none() {
                gate.state = State::Held;
                gate.process = Some(caller.process);
                taken = Some(Held {
                    gates: self.clone(),
                    id: *id,
                    process: caller.process,
                    when: gate.order.when,
                    released: Arc::clone(&gate.released),
                    is_over: false,
                });
            }
        }
        taken
    }

    /// The control calls; `id` is what follows `gates/` in the path.
    pub fn control(&self, method: &Method, id: &str, body: &[u8]) -> Response {
        let number = id.parse::<usize>().ok();
        match (method.as_str(), number) {
            ("POST", None) if id.is_empty() => match serde_json::from_slice::<Order>(body) {
                Ok(order) => self.arm(order),
                Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
            },
            ("GET", Some(number)) => match self.gates().get(&number) {
                Some(gate) => told(&json!({
                    "state": gate.state, "process": gate.process, "calls": gate.calls,
                })),
                None => unknown(),
            },
            ("DELETE", Some(number)) => match self.gates().remove(&number) {
                Some(gate) => {
                    self.0.standing.fetch_sub(1, Ordering::Relaxed);
                    gate.released.notify_one();
                    told(&json!({ "state": gate.state }))
                }
                None => unknown(),
            },
            _ => unknown(),
        }
    }

    fn arm(&self, order: Order) -> Response {
        let mut gates = self.gates();
        if gates.len() >= limits::GATES_MAX {
            let words = "too many gates stand; take some away";
            return (StatusCode::CONFLICT, words).into_response();
        }
        let id = self.0.made.fetch_add(1, Ordering::Relaxed) + 1;
        let gate = Gate {
            order,
            state: State::Armed,
            process: None,
            calls: Vec::new(),
            released: Arc::default(),
        };
        gates.insert(id, gate);
        self.0.standing.fetch_add(1, Ordering::Relaxed);
        told(&json!({ "id": id }))
    }

    fn gates(&self) -> MutexGuard<'_, BTreeMap<usize, Gate>> {
        self.0.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    fn concerns(&self, caller: &Serving) -> bool {
        let Order { text, function, .. } = &self.order;
        let names = |text: &str| {
            let (event, text) = (&caller.event[..], text.as_bytes());
            text.is_empty() || event.windows(text.len()).any(|part| part == text)
        };
        (function.is_empty() || *function == caller.function) && names(text)
    }
}

impl Held {
    async fn hold(mut self) {
        let bound = Duration::from_millis(limits::HOLD_MS_MAX);
        // Released or not: past the bound it goes on.
        let _ = tokio::time::timeout(bound, self.released.notified()).await;
        self.is_over = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(gate) = self.gates.gates().get_mut(&self.id) {
            gate.state = if self.is_over {
                State::Passed
            } else {
                State::Gone
            };
        }
    }
}

/// The address of the other end, where the server tells it as axum does by itself.
#[must_use]
pub fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    Some(*peer)
}

fn told(value: &serde_json::Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

fn unknown() -> Response {
    (StatusCode::NOT_FOUND, "no such gate").into_response()
}
