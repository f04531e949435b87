//! Secrets of the organisation: the provider keeps the value, a sandbox sees a placeholder, and the value replaces it
//! in outgoing requests to the named hosts (`/secret` of the control API).

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use bobbin_core::base::ids::{Ms, Tenant, digest};
use bobbin_core::protocol::decide::orphan::is_unbelievable;
use bobbin_core::protocol::signals::ORPHANS_HELD;
use serde::{Deserialize, Serialize};

use super::client::DaytonaError;
use super::sandboxes::DaytonaSandboxes;
use super::types::{CreateSandbox, ms_of};
use crate::labels::{LABEL_KEYS, PLACEHOLDERS, StackIdentity};
use crate::provider::{HostedSecret, Placeholder, ProviderResult, Sandbox, SecretStore, Secrets};

/// Hex digits of the stack's id in a name: names are unique in an organisation, which several stacks may share.
const ID_DIGITS: usize = 8;
/// Hex digits of a sandbox in the name of a secret that is for it alone.
const SANDBOX_DIGITS: usize = 20;

/// A stored secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredSecret {
    /// Id, as used in the route of an update; sandboxes name a secret by its name.
    pub id: String,
    /// Name, unique in the organisation.
    pub name: String,
    /// Description from its creator.
    #[serde(default)]
    pub description: Option<String>,
    /// The placeholder that sandboxes see.
    pub placeholder: String,
    /// Hosts whose requests get the value.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// When it was made, in RFC 3339.
    #[serde(default, rename = "createdAt")]
    pub created_at: Option<String>,
}

/// Body of `POST /secret` and `PATCH /secret/{id}`. The value must not be logged, so there is no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct WriteSecret {
    /// The name; `None` leaves it unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The value; Daytona never returns it.
    pub value: String,
    /// Identifies the value without revealing it.
    pub description: String,
    /// Hosts whose requests get it.
    pub hosts: Vec<String>,
}

impl WriteSecret {
    /// Whether the stored secret is already this one.
    #[must_use]
    pub fn is(&self, there: &StoredSecret) -> bool {
        there.description.as_ref() == Some(&self.description) && there.hosts == self.hosts
    }
}

/// The name of a stack's secret for a variable, of a tenant's own, or of a sandbox's own: letters, digits, hyphens and
/// underscores, as Daytona requires.
#[must_use]
pub fn secret_name(
    stack: StackIdentity<'_>,
    owner: Option<&Tenant>,
    sandbox: Option<&str>,
    variable: &str,
) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }
    };
    let name: String = stack.name.chars().map(plain).collect();
    let id = match owner {
        None => digest(&["secrets", stack.id]),
        Some(tenant) => digest(&["secrets", stack.id, tenant.as_str()]),
    };
    let id = &id[..ID_DIGITS];
    match sandbox {
        None => format!("bobbin-{name}-{id}-{variable}"),
        Some(sandbox) => format!("bobbin-{name}-{id}-{variable}{}", mark_of(sandbox)),
    }
}

