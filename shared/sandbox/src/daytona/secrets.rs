//! Secrets of the organisation: the provider keeps the value, a sandbox sees what stands for it, and the value is put into
//! requests to the named hosts on their way out (`/secret` of the control API).

use std::collections::BTreeMap;

use bobbin_core::base::ids::{Tenant, digest};
use serde::{Deserialize, Serialize};

use super::types::CreateSandbox;
use crate::labels::{LABEL_KEYS, PLACEHOLDERS, Stack};

/// Hexadecimal digits of the stack's id in a name: names are unique in an organisation, which stacks may share.
const ID_DIGITS: usize = 8;

/// A secret as it is read: never with its value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredSecret {
    /// Id that the route of an update holds; sandboxes name a secret by its name.
    pub id: String,
    /// Name, unique in the organisation.
    pub name: String,
    /// What its maker wrote about it.
    #[serde(default)]
    pub description: Option<String>,
    /// What stands for the value in sandboxes.
    pub placeholder: String,
    /// Hosts whose requests get the value.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Body of `POST /secret` and `PATCH /secret/{id}`. Its value is in no log: there is no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct WriteSecret {
    /// Its name; none leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The value itself; Daytona never gives it back.
    pub value: String,
    /// Which value it is, without saying it.
    pub description: String,
    /// Hosts whose requests get it.
    pub hosts: Vec<String>,
}

impl WriteSecret {
    /// Whether what is there is this already.
    #[must_use]
    pub fn is(&self, there: &StoredSecret) -> bool {
        there.description.as_ref() == Some(&self.description) && there.hosts == self.hosts
    }
}

/// The name of a stack's secret for a variable, or of one of a tenant's own: letters, digits, hyphens and underscores, as Daytona wants it.
#[must_use]
pub fn secret_name(stack: Stack<'_>, owner: Option<&Tenant>, variable: &str) -> String {
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

/// Variable and name of its secret, in the form that `POST /sandbox` and `PUT /sandbox/{id}/secrets` take.
#[must_use]
pub fn mounts(names: &BTreeMap<String, String>) -> Vec<BTreeMap<String, String>> {
    let one = |(variable, name): (&String, &String)| [(variable.clone(), name.clone())].into();
    names.iter().map(one).collect()
}

impl CreateSandbox {
    /// The sandbox with these secrets: variable to name. Without any, keys go in as they did.
    #[must_use]
    pub fn with_secrets(mut self, names: &BTreeMap<String, String>) -> Self {
        if !names.is_empty() {
            self.secrets = mounts(names);
            self.labels.insert(LABEL_KEYS.to_owned(), PLACEHOLDERS.to_owned());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    #[test]
    fn a_name_is_the_stacks_own_and_one_that_daytona_takes() {
        let name = |name, id| secret_name(Stack { name, id }, None, "OPENAI_API_KEY");
        assert_eq!(name("my.stack", "a"), "bobbin-my-stack-fbfe5ad5-OPENAI_API_KEY");
        assert_ne!(name("dev", "a"), name("dev", "b"));
        let own = |guild| {
            let tenant = ThreadKey::discord(guild, "2").unwrap().tenant();
            let dev = Stack { name: "dev", id: "a" };
            secret_name(dev, Some(&tenant), "OPENAI_API_KEY")
        };
        assert!(own("1") != own("3") && own("1") != name("dev", "a"));
    }
}
