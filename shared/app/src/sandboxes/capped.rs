//! The capped key of a sandbox's server: made before a start, deleted by the next one or with the sandbox.
//!
//! Promised: a server that is left running keeps the key that it has; what cannot be had or placed is taken back, and
//! the stack's key is used. A key that a crash leaves behind is deleted by the next start, or by the sweeper.

use std::sync::Arc;
use std::time::Duration;

use bobbin_agent::openrouter::MadeKey;
use bobbin_agent::{ModelKey, ServerLaunch};
use bobbin_cloud::clock::now_ms;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, TurnId};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::given_secrets::GivenSecrets;
use bobbin_core::tenant::budgets::{MicroUsd, RESERVED_MIN};
use bobbin_core::tenant::capped_keys::{CappedKeyName, KeyLimit};
use bobbin_sandbox::Sandbox;

use super::Sandboxes;
use super::server::{START_MS_MAX, Starting};
use crate::capped::{CappedKeys, NamedKey, left, until_ms};

/// Exit status of a start script that was only to look: a server runs.
const RUNS: i64 = 71;

/// What a server that is started may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerCap {
    /// At most this; `None`: no budget is set.
    Given(Option<MicroUsd>),
    /// What is left of the server's own before.
    AsBefore,
}

/// The key of a server that is about to be started.
pub(super) enum ServerKey {
    /// The stack's; those of earlier starts are deleted.
    OfStack(Vec<NamedKey>),
    /// The one that the running server has, which is left alone.
    Stays(Vec<NamedKey>),
    /// A new one.
    New(NewKey),
}

/// A capped key that was made for a start.
pub(super) struct NewKey {
    pub(super) name: CappedKeyName,
    pub(super) made: MadeKey,
    /// The variable whose key it replaces.
    pub(super) variable: &'static str,
    /// Keys of starts before.
    before: Vec<NamedKey>,
}

impl NewKey {
    /// Keys of starts before.
    pub(super) fn before(&mut self) -> Vec<NamedKey> {
        std::mem::take(&mut self.before)
    }
}

impl ServerKey {
    /// Puts a new key first among the server's, in the place of the stack's. `false` without one.
    pub(super) fn put_first(&self, keys: &mut [ModelKey]) -> bool {
        let Self::New(new) = self else { return false };
        let place = keys.iter().position(|key| key.variable == new.variable).unwrap_or(0);
        keys.swap(0, place);
        if let Some(key) = keys.first_mut() {
            new.made.value.expose().clone_into(&mut key.value);
        }
        true
    }

    /// The event of a server that is healthy with this key and a project's secrets.
    pub(super) fn healthy(&self, secrets: GivenSecrets) -> Event {
        let capped_until_ms = match self {
            Self::Stays(keys) => return healthy(keys),
            Self::OfStack(_) => None,
            Self::New(new) => Some(new.name.until_ms()),
        };
        match capped_until_ms {
            capped_until_ms if !secrets.revision.is_empty() => {
                Event::Started { capped_until_ms, secrets }
            }
            Some(until_ms) => Event::Capped { until_ms },
            None => Event::Healthy,
        }
    }
}

impl Sandboxes {
    /// What is known about the server's key, once it is healthy without a start.
    pub(super) async fn known_key(&self, sandbox: &SandboxKey, generation: u32) -> Event {
        let Some(capped) = &self.capped else { return Event::Healthy };
        match capped.of(sandbox, generation).await {
            Ok(keys) => healthy(&keys),
            Err(error) => {
                uncapped(&error.to_string());
                Event::Healthy
            }
        }
    }