/// Whether a secret with this name is for a single sandbox, by how names of the stack's secrets begin.
fn is_sandboxes(name: &str, begins: &str) -> bool {
    let of_stack = name.strip_prefix(begins);
    let mark = of_stack.and_then(|rest| rest.rsplit_once('-')).map(|(_, mark)| mark);
    mark.is_some_and(|mark| {
        mark.len() == SANDBOX_DIGITS && mark.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// End of the names of secrets that are for this sandbox alone.
fn mark_of(sandbox: &str) -> String {
    format!("-{}", &digest(&["own-secret", sandbox])[..SANDBOX_DIGITS])
}

/// Variable and name of each secret, in the form that `POST /sandbox` and `PUT /sandbox/{id}/secrets` take.
#[must_use]
pub fn mounts(names: &BTreeMap<String, String>) -> Vec<BTreeMap<String, String>> {
    let one = |(variable, name): (&String, &String)| [(variable.clone(), name.clone())].into();
    names.iter().map(one).collect()
}

impl CreateSandbox {
    /// Adds these secrets (variable to name) to the sandbox. Without any, keys are passed into it as before.
    #[must_use]
    pub fn with_secrets(mut self, names: &BTreeMap<String, String>) -> Self {
        if !names.is_empty() {
            self.secrets = mounts(names);
            self.labels.insert(LABEL_KEYS.to_owned(), PLACEHOLDERS.to_owned());
        }
        self
    }
}

impl DaytonaSandboxes {
    async fn written(
        &self,
        secret: &HostedSecret,
        name: &str,
        there: &[StoredSecret],
    ) -> Result<StoredSecret, DaytonaError> {
        let mut body = WriteSecret {
            name: None,
            value: secret.value.clone(),
            description: secret.version.clone(),
            hosts: secret.hosts.clone(),
        };
        match there.iter().find(|one| one.name == name) {
            Some(found) if body.is(found) => Ok(found.clone()),
            Some(found) => match self.client.update_secret(&found.id, &body).await {
                // Deleted since the list was read: the next attempt creates it.
                Err(DaytonaError::NotFound) => {
                    Err(DaytonaError::Conflict { message: format!("the secret {name} is gone") })
                }
                other => other,
            },
            None => {
                body.name = Some(name.to_owned());
                self.client.create_secret(&body).await
            }
        }
    }

    /// Deletes those secrets for single sandboxes of this stack to which this applies.
    /// The secrets that this stack keeps for single sandboxes.
    async fn own(&self) -> ProviderResult<Vec<StoredSecret>> {
        let mut there = match self.client.secrets().await {
            // Without the permission or the feature, Bobbin never stored a secret there.
            Err(
                DaytonaError::Forbidden { .. }
                | DaytonaError::NotFound
                | DaytonaError::Unavailable { status: 501, .. },
            ) => return Ok(Vec::new()),
            other => other?,
        };
        let own = secret_name(self.settings.stack(), None, None, "");
        there.retain(|one| is_sandboxes(&one.name, &own));
        Ok(there)
    }

    async fn forget_those(
        &self,
        own: Vec<StoredSecret>,
        is_it: impl Fn(&StoredSecret) -> bool,
    ) -> ProviderResult<()> {
        for secret in own.iter().filter(|one| is_it(one)) {
            self.client.delete_secret(&secret.id).await?;
        }
        Ok(())
    }

    async fn all_written(
        &self,
        secrets: &[HostedSecret],
    ) -> Result<BTreeMap<String, Placeholder>, DaytonaError> {
        let mut kept = BTreeMap::new();
        if secrets.is_empty() {
            return Ok(kept);
        }
        let there = self.client.secrets().await?;
        for secret in secrets {
            let owner = secret.owner.as_ref();
            let sandbox = secret.sandbox.as_deref();
            let name = secret_name(self.settings.stack(), owner, sandbox, &secret.variable);
            let written = self.written(secret, &name, &there).await?;
            let placeholder = Placeholder { secret: name, text: written.placeholder };
            kept.insert(secret.variable.clone(), placeholder);
        }
        Ok(kept)
    }
}

#[async_trait]
impl SecretStore for DaytonaSandboxes {
    async fn keep(&self, secrets: &[HostedSecret]) -> ProviderResult<Secrets> {
        match self.all_written(secrets).await {
            Ok(kept) => Ok(Secrets::Outside(kept)),
            Err(
                error @ (DaytonaError::Forbidden { .. }
                | DaytonaError::NotFound
                | DaytonaError::Unavailable { status: 501, .. }),
            ) => Ok(Secrets::Nowhere { seen: error.to_string() }),
            Err(error) => Err(error.into()),
        }
    }

    async fn mount(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> ProviderResult<()> {
        Ok(self.client.mount_secrets(&sandbox.id, names).await?)
    }

    async fn limit_network(
        &self,
        sandbox: &Sandbox,
        hosts: Option<&[String]>,
    ) -> ProviderResult<bool> {
        match self.client.set_network(&sandbox.id, hosts).await {
            Ok(()) => Ok(true),
            // Not with this organisation's tier. What is refused for another reason is not left open.
            Err(
                error @ (DaytonaError::Forbidden { .. }
                | DaytonaError::Unavailable { status: 501, .. }),
            ) => {
                tracing::warn!(event = "network.unlimited", sandbox = sandbox.name, %error, "Daytona does not limit what a sandbox reaches");
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn forget(&self, sandbox: &str, but: &[&str]) -> ProviderResult<()> {
        let mark = mark_of(sandbox);
        let stays: Vec<String> = but
            .iter()
            .map(|variable| secret_name(self.settings.stack(), None, Some(sandbox), variable))
            .collect();
        let own = self.own().await?;
        self.forget_those(own, |one| one.name.ends_with(&mark) && !stays.contains(&one.name)).await
    }

    async fn forget_all_but(&self, living: &[&str], before_ms: Ms) -> ProviderResult<()> {
        let marks: BTreeSet<String> = living.iter().map(|sandbox| mark_of(sandbox)).collect();
        let is_old = |one: &StoredSecret| {
            ms_of(one.created_at.as_deref()).is_some_and(|made_ms| made_ms < before_ms)
        };
        let of = |one: &StoredSecret| {
            let at = one.name.len().saturating_sub(SANDBOX_DIGITS + 1);
            one.name.get(at..).unwrap_or_default().to_owned()
        };
        let own = self.own().await?;
        let all: BTreeSet<String> = own.iter().map(of).collect();
        let unlisted = all.iter().filter(|mark| !marks.contains(*mark)).count();
        if is_unbelievable(unlisted, all.len()) {
            tracing::error!(
                event = ORPHANS_HELD,
                listed = all.len(),
                orphans = unlisted,
                "most sandboxes with secrets are not listed: their secrets are kept until a person has looked"
            );
            return Ok(());
        }
        self.forget_those(own, |one| is_old(one) && !marks.contains(&of(one))).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    #[test]
    fn secret_name_is_unique() {
        let name = |name, id| secret_name(StackIdentity { name, id }, None, None, "OPENAI_API_KEY");
        assert_eq!(name("my.stack", "a"), "bobbin-my-stack-fbfe5ad5-OPENAI_API_KEY");
        assert_ne!(name("dev", "a"), name("dev", "b"));
        let own = |guild| {
            let tenant = ThreadKey::discord(guild, "2").unwrap().tenant();
            let dev = StackIdentity { name: "dev", id: "a" };
            secret_name(dev, Some(&tenant), None, "OPENAI_API_KEY")
        };
        assert!(own("1") != own("3") && own("1") != name("dev", "a"));
        let of_sandbox = |sandbox| {
            let dev = StackIdentity { name: "dev", id: "a" };
            secret_name(dev, None, Some(sandbox), "OPENAI_API_KEY")
        };
        assert!(of_sandbox("s1") != of_sandbox("s2"));
        assert!(of_sandbox("s1").ends_with(&mark_of("s1")));
        let begins = secret_name(StackIdentity { name: "dev", id: "a" }, None, None, "");
        assert!(is_sandboxes(&of_sandbox("s1"), &begins));
        for other in [name("dev", "a"), name("dev", "b"), own("1"), "mine".to_owned()] {
            assert!(!is_sandboxes(&other, &begins), "{other}");
        }
    }
}
