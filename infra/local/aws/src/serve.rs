//! HTTP on a listener. All connections end with it, so that none holds the state folder afterwards.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::limits;

/// Serves until `stopping`. Requests in flight then get [`limits::STOP_MS_MAX`] to finish, and are cut off after that.
pub(crate) async fn serve(listener: TcpListener, router: Router, stopping: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(converse(stream, peer, router.clone(), stopping.clone()));
                }
                // For example too many open files: it passes when some are closed.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = stopping.cancelled() => break,
        }
    }
    drop((listener, router));
    let grace = Duration::from_millis(limits::STOP_MS_MAX);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    stopping: CancellationToken,
) {
    let service = TowerToHyperService::new(router.layer(Extension(ConnectInfo(peer))));
    let mut connection =
        pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // A client that disconnects is not the engine's error.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}
