//! HTTP access to an agent: a listener on this program's loopback for each sandbox, and a channel for each connection.
//!
//! An HTTP client cannot use an existing stream, and one that could would have to be chosen by every caller that talks
//! to an agent. A listener is an address like any provider's, costs a copy in memory, and outlives the connection to
//! the host: the next request opens a new one. Every process on this machine can connect to it, as to the agent's port
//! on its host: the agent's password is the protection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::ChannelStream;
use russh::client::Msg;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::bounds::{BYTES_MAX, FORWARDS_MAX, SCRIPT_MS_MAX, STREAM_MS_MAX, STREAMS_MAX};
use super::connection::Connection;
use super::error::SshError;

use super::hosts::Hosts;
use super::listener::is_answered_by;
use super::slot::{ROOT, Slot};

/// The open listeners, by sandbox.
#[derive(Debug, Default)]
pub(super) struct Forwards {
    open: Mutex<HashMap<Slot, PortForward>>,
}

#[derive(Debug)]
struct PortForward {
    port: u16,
    used: Instant,
    task: JoinHandle<()>,
}

impl Drop for PortForward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forwards {
    /// The local port that leads to the agent of this sandbox.
    ///
    /// # Errors
    /// [`SshError::Busy`] if this machine has no free port.
    pub(super) async fn port(
        &self,
        hosts: &Arc<Hosts>,
        user: &str,
        slot: &Slot,
    ) -> Result<u16, SshError> {
        if let Some(known) = self.known(slot) {
            return Ok(known);
        }
        let no_port = |error: std::io::Error| SshError::Busy {
            what: format!("this machine has no free port for a sandbox: {error}"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(no_port)?;
        let port = listener.local_addr().map_err(no_port)?.port();
        let far =
            Arc::new(Far { hosts: Arc::clone(hosts), user: user.to_owned(), slot: slot.clone() });
        let task = tokio::spawn(serve(listener, far));
        let forward = PortForward { port, used: Instant::now(), task };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Another task may have opened one meanwhile.
        if let Some(known) = open.get(slot) {
            return Ok(known.port);
        }
        if open.len() >= FORWARDS_MAX
            && let Some(oldest) = open.iter().min_by_key(|(_, one)| one.used)
        {
            let oldest = oldest.0.clone();
            open.remove(&oldest);
        }
        open.insert(slot.clone(), forward);
        Ok(port)
    }

    fn known(&self, slot: &Slot) -> Option<u16> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get_mut(slot).filter(|one| !one.task.is_finished())?;
        known.used = Instant::now();
        Some(known.port)
    }

    /// Closes the listener of a sandbox that is stopped or gone.
    pub(super) fn close(&self, slot: &Slot) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(slot);
    }
}

/// The far end of a listener's connections.
struct Far {
    hosts: Arc<Hosts>,
    user: String,
    slot: Slot,
}

async fn serve(listener: TcpListener, far: Arc<Far>) {
    let streams = Arc::new(Semaphore::new(STREAMS_MAX));
    // They end with the listener.
    let mut running = tokio::task::JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&streams).acquire_owned().await else {
            return;
        };
        let Ok((near, _)) = listener.accept().await else {
            return;
        };
        let far = Arc::clone(&far);
        running.spawn(async move {
            let life = Duration::from_millis(STREAM_MS_MAX);
            match timeout(life, far.carry(near)).await {
                Ok(Ok(())) | Err(_) => {}
                // The client sees its connection close.
                Ok(Err(error)) => {
                    tracing::info!(event = "ssh.stream", error = %error, "a connection to an agent on an SSH host failed");
                }
            }
            drop(permit);
        });
    }
}

impl Far {
    async fn carry(&self, mut near: TcpStream) -> Result<(), SshError> {
        // Held until the end: a stream ends with its connection.
        let (_connection, mut stream) = self.stream().await?;
        self.check().await?;
        let _ = near.set_nodelay(true);
        // If either end breaks off, both end.
        let _ = copy_bidirectional(&mut near, &mut stream).await;
        Ok(())
    }

    async fn stream(&self) -> Result<(Arc<Connection>, ChannelStream<Msg>), SshError> {
        let (host, port) = (self.slot.host, self.slot.port);
        let connection = self.hosts.connection(host, &self.user).await?;
        match connection.stream(port).await {
            Ok(stream) => Ok((connection, stream)),
            Err(error) if error.is_unsent() => {
                self.hosts.forget(host, &self.user, &connection).await;
                let fresh = self.hosts.connection(host, &self.user).await?;
                let stream = fresh.stream(port).await?;
                Ok((fresh, stream))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that this sandbox's own process answers. The stream is already established, so its far end is in the
    /// list.
    async fn check(&self) -> Result<(), SshError> {
        let Slot { host, number, name, .. } = &self.slot;
        let disk = format!("{ROOT}/{number}/disk");
        let look = format!(
            "if [ -e {disk}/.stopped ] || [ ! -d {disk}/{name} ]; then exit 97; fi; id -u; cat /proc/net/tcp; cat /proc/net/tcp6 2>/dev/null; exit 0"
        );
        let bounds = (Duration::from_millis(SCRIPT_MS_MAX), BYTES_MAX);
        let at = (*host, self.user.as_str());
        let ran = self.hosts.run(at, &look, Vec::new(), bounds).await?;
        if ran.code != Some(0) {
            return Err(SshError::NotRunning);
        }
        let printed = String::from_utf8_lossy(&ran.out);
        let (user, list) = printed.split_once('\n').unwrap_or_default();
        match user.trim().parse() {
            Ok(user) if is_answered_by(list, self.slot.port, user) => Ok(()),
            _ => Err(SshError::Unreachable {
                host: self.hosts.all()[*host].name.clone(),
                what: "another user's process answers at the port of the sandbox's agent"
                    .to_owned(),
                unsent: true,
            }),
        }
    }
}
