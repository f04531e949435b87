//! Keys that stay outside: a network policy inserts them into requests after these have left the machine.
//!
//! A sandbox sees a placeholder for a key. If a request to one of the key's hosts has the placeholder in a header for
//! keys, the header's value is replaced; a request without it is unchanged. Every other host stays reachable.

use std::collections::BTreeMap;

use bobbin_core::base::ids::digest;
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
        let name = secret_name(secret);
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

fn secret_name(HostedSecret { variable, owner, sandbox, .. }: &HostedSecret) -> String {
    match (sandbox, owner) {
        (Some(sandbox), _) => format!("{sandbox}/{variable}"),
        (None, Some(tenant)) => format!("{tenant}/{variable}"),
        (None, None) => variable.clone(),
    }
}

impl NetworkPolicy {
    /// For these keys, and these hosts alone; `None`: every host.
    pub(super) fn of<'a>(
        secrets: impl IntoIterator<Item = &'a HeldSecret>,
        only: Option<&[String]>,
    ) -> Self {
        let secrets: Vec<&HeldSecret> = secrets.into_iter().collect();
        let is_reached =
            |host: &&String| only.is_none_or(|only| only.iter().any(|one| covers(one, host)));
        let hosts = secrets.iter().flat_map(|secret| &secret.hosts).filter(is_reached);
        let hosts = hosts.chain(only.unwrap_or_default());
        // Of the entries that fit a host only the closest counts, so each has the rules of the wider ones too.
        let rules_of = |host: &String| {
            let is_for = |secret: &&&HeldSecret| secret.hosts.iter().any(|own| covers(own, host));
            let rules = secrets.iter().filter(is_for).flat_map(|secret| {
                KEY_HEADERS.map(|(header, before)| rule(secret, header, before))
            });
            (host.clone(), rules.collect())
        };
        let mut allow: BTreeMap<String, Vec<Value>> = hosts.map(rules_of).collect();
        if only.is_none() {
            allow.insert(ANYWHERE.to_owned(), Vec::new());
        }
        Self { allow }
    }
}

/// Whether a host of a secret stands for everything that this entry does.
fn covers(own: &str, entry: &str) -> bool {
    own == entry
        || own.strip_prefix('*').is_some_and(|below| entry.trim_start_matches('*').ends_with(below))
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
    use bobbin_core::base::ids::Tenant;

    use super::*;

    fn secret(owner: Option<Tenant>) -> HostedSecret {
        HostedSecret {
            variable: "OPENAI_API_KEY".to_owned(),
            value: "sk-real".to_owned(),
            version: "1".to_owned(),
            hosts: vec!["api.openai.com".to_owned()],
            owner,
            sandbox: None,
        }
    }

    #[test]
    fn limited_network_reaches_no_host_of_a_secret_beside() {
        let dev = StackIdentity { name: "dev", id: "a" };
        let (_, model) = HeldSecret::of(dev, &secret(None));
        let hosts = vec!["*.corp.example.com".to_owned()];
        let (_, project) = HeldSecret::of(dev, &HostedSecret { hosts, ..secret(None) });
        let reached = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|host| (*host).to_owned()).collect();
            let policy = NetworkPolicy::of([&model, &project], Some(&only));
            policy.allow.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(reached(&["api.openai.com"]), ["api.openai.com"]);
        assert_eq!(
            reached(&["*.corp.example.com", "api.openai.com"]),
            ["*.corp.example.com", "api.openai.com"]
        );
    }

    #[test]
    fn key_replaces_only_its_placeholder() {
        let dev = StackIdentity { name: "dev", id: "a" };
        let (placeholder, held) = HeldSecret::of(dev, &secret(None));
        let policy = serde_json::to_value(NetworkPolicy::of([&held], None)).expect("JSON");
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
    fn the_closest_entry_has_the_wider_ones_rules() {
        let dev = StackIdentity { name: "dev", id: "a" };
        let of = |variable: &str, host: &str| {
            let hosts = vec![host.to_owned()];
            HeldSecret::of(
                dev,
                &HostedSecret { variable: variable.to_owned(), hosts, ..secret(None) },
            )
            .1
        };
        let held = [of("WIDE", "*.example.com"), of("CLOSE", "api.example.com")];
        let policy = serde_json::to_value(NetworkPolicy::of(&held, None)).expect("JSON");
        let rules = |entry: &str| policy["allow"][entry].as_array().map(Vec::len);
        assert_eq!(rules("*.example.com"), Some(3));
        assert_eq!(rules("api.example.com"), Some(6));
        assert_eq!(rules("*"), Some(0));
        let only = ["other.example.org".to_owned()];
        let limited = serde_json::to_value(NetworkPolicy::of(&held, Some(&only))).expect("JSON");
        assert_eq!(limited["allow"]["other.example.org"], json!([]));
        assert!(limited["allow"].get("*").is_none(), "{limited}");
        assert!(!covers("*.example.com", "example.com") && !covers("*.a.com", "*.com"));
    }

    #[test]
    fn placeholders_differ_per_stack_and_tenant() {
        let text =
            |id, owner| HeldSecret::of(StackIdentity { name: "dev", id }, &secret(owner)).0.text;
        assert_eq!(text("a", None), text("a", None));
        assert_ne!(text("a", None), text("b", None));
        assert_ne!(text("a", None), text("a", Some(Tenant::discord("1"))));
        let of_sandbox = |name: &str| {
            let secret = HostedSecret { sandbox: Some(name.to_owned()), ..secret(None) };
            HeldSecret::of(StackIdentity { name: "dev", id: "a" }, &secret).0.text
        };
        assert!(of_sandbox("s1") != of_sandbox("s2") && of_sandbox("s1") != text("a", None));
    }
}
