//! The hosts with their open connections: one per user, opened on demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use russh::keys::{PrivateKey, decode_secret_key};

use super::bounds::CONNECTIONS_MAX;
use super::connection::{Connection, Ran};
use super::error::SshError;
use super::settings::{SshHost, checked};

/// A place for one connection; the task that finds it empty connects while others wait.
type SharedConnection = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// The hosts of a stack.
pub(super) struct Hosts {
    hosts: Vec<SshHost>,
    key: Result<Arc<PrivateKey>, SshError>,
    places: Mutex<HashMap<(usize, String), SharedConnection>>,
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.hosts.iter().map(|host| &host.name)).finish()
    }
}

impl Hosts {
    /// Uses this private key; without one every call reports that it is missing.
    ///
    /// # Errors
    /// [`SshError::Settings`].
    pub(super) fn new(hosts: Vec<SshHost>, private_key: &str) -> Result<Self, SshError> {
        checked(&hosts).map_err(|what| SshError::Settings { what })?;
        Ok(Self { hosts, key: read_key(private_key), places: Mutex::default() })
    }

    /// All hosts, in the order of the settings.
    pub(super) fn all(&self) -> &[SshHost] {
        &self.hosts
    }

    /// Runs a command as a user of a host. If the connection turns out to be broken before anything was sent, a new one
    /// is opened.
    ///
    /// # Errors
    /// [`SshError`].
    pub(super) async fn run(
        &self,
        (host, user): (usize, &str),
        command: &str,
        input: Vec<u8>,
        (time, bytes_max): (Duration, usize),
    ) -> Result<Ran, SshError> {
        let connection = self.connection(host, user).await?;
        match connection.run(command, input.clone(), time, bytes_max).await {
            Err(error) if error.is_unsent() => {
                self.forget(host, user, &connection).await;
                let fresh = self.connection(host, user).await?;
                fresh.run(command, input, time, bytes_max).await
            }
            ran => ran,
        }
    }

    /// A connection to a host as a user.
    ///
    /// # Errors
    /// [`SshError`].
    pub(super) async fn connection(
        &self,
        host: usize,
        user: &str,
    ) -> Result<Arc<Connection>, SshError> {
        let key = self.key.as_ref().map_err(Clone::clone)?;
        let place = self.place(host, user);
        let mut place = place.lock().await;
        if let Some(known) = place.as_ref().filter(|known| !known.is_closed()) {
            return Ok(Arc::clone(known));
        }
        let opened = Arc::new(Connection::open(&self.hosts[host], user, key).await?);
        *place = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Drops a connection, so that the next call to this user of a host connects anew.
    pub(super) async fn forget(&self, host: usize, user: &str, broken: &Arc<Connection>) {
        let place = self.place(host, user);
        let mut place = place.lock().await;
        if place.as_ref().is_some_and(|at| Arc::ptr_eq(at, broken)) {
            *place = None;
        }
    }

    fn place(&self, host: usize, user: &str) -> SharedConnection {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host, user.to_owned());
        if !places.contains_key(&key) && places.len() >= CONNECTIONS_MAX {
            // Connections that are awaited or in use are held by their users and live on.
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(key).or_default())
    }
}

fn read_key(private_key: &str) -> Result<Arc<PrivateKey>, SshError> {
    if private_key.trim().is_empty() {
        return Err(SshError::NoKey);
    }
    let lines = in_lines(private_key);
    let key = decode_secret_key(&lines, None)
        .map_err(|error| SshError::BadKey { why: error.to_string() })?;
    Ok(Arc::new(key))
}

/// A key has several lines; where only one line could be entered, it may be stored as base64 of the whole file.
fn in_lines(private_key: &str) -> String {
    let whole = private_key.trim();
    let decoded = base64::engine::general_purpose::STANDARD.decode(whole).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_else(|| whole.to_owned())
}