    /// Decides which key a start gets, and makes it.
    pub(super) async fn key_for(
        &self,
        (key, generation): (&SandboxKey, u32),
        sandbox: &Sandbox,
        (how, launch): (Starting, &ServerLaunch),
        keys: &[ModelKey],
    ) -> Result<ServerKey, Failure> {
        let Some(capped) = &self.capped else { return Ok(ServerKey::OfStack(Vec::new())) };
        let before = match capped.of(key, generation).await {
            Ok(before) => before,
            Err(error) => {
                uncapped(&error.to_string());
                return Ok(ServerKey::OfStack(Vec::new()));
            }
        };
        let limit = match how.cap {
            ServerCap::Given(limit) => limit,
            ServerCap::AsBefore => {
                before.last().and_then(|(key, _)| left(key)).map(|left| left.max(RESERVED_MIN))
            }
        };
        let replaced = keys.iter().find(|key| capped.replaces(key));
        if limit.is_none() && before.is_empty() {
            return Ok(ServerKey::OfStack(before));
        }
        if !how.restart && self.runs(sandbox, launch).await? {
            return Ok(ServerKey::Stays(before));
        }
        let (Some(limit), Some(replaced)) = (limit, replaced) else {
            return Ok(ServerKey::OfStack(before));
        };
        let name = CappedKeyName::new(key, generation, now_ms());
        Ok(match capped.make(&name, limit).await {
            Ok(made) => ServerKey::New(NewKey { name, made, variable: replaced.variable, before }),
            Err(error) => {
                uncapped(&error.to_string());
                ServerKey::OfStack(before)
            }
        })
    }

    /// Whether the start would leave a running server alone.
    async fn runs(&self, sandbox: &Sandbox, launch: &ServerLaunch) -> Result<bool, Failure> {
        let timeout = Duration::from_millis(START_MS_MAX);
        let (look, environment) = (launch.look(), &launch.environment);
        let looked = self.provider.exec(sandbox, &look, environment, timeout);
        Ok(looked.await?.exit_code == RUNS)
    }

    /// A key that could not be placed opens nothing any more.
    pub(super) async fn take_back(&self, new: &NewKey, why: &str) {
        uncapped(why);
        if let Some(capped) = &self.capped
            && let Err(error) = capped.take_back(&new.made).await
        {
            left_behind(&error.to_string());
        }
    }

    /// No server with a key of an earlier start runs any more: those keys end.
    pub(super) async fn end_keys_before(&self, key: &ServerKey) {
        if let ServerKey::OfStack(before) | ServerKey::New(NewKey { before, .. }) = key {
            self.end_keys(before).await;
        }
    }

    /// Gives the server's key its limit for this turn.
    ///
    /// # Errors
    /// [`Failure::Wait`]: at the limit that the key has, the turn would end early, and count as spent.
    pub(super) async fn limit_key(
        &self,
        of: (&SandboxKey, u32),
        turn: &TurnId,
        limit: Option<KeyLimit>,
    ) -> Result<(), Failure> {
        let (Some(capped), Some(limit)) = (&self.capped, limit) else { return Ok(()) };
        capped.limit(of, turn, limit).await.map_err(|error| {
            tracing::warn!(event = "model.key.limit.failed", turn = &**turn, %error, "a capped key kept its limit");
            let seen = format!("the model key did not get its limit of money: {error}");
            Failure::Wait { after_ms: 0, seen }
        })
    }

    /// Ends the keys of a generation that was deleted, and has the provider forget what it kept for it.
    pub(super) async fn end_keys_of(
        &self,
        (sandbox, generation): (&SandboxKey, u32),
        has_secrets: bool,
    ) {
        if let Ok(store) = self.provider.facts().secrets
            && (has_secrets || self.capped.is_some())
            && let Err(error) = store.forget(&self.name(sandbox, generation), &[]).await
        {
            left_behind(&error.to_string());
        }
        let Some(capped) = &self.capped else { return };
        match capped.of(sandbox, generation).await {
            Ok(keys) => self.end_keys(&keys).await,
            Err(error) => left_behind(&error.to_string()),
        }
    }

    async fn end_keys(&self, keys: &[NamedKey]) {
        if let Some(capped) = &self.capped
            && let Err(error) = capped.delete(keys).await
        {
            left_behind(&error.to_string());
        }
    }

    /// Uses these keys where a budget is set.
    #[must_use]
    pub fn capping(self, capped: Option<Arc<CappedKeys>>) -> Self {
        Self { capped, ..self }
    }
}

fn healthy(keys: &[NamedKey]) -> Event {
    until_ms(keys).map_or(Event::Healthy, |until_ms| Event::Capped { until_ms })
}

fn uncapped(why: &str) {
    tracing::warn!(
        event = "model.key.uncapped",
        error = why,
        "a server gets the stack's key, which has no cap of its own"
    );
}

fn left_behind(why: &str) {
    tracing::warn!(
        event = "model.key.left",
        error = why,
        "a capped key that nobody needs is left to the sweeper"
    );
}
