//! Previews: one loopback listener per exposed port of a sandbox, which checks the token and forwards.
//!
//! Bytes are streamed in both directions, so that event streams and upgrades work. A request is forwarded once, unless
//! the replay fault is armed.

mod access;
mod relay;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bobbin_local_breakpoint::has_own_host;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::http::SKIP_ACTIVITY;
use crate::limits::PREVIEWS_MAX;
use crate::serve;
use crate::store::PreviewListener;

pub(crate) use access::QUERY_TOKEN;
use access::{Credential, ExposedPort, authorize, cookie_name, rewrite};
use relay::send;

/// Address of the listener for this port of the sandbox; created if needed.
pub(crate) async fn url(engine: &SharedEngine, id: &str, port: u16) -> Result<String, ApiError> {
    let present = {
        let inner = engine.store.lock();
        let entry = inner.sandboxes.get(id).ok_or_else(|| ApiError::no_sandbox(id))?;
        if entry.previews.len() >= PREVIEWS_MAX && !entry.previews.contains_key(&port) {
            return Err(ApiError::bad(format!(
                "more than {PREVIEWS_MAX} ports of one sandbox are exposed"
            )));
        }
        entry.previews.get(&port).map(|listener| listener.port)
    };
    let local = match present {
        Some(local) => local,
        None => listen(engine, id, port).await?,
    };
    Ok(format!("http://127.0.0.1:{local}"))
}

async fn listen(engine: &SharedEngine, id: &str, port: u16) -> Result<u16, ApiError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(ApiError::internal)?;
    let local = listener.local_addr().map_err(ApiError::internal)?.port();
    let also = serve::also_on(engine.run.also_on, local).await.map_err(ApiError::internal)?;
    let end: CancellationToken = engine.stopping.child_token();
    let router = Router::new().fallback(forward).with_state(ExposedPort {
        engine: engine.clone(),
        id: id.to_owned(),
        port,
    });
    let router = engine.run.breakpoints.before("agent", serve::peer, router);
    for listener in [Some(listener), also].into_iter().flatten() {
        engine.machine.tasks.spawn(serve::run(listener, router.clone(), end.clone()));
    }
    let made = PreviewListener { port: local, _end: end.drop_guard() };
    // Two concurrent calls: the first listener stays, the second ends here.
    let listening =
        engine.store.change(id, |entry| entry.previews.entry(port).or_insert(made).port);
    listening.ok_or_else(|| ApiError::no_sandbox(id))
}

async fn forward(State(exposed): State<ExposedPort>, mut request: Request) -> Response {
    let ExposedPort { engine, id, port } = &exposed;
    if !has_own_host(request.headers(), engine.run.also_named.as_deref()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    // The proxy's own answers have the toolbox's format.
    let refuse = |error: &ApiError| {
        let body = error.toolbox_body("DAYTONA_PROXY", &path, method.as_str());
        (error.status, axum::Json(body)).into_response()
    };
    let names = engine.names(id);
    let stale =
        engine.faults.take(&names, |fault| matches!(fault, Fault::RunnerInfo).then_some(()));
    if stale.is_some() {
        return refuse(&ApiError::runner_info(&names));
    }
    let Some(credential) = authorize(&exposed, request.headers(), request.uri()) else {
        let login = format!("http://127.0.0.1:{}/login?redirect_uri={path}", engine.port);
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, login)]).into_response();
    };
    let target = match engine.store.running(id) {
        Ok((record, _)) => record.host_port(*port),
        Err(error) => return refuse(&error),
    };
    if !request.headers().contains_key(SKIP_ACTIVITY) {
        engine.touch(id);
    }
    rewrite(&mut request, target, &credential);
    let mut response = send(&exposed, &names, request, target).await;
    if let Credential::Cookie(token) = credential {
        let name = cookie_name(&exposed);
        let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Lax");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}
