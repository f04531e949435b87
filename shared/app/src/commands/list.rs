//! `sandbox-list`: the named sandboxes of the tenant.

use std::collections::BTreeSet;

use bobbin_chat::Say;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::tool_sandbox;
use bobbin_core::shown::sandboxes::{ListContext, Listed, PAGE_SANDBOXES, SandboxesPage};

use super::find_sandbox::here;
use crate::control::Lane;

/// Records read for one list.
const LISTED_MAX: usize = 200;

impl Lane<'_> {
    /// One page of the tenant's named sandboxes, shown only to the requester.
    pub(super) async fn list(
        &self,
        control: &Control,
        (page, in_thread): (u32, bool),
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let tenant = control.thread.tenant();
        let names = self.store.names(&tenant).await.map_err(|e| e.failure())?;
        let here = here(found);
        let keys: BTreeSet<_> = names
            .iter()
            .filter(|(name, key)| tool_sandbox::is_seen_from(here.as_ref(), (name, key)))
            .take(LISTED_MAX)
            .map(|(_, key)| key.clone())
            .collect();
        let records = self.store.sandboxes(&keys).await.map_err(|e| e.failure())?;
        let mut all = Vec::new();
        for (key, record) in records {
            match record {
                Ok(Some(record)) if record.sharing.name.is_some() => {
                    all.push(self.listed(&key, &record))
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(event = "sandbox.unlisted", %tenant, %key, %error, "a named sandbox cannot be read, so it is not listed");
                }
            }
        }
        let place = ListContext { thread: control.thread.clone(), in_thread, here };
        let page = usize::try_from(page).unwrap_or(LISTED_MAX / PAGE_SANDBOXES);
        let page = SandboxesPage::of(all, page, place, now_ms);
        self.chat.answer(&control.reply, Say::Sandboxes(&page)).await
    }

    /// A sandbox, with the limitations of its provider.
    pub(super) fn listed(&self, key: &SandboxKey, record: &SandboxRecord) -> Listed {
        let provider = self.tenants.set_up().named(record.spec.provider.as_deref());
        let why = provider.ok().and_then(|one| one.facts().snapshots().err());
        Listed::of(key, record).without_snapshots(why)
    }
}
