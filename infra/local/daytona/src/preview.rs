//! Previews: one loopback listener for each exposed port of a sandbox, which checks the token and forwards.
//!
//! Bytes flow as they come, in both directions, so that event streams and upgrades work. A request is forwarded
//! once, unless the replay fault is armed.

use std::io;
use std::pin::Pin;
use std::task::{Context as Wake, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use bobbin_local_breakpoint::{KEY_COOKIE, has_own_host};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::{has_key, runner_info};
use crate::clock;
use crate::fail::Fail;
use crate::faults::Fault;
use crate::guest::Connection;
use crate::limits::{POLL_MS, PREVIEWS_MAX, REPLAY_BYTES_MAX};
use crate::record::Record;
use crate::serve;
use crate::shared::Context;
use crate::toolbox::SKIP_ACTIVITY;

/// The header that carries the token; it is not passed on.
const TOKEN: &str = "x-daytona-preview-token";
/// The query parameter, and the cookie, that carry it for people.
pub(crate) const QUERY_TOKEN: &str = "DAYTONA_SANDBOX_AUTH_KEY";

/// A listener that ends when it is dropped.
pub(crate) struct Listener {
    port: u16,
    _end: DropGuard,
}

/// The port of this machine that stands for a port of the sandbox.
pub(crate) fn real_port(record: &Record, port: u16) -> u16 {
    if port == 4096 { record.port } else { port }
}

/// The address of the listener for this port of the sandbox, which is made if it is not there.
pub(crate) async fn url(shared: &Context, id: &str, port: u16) -> Result<String, Fail> {
    let present = {
        let inner = shared.store.lock();
        let entry = inner
            .sandboxes
            .get(id)
            .ok_or_else(|| Fail::no_sandbox(id))?;
        if entry.previews.len() >= PREVIEWS_MAX && !entry.previews.contains_key(&port) {
            return Err(Fail::bad(format!(
                "more than {PREVIEWS_MAX} ports of one sandbox are exposed"
            )));
        }
        entry.previews.get(&port).map(|listener| listener.port)
    };
    let local = match present {
        Some(local) => local,
        None => listen(shared, id, port).await?,
    };
    Ok(format!("http://127.0.0.1:{local}"))
}

async fn listen(shared: &Context, id: &str, port: u16) -> Result<u16, Fail> {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(Fail::internal)?;
    let local = listener.local_addr().map_err(Fail::internal)?.port();
    let also = serve::also_on(shared.also_on, local)
        .await
        .map_err(Fail::internal)?;
    let end: CancellationToken = shared.stopping.child_token();
    let router = Router::new().fallback(forward).with_state(Exposed {
        shared: shared.clone(),
        id: id.to_owned(),
        port,
    });
    let router = shared.breakpoints.before("agent", serve::peer, router);
    for listener in [Some(listener), also].into_iter().flatten() {
        shared
            .tasks
            .spawn(serve::run(listener, router.clone(), end.clone()));
    }
    let made = Listener {
        port: local,
        _end: end.drop_guard(),
    };
    // Two calls at once: the first listener stays, the second ends here.
    let kept = shared
        .store
        .change(id, |entry| entry.previews.entry(port).or_insert(made).port);
    kept.ok_or_else(|| Fail::no_sandbox(id))
}

#[derive(Clone)]
struct Exposed {
    shared: Context,
    id: String,
    port: u16,
}

async fn forward(State(exposed): State<Exposed>, mut request: Request) -> Response {
    let Exposed { shared, id, port } = &exposed;
    if !has_own_host(request.headers(), shared.also_named.as_deref()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let words = |fail: &Fail| proxy_words(fail, &path, &method);
    let names = shared.names(id);
    let stale = shared.faults.take(&names, |fault| {
        matches!(fault, Fault::RunnerInfo).then_some(())
    });
    if stale.is_some() {
        return words(&runner_info(&names));
    }
    let Some(pass) = admitted(&exposed, request.headers(), request.uri()) else {
        let login = format!("http://127.0.0.1:{}/login?redirect_uri={path}", shared.port);
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, login)]).into_response();
    };
    let target = {
        let inner = shared.store.lock();
        match inner.sandboxes.get(id) {
            None => Err(Fail::new(
                404,
                format!("not found: sandbox container not found: {id}"),
            )),
            Some(entry) if entry.guest.is_none() => Err(Fail::not_started(id)),
            Some(entry) => Ok(real_port(&entry.record, *port)),
        }
    };
    let target = match target {
        Ok(target) => target,
        Err(fail) => return words(&fail),
    };
    if !request.headers().contains_key(SKIP_ACTIVITY) {
        shared.touch(id);
    }
    clean(&mut request, target, &pass);
    let mut response = send(&exposed, &names, request, target).await;
    if let Pass::Cookie(token) = pass {
        let cookie = format!("{QUERY_TOKEN}={token}; Path=/; HttpOnly; SameSite=Lax");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// The proxy's own answers, in the toolbox's shape.
fn proxy_words(fail: &Fail, path: &str, method: &Method) -> Response {
    let body = json!({
        "statusCode": fail.status.as_u16(), "source": "DAYTONA_PROXY", "code": fail.code, "message": fail.message,
        "timestamp": clock::iso(clock::system_ms()), "path": path, "method": method.as_str(),
    });
    (fail.status, axum::Json(body)).into_response()
}

/// By what a request got in.
enum Pass {
    /// The API key, which is taken off.
    Key,
    /// The token's header or cookie.
    Token,
    /// The query; a cookie keeps a browser in.
    Cookie(String),
}

fn admitted(exposed: &Exposed, headers: &HeaderMap, uri: &Uri) -> Option<Pass> {
    let Exposed { shared, id, port } = exposed;
    if has_key(shared, headers) {
        return Some(Pass::Key);
    }
    let now = shared.clock.now_ms();
    let inner = shared.store.lock();
    // A sandbox that is lost has no token; its listener is about to end.
    let entry = inner.sandboxes.get(id)?;
    let valid = |token: &str| match &entry.stale_token {
        Some((old, until)) if clock::system_ms() < *until => token == old,
        _ => {
            let signed = entry
                .signed
                .get(token)
                .is_some_and(|(of, until)| of == port && now < *until);
            token == entry.record.token || signed
        }
    };
    if let Some(token) = headers.get(TOKEN).and_then(|value| value.to_str().ok()) {
        return valid(token).then_some(Pass::Token);
    }
    let query = uri.query().unwrap_or_default().split('&');
    if let Some(token) = query
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == QUERY_TOKEN)
    {
        return valid(token.1).then(|| Pass::Cookie(token.1.to_owned()));
    }
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let found = cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = found.filter(|(name, _)| *name == QUERY_TOKEN);
    (entry.record.public || tokens.any(|(_, token)| valid(token))).then_some(Pass::Token)
}

