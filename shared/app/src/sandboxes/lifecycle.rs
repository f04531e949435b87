//! Creating, starting, stopping and deleting: look, ask, look again. What is already so is an outcome.

use std::time::Duration;

use bobbin_core::event::{Coarse, Event};
use bobbin_core::failure::Failure;
use bobbin_core::ids::ThreadKey;
use bobbin_http::HttpError;
use bobbin_sandbox::daytona::DaytonaError;
use bobbin_sandbox::daytona::{CreateSandbox, Sandbox};
use tokio::time::{Instant, sleep_until};

use super::{Beside, Sandboxes};

/// Looks at a sandbox within the time after which it shall be looked at, and the shortest time between two of them.
const LOOKS_WITHIN: u64 = 5;
const LOOK_MS_MIN: u64 = 50;

type Done = Result<Event, Failure>;

impl Sandboxes {
    pub(super) async fn count(&self, thread: &ThreadKey, older_than: Option<u32>) -> Done {
        let tenant = thread.tenant();
        let listed = self.daytona.of_tenant(self.settings.of_stack(), &tenant);
        let listed = listed.await.map_err(|e| e.failure())?;
        let own = older_than.map(|generation| self.name(thread, generation));
        let sandboxes = own.map_or(listed.len(), |own| older(&listed, &own));
        Ok(Event::Counted(u32::try_from(sandboxes).unwrap_or(u32::MAX)))
    }

    pub(super) async fn create(&self, thread: &ThreadKey, generation: u32) -> Done {
        // A sandbox whose server could not be started for want of a key would be made for nothing.
        let (_, keys) = self.models.for_server()?;
        let kept = self.keep(&keys).await?;
        let settings = &self.settings;
        let body = CreateSandbox::new(
            settings.of_stack(),
            thread,
            generation,
            &settings.image,
            &settings.limits,
        )
        .with_secrets(&kept.names());
        let refused = match self.daytona.create(&body).await {
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
        match (self.daytona.get(&body.name).await, refused) {
            (Ok(found), _) => self.adopt(found, thread, generation),
            (Err(DaytonaError::NotFound), Some(error)) => Err(match error {
                // The name was taken a moment ago and is free again.
                DaytonaError::Conflict { .. } | DaytonaError::NotFound => wait(&error),
                _ => error.failure(),
            }),
            // The read may lag behind the create.
            (Err(DaytonaError::NotFound), None) => Ok(Event::Observed(Coarse::Provisioning)),
            (Err(error), _) => Err(error.failure()),
        }
    }

    fn adopt(&self, found: Sandbox, thread: &ThreadKey, generation: u32) -> Done {
        if found.belongs_to(self.settings.of_stack(), thread, generation) {
            return Ok(Event::Observed(found.coarse()));
        }
        Err(Failure::NonRecoverable {
            advice: format!(
                "A sandbox named {} exists but was not made by this stack. The operator has to rename or delete it.",
                found.name
            ),
        })
    }

    /// Looks after this time, and before it as soon as nothing is under way any more: a sandbox that has come up is not
    /// kept waiting.
    pub(super) async fn observe(&self, thread: &ThreadKey, generation: u32, after_ms: u64) -> Done {
        let name = self.name(thread, generation);
        let until = Instant::now() + Duration::from_millis(after_ms);
        let pause = Duration::from_millis((after_ms / LOOKS_WITHIN).max(LOOK_MS_MIN));
        loop {
            let next = Instant::now() + pause;
            // The last look is at the end, not just before it.
            let is_last = next + pause / 2 >= until;
            sleep_until(if is_last { until } else { next }).await;
            match self.look(&name).await? {
                Coarse::Provisioning | Coarse::Busy if !is_last => {}
                seen => return Ok(Event::Observed(seen)),
            }
        }
    }

    pub(super) async fn start(&self, thread: &ThreadKey, generation: u32) -> Done {
        let name = self.name(thread, generation);
        let asked = match self.look(&name).await? {
            Coarse::Parked => self.daytona.start(&name).await,
            Coarse::Broken {
                recoverable: true, ..
            } => self.daytona.recover(&name).await,
            as_it_is => return Ok(Event::Observed(as_it_is)),
        };
        self.forget(&name);
        self.outcome(&name, asked).await
    }

    pub(super) async fn stop<B: Beside>(
        &self,
        beside: &B,
        thread: &ThreadKey,
        generation: u32,
    ) -> Done {
        let name = self.name(thread, generation);
        match self.look(&name).await? {
            Coarse::Running => {}
            as_it_is => return Ok(Event::Observed(as_it_is)),
        }
        // A stop that arrives after the message became visible again could hit somebody else's run.
        let left_ms = beside.visible_until_ms().saturating_sub(beside.now_ms());
        if left_ms <= self.settings.limits.lifecycle_call_ms {
            return Err(Failure::Wait {
                after_ms: 0,
                seen: "too little time is left for a stop".to_owned(),
            });
        }
        let asked = self.daytona.stop(&name).await;
        self.forget(&name);
        self.outcome(&name, asked).await
    }

    pub(super) async fn delete(&self, thread: &ThreadKey, generation: u32) -> Done {
        let name = self.name(thread, generation);
        if self.look(&name).await? == Coarse::Gone {
            return Ok(Event::Observed(Coarse::Gone));
        }
        let asked = self.daytona.delete(&name).await;
        self.forget(&name);
        self.outcome(&name, asked).await
    }

    async fn look(&self, name: &str) -> Result<Coarse, Failure> {
        match self.daytona.get(name).await {
            Ok(found) => Ok(found.coarse()),
            Err(DaytonaError::NotFound) => Ok(Coarse::Gone),
            Err(error) => Err(error.failure()),
        }
    }

    /// After a call that may have been too late, in transition or lost, the sandbox itself says what is.
    async fn outcome(&self, name: &str, asked: Result<(), DaytonaError>) -> Done {
        match asked {
            Ok(()) | Err(DaytonaError::NotFound | DaytonaError::Conflict { .. }) => {}
            Err(error @ DaytonaError::Refused { status: 400, .. }) => {
                return match self.look(name).await? {
                    // Refused although it is parked: a quota, which only a person can mend.
                    Coarse::Parked | Coarse::Running => Err(error.failure()),
                    other => Ok(Event::Observed(other)),
                };
            }
            Err(error) => return Err(error.failure()),
        }
        self.look(name).await.map(Event::Observed)
    }
}

fn wait(error: &DaytonaError) -> Failure {
    Failure::Wait {
        after_ms: 0,
        seen: error.to_string(),
    }
}

/// How many of these were made before the one of this name: all others while that is not listed yet. Of two of one moment
/// the name decides, so that all who ask count alike.
fn older(listed: &[Sandbox], own: &str) -> usize {
    let made = |sandbox: &Sandbox| (sandbox.created_at.clone(), sandbox.name.clone());
    let at = listed.iter().find(|one| one.name == own).map(made);
    let is_older = |one: &&Sandbox| one.name != own && at.as_ref().is_none_or(|at| made(one) < *at);
    listed.iter().filter(is_older).count()
}
