//! Network policies: the hosts that a sandbox may reach, and the headers added to its requests.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use bobbin_local_sandbox::gateway::{HeaderRule, Treatment};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api_error::ApiError;

/// Every host.
const ANYWHERE: &str = "*";

/// A sandbox's allowed hosts and rewrites.
#[derive(Clone)]
pub(crate) enum EgressPolicy {
    AllowAll,
    DenyAll,
    /// By domain; `*.` matches every name below it and `*` every name.
    Custom(BTreeMap<String, Vec<Rule>>),
}

/// Headers for matching requests.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    #[serde(default, rename = "match")]
    matches: Matches,
    transform: Vec<Transform>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transform {
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Matches {
    path: Option<Matcher>,
    method: Option<Vec<String>>,
    headers: Vec<MatcherPair>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatcherPair {
    key: Option<Matcher>,
    value: Option<Matcher>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
enum Matcher {
    Exact(String),
    StartsWith(String),
}

impl Matcher {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => text == wanted,
            Self::StartsWith(wanted) => text.starts_with(wanted.as_str()),
        }
    }
}

impl MatcherPair {
    fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.iter().any(|(name, value)| {
            let value = value.to_str().unwrap_or_default();
            let key = self.key.as_ref().is_none_or(|key| key.is(name.as_str()));
            key && self.value.as_ref().is_none_or(|wanted| wanted.is(value))
        })
    }
}

impl HeaderRule for Rule {
    fn apply(&self, method: &Method, path: &Uri, headers: &mut HeaderMap) {
        let Matches { path: wanted, method: methods, headers: pairs } = &self.matches;
        let is_path = wanted.as_ref().is_none_or(|it| it.is(path.path()));
        let is_method =
            methods.as_ref().is_none_or(|all| all.iter().any(|one| one == method.as_str()));
        if !is_path || !is_method || !pairs.iter().all(|pair| pair.is_in(headers)) {
            return;
        }
        let set = self.transform.iter().flat_map(|one| &one.headers);
        for (name, value) in set {
            if let (Ok(name), Ok(mut value)) = (
                HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()),
                HeaderValue::from_str(value),
            ) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PolicyBody {
    Mode { mode: String },
    Names { allow: Vec<String> },
    Rules { allow: BTreeMap<String, Vec<Rule>> },
}

impl EgressPolicy {
    /// Parses a policy in a request.
    ///
    /// # Errors
    /// It is invalid, or has an unsupported part.
    pub(crate) fn parse(asked: &Value) -> Result<Self, ApiError> {
        let wrong = || {
            ApiError::bad(
                "networkPolicy: only the modes allow-all and deny-all, names, and rules with `transform` and exact or startsWith matches of path, method and headers are known here",
            )
        };
        if asked.get("subnets").is_some() {
            return Err(wrong());
        }
        match serde_json::from_value(asked.clone()).map_err(|_| wrong())? {
            PolicyBody::Mode { mode } if mode == "allow-all" => Ok(Self::AllowAll),
            PolicyBody::Mode { mode } if mode == "deny-all" => Ok(Self::DenyAll),
            PolicyBody::Mode { .. } => Err(wrong()),
            PolicyBody::Names { allow } => {
                Ok(Self::Custom(allow.into_iter().map(|name| (name, Vec::new())).collect()))
            }
            PolicyBody::Rules { allow } => Ok(Self::Custom(allow)),
        }
    }

    /// JSON for answers, without header values.
    pub(crate) fn view(&self) -> Value {
        let domains = match self {
            Self::AllowAll => return json!({ "mode": "allow-all" }),
            Self::DenyAll => return json!({ "mode": "deny-all" }),
            Self::Custom(domains) => domains,
        };
        let rules = domains.iter().flat_map(|(domain, rules)| {
            rules.iter().map(move |rule| {
                let names: Vec<&String> =
                    rule.transform.iter().flat_map(|one| one.headers.keys()).collect();
                json!({ "domain": domain, "headerNames": names })
            })
        });
        let rules: Vec<Value> = rules.collect();
        let names: Vec<&String> = domains.keys().collect();
        let mut view = json!({ "mode": "custom", "allowedDomains": names });
        if !rules.is_empty() {
            view["injectionRules"] = Value::Array(rules);
        }
        view
    }

    /// Treatment of requests to a host: the most specific domain counts.
    pub(crate) fn treatment(&self, host: &str) -> Treatment {
        let domains = match self {
            Self::AllowAll => return Treatment::Pass,
            Self::DenyAll => return Treatment::Refuse,
            Self::Custom(domains) => domains,
        };
        let host = host.to_ascii_lowercase();
        let fitting = domains.iter().filter(|(domain, _)| covers(domain, &host));
        match fitting.max_by_key(|(domain, _)| closeness(domain)) {
            None => Treatment::Refuse,
            Some((_, rules)) => {
                let boxed = |rule: &Rule| Box::new(rule.clone()) as Box<dyn HeaderRule>;
                Treatment::of(rules.iter().map(boxed).collect())
            }
        }
    }
}

fn covers(domain: &str, host: &str) -> bool {
    match domain.strip_prefix(ANYWHERE) {
        Some("") => true,
        Some(below) => host.ends_with(below),
        None => domain.eq_ignore_ascii_case(host),
    }
}

fn closeness(domain: &str) -> (bool, usize) {
    (!domain.starts_with(ANYWHERE), domain.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn policy() -> EgressPolicy {
        EgressPolicy::parse(&json!({"allow": {
            "api.example.com": [{
                "match": {"headers": [{"key": {"exact": "x-api-key"}, "value": {"exact": "stand-in"}}]},
                "transform": [{"headers": {"X-Api-Key": "real"}}],
            }],
            "*.example.com": [],
        }}))
        .unwrap()
    }

    fn sent(policy: &EgressPolicy, host: &str, key: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_static(key));
        let Treatment::Rules(rules) = policy.treatment(host) else {
            return None;
        };
        for rule in rules {
            rule.apply(&Method::POST, &Uri::from_static("/v1"), &mut headers);
        }
        Some(headers["x-api-key"].to_str().unwrap().to_owned())
    }

    #[test]
    fn header_rules_apply_only_when_matched() {
        let policy = policy();
        assert_eq!(sent(&policy, "api.example.com", "stand-in").as_deref(), Some("real"));
        assert_eq!(sent(&policy, "api.example.com", "own").as_deref(), Some("own"));
        assert!(matches!(policy.treatment("other.example.com"), Treatment::Pass));
        assert!(matches!(policy.treatment("elsewhere.org"), Treatment::Refuse));
    }

    #[test]
    fn policy_view_hides_header_values() {
        assert_eq!(
            policy().view(),
            json!({
                "mode": "custom",
                "allowedDomains": ["*.example.com", "api.example.com"],
                "injectionRules": [{"domain": "api.example.com", "headerNames": ["X-Api-Key"]}],
            })
        );
    }

    #[test]
    fn unsupported_policies_are_refused() {
        for asked in [
            json!({"mode": "sometimes"}),
            json!({"allow": {"a": [{"forwardURL": "https://proxy.example"}]}}),
            json!({"allow": ["a"], "subnets": {"deny": ["10.0.0.0/8"]}}),
        ] {
            assert!(EgressPolicy::parse(&asked).is_err(), "{asked}");
        }
    }
}
