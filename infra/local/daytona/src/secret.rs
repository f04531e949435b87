//! A secret, whose value the gateway puts into requests that leave a sandbox.

use serde_json::{Value, json};

use crate::clock::iso;

/// A secret. It is never written to disk: a restart forgets it, and its owner must create it again.
#[derive(Clone)]
pub(crate) struct DaytonaSecret {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Placeholder of the value inside sandboxes.
    pub(crate) placeholder: String,
    pub(crate) value: String,
    pub(crate) description: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

impl DaytonaSecret {
    /// Whether requests to a host get the value.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| is_for(own, host))
    }

    /// JSON for the API, never with the value.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id, "name": self.name, "placeholder": self.placeholder, "hosts": self.hosts,
            "createdAt": iso(self.created_at), "updatedAt": iso(self.updated_at),
        });
        if let Some(description) = &self.description {
            json["description"] = json!(description);
        }
        json
    }
}

/// Whether an entry names a host: as it is, or below a domain behind `*.`.
pub(crate) fn is_for(entry: &str, host: &str) -> bool {
    let (entry, host) = (entry.to_ascii_lowercase(), host.to_ascii_lowercase());
    entry == host || entry.strip_prefix('*').is_some_and(|below| host.ends_with(below))
}
