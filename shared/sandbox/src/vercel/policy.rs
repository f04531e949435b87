//! Keys that stay outside: a network policy inserts them into requests after these have left the machine.
//!
//! A sandbox sees a placeholder for a key. If a request to one of the key's hosts has the placeholder in a header for
//! keys, the header's value is replaced; a request without it is unchanged. Every other host stays reachable.

use std::collections::BTreeMap;

use bobbin_core::base::ids::{Tenant, digest};
use serde::Serialize;
use serde_json::{Value, json};

use crate::labels::StackIdentity;
use crate::provider::{HostedSecret, Placeholder};

/// Hex digits of a placeholder.
const PLACEHOLDER_DIGITS: usize = 32;
/// Headers in which model vendors accept a key, and the prefix before it.
const KEY_HEADERS: [(&str, &str); 3] =
    [("authorization", "Bearer "), ("x-api-key", ""), ("x-goog-api-key", "")];
/// Every host without a rule.
const ANYWHERE: &str = "*";

/// Network policy of a sandbox, in Vercel's form. It contains keys, so there is no `Debug`.
#[derive(Clone, Serialize)]
pub struct NetworkPolicy {
    allow: BTreeMap<String, Vec<Value>>,
}

/// A key known to this process, for use in policies. It holds the key, so there is no `Debug`.
#[derive(Clone)]
pub(super) struct HeldSecret {
    pub(super) placeholder: String,
    pub(super) version: String,
    value: String,
    hosts: Vec<String>,
}

impl HeldSecret {
    /// The name by which sandboxes refer to it, its placeholder, and the held key.
    pub(super) fn of(stack: StackIdentity<'_>, secret: &HostedSecret) -> (Placeholder, Self) {
        let name = secret_name(secret.owner.as_ref(), secret.variable);
        let digits = digest(&["vercel-secret", stack.id, &name]);
        let text = format!("bobbin_secret_{}", &digits[..PLACEHOLDER_DIGITS]);
        let held = Self {
            placeholder: text.clone(),
            version: secret.version.clone(),
            value: secret.value.clone(),
            hosts: secret.hosts.clone(),
        };
        (Placeholder { secret: name, text }, held)
    }
}

fn secret_name(owner: Option<&Tenant>, variable: &str) -> String {
    match owner {
        None => variable.to_owned(),
        Some(tenant) => format!("{tenant}/{variable}"),
    }
}

impl NetworkPolicy {
    /// For these keys.
    pub(super) fn of<'a>(secrets: impl IntoIterator<Item = &'a HeldSecret>) -> Self {
        let mut allow = BTreeMap::from([(ANYWHERE.to_owned(), Vec::new())]);
        for secret in secrets {
            for host in &secret.hosts {
                let rules = allow.entry(host.clone()).or_insert_with(Vec::new);
                rules.extend(KEY_HEADERS.map(|(header, before)| rule(secret, header, before)));
            }
        }
        Self { allow }
    }
}

fn rule(secret: &HeldSecret, header: &str, before: &str) -> Value {
    let sent = format!("{before}{}", secret.placeholder);
    let set = format!("{before}{}", secret.value);
    json!({
        "match": { "headers": [{ "key": { "exact": header }, "value": { "exact": sent } }] },
        "transform": [{ "headers": { header: set } }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(owner: Option<Tenant>) -> HostedSecret {
        HostedSecret {
            variable: "OPENAI_API_KEY",
            value: "sk-real".to_owned(),
            version: "1".to_owned(),
            hosts: vec!["api.openai.com".to_owned()],
            owner,
        }
    }

    #[test]
    fn key_replaces_only_its_placeholder() {
        let dev = StackIdentity { name: "dev", id: "a" };
        let (placeholder, held) = HeldSecret::of(dev, &secret(None));
        let policy = serde_json::to_value(NetworkPolicy::of([&held])).expect("JSON");
        let text = &placeholder.text;
        assert_eq!(policy["allow"]["*"], json!([]));
        let rules = &policy["allow"]["api.openai.com"];
        assert_eq!(
            rules[0],
            json!({
                "match": {"headers": [
                    {"key": {"exact": "authorization"}, "value": {"exact": format!("Bearer {text}")}},
                ]},
                "transform": [{"headers": {"authorization": "Bearer sk-real"}}],
            })
        );
        assert_eq!(
            rules[1]["transform"][0]["headers"]["x-api-key"], "sk-real",
            "as Anthropic takes it"
        );
        assert!(!text.contains("sk-real"));
    }

    #[test]
    fn placeholders_differ_per_stack_and_tenant() {
        let text =
            |id, owner| HeldSecret::of(StackIdentity { name: "dev", id }, &secret(owner)).0.text;
        assert_eq!(text("a", None), text("a", None));
        assert_ne!(text("a", None), text("b", None));
        assert_ne!(text("a", None), text("a", Some(Tenant::discord("1"))));
    }
}
