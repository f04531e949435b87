//! The daemon that Lambda runs beside a traced function: it takes segment documents as datagrams, and keeps the last of
//! them for whoever looks.
//!
//! Deliberately absent: sampling (every invocation is traced), the service behind the daemon, its segments of Lambda's
//! own.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits;

/// The documents that were taken, newest last.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    pub(crate) address: SocketAddr,
    kept: Arc<Mutex<VecDeque<Value>>>,
}

impl Traces {
    /// Listens on a free port of loopback until the engine stops.
    pub(crate) async fn start(
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let traces = Self {
            address: socket.local_addr()?,
            kept: Arc::default(),
        };
        let (taking, stopping) = (traces.clone(), stopping.clone());
        tasks.spawn(async move {
            let mut datagram = vec![0; limits::SEGMENT_BYTES_MAX];
            loop {
                tokio::select! {
                    () = stopping.cancelled() => break,
                    taken = socket.recv(&mut datagram) => if let Ok(length) = taken {
                        taking.take(&datagram[..length]);
                    },
                }
            }
        });
        Ok(traces)
    }

    /// What is no document behind a header is dropped, as the daemon does.
    fn take(&self, datagram: &[u8]) {
        let mut parts = datagram.splitn(2, |byte| *byte == b'\n');
        let (Some(header), Some(document)) = (parts.next(), parts.next()) else {
            return;
        };
        let header: Value = serde_json::from_slice(header).unwrap_or_default();
        if header["format"] != "json" || header["version"] != 1 {
            return;
        }
        if let Ok(document) = serde_json::from_slice(document) {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == limits::SEGMENTS_KEPT_MAX {
                kept.pop_front();
            }
            kept.push_back(document);
        }
    }

    /// The documents.
    pub(crate) fn kept(&self) -> Vec<Value> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect()
    }
}

/// The header of a new trace, sampled.
pub(crate) fn header(now_ms: i64) -> String {
    let seconds = now_ms / 1000;
    let [unique, parent] = [(); 2].map(|()| uuid::Uuid::new_v4().simple().to_string());
    let (unique, parent) = (&unique[..24], &parent[..16]);
    format!("Root=1-{seconds:08x}-{unique};Parent={parent};Sampled=1")
}
