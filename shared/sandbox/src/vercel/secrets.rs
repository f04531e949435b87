//! Secrets that stay outside Vercel's sandboxes: this process holds them, and a sandbox's network policy inserts them
//! into its requests. Vercel never returns one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::digest;

use super::policy::{HeldSecret, NetworkPolicy};
use super::sandboxes::VercelSandboxes;
use super::types::SandboxAnswer;
use crate::provider::{HostedSecret, ProviderResult, Sandbox, SecretStore, Secrets};

/// Sessions whose policy is remembered; further ones are forgotten, and set again when needed.
const POLICIES_MAX: usize = 256;

impl VercelSandboxes {
    /// The policy that inserts these secrets (variable to the secret's name).
    pub(super) fn policy(&self, names: &BTreeMap<String, String>) -> ProviderResult<NetworkPolicy> {
        Ok(NetworkPolicy::of(&self.named(names)?))
    }

    fn named(&self, names: &BTreeMap<String, String>) -> ProviderResult<Vec<HeldSecret>> {
        let held = locked(&self.held);
        let found = names.values().map(|name| held.get(name).cloned());
        let found: Option<Vec<HeldSecret>> = found.collect();
        found.ok_or_else(|| {
            let seen = "a key of the sandbox is missing".to_owned();
            Failure::Wait { after_ms: 0, seen }.into()
        })
    }

    /// Records the secrets with which a sandbox was created, so that its first start need not set them again.
    pub(super) fn note_policy(&self, told: &SandboxAnswer, names: &BTreeMap<String, String>) {
        if let (Some(session), Ok(secrets)) = (&told.session, self.named(names)) {
            self.note(&session.id, version(&secrets));
        }
    }

    fn note(&self, session: &str, version: String) {
        let mut policies = locked(&self.policies);
        if policies.len() >= POLICIES_MAX {
            policies.clear();
        }
        policies.insert(session.to_owned(), version);
    }
}

#[async_trait]
impl SecretStore for VercelSandboxes {
    async fn keep(&self, secrets: &[HostedSecret]) -> ProviderResult<Secrets> {
        let mut held = locked(&self.held);
        let mut kept = BTreeMap::new();
        for secret in secrets {
            let (placeholder, secret_held) = HeldSecret::of(self.settings.stack(), secret);
            held.insert(placeholder.secret.clone(), secret_held);
            kept.insert(secret.variable.to_owned(), placeholder);
        }
        Ok(Secrets::Outside(kept))
    }

    async fn mount(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> ProviderResult<()> {
        let secrets = self.named(names)?;
        let (session, _) = self.session(sandbox).await?;
        let version = version(&secrets);
        if locked(&self.policies).get(&session) == Some(&version) {
            return Ok(());
        }
        let policy = NetworkPolicy::of(&secrets);
        self.client.set_policy(&sandbox.name, &session, &policy).await?;
        self.note(&session, version);
        Ok(())
    }
}

/// Identifies these keys without revealing them.
fn version(secrets: &[HeldSecret]) -> String {
    let each = secrets.iter().flat_map(|one| [one.placeholder.as_str(), one.version.as_str()]);
    digest(&each.collect::<Vec<_>>())
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
