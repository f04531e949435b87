//! Forwarding of a request to a server inside a sandbox.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use crate::init_process::PortConnection;

/// Result of a forwarded request.
pub enum Relayed {
    /// An answer; its body follows.
    Answered(Response<Incoming>),
    /// The answer to an upgrade; bytes now flow in both directions.
    Upgraded(Response),
}

/// Forwards a request over a connection to the server inside; `None` if nobody answers. `held` is dropped when an
/// upgraded connection ends.
pub async fn pass_on<T: Send + 'static>(
    stream: Box<dyn PortConnection>,
    mut request: Request,
    held: impl FnOnce() -> T,
) -> Option<Relayed> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.ok()?;
    tokio::spawn(connection.with_upgrades());
    let upgrade =
        request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let mut response = sender.send_request(request).await.ok()?;
    let (StatusCode::SWITCHING_PROTOCOLS, Some(outer)) = (response.status(), upgrade) else {
        return Some(Relayed::Answered(response));
    };
    let inner = hyper::upgrade::on(&mut response);
    let held = held();
    tokio::spawn(async move {
        if let (Ok(outer), Ok(inner)) = tokio::join!(outer, inner) {
            let (mut outer, mut inner) = (TokioIo::new(outer), TokioIo::new(inner));
            // Either side may hang up.
            let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
        }
        drop(held);
    });
    Some(Relayed::Upgraded(response.map(|_| Body::empty())))
}
