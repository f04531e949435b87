//! Creating, resuming, stopping and deleting: ask, and what is answered or found says what is. What is already so is an
//! outcome.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::HttpError;
use tokio::time::Instant;

use super::client::VercelError;
use super::seam::VercelSandboxes;
use super::types::{CreateSandbox, Told, session_ms, state_of};
use crate::labels::{LABEL_KEYS, PLACEHOLDERS};
use crate::provider::{self, Observed, SandboxSpec};

impl VercelSandboxes {
    pub(super) async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> Observed {
        let mut body = CreateSandbox::new(&self.made(), key, generation);
        if !spec.secrets.is_empty() {
            body.network_policy = Some(self.policy(spec.secrets)?);
            body.tags.insert(LABEL_KEYS.to_owned(), PLACEHOLDERS.to_owned());
        }
        if let Some(name) = spec.snapshot {
            match self.kept(name).await {
                Ok(Some(id)) => body = body.on_snapshot(&id),
                // It may have been made already, when the snapshot was still there.
                Ok(None) => return self.made_before(&body.name, key, generation, lost()).await,
                Err(error) => return Err(error.failure()),
            }
        }
        match self.client.create(&body).await {
            Ok(told) => {
                self.note_policy(&told, spec.secrets);
                Ok(told.state())
            }
            Err(
                error @ (VercelError::NoKey
                | VercelError::NoProject { .. }
                | VercelError::BadKey
                | VercelError::Forbidden { .. }
                | VercelError::RateLimited { .. }),
            ) => Err(error.failure()),
            // Nothing was sent, so nothing can be there.
            Err(
                error @ VercelError::Http(
                    HttpError::Refused { .. } | HttpError::Transport { unsent: true, .. },
                ),
            ) => Err(error.failure()),
            Err(VercelError::SnapshotGone { .. }) => {
                self.made_before(&body.name, key, generation, lost()).await
            }
            // A taken name, a lost answer, a failure: the sandbox may be there.
            Err(error) => {
                let otherwise = error.failure();
                self.made_before(&body.name, key, generation, otherwise).await
            }
        }
    }

    /// What is there under the name, if it is ours; else what it means that nothing is.
    async fn made_before(
        &self,
        name: &str,
        key: &SandboxKey,
        generation: u32,
        otherwise: Failure,
    ) -> Observed {
        match self.client.get(name).await {
            Ok(found) => {
                provider::Sandbox::from(found).adopted(self.settings.stack(), key, generation)
            }
            Err(VercelError::NotFound) => Err(otherwise),
            Err(error) => Err(error.failure()),
        }
    }

    /// Begins a new session where the last one has ended.
    pub(super) async fn begin_session(&self, name: &str) -> Observed {
        match self.client.resume(name).await {
            Ok(told) => Ok(told.state()),
            // The disk is lost with it, and with the disk all that the sandbox was.
            Err(VercelError::NotFound | VercelError::SnapshotGone { .. }) => Ok(SandboxState::Gone),
            Err(VercelError::InTransition { .. }) => Ok(SandboxState::Busy),
            Err(error) => Err(error.failure()),
        }
    }

    pub(super) async fn end_session(&self, name: &str, latest: Instant) -> Observed {
        let told = match self.client.get(name).await {
            Ok(told) => told,
            Err(VercelError::NotFound) => return Ok(SandboxState::Gone),
            Err(error) => return Err(error.failure()),
        };
        let running = told.session.filter(|session| session.status == "running");
        let Some(session) = running else {
            return Ok(state_of(&told.sandbox.status));
        };
        if Instant::now() >= latest {
            return Err(Failure::Wait {
                after_ms: 0,
                seen: "too little time is left for a stop".to_owned(),
            });
        }
        match self.client.stop(&session.id).await {
            Ok(stopped) => Ok(state_of(&stopped.session.status)),
            // It has ended by itself meanwhile, or somebody else has asked.
            Err(
                VercelError::NotFound
                | VercelError::Stopped { .. }
                | VercelError::InTransition { .. },
            ) => self.state(name).await,
            Err(error) => Err(error.failure()),
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Observed {
        match self.client.delete(name).await {
            Ok(()) => self.state(name).await,
            Err(VercelError::NotFound) => Ok(SandboxState::Gone),
            Err(VercelError::InTransition { .. }) => Ok(SandboxState::Busy),
            Err(error) => Err(error.failure()),
        }
    }

    pub(super) async fn state(&self, name: &str) -> Observed {
        match self.client.get(name).await {
            Ok(told) => Ok(told.state()),
            Err(VercelError::NotFound) => Ok(SandboxState::Gone),
            Err(error) => Err(error.failure()),
        }
    }

    /// Lets the session live on for the time without work, where less is left.
    pub(super) async fn extend(&self, name: &str) -> Result<(), VercelError> {
        let Told { session, .. } = self.client.get(name).await?;
        let Some(session) = session.filter(|session| session.status == "running") else {
            return Ok(());
        };
        let wanted_ms = session_ms(&self.settings.limits);
        let left_ms = session.ends_ms().saturating_sub(now_ms());
        // Not for every minute anew.
        if left_ms >= wanted_ms / 4 * 3 {
            return Ok(());
        }
        match self.client.extend(&session.id, wanted_ms - left_ms).await {
            // Beyond what the plan allows: the session ends when it ends, and its disk is kept.
            Err(VercelError::Refused { message, .. }) => {
                tracing::warn!(
                    event = "vercel.session.last",
                    reason = message,
                    "a sandbox's session cannot be extended any further"
                );
                Ok(())
            }
            other => other,
        }
    }
}

/// The time of this machine, in milliseconds since 1970: a clock that is off by seconds makes no difference here.
fn now_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(Ms::MAX))
}

fn lost() -> Failure {
    Failure::TurnFailed {
        reason: "The snapshot that the sandbox was to begin with is not there any more. Choose another snapshot, or make the sandbox without one."
            .to_owned(),
    }
}
