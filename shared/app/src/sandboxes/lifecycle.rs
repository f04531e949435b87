//! The life cycle of a sandbox: which calls go to the provider, and when.

use std::sync::PoisonError;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::{Deletion, ErrorKind, ProviderResult, Sandbox, SandboxSpec, Secrets};
use tokio::time::{Instant, sleep, sleep_until};

use super::outside_keys::names;
use super::{RunContext, Sandboxes};

/// Observations within the time after which a sandbox is to be observed, and the shortest pause between two of them.
const LOOKS_WITHIN: u64 = 5;
const LOOK_MS_MIN: u64 = 50;

pub(super) type Done = Result<Event, Failure>;

impl Sandboxes {
    pub(super) async fn count(&self, sandbox: &SandboxKey, older_than: Option<u32>) -> Done {
        let own = older_than.map(|generation| self.name(sandbox, generation));
        let counted = self.provider.count(&sandbox.tenant(), own.as_deref()).await;
        Ok(Event::Counted(counted?))
    }

    /// Number of a tenant's sandboxes that are not being deleted.
    ///
    /// # Errors
    /// The class of the provider's failure.
    pub async fn living(&self, tenant: &Tenant) -> ProviderResult<u32> {
        self.provider.count(tenant, None).await
    }

    pub(super) async fn create(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        ((snapshot, prebuild), wants_secrets): ((Option<&str>, Option<&str>), bool),
    ) -> Done {
        let snapshot = match (snapshot, prebuild) {
            (Some(name), _) => Some(self.usable(sandbox, name)?),
            (None, Some(name)) => Some(self.usable_prebuild(sandbox, name)?),
            (None, None) => None,
        };
        // Without a key the server could not start, and the sandbox would be useless.
        let keys = self.runtime.keys()?;
        let secrets = match self.keep(&keys).await? {
            // One that is made without any gets none later.
            Secrets::Outside(kept) if kept.is_empty() && wants_secrets => self.keep_first().await?,
            Secrets::Outside(kept) => names(&kept),
            Secrets::Nowhere { .. } => std::collections::BTreeMap::new(),
        };
        let spec = SandboxSpec { secrets: &secrets, snapshot: snapshot.as_ref() };
        seen(self.provider.create(sandbox, generation, spec).await)
    }

    /// Observes the sandbox after this time, or earlier once nothing is in progress any more: a sandbox that has
    /// started is not kept waiting.
    pub(super) async fn observe(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        after_ms: u64,
    ) -> Done {
        let name = self.name(sandbox, generation);
        let until = Instant::now() + Duration::from_millis(after_ms);
        let pause = Duration::from_millis((after_ms / LOOKS_WITHIN).max(LOOK_MS_MIN));
        loop {
            let next = Instant::now() + pause;
            // The last observation is at the end, not just before it.
            let is_last = next + pause / 2 >= until;
            sleep_until(if is_last { until } else { next }).await;
            match self.state(&name).await? {
                SandboxState::Provisioning | SandboxState::Busy if !is_last => {}
                state => return Ok(Event::Observed(state)),
            }
        }
    }

    /// The current state; a sandbox that the provider does not know is gone.
    async fn state(&self, name: &str) -> Result<SandboxState, Failure> {
        match self.provider.observe(name).await {
            Ok(found) => Ok(found.state),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(SandboxState::Gone),
            Err(error) => Err(error.failure),
        }
    }

    /// Observes a missing sandbox once more, and then checks the list.
    pub(super) async fn confirm(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        after_ms: u64,
    ) -> Done {
        let name = self.name(sandbox, generation);
        sleep(Duration::from_millis(after_ms)).await;
        let state = self.state(&name).await?;
        if state != SandboxState::Gone {
            return Ok(Event::Observed(state));
        }
        let listed = self.provider.list(Some(&sandbox.tenant())).await;
        let listed = listed?;
        match why_not_gone(&name, &listed, self.provider.facts().listed_max) {
            None => Ok(Event::Observed(SandboxState::Gone)),
            Some(seen) => Err(Failure::Wait { after_ms: 0, seen: seen.to_owned() }),
        }
    }

