//! Connections to the daemon.
//!
//! Promised: a bounded number of connections, so that clients without the token cannot exhaust the daemon's file
//! descriptors; an authenticated connection is never closed in favour of an unauthenticated one, and silent clients
//! time out.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::limits::{CONNECTIONS_MAX, HEAD_MS_MAX, LOOK_MS};

struct ClientConnection {
    task: JoinHandle<()>,
    /// It has presented the token.
    is_known: Arc<AtomicBool>,
}

/// Serves forever.
pub(crate) async fn serve(listener: TcpListener, app: Router) {
    // Oldest first.
    let mut open: Vec<ClientConnection> = Vec::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
                continue;
            }
        };
        open.retain(|one| !one.task.is_finished());
        if open.len() >= CONNECTIONS_MAX {
            let stranger = |one: &ClientConnection| !one.is_known.load(Ordering::Relaxed);
            let Some(place) = open.iter().position(stranger) else {
                continue;
            };
            open.remove(place).task.abort();
        }
        let is_known = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(connection(stream, app.clone(), is_known.clone()));
        open.push(ClientConnection { task, is_known });
    }
}

async fn connection(stream: TcpStream, app: Router, is_known: Arc<AtomicBool>) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |request| {
        let (answer, is_known) = (app.call(request), is_known.clone());
        async move {
            let answer = answer.await?;
            if answer.status() != StatusCode::UNAUTHORIZED {
                is_known.store(true, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HEAD_MS_MAX))
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // The client may be gone.
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
