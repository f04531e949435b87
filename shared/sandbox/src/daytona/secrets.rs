//! Secrets of the organisation: the provider keeps the value, a sandbox sees a placeholder, and the value replaces it
//! in outgoing requests to the named hosts (`/secret` of the control API).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bobbin_core::base::ids::{Tenant, digest};
use serde::{Deserialize, Serialize};

use super::client::DaytonaError;
use super::sandboxes::DaytonaSandboxes;
use super::types::CreateSandbox;
use crate::labels::{LABEL_KEYS, PLACEHOLDERS, StackIdentity};
use crate::provider::{HostedSecret, Placeholder, ProviderResult, Sandbox, SecretStore, Secrets};

/// Hex digits of the stack's id in a name: names are unique in an organisation, which several stacks may share.
const ID_DIGITS: usize = 8;

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

/// The name of a stack's secret for a variable, or of a tenant's own: letters, digits, hyphens and underscores, as
/// Daytona requires.
#[must_use]
pub fn secret_name(stack: StackIdentity<'_>, owner: Option<&Tenant>, variable: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }
    };
    let name: String = stack.name.chars().map(plain).collect();
    let id = match owner {
        None => digest(&["secrets", stack.id]),
        Some(tenant) => digest(&["secrets", stack.id, tenant.as_str()]),
    };
    format!("bobbin-{name}-{}-{variable}", &id[..ID_DIGITS])
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
            let name = secret_name(self.settings.stack(), owner, secret.variable);
            let written = self.written(secret, &name, &there).await?;
            let placeholder = Placeholder { secret: name, text: written.placeholder };
            kept.insert(secret.variable.to_owned(), placeholder);
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
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    #[test]
    fn secret_name_is_unique() {
        let name = |name, id| secret_name(StackIdentity { name, id }, None, "OPENAI_API_KEY");
        assert_eq!(name("my.stack", "a"), "bobbin-my-stack-fbfe5ad5-OPENAI_API_KEY");
        assert_ne!(name("dev", "a"), name("dev", "b"));
        let own = |guild| {
            let tenant = ThreadKey::discord(guild, "2").unwrap().tenant();
            let dev = StackIdentity { name: "dev", id: "a" };
            secret_name(dev, Some(&tenant), "OPENAI_API_KEY")
        };
        assert!(own("1") != own("3") && own("1") != name("dev", "a"));
    }
}
