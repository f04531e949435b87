//! Secrets that stay outside Vercel's sandboxes: this process holds them, and a sandbox's network policy inserts them
//! into its requests. Vercel never returns one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, digest};

use super::policy::{HeldSecret, NetworkPolicy};
use super::sandboxes::VercelSandboxes;
use super::types::SandboxAnswer;
use crate::provider::{HostedSecret, ProviderResult, Sandbox, SecretStore, Secrets};

/// Sessions whose policy is remembered; further ones are forgotten, and set again when needed.
const POLICIES_MAX: usize = 256;
/// Secrets that this process holds.
const HELD_MAX: usize = 2_000;

impl VercelSandboxes {
    /// Which hosts the policies of this sandbox name from now on. One without keys gets its policy at once, others with
    /// their keys.
    pub(super) async fn limited(
        &self,
        sandbox: &Sandbox,
        hosts: Option<&[String]>,
    ) -> ProviderResult<()> {
        let (session, _) = self.session(sandbox).await?;
        match hosts {
            Some(hosts) => {
                let mut limits = locked(&self.limits);
                if limits.len() >= POLICIES_MAX {
                    limits.clear();
                }
                limits.insert(session.clone(), hosts.to_vec());
            }
            None => drop(locked(&self.limits).remove(&session)),
        }
        // Another process may have set another one.
        locked(&self.policies).clear();
        if !sandbox.has_placeholders() {
            let policy = NetworkPolicy::of([], hosts);
            self.client.set_policy(&sandbox.name, &session, &policy).await?;
        }
        Ok(())
    }

    /// The policy that inserts these secrets (variable to the secret's name).
    pub(super) fn policy(&self, names: &BTreeMap<String, String>) -> ProviderResult<NetworkPolicy> {
        Ok(NetworkPolicy::of(&self.named(names)?, None))
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
            self.note(&session.id, version(&secrets, None));
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
        if held.len() >= HELD_MAX {
            // Those of single sandboxes are given again when they are needed.
            held.retain(|name, _| !name.contains('/'));
        }
        let mut kept = BTreeMap::new();
        for secret in secrets {
            let (placeholder, secret_held) = HeldSecret::of(self.settings.stack(), secret);
            held.insert(placeholder.secret.clone(), secret_held);
            kept.insert(secret.variable.clone(), placeholder);
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
        let only = locked(&self.limits).get(&session).cloned();
        let version = version(&secrets, only.as_deref());
        if locked(&self.policies).get(&session) == Some(&version) {
            return Ok(());
        }
        let policy = NetworkPolicy::of(&secrets, only.as_deref());
        self.client.set_policy(&sandbox.name, &session, &policy).await?;
        self.note(&session, version);
        Ok(())
    }

    async fn limit_network(
        &self,
        sandbox: &Sandbox,
        hosts: Option<&[String]>,
    ) -> ProviderResult<bool> {
        self.limited(sandbox, hosts).await.map(|()| true)
    }

    async fn forget(&self, sandbox: &str, but: &[&str]) -> ProviderResult<()> {
        let own = format!("{sandbox}/");
        let stays = |name: &str| name.strip_prefix(&own).is_none_or(|name| but.contains(&name));
        locked(&self.held).retain(|name, _| stays(name));
        Ok(())
    }

    // Policies end with their sandboxes, and what this process holds ends with it.
    async fn forget_all_but(&self, _: &[&str], _: Ms) -> ProviderResult<()> {
        Ok(())
    }
}

/// Identifies these keys and hosts without revealing a key.
fn version(secrets: &[HeldSecret], only: Option<&[String]>) -> String {
    let each = secrets.iter().flat_map(|one| [one.placeholder.as_str(), one.version.as_str()]);
    let only = only.map(|hosts| ["only"].into_iter().chain(hosts.iter().map(String::as_str)));
    let each = each.chain(only.into_iter().flatten());
    digest(&each.collect::<Vec<_>>())
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
