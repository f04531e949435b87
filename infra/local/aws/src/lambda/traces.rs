//! The trace daemon that Lambda runs beside a traced function: receives segment documents as datagrams, and keeps the
//! latest for tests.
//!
//! Deliberately absent: sampling (every invocation is traced), the service behind the daemon, and Lambda's own
//! segments.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits;

/// The daemon's address and its received documents, newest last.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    pub(crate) address: SocketAddr,
    segments: Arc<Mutex<VecDeque<Value>>>,
}

impl Traces {
    /// Listens on a free loopback port until the engine stops.
    pub(crate) async fn start(
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let traces = Self { address: socket.local_addr()?, segments: Arc::default() };
        let (receiver, stopping) = (traces.clone(), stopping.clone());
        tasks.spawn(async move {
            let mut datagram = vec![0; limits::SEGMENT_BYTES_MAX];
            loop {
                tokio::select! {
                    () = stopping.cancelled() => break,
                    taken = socket.recv(&mut datagram) => if let Ok(length) = taken {
                        receiver.take(&datagram[..length]);
                    },
                }
            }
        });
        Ok(traces)
    }

    /// Drops anything that is not a header and a document, as the daemon does.
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
            let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
            if segments.len() == limits::SEGMENTS_MAX {
                segments.pop_front();
            }
            segments.push_back(document);
        }
    }

    /// The kept documents, oldest first.
    pub(crate) fn segments(&self) -> Vec<Value> {
        let segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.iter().cloned().collect()
    }
}

/// A new trace header, sampled.
pub(crate) fn header(now_ms: i64) -> String {
    let seconds = now_ms / 1000;
    let [unique, parent] = [(); 2].map(|()| uuid::Uuid::new_v4().simple().to_string());
    let (unique, parent) = (&unique[..24], &parent[..16]);
    format!("Root=1-{seconds:08x}-{unique};Parent={parent};Sampled=1")
}