    /// Keeps the sandbox of a run from being stopped by its time limit.
    pub(super) async fn keep_alive(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> ProviderResult<()> {
        let name = self.name(sandbox, generation);
        let kept = self.provider.keep_alive(&name).await;
        let ends_ms = match &kept {
            Ok(()) => None,
            Err(_) => {
                let found = self.provider.observe(&name).await.ok();
                found.and_then(|found| found.ends_ms)
            }
        };
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        match ends_ms {
            Some(ends_ms) => drop(ends.insert(name, ends_ms)),
            None => drop(ends.remove(&name)),
        }
        kept
    }

    /// When the sandbox is deleted, if that could not be postponed and a turn may not be over by then.
    pub(super) fn ends_soon(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        now_ms: Ms,
    ) -> Option<Ms> {
        let name = self.name(sandbox, generation);
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let ends_ms = ends.get(&name).copied();
        ends_ms.filter(|at| *at <= now_ms + self.settings.limits.turn.turn_ms)
    }

    pub(super) async fn start(&self, sandbox: &SandboxKey, generation: u32) -> Done {
        let name = self.name(sandbox, generation);
        let started = self.provider.start(&name).await;
        self.forget(&name);
        seen(started)
    }

    pub(super) async fn stop<B: RunContext>(
        &self,
        context: &B,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> Done {
        // A stop that arrives after the message became visible again could hit somebody else's run.
        let left_ms = context.visible_until_ms().saturating_sub(context.now_ms());
        let spare_ms = left_ms.saturating_sub(self.settings.limits.sandbox.lifecycle_call_ms);
        let latest = Instant::now() + Duration::from_millis(spare_ms);
        let name = self.name(sandbox, generation);
        let stopped = self.provider.stop(&name, latest).await;
        self.forget(&name);
        seen(stopped)
    }

    pub(super) async fn delete(
        &self,
        (sandbox, generation): (&SandboxKey, u32),
        has_secrets: bool,
    ) -> Done {
        let name = self.name(sandbox, generation);
        let deleted = self.provider.delete(Deletion::Named(&name)).await;
        self.forget(&name);
        if deleted.is_ok() {
            self.end_keys_of((sandbox, generation), has_secrets).await;
        }
        seen(deleted)
    }
}

fn seen(seen: ProviderResult<SandboxState>) -> Done {
    Ok(Event::Observed(seen?))
}

/// Why a sandbox that was not found twice is not gone, by the tenant's list. A sandbox that is being deleted still
/// exists.
fn why_not_gone(name: &str, listed: &[Sandbox], listed_max: usize) -> Option<&'static str> {
    let is_there = |one: &Sandbox| one.name == name && one.state != SandboxState::Gone;
    if listed.iter().any(is_there) {
        Some("the provider lists the sandbox, and does not find it")
    } else if listed.len() >= listed_max {
        Some("the provider does not find the sandbox, and has more sandboxes than it lists")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, state: SandboxState) -> Sandbox {
        Sandbox {
            id: String::new(),
            name: name.to_owned(),
            labels: std::collections::BTreeMap::new(),
            state,
            said: String::new(),
            created_ms: None,
            ends_ms: None,
            exec_base: None,
        }
    }

    #[test]
    fn only_complete_list_proves_absence() {
        let other = listed("b", SandboxState::Running);
        let gone = |listed: &[Sandbox]| why_not_gone("a", listed, 2).is_none();
        assert!(gone(&[]));
        assert!(gone(std::slice::from_ref(&other)));
        assert!(gone(&[listed("a", SandboxState::Gone)]));
        assert!(!gone(&[listed("a", SandboxState::Stopped)]));
        assert!(!gone(&[other.clone(), other]), "there may be more");
    }
}
