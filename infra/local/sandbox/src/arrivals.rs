//! Connections into a sandbox that has a network of its own: its first process makes them when it is asked to.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rand::Rng as _;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// What stands in the place of a port before a connection to a port inside: nobody connects to this one.
pub(crate) const ARRIVAL: u16 = 0;

/// Connections to ports inside that were asked for and have not come yet, by their tickets.
#[derive(Default)]
pub(crate) struct Arrivals(Mutex<BTreeMap<u64, oneshot::Sender<UnixStream>>>);

impl Arrivals {
    /// One that is asked for from now on, until the answer is dropped.
    pub(crate) fn expect(self: &Arc<Self>) -> Arrival {
        let (sender, stream) = oneshot::channel();
        let ticket = rand::rng().random();
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.insert(ticket, sender);
        Arrival { ticket, stream, of: Arc::clone(self) }
    }

    /// Hands a connection that came to who asked for it; others are closed.
    pub(crate) async fn take_in(&self, mut stream: UnixStream) {
        let Ok(ticket) = stream.read_u64().await else {
            return;
        };
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = expected.remove(&ticket) {
            // Whoever asked may have gone away.
            let _ = asked.send(stream);
        }
    }
}

/// A connection that is asked for.
pub(crate) struct Arrival {
    /// What the sandbox's first process begins it with.
    pub(crate) ticket: u64,
    stream: oneshot::Receiver<UnixStream>,
    of: Arc<Arrivals>,
}

impl Arrival {
    /// Waits for it.
    ///
    /// # Errors
    /// That the sandbox has ended.
    pub(crate) async fn come(mut self) -> io::Result<UnixStream> {
        let came = (&mut self.stream).await;
        came.map_err(|_| io::ErrorKind::ConnectionRefused.into())
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut expected = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.remove(&self.ticket);
    }
}
