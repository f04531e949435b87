//! Connections to a sandbox with its own network: its first process makes them on request.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rand::Rng as _;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// Sent in place of a port in front of a connection to a port inside; nobody connects to port 0.
pub(crate) const ARRIVAL: u16 = 0;

/// Requested connections to ports inside that have not arrived yet, by ticket.
#[derive(Default)]
pub(crate) struct Arrivals(Mutex<BTreeMap<u64, oneshot::Sender<UnixStream>>>);

impl Arrivals {
    /// Expects a connection until the returned value is dropped.
    pub(crate) fn expect(self: &Arc<Self>) -> ArrivingConnection {
        let (sender, stream) = oneshot::channel();
        let ticket = rand::rng().random();
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.insert(ticket, sender);
        ArrivingConnection { ticket, stream, of: Arc::clone(self) }
    }

    /// Passes an arriving connection to its requester; closes unexpected ones.
    pub(crate) async fn take_in(&self, mut stream: UnixStream) {
        let Ok(ticket) = stream.read_u64().await else {
            return;
        };
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = expected.remove(&ticket) {
            // The requester may be gone.
            let _ = asked.send(stream);
        }
    }
}

/// A requested connection.
pub(crate) struct ArrivingConnection {
    /// Sent first on the connection by the sandbox's first process.
    pub(crate) ticket: u64,
    stream: oneshot::Receiver<UnixStream>,
    of: Arc<Arrivals>,
}

impl ArrivingConnection {
    /// Waits for it to arrive.
    ///
    /// # Errors
    /// The sandbox has ended.
    pub(crate) async fn come(mut self) -> io::Result<UnixStream> {
        let came = (&mut self.stream).await;
        came.map_err(|_| io::ErrorKind::ConnectionRefused.into())
    }
}

impl Drop for ArrivingConnection {
    fn drop(&mut self) {
        let mut expected = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.remove(&self.ticket);
    }
}
