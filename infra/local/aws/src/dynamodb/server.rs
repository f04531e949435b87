//! dynoxide on loopback ports, and the removal of expired items.

use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::DynamoError;
use crate::limits;

/// Serves tables until `stopping`; returns their address.
pub(super) async fn serve(
    database: Database,
    tasks: &TaskTracker,
    stopping: &CancellationToken,
) -> Result<String, DynamoError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?.to_string();
    let stopping = stopping.clone();
    tasks.spawn(async move {
        let grace = {
            let stopping = stopping.clone();
            async move {
                stopping.cancelled().await;
                tokio::time::sleep(Duration::from_millis(limits::STOP_MS_MAX)).await;
            }
        };
        let serving =
            dynoxide::server::serve_with_shutdown(listener, database, stopping.cancelled_owned());
        tokio::select! {
            _ = serving => {}
            () = grace => {}
        }
    });
    Ok(address)
}

/// Removes expired items at an interval until `stopping`.
pub(super) async fn remove_expired(database: Database, stopping: CancellationToken) {
    let pause = Duration::from_millis(limits::TTL_SWEEP_INTERVAL_MS);
    let database = Arc::new(database);
    while stopping.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        let database = Arc::clone(&database);
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "expired items could not be removed");
        }
    }
}
