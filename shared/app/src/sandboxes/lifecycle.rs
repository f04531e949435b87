//! The life cycle of a sandbox: what the provider is asked for, and when.

use std::time::Duration;

use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{SandboxKey, Tenant};
use bobbin_core::sandbox::SandboxState;
use bobbin_sandbox::{Observed, ProviderResult, SandboxSpec, Secrets};
use tokio::time::{Instant, sleep_until};

use super::vault::names;
use super::{RunContext, Sandboxes};

/// Looks at a sandbox within the time after which it shall be looked at, and the shortest time between two of them.
const LOOKS_WITHIN: u64 = 5;
const LOOK_MS_MIN: u64 = 50;

pub(super) type Done = Result<Event, Failure>;

impl Sandboxes {
    pub(super) async fn count(&self, sandbox: &SandboxKey, older_than: Option<u32>) -> Done {
        let own = older_than.map(|generation| self.name(sandbox, generation));
        let counted = self.provider.count(&sandbox.tenant(), own.as_deref()).await;
        counted.map(Event::Counted).map_err(|e| e.failure)
    }

    /// How many sandboxes of a tenant are not on their way out.
    ///
    /// # Errors
    /// What the provider's answer means.
    pub async fn living(&self, tenant: &Tenant) -> ProviderResult<u32> {
        self.provider.count(tenant, None).await
    }

    pub(super) async fn create(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        snapshot: Option<&str>,
    ) -> Done {
        let snapshot = snapshot
            .map(|name| self.usable(sandbox, name))
            .transpose()?;
        // A sandbox whose server could not be started for want of a key would be made for nothing.
        let keys = self.runtime.keys()?;
        let secrets = match self.keep(&keys).await? {
            Secrets::Outside(kept) => names(&kept),
            Secrets::Nowhere { .. } => std::collections::BTreeMap::new(),
        };
        let spec = SandboxSpec {
            secrets: &secrets,
            snapshot: snapshot.as_ref(),
        };
        seen(self.provider.ensure(sandbox, generation, spec).await)
    }

    /// Looks after this time, and before it as soon as nothing is under way any more: a sandbox that has come up is not
    /// kept waiting.
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
            // The last look is at the end, not just before it.
            let is_last = next + pause / 2 >= until;
            sleep_until(if is_last { until } else { next }).await;
            match self.provider.observe(&name).await? {
                SandboxState::Provisioning | SandboxState::Busy if !is_last => {}
                state => return Ok(Event::Observed(state)),
            }
        }
    }

    /// Sees to it that the sandbox in which a run goes on is not stopped for want of time.
    pub(super) async fn keep_alive(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> ProviderResult<()> {
        let name = self.name(sandbox, generation);
        self.provider.keep_alive(&name).await
    }

    pub(super) async fn start(&self, sandbox: &SandboxKey, generation: u32) -> Done {
        let name = self.name(sandbox, generation);
        let started = self.provider.resume(&name).await;
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
        let spare_ms = left_ms.saturating_sub(self.settings.limits.lifecycle_call_ms);
        let latest = Instant::now() + Duration::from_millis(spare_ms);
        let name = self.name(sandbox, generation);
        let stopped = self.provider.stop(&name, latest).await;
        self.forget(&name);
        seen(stopped)
    }

    pub(super) async fn delete(&self, sandbox: &SandboxKey, generation: u32) -> Done {
        let name = self.name(sandbox, generation);
        let deleted = self.provider.destroy(&name).await;
        self.forget(&name);
        seen(deleted)
    }
}

fn seen(seen: Observed) -> Done {
    seen.map(Event::Observed)
}
