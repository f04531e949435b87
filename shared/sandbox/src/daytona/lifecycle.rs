//! Creating, starting, stopping and deleting: look, ask, look again. What is already so is an outcome.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::HttpError;
use tokio::time::Instant;

use super::client::DaytonaError;
use super::seam::DaytonaSandboxes;
use super::types::{CreateSandbox, Image};
use crate::provider::{self, Observed, SandboxSpec};

/// What is neither in transition nor broken.
const STANDING: [SandboxState; 2] = [SandboxState::Stopped, SandboxState::Running];

impl DaytonaSandboxes {
    pub(super) async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> Observed {
        let settings = &self.settings;
        let kept = spec.snapshot.map(|name| Image::Snapshot(name.to_string()));
        let body = CreateSandbox::new(
            settings.stack(),
            key,
            generation,
            kept.as_ref().unwrap_or(&settings.image),
            &settings.limits,
        )
        .with_secrets(spec.secrets);
        let refused = match self.client.create(&body).await {
            // The answer of a create is the state before it: look.
            Ok(_) => None,
            Err(
                error @ (DaytonaError::NoKey
                | DaytonaError::BadKey
                | DaytonaError::Forbidden { .. }
                | DaytonaError::RateLimited { .. }),
            ) => {
                return Err(error.failure());
            }
            // Nothing was sent, so nothing can be there.
            Err(
                error @ DaytonaError::Http(
                    HttpError::Refused { .. } | HttpError::Transport { unsent: true, .. },
                ),
            ) => {
                return Err(error.failure());
            }
            // A taken name, a lost answer, even a refusal ("failed to start"): the sandbox may be there.
            Err(error) => Some(error),
        };
        match (self.client.get(&body.name).await, refused) {
            (Ok(found), _) => {
                provider::Sandbox::from(found).adopted(self.settings.stack(), key, generation)
            }
            (Err(DaytonaError::NotFound), Some(error)) => Err(match error {
                DaytonaError::Refused { status: 400, .. } if spec.snapshot.is_some() => {
                    self.why_not_of(spec.snapshot, &error).await
                }
                // The name was taken a moment ago and is free again.
                DaytonaError::Conflict { .. } | DaytonaError::NotFound => wait(&error),
                _ => error.failure(),
            }),
            // The read may lag behind the create.
            (Err(DaytonaError::NotFound), None) => Ok(SandboxState::Provisioning),
            (Err(error), _) => Err(error.failure()),
        }
    }

    pub(super) async fn start(&self, name: &str) -> Observed {
        let asked = match self.state(name).await? {
            SandboxState::Stopped => self.client.start(name).await,
            SandboxState::Broken { recoverable: true, .. } => self.client.recover(name).await,
            as_it_is => return Ok(as_it_is),
        };
        self.outcome(name, asked, &STANDING).await
    }

    pub(super) async fn halt(&self, name: &str, latest: Instant) -> Observed {
        match self.state(name).await? {
            SandboxState::Running if Instant::now() >= latest => Err(Failure::Wait {
                after_ms: 0,
                seen: "too little time is left for a stop".to_owned(),
            }),
            SandboxState::Running => {
                let asked = self.client.stop(name).await;
                self.outcome(name, asked, &[SandboxState::Running]).await
            }
            as_it_is => Ok(as_it_is),
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Observed {
        // What it says to the delete counts, and not what it says to a look: one that is not found is asked to go all the same.
        match self.client.get(name).await {
            Ok(found) if found.sandbox_state() == SandboxState::Gone => {
                return Ok(SandboxState::Gone);
            }
            Ok(_) | Err(DaytonaError::NotFound) => {}
            Err(error) => return Err(error.failure()),
        }
        match self.client.delete(name).await {
            Err(DaytonaError::NotFound) => Ok(SandboxState::Gone),
            asked => self.outcome(name, asked, &STANDING).await,
        }
    }

    pub(super) async fn state(&self, name: &str) -> Observed {
        match self.client.get(name).await {
            Ok(found) => Ok(found.sandbox_state()),
            Err(DaytonaError::NotFound) => Ok(SandboxState::Gone),
            Err(error) => Err(error.failure()),
        }
    }

    /// After a call that may have been too late, in transition or lost, the sandbox itself says what is; in one of the states
    /// `from` a refused call has changed nothing.
    async fn outcome(
        &self,
        name: &str,
        asked: Result<(), DaytonaError>,
        from: &[SandboxState],
    ) -> Observed {
        match asked {
            Ok(()) | Err(DaytonaError::NotFound | DaytonaError::Conflict { .. }) => {}
            Err(error @ DaytonaError::Refused { status: 400, .. }) => {
                let seen = self.state(name).await?;
                // Refused where it could be done: a quota, which only a person can mend.
                return if from.contains(&seen) { Err(error.failure()) } else { Ok(seen) };
            }
            Err(error) => return Err(error.failure()),
        }
        self.state(name).await
    }
}

fn wait(error: &DaytonaError) -> Failure {
    Failure::Wait { after_ms: 0, seen: error.to_string() }
}
