//! Routes: one loopback listener per declared port of a session, open to everybody who can reach it, as Vercel's are.
//!
//! Bytes are streamed in both directions, so that event streams and upgrades work. Routes end with their session: the
//! next one has new ones.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use bobbin_local_breakpoint::{has_own_host, remove_key_cookies};
use bobbin_local_sandbox::machine::AGENT_PORT;
use bobbin_local_sandbox::relay::{Relayed, pass_on};
use bobbin_local_sandbox::serve;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::faults::Fault;
use crate::state::{Engine, PortRoute, SharedEngine};

/// A session's port with a listener.
#[derive(Clone)]
struct Exposed {
    engine: SharedEngine,
    name: Arc<str>,
    session: Arc<str>,
    port: u16,
}

/// Opens the listener of a port.
///
/// # Errors
/// The system's error.
pub(crate) async fn open(
    engine: &SharedEngine,
    name: &str,
    session: &str,
    port: u16,
) -> std::io::Result<PortRoute> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let local = listener.local_addr()?.port();
    let also = serve::also_on(engine.settings.run.also_on, local).await?;
    let end: CancellationToken = engine.stopping.child_token();
    let router = Router::new().fallback(forward).with_state(Exposed {
        engine: Arc::clone(engine),
        name: name.into(),
        session: session.into(),
        port,
    });
    let router = engine.settings.run.breakpoints.before("agent", serve::peer, router);
    for listener in [Some(listener), also].into_iter().flatten() {
        let served = serve::run(listener, router.clone(), end.clone());
        engine.machine.tasks.spawn(served);
    }
    Ok(PortRoute { port, local, _end: end.drop_guard() })
}

/// The port inside for a sandbox's port, if sandboxes share the machine's ports.
pub(crate) fn inner_port(agent_port: u16, port: u16) -> u16 {
    if port == AGENT_PORT { agent_port } else { port }
}

async fn forward(State(exposed): State<Exposed>, mut request: Request) -> Response {
    let engine: &Engine = &exposed.engine;
    if !has_own_host(request.headers(), engine.settings.run.also_named.as_deref()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let page = engine.faults.take(&engine.names(&exposed.name), |fault| match fault {
        Fault::Page { status } => Some(*status),
        Fault::Hold { .. } => None,
    });
    if let Some(status) = page {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        return (status, Html("<h1>Somebody else's page</h1>")).into_response();
    }
    let unreachable = || StatusCode::BAD_GATEWAY.into_response();
    let running = {
        let inner = engine.lock();
        let entry = inner.entry(&exposed.name);
        entry.and_then(|entry| Ok((entry.running(&exposed.session)?, entry.record.agent_port)))
    };
    let Ok((process, agent_port)) = running else {
        return unreachable();
    };
    let port = inner_port(agent_port, exposed.port);
    let Ok(stream) = process.dial(port).await else {
        return unreachable();
    };
    // Not held any longer: dropping the last handle ends the sandbox.
    drop(process);
    let headers = request.headers_mut();
    remove_key_cookies(headers);
    if let Some(host) = headers.remove(header::HOST) {
        headers.insert("x-forwarded-host", host);
    }
    if let Ok(host) = HeaderValue::from_str(&format!("localhost:{port}")) {
        headers.insert(header::HOST, host);
    }
    match pass_on(stream, request, || ()).await {
        Some(Relayed::Answered(response)) => response.map(Body::new),
        Some(Relayed::Upgraded(response)) => response,
        None => unreachable(),
    }
}
