//! What a sandbox was given of its project: secrets for the agent's tools, and a network.

use serde::{Deserialize, Serialize};

use crate::base::names::short_name;
use crate::tenant::project_networks::NetworkAccess;

/// The secrets with which the server of a sandbox was started last.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct GivenSecrets {
    /// Identifies them with their values ([`crate::tenant::project_networks::revision_of`]).
    pub revision: String,
    /// What it reaches of the world; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<GivenNetwork>,
    /// Those that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<GivenSecret>,
    /// Those that it has not, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<WithheldSecret>,
}

impl GivenSecrets {
    /// A name: of equal ones the same.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn name(&self) -> String {
        let text = serde_json::to_string(self).expect("every field has a JSON form");
        short_name(&["given secrets", &text])
    }
}

/// What a sandbox reaches of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GivenNetwork {
    /// As the setting says.
    pub access: NetworkAccess,
    /// Named hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The provider cannot limit it: it reaches all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ignored: bool,
}

/// A secret that the agent's tools can use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GivenSecret {
    /// Its name, which is its variable.
    pub name: String,
    /// The hosts for which the variable's placeholder is replaced; none: the variable holds the value itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// A secret that the agent does not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WithheldSecret {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: Withheld,
}

/// Why a secret is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// The provider cannot keep it outside, and it may not be readable.
    Nowhere,
    /// The sandbox was made when there was none, and cannot get any.
    MadeWithout,
    /// The provider took no more secrets.
    NoRoom,
    /// The stored value does not open.
    Unreadable,
}