/// What the server inside sees: its own host, the outer one beside it, and none of our credentials.
fn clean(request: &mut Request, target: u16, pass: &Pass) {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |whole| whole.as_str());
    let path = match pass {
        Pass::Cookie(_) => without_token(path),
        _ => path.to_owned(),
    };
    *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.remove(TOKEN);
    forget_keys(headers);
    if matches!(pass, Pass::Key) {
        headers.remove(header::AUTHORIZATION);
    }
    if let Some(host) = headers.remove(header::HOST) {
        headers.insert("x-forwarded-host", host);
    }
    if let Ok(host) = HeaderValue::from_str(&format!("localhost:{target}")) {
        headers.insert(header::HOST, host);
    }
    if !headers.contains_key(header::UPGRADE) {
        headers.remove(header::CONNECTION);
    }
}

/// Takes out the cookies by which a browser says the keys of stacks on this machine: it sends them to every port.
fn forget_keys(headers: &mut HeaderMap) {
    let lines: Vec<HeaderValue> = headers.get_all(header::COOKIE).iter().cloned().collect();
    headers.remove(header::COOKIE);
    for line in lines.iter().filter_map(|line| line.to_str().ok()) {
        let pairs = line.split(';').map(str::trim);
        let kept: Vec<&str> = pairs.filter(|pair| !pair.starts_with(KEY_COOKIE)).collect();
        if let Ok(line) = HeaderValue::from_str(&kept.join("; "))
            && !line.is_empty()
        {
            headers.append(header::COOKIE, line);
        }
    }
}

fn without_token(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.starts_with(QUERY_TOKEN))
        .collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

