//! All sessions of a daemon, by their clients' ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::driver::SharedServers;
use crate::host::Host;
use crate::limits::SESSIONS_MAX;
use crate::names::session_of;
use crate::session::{SessionError, SessionHandle};
use crate::state::SessionParameters;

/// Why a session was not created.
#[derive(Debug)]
pub(crate) enum NotCreated {
    Exists,
    TooMany,
    Session(SessionError),
}

#[derive(Debug)]
pub(crate) struct Sessions {
    host: Arc<Host>,
    shared: Arc<SharedServers>,
    open: Mutex<BTreeMap<String, SessionHandle>>,
}

impl Sessions {
    /// Opens every existing session.
    ///
    /// # Errors
    /// The folder of sessions cannot be read. A session with an unreadable log is skipped and logged.
    pub(crate) async fn open(host: Arc<Host>, shared: Arc<SharedServers>) -> std::io::Result<Self> {
        let mut open = BTreeMap::new();
        let mut entries = tokio::fs::read_dir(host.state_dir.join("sessions")).await?;
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(session_of) else {
                continue;
            };
            match SessionHandle::open(&id, &entry.path(), host.clone(), shared.clone()).await {
                Ok(session) if session.state().await.created.is_some() => {
                    open.insert(id, session);
                }
                // Its creation was interrupted before anybody was told of it.
                Ok(_) => {}
                Err(error) => tracing::error!(session = id, %error, "a session cannot be opened"),
            }
        }
        Ok(Self { host, shared, open: Mutex::new(open) })
    }

    pub(crate) async fn get(&self, id: &str) -> Option<SessionHandle> {
        self.open.lock().await.get(id).cloned()
    }

    /// In the order of their ids.
    pub(crate) async fn all(&self) -> Vec<SessionHandle> {
        self.open.lock().await.values().cloned().collect()
    }

    /// Creates a session; of two concurrent requests with one id, one is told that it exists.
    pub(crate) async fn create(
        &self,
        id: &str,
        created: SessionParameters,
    ) -> Result<SessionHandle, NotCreated> {
        let mut open = self.open.lock().await;
        if open.contains_key(id) {
            return Err(NotCreated::Exists);
        }
        if open.len() >= SESSIONS_MAX {
            return Err(NotCreated::TooMany);
        }
        let path = self.host.log_of(id);
        let session = SessionHandle::open(id, &path, self.host.clone(), self.shared.clone());
        let session = session.await.map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull => NotCreated::Session(SessionError::Full),
            _ => NotCreated::Session(SessionError::Broken(error.to_string())),
        })?;
        session.create(created).await.map_err(NotCreated::Session)?;
        open.insert(id.to_owned(), session.clone());
        Ok(session)
    }
}
