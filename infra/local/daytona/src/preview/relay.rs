//! Forwards requests to the server inside, with armed faults.

use std::io;
use std::pin::Pin;
use std::task::{Context as Wake, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bobbin_local_sandbox::relay::{Relayed, pass_on};
use hyper::body::{Frame, Incoming};
use tokio::time::Instant;

use super::access::ExposedPort;
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::init_process::PortConnection;
use crate::limits::{POLL_MS, REPLAY_BYTES_MAX};

/// Forwards a request; twice if that fault is armed.
pub(super) async fn send(
    exposed: &ExposedPort,
    names: &[String],
    request: Request,
    target: u16,
) -> Response {
    let faults = &exposed.engine.faults;
    if request.method() != Method::POST {
        return once(exposed, names, request, target).await;
    }
    let replay = faults.take(names, |fault| matches!(fault, Fault::ReplayPost).then_some(()));
    if replay.is_none() {
        return once(exposed, names, request, target).await;
    }
    let (head, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, REPLAY_BYTES_MAX).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let copy = || Request::from_parts(head.clone(), Body::from(bytes.clone()));
    // The first answer is the one that was cut off.
    let first = once(exposed, names, copy(), target).await;
    drop(axum::body::to_bytes(first.into_body(), usize::MAX).await);
    once(exposed, names, copy(), target).await
}

/// Forwards one request; 502 with an empty body if nobody answers.
async fn once(exposed: &ExposedPort, names: &[String], request: Request, target: u16) -> Response {
    let unreachable = || StatusCode::BAD_GATEWAY.into_response();
    let Ok(stream) = connect(exposed, target).await else {
        return unreachable();
    };
    let relayed = pass_on(stream, request, || OpenConnection::new(exposed)).await;
    let response = match relayed {
        Some(Relayed::Answered(response)) => response,
        Some(Relayed::Upgraded(response)) => return response,
        None => return unreachable(),
    };
    let open = OpenConnection::new(exposed);
    let streamed = response.headers().get(header::CONTENT_LENGTH).is_none();
    let cut = exposed.engine.faults.take(names, |fault| match fault {
        Fault::CutStream { after_bytes } if streamed => Some(*after_bytes),
        _ => None,
    });
    let (head, inner) = response.into_parts();
    Response::from_parts(
        head,
        Body::new(RelayedBody {
            inner,
            left: cut,
            flushed: Box::pin(tokio::time::sleep(Duration::ZERO)),
            _open: open,
        }),
    )
}

/// Connects to the server inside; holds the first process's handle only meanwhile, since dropping the last one ends the
/// sandbox.
async fn connect(exposed: &ExposedPort, target: u16) -> io::Result<Box<dyn PortConnection>> {
    let running = exposed.engine.store.running(&exposed.id);
    let (_, process) = running.map_err(|_| io::ErrorKind::NotConnected)?;
    process.dial(target).await
}

/// Counts an open connection, which is activity.
struct OpenConnection {
    engine: SharedEngine,
    id: String,
}

impl OpenConnection {
    fn new(exposed: &ExposedPort) -> Self {
        if let Some(entry) = exposed.engine.store.lock().sandboxes.get_mut(&exposed.id) {
            entry.open += 1;
        }
        OpenConnection { engine: exposed.engine.clone(), id: exposed.id.clone() }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(entry) = self.engine.store.lock().sandboxes.get_mut(&self.id) {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}

/// A relayed body, cut off after `left` bytes if set.
struct RelayedBody {
    inner: Incoming,
    left: Option<u64>,
    flushed: Pin<Box<tokio::time::Sleep>>,
    _open: OpenConnection,
}

impl HttpBody for RelayedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        wake: &mut Wake<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.left == Some(0) {
            // Forwarded data must reach the other side before the connection breaks.
            std::task::ready!(self.flushed.as_mut().poll(wake));
            return Poll::Ready(Some(Err(axum::Error::new("the stream is cut by an armed fault"))));
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
        self.flushed.as_mut().reset(Instant::now() + Duration::from_millis(POLL_MS));
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