/// Connects to a port of this machine that stands for one of the sandbox.
///
/// # Errors
/// That nobody listens there, or that the sandbox has ended.
pub(crate) async fn dial(shared: &Context, id: &str, real: u16) -> io::Result<Box<dyn Connection>> {
    // Held for the connecting alone: the last handle's end is the sandbox's.
    let guest = {
        let inner = shared.store.lock();
        inner
            .sandboxes
            .get(id)
            .and_then(|entry| entry.guest.clone())
    };
    guest.ok_or(io::ErrorKind::NotConnected)?.dial(real).await
}

async fn send(exposed: &Exposed, names: &[String], request: Request, target: u16) -> Response {
    let faults = &exposed.shared.faults;
    if request.method() != Method::POST {
        return once(exposed, names, request, target).await;
    }
    let replay = faults.take(names, |fault| {
        matches!(fault, Fault::ReplayPost).then_some(())
    });
    if replay.is_none() {
        return once(exposed, names, request, target).await;
    }
    let (head, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, REPLAY_BYTES_MAX).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let copy = || Request::from_parts(head.clone(), Body::from(bytes.clone()));
    // The first answer is the one that broke off.
    let first = once(exposed, names, copy(), target).await;
    drop(axum::body::to_bytes(first.into_body(), usize::MAX).await);
    once(exposed, names, copy(), target).await
}

/// Forwards one request; 502 with an empty body when nobody answers.
async fn once(exposed: &Exposed, names: &[String], mut request: Request, target: u16) -> Response {
    let unreachable = || StatusCode::BAD_GATEWAY.into_response();
    let Ok(stream) = dial(&exposed.shared, &exposed.id, target).await else {
        return unreachable();
    };
    let Ok((mut sender, connection)) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await
    else {
        return unreachable();
    };
    tokio::spawn(connection.with_upgrades());
    let upgrade = request
        .headers()
        .contains_key(header::UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let Ok(mut response) = sender.send_request(request).await else {
        return unreachable();
    };
    let open = Open::new(exposed);
    if let (StatusCode::SWITCHING_PROTOCOLS, Some(outer)) = (response.status(), upgrade) {
        let inner = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            if let (Ok(outer), Ok(inner)) = tokio::join!(outer, inner) {
                let (mut outer, mut inner) = (TokioIo::new(outer), TokioIo::new(inner));
                // Either side may hang up.
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
            drop(open);
        });
        return response.map(|_| Body::empty());
    }
    let streamed = response.headers().get(header::CONTENT_LENGTH).is_none();
    let cut = exposed.shared.faults.take(names, |fault| match fault {
        Fault::CutStream { after_bytes } if streamed => Some(*after_bytes),
        _ => None,
    });
    let (head, inner) = response.into_parts();
    Response::from_parts(
        head,
        Body::new(Passing {
            inner,
            left: cut,
            flushed: Box::pin(tokio::time::sleep(Duration::ZERO)),
            _open: open,
        }),
    )
}

/// Counts a connection as open, which is activity, for as long as it lives.
struct Open {
    shared: Context,
    id: String,
}

impl Open {
    fn new(exposed: &Exposed) -> Self {
        if let Some(entry) = exposed.shared.store.lock().sandboxes.get_mut(&exposed.id) {
            entry.open += 1;
        }
        Open {
            shared: exposed.shared.clone(),
            id: exposed.id.clone(),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(entry) = self.shared.store.lock().sandboxes.get_mut(&self.id) {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}

/// A body on its way through, which breaks off after `left` bytes when that is set.
struct Passing {
    inner: Incoming,
    left: Option<u64>,
    flushed: Pin<Box<tokio::time::Sleep>>,
    _open: Open,
}

impl HttpBody for Passing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        wake: &mut Wake<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.left == Some(0) {
            // What was passed on must reach the other side before the connection breaks.
            std::task::ready!(self.flushed.as_mut().poll(wake));
            return Poll::Ready(Some(Err(axum::Error::new(
                "the stream is cut by an armed fault",
            ))));
        }
        let frame = match std::task::ready!(Pin::new(&mut self.inner).poll_frame(wake)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other.map(|result| result.map_err(axum::Error::new))),
        };
        let Some(left) = self.left else {
            return Poll::Ready(Some(Ok(frame)));
        };
        let mut bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
        };
        bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.left = Some(left - bytes.len() as u64);
        self.flushed
            .as_mut()
            .reset(Instant::now() + Duration::from_millis(POLL_MS));
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
